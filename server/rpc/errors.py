"""The project's own errors by name (interface, Errors)."""

from __future__ import annotations

from tamis.server.wire.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    REQUEST_CANCELLED,
    RpcError,
)

_NUMBERS = {
    "toolNotFound": 1001,
    "versionUnsatisfied": 1002,
    "overloaded": 1201,
    "textTooLarge": 1202,
    "taskNotFound": 1301,
    "approvalUnknown": 1401,
    "notTrusted": 1901,
}
MEANINGS = {
    "parseError": "The message is no JSON.",
    "invalidRequest": "This is no request, or it comes at the wrong time.",
    "methodNotFound": "There is no such method.",
    "invalidParams": "The params are wrong; the message names the place.",
    "internalError": "A fault of the daemon.",
    "requestCancelled": "The request was cancelled, or the daemon is ending.",
    "toolNotFound": "No tool has this id.",
    "versionUnsatisfied": "The tool has no such version.",
    "overloaded": "Too much at once; send it again later.",
    "textTooLarge": "The text is larger than what is read.",
    "taskNotFound": "No task has this id.",
    "approvalUnknown": "No question has this id, or it is closed.",
    "notTrusted": "The folder is not trusted; nothing is run in it.",
}
"""What each error means, for its description."""
GIVEN_BY: dict[str, tuple[str, ...]] = {
    "toolNotFound": ("tool/describe", "workflow/describe", "workflow/graph"),
    "versionUnsatisfied": ("tool/describe",),
    "textTooLarge": (
        *("tool/parse", "tool/repair", "tool/explain", "tool/convert", "tool/executeText"),
        *("parse/feed", "prompt/generate", "agent/step"),
    ),
    "taskNotFound": ("task/get", "task/result", "task/answer", "task/cancel"),
    "approvalUnknown": ("tool/execute", "tool/executeText", "agent/step", "workflow/run", "task/answer"),
    "notTrusted": ("tool/execute", "tool/executeText", "agent/step", "workflow/run"),
}
"""Errors of the project's own → the methods that give them; ``overloaded`` may come from any."""
STANDARD = {
    "parseError": PARSE_ERROR,
    "invalidRequest": INVALID_REQUEST,
    "methodNotFound": METHOD_NOT_FOUND,
    "invalidParams": INVALID_PARAMS,
    "internalError": INTERNAL_ERROR,
    "requestCancelled": REQUEST_CANCELLED,
}
"""JSON-RPC's errors, and LSP's for a cancelled request, by the names that descriptions give them."""


def numbers() -> dict[str, int]:
    """The number of every error by name."""
    return {**STANDARD, **_NUMBERS}


def named_error(name: str, text: str, hint: str, *, retryable: bool = False) -> RpcError:
    """One of the project's own errors, with ``data: {code, retryable, hint}``."""
    return RpcError(_NUMBERS[name], text, {"code": name, "retryable": retryable, "hint": hint})
