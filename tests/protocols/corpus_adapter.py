"""The corpus runners' adapter: a row to ``read_text`` and back (contract in the first lines of the runners)."""

from __future__ import annotations

from typing import Any

from tamis.protocols.catalogue import CATALOGUE, severity
from tamis.protocols.model import Call, Document, Json, ReadOptions, ToolHint
from tamis.protocols.reader import read_text

_MODES: dict[str, str] = {"action-tag": "action", "action-inputs": "action", "tam": "tam", "vcp": "vcp", "any": "auto"}


def adapt(row: dict[str, Any]) -> dict[str, Any]:
    """Reads one row."""
    options = ReadOptions(complete=row["finish_reason"] != "length", tools=tools(row))
    document = read_text(row["text"], _MODES.get(row["protocol"], "auto"), options)
    return result(document)


def tools(row: dict[str, Any]) -> dict[str, ToolHint]:
    """The tools that a row says are known: ``string-content`` declares a text parameter ``content``."""
    given = row.get("tools")
    if given == "string-content":
        properties: dict[str, Json] = {"content": {"type": "string"}}
        names = {call["tool"] for call in row["expect"]["calls"]}
        return {name: ToolHint(name, {"type": "object", "properties": properties}) for name in names}
    if isinstance(given, list):
        return {t["toolId"]: ToolHint(t["toolId"], t.get("parameters", {})) for t in given if isinstance(t, dict)}
    if isinstance(given, dict):
        return {name: ToolHint(name, schema) for name, schema in given.items()}
    return {}


def result(document: Document) -> dict[str, Any]:
    """A document in the runners' form."""
    start, end = document.response_span
    return {
        "calls": [_call(call, document.text) for call in document.calls],
        "response_text": document.text[start:end],
        "diagnostics": [
            {
                "severity": {"information": "info"}.get(severity(diag), severity(diag)),
                "code": diag.code,
                "kind": CATALOGUE[diag.code].slug,
                "span": list(diag.span),
            }
            for diag in document.diagnostics
        ],
    }


def _call(call: Call, source: str) -> dict[str, Any]:
    spans: dict[str, list[int]] = {}
    for param in call.params:
        for pointer, value in param.value.walk():
            path = param.name
            for part in pointer.split("/")[1:]:
                name = part.replace("~1", "/").replace("~0", "~")
                path += f"[{name}]" if name.isdigit() else f".{name}"
            spans[path] = list(value.span)
    out: dict[str, Any] = {
        "tool": call.tool_id,
        "params": call.args(source),
        "partial": not call.executable,
        "span": list(call.span),
        "tool_span": list(call.tool_span),
        "param_spans": spans,
        "uri": call.uris,
        "type_hint": call.type_hints,
    }
    if call.step is not None:
        out["step"] = call.step
    if call.on_error is not None:
        out["on_error"] = call.on_error
    if call.retry is not None:
        out["retry"] = call.retry
    return out
