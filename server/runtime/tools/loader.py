"""Finding definitions on disk: which files there are and what they hold, with nothing that can stop the others.

Walks the configured folders for ``*.tool.json`` and ``*.node.json``. Ignore files count, links are not followed (a link loop, an escape from
the folder), every limit is said, and a file that cannot be read is a finding, not an end (D47-D50). Must not know what a
manifest means.
"""

from __future__ import annotations

import operator
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol as TypingProtocol

import msgspec

from tamis.server.runtime.settings.files import Stamp, can_be_path, folder_time, shown_name

SUFFIX = ".tool.json"
NODE_SUFFIX = ".node.json"
MAX_DEPTH = 32
MAX_FILES = 10_000
MAX_ENTRIES = 200_000
MAX_BYTES = 4 * 1024 * 1024
IGNORE_FILES = (".gitignore", ".ignore", ".tamisignore")
SKIPPED_FOLDERS = frozenset({".git", ".hg", ".svn", "node_modules", ".venv", "__pycache__", ".tox", ".mypy_cache"})


FileStamp = tuple[int, int, int, int, int]
"""Size, time of change and of status change in nanoseconds, inode and device: other when the file is (nobody can set the status change)."""
COARSE_NS = 10_000_000
"""What the clocks of file systems count in whose folders do not always say when something came or went (FAT, exFAT)."""


class Listing(msgspec.Struct, array_like=True, frozen=True):
    """What a walk takes from a folder without ignore files: the wanted files and the folders to search, in order, of so many entries."""

    stamp: FileStamp
    entries: int
    files: tuple[str, ...]
    folders: tuple[str, ...]


class Listings:
    """What the folders of a walk held. Of the folder with number ``worth`` on, one that has the stamp of ``load`` is not listed again: to ask
    for a stamp takes a quarter of that time. What is in a folder cannot come, go or become something else without another stamp."""

    def __init__(self, worth: int, load: Callable[[], Mapping[str, Listing]]) -> None:
        self.same: list[str] = []
        """The folders that were not listed again."""
        self.listed: dict[str, Listing] = {}
        """What the others held."""
        self._worth = worth
        self._asked = 0
        self._load = load
        self._kept: Mapping[str, Listing] = {}

    def known(self) -> dict[str, Listing]:
        """What is kept of the folders that were not listed again."""
        return {folder: self._kept[folder] for folder in self.same}

    def of(self, folder: str) -> Listing | FileStamp | None:
        """What is kept of a folder; else the stamp that it has before it is listed, None for what is no folder."""
        self._asked += 1
        if self._asked == self._worth:
            self._kept = self._load()
        try:
            status = os.lstat(folder)
        except (OSError, ValueError):
            return None
        stamp = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev)
        kept = self._kept.get(folder)
        if kept is not None and kept.stamp == stamp:
            self.same.append(folder)
            return kept
        return stamp if stat.S_ISDIR(status.st_mode) else None


class FoundFile(msgspec.Struct, frozen=True):
    """A manifest file that could be read; ``path`` is absolute. ``stamp`` is from before the reading, None where it was not taken."""

    path: str
    text: str
    stamp: FileStamp | None = None

    @property
    def seen(self) -> Stamp | None:
        """The same as ``stamp_of`` would have said before the reading."""
        return None if self.stamp is None else (self.stamp[1], self.stamp[0], self.stamp[3])


class LoadProblem(msgspec.Struct, frozen=True):
    """Something that kept a file or folder out; ``message`` gives cause and remedy."""

    path: str
    message: str
    cut: bool = False
    """Whether the walk ended here, so that there may be more below."""
    passed: bool = False
    """Whether nothing is wrong: it was passed over."""


class Scan(msgspec.Struct, frozen=True):
    """Result of a walk, in a stable order."""

    files: tuple[FoundFile, ...]
    problems: tuple[LoadProblem, ...]
    nodes: tuple[FoundFile, ...] = ()
    """Files of node definitions (seed 000 §7.1)."""


class _IgnoreRules(TypingProtocol):
    def match_file(self, file: str) -> bool: ...


def scan(root: Path, folders: tuple[str, ...]) -> Scan:
    """Walks ``folders`` (relative to ``root`` or absolute); each file once, sorted by path within its folder."""
    paths, problems = definition_files(root, folders)
    files: list[FoundFile] = []
    for path in paths:
        manifest_file = read_manifest_file(path)
        if isinstance(manifest_file, FoundFile):
            files.append(manifest_file)
        else:
            problems.append(manifest_file)
    nodes = tuple(file for file in files if file.path.endswith(NODE_SUFFIX))
    manifests = tuple(file for file in files if not file.path.endswith(NODE_SUFFIX))
    return Scan(manifests, tuple(problems), nodes)


def definition_files(
    root: Path, folders: tuple[str, ...], lists: Listings | None = None
) -> tuple[list[str], list[LoadProblem]]:
    """The paths that ``scan`` reads, in its order, and what kept others out. ``lists``: what is known of the folders."""
    files: list[str] = []
    problems: list[LoadProblem] = []
    for name in folders:
        if not can_be_path(name):
            problems.append(LoadProblem(shown_name(name), "cannot be a folder's name; mend `tools` in tamis.toml"))
            continue
        folder = Path(os.path.realpath(root / name))
        if not os.path.isdir(folder):
            what = "is not a folder" if os.path.exists(folder) else "does not exist"
            problems.append(LoadProblem(str(folder), f"the tool folder {what}; mend `tools` in tamis.toml"))
            continue
        files += _Walk(is_definition, problems, lists=lists).files_below(folder)
    return files if len(folders) < 2 else list(dict.fromkeys(files)), problems


def walk_files(
    top: Path, wanted: Callable[[str], bool], folders: dict[str, int] | None = None
) -> tuple[list[str], list[LoadProblem]]:
    """The entries below ``top`` whose name is wanted, in a stable order, and what could not be searched.

    Ignore files count, links to folders are not followed, and the walk is bounded. A folder with a wanted name is given
    like a file, so that the reader of it can say what is wrong with it. ``folders`` takes every folder that was searched, with its time from
    before: what comes or goes while it is searched is a change.
    """
    problems: list[LoadProblem] = []
    return _Walk(wanted, problems, folders).files_below(top), problems


def walk_reaches(top: Path, path: str) -> bool:
    """Whether a walk of ``top`` comes to an entry: no link, skipped or too deep folder on the way, and no ignore file names it."""
    inside = os.path.relpath(path, top)
    parts = inside.split(os.sep)
    if parts[0] in ("..", ".") or len(parts) > MAX_DEPTH + 1:
        return False
    rules = (*_outer_rules(top), *_rules_of(top))
    here = top
    for name in parts[:-1]:
        here = here / name
        # A folder with a manifest's name is taken for a file that cannot be read.
        if name in SKIPPED_FOLDERS or name.endswith(SUFFIX) or here.is_symlink() or not here.is_dir():
            return False
        if _ignored(str(here), True, rules):
            return False
        rules = (*rules, *_rules_of(here))
    return not _ignored(path, os.path.isdir(path) and not os.path.islink(path), rules)


def file_stamp(path: str) -> FileStamp | None:
    """What tells whether a file is still the one that was read; None for what is no regular file."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    # written out, as in ``Listings.of``: it is asked for each of ten thousand files
    found = status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev
    return found if stat.S_ISREG(status.st_mode) else None


def _stamp(status: os.stat_result) -> FileStamp:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev


def read_manifest_file(path: str) -> FoundFile | LoadProblem:
    """One manifest file's text, or why it cannot be read. Opens regular files alone, and never follows a final link."""
    read = read_regular(path, MAX_BYTES)
    if isinstance(read, LoadProblem):
        return read
    text = decoded(path, read[0])
    return text if isinstance(text, LoadProblem) else FoundFile(path, text, _stamp(read[1]))


def read_regular(path: str, limit: int) -> tuple[bytes, os.stat_result] | LoadProblem:
    """The bytes of a file of at most ``limit`` bytes, with its status from before; or why it cannot be read.

    Nothing but a regular file is opened: to open a FIFO or a device may wait, and does something. A final link is not followed.
    """
    try:
        if problem := _no_file(path, os.lstat(path).st_mode):
            return problem
        # between the look and the opening it may become something else
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        return LoadProblem(path, f"cannot be read: {error.strerror}")
    try:
        status = os.fstat(descriptor)
        if problem := _no_file(path, status.st_mode):
            return problem
        if status.st_size > limit:
            return LoadProblem(path, f"is larger than {limit} bytes")
        with open(descriptor, "rb", closefd=False) as stream:
            data = stream.read(limit + 1)
        return (data, status) if len(data) <= limit else LoadProblem(path, f"is larger than {limit} bytes")
    except OSError as error:
        return LoadProblem(path, f"cannot be read: {error.strerror}")
    finally:
        os.close(descriptor)


def decoded(path: str, data: bytes) -> str | LoadProblem:
    """The text of a file's bytes, or where they are none."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return LoadProblem(path, f"is not UTF-8 at byte {error.start} (line {line}); save it as UTF-8")


def _no_file(path: str, mode: int) -> LoadProblem | None:
    """Why what stands at a path is not opened; None for a regular file."""
    if stat.S_ISREG(mode):
        return None
    if stat.S_ISLNK(mode):
        return LoadProblem(path, "is a symbolic link; put the file itself here")
    if stat.S_ISDIR(mode):
        return LoadProblem(path, "is a folder, not a file; rename it")
    # imported here: a registry is read at each start, and this is rare
    from tamis.sandbox.paths.walk import special_kind

    return LoadProblem(path, f"is a {special_kind(mode)}, not a regular file")


def is_definition(name: str) -> bool:
    """Whether a file of this name defines tools."""
    return name.endswith((SUFFIX, NODE_SUFFIX)) and name not in (SUFFIX, NODE_SUFFIX)


_Rules = tuple[tuple[str, _IgnoreRules], ...]


class _Walk:
    """A walk of folders, bounded as a whole."""

    def __init__(
        self,
        wanted: Callable[[str], bool],
        problems: list[LoadProblem],
        searched: dict[str, int] | None = None,
        lists: Listings | None = None,
    ) -> None:
        self._wanted = wanted
        self._problems = problems
        self._searched = searched
        self._lists = lists

    def files_below(self, top: Path) -> list[str]:
        """The wanted entries below a folder."""
        self._files: list[str] = []
        self._entries_left = MAX_ENTRIES
        self._stack: list[tuple[str, int, _Rules]] = [(str(top), 0, _outer_rules(top))]
        while self._stack and self._goes_on(*self._stack.pop()):
            pass
        return self._files

    def _goes_on(self, folder: str, depth: int, rules: _Rules) -> bool:
        """Searches one folder; whether the walk may go on."""
        known = None if self._lists is None else self._lists.of(folder)
        if (
            isinstance(known, Listing)
            and known.entries <= self._entries_left
            and len(self._files) + len(known.files) < MAX_FILES
        ):
            self._entries_left -= known.entries
            inside = folder if folder.endswith("/") else f"{folder}/"
            for name in known.files:
                if not (rules and _ignored(inside + name, False, rules)):
                    self._files.append(inside + name)
            if known.folders:
                below = [inside + name for name in known.folders]
                self._search_later(
                    [path for path in below if not (rules and _ignored(path, True, rules))], depth, rules
                )
            return True
        before = -1 if self._searched is None else folder_time(folder)
        try:
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=_name_of)
        except OSError as error:
            self._problems.append(LoadProblem(folder, f"cannot be listed: {error.strerror}"))
            return True
        own = any(entry.name in IGNORE_FILES for entry in listed)
        if own:
            rules = (*rules, *_rules_of(Path(folder)))
        if self._searched is not None:
            self._searched[folder] = before
        if self._lists is not None and isinstance(known, tuple) and not own:
            self._note(self._lists, folder, known, listed)
        return self._take(listed, folder, depth, rules)

    def _take(self, listed: list[os.DirEntry[str]], folder: str, depth: int, rules: _Rules) -> bool:
        below: list[str] = []
        for entry in listed:
            self._entries_left -= 1
            if self._entries_left < 0 or len(self._files) >= MAX_FILES:
                limit = f"more than {MAX_FILES} manifests or {MAX_ENTRIES} files"
                text = f"the walk stopped here: {limit}; name narrower folders"
                self._problems.append(LoadProblem(folder, text, cut=True))
                return False
            is_folder = entry.is_dir(follow_symlinks=False)
            if rules and _ignored(entry.path, is_folder, rules):
                continue
            if self._wanted(entry.name):
                self._files.append(entry.path)
            elif is_folder and entry.name not in SKIPPED_FOLDERS:
                below.append(entry.path)
        self._search_later(below, depth, rules)
        return True

    def _search_later(self, below: list[str], depth: int, rules: _Rules) -> None:
        if depth >= MAX_DEPTH:
            self._problems += [
                LoadProblem(path, f"is nested deeper than {MAX_DEPTH} folders; not searched") for path in below
            ]
        else:
            self._stack += [(path, depth + 1, rules) for path in reversed(below)]

    def _note(self, lists: Listings, folder: str, stamp: FileStamp, listed: list[os.DirEntry[str]]) -> None:
        files = [entry for entry in listed if self._wanted(entry.name)]
        folders = [entry.name for entry in listed if entry.is_dir(follow_symlinks=False)]
        # a folder with a file's name is rare, and a clock of coarse steps is that of a file system whose folders may not tell
        if stamp[2] % COARSE_NS and not any(entry.is_dir(follow_symlinks=False) for entry in files):
            below = tuple(name for name in folders if name not in SKIPPED_FOLDERS)
            lists.listed[folder] = Listing(stamp, len(listed), tuple(entry.name for entry in files), below)


_name_of = operator.attrgetter("name")


def _outer_rules(top: Path) -> tuple[tuple[str, _IgnoreRules], ...]:
    """Ignore rules above the folder, up to the repository's root: a tool folder is often part of a larger project."""
    rules: list[tuple[str, _IgnoreRules]] = []
    for parent in top.parents:
        if os.path.exists(top / ".git"):
            break
        rules[:0] = _rules_of(parent)
        if os.path.exists(parent / ".git"):
            return tuple(rules)
    return ()


def _rules_of(folder: Path) -> tuple[tuple[str, _IgnoreRules], ...]:
    rules: list[tuple[str, _IgnoreRules]] = []
    for name in IGNORE_FILES:
        path = str(folder / name)
        if not os.path.lexists(path):
            continue
        # As with git, a link is none: it could lead out of the folder.
        read = read_regular(path, MAX_BYTES)
        if isinstance(read, LoadProblem):
            continue
        # Imported only where an ignore file stands: most tool folders have none, and start-up counts.
        from pathspec import GitIgnoreSpec

        try:
            lines = read[0].decode("utf-8", "replace").splitlines()
            rules.append((str(folder), GitIgnoreSpec.from_lines(lines)))
        except ValueError:
            continue
    return tuple(rules)


def ignoring(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Whether a path, relative and with ``/``, is one that these lines of an ignore file name. A line that is no pattern names nothing."""
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(patterns).match_file
    except ValueError:
        return lambda _path: False


def _ignored(path: str, is_folder: bool, rules: tuple[tuple[str, _IgnoreRules], ...]) -> bool:
    for base, spec in rules:
        relative = os.path.relpath(path, base).replace(os.sep, "/")
        if spec.match_file(relative + "/" if is_folder else relative):
            return True
    return False
