"""Messages whose payload stays undecoded until their method is known: a keystroke is decoded once, into its own struct.

pygls 2.1 takes any nested object with a key ``jsonrpc`` for a message; here only the outermost is one. Must not know methods,
documents or pygls.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

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
