"""``⟦define⟧``, ``⟦declare⟧`` and ``⟦implement⟧`` (as ``⟦define:declaration⟧`` …): where a place leads."""

from __future__ import annotations

from typing import Any

from tamis.protocols.positions import LineIndex
from tamis.server.analysis.navigation import definition as navigation
from tamis.server.analysis.navigation.definition import find_function, find_setting
from tests.lsp.markers import Core, Mark, Wire, place

MARK = "define"
CAPABILITIES: dict[str, Any] = {
    "textDocument": {
        "definition": {"linkSupport": True},
        "declaration": {"linkSupport": True},
        "implementation": {"linkSupport": False},
    }
}


def through_core(core: Core, name: str, mark: Mark) -> list[str]:
    verb = mark.argument or "definition"
    found = getattr(navigation, verb)(core.snapshot(name), mark.offset)
    rows: list[tuple[str, tuple[int, int]]] = []
    for target in found.targets:
        other = "tamis.toml" if target.setting else core.name(target.path)
        text = core.case.documents.get(other)
        if text is None:
            continue
        span = find_function(text, target.function, target.path) if target.function else None
        if target.setting and (span := find_setting(text, target.setting)) is None:
            continue
        rows.append((other, span or target.span))
    origin = found.origin if rows and verb != "implementation" else None
    return _render(core.case.documents, name, mark, verb, origin, rows)


def through_wire(wire: Wire, name: str, mark: Mark) -> list[str]:
    verb = mark.argument or "definition"
    origin = None
    rows: list[tuple[str, tuple[int, int]]] = []
    for found in wire.ask(f"textDocument/{verb}", wire.at(name, mark)):
        if "uri" in found:
            other = wire.name(found["uri"])
            rows.append((other, wire.span(other, found["range"])))
            continue
        other = wire.name(found["targetUri"])
        origin = wire.span(name, found["originSelectionRange"])
        span, whole = wire.span(other, found["targetSelectionRange"]), wire.span(other, found["targetRange"])
        assert whole[0] <= span[0] <= span[1] <= whole[1]
        rows.append((other, span))
    return _render(wire.case.documents, name, mark, verb, origin, rows)


def _render(
    documents: dict[str, str],
    name: str,
    mark: Mark,
    verb: str,
    origin: tuple[int, int] | None,
    rows: list[tuple[str, tuple[int, int]]],
) -> list[str]:
    line, column = LineIndex(documents[name]).position(mark.offset)
    lines = [f"{verb} {name}:{line + 1}:{column + 1}"]
    if origin is not None:
        lines.append(f"  from {place(documents[name], origin)}")
    lines += [f"  to {other} {place(documents[other], span)}" for other, span in rows]
    return lines
