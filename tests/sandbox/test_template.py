"""What a template forks is a sandbox like any other: the corpus holds in it, its layers matter, and calls never meet (issue 16)."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import textwrap
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tamis.sandbox import runner
from tamis.sandbox import template as template_module
from tamis.sandbox.backends import seccomp
from tamis.sandbox.limits import watchdog
from tamis.sandbox.model import Limits, RunOutcome, RunRequest, Unavailable
from tamis.sandbox.warm import pool as pool_module
from tamis.sandbox.warm.pool import PoolSettings, opened_pool
from tests.sandbox import cases, support
from tests.sandbox.cases import Case
from tests.sandbox.support import OneTemplate, run_forked

pytestmark = pytest.mark.skipif(support.BACKEND == "nsjail", reason="templates are bubblewrap's")

READS_ITS_SOURCE = "import sys\nexec(compile(sys.stdin.read(), 'call', 'exec'))\n"
WITH_TEMPLATES = PoolSettings(eager=True, templates=True)
_draw = random.Random(16)


def _drawn(cases_of: list[Case], count: int) -> frozenset[str]:
    return frozenset(case.id for case in _draw.sample([case for case in cases_of if case.language == "python"], count))


CASES = [case for case in cases.ALL if case.language == "python"]
BITES = [case for case in CASES if case.layer and "uid-drop" not in case.layer]
"""As root without the drop to another user no template comes up: a user that is root outside may map no namespace."""
DRAWN = _drawn(CASES, 10)
DRAWN_BITES = _drawn(BITES, 8)


def _left_out(case: Case, drawn: frozenset[str], is_long: bool) -> str:
    if not is_long and case.id not in drawn:
        return "the others of the corpus: --long"
    return "shows what only root could lose" if case.root_only and not support.IS_ROOT else ""


def test_the_corpus_holds_through_a_template(tmp_path: Path, is_long: bool) -> None:
    chosen = [case for case in CASES if not _left_out(case, DRAWN, is_long)]
    work = [(case, _place(tmp_path, case), ()) for case in chosen]
    found = asyncio.run(support.run_cases(work, forked=True))
    wrong = {case.id: result for case, result in zip(chosen, found, strict=True) if _fault(result)}
    assert not wrong
    forked = sum(not isinstance(result, Exception) and result[0].sandbox.template for result in found)
    assert forked * 2 > len(chosen), forked


def test_a_case_fails_through_a_template_without_its_layer(tmp_path: Path, is_long: bool) -> None:
    chosen = [case for case in BITES if not _left_out(case, DRAWN_BITES, is_long)]
    work = [(case, _place(tmp_path, case), tuple(case.layer.split("+"))) for case in chosen]
    found = asyncio.run(support.run_cases(work, forked=True))
    held = {case.id: result for case, result in zip(chosen, found, strict=True) if not _fault(result)}
    assert not held
    not_run = {
        case.id: result
        for case, result in zip(chosen, found, strict=True)
        if isinstance(result, Exception) or result[0].kind == "unavailable"
    }
    assert not not_run


def _place(parent: Path, case: Case) -> Path:
    # short: some cases need all of a path that the kernel takes
    place = parent / f"{case.id.partition('-')[0]}{sum(1 for _ in parent.iterdir())}"
    place.mkdir()
    return place


def _fault(result: tuple[RunOutcome, str] | Exception) -> str:
    return repr(result) if isinstance(result, Exception) else result[1]


# Attacks on what is new. One tool runs what its input says, so that all calls are of one template.


def _request(parent: Path, source: str = READS_ITS_SOURCE, **more: Any) -> RunRequest:
    place = parent / "tool"
    return support.request(str(place) if place.exists() else support.tool_folder(parent, source), **more)


def _call(parent: Path, text: str, **more: Any) -> RunRequest:
    return _request(parent, stdin=textwrap.dedent(text).encode(), **more)


def _said(outcome: RunOutcome) -> Any:
    assert (outcome.kind, outcome.sandbox.template) == ("ok", True), outcome
    return json.loads(outcome.stdout)


def one_after_the_other(parent: Path, *texts: str) -> list[Any]:
    async def work() -> list[Any]:
        async with OneTemplate() as one:
            return [_said(await one.run(_call(parent, text))) for text in texts]

    return asyncio.run(work())


def test_a_script_finds_no_trace_of_the_template(tmp_path: Path) -> None:
    """Its processes, its parent, its descriptors, its capabilities, its files."""
    [found] = one_after_the_other(
        tmp_path,
        """
        import json, os
        def refused(call, *args):
            try: return repr(call(*args))
            except OSError as error: return type(error).__name__
        status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
        opened = sorted(os.listdir("/proc/self/fd"), key=int)[:-1]
        print(json.dumps({
            "pids": sorted(name for name in os.listdir("/proc") if name.isdigit()),
            "me": [os.getpid(), os.getppid(), os.getsid(0)],
            "descriptors": opened,
            "rights": [int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")],
            "held": [status["NoNewPrivs"].strip(), status["Seccomp"].strip()],
            "init": [refused(open, "/proc/1/environ"), refused(open, "/proc/1/maps"), refused(os.listdir, "/proc/1/fd"),
                     refused(os.listdir, "/proc/1/root"), refused(open, "/proc/1/mem", "r+b")],
            "run": refused(os.listdir, "/run"),
            "groups": {line.rsplit(":", 1)[1] for line in open("/proc/self/cgroup").read().split()} == {"/"},
        }))
        """,
    )
    assert found == {
        "pids": ["1", "2"],
        "me": [2, 1, 1],
        "descriptors": ["0", "1", "2"],
        "rights": [0] * 5,
        "held": ["1", "2"],
        "init": ["PermissionError"] * 5,
        "run": "PermissionError",
        "groups": True,
    }


def test_a_script_cannot_leave_or_uncover_anything(tmp_path: Path) -> None:
    """Namespaces, mounts, tracing and keyrings are refused, as in every run."""
    [found] = one_after_the_other(
        tmp_path,
        """
        import ctypes, json, os
        libc = ctypes.CDLL(None, use_errno=True)
        def tried(name, *args):
            return [name, getattr(libc, name)(*args), ctypes.get_errno()]
        namespace = os.open("/proc/self/ns/mnt", os.O_RDONLY)
        print(json.dumps([
            tried("unshare", 0x10000000), tried("unshare", 0x20000), tried("setns", namespace, 0), tried("umount2", b"/proc", 2),
            tried("umount2", b"/tmp", 2), tried("mount", b"proc", b"/tmp", b"proc", 0, None), tried("ptrace", 16, 1, 0, 0),
            tried("syscall", 250, 0, -3, 0), tried("chroot", b"/tmp"),
        ]))
        """,
    )
    assert [row[1:] for row in found] == [[-1, 1]] * len(found), found


def test_a_script_that_kills_all_it_can_ends_only_itself(tmp_path: Path) -> None:
    first, second = one_after_the_other(
        tmp_path,
        """
        import json, os, signal
        for number in range(1, 65):
            for pid in (1, -1, os.getppid()):
                try: os.kill(pid, number) if number not in (signal.SIGCHLD, signal.SIGCONT) and pid > 0 else None
                except OSError: pass
        child = os.fork()
        if not child:
            signal.pause()
        os.kill(-1, signal.SIGKILL)
        print(json.dumps(os.waitstatus_to_exitcode(os.wait()[1])))
        """,
        "print(1)",
    )
    assert (first, second) == (-signal.SIGKILL, 1)


def test_nothing_of_a_call_is_there_in_the_next(tmp_path: Path) -> None:
    """Files, modules, variables, terminals, semaphores: each call begins with what the template began with."""
    leaves = """
        import json, os, sys, random, tempfile, multiprocessing
        for place in ("/tmp", "/dev/shm"):
            open(place + "/left", "w").write("x")
        json.loads = json.JSONDecoder = None
        sys.modules["re"] = None
        os.environ["LEFT"] = "1"
        sys.path.insert(0, "/tmp")
        import builtins; builtins.left = 1
        os.umask(0o777), os.nice(5), os.chdir("/tmp")
        master, slave = os.openpty()
        held = multiprocessing.Semaphore(1)
        print(json.dumps(1))
        """
    looks = """
        import json, os, sys, builtins, re, random, uuid, tempfile, resource
        umask = os.umask(0)
        print(json.dumps([os.listdir("/tmp"), os.listdir("/dev/shm"), sorted(os.listdir("/dev/pts")), os.environ.get("LEFT"),
            sys.path[0], hasattr(builtins, "left"), json.loads("1"), umask, os.nice(0), os.getcwd(),
            random.random(), str(uuid.uuid4()), next(tempfile._get_candidate_names())]))
        """
    _, first, second = one_after_the_other(tmp_path, leaves, looks, looks)
    assert first[:10] == [[], [], ["ptmx"], None, "/tool", False, 1, 0o022, os.nice(0), "/tool"]
    assert first[:10] == second[:10]
    # nobody can tell from one call what another will draw
    assert not set(map(str, first[10:])) & set(map(str, second[10:]))


def test_calls_at_once_do_not_meet(tmp_path: Path) -> None:
    waits = """
        import json, os, socket, sys, time
        open("/tmp/mine", "w").write("x")
        listening = socket.create_server(("127.0.0.1", 5005))
        master, slave = os.openpty()
        open("/proc/self/comm", "w").write("the-other-call")
        print(json.dumps(1), flush=True)
        time.sleep(3600)
        """
    looks = """
        import json, os, socket
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit(): found.append(open(f"/proc/{name}/comm").read())
        with socket.socket() as plug:
            found.append(plug.connect_ex(("127.0.0.1", 5005)))
        found += os.listdir("/tmp") + os.listdir("/dev/pts")
        for pid in range(3, 400):
            try: os.kill(pid, 9); found.append(pid)
            except OSError: pass
        print(json.dumps(found))
        """

    async def work() -> tuple[Any, RunOutcome]:
        async with OneTemplate() as one:
            assert _said(await one.run(_call(tmp_path, "print(1)"))) == 1
            there, cancelled = asyncio.Event(), asyncio.Event()
            first = asyncio.create_task(
                runner.run(_call(tmp_path, waits), warm=one, cancelled=cancelled, on_output=lambda *_: there.set())
            )
            await there.wait()
            found = _said(await one.run(_call(tmp_path, looks)))
            assert not first.done()
            cancelled.set()
            return found, await first

    found, first = asyncio.run(work())
    assert (first.kind, first.stdout) == ("cancelled", b"1\n")
    assert "the-other-call\n" not in found
    assert found[2:] == [111, "ptmx"], found


def test_limits_end_a_forked_run_and_not_its_template(tmp_path: Path) -> None:
    async def work() -> list[RunOutcome]:
        async with OneTemplate() as one:
            texts = (
                "import time; time.sleep(3600)",
                "import os, sys\ntry:\n  for _ in range(99):\n    if not os.fork(): import time; time.sleep(3600)\nexcept OSError: print('full')",
                "import os; os.kill(os.getpid(), 11)",
                "print(1)",
            )
            # the first is ended by its deadline, which is no part of the template
            deadlines = (700, 300_000, 300_000, 300_000)
            return [
                await one.run(_call(tmp_path, text, limits=Limits(wall_ms=wall, processes=8)))
                for text, wall in zip(texts, deadlines, strict=True)
            ]

    slow, bomb, crash, last = asyncio.run(work())
    assert all(outcome.sandbox.template for outcome in (slow, bomb, crash, last))
    assert (slow.kind, slow.error_type, slow.limit) == ("timeout", "TimeoutError", "wall")
    assert bomb.stdout == b"full\n"
    assert (crash.kind, crash.signal) == ("error", "SIGSEGV")
    assert (last.kind, last.stdout) == ("ok", b"1\n")
    assert last.max_rss_bytes > 0
    support.await_gone(str(tmp_path))


def test_the_template_itself_has_no_capability_and_a_filter(tmp_path: Path) -> None:
    async def work() -> None:
        async with OneTemplate() as one:
            await one.run(_call(tmp_path, "print(1)"))
            standing = one.template._standing  # pyright: ignore[reportAttributeAccessIssue, reportOptionalMemberAccess]
            init = standing._launched.init_pid
            for pid in (init, watchdog.first_child(init)):
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
                status = dict(line.split(":", 1) for line in lines)
                assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0, status
                assert status["NoNewPrivs"].strip() == "1"
                assert not support.IS_ROOT or set(status["Uid"].split()) != {"0"}
            assert status["Seccomp"].strip() == "2"

    asyncio.run(work())


def test_the_templates_filter_lets_only_two_calls_more_through() -> None:
    machine = "x86_64"
    whole, wide = seccomp.assemble(machine), seccomp.assemble(machine, seccomp.TEMPLATES)
    named = {seccomp.NUMBERS[name][0] for name in seccomp.TEMPLATES}
    compared = {row[3] for row in whole if row[0] == 0x15} - {row[3] for row in wide if row[0] == 0x15}
    assert compared == named


@pytest.mark.parametrize(
    ("source", "beside"),
    [("print(1", ""), ("print('\\d')", ""), ("import json; print(json.mine)", "json.py")],
    ids=["does-not-compile", "compiles-with-a-warning", "a-file-hides-a-module"],
)
def test_what_cannot_be_made_ready_starts_afresh_in_the_forked_sandbox(
    source: str, beside: str, tmp_path: Path
) -> None:
    wanted = support.request(support.tool_folder(tmp_path, source), stdin=b"x")
    if beside:
        Path(wanted.folder, beside).write_text("mine = 'beside'")

    async def work() -> tuple[RunOutcome, RunOutcome]:
        return await runner.run(wanted), await run_forked(wanted)

    cold, forked = asyncio.run(work())
    assert forked.sandbox.template
    assert (forked.kind, forked.exit_code, forked.stdout, forked.stderr) == (
        cold.kind,
        cold.exit_code,
        cold.stdout,
        cold.stderr,
    )


# In the pool


def _pooled(work: Callable[[pool_module.Pool], Coroutine[Any, Any, None]], settings: PoolSettings) -> None:
    async def inside() -> None:
        async with opened_pool(settings) as pool:
            await work(pool)

    asyncio.run(inside())


def test_templates_are_off_unless_asked_for(tmp_path: Path) -> None:
    async def work(pool: pool_module.Pool) -> None:
        for _ in range(2):
            outcome = await pool.run(_call(tmp_path, "print(1)"))
            await pool.settle()
        assert not outcome.sandbox.template
        assert pool.metrics().templates == pool.metrics().forks == 0

    _pooled(work, PoolSettings(eager=True))


def test_calls_beyond_what_waits_are_forked_too_and_a_changed_script_is_not(tmp_path: Path) -> None:
    async def work(pool: pool_module.Pool) -> None:
        await pool.run(_call(tmp_path, "print(1)"))
        await pool.settle()
        outcomes = await asyncio.gather(*(pool.run(_call(tmp_path, f"print({number})")) for number in range(6)))
        assert [outcome.stdout for outcome in outcomes] == [b"%d\n" % number for number in range(6)]
        assert all(outcome.sandbox.template for outcome in outcomes)
        Path(_request(tmp_path).folder, "tool.py").write_text("print('changed')")
        outcome = await pool.run(_call(tmp_path, "print(1)"))
        assert (outcome.stdout, outcome.sandbox.template) == (b"changed\n", False)

    _pooled(work, WITH_TEMPLATES)
    support.await_gone(str(tmp_path))


def test_a_template_is_made_anew_after_a_crash_and_after_so_many_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(template_module, "MAX_CALLS", 4)
    where = "import json; print(json.dumps(id(json)))"

    async def work(pool: pool_module.Pool) -> None:
        await pool.run(_call(tmp_path, where))
        await pool.settle()
        before = list(pool._templates.values())  # pyright: ignore[reportPrivateUsage]
        crash = await pool.run(_call(tmp_path, "import os; os.kill(os.getpid(), 11)"))
        assert (crash.signal, crash.sandbox.template) == ("SIGSEGV", True)
        assert not set(before) & set(pool._templates.values())  # pyright: ignore[reportPrivateUsage]
        seen: set[object] = set()
        for _ in range(10):
            _ = await pool.run(_call(tmp_path, where))
            await pool.settle()
            seen |= set(pool._templates.values())  # pyright: ignore[reportPrivateUsage]
        assert len(seen) > 1
        assert all(one.calls <= 4 for one in seen)  # pyright: ignore[reportAttributeAccessIssue]

    _pooled(work, WITH_TEMPLATES)


def test_a_dead_template_costs_no_call(tmp_path: Path) -> None:
    async def work(pool: pool_module.Pool) -> None:
        await pool.run(_call(tmp_path, "print(1)"))
        await pool.settle()
        [one] = pool._templates.values()  # pyright: ignore[reportPrivateUsage]
        os.kill(one._standing._launched.outer_pid, signal.SIGKILL)  # pyright: ignore[reportAttributeAccessIssue]
        # a script that has begun by then ends with it, as with any sandbox that is killed from outside
        await one._over.wait()  # pyright: ignore[reportAttributeAccessIssue]
        outcome = await pool.run(_call(tmp_path, "print(2)"))
        assert (outcome.kind, outcome.stdout) == ("ok", b"2\n")

    _pooled(work, WITH_TEMPLATES)


def test_where_no_template_comes_up_calls_run_as_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: object) -> None:
        raise Unavailable("no namespaces in namespaces")

    monkeypatch.setattr(template_module, "start", refuse)

    async def work(pool: pool_module.Pool) -> None:
        for warm in (False, True):
            outcome = await pool.run(_call(tmp_path, "print(1)"))
            assert (outcome.kind, outcome.sandbox.warm, outcome.sandbox.template) == ("ok", warm, False)
            await pool.settle()

    _pooled(work, WITH_TEMPLATES)
