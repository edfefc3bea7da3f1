"""``⟦highlight⟧``: the places of the same thing in the document."""

from __future__ import annotations

from tamis.protocols.positions import LineIndex
from tamis.server.analysis.navigation.references import highlights
from tests.lsp.markers import Core, Mark, Wire, place

MARK = "highlight"


def through_core(core: Core, name: str, mark: Mark) -> list[str]:
    found = [(one.span, one.write) for one in highlights(core.snapshot(name), mark.offset)]
    return _render(name, core.text(name), mark, found)


def through_wire(wire: Wire, name: str, mark: Mark) -> list[str]:
    found = wire.ask("textDocument/documentHighlight", wire.at(name, mark))
    return _render(name, wire.text(name), mark, [(wire.span(name, one["range"]), one["kind"] == 3) for one in found])


def _render(name: str, text: str, mark: Mark, found: list[tuple[tuple[int, int], bool]]) -> list[str]:
    line, column = LineIndex(text).position(mark.offset)
    rows = [f"  {'write' if write else 'read'} {place(text, span)}" for span, write in found]
    return [f"highlight {name}:{line + 1}:{column + 1}", *rows]
