"""``⟦refer⟧``: the references of a place; ``⟦refer:uses⟧`` leaves declarations out."""

from __future__ import annotations

from tamis.protocols.positions import LineIndex
from tamis.server.analysis.navigation.references import find_references
from tests.lsp.markers import Core, Mark, Wire, place

MARK = "refer"


def through_core(core: Core, name: str, mark: Mark) -> list[str]:
    sites = find_references(core.snapshot(name), mark.offset, include_declaration=mark.argument != "uses")
    return _render(core.case.documents, name, mark, [(core.name(site.path), site.span) for site in sites])


def through_wire(wire: Wire, name: str, mark: Mark) -> list[str]:
    params = {**wire.at(name, mark), "context": {"includeDeclaration": mark.argument != "uses"}}
    rows: list[tuple[str, tuple[int, int]]] = []
    for found in wire.ask("textDocument/references", params):
        other = wire.name(found["uri"])
        rows.append((other, wire.span(other, found["range"])))
    return _render(wire.case.documents, name, mark, rows)


def _render(documents: dict[str, str], name: str, mark: Mark, rows: list[tuple[str, tuple[int, int]]]) -> list[str]:
    line, column = LineIndex(documents[name]).position(mark.offset)
    title = "uses" if mark.argument == "uses" else "references"
    return [
        f"{title} {name}:{line + 1}:{column + 1}",
        *(f"  {other} {place(documents[other], span)}" for other, span in rows),
    ]
