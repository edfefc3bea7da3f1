"""Reading a file of /proc whole. Several are read at every call, so it is done with the fewest system calls and no objects."""

from __future__ import annotations

import os

_PIECE = 65_536


def read(path: str) -> bytes:
    """The content of a file. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        found = os.read(fd, _PIECE)
        piece = found
        while piece:
            piece = os.read(fd, _PIECE)
            found += piece
    finally:
        os.close(fd)
    return found
