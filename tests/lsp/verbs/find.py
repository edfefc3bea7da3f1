"""``⟦find:QUERY⟧``: the tools of the workspace by name."""

from __future__ import annotations

from tamis.server.analysis.navigation.symbols import find_tools
from tests.lsp.markers import Core, Mark, Wire, place

MARK = "find"


def through_core(core: Core, name: str, mark: Mark) -> list[str]:
    index = core.snapshot(name).index
    assert index is not None
    rows = [
        (found.name, found.container, core.name(found.tool.path), found.tool.declared.span)
        for found in find_tools(index, mark.argument)
    ]
    return _render(core.case.documents, mark, rows)


def through_wire(wire: Wire, name: str, mark: Mark) -> list[str]:
    rows: list[tuple[str, str, str, tuple[int, int]]] = []
    for found in wire.ask("workspace/symbol", {"query": mark.argument}):
        other = wire.name(found["location"]["uri"])
        span = wire.span(other, found["location"]["range"])
        rows.append((found["name"], found.get("containerName", ""), other, span))
    return _render(wire.case.documents, mark, rows)


def _render(documents: dict[str, str], mark: Mark, rows: list[tuple[str, str, str, tuple[int, int]]]) -> list[str]:
    lines = [f"find '{mark.argument}'"]
    for name, container, other, span in rows:
        about = f" ({container})" if container else ""
        lines.append(f"  {name}{about} {other} {place(documents[other], span)}")
    return lines
