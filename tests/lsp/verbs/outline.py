"""``"ask": ["outline"]``: the symbols of a document."""

from __future__ import annotations

from typing import Any

from tamis.server.analysis.navigation.symbols import Symbol, outline
from tests.lsp.markers import Core, Mark, Wire, place

ASK = "outline"
CAPABILITIES: dict[str, Any] = {
    "textDocument": {
        "documentSymbol": {
            "hierarchicalDocumentSymbolSupport": True,
            "symbolKind": {"valueSet": list(range(1, 27))},
        }
    }
}
Row = tuple[int, str, str, tuple[int, int]]


def through_core(core: Core, name: str, _mark: Mark | None) -> list[str]:
    rows: list[Row] = []

    def walk(symbol: Symbol, depth: int) -> None:
        rows.append((depth, symbol.name, symbol.detail, symbol.selection))
        for child in symbol.children:
            walk(child, depth + 1)

    for symbol in outline(core.snapshot(name)):
        walk(symbol, 0)
    return _render(name, core.text(name), rows)


def through_wire(wire: Wire, name: str, _mark: Mark | None) -> list[str]:
    rows: list[Row] = []

    def walk(symbol: dict[str, Any], depth: int) -> None:
        span, selection = wire.span(name, symbol["range"]), wire.span(name, symbol["selectionRange"])
        assert span[0] <= selection[0] <= selection[1] <= span[1]
        rows.append((depth, symbol["name"], symbol.get("detail", ""), selection))
        for child in symbol.get("children", ()):
            walk(child, depth + 1)

    for symbol in wire.ask("textDocument/documentSymbol", {"textDocument": {"uri": wire.uri(name)}}):
        walk(symbol, 0)
    return _render(name, wire.text(name), rows)


def _render(name: str, text: str, rows: list[Row]) -> list[str]:
    lines = [f"outline {name}"]
    for depth, title, detail, selection in rows:
        about = f" ({detail})" if detail else ""
        lines.append(f"  {'  ' * depth}{title}{about} {place(text, selection)}")
    return lines
