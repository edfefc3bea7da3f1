"""A conversation with a program while it runs: lines in both directions, each bounded, none lost.

What a run is handed on standard input is otherwise one piece, and what it prints is looked at when it has ended. Knows lines, not
what they say.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable

# Moving bytes between the daemon and a script's three streams at the same time (S8), each within its cap.


class Sink:
    """Reads a stream to its end. Keeps `keep` bytes; calls `on_over` once more than `allow` have come."""

    def __init__(
        self,
        fd: int,
        *,
        keep: int,
        allow: int,
        on_over: Callable[[], None],
        on_piece: Callable[[bytes], None] | None,
        skip: int = 0,
    ) -> None:
        """`skip` bytes come before the stream's own and are not part of it."""
        os.set_blocking(fd, False)
        self.fd = fd
        self.keep = keep
        self.allow = allow
        self.skip = skip
        self.total = 0
        self.kept = bytearray()
        self.ended = asyncio.Event()
        self._paused = False
        self._on_over = on_over
        self._on_piece = on_piece
        asyncio.get_running_loop().add_reader(fd, self._read)

    @property
    def truncated(self) -> bool:
        """Whether more came than was kept."""
        return self.total > self.keep

    def _read(self) -> None:
        try:
            piece = os.read(self.fd, _PIECE)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        if not piece:
            self.close()
            return
        if self.skip:
            over, self.skip = self.skip, max(0, self.skip - len(piece))
            piece = piece[over:]
            if not piece:
                return
        self._take(piece)

    def pause(self) -> None:
        """Read no more for now: who writes soon waits."""
        if self.fd >= 0 and not self._paused:
            self._paused = True
            asyncio.get_running_loop().remove_reader(self.fd)

    def go_on(self) -> None:
        """Read again."""
        if self.fd >= 0 and self._paused:
            self._paused = False
            asyncio.get_running_loop().add_reader(self.fd, self._read)

    def _take(self, piece: bytes) -> None:
        room = self.keep - len(self.kept)
        was_within = self.total <= self.allow
        self.total += len(piece)
        if room > 0:
            self.kept += piece[:room]
            if self._on_piece is not None:
                self._on_piece(piece[:room])
        if was_within and self.total > self.allow:
            self._on_over()

    def close(self) -> None:
        """Stop reading; a second call does nothing."""
        if self.fd >= 0:
            asyncio.get_running_loop().remove_reader(self.fd)
            os.close(self.fd)
            self.fd = -1
        self.ended.set()


class Source:
    """Writes all of `content` and closes. A script that does not read its input to the end is no error."""

    def __init__(self, fd: int, content: bytes) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self._rest = memoryview(content)
        self._write()
        if self.fd >= 0:
            asyncio.get_running_loop().add_writer(fd, self._write)

    def _write(self) -> None:
        try:
            while self._rest:
                self._rest = self._rest[os.write(self.fd, self._rest[:_PIECE]) :]
        except BlockingIOError:
            return
        except OSError:
            pass  # EPIPE: nobody reads any more
        self.close()

    def close(self) -> None:
        """Close the stream; a second call does nothing."""
        if self.fd >= 0:
            asyncio.get_running_loop().remove_writer(self.fd)
            os.close(self.fd)
            self.fd = -1


_PIECE = 65_536


class TalkEnded(Exception):  # noqa: N818 - an outcome, named as the outcome is
    """The program reads no more."""


class Talk:
    """One conversation; used up with one run. All methods are called on the run's loop."""

    def __init__(self, *, max_line_bytes: int = 1_048_576, max_waiting_bytes: int = 8_388_608) -> None:
        """`max_line_bytes` bounds a line of the program, which is ended with the limit `stdout` beyond it. Above
        `max_waiting_bytes` of unread lines, and of unwritten ones, the faster side waits."""
        self.max_line_bytes = max_line_bytes
        self.max_waiting_bytes = max_waiting_bytes
        self.began = asyncio.Event()
        self._lines: deque[bytes] = deque()
        self._waiting = 0
        self._arrived = asyncio.Event()
        self._ended = False
        self._sink: TalkSink | None = None
        self._fd = -1
        self._rest = bytearray()
        self._room = asyncio.Event()
        self._room.set()
        self._closing = False

    # For the engine

    def open(self, stdin: int) -> None:
        """Take over the program's standard input."""
        os.set_blocking(stdin, False)
        self._fd = stdin
        self.began.set()
        self._write()

    def listen(self, sink: TalkSink) -> None:
        """Learn who reads."""
        self._sink = sink

    def heard(self, line: bytes) -> None:
        """A line came, without its line feed."""
        self._lines.append(line)
        self._waiting += len(line)
        self._arrived.set()
        if self._waiting > self.max_waiting_bytes and self._sink is not None:
            self._sink.pause()

    def over(self) -> None:
        """The run has ended, or never began: nothing more comes."""
        self._ended = True
        self._arrived.set()
        self._room.set()
        self.began.set()
        self._close()

    # For who talks

    async def read(self) -> bytes | None:
        """The next line, without its line feed; None when the program has ended and every line was read."""
        while not self._lines:
            if self._ended:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        line = self._lines.popleft()
        self._waiting -= len(line)
        if self._waiting <= self.max_waiting_bytes // 2 and self._sink is not None:
            self._sink.go_on()
        return line

    async def write(self, line: bytes) -> None:
        """Send a line; a line feed is added. Waits while the program is far behind; raises `TalkEnded` when it reads no more."""
        await self.began.wait()
        if self._ended or self._closing or self._fd < 0:
            raise TalkEnded
        self._rest += line + b"\n"
        self._write()
        while len(self._rest) > self.max_waiting_bytes and not self._ended:
            self._room.clear()
            await self._room.wait()

    def close(self) -> None:
        """End the program's standard input when all was written: the usual way to ask a program to end."""
        self._closing = True
        if self.began.is_set() and not self._rest:
            self._close()

    def _write(self) -> None:
        if self._fd < 0:
            return
        try:
            while self._rest:
                del self._rest[: os.write(self._fd, self._rest[:_PIECE])]
        except BlockingIOError:
            asyncio.get_running_loop().add_writer(self._fd, self._write)
            return
        except OSError:
            # nobody reads any more
            self._close()
            return
        asyncio.get_running_loop().remove_writer(self._fd)
        self._room.set()
        if self._closing:
            self._close()

    def _close(self) -> None:
        self._rest.clear()
        self._room.set()
        if self._fd >= 0:
            asyncio.get_running_loop().remove_writer(self._fd)
            os.close(self._fd)
            self._fd = -1


class TalkSink(Sink):
    """Reads a program's standard output for a conversation; keeps nothing of it."""

    def __init__(self, fd: int, talk: Talk, on_over: Callable[[], None]) -> None:
        self._talk = talk
        self._line = bytearray()
        self._refused = False
        talk.listen(self)
        super().__init__(fd, keep=0, allow=0, on_over=on_over, on_piece=None)

    def _take(self, piece: bytes) -> None:
        if self._refused:
            return
        *lines, rest = piece.split(b"\n")
        for line in lines:
            self._line += line
            if len(self._line) > self._talk.max_line_bytes:
                self._too_long()
                return
            self._talk.heard(bytes(self._line).removesuffix(b"\r"))
            self._line.clear()
        self._line += rest
        if len(self._line) > self._talk.max_line_bytes:
            self._too_long()

    def _too_long(self) -> None:
        self._refused = True
        self._line.clear()
        self._on_over()

    def close(self) -> None:
        """Stop reading; a last line without its line feed counts."""
        if self.fd >= 0 and self._line:
            self._talk.heard(bytes(self._line))
            self._line.clear()
        super().close()
