"""Framing of JSON-RPC messages on a byte stream: Content-Length headers or one message per line.

The first byte decides for the whole stream (interface, Command line): ``{`` or ``[`` after blanks is newline-delimited, anything
else headers, whose names are read in any letter case. Pure: bytes in, bodies out.
"""

from __future__ import annotations

from typing import Literal

Framing = Literal["headers", "lines"]

MAX_MESSAGE_BYTES = 256 * 1024 * 1024
MAX_HEADER_BYTES = 16 * 1024
_BLANKS = b" \t\r\n"


class FramingError(Exception):
    """The stream cannot be read as messages at this place; reading goes on behind it where that is possible."""


class FrameDecoder:
    """Collects bytes and gives complete message bodies.

    Cost is linear in the bytes fed: a search goes on where the last one ended, and the buffer is joined once per message.
    """

    __slots__ = ("_buffer", "_expected", "_searched", "framing")

    def __init__(self) -> None:
        self.framing: Framing | None = None
        self._buffer = bytearray()
        self._searched = 0
        self._expected: int | None = None

    def feed(self, data: bytes) -> list[bytes | FramingError]:
        """Takes the next bytes of the stream; returns the bodies completed by them, with errors in their place."""
        self._buffer += data
        found: list[bytes | FramingError] = []
        while True:
            try:
                body = self._next()
            except FramingError as error:
                found.append(error)
                continue
            if body is None:
                return found
            if body.strip(_BLANKS):
                found.append(body)

    def end(self) -> list[bytes | FramingError]:
        """What the end of the stream completes: a last line without its newline."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        if self.framing == "lines" and rest.strip(_BLANKS):
            return [rest]
        return []

    def _next(self) -> bytes | None:
        if self.framing is None:
            start = self._buffer.lstrip(_BLANKS)
            if not start:
                self._buffer.clear()
                return None
            self.framing = "lines" if bytes(start[:1]) in (b"{", b"[") else "headers"
        return self._line() if self.framing == "lines" else self._framed()

    def _line(self) -> bytes | None:
        at = self._buffer.find(b"\n", self._searched)
        if at < 0:
            if len(self._buffer) > MAX_MESSAGE_BYTES:
                self._buffer.clear()
                self._searched = 0
                raise FramingError(f"a message is larger than {MAX_MESSAGE_BYTES} bytes")
            self._searched = len(self._buffer)
            return None
        self._searched = 0
        return self._take(at + 1)

    def _framed(self) -> bytes | None:
        if self._expected is None:
            while bytes(self._buffer[:1]) in (b"\r", b"\n"):
                del self._buffer[:1]
            at = self._buffer.find(b"\r\n\r\n", max(0, self._searched - 3))
            if at < 0:
                if len(self._buffer) > MAX_HEADER_BYTES:
                    self._resynchronise()
                    raise FramingError(f"a header block is longer than {MAX_HEADER_BYTES} bytes")
                self._searched = len(self._buffer)
                return None
            self._searched = 0
            self._expected = _content_length(self._take(at + 4))
        if len(self._buffer) < self._expected:
            return None
        body = self._take(self._expected)
        self._expected = None
        return body

    def _resynchronise(self) -> None:
        at = self._buffer.lower().find(b"content-length:", 1)
        del self._buffer[: at if at >= 0 else len(self._buffer)]
        self._searched = 0

    def _take(self, count: int) -> bytes:
        body = bytes(self._buffer[:count])
        del self._buffer[:count]
        return body


def encode_frame(body: bytes, framing: Framing) -> bytes:
    """One message as it goes out; a body never holds a raw newline, so a line stays a line."""
    return body + b"\n" if framing == "lines" else b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def _content_length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            text = value.strip()
            if text.isdigit() and len(text) < 12 and int(text) <= MAX_MESSAGE_BYTES:
                return int(text)
            raise FramingError("Content-Length is not a number of bytes within the limit")
    raise FramingError("a header block has no Content-Length")
