"""Making the folders that a tool was granted for writing, below its own or below an operator's root, without following a link on the way.

The sandbox never creates anything below a tool's folder (a link there could lead its set-up onto the host), so it is done
here, component by component (sandbox spec, Path walk).
"""

from __future__ import annotations

import contextlib
import os


def make_below(folder: str, relative: str) -> str:
    """Makes ``relative`` below a real absolute ``folder`` where it is missing; returns its absolute path.

    Raises OSError or the sandbox's ``PathRefused`` with the cause; what was made until then stays.
    """
    from tamis.sandbox.paths.walk import open_absolute, relative_parts

    if not relative:
        return folder
    with open_absolute(folder) as top:
        current = os.dup(top.fd)
        try:
            for name in relative_parts(relative):
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=current)
                following = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=current)
                os.close(current)
                current = following
        finally:
            os.close(current)
    return f"{folder.rstrip('/')}/{relative}"
