"""The descriptors that a sandbox is started with: by name until it starts, as numbers in its arguments.

Must not know what any of them is for.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Callable, Sequence

import msgspec

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


# What a sandbox's program tells of itself while it runs: numbers by name, and the lines of its log.


_EXITED = re.compile(r"^\[I\]\S* pid=\d+ \(.*\) exited with status: (\d+),")
_SAID_LINES = 20


class StatusLines:
    """Reads bubblewrap's `--json-status-fd`, which comes in pieces, without blocking the loop."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.values: dict[str, int] = {}
        self.said: list[str] = []
        """What else was written there: nsjail's log."""
        self.on_exit: Callable[[], None] | None = None
        """Called once, when the script's exit code is known."""
        self._rest = b""
        self._ended = False
        self._changed = asyncio.Event()
        asyncio.get_running_loop().add_reader(fd, self._read)

    def _read(self) -> None:
        try:
            piece = os.read(self.fd, 65_536)
        except BlockingIOError:
            return
        if not piece:
            self._ended = True
            asyncio.get_running_loop().remove_reader(self.fd)
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"["):
                self._log(line.decode("utf-8", "replace"))
                continue
            with contextlib.suppress(msgspec.DecodeError):
                value: object = msgspec.json.decode(line)
                if isinstance(value, dict):
                    self.values.update({str(key): item for key, item in value.items() if isinstance(item, int)})  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - decoded JSON
        self._changed.set()
        if self.on_exit is not None and "exit-code" in self.values:
            call, self.on_exit = self.on_exit, None
            call()

    def _log(self, line: str) -> None:
        ended = _EXITED.search(line)
        if ended is not None:
            self.values["exit-code"] = int(ended[1])
        elif not line.startswith("[I]") and len(self.said) < _SAID_LINES:
            self.said.append(line[:500])

    def read_now(self) -> None:
        """Read what is there."""
        while not self._ended:
            before = (len(self.values), self._rest)
            self._read()
            if before == (len(self.values), self._rest):
                return

    async def wait_for(self, key: str) -> int | None:
        """The value of a key, or None when the stream ended without it."""
        while key not in self.values and not self._ended:
            self._changed.clear()
            await self._changed.wait()
        return self.values.get(key)

    def close(self) -> None:
        """Stop reading and release the descriptor; a second call does nothing."""
        if self.fd >= 0:
            asyncio.get_running_loop().remove_reader(self.fd)
            os.close(self.fd)
            self.fd = -1
