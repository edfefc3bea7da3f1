"""Whether a file or folder is another than before, by what the file system says of it. Must not know what is in it."""

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
