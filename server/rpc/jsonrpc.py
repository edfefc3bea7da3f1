"""JSON-RPC 2.0 messages: decoding that survives anything, error codes, encoding.

A lone surrogate escape is legal JSON and becomes U+FFFD (interface, Daemon manners). Must not know methods.
"""

from __future__ import annotations

import json
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

_NAMED = {
    "toolNotFound": 1001,
    "versionUnsatisfied": 1002,
    "overloaded": 1201,
    "textTooLarge": 1202,
    "taskNotFound": 1301,
    "approvalUnknown": 1401,
    "notTrusted": 1901,
}
_SURROGATE = re.compile("[\ud800-\udfff]")


class RpcError(Exception):
    """An error reply: the request or the daemon is wrong. What happened to a tool is never one of these."""

    def __init__(self, code: int, text: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.data = data


def named_error(name: str, text: str, hint: str, *, retryable: bool = False) -> RpcError:
    """One of the project's own errors, with ``data: {code, retryable, hint}``."""
    return RpcError(_NAMED[name], text, {"code": name, "retryable": retryable, "hint": hint})


def decode(body: bytes) -> tuple[Any, bool]:
    """The message and whether lone surrogates were replaced. Raises ``RpcError`` for anything that is not JSON."""
    try:
        return msgspec.json.decode(body), False
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        first = error
    except RecursionError:
        raise RpcError(PARSE_ERROR, "the message is nested too deeply") from None
    # The fast decoder refuses lone surrogates; the standard one reads them and names the place of real errors.
    try:
        value = json.loads(body.decode("utf-8"))
    except RecursionError:
        raise RpcError(PARSE_ERROR, "the message is nested too deeply") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise RpcError(PARSE_ERROR, f"the message is not JSON: {error}") from first
    if not _has_surrogate(value):
        raise RpcError(PARSE_ERROR, f"the message is not JSON: {first}")
    return _replace_surrogates(value), True


def encode_result(identity: object, result: object) -> bytes:
    """A success reply."""
    return encode({"jsonrpc": "2.0", "id": identity, "result": result})


def encode_error(identity: object, error: RpcError) -> bytes:
    """An error reply."""
    content: dict[str, Any] = {"code": error.code, "message": error.text}
    if error.data is not None:
        content["data"] = error.data
    return encode({"jsonrpc": "2.0", "id": identity, "error": content})


def encode(message: dict[str, Any]) -> bytes:
    """A message as bytes; text that UTF-8 cannot carry is replaced rather than lost with the message."""
    try:
        return msgspec.json.encode(message)
    except (UnicodeEncodeError, OverflowError, TypeError):
        return json.dumps(_replace_surrogates(msgspec.to_builtins(message)), ensure_ascii=False).encode("utf-8")


def _has_surrogate(value: Any) -> bool:
    stack = [value]
    while stack:
        here = stack.pop()
        if isinstance(here, str):
            if _SURROGATE.search(here):
                return True
        elif isinstance(here, list):
            stack.extend(here)  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(here, dict):
            stack.extend(here)  # pyright: ignore[reportUnknownArgumentType]
            stack.extend(here.values())  # pyright: ignore[reportUnknownArgumentType]
    return False


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_replace_surrogates(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {_replace_surrogates(key): _replace_surrogates(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value
