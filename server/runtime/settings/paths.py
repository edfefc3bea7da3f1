"""Names of files: whether the system can be asked for one, and whether what stands there is another file than before."""

from __future__ import annotations

import os

Stamp = tuple[int, int, int]
"""Time of change in nanoseconds, size in bytes, number of the inode."""


def stamp_of(path: str) -> Stamp | None:
    """What tells that a file is another than before; None when there is none."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def folder_time(folder: str) -> int:
    """When something in a folder last came, went or was renamed, in nanoseconds; -1 where it cannot be asked."""
    try:
        return os.stat(folder, follow_symlinks=False).st_mtime_ns
    except (OSError, ValueError):
        return -1


def can_be_path(name: str) -> bool:
    """Whether the system can be asked for a name at all: it holds no NUL and no half of a surrogate pair."""
    try:
        return b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        return False


def shown_name(name: str) -> str:
    """A name that no file can have, as messages show it."""
    return name.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")
