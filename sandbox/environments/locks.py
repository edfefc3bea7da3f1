"""A lock between processes on one file: taken without waiting, let go by whoever dies."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path


class FileLock:
    """A lock file; taking one never waits. What is held is let go by `close()` or by the end of the process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = -1

    def take(self, *, shared: bool) -> bool:
        """Take it, or turn what is held into the other kind; False when somebody else is in the way."""
        while True:
            if self._fd < 0:
                flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                self._fd = os.open(self.path, flags, 0o600)
            try:
                fcntl.flock(self._fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            except OSError as error:
                self.close()
                if error.errno in (errno.EAGAIN, errno.EACCES):
                    return False
                raise
            # a file that was removed in between locks nobody out
            try:
                there = os.stat(self.path, follow_symlinks=False)
            except FileNotFoundError:
                there = None
            here = os.fstat(self._fd)
            if there is not None and (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino):
                return True
            self.close()

    def stamp(self) -> None:
        """Note that the key is used now."""
        with contextlib.suppress(OSError):
            os.utime(self._fd)

    def forget(self) -> None:
        """Remove the file; only under an exclusive lock."""
        with contextlib.suppress(OSError):
            os.unlink(self.path)

    def close(self) -> None:
        """Let go of it; a second call does nothing."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
