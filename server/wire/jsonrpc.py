"""JSON-RPC 2.0 messages: decoding that survives anything, error codes, encoding. Must not know methods.

A lone surrogate escape is legal JSON but no text; it becomes U+FFFD (interface, Daemon manners).
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SERVER_NOT_INITIALIZED = -32002
REQUEST_CANCELLED = -32800

# A pair is taken whole, any other surrogate is alone, and an escaped backslash is passed so that what follows it is text.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.S
)


class RpcError(Exception):
    """An error reply: the request or the daemon is wrong. What happened to a tool is never one of these.

    ``identity`` is the request's id where it is known from the message itself.
    """

    def __init__(
        self, code: int, text: str, data: dict[str, Any] | None = None, identity: str | int | None = None
    ) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.data = data
        self.identity = identity


class _Request(msgspec.Struct):
    """What tells a request from other messages, without a look into its parameters."""

    id: str | int
    method: str
    params: msgspec.Raw = msgspec.Raw()


def decode(body: bytes, kind: Any = Any) -> tuple[Any, bool]:
    """The body as ``kind``, and whether lone surrogates in it were replaced.

    Raises ``RpcError`` (-32700) for what is not JSON and ``msgspec.ValidationError`` for JSON of another shape than ``kind``.
    """
    try:
        return msgspec.json.decode(body, type=kind), False
    except RecursionError:
        raise RpcError(PARSE_ERROR, "the message is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # Without a shape to miss, a validation error is a number that no float can hold.
        if isinstance(error, msgspec.ValidationError):
            if kind is not Any:
                raise
            raise _too_large_a_number(body, error) from error
        mended = mend_surrogates(body)
        if mended == body:
            raise RpcError(PARSE_ERROR, f"the message is not JSON: {error}") from error
    return decode(mended, kind)[0], True


def _too_large_a_number(body: bytes, error: Exception) -> RpcError:
    """The reply to ``1e400``, which is JSON: the parameters are wrong, not the message, and the request has an id."""
    try:
        request = msgspec.json.decode(body, type=_Request)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return RpcError(PARSE_ERROR, f"the message is not JSON: {error}")
    text = f"wrong params: a number is too large for a float of 64 bits: {error}"
    return RpcError(INVALID_PARAMS, text, identity=request.id)


def mend_surrogates(body: bytes) -> bytes:
    r"""JSON with every lone surrogate escape (``\ud800``) as ``\ufffd``."""
    return _ESCAPE.sub(lambda match: match[0] if match[1] is None else b"\\ufffd", body)


def encode_request(identity: object, method: str, params: object) -> bytes:
    """A request of ours to the client."""
    return encode({"jsonrpc": "2.0", "id": identity, "method": method, "params": params})


def encode_notification(method: str, params: object) -> bytes:
    """A message without a reply."""
    return encode({"jsonrpc": "2.0", "method": method, "params": params})


def encode_result(identity: object, result: object) -> bytes:
    """A success reply."""
    return encode({"jsonrpc": "2.0", "id": identity, "result": result})


def encode_error(identity: object, error: RpcError) -> bytes:
    """An error reply."""
    content: dict[str, Any] = {"code": error.code, "message": error.text}
    if error.data is not None:
        content["data"] = error.data
    return encode({"jsonrpc": "2.0", "id": identity, "error": content})


def encode(message: object) -> bytes:
    """A message as bytes; text that UTF-8 cannot carry is replaced rather than lost with the message."""
    try:
        return msgspec.json.encode(message)
    except (UnicodeEncodeError, OverflowError, TypeError):
        import json

        text = mend_surrogates(json.dumps(msgspec.to_builtins(message)).encode("ascii"))
        # read again, so that a number that JSON does not have is null here too
        return msgspec.json.encode(json.loads(text))
