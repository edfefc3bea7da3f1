"""Messages whose payload stays undecoded until their method is known: a keystroke is decoded once, into its own struct.

pygls 2.1 takes any nested object with a key ``jsonrpc`` for a message; here only the outermost is one. Must not know methods,
documents or pygls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from tamis.server.lsp.trace import report_failure
from tamis.server.wire.jsonrpc import INVALID_REQUEST, RpcError, decode

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


def decode_envelope(body: bytes) -> Envelope:
    """The envelope of a message body; raises RpcError (-32700 not JSON, -32600 not a message)."""
    try:
        return decode(body, Envelope)[0]
    except msgspec.ValidationError as error:
        if body.lstrip()[:1] == b"[":
            text = "Batches are not part of this protocol; send one message at a time"
        else:
            text = f"Not a JSON-RPC message: {error}"
        raise RpcError(INVALID_REQUEST, text) from error


def decode_params(raw: Raw | UnsetType, kind: Any) -> Any:
    """A message's parameters as ``kind``; left out they are an empty object.

    Raises ``msgspec.ValidationError`` for a wrong shape and RpcError (-32700) for what is no JSON after all: the envelope's
    decoder reads over its parts without looking into them.
    """
    return decode(bytes(raw) if isinstance(raw, Raw) else b"{}", kind)[0]


# Requests of ours to the client: who waits for which answer.


MAX_ASKED = 1_000
"""Requests that wait for the client's answer; the oldest are given up."""


class Asked:
    """The open ones of one session, on its lane."""

    def __init__(self) -> None:
        self._next_id = 0
        self._asked: dict[int, Callable[[Any], None]] = {}

    def begin(self, then: Callable[[Any], None] | None) -> int:
        """The id of a new request; ``then`` gets its result, None for an error."""
        self._next_id += 1
        if then is not None:
            self._asked[self._next_id] = then
            if len(self._asked) > MAX_ASKED:
                del self._asked[next(iter(self._asked))]
        return self._next_id

    def answered(self, message: Envelope) -> None:
        """The client's answer; one to an unknown id is nobody's."""
        then = self._asked.pop(message.id, None) if isinstance(message.id, int) else None
        if then is None:
            return
        result: Any = None
        if isinstance(message.result, Raw) and not isinstance(message.error, Raw):
            try:
                result = decode_params(message.result, Any)
            except RpcError:
                result = None
        try:
            then(result)
        except Exception:  # a strange answer ends nothing
            report_failure("an answer of the client")
