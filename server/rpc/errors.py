"""The project's own errors by name (interface, Errors)."""

from __future__ import annotations

from tamis.server.wire.jsonrpc import RpcError

_NUMBERS = {
    "toolNotFound": 1001,
    "versionUnsatisfied": 1002,
    "overloaded": 1201,
    "textTooLarge": 1202,
    "taskNotFound": 1301,
    "approvalUnknown": 1401,
    "notTrusted": 1901,
}


def named_error(name: str, text: str, hint: str, *, retryable: bool = False) -> RpcError:
    """One of the project's own errors, with ``data: {code, retryable, hint}``."""
    return RpcError(_NUMBERS[name], text, {"code": name, "retryable": retryable, "hint": hint})
