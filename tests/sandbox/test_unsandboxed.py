"""Without a sandbox only where the daemon's own environment says so, never as root, and loudly (ruling 39, S7)."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tamis.sandbox import probe
from tamis.sandbox.backends import unsandboxed
from tamis.sandbox.model import Limits, Mount, RunOutcome
from tests.sandbox import support
from tests.waiting import until

ordinary = pytest.mark.skipif(support.IS_ROOT, reason="root is refused; as_user.sh runs this as an ordinary user")


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(unsandboxed.VARIABLE, raising=False)


@pytest.fixture
def insisted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(unsandboxed.VARIABLE, "1")


def run(parent: Path, source: str, **more: object) -> RunOutcome:
    return support.run_source(parent, source, **more)


def await_gone(mark: str) -> None:
    while support.marked(mark):
        time.sleep(0.02)
        support.reap_orphans()


@pytest.mark.skipif(not support.IS_ROOT, reason="shows what root is refused")
def test_root_is_refused_and_nothing_runs(tmp_path: Path, insisted: None) -> None:
    outcome = run(tmp_path, "print('must not run')")
    assert (outcome.kind, outcome.error_type, outcome.stdout) == ("unavailable", "SandboxUnavailable", b"")
    assert "root" in outcome.message and unsandboxed.VARIABLE in outcome.remedy
    assert not probe.probe().available


@pytest.mark.parametrize("value", ["0", "true", "yes", "01", " 1", "1 "])
def test_any_other_value_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(unsandboxed.VARIABLE, value)
    outcome = run(tmp_path, "print('must not run')")
    assert (outcome.kind, outcome.stdout) == ("unavailable", b"")
    assert repr(value) in outcome.message


def test_an_empty_value_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(unsandboxed.VARIABLE, "")
    outcome = run(tmp_path, "print('x')")
    assert outcome.kind == "ok" and outcome.sandbox.backend != unsandboxed.NAME and outcome.sandbox.layers


def test_a_request_cannot_ask_for_it(tmp_path: Path) -> None:
    outcome = run(tmp_path, "print('must not run')", backend="none")
    assert (outcome.kind, outcome.error_type, outcome.stdout) == ("refused", "SecurityError", b"")


def test_the_script_cannot_set_it_for_the_daemon(tmp_path: Path) -> None:
    wanted = support.request(support.tool_folder(tmp_path, "print('x')"), env={unsandboxed.VARIABLE: "1"})
    assert support.run(wanted).sandbox.backend != unsandboxed.NAME


@ordinary
def test_the_result_says_that_there_was_none(tmp_path: Path, insisted: None) -> None:
    outcome = run(tmp_path, "import sys; print(sys.stdin.read())", stdin=b"in")
    assert (outcome.kind, outcome.stdout) == ("ok", b"in\n"), outcome
    assert (outcome.sandbox.backend, outcome.sandbox.layers, outcome.sandbox.warm) == ("none", (), False)
    found = probe.probe()
    assert found.available and found.layers == () and "without a sandbox" in found.notes[0]


@ordinary
def test_exit_codes_and_signals_are_told(tmp_path: Path, insisted: None) -> None:
    assert run(tmp_path, "raise SystemExit(7)").exit_code == 7
    killed = run(tmp_path, "import os; os.kill(os.getpid(), 15)")
    assert (killed.exit_code, killed.signal) == (143, "SIGTERM")


@ordinary
def test_environment_is_cleared_and_the_folder_for_temporary_files_goes(
    tmp_path: Path, insisted: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAMIS_TEST_SECRET", "hidden")
    outcome = run(
        tmp_path,
        "import os,sys; open(os.environ['TMPDIR']+'/x','w').close(); print(sorted(os.environ), os.environ['HOME'], os.getcwd())",
        env={"OWN": "1"},
    )
    said = outcome.stdout.decode()
    assert "TAMIS" not in said and "'OWN'" in said, outcome
    home = said.split("] ")[1].split()[0]
    assert home.startswith("/") and not os.path.exists(home)
    assert said.strip().endswith(str(tmp_path / "tool"))


@ordinary
def test_descriptors_of_the_daemon_are_not_inherited(tmp_path: Path, insisted: None) -> None:
    outcome = run(tmp_path, "import os; print(sorted(os.listdir('/proc/self/fd')))")
    assert outcome.stdout == b"['0', '1', '2', '3']\n", outcome


@ordinary
@pytest.mark.parametrize(
    ("source", "limits", "limit"),
    [
        ("import time; time.sleep(3600)", Limits(wall_ms=500), "wall"),
        ("while True: pass", Limits(wall_ms=300_000, cpu_seconds=1), "cpu"),
        ("x=bytearray(400_000_000); print(len(x))", Limits(wall_ms=300_000, memory_bytes=100_000_000), "memory"),
        ("while True: print('x'*1000)", Limits(wall_ms=300_000), "stdout"),
    ],
)
def test_limits_hold(tmp_path: Path, insisted: None, source: str, limits: Limits, limit: str) -> None:
    outcome = run(tmp_path, source, limits=limits)
    assert outcome.limit == limit, outcome


@ordinary
def test_fork_bomb_is_bounded(tmp_path: Path, insisted: None) -> None:
    source = "import os,time\nn=0\ntry:\n  while True:\n    if os.fork()==0: time.sleep(3600); os._exit(0)\n    n+=1\nexcept BlockingIOError: print(n<100)"
    outcome = run(tmp_path, source, limits=Limits(wall_ms=300_000, processes=20))
    assert outcome.stdout == b"True\n", outcome


DAEMONS = "import os,time,sys\nfor _ in range(3):\n  if os.fork()==0:\n    os.setsid()\n    if os.fork(): os._exit(0)\n    os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(3600)', '{mark}'])\n"


@ordinary
@pytest.mark.parametrize("end", ["exit", "wall"])
def test_what_the_script_left_is_ended(tmp_path: Path, insisted: None, end: str) -> None:
    mark = f"tamis-left-{os.getpid()}-{end}"
    source = DAEMONS.replace("{mark}", mark) + ("time.sleep(0.3)" if end == "exit" else "time.sleep(3600)")
    outcome = run(tmp_path, source, limits=Limits(wall_ms=300_000 if end == "exit" else 1500))
    assert outcome.kind == ("ok" if end == "exit" else "timeout"), outcome
    await_gone(mark)


@ordinary
def test_cancelling_ends_it(tmp_path: Path, insisted: None) -> None:
    async def cancel() -> RunOutcome:
        from tamis.sandbox import runner

        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(0.3, stop.set)
        folder = support.tool_folder(tmp_path, "import time; time.sleep(3600)")
        return await runner.run(support.request(folder), cancelled=stop)

    assert asyncio.run(cancel()).kind == "cancelled"


@ordinary
def test_the_end_of_the_daemon_is_the_end_of_its_scripts(tmp_path: Path, insisted: None) -> None:
    mark = f"tamis-orphan-{os.getpid()}"
    support.tool_folder(tmp_path, DAEMONS.replace("{mark}", mark) + "time.sleep(3600)")
    wanted = f"support.request({str(tmp_path / 'tool')!r}, limits=support.Limits(wall_ms=3_600_000))"
    daemon = subprocess.Popen(
        [sys.executable, "-c", f"from tests.sandbox import support; support.run({wanted})"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        until(lambda: len(support.marked(mark)) >= 3)
    finally:
        daemon.send_signal(signal.SIGKILL)
        daemon.wait()
    await_gone(mark)


@ordinary
def test_what_needs_a_sandbox_does_not_run(tmp_path: Path, insisted: None) -> None:
    folder = support.tool_folder(tmp_path, "print('must not run')")
    outcome = support.run(support.request(folder, write=(Mount(str(tmp_path), "/env"),)))
    assert (outcome.kind, outcome.stdout) == ("unavailable", b""), outcome
    assert "dependencies are only installed inside a sandbox" in outcome.message
    assert "unset TAMIS_UNSAFE_NO_SANDBOX" in outcome.remedy and "tamis deps install" in outcome.remedy


@ordinary
def test_links_and_pins_are_refused_as_ever(tmp_path: Path, insisted: None) -> None:
    folder = Path(support.tool_folder(tmp_path, "print('x')"))
    (folder / "link.py").symlink_to(folder / "tool.py")
    assert support.run(support.request(str(folder), "link.py")).kind == "refused"
    assert support.run(support.request(str(folder), integrity="sha256-AAAA")).kind == "refused"
