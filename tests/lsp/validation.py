"""What the server sends, held against the protocol: lsprotocol's types must take every message, and know every member of it."""

from __future__ import annotations

from typing import Any

from lsprotocol import converters, types

_CONVERTER = converters.get_converter()
_OPAQUE = frozenset({"data", "experimental", "settings", "arguments", "initializationOptions", "registerOptions"})
"""Members that may hold anything."""


def check_message(message: dict[str, Any], asked: dict[Any, str]) -> None:
    """Fails on a message that the protocol does not have; ``asked`` has the methods of our requests by id."""
    assert message.get("jsonrpc") == "2.0", message
    method = message.get("method")
    if method is not None:
        known = types.METHOD_TO_TYPES.get(method)
        if known is None or method == "$/progress":
            # "experimental/…" and our own; a progress' value is another type for each token.
            assert method == "$/progress" or "/" in method, message
            return
        _check(message, known[0])
        return
    assert "id" in message, message
    assert ("result" in message) != ("error" in message), message
    if "error" in message:
        _check(message, types.ResponseErrorMessage)
        return
    method = asked.get(message["id"], "")
    if method == "textDocument/codeAction":
        # lsprotocol takes an action with a command for a command.
        for item in message["result"] or ():
            _check(item, types.Command if isinstance(item.get("command"), str) else types.CodeAction)
        return
    known = types.METHOD_TO_TYPES.get(method)
    if known is not None and known[1] is not None:
        _check(message, known[1])


def _check(message: dict[str, Any], kind: Any) -> None:
    try:
        taken = _CONVERTER.structure(message, kind)
    except Exception as error:
        raise AssertionError(f"not a {kind.__name__}: {str(message)[:2000]}") from error
    lost = list(_lost(message, _CONVERTER.unstructure(taken), ""))
    assert not lost, (kind.__name__, lost, str(message)[:2000])


def _lost(ours: Any, theirs: Any, where: str) -> list[str]:
    """The members that the protocol's types did not take."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        found: list[str] = []
        for name, value in ours.items():
            if name in _OPAQUE or value is None:
                continue
            if name not in theirs:
                found.append(f"{where}/{name}")
            else:
                found += _lost(value, theirs[name], f"{where}/{name}")
        return found
    if isinstance(ours, list) and isinstance(theirs, list):
        return [item for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) for item in _lost(a, b, f"{where}/{i}")]
    return []
