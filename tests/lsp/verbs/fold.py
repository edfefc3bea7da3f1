"""``⟦fold⟧``: the folding ranges of a document, with the lines where they begin and end."""

from __future__ import annotations

from typing import Any

from tamis.server.analysis.shown.folding import folds
from tests.lsp.markers import Core, Mark, Wire, place

MARK = "fold"
CAPABILITIES: dict[str, Any] = {
    "textDocument": {
        "foldingRange": {"foldingRange": {"collapsedText": True}, "foldingRangeKind": {"valueSet": ["comment"]}}
    }
}


def through_core(core: Core, name: str, mark: Mark) -> list[str]:
    rows = [(fold.span, fold.kind, fold.text) for fold in folds(core.snapshot(name))]
    return _render(name, core.text(name), rows)


def through_wire(wire: Wire, name: str, mark: Mark) -> list[str]:
    found = wire.ask("textDocument/foldingRange", {"textDocument": {"uri": wire.uri(name)}})
    rows = [
        (
            wire.span(
                name,
                {
                    "start": {"line": item["startLine"], "character": item["startCharacter"]},
                    "end": {"line": item["endLine"], "character": item["endCharacter"]},
                },
            ),
            item.get("kind", ""),
            item.get("collapsedText", ""),
        )
        for item in found
    ]
    return _render(name, wire.text(name), rows)


def _render(name: str, text: str, rows: list[tuple[tuple[int, int], str, str]]) -> list[str]:
    lines = [f"fold {name}"]
    for span, kind, said in rows:
        lines.append(f"  {place(text, span)}" + (f" {kind}" if kind else "") + (f" → {said}" if said else ""))
    return lines
