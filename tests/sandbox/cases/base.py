"""What a case is: a small script, how it is asked for, and the outcome that it must have.

An attack prints `held` when it was refused and `BROKEN …` when it got through; `works` is a plain run. Cases are bounded
in size, because the meta-tests run some of them with one layer switched off; the wall clock ends those that wait for a limit.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tamis.sandbox.model import RunOutcome

DEFAULTS = {"wall_ms": 300_000, "tmp_bytes": 33_554_432}
SECRET = "TAMIS_TEST_SECRET"


@dataclass(frozen=True)
class Place:
    """The folders of one case on the host: `root` is all its own, `folder` below it holds the tool."""

    root: Path
    folder: Path

    def data(self) -> Path:
        """A folder to grant, with a file `in.txt` in it."""
        data = self.root / "data"
        data.mkdir()
        data.joinpath("in.txt").write_text("granted")
        return data

    def victim(self) -> Path:
        """A folder that nothing was granted of."""
        victim = self.root / "victim"
        victim.mkdir()
        victim.joinpath("secret").write_text("untouched")
        return victim


@dataclass(frozen=True)
class Case:
    """`limit` may name several that are as good; fields of `limits` differ from the tests' own small defaults."""

    id: str
    source: str | bytes
    kind: str = "ok"
    limit: str | tuple[str, ...] | None = None
    error: str = ""
    stdout: str | bytes | None = None
    stderr: str = ""
    """Must be in what the script wrote to stderr."""
    stdin: bytes = b""
    args: tuple[str, ...] = ()
    limits: dict[str, int] = field(default_factory=dict[str, int])
    language: str = "python"
    script: str = ""
    """Its name in the folder; empty for one by which its processes are known (see `mark`)."""
    arrange: Callable[[Place], dict[str, Any]] | None = None
    """Prepares the host side; returns fields of the request that differ."""
    after: Callable[[Place, RunOutcome], str] | None = None
    """Looks at the host side; returns what is wrong, or nothing."""
    layer: str = ""
    """The layers whose absence this case shows, for the meta-test; empty when none."""
    root_only: bool = False


_PRELUDE = """
import os, sys, ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
def held(reason=""):
    print("held"); sys.stdout.flush(); os._exit(0)
def broken(reason):
    print("BROKEN", reason); sys.stdout.flush(); os._exit(0)
def call(number, *args):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[a if isinstance(a, (bytes, ctypes.Array, ctypes.c_void_p)) else ctypes.c_long(a) for a in args])
    return result, ctypes.get_errno()
def refused(number, *args, codes=(errno.EPERM, errno.ENOSYS, errno.EAFNOSUPPORT)):
    result, code = call(number, *args)
    held() if result < 0 and code in codes else broken(f"result {result} errno {code}")
def cannot(work, *kinds):
    try:
        work()
    except (kinds or (OSError,)):
        held()
    broken("it worked")
def tries(*works):
    for work in works:
        try:
            work()
        except (OSError, ValueError):
            continue
        broken(work)
    held()
"""


def attack(name: str, body: str, **more: Any) -> Case:
    """A script that must say `held`."""
    more.setdefault("stdout", "held\n")
    return Case(name, _PRELUDE + textwrap.dedent(body), **more)


def works(name: str, body: str, stdout: str | None = None, **more: Any) -> Case:
    """A script that must work."""
    return Case(name, textwrap.dedent(body).lstrip("\n"), stdout=stdout, **more)


def fails(name: str, body: str | bytes, **more: Any) -> Case:
    """A script that ends in an error of its own."""
    more.setdefault("error", "ScriptError")
    return Case(name, body if isinstance(body, bytes) else textwrap.dedent(body), kind="error", **more)


def late(name: str, body: str, **more: Any) -> Case:
    """A script that does not end by itself."""
    limits = {"wall_ms": 500, **more.pop("limits", {})}
    more.setdefault("after", nothing_runs)
    return Case(
        name,
        _PRELUDE + textwrap.dedent(body),
        kind="timeout",
        limit="wall",
        error="TimeoutError",
        limits=limits,
        **more,
    )


def over(name: str, limit: str | tuple[str, ...], body: str, **more: Any) -> Case:
    """A script that is ended at a limit."""
    source = textwrap.dedent(body)
    if more.get("language", "python") == "python":
        source = _PRELUDE + source
    return Case(name, source, kind="limit", limit=limit, error="ResourceError", **more)


def refusal(name: str, arrange: Callable[[Place], dict[str, Any]], **more: Any) -> Case:
    """A request that nothing is started for."""
    return Case(
        name, "print('BROKEN: it ran')", kind="refused", error="SecurityError", stdout="", arrange=arrange, **more
    )


def script_name(case: Case, place: Place) -> str:
    """The script's name in the tool folder."""
    return case.script or f"{place.root.name}.{'js' if case.language == 'nodejs' else 'py'}"


def mark(place: Place) -> bytes:
    """What only this case's processes have in their command line."""
    return os.fsencode(f"/tool/{place.root.name}.")


def nothing_runs(place: Place, outcome: RunOutcome) -> str:
    """No process of the case is left."""
    wanted = mark(place)
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                line = Path("/proc", name, "cmdline").read_bytes()
                state = Path("/proc", name, "stat").read_bytes().rpartition(b")")[2].split()[0]
            except (OSError, IndexError):
                continue
            if wanted in line and state not in (b"Z", b"X"):
                return f"process {name} still runs: {line!r}"
    return ""


def is_untouched(place: Place, outcome: RunOutcome) -> str:
    """The folder that was not granted is as it was."""
    victim = place.root / "victim"
    names = sorted(os.listdir(victim))
    if names != ["secret"] or (victim / "secret").read_text() != "untouched":
        return f"the host's folder was changed: {names}"
    return ""
