"""``⟦inlay⟧``: the inlay hints of the document; ``⟦inlay:n⟧`` those of the ``n`` lines from a place on.

Each in the line where it stands, between ``‹`` and ``›``, with its tooltip and where its parts lead.
"""

from __future__ import annotations

from typing import Any

from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.positions import LineIndex
from tamis.server.analysis.shown.inlay import HintWish, inlay_hints, token_tooltip
from tests.lsp.markers import Core, Mark, Wire, place

MARK = "inlay"
CAPABILITIES: dict[str, Any] = {"textDocument": {"inlayHint": {"resolveSupport": {"properties": ["tooltip"]}}}}
_KINDS = {1: "type", 2: "parameter"}
Row = tuple[int, list[tuple[str, str]], str, str]


def _span(text: str, mark: Mark) -> tuple[int, int]:
    if not mark.argument:
        return 0, len(text)
    index = LineIndex(text)
    line = index.position(mark.offset)[0] + int(mark.argument)
    return mark.offset, index.offset(line, 0)


def through_core(core: Core, name: str, mark: Mark) -> list[str]:
    text = core.text(name)
    snapshot = core.snapshot(name)
    settings = core.case.options.get("settings", {})
    switches = settings.get("inlayHints", {})
    wish = HintWish(tokens=switches.get("tokens", True), parameters=switches.get("parameters", True))
    rows: list[Row] = []
    for hint in inlay_hints(snapshot, _span(text, mark), wish):
        parts: list[tuple[str, str]] = []
        for part in hint.parts:
            where = ""
            if part.path:
                manifest = core.text(core.name(part.path))
                span = parse_json(manifest).key_span(part.pointer)
                where = f"{core.name(part.path)}:{place(manifest, span)}" if span else ""
            parts.append((part.text, where))
        tooltip = token_tooltip(snapshot, wish.view) if hint.later else hint.tooltip
        rows.append((hint.offset, parts, hint.kind, tooltip))
    return _render(name, text, mark, rows)


def through_wire(wire: Wire, name: str, mark: Mark) -> list[str]:
    text = wire.text(name)
    span = _span(text, mark)
    wanted = {"start": wire.position(name, span[0]), "end": wire.position(name, span[1])}
    rows: list[Row] = []
    for hint in wire.ask("textDocument/inlayHint", {"textDocument": {"uri": wire.uri(name)}, "range": wanted}):
        if "tooltip" not in hint:
            hint = wire.ask("inlayHint/resolve", hint)
        parts: list[tuple[str, str]] = []
        for part in hint["label"]:
            where = ""
            if "location" in part:
                other = wire.name(part["location"]["uri"])
                where = f"{other}:{place(wire.text(other), wire.span(other, part['location']['range']))}"
            parts.append((part["value"], where))
        position = {"start": hint["position"], "end": hint["position"]}
        tooltip = hint.get("tooltip", {}).get("value", "")
        rows.append((wire.span(name, position)[0], parts, _KINDS.get(hint.get("kind", 0), ""), tooltip))
    return _render(name, text, mark, rows)


def _render(name: str, text: str, mark: Mark, rows: list[Row]) -> list[str]:
    index = LineIndex(text)
    line, column = index.position(mark.offset)
    lines = [f"inlay {name}" + (f":{line + 1}:{column + 1}" if mark.argument else "")]
    for offset, parts, kind, tooltip in rows:
        start, end = index.line_span(index.position(offset)[0])
        shown = f"{text[start:offset][-30:]}‹{''.join(value for value, _ in parts)}›{text[offset:end][:30]}"
        lines.append(f"  {index.position(offset)[0] + 1}: {shown}" + (f" ({kind})" if kind else ""))
        lines += [f"    {value.strip()} → {where}" for value, where in parts if where]
        lines += [f"    | {said}".rstrip() for said in tooltip.splitlines()]
    return lines
