"""Which program a path leads to: whether it is still the one that was found, and what stands behind a version manager's shim.

A shim is never asked, for it would be started outside the sandbox to tell, with the operator's variables: the manager's own files are read.
The layouts of the common managers are plain: pyenv (and nodenv), asdf, mise, volta, snap. The version is the operator's global one; a
`.python-version` or `.tool-versions` of the folder where Tamis is started has no say. A wrapper of another kind is refused with a remedy.
"""

from __future__ import annotations

import os
import re
import time
import tomllib
from collections.abc import Iterable, Iterator
from typing import Any, cast

import msgspec

from tamis.sandbox.model import Language, lacks

_MAX_BYTES = 65_536
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_TOOLS: dict[Language, tuple[str, ...]] = {
    "python": ("python",),
    "nodejs": ("nodejs", "node"),
    "bun": ("bun",),
}
_PROGRAMS: dict[Language, tuple[str, ...]] = {"python": ("python3", "python"), "nodejs": ("node",), "bun": ("bun",)}


_SETTLED_NS = 2_000_000_000
"""A file that changed within so many nanoseconds may change again without a clock that shows it: those of file systems are coarse."""


class FoundFile(msgspec.Struct, frozen=True):
    """A file that was found by a path, and how both looked; to look again costs as much as the kernel's answer about them."""

    path: str
    real: str
    identity: tuple[int, ...]

    @classmethod
    def of(cls, path: str, real: str) -> FoundFile | None:
        """None where the two are not the same file, or where it changed so lately that a further change could look the same."""
        identity = _identity(path)
        if identity is None or _identity(real) != identity or time.time_ns() - identity[-1] < _SETTLED_NS:
            return None
        return cls(path, real, identity)

    @property
    def is_same(self) -> bool:
        """Whether both still lead to the file, and nothing of it has changed."""
        return _identity(self.path) == self.identity and _identity(self.real) == self.identity


def _identity(path: str) -> tuple[int, ...] | None:
    try:
        facts = os.stat(path)
    except OSError:
        return None
    # the time of change last: unlike the time of modification, nobody can set it back
    return (facts.st_dev, facts.st_ino, facts.st_mode, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)


def behind_shim(path: str, language: Language) -> str:
    """The program that a version manager's shim at `path` would start from `/`, or an empty text where it cannot be told."""
    folder, name = os.path.split(os.path.abspath(path))
    root, last = os.path.split(folder)
    names = (name, *_PROGRAMS[language])
    for place in _places(root, last, name, language):
        for program in dict.fromkeys(names):
            for candidate in (f"{place}/bin/{program}", f"{place}/{program}"):
                if is_program(os.path.realpath(candidate)) and os.access(candidate, os.X_OK):
                    return candidate
    return ""


def is_program(real: str) -> bool:
    """Whether a file is a program of its own: no script, and no version manager under another name.

    Raises OSError for a want of descriptors or memory, of which nothing follows.
    """
    try:
        # never opened for reading where it could block
        file = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.read(file, 4) == b"\x7fELF" and os.path.basename(real) not in MANAGERS
        finally:
            os.close(file)
    except OSError as error:
        if lacks(error):
            raise
        return False


MANAGERS = frozenset({"snap", "volta", "volta-shim", "mise", "rtx", "asdf", "proto", "proto-shim", "vfox"})
"""The names of version managers that are programs: a link to one is a shim."""


def _places(root: str, last: str, name: str, language: Language) -> Iterator[str]:
    """The folders of the installed version that each layout means, best first."""
    if last == "shims":
        if os.path.isdir(f"{root}/versions"):
            chosen = (os.environ.get("PYENV_VERSION", ""), _text(f"{root}/version"))
            yield from _installed(f"{root}/versions", re.split(r"[\s:]+", " ".join(chosen)))
        wanted = _tool_versions(os.path.expanduser("~/.tool-versions"), language)
        wanted += _mise_versions(language)
        for tool in _TOOLS[language]:
            yield from _installed(f"{root}/installs/{tool}", wanted)
    elif last == "bin" and os.path.isdir(f"{root}/tools/image/node") and language == "nodejs":
        yield from _installed(f"{root}/tools/image/node", _volta_version(f"{root}/tools/user/platform.json"))
    elif root == "/snap" or (root, last) == ("/", "snap") or (root, last) == ("/snap", "bin"):
        yield f"/snap/{name}/current"


def _installed(folder: str, wanted: Iterable[str]) -> Iterator[str]:
    """The folders of the wanted versions that are there: the very one, else the newest that begins so."""
    try:
        names = os.listdir(folder)
    except OSError as error:
        if lacks(error):
            raise
        return
    for version in wanted:
        plain = version.removeprefix("v")
        if not _VERSION.fullmatch(plain):
            continue
        if plain in names:
            yield f"{folder}/{plain}"
            continue
        fitting = [name for name in names if name.startswith(f"{plain}.") or (plain == "latest" and name[:1].isdigit())]
        if fitting:
            yield f"{folder}/{max(fitting, key=_order)}"


def _order(name: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdecimal() else -1 for part in re.split(r"[.+-]", name))


def _text(path: str) -> str:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(file, "rb") as stream:
            return stream.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError as error:
        if lacks(error):
            raise
        return ""


def _tool_versions(path: str, language: Language) -> list[str]:
    """asdf's file: a line for each tool, its name and then versions."""
    lines = (line.partition("#")[0].split() for line in _text(path).splitlines())
    return [version for line in lines if line and line[0] in _TOOLS[language] for version in line[1:]]


def _mise_versions(language: Language) -> list[str]:
    base = os.environ.get("XDG_CONFIG_HOME", "")
    folder = base if os.path.isabs(base) else os.path.expanduser("~/.config")
    try:
        tools: Any = tomllib.loads(_text(f"{folder}/mise/config.toml")).get("tools", {})
    except tomllib.TOMLDecodeError:
        return []
    if not isinstance(tools, dict):
        return []
    table = cast("dict[str, Any]", tools)
    mise_versions: list[str] = []
    for tool in _TOOLS[language]:
        entry = table.get(tool, [])
        for item in cast("list[Any]", entry) if isinstance(entry, list) else [entry]:
            version = cast("dict[str, Any]", item).get("version") if isinstance(item, dict) else item
            if isinstance(version, str):
                mise_versions.append(version)
    return mise_versions


def _volta_version(path: str) -> list[str]:
    try:
        document = msgspec.json.decode(_text(path), type=dict[str, Any])
        version = document["node"]["runtime"]
    except (msgspec.DecodeError, KeyError, TypeError):
        return []
    return [version] if isinstance(version, str) else []
