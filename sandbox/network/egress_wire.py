"""What clients of the egress proxy may say: request heads, chunk sizes and the TLS ClientHello, as pure bytes.

No sockets, no asyncio, no policy. A message that two parsers could read differently is refused (RFC 9112 §11.2), because
the server behind the proxy must see the request that was judged here. Errors are `RequestError`, never anything else.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import Final, Literal

import msgspec

from tamis.sandbox.network.hosts import canonical_host, parse_port, split_port

MAX_HEAD: Final = 16 * 1024
"""Bytes of a request head, its final empty line included."""
MAX_HELLO: Final = 16 * 1024
"""Bytes of TLS records that may carry the ClientHello."""
_MAX_HELLO_RECORDS: Final = 16  # keeps reading a hello that arrives byte by byte linear
MAX_CHUNK_LINE: Final = 256
MAX_ANSWER_HEAD: Final = 64 * 1024
"""Bytes of an answer's head that are waited for; a larger one is passed on as it comes."""

# The first of these decides: the end of the head, or a byte that no head holds (bare LF, bare CR, control characters).
_HEAD_STOP = re.compile(rb"\r\n\r\n|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?=[^\n])|(?<!\r)\n")
_REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) ([\x21-\x7e]+) (HTTP/1\.[01])")
_ANSWER_STOP = re.compile(rb"\r?\n\r?\n")
_INTERIM = re.compile(rb"HTTP/1\.[0-9] 1(?!01)[0-9]{2}\b")
_FIELD_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTENT_LENGTH = re.compile(rb"[0-9]{1,15}")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[\t\x20-\x7e]*)?")

_HOP_FIELDS: Final = frozenset(
    (
        b"connection",
        b"proxy-connection",
        b"keep-alive",
        b"proxy-authorization",
        b"proxy-authenticate",
        b"te",
        b"trailer",
        b"upgrade",
        b"http2-settings",
    )
)
_HOP_ANSWER: Final = frozenset((b"connection", b"proxy-connection", b"keep-alive"))
_FRAMING_FIELDS: Final = frozenset((b"content-length", b"transfer-encoding", b"host"))

Body = int | Literal["chunked"]
"""How many bytes follow a head, or ``"chunked"``."""
Fields = list[tuple[bytes, bytes]]


class RequestError(ValueError):
    """A request that is refused as malformed; the text names the fault."""


class Request(msgspec.Struct, frozen=True):
    """One request to the proxy: the canonical target, and what to send there."""

    tunnel: bool
    host: str
    port: int
    head: bytes = b""
    """The head as the target gets it; empty for a tunnel."""
    body: Body = 0


def find_head_end(buffer: bytes | bytearray, start: int = 0) -> int | None:
    """The length of the head at the front of `buffer` with its empty line, or None while it is incomplete.

    `start` is how far an earlier call has seen, less three. Raises RequestError as soon as the head cannot become valid.
    """
    stop = _HEAD_STOP.search(buffer, max(start, 0))
    end = None if stop is None else stop.end()
    if stop is not None and stop.group() != b"\r\n\r\n":
        raise RequestError(f"byte {stop.group()!r} in the request head; lines end in CR LF")
    if (len(buffer) if end is None else end) > MAX_HEAD:
        raise RequestError(f"the request head is larger than {MAX_HEAD} bytes")
    return end


def check_request_line(line: bytes) -> tuple[bytes, bytes, bytes]:
    """(method, target, version) of a request line without its CR LF; RequestError unless it is HTTP/1.0 or 1.1."""
    match = _REQUEST_LINE.fullmatch(line)
    if match is None:
        raise RequestError("the request line is not 'METHOD TARGET HTTP/1.1'")
    return match[1], match[2], match[3]


def parse_proxy_head(head: bytes) -> Request:
    """Reads a head sent to the proxy: ``CONNECT host:port``, or any method on an absolute ``http://`` target."""
    line, fields = _lines(head)
    method, target, version = check_request_line(line)
    body = _body(fields, version)
    if method == b"CONNECT":
        if body != 0:
            raise RequestError("CONNECT has a body")
        host, port = _authority(target, None)
        return Request(True, host, port)
    scheme, colon, rest = target.partition(b"://")
    if not colon:
        raise RequestError("the target is not an absolute 'http://host/path'; this is a proxy")
    if scheme.lower() != b"http":
        raise RequestError("the target's scheme is not http; https goes through CONNECT")
    cut = min((at for at in (rest.find(b"/"), rest.find(b"?")) if at >= 0), default=len(rest))
    host, port = _authority(rest[:cut], 80)
    path = rest[cut:]
    if not path:
        path = b"*" if method == b"OPTIONS" else b"/"
    elif path.startswith(b"?"):
        path = b"/" + path
    return Request(False, host, port, _rewritten(method, path, version, fields, host, port), body)


def parse_tunnelled_head(head: bytes, host: str, port: int) -> Request:
    """Reads a head of plain HTTP inside a CONNECT tunnel to `host`: origin form, and a Host field that names the tunnel.

    Some clients (undici) tunnel plain HTTP as well; without this check the Host field would choose another site.
    """
    line, fields = _lines(head)
    method, path, version = check_request_line(line)
    if method == b"CONNECT" or not (path.startswith(b"/") or (path == b"*" and method == b"OPTIONS")):
        raise RequestError("the request in the tunnel is not 'METHOD /path HTTP/1.1'")
    names = [value for name, value in fields if name.lower() == b"host"]
    if len(names) != 1:
        raise RequestError("the request in the tunnel has no single Host field")
    if _authority(names[0], port) != (host, port):
        raise RequestError(f"the Host field in the tunnel is not {host}:{port}")
    body = _body(fields, version)
    return Request(False, host, port, _rewritten(method, path, version, fields, host, port), body)


def parse_chunk_size(line: bytes) -> int:
    """The size in a chunk's first line, without CR LF; extensions are read over. RequestError if it is not one."""
    match = _CHUNK_SIZE.fullmatch(line)
    if match is None:
        raise RequestError("a chunk of the body has no valid size")
    return int(match[1], 16)


def _lines(head: bytes) -> tuple[bytes, Fields]:
    line, *rest = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    fields: Fields = []
    for text in rest:
        name, colon, value = text.partition(b":")
        if text[:1] in (b" ", b"\t"):
            raise RequestError("a header line is folded")
        if not colon or not _FIELD_NAME.fullmatch(name):
            raise RequestError("a header line is not 'Name: value'")
        fields.append((name, value.strip(b" \t")))
    return line, fields


def _authority(text: bytes, default_port: int | None) -> tuple[str, int]:
    try:
        host, port = split_port(text.decode("ascii"))
        if port is None and default_port is None:
            raise RequestError("the target has no port; write 'host:443'")
        name = canonical_host(host)
        return name, parse_port(port) if port is not None else default_port or 0
    except RequestError:
        raise
    except ValueError as error:
        raise RequestError(f"bad target: {error}") from None


def _body(fields: Fields, version: bytes) -> Body:
    lengths = [value for name, value in fields if name.lower() == b"content-length"]
    codings = [value for name, value in fields if name.lower() == b"transfer-encoding"]
    if sum(name.lower() == b"host" for name, _ in fields) > 1:
        raise RequestError("the request has two Host fields")
    if lengths and codings:
        raise RequestError("the request has both Content-Length and Transfer-Encoding")
    if len(lengths) > 1 or len(codings) > 1:
        raise RequestError("the request has two fields that give its length")
    if codings:
        if codings[0].lower() != b"chunked" or version != b"HTTP/1.1":
            raise RequestError("the only Transfer-Encoding is 'chunked', in HTTP/1.1")
        return "chunked"
    if not lengths:
        return 0
    if not _CONTENT_LENGTH.fullmatch(lengths[0]):
        raise RequestError("Content-Length is not one decimal number")
    return int(lengths[0])


def _rewritten(method: bytes, path: bytes, version: bytes, fields: Fields, host: str, port: int) -> bytes:
    if b"#" in path:
        raise RequestError("the target has a fragment")
    listed = {
        token.strip(b" \t").lower()
        for name, value in fields
        if name.lower() in (b"connection", b"proxy-connection")
        for token in value.split(b",")
    }
    if listed & _FRAMING_FIELDS:
        raise RequestError("the Connection field lists a field that frames the request")
    authority = host if port == 80 else f"{host}:{port}"
    lines = [b"%b %b %b" % (method, path, version), b"Host: " + authority.encode("ascii")]
    for name, value in fields:
        lowered = name.lower()
        if lowered != b"host" and lowered not in _HOP_FIELDS and lowered not in listed:
            lines.append(b"%b: %b" % (name, value))
    lines += (b"Connection: close", b"", b"")
    return b"\r\n".join(lines)


def find_answer_end(buffer: bytes | bytearray, start: int = 0) -> int | None:
    """The length of the answer's head at the front of `buffer`, None while it is incomplete, 0 when it is none to touch.

    `start` is how far an earlier call has seen, less three.
    """
    if not buffer.startswith(b"HTTP/1."[: len(buffer)]):
        return 0
    stop = _ANSWER_STOP.search(buffer, max(start, 0))
    if stop is None:
        return None if len(buffer) <= MAX_ANSWER_HEAD else 0
    return stop.end() if stop.group() == b"\r\n\r\n" else 0


def is_interim(head: bytes) -> bool:
    """Whether another head follows this answer's head (100 Continue, 103 Early Hints)."""
    return _INTERIM.match(head) is not None


def closing(head: bytes) -> bytes:
    """The head of an answer, saying that the connection ends with it: the proxy serves one request on each."""
    lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    if not any(line[:1] in (b" ", b"\t") for line in lines):
        lines = [lines[0], *(line for line in lines[1:] if line.partition(b":")[0].strip().lower() not in _HOP_ANSWER)]
    return b"\r\n".join([*lines, b"Connection: close", b"", b""])


class ClientHello(msgspec.Struct, frozen=True):
    """What a TLS client announces: the server name of its SNI extension as sent, or None if it has none."""

    server_name: str | None
    encrypted: bool
    """Whether an Encrypted ClientHello is present: the real name may then be another one."""


def read_client_hello(data: bytes | bytearray) -> ClientHello | None:
    """Reads the ClientHello at the front of a TLS stream; None while it is incomplete.

    Raises RequestError if the stream is not a well-formed ClientHello within `MAX_HELLO` bytes.
    """
    message = bytearray()
    at = records = 0
    while len(message) < 4 or len(message) < 4 + int.from_bytes(message[1:4], "big"):
        if data[at : at + 1] not in (b"", b"\x16") or data[at + 1 : at + 2] not in (b"", b"\x03"):
            raise RequestError("the tunnel does not begin with a TLS handshake")
        size = int.from_bytes(data[at + 3 : at + 5], "big") if len(data) >= at + 5 else 1
        records += 1
        if not size or at + 5 + size > MAX_HELLO or records > _MAX_HELLO_RECORDS:
            raise RequestError("the TLS ClientHello is empty, too large or in too many records")
        if len(data) < at + 5 + size:
            return None
        message += data[at + 5 : at + 5 + size]
        at += 5 + size
        if message[0] != 1 or (len(message) >= 4 and int.from_bytes(message[1:4], "big") > MAX_HELLO):
            raise RequestError("the tunnel does not begin with a TLS ClientHello")
    end = 4 + int.from_bytes(message[1:4], "big")
    if len(message) > end:
        raise RequestError("bytes follow the TLS ClientHello in its record")
    return _parse_hello(_Cursor(bytes(message[4:end])))


class _Cursor:
    """Reads length-prefixed vectors; running past the end is a RequestError."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def __bool__(self) -> bool:
        return self.at < len(self.data)

    def take(self, count: int) -> bytes:
        piece = self.data[self.at : self.at + count]
        if len(piece) != count:
            raise RequestError("the TLS ClientHello is malformed")
        self.at += count
        return piece

    def number(self, width: int) -> int:
        return int.from_bytes(self.take(width), "big")

    def vector(self, width: int) -> bytes:
        return self.take(self.number(width))


def _parse_hello(hello: _Cursor) -> ClientHello:
    hello.take(2 + 32)  # version and random
    hello.vector(1)  # session id
    hello.vector(2)  # cipher suites
    hello.vector(1)  # compression methods
    names: list[str] = []
    encrypted = False
    if hello:
        extensions = _Cursor(hello.vector(2))
        if hello:
            raise RequestError("the TLS ClientHello has bytes after its extensions")
        while extensions:
            kind, value = extensions.number(2), extensions.vector(2)
            encrypted = encrypted or kind == 0xFE0D
            if kind == 0:
                names.append(_server_name(value))
    if len(names) > 1:
        raise RequestError("the TLS ClientHello has two server names")
    return ClientHello(names[0] if names else None, encrypted)


def _server_name(value: bytes) -> str:
    extension = _Cursor(value)
    names = _Cursor(extension.vector(2))
    kind, name = names.number(1), names.vector(2)
    if extension or names or kind != 0 or not name.isascii():
        raise RequestError("the TLS ClientHello has no single ASCII server name")
    return name.decode("ascii")


# One end of a proxied conversation: reads with a buffer, request heads, lines, and an end that loses nothing. Knows the framing of `egress_wire`;
# decides nothing.


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
