"""Path patterns to host paths: below which root a pattern lies, what is there, and what no pattern ever opens.

An operator's root may be a link and is resolved once; below it no link is followed (S1, S2). What stands here is looked at
again by the sandbox when it opens the paths, so that a change in between ends the run and opens nothing. Must not know calls.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from tamis.protocols.manifest.reading import ExternalScript
from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.settings.files import FILE_NAME
from tamis.server.runtime.store.folders import cache_folder, state_folder
from tamis.server.runtime.tools.reading import BadPattern, PathPattern, matches, read_pattern
from tamis.server.runtime.tools.registry import Registry

MAX_PATHS = 256
"""So many paths are shown to one run at most."""
_MAX_LOOKED_AT = 20_000
_MAX_GLOB_DEPTH = 16

# What decides what a tool is: written by the tool itself, it would be another tool at its next call.
DEFINING_FILES = (
    *("requirements.txt", "requirements.in", "pyproject.toml", "uv.lock", "uv.toml", "setup.py", "setup.cfg"),
    *("package.json", "package-lock.json", "bun.lock", "bun.lockb", "bunfig.toml", ".npmrc", "npm-shrinkwrap.json"),
    *("tamis.toml", "agent_profile.json", "tsconfig.json", "sitecustomize.py", "usercustomize.py", "pip.conf"),
)
CODE_FOLDERS = frozenset(("__pycache__", "node_modules", ".venv", "venv", ".git", ".hg", "site-packages"))


class Place(msgspec.Struct, frozen=True):
    """Where a tool stands, and what beside the rules of the sandbox is closed to every grant.

    All are real absolute paths. ``hidden`` are never read nor written; ``protected`` are files that no writable folder may
    hold; ``neighbours`` are the folders of other tools; ``searched`` are the folders in which manifests are looked for; ``project`` is the
    root of the settings.
    """

    folder: str = ""
    hidden: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    neighbours: tuple[str, ...] = ()
    searched: tuple[str, ...] = ()
    project: str = ""


class Root(NamedTuple):
    """An operator's root as it is written, and the folder that it stands for."""

    written: str
    real: str


def real_roots(roots: tuple[str, ...]) -> list[Root]:
    """The roots that are absolute paths, each resolved; any other opens nothing."""
    real_roots: list[Root] = []
    for root in roots:
        if root.startswith("/") and "\0" not in root and ".." not in root.split("/"):
            with contextlib.suppress(OSError, ValueError):
                real_roots.append(Root(os.path.normpath(root).replace("//", "/"), os.path.realpath(root)))
    return real_roots


def below_root(pattern: PathPattern, roots: list[Root], setting: str) -> tuple[Root, tuple[str, ...]]:
    """The root that holds an absolute pattern, and the literal parts below it. Raises ``BadPattern``."""
    path = "/" + "/".join(pattern.parts)
    for root in roots:
        for top in (root.written, root.real):
            if inside(path, top):
                return root, tuple(part for part in path[len(top) :].split("/") if part)
    from tamis.sandbox.network.hosts import opening
    from tamis.sandbox.paths.grants import closed_by_name

    # nobody is told to open what is closed all the same, or everything
    never = closed_by_name(path, writable=setting == "writeRoots") or (
        "" if pattern.parts else "it is the whole machine"
    )
    raise BadPattern(f"policy.{setting} in force here does not hold this path; {never or opening(setting, path)}")


def missing_root(root: Root, setting: str) -> str:
    """That an operator's root is not there, or an empty text; it is never made."""
    if os.path.exists(root.real):
        return ""
    return f"policy.{setting} in force here names {root.written}, which is not there: make that folder"


def inside(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it, both normalised; only whole names count (S1)."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def look(top: str, parts: tuple[str, ...]) -> str:
    """What lies at a path below a real folder: ``"folder"``, ``"file"``, or ``""`` where nothing is.

    Raises ``BadPattern`` for a link on the way, and for what is neither a file nor a folder (sockets, FIFOs, devices).
    """
    try:
        current = os.open(top, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        mode = os.fstat(current).st_mode
        for name in parts:
            try:
                following = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=current)
            except FileNotFoundError:
                return ""
            except OSError as error:
                raise BadPattern(f"'{name}' cannot be reached: {error.strerror}") from None
            os.close(current)
            current = following
            mode = os.fstat(current).st_mode
            if stat.S_ISLNK(mode):
                raise BadPattern(f"'{name}' is a symbolic link, and links are not followed")
    finally:
        os.close(current)
    if stat.S_ISDIR(mode):
        return "folder"
    if stat.S_ISREG(mode):
        return "file"
    from tamis.sandbox.paths.walk import special_kind

    raise BadPattern(f"it is a {special_kind(mode)}, neither a plain file nor a folder")


def expand(top: str, glob: tuple[str, ...]) -> list[str]:
    """The files and folders below a real folder that fit the parts of a glob, sorted; at most ``MAX_PATHS`` + 1 of them.

    Links are never among them nor followed, special files are left out, and the look-up is bounded.
    """
    paths: list[str] = []
    for path in _Search().below(top, glob, 0):
        if path not in paths:
            paths.append(path)
        if len(paths) > MAX_PATHS:
            break
    return paths


class _Search:
    def __init__(self) -> None:
        self._left = _MAX_LOOKED_AT

    def below(self, folder: str, glob: tuple[str, ...], depth: int) -> Iterator[str]:
        part, rest = glob[0], glob[1:]
        if part == "**":
            # any number of folders, also none
            if rest:
                yield from self.below(folder, rest, depth)
            if depth < _MAX_GLOB_DEPTH:
                for name, is_folder in self._entries(folder):
                    if is_folder and not name.startswith("."):
                        yield from self.below(f"{folder}/{name}", glob, depth + 1)
            return
        for name, is_folder in self._entries(folder):
            if matches(name, part):
                path = f"{folder}/{name}"
                if not rest:
                    yield path
                elif is_folder:
                    yield from self.below(path, rest, depth + 1)

    def _entries(self, folder: str) -> list[tuple[str, bool]]:
        children: list[tuple[str, bool]] = []
        try:
            opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return children
        try:
            with os.scandir(opened) as entries:
                for entry in entries:
                    self._left -= 1
                    if self._left < 0:
                        break
                    is_folder = entry.is_dir(follow_symlinks=False)
                    if is_folder or entry.is_file(follow_symlinks=False):
                        children.append((entry.name, is_folder))
        except OSError:
            pass
        finally:
            os.close(opened)
        return sorted(children)


def hidden_fault(path: str, place: Place, *, writable: bool = False) -> str:
    """Why a path is closed to every grant, or an empty text; the policy has no say in it."""
    from tamis.sandbox.paths.grants import closed

    reason = closed(path, place.folder, writable=writable)
    if reason:
        return reason
    if any(inside(path, folder) or inside(folder, path) for folder in place.hidden):
        return "it holds, or belongs to, what Tamis keeps for itself"
    return ""


def never_granted(text: str, folder: str, *, writable: bool, is_project: bool = False) -> str:
    """Why no policy can grant a pattern to the tool in ``folder``, as far as its spelling tells, or an empty text; nothing is looked up.

    ``is_project``: the folder is known to be the root of a project.
    """
    try:
        pattern = read_pattern(text)
    except BadPattern as refused:
        return str(refused)
    path = "/" + "/".join(pattern.parts)
    if not pattern.absolute:
        if not writable or not pattern.parts:
            return ""
        from tamis.sandbox.paths.never import masked_fault

        code = next((name for name in pattern.parts if name in CODE_FOLDERS), "")
        return f"'{code}' holds code that is run" if code else masked_fault(pattern.parts[0], is_project=is_project)
    if (folder and inside(path, folder)) or (not writable and inside(path, "/usr/share")):
        return ""
    from tamis.sandbox.paths.grants import closed_by_name

    return closed_by_name(path, writable=writable)


def write_fault(path: str, root: str, place: Place) -> str:
    """Why a folder is never made writable, or an empty text.

    A tool that could write its script, a manifest, what its dependencies are taken from, or another tool's files would choose
    what runs at the next call. ``root`` is the root that opened the path, or the tool's own folder.
    """
    if place.folder and inside(place.folder, path):
        return "it is or holds the tool's own folder: a tool could change its own script; name a folder in it"
    held = next((file for file in place.protected if inside(file, path)), "")
    if held:
        return f"it holds '{os.path.basename(held)}', which decides what tools do"
    code = next((name for name in path[len(root) :].split("/") if name in CODE_FOLDERS), "")
    if code:
        return f"'{code}' holds code that is run"
    own = inside(path, place.folder) if place.folder else False
    masked = _masked_in(path, place) if own else ""
    if masked:
        return masked
    around = [folder for folder in place.neighbours if inside(path, folder)]
    nearest = max(around, key=len, default="")
    if nearest and not (own and len(nearest) <= len(place.folder)) and inside(nearest, root):
        return f"it lies in the folder of another tool ({os.path.basename(nearest)})"
    if not own and any(inside(path, folder) and inside(folder, root) for folder in place.searched):
        return "it lies in a folder that is searched for tools, where a tool could add another one"
    return _defining_file(path)


def marks_a_project(names: Iterable[str]) -> bool:
    """Whether one of the names in a folder makes it the root of a project."""
    from tamis.sandbox.paths.never import MARKS

    return any(name in MARKS for name in names)


def _masked_in(path: str, place: Place) -> str:
    """Why a folder in the tool's own one is masked at every run, or would be once it is made."""
    from tamis.sandbox.paths.never import MARKS, masked_fault

    top = path[len(place.folder.rstrip("/")) + 1 :].partition("/")[0]
    if not masked_fault(top, is_project=True):
        return ""
    is_project = place.folder == place.project or any(os.path.lexists(f"{place.folder}/{mark}") for mark in MARKS)
    return masked_fault(top, is_project=is_project)


def _defining_file(path: str) -> str:
    try:
        opened = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        for name in DEFINING_FILES:
            with contextlib.suppress(OSError):
                os.stat(name, dir_fd=opened, follow_symlinks=False)
                return f"it holds '{name}', which decides what is run"
    finally:
        os.close(opened)
    return ""


# Where a tool stands among the others, and which files no tool may write: what `permissions.py` must know beside the policy.


def place_of(folder: str, registry: Registry, settings: Settings, root: Path) -> Place:
    """The place of a tool whose script stands in ``folder``."""
    scripts, folders = _standing(registry)
    real = os.path.realpath(root)
    own = [os.path.join(real, FILE_NAME)]
    if settings.profile:
        own.append(os.path.normpath(os.path.join(real, settings.profile)))
    kept = [state_folder(), cache_folder(), *([Path(real, settings.audit.path)] if settings.audit.path else [])]
    return Place(
        folder=folder,
        hidden=tuple(
            dict.fromkeys(path for kept_path in kept for path in (str(kept_path), os.path.realpath(kept_path)))
        ),
        protected=(*own, *scripts),
        neighbours=folders,
        searched=tuple(os.path.realpath(root / name) for name in settings.tools),
        project=real,
    )


@functools.lru_cache(maxsize=1)
def _standing(registry: Registry) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The manifests and scripts of all registered tools, and their folders."""
    files: set[str] = set()
    folders: set[str] = set()
    for tool in registry.tools:
        files.add(tool.path)
        folders.add(tool.folder)
        handler = tool.manifest.handler
        if isinstance(handler, ExternalScript):
            files.add(os.path.normpath(os.path.join(tool.folder, handler.script_path)))
    files.update(error.path for error in registry.errors)
    return tuple(sorted(files)), tuple(sorted(folders))
