"""Moving bytes between the daemon and a script's three streams at the same time (S8), each within its cap."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

_PIECE = 65_536


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
