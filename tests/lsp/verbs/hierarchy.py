"""``⟦hierarchy⟧``: the tool at a place, who names it, and what its file and those files name."""

from __future__ import annotations

from typing import Any

from tamis.protocols.positions import LineIndex
from tamis.server.analysis.navigation.references import callers_at, incoming, outgoing
from tests.lsp.markers import Core, Mark, Wire, place

MARK = "hierarchy"


def through_core(core: Core, name: str, mark: Mark) -> list[str]:
    documents = core.case.documents
    index = core.snapshot(name).index
    assert index is not None
    lines = _title(core.text(name), name, mark)
    for item in callers_at(core.snapshot(name), mark.offset):
        other = core.name(item.path)
        lines.append(f"  {item.name} {other} {place(documents[other], item.span)}")
        for edge in incoming(index, item.path):
            there = core.name(edge.other.path)
            lines.append(f"    from {edge.other.name} {there}")
            lines += [f"      {place(documents[there], span)}" for span in edge.spans]
            for out in outgoing(index, edge.other.path):
                lines.append(f"        to {out.other.name} {len(out.spans)}")
        for edge in outgoing(index, item.path):
            lines.append(f"    to {edge.other.name} {core.name(edge.other.path)}")
            lines += [f"      {place(documents[other], span)}" for span in edge.spans]
    return lines


def through_wire(wire: Wire, name: str, mark: Mark) -> list[str]:
    documents = wire.case.documents
    lines = _title(wire.text(name), name, mark)

    def shown(other: str, found: list[dict[str, Any]]) -> list[str]:
        return [f"      {place(documents[other], wire.span(other, one))}" for one in found]

    for item in wire.ask("textDocument/prepareCallHierarchy", wire.at(name, mark)):
        other = wire.name(item["uri"])
        lines.append(f"  {item['name']} {other} {place(documents[other], wire.span(other, item['selectionRange']))}")
        for edge in wire.ask("callHierarchy/incomingCalls", {"item": item}):
            there = wire.name(edge["from"]["uri"])
            lines.append(f"    from {edge['from']['name']} {there}")
            lines += shown(there, edge["fromRanges"])
            for out in wire.ask("callHierarchy/outgoingCalls", {"item": edge["from"]}):
                lines.append(f"        to {out['to']['name']} {len(out['fromRanges'])}")
        for edge in wire.ask("callHierarchy/outgoingCalls", {"item": item}):
            lines.append(f"    to {edge['to']['name']} {wire.name(edge['to']['uri'])}")
            lines += shown(other, edge["fromRanges"])
    return lines


def _title(text: str, name: str, mark: Mark) -> list[str]:
    line, column = LineIndex(text).position(mark.offset)
    return [f"hierarchy {name}:{line + 1}:{column + 1}"]
