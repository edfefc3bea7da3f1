"""Messages on the wire: the base protocol's framing over file descriptors, and the JSON-RPC envelope.

Replaces three parts of pygls 2.1 that lose messages: its reader (three thread hops a message, a header in lower case is
dropped, the executor's thread keeps the process alive), its decoder (an ``object_hook`` mistakes a nested key ``jsonrpc`` for
a message) and its writer (encodes twice and logs every body). Must not know methods, documents or pygls.
"""

from __future__ import annotations

import os
import re
import select
import sys
import threading
from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

MAX_MESSAGE_BYTES = 256 * 1024 * 1024
MAX_HEADER_BYTES = 64 * 1024
_READ_BYTES = 256 * 1024

_LENGTH = re.compile(rb"(?im)^[ \t]*content-length[ \t]*:[ \t]*(\d{1,15})[ \t]*\r?$")
_HEADERS_END = re.compile(rb"\r?\n\r?\n")

MessageId = int | str


class Envelope(msgspec.Struct):
    """One JSON-RPC message with its payload left undecoded."""

    id: MessageId | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET

    @property
    def kind(self) -> Literal["request", "notification", "response", "invalid"]:
        """What the message is, by the members it has."""
        if self.method is not UNSET:
            return "notification" if self.id is UNSET else "request"
        return "response" if self.id is not UNSET else "invalid"


class ProtocolError(Exception):
    """A message that is no JSON-RPC message; ``code`` is the error of its reply, whose id is null."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


_DECODER = msgspec.json.Decoder(Envelope)


def decode(body: bytes) -> Envelope:
    """The envelope of a message body; raises ProtocolError (-32700 not JSON, -32600 not a message)."""
    try:
        return _DECODER.decode(body)
    except msgspec.ValidationError as error:
        if body.lstrip()[:1] == b"[":
            raise ProtocolError(-32600, "Batches are not part of this protocol; send one message at a time") from error
        raise ProtocolError(-32600, f"Not a JSON-RPC message: {error}") from error
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        mended = replace_lone_surrogates(body)
        if mended != body:
            return decode(mended)
        raise ProtocolError(-32700, f"The message is not JSON: {error}") from error


def decode_params(raw: Raw | UnsetType, kind: Any) -> Any:
    """A message's parameters as ``kind``; left out they are an empty object.

    Raises ``msgspec.ValidationError`` for a wrong shape and ProtocolError (-32700) for what is no JSON after all: the envelope's
    decoder reads over its parts without looking into them.
    """
    body = bytes(raw) if isinstance(raw, Raw) else b"{}"
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        mended = replace_lone_surrogates(body)
        if mended != body:
            return msgspec.json.decode(mended, type=kind)
        raise ProtocolError(-32700, f"The parameters are not JSON: {error}") from error


_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}(\\u[dD][c-fC-F][0-9a-fA-F]{2})?|(u[dD][c-fC-F][0-9a-fA-F]{2})|.)", re.S
)


def replace_lone_surrogates(body: bytes) -> bytes:
    r"""The body with every lone surrogate escape (``\ud800``), which is legal JSON but no text, as ``\ufffd``."""

    def mended(match: re.Match[bytes]) -> bytes:
        is_high = match[0][1:2] == b"u" and len(match[0]) == 6 and match[1] is None and match[0][2:3] in b"dD"
        if match[2] is not None or (is_high and match[0][3:4] in b"89abAB"):
            return b"\\ufffd"
        return match[0]

    return _ESCAPE.sub(mended, body)


def read_messages(descriptor: int, deliver: Callable[[list[bytes | ProtocolError]], None]) -> None:
    """Reads until the end of the stream and delivers whole bodies, all that one read completed at a time.

    Delivering together what arrived together is what lets a burst of keystrokes be answered once. Returns at the end of
    the stream or when the descriptor fails; a header block without a length and an oversized body are delivered as errors.
    """
    buffer = bytearray()
    skip = 0
    while True:
        try:
            chunk = os.read(descriptor, _READ_BYTES)
        except BlockingIOError:
            select.select([descriptor], [], [])
            continue
        except OSError:
            return
        if not chunk:
            return
        if skip:
            dropped = min(skip, len(chunk))
            skip -= dropped
            chunk = chunk[dropped:]
        buffer += chunk
        done: list[bytes | ProtocolError] = []
        at = 0
        while not skip:
            headers = _HEADERS_END.search(buffer, at, at + MAX_HEADER_BYTES)
            if headers is None:
                if len(buffer) - at > MAX_HEADER_BYTES:
                    done.append(ProtocolError(-32700, "No end of the headers found"))
                    at = len(buffer)
                break
            length = _LENGTH.search(bytes(buffer[at : headers.end()]))
            if length is None:
                if buffer[at : headers.start()].strip():
                    done.append(ProtocolError(-32700, "A message without a Content-Length header"))
                at = headers.end()
                continue
            size = int(length[1])
            if size > MAX_MESSAGE_BYTES:
                done.append(ProtocolError(-32600, f"A message of more than {MAX_MESSAGE_BYTES} bytes is not read"))
                skip = max(0, headers.end() + size - len(buffer))
                at = min(len(buffer), headers.end() + size)
                continue
            if len(buffer) < headers.end() + size:
                break
            done.append(bytes(buffer[headers.end() : headers.end() + size]))
            at = headers.end() + size
        if at:
            del buffer[:at]
        if done:
            deliver(done)


class MessageWriter:
    """Writes framed messages to a descriptor; any thread may send, messages never mix. A gone reader is not an error."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self.broken = False

    def send(self, body: bytes) -> None:
        """Writes one message; returns when the pipe has taken all of it, or silently when the client has gone."""
        data = memoryview(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        with self._lock:
            while data and not self.broken:
                try:
                    data = data[os.write(self._descriptor, data) :]
                except BlockingIOError:
                    select.select([], [self._descriptor], [])
                except OSError:
                    self.broken = True


def claim_stdio() -> tuple[int, int]:
    """Takes stdin and stdout for the protocol alone and gives their private descriptors.

    Afterwards file descriptor 1 is standard error and 0 is empty: a library or child process that prints or reads
    cannot break the stream (interface, Daemon manners).
    """
    sys.stdout.flush()
    incoming = os.dup(0)
    outgoing = os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return incoming, outgoing
