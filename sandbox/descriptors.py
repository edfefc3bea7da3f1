"""The descriptors that a sandbox is started with: by name until it starts, as numbers in its arguments.

Must not know what any of them is for.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from tamis.sandbox.job import Arg, ArgFile, FdPath


class Descriptors:
    """Descriptors by name; `close()` releases whatever was not taken."""

    def __init__(self) -> None:
        self._open: dict[str, int] = {}

    def put(self, name: str, fd: int) -> int:
        """Own a descriptor under a name."""
        self._open[name] = fd
        return fd

    def number(self, name: str) -> int:
        """The number behind a name."""
        return self._open[name]

    def take(self, name: str) -> int:
        """Hand a descriptor over to the caller."""
        return self._open.pop(name)

    def close(self, *names: str) -> None:
        """Close these, or all."""
        for name in names or tuple(self._open):
            fd = self._open.pop(name, None)
            if fd is not None:
                os.close(fd)


def memory_file(name: str, content: bytes) -> int:
    """An anonymous file positioned at its start."""
    fd = os.memfd_create(name, os.MFD_CLOEXEC)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(fd, view) :]
        os.lseek(fd, 0, os.SEEK_SET)
    except BaseException:
        os.close(fd)
        raise
    return fd


def pipe(fds: Descriptors, read_name: str, write_name: str) -> None:
    """Open a pipe under two names."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    fds.put(read_name, reading)
    fds.put(write_name, writing)


def words(args: Sequence[Arg], fds: Descriptors, used: set[int]) -> list[str]:
    """The arguments with every stand-in as the number of its descriptor, which is noted in `used`."""
    return [arg if type(arg) is str else _number(arg, fds, used) for arg in args]


def _number(arg: Arg, fds: Descriptors, used: set[int]) -> str:
    if isinstance(arg, str):
        return arg
    if isinstance(arg, ArgFile):
        content = os.fsencode("\0".join((*words(arg.args, fds, used), "")))
        fds.put(arg.name, memory_file(arg.name, content))
    number = fds.number(arg.name)
    used.add(number)
    return f"/proc/self/fd/{number}" if isinstance(arg, FdPath) else str(number)
