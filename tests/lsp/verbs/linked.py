"""``⟦linked⟧``: the places that are edited together."""

from __future__ import annotations

from tamis.protocols.positions import LineIndex
from tamis.server.analysis.navigation.links import linked_names
from tests.lsp.markers import Core, Mark, Wire, place

MARK = "linked"


def through_core(core: Core, name: str, mark: Mark) -> list[str]:
    return _render(name, core.text(name), mark, list(linked_names(core.snapshot(name), mark.offset) or ()))


def through_wire(wire: Wire, name: str, mark: Mark) -> list[str]:
    found = wire.ask("textDocument/linkedEditingRange", wire.at(name, mark))
    return _render(name, wire.text(name), mark, [wire.span(name, one) for one in found["ranges"]] if found else [])


def _render(name: str, text: str, mark: Mark, spans: list[tuple[int, int]]) -> list[str]:
    line, column = LineIndex(text).position(mark.offset)
    return [f"linked {name}:{line + 1}:{column + 1}", *(f"  {place(text, span)}" for span in spans)]
