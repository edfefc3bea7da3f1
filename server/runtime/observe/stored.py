"""Results as the store holds them: without secrets, as JSON. Must not know tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from tamis.protocols.contract import ExecutionResult
from tamis.server.runtime.observe.masking import shown_result


def stored_result(result: ExecutionResult, secrets: Sequence[str] = ()) -> bytes:
    """A result with ``secrets`` masked, as bytes. Never raises for what a tool gave."""
    shown = shown_result(result, secrets)
    try:
        return msgspec.json.encode(shown)
    except UnicodeEncodeError:
        return msgspec.json.encode(_storable(msgspec.to_builtins(shown)))


def read_result(data: bytes) -> ExecutionResult:
    """What ``stored_result`` wrote."""
    return msgspec.json.decode(data, type=ExecutionResult)


def storable(text: str) -> str:
    """A text without the lone surrogates that neither JSON nor a database can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_storable(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {storable(name): _storable(item) for name, item in cast("dict[str, Any]", value).items()}
    return value
