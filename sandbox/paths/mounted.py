"""What stands at a place inside a sandbox, looked at from outside before anything runs there.

A backend that cannot mount by descriptor mounts by name; the name may have come to mean something else since it was
walked. So the mounted file must be the one that the descriptor has, as bubblewrap checks for its `--bind-fd`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from tamis.sandbox.model import Unavailable


def require_same(pid: int, places: Iterable[tuple[str, tuple[int, int]]]) -> None:
    """Compare each (path inside, (device, inode)) with what the process `pid` sees there. Raises `Unavailable`."""
    for place, wanted in places:
        try:
            found = _identity(pid, place)
        except OSError as error:
            raise Unavailable(
                f"{place} could not be looked at in the sandbox: {error.strerror}", "see whether /proc is mounted"
            ) from error
        if found != wanted:
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
        found = os.fstat(current)
        return found.st_dev, found.st_ino
    finally:
        os.close(current)
