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

_NOTHING = re.compile(rb"(?:[ \t\r\n\x00]|\xef\xbb\xbf)*")
"""What may stand before a message and says nothing: blanks, NULs, marks of UTF-8."""
_HEADERS_END = re.compile(rb"\r?\n\r?\n")
_LENGTH = re.compile(rb"(?i)content-length[ \t]*:[ \t]*(\d{1,15})[ \t]*\r?\n")
"""A header's line. A body that is JSON cannot hold one: its strings have no raw line end."""
_PLAIN_HEAD = re.compile(rb"Content-Length: ([1-9]\d{0,14})\r\n\r\n(?=[{\[])")
_LENGTH_NAME = re.compile(rb"(?i)content-length[ \t]*:")
_LONGEST_LENGTH = 128
_HEADER_LINE = re.compile(rb"[ \t]*[A-Za-z][A-Za-z0-9-]*[ \t]*:[^\n]*\n")
_JSON_LINE = re.compile(rb"(?:^|\n)[ \t]*(?=[{\[])")
_JSON_ENDS = {123: b"}", 91: b"]"}


class FrameDecoder:
    """Collects bytes and gives complete message bodies.

    Without a given framing the first byte decides for the whole stream (interface, Command line): ``{`` or ``[`` after blanks
    is newline-delimited, anything else headers, whose names are read in any letter case. Bodies of more than ``limit`` bytes
    are read over, not kept. Cost is linear in the bytes fed: a search goes on where the last one ended.

    Bytes between messages that are none, and a length that is a little too large or too small, cost at most the frame that they touch: behind
    them the next header is looked for. NULs and marks of UTF-8 before a message are passed over. A header is believed otherwise.
    """

    __slots__ = ("_buffer", "_decides", "_expected", "_limit", "_lost", "_refused", "_searched", "_too_long", "framing")

    def __init__(self, framing: Framing | None = None, limit: int = MAX_MESSAGE_BYTES) -> None:
        self.framing: Framing | None = framing
        self._limit = limit
        self._buffer = bytearray()
        self._searched = 0
        self._expected: int | None = None
        self._too_long = False
        self._lost = False
        self._refused = False
        self._decides = framing is None
        """Whether it is still open which framing the stream has."""

    def feed(self, data: bytes) -> list[bytes | RpcError]:
        """Takes the next bytes of the stream; returns the bodies completed by them, with errors in their place."""
        if (
            not self._buffer
            and self.framing == "headers"
            and self._expected is None
            and not (self._decides or self._lost)
        ):
            # Most of what arrives: one message as it was written, with its one header.
            body = _whole_message(data, self._limit)
            if body is not None:
                return [body]
        self._buffer += data
        messages: list[bytes | RpcError] = []
        while self._advance(messages):
            pass
        return messages

    def end(self) -> list[bytes | RpcError]:
        """What the end of the stream completes: a last line without its newline; bytes that began no message are said."""
        begun = self._expected is not None or self._lost
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

    def _advance(self, messages: list[bytes | RpcError]) -> bool:
        """Reads one thing; False when more bytes are needed."""
        if self.framing is None:
            self._drop_nothing()
            # the beginning of a mark of UTF-8
            if not self._buffer or bytes(self._buffer[:3]) in (b"\xef", b"\xef\xbb"):
                return False
            self.framing = "lines" if self._buffer[0] in b"{[" else "headers"
        return self._line(messages) if self.framing == "lines" else self._frame(messages)

    def _line(self, messages: list[bytes | RpcError]) -> bool:
        at = self._buffer.find(b"\n", self._searched)
        size = len(self._buffer) if at < 0 else at
        if size > self._limit and not self._refused:
            messages.append(self._too_large())
            self._refused = True
        if at < 0:
            if self._refused:
                self._buffer.clear()
            self._searched = len(self._buffer)
            return False
        line = self._take(at + 1)
        if not self._refused and not line.isspace():
            messages.append(line)
        self._refused = False
        return True

    def _frame(self, messages: list[bytes | RpcError]) -> bool:
        if self._lost:
            return self._look_for_header(messages)
        if self._expected is not None:
            return self._framed_body(self._expected, messages)
        self._drop_nothing()
        if self._decides and self._turns_to_lines(messages):
            return True
        end = _HEADERS_END.search(self._buffer, max(0, self._searched - 3), MAX_HEADER_BYTES)
        if end is None:
            if len(self._buffer) <= MAX_HEADER_BYTES:
                self._searched = len(self._buffer)
                return False
            return self._lose(messages, f"no end of the headers within {MAX_HEADER_BYTES} bytes")
        head = bytes(memoryview(self._buffer)[: end.end()])
        length = None
        for match in _LENGTH.finditer(head):
            # what stands nearest to the body belongs to it
            length = match
        if length is None:
            self._take(end.end())
            return self._lose(messages, "a message without a Content-Length header that is a number of bytes")
        self._take(end.end())
        if not _is_headers(head[: length.start()]):
            messages.append(
                RpcError(PARSE_ERROR, "bytes before a Content-Length header are no header, and were left out")
            )
        self._decides = False
        self._expected = int(length[1])
        self._too_long = self._expected > self._limit
        if self._too_long:
            messages.append(self._too_large())
        return True

    def _framed_body(self, size: int, messages: list[bytes | RpcError]) -> bool:
        """The body. Where it cannot be JSON its length may be wrong: then its end may be the beginning of the next header.

        Further in it no header is looked for: what a careless host did not escape must never be taken for a message.
        """
        if self._too_long:
            return self._read_over(size)
        if len(self._buffer) < size:
            return False
        self._expected = None
        if _is_json(self._buffer, size):
            messages.append(self._take(size))
            return True
        messages.append(bytes(memoryview(self._buffer)[:size]))
        self._take(max(0, size - _LONGEST_LENGTH))
        self._lost = True
        return True

    def _read_over(self, size: int) -> bool:
        """Lets go of a body that is too long."""
        gone = len(self._take(min(size, len(self._buffer))))
        self._expected = size - gone if gone < size else None
        self._too_long = self._expected is not None
        return not self._too_long

    def _lose(self, messages: list[bytes | RpcError], text: str) -> bool:
        """Where the next message begins is not known any more; said once."""
        messages.append(RpcError(PARSE_ERROR, text))
        self._lost = True
        return True

    def _look_for_header(self, messages: list[bytes | RpcError]) -> bool:
        header = _LENGTH.search(self._buffer, max(0, self._searched - _LONGEST_LENGTH))
        if header is None:
            if self._decides and self._turns_to_lines(None):
                return True
            self._take(max(0, len(self._buffer) - _LONGEST_LENGTH))
            self._searched = len(self._buffer)
            return False
        self._take(header.start())
        self._lost = False
        return True

    def _turns_to_lines(self, messages: list[bytes | RpcError] | None) -> bool:
        """Before the first message, a line that begins as JSON means lines; what stood before it was none."""
        line = _JSON_LINE.search(self._buffer)
        if line is None or _LENGTH_NAME.search(self._buffer, 0, line.start()) is not None:
            return False
        self._take(line.end())
        if messages is not None:
            messages.append(RpcError(PARSE_ERROR, "what stood before the first message is none, and was left out"))
        self._lost = self._decides = False
        self.framing = "lines"
        return True

    def _drop_nothing(self) -> None:
        nothing = _NOTHING.match(self._buffer)
        if nothing is not None and nothing.end():
            self._take(nothing.end())

    def _take(self, count: int) -> bytes:
        body = bytes(memoryview(self._buffer)[:count])
        del self._buffer[:count]
        self._searched = 0
        return body

    def _too_large(self) -> RpcError:
        return RpcError(INVALID_REQUEST, f"a message of more than {self._limit} bytes is not read; send it in parts")


def _is_headers(head: bytes) -> bool:
    """Whether all of it is lines of headers; nothing, NULs and marks of UTF-8 are as good."""
    at = 0
    while at < len(head):
        line = _HEADER_LINE.match(head, at)
        if line is None:
            return not head[at:].strip(b" \t\r\n\x00\xef\xbb\xbf")
        at = line.end()
    return True


def _whole_message(data: bytes, limit: int) -> bytes | None:
    """The body of bytes that are one message, with nothing but its length before it; None for all else."""
    head = _PLAIN_HEAD.match(data)
    if head is None:
        return None
    size, start = int(head[1]), head.end()
    if size > limit or len(data) != start + size or _JSON_ENDS.get(data[start]) != data[-1:]:
        return None
    return bytes(data[start:])


def _is_json(buffer: bytearray, size: int) -> bool:
    """Whether so many bytes begin and end as a JSON object or array, or are blank; the rest is its reader's matter."""
    body = memoryview(buffer)[:size]
    try:
        first = next((byte for byte in body if byte not in b" \t\r\n"), None)
        if first is None:
            return True
        last = next(byte for byte in reversed(body) if byte not in b" \t\r\n")
        return first in _JSON_ENDS and bytes((last,)) == _JSON_ENDS[first]
    finally:
        body.release()


def encode_frame(body: bytes, framing: Framing) -> bytes:
    """One message as it goes out; a body never holds a raw newline, so a line stays a line."""
    return body + b"\n" if framing == "lines" else b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
