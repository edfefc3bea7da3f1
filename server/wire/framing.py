"""Framing of messages on a byte stream: Content-Length headers (LSP's base protocol) or one message per line.

Pure: bytes in, bodies out. What cannot be read as a message becomes an error in its place, and reading goes on behind it.
"""

from __future__ import annotations

import re
from typing import Literal

from tamis.server.wire.jsonrpc import INVALID_REQUEST, PARSE_ERROR, RpcError

Framing = Literal["headers", "lines"]

MAX_MESSAGE_BYTES = 256 * 1024 * 1024
MAX_HEADER_BYTES = 64 * 1024

_BLANKS = re.compile(rb"[ \t\r\n]*")
_HEADERS_END = re.compile(rb"\r?\n\r?\n")
_LENGTH = re.compile(rb"(?im)^[ \t]*content-length[ \t]*:[ \t]*(\d{1,15})[ \t]*\r?$")
_LENGTH_NAME = re.compile(rb"(?i)content-length[ \t]*:")
_USUAL_HEADER_BYTES = 1024


class FrameDecoder:
    """Collects bytes and gives complete message bodies.

    Without a given framing the first byte decides for the whole stream (interface, Command line): ``{`` or ``[`` after blanks
    is newline-delimited, anything else headers, whose names are read in any letter case. Bodies of more than ``limit`` bytes
    are read over, not kept. Cost is linear in the bytes fed: a search goes on where the last one ended.
    """

    __slots__ = ("_buffer", "_expected", "_limit", "_refused", "_searched", "_skip", "framing")

    def __init__(self, framing: Framing | None = None, limit: int = MAX_MESSAGE_BYTES) -> None:
        self.framing: Framing | None = framing
        self._limit = limit
        self._buffer = bytearray()
        self._searched = 0
        self._expected: int | None = None
        self._skip = 0
        self._refused = False

    def feed(self, data: bytes) -> list[bytes | RpcError]:
        """Takes the next bytes of the stream; returns the bodies completed by them, with errors in their place."""
        self._buffer += data
        found: list[bytes | RpcError] = []
        while self._advance(found):
            pass
        return found

    def end(self) -> list[bytes | RpcError]:
        """What the end of the stream completes: a last line without its newline; bytes that began no message are said."""
        begun = self._expected is not None or self._skip > 0
        rest = self._take(len(self._buffer))
        if (
            self.framing == "headers"
            and not begun
            and rest.strip()
            and not rest.lower().lstrip().startswith(b"content-")
        ):
            text = "what was read is no message: one begins with {, [ or a Content-Length header"
            return [RpcError(PARSE_ERROR, text)]
        return [rest] if self.framing == "lines" and rest and not rest.isspace() else []

    def _advance(self, found: list[bytes | RpcError]) -> bool:
        """Reads one thing; False when more bytes are needed."""
        if self.framing is None:
            self._drop_blanks()
            if not self._buffer:
                return False
            self.framing = "lines" if self._buffer[0] in b"{[" else "headers"
        return self._line(found) if self.framing == "lines" else self._frame(found)

    def _line(self, found: list[bytes | RpcError]) -> bool:
        at = self._buffer.find(b"\n", self._searched)
        size = len(self._buffer) if at < 0 else at
        if size > self._limit and not self._refused:
            found.append(self._too_large())
            self._refused = True
        if at < 0:
            if self._refused:
                self._buffer.clear()
            self._searched = len(self._buffer)
            return False
        line = self._take(at + 1)
        if not self._refused and not line.isspace():
            found.append(line)
        self._refused = False
        return True

    def _frame(self, found: list[bytes | RpcError]) -> bool:
        if self._skip:
            self._skip -= len(self._take(min(self._skip, len(self._buffer))))
            if self._skip:
                return False
        if self._expected is None:
            self._drop_blanks()
            end = _HEADERS_END.search(self._buffer, max(0, self._searched - 3), MAX_HEADER_BYTES)
            if end is None:
                if len(self._buffer) <= MAX_HEADER_BYTES:
                    self._searched = len(self._buffer)
                    return False
                found.append(RpcError(PARSE_ERROR, f"no end of the headers within {MAX_HEADER_BYTES} bytes"))
                self._resynchronise()
                return True
            length = _LENGTH.search(self._take(end.end()))
            if length is None:
                found.append(
                    RpcError(PARSE_ERROR, "a message without a Content-Length header that is a number of bytes")
                )
                return True
            size = int(length[1])
            if size > self._limit:
                found.append(self._too_large())
                self._skip = size
                return True
            self._expected = size
        if len(self._buffer) < self._expected:
            return False
        found.append(self._take(self._expected))
        self._expected = None
        return True

    def _resynchronise(self) -> None:
        # Only the end of what was given up may still begin a message, so that each byte is searched a bounded number of times.
        name = _LENGTH_NAME.search(self._buffer, MAX_HEADER_BYTES - _USUAL_HEADER_BYTES)
        self._take(len(self._buffer) if name is None else name.start())

    def _drop_blanks(self) -> None:
        blanks = _BLANKS.match(self._buffer)
        if blanks is not None and blanks.end():
            self._take(blanks.end())

    def _take(self, count: int) -> bytes:
        body = bytes(memoryview(self._buffer)[:count])
        del self._buffer[:count]
        self._searched = 0
        return body

    def _too_large(self) -> RpcError:
        return RpcError(INVALID_REQUEST, f"a message of more than {self._limit} bytes is not read; send it in parts")


def encode_frame(body: bytes, framing: Framing) -> bytes:
    """One message as it goes out; a body never holds a raw newline, so a line stays a line."""
    return body + b"\n" if framing == "lines" else b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
