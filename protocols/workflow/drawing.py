"""What a drawing of a workflow shows, whatever it is drawn in: boxes for the interface and the nodes, arrows between them, times of a run.

Must not know Mermaid or SVG.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tamis.protocols.workflow.kinds import inner_node, kind_of_node
from tamis.protocols.workflow.model import Workflow
from tamis.protocols.workflow.payload import output_mappings

MAX_LABEL = 60
MAX_DRAWN = 2_000
"""How many nodes a drawing shows."""


class Timing(msgspec.Struct, frozen=True):
    """What a run made of a node."""

    status: str
    duration_ms: float | None = None


class Box(msgspec.Struct, frozen=True):
    """One box: its lines of text, and what it stands for (``input``, ``output``, ``node``)."""

    lines: tuple[str, ...]
    role: str
    status: str = ""


class Arrow(msgspec.Struct, frozen=True):
    """From one box to another, by number."""

    source: int
    target: int
    label: str


class Drawing(msgspec.Struct, frozen=True):
    """Boxes and arrows."""

    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    title: str


def drawing_of(workflow: Workflow, timings: Mapping[str, Timing] | None = None) -> Drawing:
    """A workflow as boxes and arrows. ``input`` and ``output`` nodes are shown as the parts of the interface that they stand for."""
    nodes = (workflow.nodes or ())[:MAX_DRAWN]
    kinds = {node.id: kind_of_node(node.type) for node in nodes}
    boxes: list[Box] = []
    inputs = {name: _add(boxes, Box(_lines(name, slot.type), "input")) for name, slot in workflow.inputs.items()}
    places: dict[str, int] = {}
    for node in nodes:
        if kinds[node.id] not in ("input", "output") and node.id not in places:
            timing = (timings or {}).get(node.id)
            below = f"map: {inner_node(node).type}" if kinds[node.id] == "map" else node.type
            lines = _lines(node.title or node.id, below, _time(timing))
            places[node.id] = _add(boxes, Box(lines, "node", timing.status if timing is not None else ""))
    outputs = {name: _add(boxes, Box(_lines(name, slot.type), "output")) for name, slot in workflow.outputs.items()}
    arrows: dict[Arrow, None] = {}

    def connect(source: int | None, target: int | None, label: str) -> None:
        if source is not None and target is not None:
            arrows[Arrow(source, target, label)] = None

    def start(node: str, slot: str) -> int | None:
        return inputs.get(slot) if kinds.get(node) == "input" else places.get(node)

    for name, place in workflow.input_mappings:
        connect(inputs.get(name), places.get(place.node), place.slot)
    for edge in workflow.edges:
        if kinds.get(edge.target.node) != "output":
            source = start(edge.source.node, edge.source.slot)
            shown = edge.target.slot
            if kinds.get(edge.source.node) == "condition":
                shown = f"{edge.source.slot} → {shown}"
            connect(source, places.get(edge.target.node), shown)
    for name, place in output_mappings(workflow).items():
        connect(start(place.node, place.slot), outputs[name], place.slot)
    title = short(workflow.name or workflow.workflow_id)
    if len(workflow.nodes or ()) > MAX_DRAWN:
        title += f" (the first {MAX_DRAWN} of {len(workflow.nodes or ())} nodes)"
    return Drawing(tuple(boxes), tuple(arrows), title)


def _add(boxes: list[Box], box: Box) -> int:
    boxes.append(box)
    return len(boxes) - 1


def _lines(*texts: str) -> tuple[str, ...]:
    return tuple(short(text) for text in texts if text)


def short(text: str) -> str:
    """A text on one line, cut, without characters that are not seen."""
    plain = "".join(char if char.isprintable() else " " for char in text[: MAX_LABEL * 2])
    return plain if len(plain) <= MAX_LABEL else plain[: MAX_LABEL - 1] + "…"


def _time(timing: Timing | None) -> str:
    if timing is None:
        return ""
    if timing.duration_ms is None:
        return timing.status
    ms = timing.duration_ms
    taken = f"{ms:.1f} ms" if ms < 1000 else f"{ms / 1000:.2f} s"
    return taken if timing.status == "success" else f"{timing.status}, {taken}"
