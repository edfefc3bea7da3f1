"""Faults of the machine and of the daemon: every one ends in an outcome that says its cause, and leaves nothing.

What changes limits of the daemon's own process is done in a process of its own.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
import textwrap
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tamis.sandbox import host, launch, runner
from tamis.sandbox.apart import apart
from tamis.sandbox.model import Interpreters, Limits, Mount, PathRefused, RunOutcome, RunRequest, lacks
from tamis.sandbox.paths import claims, idmapped, lending, walk
from tamis.sandbox.paths.walk import open_absolute
from tests.sandbox import access, support

ROOT = Path(__file__).parents[2]

DAEMON = """
import asyncio, json, os, resource, sys
sys.path.insert(0, sys.argv[1])
from tamis.sandbox import probe, runner, lifeline
from tamis.sandbox.limits import watchdog
from tamis.sandbox.model import Limits
from tests.sandbox import support
wanted = support.request(sys.argv[2])
async def runs(count):
    return [outcome.kind for outcome in await asyncio.gather(*(runner.run(wanted) for _ in range(count)))]
async def settled():
    while support.children():
        support.reap_orphans()
        await asyncio.sleep(0.02)
    return len(os.listdir("/proc/self/fd")), support.children()
async def main():
    assert await runs(1) == ["ok"]
{body}
print(json.dumps(asyncio.run(main())))
"""


def _daemon(tmp_path: Path, body: str, script: str = "print(1)") -> str:
    """What a daemon of its own, with this body in its main function, says."""
    source = DAEMON.replace("{body}", textwrap.indent(textwrap.dedent(body), "    "))
    folder = support.tool_folder(tmp_path, script)
    done = subprocess.run(
        [sys.executable, "-c", source, str(ROOT), folder],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_descriptors_of_the_daemon_run_out(tmp_path: Path, is_long: bool) -> None:
    # at every number of free descriptors: an outcome that says so, nothing left open, and work goes on afterwards
    said = _daemon(
        tmp_path,
        """
        before = await settled()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        kinds = []
        for free in range(0, 43, STEP):
            resource.setrlimit(resource.RLIMIT_NOFILE, (before[0] + free, hard))
            outcome = await runner.run(wanted)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            kinds.append(outcome.kind)
            # a want is no verdict on what was asked for
            assert outcome.kind == "ok" or (outcome.kind, outcome.error_type) == ("unavailable", "ResourceError"), outcome
            assert outcome.kind == "ok" or outcome.message, outcome
            now = await settled()
            assert now == before, (free, before, now, outcome)
        assert kinds[0] != "ok" and kinds[-1] == "ok", kinds
        return await runs(3)
        """.replace("STEP", "1" if is_long else "3"),
    )
    assert said == '["ok", "ok", "ok"]\n'


def test_descriptors_run_out_while_many_run(tmp_path: Path) -> None:
    said = _daemon(
        tmp_path,
        """
        before = await settled()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        # how many run at once, and so how many are refused, is the machine's matter; with none free all are
        for free in (60, 30, 15, 5, 0):
            resource.setrlimit(resource.RLIMIT_NOFILE, (before[0] + free, hard))
            outcomes = await asyncio.gather(*(runner.run(wanted) for _ in range(15)))
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            kinds = {(outcome.kind, outcome.error_type) for outcome in outcomes}
            assert kinds <= {("ok", ""), ("unavailable", "ResourceError")}, (free, outcomes)
            assert await settled() == before, (free, before, await settled())
        assert kinds == {("unavailable", "ResourceError")}, kinds
        return await runs(3)
        """,
    )
    assert said == '["ok", "ok", "ok"]\n'


@pytest.mark.skipif(support.IS_ROOT, reason="the limit does not hold for root")
def test_processes_of_the_user_run_out(tmp_path: Path) -> None:
    said = _daemon(
        tmp_path,
        """
        before = await settled()
        soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
        kinds = []
        for free in range(0, 8):
            resource.setrlimit(resource.RLIMIT_NPROC, (1 + free, hard))
            kinds.append((await runner.run(wanted)).kind)
        resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))
        assert set(kinds) <= {"ok", "unavailable", "limit", "error"} and kinds[0] == "unavailable", kinds
        assert await settled() == before, (before, await settled())
        return await runs(3)
        """,
    )
    assert said == '["ok", "ok", "ok"]\n'


def test_memory_of_the_daemon_runs_out(tmp_path: Path) -> None:
    # the caps hold whatever a script writes: the daemon itself stays small
    said = _daemon(
        tmp_path,
        """
        before = support.resident_bytes()
        kinds = await runs(4)
        grown = support.resident_bytes() - before
        assert grown < 40_000_000, grown
        return sorted(set(kinds))
        """,
        "import os\nos.write(1, b'x' * 1_000_000)\nfor _ in range(15): os.write(2, b'y' * 1_000_000)",
    )
    assert said == '["ok"]\n'


# A want in each place where a run is prepared


def _plain(tmp_path: Path) -> RunRequest:
    return support.request(support.tool_folder(tmp_path, "print(1)", "deep/er/tool.py"), "deep/er/tool.py")


def _granted(tmp_path: Path) -> RunRequest:
    folder = support.tool_folder(tmp_path, "print(1)")
    for name in ("read", "write", "write/inner", "tool/inner"):
        (tmp_path / name).mkdir(exist_ok=True)
    top = os.path.realpath(tmp_path)
    return support.request(
        folder, read=(Mount(f"{top}/read"), Mount(f"{folder}/inner")), write=(Mount(f"{top}/write"),)
    )


def _pinned(tmp_path: Path) -> RunRequest:
    folder = support.tool_folder(tmp_path, "print(1)", "in/tool.py")
    for name in ("a", "in/b", "z"):
        (Path(folder) / name).touch()
    digest = base64.b64encode(hashlib.sha256(b"print(1)").digest()).decode()
    return support.request(folder, "in/tool.py", integrity=f"sha256-{digest}")


def _masked(tmp_path: Path) -> RunRequest:
    folder = support.tool_folder(tmp_path, "print(1)")
    (Path(folder) / ".git").mkdir(exist_ok=True)
    (Path(folder) / ".env").touch()
    return support.request(folder)


def _closed(tmp_path: Path) -> RunRequest:
    """As root: shown by a mapped mount, or refused where there is none."""
    folder = support.tool_folder(tmp_path, "print(1)")
    Path(folder).chmod(0o700)
    return support.request(folder)


def _environment(tmp_path: Path) -> RunRequest:
    """A virtual environment as the interpreter, and one to be shown."""
    home = tmp_path / "venv"
    (home / "bin").mkdir(parents=True, exist_ok=True)
    (home / "pyvenv.cfg").write_text("home = /usr/bin\n")
    python = home / "bin" / "python3"
    if not python.exists():
        python.symlink_to(os.path.realpath("/usr/bin/python3"))
    return support.request(
        support.tool_folder(tmp_path, "print(1)"),
        interpreters=Interpreters(python=os.path.realpath(home) + "/bin/python3"),
    )


PREPARED = {
    "a plain run": _plain,
    "grants": _granted,
    "lent grants": _granted,
    "a pinned script": _pinned,
    "a project's root": _masked,
    "a closed folder": _closed,
    "a virtual environment": _environment,
}
_PLACES = ("open", "dup", "listdir", "scandir", "readlink")
"""What of `os` takes a descriptor or memory on the way to a launch."""
_MOST = 120


def _calls(name: str, is_long: bool) -> range:
    """Which calls fail in turn: every one with ``--long``, otherwise one in six, beginning where the name of the test says."""
    return range(_MOST) if is_long else range(zlib.crc32(name.encode()) % 6, _MOST, 6)


@pytest.mark.parametrize("name", _PLACES)
@pytest.mark.parametrize("prepared", PREPARED)
def test_a_want_is_never_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prepared: str, name: str, is_long: bool
) -> None:
    # whichever call is the first that fails for want of descriptors, the folder is not blamed for it
    if prepared == "lent grants":
        access.without_mounts(monkeypatch, tmp_path)
    wanted = PREPARED[prepared](tmp_path)
    usual = support.run(wanted)
    if usual.kind != "ok":
        pytest.skip(f"this machine does not run it: {usual.message}")
    monkeypatch.setattr(runner, "_PAUSES", ())
    before = len(os.listdir("/proc/self/fd"))
    for after in _calls(f"{prepared} {name}", is_long):
        idmapped.forget()
        with monkeypatch.context() as patch:
            left = _failing(patch, os, name, OSError(errno.EMFILE, "Too many open files"), after)
            outcome = support.run(wanted)
        if outcome.kind == "ok":
            if next(left, None) is not None:
                # there were not so many calls
                assert {path.lstat().st_uid for path in tmp_path.rglob("*")} == {os.geteuid()}
                return
            continue  # it was one that a run can do without
        assert (outcome.kind, outcome.error_type) == ("unavailable", "ResourceError"), (after, outcome)
        assert "Too many open files" in outcome.message and outcome.remedy, (after, outcome)
        assert len(os.listdir("/proc/self/fd")) <= before, (after, outcome)
    raise AssertionError(f"no run in {_MOST} was free of the want")


@pytest.mark.parametrize("prepared", PREPARED)
def test_a_want_that_passes_costs_a_run_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prepared: str, is_long: bool
) -> None:
    if prepared == "lent grants":
        access.without_mounts(monkeypatch, tmp_path)
    wanted = PREPARED[prepared](tmp_path)
    if support.run(wanted).kind != "ok":
        pytest.skip("this machine does not run it")
    monkeypatch.setattr(runner, "_PAUSES", (0.0,))
    real = os.open
    for which in _calls(prepared, is_long):
        calls = iter(range(_MOST * 10))

        def once(*args: Any, calls: Iterator[int] = calls, which: int = which, **more: Any) -> int:
            if next(calls) == which:
                raise OSError(errno.EMFILE, "Too many open files")
            return real(*args, **more)

        monkeypatch.setattr(os, "open", once)
        outcome = support.run(wanted)
        monkeypatch.setattr(os, "open", real)
        assert outcome.kind == "ok", (which, outcome)
        if next(calls) < which:
            return
    raise AssertionError(f"a run opens more than {_MOST} files")


def test_a_want_of_threads_is_a_want(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", _raises(RuntimeError("can't start new thread")))
    with pytest.raises(OSError, match="no further thread") as raised:
        apart("anything", lambda: 1)
    assert lacks(raised.value)


def test_what_work_apart_raises_is_the_callers() -> None:
    with pytest.raises(KeyError):
        apart("anything", lambda: dict[int, int]()[1])
    assert apart("anything", lambda: threading.current_thread().name) == "anything"


@pytest.mark.skipif(not support.IS_ROOT, reason="only root lends folders")
@pytest.mark.parametrize("name", ["open", "scandir", "dup"])
def test_a_want_while_a_folder_is_lent_is_no_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    access.without_mounts(monkeypatch, tmp_path)
    top = Path(os.path.realpath(tmp_path)) / "data"
    (top / "in" / "side").mkdir(parents=True)
    monkeypatch.setattr(runner, "_PAUSES", ())
    for after in range(_MOST):
        with open_absolute(str(top)) as folder, monkeypatch.context() as patch:
            left = _failing(patch, os, name, OSError(errno.EMFILE, "Too many open files"), after)
            ownership = lending.Ownership(60_000)
            refusal: PathRefused | None = None
            lent = False
            try:
                ownership.lend(folder, lambda _: None)
                lent = True
            except PathRefused as error:
                refusal = error
            except OSError:
                pass  # the run says it of itself
            patch.undo()
            ownership.take_back()
        assert refusal is None, (after, refusal)
        assert {path.stat().st_uid for path in (top, *top.rglob("*"))} == {0}, after
        if lent and next(left, None) is not None:
            return
    raise AssertionError("it never went well")


@pytest.mark.skipif(not support.IS_ROOT, reason="only root lends folders")
def test_a_want_keeps_what_a_killed_run_left_to_be_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # taken for "it is not there any more", the record was emptied and the folder kept its stray owner for good
    access.without_mounts(monkeypatch, tmp_path)
    top = Path(os.path.realpath(tmp_path)) / "data"
    top.mkdir()
    with open_absolute(str(top)) as folder:
        held = claims.claim(folder)
        assert held is not None
        ownership = lending.Ownership(60_000)
        ownership.lend(folder, lambda before: held.write_down(folder, 60_000, before))
        held.release(done=False)  # as after a kill
    real = walk.os.open

    def fails(path: Any, *args: Any, **more: Any) -> int:
        if path == "data":
            raise OSError(errno.EMFILE, "Too many open files")
        return real(path, *args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(walk.os, "open", fails)
        said = claims.put_back_all()
    assert any("could not be put back" in line for line in said), said
    assert top.stat().st_uid == 60_000
    assert any("belongs to the uid 0 again" in line for line in claims.put_back_all())
    assert top.stat().st_uid == 0


# The interpreter


def _with_python(tmp_path: Path, path: str) -> RunOutcome:
    return support.run_source(tmp_path, "print(1)", interpreters=Interpreters(python=path))


def test_interpreter_that_is_missing(tmp_path: Path) -> None:
    outcome = _with_python(tmp_path, "/nowhere/python3")
    assert (outcome.kind, outcome.error_type) == ("unavailable", "SandboxUnavailable")
    assert "/nowhere/python3" in outcome.message and outcome.remedy


def test_interpreter_that_is_not_executable(tmp_path: Path) -> None:
    (tmp_path / "python3").write_text("#!/bin/sh\n")
    assert _with_python(tmp_path, str(tmp_path / "python3")).kind == "unavailable"


def test_interpreter_that_is_a_folder(tmp_path: Path) -> None:
    assert _with_python(tmp_path, str(tmp_path)).kind == "unavailable"


def test_interpreter_that_is_something_else(tmp_path: Path) -> None:
    outcome = _with_python(tmp_path, "/bin/true")
    assert outcome.kind == "unavailable", outcome


def test_interpreter_that_is_broken(tmp_path: Path) -> None:
    (tmp_path / "python3").write_bytes(b"\x7fELF" + bytes(200))
    (tmp_path / "python3").chmod(0o755)
    outcome = _with_python(tmp_path, str(tmp_path / "python3"))
    assert outcome.kind == "unavailable" and outcome.message, outcome


def test_interpreter_that_goes_away_between_runs(tmp_path: Path) -> None:
    node = shutil.which("node", path="/usr/bin:/usr/local/bin")
    if node is None:
        pytest.skip("no node below /usr to copy")
    copy = tmp_path / "bin" / "node"
    copy.parent.mkdir()
    shutil.copy2(node, copy)
    wanted = support.request(
        support.tool_folder(tmp_path, "console.log(1)", "t.js"),
        "t.js",
        "nodejs",
        interpreters=Interpreters(nodejs=str(copy)),
    )
    first = support.run(wanted)
    copy.unlink()
    second = support.run(wanted)
    assert first.kind == "ok", first
    assert second.kind == "unavailable" and str(copy) in second.message, second


# Programs of the sandbox


@pytest.mark.skipif(not support.IS_ROOT, reason="only root gives up root")
def test_setpriv_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    support.run_source(tmp_path, "print(1)")
    monkeypatch.setattr(host, "_SETPRIV", ("/nowhere/setpriv",))
    outcome = support.run_source(tmp_path, "print('ran')")
    assert (outcome.kind, outcome.stdout) == ("unavailable", b""), outcome
    assert "setpriv" in outcome.message and outcome.remedy


def _failing(
    monkeypatch: pytest.MonkeyPatch, place: object, name: str, error: BaseException, after: int
) -> Iterator[int]:
    """Have a function fail from its ``after``th call on; what of the calls before is left."""
    real: Callable[..., object] = getattr(place, name)
    left = iter(range(after))

    def fails(*args: object, **more: object) -> object:
        if next(left, None) is None:
            raise error
        return real(*args, **more)

    monkeypatch.setattr(place, name, fails)
    return left


@pytest.mark.share(4)
@pytest.mark.parametrize("after", range(12))
@pytest.mark.parametrize("name", ["pipe2", "dup", "memfd_create", "pidfd_open", "write"])
def test_a_call_that_fails_while_it_launches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, after: int
) -> None:
    support.run_source(tmp_path, "print(1)")
    before = len(os.listdir("/proc/self/fd"))
    _failing(monkeypatch, launch.os, name, OSError(errno.EMFILE, "Too many open files"), after)
    outcome = support.run_source(tmp_path, "print(1)")
    monkeypatch.undo()
    assert outcome.kind in ("ok", "unavailable"), outcome
    assert outcome.kind == "ok" or outcome.message
    support.await_gone()
    assert len(os.listdir("/proc/self/fd")) <= before


def test_a_start_without_a_descriptor_of_its_monitor_leaves_no_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    support.run_source(tmp_path, "print(1)")
    real = launch.end_before_it_told

    def late(monitor: int) -> list[int]:
        time.sleep(0.3)  # as on a busy machine: meanwhile the monitor goes as far as it can
        return real(monitor)

    monkeypatch.setattr(launch, "end_before_it_told", late)
    _failing(monkeypatch, launch.os, "pidfd_open", OSError(errno.EMFILE, "Too many open files"), 0)
    outcome = support.run_source(tmp_path, "print(1)")
    monkeypatch.undo()
    assert outcome.kind == "unavailable", outcome
    assert support.children() == []


def test_a_sandbox_that_cannot_be_held_is_reaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    support.run_source(tmp_path, "print(1)")
    # the monitor can be held, what stands in it cannot
    _failing(monkeypatch, launch.os, "pidfd_open", OSError(errno.EMFILE, "Too many open files"), 1)
    outcome = support.run_source(tmp_path, "print(1)")
    monkeypatch.undo()
    assert outcome.kind == "unavailable", outcome
    assert support.children() == []  # and no zombie, which only this process could reap


def test_spawn_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    support.run_source(tmp_path, "print(1)")
    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(
        launch.subprocess, "Popen", _raises(BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"))
    )
    outcome = support.run_source(tmp_path, "print(1)")
    assert outcome.kind == "unavailable" and "Resource temporarily unavailable" in outcome.message, outcome
    assert len(os.listdir("/proc/self/fd")) <= before


def _raises(error: BaseException) -> Callable[..., object]:
    def raises(*_: object, **__: object) -> object:
        raise error

    return raises


def _quiet(*_: object) -> None:
    """No report on the test's own output."""


def test_listener_that_raises_does_not_end_the_run(tmp_path: Path) -> None:
    def raises(*_: object) -> None:
        raise RuntimeError("a host's mistake")

    source = "import sys\nfor _ in range(5): print('x'*1000, flush=True)\nprint('end', file=sys.stderr)"
    wanted = support.request(support.tool_folder(tmp_path, source))

    async def main() -> RunOutcome:
        asyncio.get_running_loop().set_exception_handler(_quiet)
        return await runner.run(wanted, on_output=raises)

    outcome = asyncio.run(main())
    assert outcome.kind == "ok", outcome
    assert len(outcome.stdout) == 5005 and outcome.stderr == b"end\n"


# The disk


@pytest.mark.skipif(
    not support.IS_ROOT, reason="only root mounts; a full disk as an ordinary user is shown by the next test"
)
def test_a_full_disk_below_a_granted_folder(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    inside = f"""
        mount = __import__('subprocess').run
        mount(['mount', '--make-rprivate', '/'], check=True)
        mount(['mount', '-t', 'tmpfs', '-o', 'size=1m,nr_inodes=200', 'none', {str(small)!r}], check=True)
        os.chmod({str(small)!r}, 0o755)
        from tamis.sandbox.model import Mount
        from msgspec.structs import replace
        outcome = await runner.run(replace(wanted, write=(Mount(os.path.realpath({str(small)!r})),), args=({str(small)!r},)))
        assert outcome.limit == "files" and "No space" in outcome.message, outcome
        os.unlink({str(small)!r} + '/big')
        return await runs(1) if not os.listdir({str(small)!r}) else os.listdir({str(small)!r})
    """
    source = "import sys\nif len(sys.argv) > 1:\n  f = open(sys.argv[1] + '/big', 'wb', 0)\n  while True: f.write(b'x' * 100_000)"
    body = (
        "libc = __import__('ctypes').CDLL(None, use_errno=True)\nassert libc.unshare(0x20000) == 0\n"
        + textwrap.dedent(inside)
    )
    assert _daemon(tmp_path, body, source) == '["ok"]\n'


def test_no_room_for_temporary_files_of_the_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # a run makes none at all: it works where nothing can be written
    support.run_source(tmp_path, "print(1)")
    monkeypatch.setattr("tempfile.mkdtemp", _raises(OSError(errno.ENOSPC, "No space left on device")))
    assert support.run_source(tmp_path, "print(1)").kind == "ok"


def test_writing_to_a_full_device(tmp_path: Path) -> None:
    outcome = support.run_source(tmp_path, "open('/dev/full','wb',0).write(b'x')")
    assert outcome.limit == "files" and "No space" in outcome.message, outcome


def test_writable_folder_that_goes_away_while_the_tool_runs(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    wanted = support.request(
        support.tool_folder(tmp_path, "import time; print('x', flush=True); time.sleep(0.3)"),
        write=(Mount(os.path.realpath(data)),),
    )

    def remove(*_: object) -> None:
        shutil.rmtree(data, ignore_errors=True)

    outcome = support.run(wanted, on_output=remove)
    assert outcome.kind == "ok", outcome


@pytest.mark.parametrize("how", ["mapped", "lent"])
def test_writable_folder_with_more_than_can_be_looked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    if how == "lent":
        access.without_mounts(monkeypatch, tmp_path)
    elif support.IS_ROOT:
        access.needs_mounts(tmp_path)
    data = tmp_path / "data"
    data.mkdir()
    for index in range(30):
        (data / str(index)).touch()
    monkeypatch.setattr(lending, "MAX_ENTRIES", 20)
    outcome = support.run_source(tmp_path, "print(1)", write=(Mount(os.path.realpath(data)),))
    if support.IS_ROOT and how == "lent":
        assert outcome.kind == "refused" and "more than 20 entries" in outcome.message, outcome
    else:
        assert outcome.kind == "ok" and "more than 20 entries" in outcome.violations[0], outcome
    assert {path.stat().st_uid for path in (data, *data.iterdir())} == {os.geteuid()}


# The daemon itself


def test_standard_streams_of_the_daemon_are_closed(tmp_path: Path) -> None:
    # a daemon without 0, 1 and 2: its pipes get these numbers
    folder = support.tool_folder(tmp_path, "import sys; print(sys.stdin.read())")
    code = (
        "import os, sys, asyncio\nsys.path.insert(0, sys.argv[1])\nfrom tamis.sandbox import runner\nfrom tests.sandbox import support\n"
        "for n in (0, 1, 2): os.close(n)\n"
        "o = asyncio.run(runner.run(support.request(sys.argv[2], stdin=b'in')))\n"
        "os._exit(0 if (o.kind, o.stdout) == ('ok', b'in\\n') else 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(ROOT), folder], check=False, cwd="/")
    assert done.returncode == 0


def test_descriptors_that_the_daemon_leaves_inheritable_do_not_reach_the_script(tmp_path: Path) -> None:
    # e21: listening sockets, log files, pipes
    opened = [os.open(tmp_path, os.O_RDONLY), *os.pipe(), os.memfd_create("secret")]
    try:
        for fd in opened:
            os.set_inheritable(fd, True)
        source = "import os\nd={n: os.readlink('/proc/self/fd/'+n) for n in os.listdir('/proc/self/fd') if os.path.lexists('/proc/self/fd/'+n)}; print(sorted(n for n, p in d.items() if n not in '012' and '/fd' not in p))"
        assert support.run_source(tmp_path, source).stdout == b"[]\n"
    finally:
        for fd in opened:
            os.close(fd)


def test_umask_of_the_daemon_does_not_change_a_run(tmp_path: Path) -> None:
    folder = support.tool_folder(
        tmp_path, "open('/tmp/x','w').write('y'); print(open('/tmp/x').read(), open('/etc/hosts').read()[:9])"
    )
    before = os.umask(0o777)
    try:
        outcome = support.run(support.request(folder))
    finally:
        os.umask(before)
    assert outcome.stdout == b"y 127.0.0.1\n", outcome


def test_ignored_child_signals_of_the_daemon_do_not_lose_the_outcome(tmp_path: Path) -> None:
    import signal

    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        outcome = support.run_source(tmp_path, "import sys; print(1); sys.exit(3)")
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert (outcome.kind, outcome.exit_code, outcome.stdout) == ("error", 3, b"1\n"), outcome


_SIGNALS = """
import re
text = open('/proc/self/status').read()
print(*(re.search(name + r':\\s*(\\w+)', text)[1] for name in ('SigIgn', 'SigBlk')))
"""


@pytest.mark.parametrize("how", ["ignored", "blocked"])
def test_signals_that_the_daemon_ignores_or_blocks_are_as_usual_for_the_script(tmp_path: Path, how: str) -> None:
    # R10: under `nohup` a script inherited an ignored SIGHUP
    call = "signal.signal(n, signal.SIG_IGN)" if how == "ignored" else "signal.pthread_sigmask(signal.SIG_BLOCK, (n,))"
    body = f"""
    import signal
    usual = await runner.run(wanted)
    numbers = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD)
    for n in numbers: {call}
    second = await runner.run(wanted)
    before = [signal.SIG_IGN if {how == "ignored"} else signal.getsignal(n) for n in numbers]
    assert before == [signal.getsignal(n) for n in numbers]
    return [usual.stdout.decode(), second.stdout.decode(), second.message]
    """
    usual, second, message = json.loads(_daemon(tmp_path, body, _SIGNALS))
    # Python's own two, and nothing blocked
    assert usual == second == "0000000001001000 0000000000000000\n", (usual, second, message)


def test_signals_stay_ignored_in_the_daemon_after_a_run(tmp_path: Path) -> None:
    body = """
    import signal
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    await runner.run(wanted)
    return [line.split()[1] for line in open('/proc/self/status') if line.startswith(('SigIgn', 'SigCgt'))]
    """
    ignored, caught = (int(word, 16) for word in json.loads(_daemon(tmp_path, body)))
    assert ignored & 1 and not caught & 1


def test_low_limits_of_the_daemon_are_kept(tmp_path: Path) -> None:
    # a hard limit of the operator's shell lies below ours: it holds, and nothing fails to be set
    said = _daemon(
        tmp_path,
        """
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
        resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
        return (await runner.run(wanted)).stdout.decode()
        """,
        "import resource as r; print(r.getrlimit(r.RLIMIT_FSIZE)[1], r.getrlimit(r.RLIMIT_NOFILE)[1])",
    )
    assert said == '"1000000 128\\n"\n'


def test_frozen_values_out_of_range_are_refused_or_held(tmp_path: Path) -> None:
    for limits in (
        Limits(wall_ms=0),
        Limits(wall_ms=-1),
        Limits(memory_bytes=0),
        Limits(memory_bytes=-1),
        Limits(processes=0),
        Limits(processes=-5),
        Limits(open_files=-1),
        Limits(file_bytes=-1),
        Limits(tmp_bytes=-1),
        Limits(cpu_seconds=-1),
        Limits(stdout_bytes=-1),
        Limits(stdin_bytes=-1),
        Limits(memory_bytes=1 << 70),
        Limits(wall_ms=1 << 70),
    ):
        outcome = support.run_source(tmp_path, "print('x' * 10)", limits=limits)
        assert outcome.kind in ("refused", "limit", "timeout", "error"), (limits, outcome)
    support.await_gone()
