"""Each program that sandboxes, where it cannot: the cause is named with its remedy, and nothing runs with less (S6, S7)."""

from __future__ import annotations

import errno
import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tamis.sandbox import host, probe
from tamis.sandbox.backends import choice
from tamis.sandbox.backends import choice as backends
from tamis.sandbox.backends.seccomp import NUMBERS
from tamis.sandbox.job import LAYERS, Binary
from tamis.sandbox.model import Unavailable
from tests.sandbox import support

NAMES = tuple(backends.BACKENDS)
_ERRNO = 0x00050000
_EPERM, _ENOSYS = 1, 38
_NEW_NAMESPACES, _NEW_NETWORK, _NEW_USER = 0x7E020000, 0x40000000, 0x10000000
_MAY = 0x7FFF0000

# Installs a filter on itself, then tries the sandbox and a run in it.
CODE = """
import ctypes, json, sys
def install(raw):
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
    libc = ctypes.CDLL(None, use_errno=True)
    program = Program(len(raw) // 8, raw)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0, ctypes.get_errno()
backend, folder, raw = sys.argv[1:4]
from tamis.sandbox import probe
from tests.sandbox import support
if raw:
    install(bytes.fromhex(raw))
found = probe.probe(backend=backend)
outcome = support.run(support.request(folder, backend=backend))
print(json.dumps([found.available, found.backend, found.reason, found.remedy, outcome.kind, outcome.stdout.decode()]))
"""


def refusing(*rules: tuple[str, int | None, int, int]) -> str:
    """A filter, in hex, that refuses calls: (name, argument and bits that make it refuse or None for any, errno)."""
    rows: list[tuple[int, int, int, int]] = [(0x20, 0, 0, 0)]
    for name, argument, bits, code in rules:
        number = NUMBERS[name][0] if name in NUMBERS else None
        assert number is not None
        block = [(0x06, 0, 0, _ERRNO | code)]
        if argument is not None:
            block = [(0x20, 0, 0, 16 + 8 * argument), (0x45, 0, 1, bits), *block, (0x20, 0, 0, 0)]
        rows.append((0x15, 0, len(block), number))
        rows.extend(block)
    rows.append((0x06, 0, 0, _MAY))
    return b"".join(struct.pack("<HBBI", *row) for row in rows).hex()


def tried(tmp_path: Path, backend: str, raw: str = "", around: tuple[str, ...] = ()) -> list[str]:
    folder = support.tool_folder(tmp_path, "print('must not run')")
    done = subprocess.run(
        [*around, sys.executable, "-c", CODE, backend, folder, raw],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


UID = "1000" if support.IS_ROOT else str(os.getuid())
"""Inside another user namespace; nsjail's folders in /tmp are named after it."""


@pytest.fixture
def no_folders_left() -> Iterator[None]:
    yield
    if support.IS_ROOT:
        for purpose in ("root", "tmp"):
            shutil.rmtree(f"/tmp/nsjail.{UID}.{purpose}", ignore_errors=True)


NO_CLONE3 = ("clone3", None, 0, _ENOSYS)
REFUSED = {
    "no-namespaces": (
        (NO_CLONE3, ("clone", 0, _NEW_NAMESPACES, _EPERM), ("unshare", 0, _NEW_NAMESPACES, _EPERM)),
        "profile that allows user namespaces",
    ),
    "no-network-namespace": (
        (NO_CLONE3, ("clone", 0, _NEW_NETWORK, _EPERM), ("unshare", 0, _NEW_NETWORK, _EPERM)),
        "namespaces",
    ),
    "no-mounts": ((("mount", None, 0, _EPERM),), "allows mount"),
    "no-pivot": ((("pivot_root", None, 0, _EPERM),), "allows mount"),
    "no-sockets": ((("socket", None, 0, _EPERM),), "apparmor_restrict_unprivileged_userns"),
}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the filters here are for x86_64")
@pytest.mark.parametrize("backend", NAMES)
@pytest.mark.parametrize("case", REFUSED)
def test_what_the_kernel_refuses_is_explained_and_nothing_runs(tmp_path: Path, backend: str, case: str) -> None:
    rules, remedy = REFUSED[case]
    available, named, reason, helps, kind, stdout = tried(tmp_path, backend, refusing(*rules))
    assert (available, named, kind, stdout) == (False, backend, "unavailable", ""), reason
    assert remedy in helps, (reason, helps)


@pytest.mark.parametrize("backend", NAMES)
def test_a_container_that_hides_parts_of_proc(tmp_path: Path, backend: str, no_folders_left: None) -> None:
    around = (host.find_binary().path, "--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc")
    around = (*around, "--ro-bind", "/dev/null", "/proc/meminfo", "--unshare-user", "--uid", UID, "--")
    available, _, reason, helps, kind, stdout = tried(tmp_path, backend, around=around)
    assert (available, kind, stdout) == (False, "unavailable", ""), reason
    assert "unmask=ALL" in helps, (reason, helps)


@pytest.mark.parametrize("backend", NAMES)
def test_a_container_without_further_user_namespaces(tmp_path: Path, backend: str, no_folders_left: None) -> None:
    around = (
        host.find_binary().path,
        "--unshare-user",
        "--uid",
        UID,
        "--disable-userns",
        "--dev-bind",
        "/",
        "/",
        "--",
    )
    available, _, reason, helps, kind, stdout = tried(tmp_path, backend, around=around)
    assert (available, kind, stdout) == (False, "unavailable", ""), reason
    assert "user.max_user_namespaces" in helps, (reason, helps)


# Choice


@pytest.fixture
def choosing(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    probe.forget()
    yield monkeypatch
    monkeypatch.undo()
    probe.forget()


def absent() -> Binary:
    raise Unavailable("it was not found", "install it")


def test_auto_is_bubblewrap(choosing: pytest.MonkeyPatch) -> None:
    assert probe.probe().backend == "bubblewrap"
    choosing.setattr(host, "find_nsjail", absent)
    assert probe.probe(refresh=True).available


def test_auto_takes_nsjail_where_bubblewrap_does_not_work_and_says_so(
    tmp_path: Path, choosing: pytest.MonkeyPatch
) -> None:
    # ruling 39: execution is refused when neither works
    choosing.setattr(host, "find_binary", absent)
    found = probe.probe()
    assert (found.available, found.backend) == (True, "nsjail")
    assert "bubblewrap does not work here, so nsjail is used" in found.notes[0]
    outcome = support.run(support.request(support.tool_folder(tmp_path, "print(1)"), backend="auto"))
    assert (outcome.kind, outcome.sandbox.backend) == ("ok", "nsjail")


def test_with_neither_nothing_runs(tmp_path: Path, choosing: pytest.MonkeyPatch) -> None:
    choosing.setattr(host, "find_binary", absent)
    choosing.setattr(host, "find_nsjail", absent)
    outcome = support.run(support.request(support.tool_folder(tmp_path, "print(1)"), backend="auto"))
    assert (outcome.kind, outcome.stdout, outcome.message) == ("unavailable", b"", "it was not found")


@pytest.mark.parametrize(("named", "finder"), [("bubblewrap", "find_binary"), ("nsjail", "find_nsjail")])
def test_a_program_that_was_named_is_never_replaced(
    tmp_path: Path, choosing: pytest.MonkeyPatch, named: str, finder: str
) -> None:
    choosing.setattr(host, finder, absent)
    outcome = support.run(support.request(support.tool_folder(tmp_path, "print(1)"), backend=named))
    assert (outcome.kind, outcome.stdout, outcome.sandbox.backend) == ("unavailable", b"", named)


def test_each_layer_stands_or_says_what_stands_instead() -> None:
    assert set(choice.PROTECTS) == set(LAYERS)
    for backend in backends.BACKENDS.values():
        assert {*backend.layers(root=True, cgroup=True), *backend.elsewhere} == set(LAYERS)
        assert set(backend.elsewhere) <= {"disable-userns", "die-with-parent"}


@pytest.mark.parametrize("backend", NAMES)
def test_causes_are_found_in_what_was_said_with_their_own_line(backend: str) -> None:
    chosen = backends.BACKENDS[backend]
    reason, remedy = chosen.explain("first line\nsetpriv: setresuid failed: Operation not permitted\nlast")
    assert reason.endswith("(setpriv: setresuid failed: Operation not permitted)") and "CAP_SETUID" in remedy
    assert chosen.explain("odd words") == ("odd words", "run `tamis doctor`")
    assert chosen.explain("odd words", "known") == ("odd words", "known")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("mandatory point: '/srv/data'", "/srv/data could not be shown in the sandbox"),
        ("unrecognized option '--seccomp_string'", "this nsjail is too old: it does not know --seccomp_string"),
        ('has no field named "uidmap"', "this nsjail is too old: it does not know uidmap"),
        ("Error parsing text-format", "this nsjail is too old: it does not know what is needed"),
        ("error while loading shared libraries: libz.so: no", "a library that nsjail needs is not there: libz.so"),
    ],
)
def test_a_cause_names_what_the_program_named(said: str, reason: str) -> None:
    assert choice.explain("nsjail", said)[0] == f"{reason} ({said})"


def test_only_a_shortage_that_may_pass_is_a_lack() -> None:
    full = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    later = RuntimeError("no sandbox")
    later.__cause__ = full
    for shortage in (full, later, Unavailable("x", passing=True), Unavailable("clone: Cannot allocate memory")):
        assert choice.is_lack(shortage), shortage
    odd = RuntimeError("no sandbox")
    odd.__cause__ = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    for failure in (None, odd, ValueError("x"), Unavailable("odd words")):
        assert not choice.is_lack(failure), failure


@pytest.mark.parametrize(
    "row", [*choice.BUBBLEWRAP_CAUSES, *choice.NSJAIL_CAUSES, *choice.COMMON], ids=lambda row: row[1][:40]
)
def test_every_cause_has_a_remedy(row: choice.Cause) -> None:
    assert all(row) and not row[2].endswith(".")
