"""Nothing is left behind: not after cancelling, not after the daemon is killed, not after many calls."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from tamis.sandbox import engine, launch, lifeline, runner
from tamis.sandbox.engine import WallClock
from tamis.sandbox.limits import cgroups, watchdog
from tamis.sandbox.model import Limits, RunOutcome
from tests.sandbox import support

DAEMON = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from tests.sandbox import support
from tamis.sandbox import runner
async def main():
    wanted = support.request(sys.argv[2])
    await asyncio.gather(*(runner.run(wanted, on_output=lambda *_: print("up", flush=True)) for _ in range(3)))
print("start", flush=True)
asyncio.run(main())
"""

HANG = """
import os, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        time.sleep(86400)
print("up", flush=True)
time.sleep(86400)
"""


def test_killing_the_daemon_leaves_no_process(tmp_path: Path) -> None:
    name = f"hang_{os.getpid()}_{time.monotonic_ns()}.py"
    folder = support.tool_folder(tmp_path, HANG, name)
    code = DAEMON.replace("support.request(sys.argv[2])", f"support.request(sys.argv[2], {name!r})")
    here = str(Path(__file__).parents[2])
    process = subprocess.Popen([sys.executable, "-c", code, here, folder], stdout=subprocess.PIPE, cwd="/")
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(4)] == [b"start\n", b"up\n", b"up\n", b"up\n"]
    inside = [pid for pid in support.marked(f"/tool/{name}") if pid != process.pid]
    assert len(inside) >= 12  # three scripts with three daemons each
    process.kill()
    process.wait()
    process.stdout.close()
    support.await_gone(f"/tool/{name}")


def test_killing_the_daemon_at_any_moment_leaves_no_process(tmp_path: Path, is_long: bool) -> None:
    rounds = 60 if is_long else 5
    for index in range(rounds):
        name = f"hang_{os.getpid()}_{time.monotonic_ns()}.py"
        folder = support.tool_folder(tmp_path, HANG, name)
        code = DAEMON.replace("support.request(sys.argv[2])", f"support.request(sys.argv[2], {name!r})")
        code = code.replace(
            'print("start"', 'runner._run; from tamis.sandbox import probe; probe.probe(); print("start"'
        )
        here = str(Path(__file__).parents[2])
        process = subprocess.Popen([sys.executable, "-c", code, here, folder], stdout=subprocess.PIPE, cwd="/")
        assert process.stdout is not None
        assert process.stdout.readline() == b"start\n"
        time.sleep(index * 0.04 / rounds)
        process.kill()
        process.wait()
        process.stdout.close()
        support.await_gone(f"/tool/{name}")


@pytest.mark.skipif(support.IS_ROOT, reason="as root the outer stage, which no switch changes, ends the inner one")
def test_killing_the_daemon_leaves_processes_without_die_with_parent(tmp_path: Path) -> None:
    # the layer's meta-test: the test above bites
    name = f"hang_{os.getpid()}_{time.monotonic_ns()}.py"
    # a script that has still something to print when nobody reads any more would end by itself
    folder = support.tool_folder(tmp_path, HANG.replace('print("up", flush=True)', ""), name)
    code = DAEMON.replace("support.request(sys.argv[2])", f"support.request(sys.argv[2], {name!r})")
    code = code.replace(
        'runner.run(wanted, on_output=lambda *_: print("up", flush=True))',
        'runner.run_without(wanted, frozenset(["die-with-parent", "cgroup"]))',
    )
    here = str(Path(__file__).parents[2])
    process = subprocess.Popen([sys.executable, "-c", code, here, folder], stdout=subprocess.DEVNULL, cwd="/")
    left: list[int] = []
    while True:
        # those that only fork the next go again
        before, left = left, support.marked(f"/tool/{name}")
        if len(left) >= 12 and left == before:
            break
        time.sleep(0.1)
    process.kill()
    process.wait()
    try:
        time.sleep(0.5)
        assert support.marked(f"/tool/{name}")
    finally:
        for pid in support.marked(f"/tool/{name}"):
            with contextlib.suppress(ProcessLookupError):  # its namespace's init went before
                os.kill(pid, signal.SIGKILL)
    support.await_gone(f"/tool/{name}")


def test_cancel_event_ends_the_run(tmp_path: Path) -> None:
    async def main() -> RunOutcome:
        cancelled = asyncio.Event()
        # it hangs for ten minutes, and a limit of a day does not end it either
        wanted = support.request(support.tool_folder(tmp_path, HANG), limits=Limits(wall_ms=86_400_000))

        def first_output(*_: object) -> None:
            cancelled.set()

        return await runner.run(wanted, on_output=first_output, cancelled=cancelled)

    assert asyncio.run(main()).kind == "cancelled"


def _below(pid: int) -> list[int]:
    return [below for child in watchdog.children_of(pid) for below in (child, *_below(child))]


def test_a_sandbox_that_is_killed_from_outside_is_told_as_such(tmp_path: Path) -> None:
    # R6: it was told as a machine without a sandbox, with the script's own words as the reason
    source = "import sys, time\nprint('my words', file=sys.stderr)\nprint('up', flush=True)\ntime.sleep(60)"
    wanted = support.request(support.tool_folder(tmp_path, source))
    other = lifeline.watcher()
    killed: list[int] = []

    def kill(stream: str, _: bytes) -> None:
        if stream == "stdout" and not killed:
            killed.append(next(pid for pid in watchdog.children_of(os.getpid()) if _below(pid) and pid != other))
            os.kill(killed[0], signal.SIGKILL)

    outcome = asyncio.run(runner.run(wanted, on_output=kill))
    assert (outcome.kind, outcome.error_type, outcome.signal) == ("error", "ResourceError", "SIGKILL"), outcome
    assert "ended from outside" in outcome.message and "my words" not in outcome.message
    assert support.children() == []


# test_a_deadline_comes_when_its_time_was_there_for_the_script shows the same without waiting
@pytest.mark.long
def test_the_time_that_this_process_was_stopped_is_not_the_scripts(tmp_path: Path) -> None:
    # R6: a daemon under SIGSTOP found the deadline over when it went on
    source = "import time\nprint('up', flush=True)\ntime.sleep(34.5)\nprint('done')"
    wanted = support.request(support.tool_folder(tmp_path, source), limits=Limits(wall_ms=30_000))
    outcome = asyncio.run(runner.run(wanted, on_output=lambda *_: time.sleep(32)))
    assert outcome.kind == "ok", outcome


class _Clock:
    """A loop that only has timers, and a time that is set."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Callable[[], None]) -> object:
        self.timers.append((self.now + seconds, call))
        return object()


@pytest.mark.parametrize(("late", "expected"), [(0.0, 10.0), (0.9, 10.0), (60.0, 69.0)])
def test_a_deadline_comes_when_its_time_was_there_for_the_script(late: float, expected: float) -> None:
    """``late``: what the third look comes too late by; a second of it is a loaded machine's."""
    clock, over = _Clock(), list[float]()
    WallClock(cast("asyncio.AbstractEventLoop", clock), 10.0, lambda: over.append(clock.now))
    looks = 0
    while not over:
        at, call = clock.timers.pop(0)
        looks += 1
        clock.now = max(clock.now, at) + (late if looks == 3 else 0.0)
        call()
    assert over[0] == pytest.approx(expected, abs=0.01)


def test_cancelling_the_task_waits_for_the_end_of_the_tree(tmp_path: Path) -> None:
    async def main() -> list[int]:
        up = asyncio.Event()
        wanted = support.request(support.tool_folder(tmp_path, HANG))
        task = asyncio.create_task(runner.run(wanted, on_output=lambda *_: up.set()))
        await up.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return support.children()

    assert asyncio.run(main()) == []


def test_whole_tree_is_dead_after_the_deadline(tmp_path: Path) -> None:
    # how soon is measured by the benchmark
    outcome = support.run_source(tmp_path, HANG, limits=Limits(wall_ms=500))
    assert outcome.kind == "timeout"
    assert support.children() == []


def test_grandchild_with_stdout_does_not_delay_the_answer(tmp_path: Path) -> None:
    # S4
    source = "import os,time\nif os.fork()==0:\n  os.setsid(); time.sleep(86400)\nprint('x')"
    assert support.run_source(tmp_path, source, limits=Limits(wall_ms=86_400_000)).kind == "ok"


def test_flood_of_a_grandchild_is_not_the_script_s_when_it_ended_before_the_word_of_it_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # S4: on a loaded machine the flood may overtake the word that the script has ended
    source = "import os,time\nif os.fork()==0:\n  os.setsid()\n  while True: os.write(2, b'x'*65536)\ntime.sleep(0.5)\nprint('x')"
    monkeypatch.setattr(engine, "LAST_WORD_SECONDS", 30)
    outcome = support.run_source(tmp_path, source, limits=support.PATIENT)
    assert (outcome.kind, outcome.stdout, outcome.stderr_truncated) == ("ok", b"x\n", True)
    assert support.children() == []
    monkeypatch.setattr(engine, "LAST_WORD_SECONDS", 0)
    outcome = support.run_source(tmp_path / "again", source.replace("0.5", "3600"), limits=support.PATIENT)
    assert (outcome.kind, outcome.limit) == ("limit", "stderr")
    assert support.children() == []


def test_many_calls_leave_descriptors_and_processes_flat(tmp_path: Path, is_long: bool) -> None:
    calls = 2000 if is_long else 80
    wanted = support.request(support.tool_folder(tmp_path, "print(1)"))

    async def main() -> list[tuple[int, int]]:
        seen: list[tuple[int, int]] = []
        for _ in range(4):
            for _ in range(calls // 40):
                outcomes = await asyncio.gather(*(runner.run(wanted) for _ in range(10)))
                assert {outcome.kind for outcome in outcomes} == {"ok"}, outcomes
            seen.append((support.descriptors(), len(support.children())))
        return seen

    seen = asyncio.run(main())
    # not more than after the first share: what earlier tests left open may be collected meanwhile
    assert max(fds for fds, _ in seen) == seen[0][0], seen
    assert {left for _, left in seen} == {0}, seen
    assert seen[-1][1] == 0


def test_output_comes_while_the_script_runs(tmp_path: Path) -> None:
    pieces: list[tuple[str, bytes]] = []
    source = "import sys,time\nprint('a',flush=True); time.sleep(0.2); print('b',file=sys.stderr)"
    wanted = support.request(support.tool_folder(tmp_path, source))
    support.run(wanted, on_output=lambda stream, piece: pieces.append((stream, piece)))
    assert b"".join(piece for stream, piece in pieces if stream == "stdout") == b"a\n"
    assert b"".join(piece for stream, piece in pieces if stream == "stderr") == b"b\n"
    assert pieces[0][0] == "stdout" and pieces[-1][0] == "stderr"


@pytest.mark.skipif(not support.IS_ROOT, reason="a uid is given up only by root")
def test_each_call_as_root_has_its_own_uid_seen_from_the_host(tmp_path: Path) -> None:
    # item 2: never the host's root, not even behind a user namespace
    wanted = support.request(support.tool_folder(tmp_path, "import time; print('x', flush=True); time.sleep(0.3)"))
    seen: set[str] = set()

    def look(*_: object) -> None:
        for pid in watchdog.tree(os.getpid())[1:]:
            status = Path(f"/proc/{pid}/status").read_text()
            if "\nName:\tpython3" in "\n" + status:
                seen.add(next(line for line in status.splitlines() if line.startswith("Uid:")).split()[1])

    support.run(wanted, on_output=look)
    support.run(wanted, on_output=look)
    assert len(seen) == 2
    assert all(60_000 <= int(uid) < 65_000 for uid in seen)


def test_usage_is_counted(tmp_path: Path) -> None:
    source = "x=b'y'*50_000_000\nimport time; e=time.process_time()+0.2\nwhile time.process_time()<e: pass"
    outcome = support.run_source(tmp_path, source)
    assert launch.become_subreaper()
    assert 180 <= outcome.cpu_ms < 2000
    assert 50_000_000 < outcome.max_rss_bytes < 120_000_000


def test_usage_of_a_short_run_is_the_scripts_not_the_sandboxs(tmp_path: Path, is_long: bool) -> None:
    # over before anything looked; as root the two stages of the sandbox end at once, and not always pass it on
    source = "import time; x=b'y'*20_000_000\nwhile time.process_time()<0.05: pass"
    grouped = cgroups.status().version != ""
    for _ in range(8 if is_long else 3):
        outcome = support.run_source(tmp_path, source)
        # the kernel counts by ticks, and a loaded machine may have had none at the right moments;
        # nsjail's stages tell nothing on their way out
        while outcome.cpu_ms < 30 and support.BACKEND != "nsjail":
            outcome = support.run_source(tmp_path, source)
        if grouped or not support.IS_ROOT:
            assert outcome.max_rss_bytes > 20_000_000, outcome


def test_interrupting_the_daemons_terminal_does_not_reach_the_script(tmp_path: Path) -> None:
    wanted = support.request(support.tool_folder(tmp_path, "import os; print(os.getpgid(0) == os.getsid(0))"))
    assert support.run(wanted).stdout == b"True\n"
    assert signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN


KERNEL_TELLS = tuple(int(word) for word in os.uname().release.split(".")[:2]) >= (6, 15)


@pytest.mark.skipif(not KERNEL_TELLS, reason="kernels before 6.15 do not tell how another's child ended")
@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ("os.kill(os.getpid(), 11)", (139, "SIGSEGV")),
        ("os._exit(139)", (139, None)),
        ("os.abort()", (134, "SIGABRT")),
        ("os._exit(159)", (159, None)),
        ("os.kill(os.getpid(), 9)", (137, "SIGKILL")),
        ("os._exit(255)", (255, None)),
    ],
)
def test_a_crash_is_told_from_an_exit_code(tmp_path: Path, last: str, expected: tuple[int, str | None]) -> None:
    """Trust, counting and telling: `details.signal`. nsjail's gate starts the script late, so it is held at the first look."""
    source = f"import os, time\nif os.fork() == 0: os._exit(3)\ntime.sleep(0.5)\n{last}"
    outcome = support.run_source(tmp_path, source)
    assert (outcome.exit_code, outcome.signal) == expected, outcome
    assert outcome.error_type == "ScriptError"
    assert "perhaps" not in outcome.message
