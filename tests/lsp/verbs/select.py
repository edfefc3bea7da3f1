"""``⟦select⟧``: the selection ranges from a place outwards."""

from __future__ import annotations

from tamis.protocols.positions import LineIndex
from tamis.server.analysis.shown.selection import selection
from tests.lsp.markers import Core, Mark, Wire, place

MARK = "select"


def through_core(core: Core, name: str, mark: Mark) -> list[str]:
    return _render(name, core.text(name), mark, selection(core.snapshot(name), mark.offset))


def through_wire(wire: Wire, name: str, mark: Mark) -> list[str]:
    where = wire.at(name, mark)
    chain, twin = wire.ask(
        "textDocument/selectionRange",
        {"textDocument": where["textDocument"], "positions": [where["position"], where["position"]]},
    )
    assert chain == twin
    spans: list[tuple[int, int]] = []
    while chain:
        spans.append(wire.span(name, chain["range"]))
        chain = chain.get("parent")
    return _render(name, wire.text(name), mark, spans)


def _render(name: str, text: str, mark: Mark, spans: list[tuple[int, int]]) -> list[str]:
    line, column = LineIndex(text).position(mark.offset)
    return [f"select {name}:{line + 1}:{column + 1}", *(f"  {place(text, span)}" for span in spans)]
