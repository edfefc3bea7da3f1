"""Making the folders below a tool's own that its manifest may write, without following a link on the way.

The sandbox never creates anything below a tool's folder (a link there could lead its set-up onto the host), so it is done
here, component by component (sandbox spec, Path walk).
"""

from __future__ import annotations

import contextlib
import os


def make_below(folder: str, relative: str) -> str:
    """Makes ``relative`` below ``folder`` where it is missing; returns its absolute path. Raises OSError with the cause."""
    current = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in relative.split("/"):
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=current)
            following = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=current)
            os.close(current)
            current = following
    finally:
        os.close(current)
    return f"{folder}/{relative}"
