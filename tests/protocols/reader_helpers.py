"""Short forms for the tests of the readers."""

from __future__ import annotations

from typing import Any

from tamis.protocols.model import Document, Json, ReadOptions, ToolHint
from tamis.protocols.reader import read_text

Shown = list[tuple[str, dict[str, Json]]]


def read(text: str, mode: str = "auto", **options: Any) -> Document:
    """``read_text`` with the options as keywords."""
    return read_text(text, mode, ReadOptions(**options))


def runnable(document: Document) -> Shown:
    """The executable calls as (tool id, arguments)."""
    return [(call.tool_id, call.args(document.text)) for call in document.calls if call.executable]


def codes(document: Document) -> list[str]:
    """The codes of all findings, in order of place."""
    return [diag.code for diag in document.diagnostics]


def tool(tool_id: str, **properties: Json) -> dict[str, ToolHint]:
    """One known tool with the schemas of its parameters."""
    return {tool_id: ToolHint(tool_id, {"type": "object", "properties": dict(properties)})}


def response(document: Document) -> str:
    """The text before the first block."""
    return document.text[slice(*document.response_span)]


def trailing(document: Document) -> str:
    """The text after the last block."""
    return document.text[slice(*document.trailing_span)]
