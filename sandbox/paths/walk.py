"""Opening paths one component at a time, without following a link (S1, S2).

A want of descriptors or memory is an OSError of its own: it says nothing about the path.
What is opened here is what gets bound: no path is looked up twice. Knows nothing of mounts or scripts' languages.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from tamis.sandbox.model import PathRefused, Unavailable, lacks

MAX_COMPONENTS = 64
MAX_NAME_BYTES = 255
_SPECIAL = ((stat.S_ISFIFO, "FIFO"), (stat.S_ISSOCK, "socket"), (stat.S_ISCHR, "device"), (stat.S_ISBLK, "device"))


class Opened:
    """An `O_PATH` descriptor of a file or folder, with what it was when it was opened. Close it with `close()`."""

    def __init__(self, fd: int, path: str, info: os.stat_result | None = None) -> None:
        self.fd = fd
        self.path = path
        self.stat = os.fstat(fd) if info is None else info

    @property
    def is_folder(self) -> bool:
        """True for a folder, False for a plain file; nothing else is ever opened."""
        return stat.S_ISDIR(self.stat.st_mode)

    def place(self) -> str:
        """Where it stands now, whatever became of the path that it was opened by; empty when it is nowhere to be seen."""
        place = os.readlink(f"/proc/self/fd/{self.fd}")
        return place if place.startswith("/") else ""

    def close(self) -> None:
        """Release the descriptor; a second call does nothing."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def relative_parts(path: str) -> tuple[str, ...]:
    """Split a relative path into names, refusing all that is not a plain walk downwards.

    `%2e` and the like are ordinary names here: nothing is decoded. Raises `PathRefused`.
    """
    if not path:
        raise PathRefused("the path is empty")
    if path.startswith("/"):
        raise PathRefused(f"the path {path!r} is absolute", "give it relative to the tool's folder")
    parts = path.split("/")
    if parts[0] == "." and len(parts) > 1:
        parts = parts[1:]
    _check_names(path, parts)
    return tuple(parts)


def _check_names(path: str, parts: list[str]) -> None:
    if len(parts) > MAX_COMPONENTS:
        raise PathRefused(f"the path has {len(parts)} parts; at most {MAX_COMPONENTS} are read")
    for name in parts:
        if name in ("", ".", ".."):
            raise PathRefused(f"the path {path!r} contains {name!r} as a part", "write it without '..', '.' and '//'")
        if "\0" in name or "\\" in name:
            raise PathRefused(f"the path {path!r} contains a NUL or a backslash", "use '/' between parts")
        if name.isascii() and len(name) <= MAX_NAME_BYTES:
            continue
        try:
            raw = os.fsencode(name)
        except UnicodeEncodeError as error:
            raise PathRefused(f"the path {path!r} cannot be written as bytes") from error
        if len(raw) > MAX_NAME_BYTES:
            raise PathRefused(f"a part of the path is longer than {MAX_NAME_BYTES} bytes")


def _descend(fd: int, parts: tuple[str, ...] | list[str], shown: str) -> tuple[int, os.stat_result]:
    """Walk down from `fd` (which stays open) and return a new descriptor of the last part, and what it is."""
    current = os.dup(fd)
    try:
        info = os.fstat(current)
        for index, name in enumerate(parts):
            try:
                following = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=current)
            except OSError as error:
                if lacks(error):
                    raise
                raise PathRefused(f"{shown}: {error.strerror} at {name!r}") from error
            os.close(current)
            current = following
            info = os.fstat(current)
            mode = info.st_mode
            if stat.S_ISLNK(mode):
                raise PathRefused(
                    f"{shown}: {name!r} is a symbolic link", "links are not followed: put the file itself there"
                )
            if index < len(parts) - 1 and not stat.S_ISDIR(mode):
                raise PathRefused(f"{shown}: {name!r} is not a folder")
    except BaseException:
        os.close(current)
        raise
    return current, info


def _plain(fd: int, info: os.stat_result, shown: str) -> Opened:
    mode = info.st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        os.close(fd)
        raise PathRefused(f"{shown} is a {special_kind(mode)}, neither a plain file nor a folder")
    return Opened(fd, shown, info)


def special_kind(mode: int) -> str:
    """What an entry of this mode is called that is no plain file, folder or link."""
    return next((name for is_kind, name in _SPECIAL if is_kind(mode)), "special file")


def open_absolute(path: str) -> Opened:
    """Open an absolute path from the root downwards. Raises `PathRefused`; a link anywhere is refused."""
    if not path.startswith("/"):
        raise PathRefused(f"the path {path!r} is not absolute")
    parts = [part for part in path.split("/") if part]
    _check_names(path, parts)
    root = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return _plain(*_descend(root, parts, path), path)
    finally:
        os.close(root)


def open_beneath(folder: Opened, path: str) -> Opened:
    """Open `path` below an opened folder. Raises `PathRefused`."""
    return _plain(*_descend(folder.fd, relative_parts(path), path), path)


class ResolvedScript:
    """A tool folder and the script in it, both opened. `path` is the script's normalised relative path."""

    def __init__(self, folder: Opened, script: Opened, path: str) -> None:
        self.folder = folder
        self.script = script
        self.path = path

    def close(self) -> None:
        """Release both descriptors."""
        self.folder.close()
        self.script.close()


def resolve_script(folder: str, script: str) -> ResolvedScript:
    """Open a tool's folder and its script.

    Raises `PathRefused` for `..`, absolute paths, NUL, backslashes, links anywhere, and for a script that is no
    plain file (a FIFO is never opened for reading: `O_PATH` does not block).
    """
    parts = relative_parts(script)
    opened = open_absolute(folder)
    try:
        if not opened.is_folder:
            raise PathRefused(f"{folder} is not a folder")
        file = open_beneath(opened, "/".join(parts))
        if file.is_folder:
            file.close()
            raise PathRefused(f"{script} is a folder, not a script")
    except BaseException:
        opened.close()
        raise
    return ResolvedScript(opened, file, "/".join(parts))


# What stands at a place inside a sandbox, looked at from outside before anything runs there. A backend that cannot mount by descriptor mounts by
# name; the name may have come to mean something else since it was walked. So the mounted file must be the one that the descriptor has, as bubblewrap
# checks for its `--bind-fd`.


def require_same(pid: int, places: Iterable[tuple[str, tuple[int, int]]]) -> None:
    """Compare each (path inside, (device, inode)) with what the process `pid` sees there. Raises `Unavailable`."""
    for place, wanted in places:
        try:
            identity = _identity(pid, place)
        except OSError as error:
            raise Unavailable(
                f"{place} could not be looked at in the sandbox: {error.strerror}", "see whether /proc is mounted"
            ) from error
        if identity != wanted:
            raise Unavailable(
                f"what was to be shown at {place} was replaced while the sandbox was set up",
                "leave the folder alone while a tool starts",
            )


def _identity(pid: int, place: str) -> tuple[int, int]:
    """(device, inode) of a path in the root of a process; a link on the way is an error."""
    current = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in place.strip("/").split("/"):
            following = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=current)
            os.close(current)
            current = following
        status = os.fstat(current)
        return status.st_dev, status.st_ino
    finally:
        os.close(current)
