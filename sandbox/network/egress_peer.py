"""One end of a proxied conversation: reads with a buffer, request heads, lines, and an end that loses nothing.

Knows the framing of `egress_wire`; decides nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from tamis.sandbox.network.egress_wire import RequestError, check_request_line, find_answer_end, find_head_end

READ: Final = 64 * 1024
_LINGER_BYTES: Final = 256 * 1024
_LINGER_SECONDS: Final = 0.5


class Peer:
    """One end of a conversation, with what was read of it but not yet used."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.buffer = bytearray()
        self.answered = False
        """Whether bytes of another peer were relayed to this one, so that no answer of our own fits any more."""
        # drain() then waits for the kernel to hold everything, and an abort() after it loses nothing.
        writer.transport.set_write_buffer_limits(high=0)

    async def more(self) -> bool:
        """Reads on into the buffer; False at the end of their side."""
        piece = await self.reader.read(READ)
        self.buffer += piece
        return bool(piece)

    async def read(self, size: int) -> bytes:
        """At least one byte and at most `size`; nothing at the end of their side."""
        if not self.buffer:
            return await self.reader.read(size)
        piece = bytes(self.buffer[:size])
        del self.buffer[:size]
        return piece

    async def peek(self) -> bytes:
        """The next byte, left where it is. ConnectionResetError when there is none."""
        if not self.buffer and not await self.more():
            raise ConnectionResetError
        return bytes(self.buffer[:1])

    async def read_head(self) -> bytes:
        """A request head with its empty line. RequestError as soon as it cannot become one."""
        seen, line_seen = 0, False
        while (end := find_head_end(self.buffer, seen - 3)) is None:
            line_end = -1 if line_seen else self.buffer.find(b"\r\n")
            if line_end >= 0:  # HTTP/0.9 and the like never send an empty line, so do not wait for it
                check_request_line(bytes(self.buffer[:line_end]))
                line_seen = True
            seen = len(self.buffer)
            if not await self.more():
                if not self.buffer:
                    raise ConnectionResetError
                raise RequestError("the connection ended within the request head")
        return await self.read(end)

    async def read_answer_head(self) -> bytes:
        """The head of an answer with its empty line; nothing when what comes is none."""
        seen = 0
        while (end := find_answer_end(self.buffer, seen - 3)) is None:
            seen = len(self.buffer)
            if not await self.more():
                return b""
        return await self.read(end) if end else b""

    async def read_line(self, limit: int) -> bytes:
        """A line without its CR LF."""
        while (end := self.buffer.find(b"\n")) < 0:
            if len(self.buffer) > limit or not await self.more():
                raise RequestError("a line of the body is too long or has no end")
        if end > limit or not self.buffer.endswith(b"\r", 0, end):
            raise RequestError("a line of the body does not end in CR LF or is too long")
        return (await self.read(end + 1))[:-2]

    async def linger(self) -> None:
        """Ends our side and reads the rest of theirs for a moment: closing over unread bytes would reset the answer."""
        with contextlib.suppress(OSError):
            async with asyncio.timeout(_LINGER_SECONDS):
                await self.writer.drain()
                if self.writer.can_write_eof():
                    self.writer.write_eof()
                left = _LINGER_BYTES
                while left > 0 and (piece := await self.reader.read(READ)):
                    left -= len(piece)
