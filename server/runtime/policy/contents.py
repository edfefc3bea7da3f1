"""What a tool's folder holds, as a digest: what a person's word about the tool is bound to, beside the manifest and the rights.

Bounded in files and bytes. What was hashed is kept by the facts of each file (device, inode, size, times), so that a folder that did
not change costs a look at its entries. Must not know what the digest is for.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Sequence

import msgspec

from tamis.protocols.manifest.reading import ExternalScript
from tamis.server.runtime.tools.reading import matches

MAX_ENTRIES = 10_000
"""So many files and folders are looked at. What a larger folder holds can change unseen: its digest is of this process alone."""
MAX_BYTES = 32 * 1024 * 1024
"""So many bytes are read of a folder; of files behind them the size, the inode and the times count."""
MAX_KEPT = 20_000
SETTLED_NS = 2_000_000_000
"""A file that changed later than so long ago is read anew: it may change again within one tick of its file system's clock."""
LEFT_OUT = frozenset(
    (".git", ".hg", ".svn", ".venv", "venv", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".idea", ".vscode")
)
"""Folders from which nothing is run."""
DECLARING = (
    "requirements.txt",
    "pyproject.toml",
    "uv.lock",
    "package.json",
    "package-lock.json",
    "bun.lock",
    "bun.lockb",
    "node_modules/**",
)
"""What belongs to a script whatever ``execution.files`` says: the packages that it runs with."""

_Facts = tuple[int, int, int, int, int]
_hashes: dict[_Facts, bytes] = {}
_here = os.urandom(16)


class Belonging(msgspec.Struct, frozen=True):
    """Which entries of a folder count: those that fit one of ``globs`` (none: all), and none in ``apart`` (absolute folders)."""

    globs: tuple[tuple[str, ...], ...] = ()
    apart: tuple[str, ...] = ()

    def has(self, relative: str) -> bool:
        """Whether a file counts."""
        return not self.globs or any(_fits(relative.split("/"), glob) for glob in self.globs)


def contents_digest(folder: str, handler: ExternalScript, files: Sequence[str], apart: Sequence[str]) -> str:
    """A digest of the regular files and links of ``folder``: names, contents, targets of links.

    ``files``: globs of what belongs to the script (``execution.files``); empty is everything but ``LEFT_OUT``. ``apart``: folders that
    the tool may write to itself. What cannot be read counts as unreadable. Never raises.
    """
    walk = _Walk(_belonging(handler, files, apart))
    return walk.digest() if walk.all_of(folder) else "unreadable"


class Unpinnable(Exception):  # noqa: N818 - an outcome, named as the outcome is
    """Files that no digest can pin, and why."""


def listed_files(folder: str, handler: ExternalScript, files: Sequence[str]) -> dict[str, bytes]:
    """The SHA-256 of each file that ``execution.files``, which are not empty, let belong to a script, by its path in ``folder``.

    The same files as in ``contents_digest``. Raises ``Unpinnable`` for what is no regular file, cannot be read, or is too much.
    """
    listing = _Listing(_belonging(handler, files, ()))
    if not listing.all_of(folder):
        raise Unpinnable("the tool's folder cannot be read")
    if listing.is_cut:
        raise Unpinnable(
            f"more than {MAX_ENTRIES} files, or {MAX_BYTES} bytes of those that belong, are in the tool's folder"
        )
    return listing.found


def _belonging(handler: ExternalScript, files: Sequence[str], apart: Sequence[str]) -> Belonging:
    globs = (*files, handler.script_path, *DECLARING) if files else ()
    return Belonging(tuple(tuple(glob.split("/")) for glob in globs), tuple(map(os.path.realpath, apart)))


class _Walk:
    def __init__(self, wanted: Belonging) -> None:
        self._wanted = wanted
        self._whole = hashlib.sha256()
        self._entries = 0
        self._bytes = 0

    @property
    def is_cut(self) -> bool:
        """Whether there was more than is looked at."""
        return self._entries > MAX_ENTRIES or self._bytes > MAX_BYTES

    def all_of(self, folder: str) -> bool:
        """Takes in a folder; False where it cannot be opened."""
        real = os.path.realpath(folder)
        try:
            descriptor = os.open(real, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return False
        self.folder(descriptor, real, "")
        return True

    def digest(self) -> str:
        if self._entries > MAX_ENTRIES:
            self._whole.update(_here)
        return self._whole.hexdigest()

    def folder(self, descriptor: int, path: str, relative: str) -> None:
        """Takes in what stands in an open folder, which is closed; no link is followed."""
        try:
            names = sorted(os.listdir(descriptor))
            for name in names:
                self._entries += 1
                if self._entries > MAX_ENTRIES:
                    return
                self._entry(descriptor, name, f"{path}/{name}", f"{relative}{name}")
        finally:
            os.close(descriptor)

    def _entry(self, parent: int, name: str, path: str, relative: str) -> None:
        try:
            facts = os.stat(name, dir_fd=parent, follow_symlinks=False)
            if stat.S_ISDIR(facts.st_mode):
                if name in LEFT_OUT or path in self._wanted.apart:
                    return
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
                self.folder(inner, path, relative + "/")
                return
            if not self._wanted.has(relative):
                return
            if stat.S_ISREG(facts.st_mode):
                self._take(relative, b"file", self._content(parent, name, facts))
            elif stat.S_ISLNK(facts.st_mode):
                self._take(relative, b"link", os.fsencode(os.readlink(name, dir_fd=parent)))
            else:
                self._take(relative, b"other", b"")
        except OSError:
            self._take(relative, b"unreadable", b"")

    def _take(self, relative: str, kind: bytes, content: bytes) -> None:
        for part in (os.fsencode(relative), kind, content):
            self._whole.update(len(part).to_bytes(8, "big"))
            self._whole.update(part)

    def _content(self, parent: int, name: str, facts: os.stat_result) -> bytes:
        known: _Facts = (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
        self._bytes += facts.st_size
        if self._bytes > MAX_BYTES:
            return repr(known).encode("ascii")
        kept = _hashes.get(known)
        if kept is not None:
            return kept
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
        with open(descriptor, "rb") as stream:
            digest = hashlib.sha256(stream.read(facts.st_size + 1)).digest()
        if time.time_ns() - max(facts.st_mtime_ns, facts.st_ctime_ns) > SETTLED_NS:
            if len(_hashes) >= MAX_KEPT:
                _hashes.clear()
            _hashes[known] = digest
        return digest


class _Listing(_Walk):
    """The files by their paths, in place of one digest."""

    def __init__(self, wanted: Belonging) -> None:
        super().__init__(wanted)
        self.found: dict[str, bytes] = {}

    def _take(self, relative: str, kind: bytes, content: bytes) -> None:
        if kind != b"file":
            what = {b"link": "a link", b"other": "no regular file"}.get(kind, "not readable")
            raise Unpinnable(f"{relative!a} is {what}")
        self.found[relative] = content


def _fits(parts: list[str], glob: Sequence[str]) -> bool:
    """Whether a path fits a glob, or lies in a folder that does; ``**`` is any number of parts. Linear in both."""
    at = _skipped({0}, glob)
    for part in parts:
        following: set[int] = set()
        for index in at:
            if index == len(glob) or glob[index] == "**":
                following.add(index)
            elif matches(part, glob[index]):
                following.add(index + 1)
        at = _skipped(following, glob)
    return len(glob) in at


def _skipped(at: set[int], glob: Sequence[str]) -> set[int]:
    """The places in a glob that are reached by taking ``**`` as nothing, too."""
    reached = set(at)
    for index in sorted(at):
        while index < len(glob) and glob[index] == "**":
            index += 1
            reached.add(index)
    return reached
