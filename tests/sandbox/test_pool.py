"""The pool of warm sandboxes: when one is kept, used, thrown away; and that it is never less than a cold one."""

from __future__ import annotations

import asyncio
import gc
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tamis.sandbox import runner
from tamis.sandbox.limits import watchdog
from tamis.sandbox.model import Environment, Limits, Mount, RunOutcome, RunRequest, SecretValue
from tamis.sandbox.warm import pool as pool_module
from tamis.sandbox.warm.key import may_wait, shape
from tamis.sandbox.warm.pool import BUSY_RUNS, Demand, Pool, PoolSettings, opened_pool
from tests.sandbox import cases, support
from tests.sandbox.cases import Case
from tests.waiting import arrives, until

ECHO = "import json, sys; print(json.dumps(json.load(sys.stdin)))"
EAGER = PoolSettings(eager=True)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


async def warmed(pool: Pool, wanted: RunRequest) -> RunOutcome:
    """The outcome of a call that finds a sandbox waiting."""
    await pool.run(wanted)
    await pool.settle()
    return await pool.run(wanted)


def waiting(pool: Pool) -> list[int]:
    """The processes of everything that waits."""
    monitors = [item.standing for item in pool._idle.values()]  # pyright: ignore[reportPrivateUsage]
    return [pid for item in monitors if item for pid in watchdog.tree(item._launched.process.pid)]  # pyright: ignore[reportPrivateUsage]


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_second_call_starts_a_sandbox_and_the_third_uses_it(tmp_path: Path) -> None:
    wanted = support.request(support.tool_folder(tmp_path, ECHO), stdin=b'{"a": 1}')

    async def work() -> None:
        async with opened_pool() as pool:
            seen: list[bool] = []
            for _ in range(4):
                outcome = await pool.run(wanted)
                assert (outcome.kind, outcome.stdout) == ("ok", b'{"a": 1}\n')
                seen.append(outcome.sandbox.warm)
                await pool.settle()
            assert seen == [False, False, True, True]
            assert pool.metrics().hits == 2
            assert pool.metrics().misses == 2

    run(work())


class Holding:
    """Counts what is held."""

    def __init__(self) -> None:
        self.now = self.ever = 0

    def __call__(self) -> Holding:
        self.now += 1
        self.ever += 1
        return self

    def close(self) -> None:
        self.now -= 1


def test_what_a_waiting_sandbox_shows_is_held_exactly_while_it_waits(tmp_path: Path) -> None:
    wanted = support.request(support.tool_folder(tmp_path, ECHO), stdin=b"{}")
    hold = Holding()

    async def work() -> None:
        async with opened_pool(EAGER) as pool:
            await pool.run(wanted, hold=hold)
            assert hold.now == 1  # before the call ends: the caller lets go of its own then
            await pool.settle()
            assert (hold.now, pool.metrics().idle) == (1, 1)
            assert (await pool.run(wanted, hold=hold)).sandbox.warm
            await pool.settle()
            assert hold.ever >= 2 and hold.now == pool.metrics().idle >= 1
            pool.reset()
            await pool.settle()
            assert (hold.now, pool.metrics().idle) == (0, 0)
            await pool.run(wanted, hold=hold)
            pool.reset()  # while one is being started
            await pool.settle()
            assert hold.now == 0
            await pool.run(wanted, hold=hold)
            await pool.settle()
            assert hold.now == 1
        assert hold.now == 0

    run(work())


def test_a_sandbox_that_shows_what_cannot_be_held_is_not_started_early(tmp_path: Path) -> None:
    wanted = support.request(support.tool_folder(tmp_path, ECHO), stdin=b"{}")

    def hold() -> None:
        raise BlockingIOError

    async def work() -> None:
        async with opened_pool(EAGER) as pool:
            assert (await pool.run(wanted, hold=hold)).kind == "ok"
            await pool.settle()
            assert pool.metrics().idle == 0

    run(work())


def test_warm_one_is_an_ordinary_sandbox_used_once(tmp_path: Path) -> None:
    # own processes, own address layout, own uid as root; nothing of an earlier call is there
    source = """
import os, sys, hashlib
given = sys.stdin.read()
here = sorted(os.listdir("/tmp")), sorted(p for p in os.listdir("/proc") if p.isdigit()), "secret" in repr(os.environ)
open("/tmp/" + given, "w").write(given)
os.environ["LEFT"] = "secret"
if os.fork() == 0:
    import time; os.close(1); os.close(2); time.sleep(3600)
layout = next(line for line in open("/proc/self/maps") if "[stack]" in line)
print(here, layout.split("-")[0], hash("a"))
"""
    wanted = support.request(support.tool_folder(tmp_path, source), stdin=b"secret-of-the-first")

    async def work() -> None:
        async with opened_pool(EAGER) as pool:
            outcomes: list[RunOutcome] = []
            for number in range(4):
                outcomes.append(await pool.run(support.request(wanted.folder, stdin=b"secret-%d" % number)))
                await pool.settle()
            assert [outcome.sandbox.warm for outcome in outcomes] == [False, True, True, True]
            said = [outcome.stdout.decode().rsplit(" ", 2) for outcome in outcomes]
            assert {line[0] for line in said} == {"([], ['1', '2'], False)"}
            assert len({line[1] for line in said}) > 1
            assert len({line[2] for line in said}) == 4

    run(work())


def test_secrets_of_one_call_are_not_in_the_memory_of_the_next(tmp_path: Path) -> None:
    source = """
import sys
given = sys.stdin.read()
wanted = bytes(b ^ 1 for b in b"gdbsds,ne,gdhse")
found = 0
for line in open("/proc/self/maps"):
    a, b = (int(x, 16) for x in line.split()[0].split("-"))
    if " rw" in line:
        try:
            m = open("/proc/self/mem", "rb"); m.seek(a); found += m.read(b - a).count(wanted[::-1][::-1])
        except OSError:
            pass
print(given == "now", found - 1 if given != "now" else found - 1)
"""
    folder = support.tool_folder(tmp_path, source.replace("gdbsds,ne,gdhse", "rdbsdu,ng,gdhse"))

    async def work() -> None:
        async with opened_pool(EAGER) as pool:
            await pool.run(support.request(folder, stdin=b"secret-of-first"))
            await pool.settle()
            outcome = await pool.run(support.request(folder, stdin=b"now"))
            assert outcome.sandbox.warm
            assert outcome.stdout == b"True 0\n", outcome

    run(work())


@pytest.mark.parametrize("how", ["written", "replaced", "touched"])
def test_changed_script_is_run_as_it_is_now(how: str, tmp_path: Path) -> None:
    folder = support.tool_folder(tmp_path, "print('old')")
    script = Path(folder, "tool.py")

    async def work() -> None:
        async with opened_pool(EAGER) as pool:
            await pool.run(support.request(folder))
            await pool.settle()
            before = script.stat()
            if how == "replaced":
                script.rename(Path(folder, "kept.py"))
            if how != "touched":
                script.write_text("print('new')")
            # same size and time of modification: the time of change tells
            os.utime(script, ns=(before.st_atime_ns, before.st_mtime_ns))
            outcome = await pool.run(support.request(folder))
            assert outcome.stdout == (b"old\n" if how == "touched" else b"new\n")
            assert not outcome.sandbox.warm
            assert pool.metrics().discarded == {"changed": 1}
            await pool.settle()
            assert (await pool.run(support.request(folder))).sandbox.warm

    run(work())


def test_replaced_folder_is_never_served_from_the_old_one(tmp_path: Path) -> None:
    folder = support.tool_folder(tmp_path, "print('old')")

    async def work() -> None:
        async with opened_pool(EAGER) as pool:
            await pool.run(support.request(folder))
            await pool.settle()
            os.rename(folder, folder + "-old")
            support.tool_folder(tmp_path, "print('new')")
            assert (await pool.run(support.request(folder))).stdout == b"new\n"
            os.rename(folder, folder + "-new")
            os.symlink(folder + "-old", folder)
            assert (await pool.run(support.request(folder))).kind == "refused"

    run(work())


def test_siblings_are_read_when_the_script_runs(tmp_path: Path) -> None:
    folder = support.tool_folder(tmp_path, "import helper; print(helper.VALUE, open('/tool/data').read())")
    Path(folder, "helper.py").write_text("VALUE = 'old'\nprint('imported')")
    Path(folder, "data").write_text("old")

    async def work() -> None:
        async with opened_pool(EAGER) as pool:
            await pool.run(support.request(folder))
            await pool.settle()
            Path(folder, "helper.py").write_text("VALUE = 'new'")
            Path(folder, "data").write_text("fresh")
            outcome = await pool.run(support.request(folder))
            assert outcome.sandbox.warm
            assert outcome.stdout == b"new fresh\n"

    run(work())


def test_sibling_that_hides_a_standard_module_is_found_as_in_a_cold_run(tmp_path: Path) -> None:
    folder = support.tool_folder(tmp_path, "import json, sys; print(json.__file__, sys.argv, sys.stdin.read())")

    async def work() -> None:
        async with opened_pool(EAGER) as pool:
            await pool.run(support.request(folder))
            await pool.settle()
            Path(folder, "json.py").write_text("")
            outcome = await pool.run(support.request(folder, stdin=b"x"))
            assert outcome.sandbox.warm
            assert outcome.stdout == b"/tool/json.py ['/tool/tool.py'] x\n"
            await pool.settle()
            # from now on none waits: such a script cannot be made ready
            assert pool.metrics().idle == 0
            assert (await pool.run(support.request(folder, stdin=b"x"))).stdout == outcome.stdout

    run(work())


def test_nothing_of_the_tool_runs_before_the_call(tmp_path: Path) -> None:
    folder = support.tool_folder(tmp_path, "import helper, time; print(time.time())")
    Path(folder, "helper.py").write_text("import time; AT = time.time()")

    async def work() -> None:
        async with opened_pool(EAGER) as pool:
            await pool.run(support.request(folder))
            await pool.settle()
            now = time.time()
            outcome = await pool.run(support.request(folder))
            assert outcome.sandbox.warm
            assert float(outcome.stdout) >= now - 0.001

    run(work())


@pytest.mark.parametrize(("name", "value"), [("PYTHONPATH", "/tool"), ("PYTHONPYCACHEPREFIX", "/tool")])
def test_variables_that_would_run_something_of_the_tool_before_its_call_are_cold(
    name: str, value: str, tmp_path: Path
) -> None:
    folder = support.tool_folder(tmp_path, "print(1)")
    Path(folder, "sitecustomize.py").write_text("EARLY = True\n")
    wanted = support.request(folder, env={name: value})

    async def work() -> None:
        async with opened_pool(EAGER) as pool:
            assert not (await warmed(pool, wanted)).sandbox.warm
            assert waiting(pool) == []

    assert not may_wait(wanted)
    run(work())


def test_calls_with_rights_of_their_own_are_cold(tmp_path: Path) -> None:
    folder = support.tool_folder(tmp_path, "print(1)")
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o755)
    own: list[dict[str, Any]] = [
        {"secrets": (SecretValue("A", "b"),)},
        {"read": (Mount(str(data), "/data"),)},
        {"write": (Mount(str(data), "/data"),)},
        {"hosts": ("example.org",)},
    ]

    async def work() -> None:
        async with opened_pool(EAGER) as pool:
            for more in own:
                for _ in range(2):
                    outcome = await pool.run(support.request(folder, **more))
                    assert outcome.kind == "ok", outcome
                    assert not outcome.sandbox.warm
                    await pool.settle()
            assert pool.metrics().cold == 2 * len(own)
            assert pool.metrics().refills == 0

    run(work())


def test_what_differs_in_anything_fixed_is_not_taken(tmp_path: Path) -> None:
    folder = support.tool_folder(tmp_path, "import sys; print(sys.argv[1:])")
    plain = support.request(folder)
    others = {
        "args": support.request(folder, args=("x",)),
        "memory": support.request(folder, limits=Limits(wall_ms=300_000, memory_bytes=200_000_000)),
        "stdin limit": support.request(folder, limits=Limits(wall_ms=300_000, stdin_bytes=5)),
        "boot": support.request(folder, boot="print('boot')"),
    }

    async def work() -> None:
        async with opened_pool(EAGER) as pool:
            await pool.run(plain)
            await pool.settle()
            for name, other in others.items():
                assert not (await pool.run(other)).sandbox.warm, name
                await pool.settle()
            assert not (await pool.run(plain, generation="2")).sandbox.warm
            # the deadline alone is set when the call comes
            outcome = await pool.run(support.request(folder, limits=Limits(wall_ms=299_000)))
            assert outcome.sandbox.warm

    run(work())


def test_environment_is_part_of_the_key(tmp_path: Path) -> None:
    folder = support.tool_folder(tmp_path, "import os; print(os.listdir('/env'))", "tool.js")
    Path(folder, "tool.js").write_text("console.log(require('fs').readdirSync('/env').join())")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).mkdir()
        (tmp_path / name).chmod(0o755)

    async def work() -> None:
        async with opened_pool(EAGER) as pool:
            for name in ("one", "two", "one", "two"):
                environment = Environment("javascript", str(tmp_path / name))
                outcome = await pool.run(support.request(folder, "tool.js", "nodejs", environment=environment))
                assert outcome.stdout in (b"one\n", b"two\n"), outcome
                assert outcome.stdout.decode().strip() == name
                await pool.settle()
            assert pool.metrics().hits == 2

    run(work())


@pytest.mark.parametrize("victim", ["monitor", "script"])
def test_one_that_died_is_replaced_by_a_cold_run(victim: str, tmp_path: Path) -> None:
    wanted = support.request(support.tool_folder(tmp_path, ECHO), stdin=b"[1]")

    async def work() -> None:
        async with opened_pool(EAGER) as pool:
            await pool.run(wanted)
            await pool.settle()
            pids = waiting(pool)
            os.kill(pids[0 if victim == "monitor" else -1], signal.SIGKILL)
            if victim == "monitor":
                await asyncio.sleep(0.1)  # else the script may begin before the end of its monitor takes it along
            outcome = await pool.run(wanted)
            assert (outcome.kind, outcome.stdout) == ("ok", b"[1]\n")
            await pool.settle()
            assert not any(alive(pid) for pid in pids)

    run(work())


def test_deadline_runs_from_the_call_on(tmp_path: Path) -> None:
    folder = support.tool_folder(tmp_path, "import sys, time; time.sleep(float(sys.stdin.read())); print('x')")

    async def work() -> None:
        async with opened_pool(EAGER) as pool:
            await pool.run(support.request(folder, stdin=b"0"))
            await pool.settle()
            await asyncio.sleep(0.3)
            began = asyncio.get_running_loop().time()
            outcome = await pool.run(support.request(folder, stdin=b"0"))
            assert (outcome.kind, outcome.sandbox.warm) == ("ok", True)
            assert outcome.wall_ms <= (asyncio.get_running_loop().time() - began) * 1000 + 1
            await pool.settle()
            outcome = await pool.run(support.request(folder, stdin=b"3600", limits=Limits(wall_ms=500)))
            assert (outcome.kind, outcome.sandbox.warm) == ("timeout", True)

    run(work())


def test_idle_ones_end_by_themselves(tmp_path: Path) -> None:
    wanted = support.request(support.tool_folder(tmp_path, ECHO), stdin=b"1")

    async def work() -> None:
        async with opened_pool(PoolSettings(eager=True, idle_seconds=1.0)) as pool:
            await pool.run(wanted)
            await pool.settle()
            pids = waiting(pool)
            await arrives(lambda: pool.metrics().discarded == {"idle": 1})
            await pool.settle()
            assert pool.metrics().idle == 0
            assert not any(alive(pid) for pid in pids)

    run(work())


@pytest.mark.parametrize(
    ("gaps", "start_s", "expected"),
    [
        ((), 0.05, 0),
        ((1200.0,), 0.05, 0),
        ((30.0,), 0.05, 1),
        ((0.5,), 0.05, 2),
        # 50 calls a second
        ((0.02,) * 7, 0.005, 2),
        ((0.02,) * 7, 0.045, 4),
        ((0.02,) * 7, 5.0, 2 * BUSY_RUNS),
        # a pause ends a pace
        ((*(0.02,) * 6, 5.0), 0.05, 1),
        ((*(0.02,) * 5, 5.0, 0.5), 0.05, 2),
        ((0.0,) * 7, 0.05, 2),
    ],
)
def test_as_many_wait_as_calls_come_while_one_is_started(
    gaps: tuple[float, ...], start_s: float, expected: int
) -> None:
    # R9: two waited whatever the pace, and a tight loop found one in a quarter of its calls
    demand, now = Demand(), 1000.0
    demand.start_s = start_s
    demand.note(now)
    for gap in gaps:
        now += gap
        demand.note(now)
    assert demand.wanted(now, eager=False) == min(expected, 2 * BUSY_RUNS)


def test_a_call_waits_for_a_sandbox_that_is_there_sooner_than_a_cold_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # R9: one that was being started was passed over, and the cold run beside it made both late
    wanted = support.request(support.tool_folder(tmp_path, ECHO), stdin=b"{}")
    monkeypatch.setattr(pool_module, "MOST_SOON_SECONDS", 60.0)

    async def work() -> None:
        async with opened_pool(EAGER) as pool:
            await pool.run(wanted)
            (starting,) = pool._starting  # pyright: ignore[reportPrivateUsage]
            while starting.began == math.inf:
                await asyncio.sleep(0)
            monkeypatch.setattr(Demand, "is_soon", lambda *_: True)
            assert (await pool.run(wanted)).sandbox.warm
            assert pool.metrics().misses == 1

    run(work())


@pytest.mark.parametrize("how", ["fails", "takes long"])
def test_a_sandbox_that_does_not_come_to_wait_costs_a_call_nothing_but_time(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = support.request(support.tool_folder(tmp_path, ECHO), stdin=b"{}")
    monkeypatch.setattr(pool_module, "MOST_SOON_SECONDS", 60.0 if how == "fails" else 0.05)
    real, may_come = runner.run, asyncio.Event()
    may_come.set()

    async def late(request: RunRequest, **more: Any) -> RunOutcome:
        if more["warm"].parks:
            if how == "fails":
                await asyncio.sleep(0.2)
                return RunOutcome(kind="unavailable")
            await may_come.wait()
        return await real(request, **more)

    async def work() -> None:
        async with opened_pool(EAGER) as pool:
            await pool.run(wanted)
            monkeypatch.setattr(runner, "run", late)
            await pool.settle()
            pool.reset()
            await pool.settle()
            may_come.clear()
            await pool.run(wanted)
            (starting,) = pool._starting  # pyright: ignore[reportPrivateUsage]
            while starting.began == math.inf:
                await asyncio.sleep(0)
            monkeypatch.setattr(Demand, "is_soon", lambda *_: True)
            outcome = await pool.run(wanted)
            assert (outcome.kind, outcome.sandbox.warm) == ("ok", False)
            may_come.set()
            await pool.settle()
            # the one that came too late is another call's
            assert (await pool.run(wanted)).sandbox.warm is (how == "takes long")

    run(work())


def test_no_more_are_started_at_once_than_there_are_processors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = support.request(support.tool_folder(tmp_path, ECHO), stdin=b"{}")
    monkeypatch.setattr(Demand, "wanted", lambda *_, **__: 6)
    real, under_way, most = runner.run, 0, 0

    async def counted(request: RunRequest, **more: Any) -> RunOutcome:
        nonlocal under_way, most
        parks = more["warm"].parks
        under_way += parks
        most = max(most, under_way)
        try:
            return await real(request, **more)
        finally:
            under_way -= parks

    monkeypatch.setattr(runner, "run", counted)

    async def work() -> None:
        async with opened_pool(EAGER) as pool:
            await pool.run(wanted)
            await pool.settle()
            assert (pool.metrics().idle, most) == (6, BUSY_RUNS)

    run(work())


def test_number_and_memory_of_idle_ones_are_bounded(tmp_path: Path) -> None:
    folders: list[str] = []
    for number in range(5):
        (tmp_path / str(number)).mkdir()
        folders.append(support.tool_folder(tmp_path / str(number), f"print({number})"))

    async def work(settings: PoolSettings, most: int, reason: str) -> None:
        async with opened_pool(settings) as pool:
            for folder in folders:
                await pool.run(support.request(folder))
                await pool.settle()
            await arrives(lambda: (pool.metrics().idle, pool.metrics().discarded.get(reason)) == (most, 5 - most))
            if most:
                # the longest unused went first
                assert not (await pool.run(support.request(folders[0]))).sandbox.warm
                assert (await pool.run(support.request(folders[4]))).sandbox.warm

    run(work(PoolSettings(eager=True, max_idle=2), 2, "full"))
    run(work(PoolSettings(eager=True, memory_bytes=1_000_000), 0, "memory"))


def test_a_reload_and_the_end_leave_nothing(tmp_path: Path) -> None:
    wanted = support.request(support.tool_folder(tmp_path, ECHO), stdin=b"1")

    async def work() -> None:
        pool = Pool(EAGER)
        await pool.run(wanted)
        await pool.settle()
        pids = waiting(pool)
        pool.reset()
        await pool.settle()
        assert not any(alive(pid) for pid in pids)
        await pool.run(wanted)
        pool.reset()  # while one is being started
        await pool.settle()
        assert pool.metrics().idle == 0
        await pool.run(wanted)
        await pool.close()
        assert (pool.metrics().idle, pool.metrics().starting) == (0, 0)
        assert (await pool.run(wanted)).kind == "ok"  # a closed pool still runs, cold
        assert [pid for pid in watchdog.tree(os.getpid())[1:] if b"/tool" in cmdline(pid)] == []

    run(work())


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


DAEMON = """
import asyncio, sys
sys.path[:0] = sys.argv[1].split(":")
from tamis.sandbox.warm.pool import Pool, PoolSettings
from tests.sandbox import support
async def main():
    pool = Pool(PoolSettings(eager=True))
    await pool.run(support.request(sys.argv[2]))
    await pool.settle()
    print(pool.metrics().idle, flush=True)
    await asyncio.sleep(3600)
asyncio.run(main())
"""


def test_idle_ones_die_with_the_daemon(tmp_path: Path) -> None:
    name = f"idle-{random.randrange(10**9)}.py"
    folder = support.tool_folder(tmp_path, "print(1)", name)
    code = DAEMON.replace("sys.argv[2])", f"sys.argv[2], {name!r})")
    here = str(Path(__file__).parents[2])
    process = subprocess.Popen([sys.executable, "-c", code, here, folder], stdout=subprocess.PIPE, cwd="/")
    assert process.stdout is not None
    assert process.stdout.readline() == b"1\n"

    def left() -> list[str]:
        return [pid for pid in os.listdir("/proc") if pid.isdigit() and f"/tool/{name}".encode() in cmdline(int(pid))]

    assert len(left()) >= 3
    process.kill()
    process.wait()
    until(lambda: not left())


def test_cancelled_call_leaves_nothing_and_takes_nothing(tmp_path: Path) -> None:
    wanted = support.request(support.tool_folder(tmp_path, "import time; print('x', flush=True); time.sleep(3600)"))

    async def work() -> None:
        async with opened_pool(EAGER) as pool:
            quick = support.request(wanted.folder, limits=Limits(wall_ms=300))
            await pool.run(quick)
            await pool.settle()
            cancelled = asyncio.Event()
            outcome = await pool.run(wanted, on_output=lambda *_: cancelled.set(), cancelled=cancelled)
            # the line feed may come in a piece of its own, behind the cancel
            assert (outcome.kind, outcome.stdout.strip(), outcome.sandbox.warm) == ("cancelled", b"x", True)
            await pool.settle()
            up = asyncio.Event()
            task = asyncio.create_task(pool.run(wanted, on_output=lambda *_: up.set()))
            await up.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    run(work())


def test_many_calls_at_once_each_get_their_own(tmp_path: Path) -> None:
    wanted = support.tool_folder(tmp_path, ECHO)

    async def work() -> None:
        async with opened_pool(EAGER) as pool:
            for _ in range(3):
                requests = [support.request(wanted, stdin=b"%d" % number) for number in range(8)]
                outcomes = await asyncio.gather(*(pool.run(request) for request in requests))
                assert [outcome.stdout for outcome in outcomes] == [b"%d\n" % number for number in range(8)]
            await pool.settle()
            assert pool.metrics().idle <= 2 * BUSY_RUNS

    run(work())


def test_descriptors_and_processes_stay_flat(tmp_path: Path, is_long: bool) -> None:
    wanted = support.request(support.tool_folder(tmp_path, ECHO), stdin=b"1")

    async def work() -> None:
        async with opened_pool(EAGER) as pool:
            gc.collect()  # what earlier tests left open
            seen: list[tuple[int, int]] = []
            for _ in range(3):
                for _ in range(300 if is_long else 15):
                    assert (await pool.run(wanted)).kind == "ok"
                await pool.settle()
                pool.reset()  # how many wait goes with the pace
                await pool.settle()
                seen.append((support.descriptors(), len(watchdog.tree(os.getpid()))))
            assert max(fds for fds, _ in seen) == seen[0][0], seen
            assert len({processes for _, processes in seen}) == 1, seen
            # one waits whenever the pool has settled; how many more depends on how fast the machine refills
            assert pool.metrics().hits >= 2

    run(work())


SHARE = random.Random(20).sample(cases.ALL, 8)


@pytest.mark.parametrize("case", SHARE, ids=lambda case: case.id)
def test_corpus_case_through_the_pool(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # every layer holds in a warm sandbox as in a cold one
    if case.root_only and not support.IS_ROOT:
        pytest.skip("shows what only root could lose")

    async def work() -> None:
        async with opened_pool(EAGER) as pool:

            async def through_pool(wanted: RunRequest) -> RunOutcome:
                waits = may_wait(wanted) and await started(pool, wanted)
                outcome = await pool.run(wanted)
                assert outcome.sandbox.warm == waits, outcome
                return outcome

            monkeypatch.setattr(support, "runner", SimpleNamespace(run=through_pool))
            outcome, wrong = await support.run_case(case, tmp_path)
            assert not wrong, (wrong, outcome)

    run(work())


async def started(pool: Pool, wanted: RunRequest) -> bool:
    """A waiting sandbox for a request that was never run, where there can be one."""
    key = shape(wanted, "")
    pool._refill(wanted, key, "", pool._demand(key))  # pyright: ignore[reportPrivateUsage]
    await pool.settle()
    return pool.metrics().idle == 1


def test_pool_of_another_loop_is_not_used(tmp_path: Path) -> None:
    wanted = support.request(support.tool_folder(tmp_path, ECHO), stdin=b"1")
    pool = Pool(EAGER)

    async def first() -> None:
        await pool.run(wanted)
        await pool.settle()
        assert pool.metrics().idle == 1
        pool.reset()
        await pool.settle()

    asyncio.run(first())

    async def second() -> None:
        assert not (await pool.run(wanted)).sandbox.warm
        assert (await runner.run(wanted)).kind == "ok"

    asyncio.run(second())


def test_a_sandbox_waits_only_for_calls_with_its_own_variables(tmp_path: Path) -> None:  # ruling 60
    folder = support.tool_folder(tmp_path, "import os; print(os.environ['A'])")

    async def work() -> None:
        async with opened_pool(EAGER) as pool:
            for value in ("b", "b", "c", "b"):
                outcome = await pool.run(support.request(folder, env={"A": value}))
                assert outcome.stdout == f"{value}\n".encode(), outcome
                await pool.settle()

    run(work())
