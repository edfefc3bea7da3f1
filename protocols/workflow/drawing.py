"""What a drawing of a workflow shows, whatever it is drawn in: boxes for the interface and the nodes, arrows between them, times of a run.

Must not know Mermaid or SVG.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from itertools import pairwise

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


# A workflow's drawing as Mermaid text.


_SHAPES = {"input": ('(["', '"])'), "output": ('(["', '"])'), "node": ('["', '"]')}
_CLASSES = {
    "input": "fill:#eef2ff,stroke:#6366f1,color:#1e1b4b",
    "output": "fill:#ecfdf5,stroke:#10b981,color:#064e3b",
    "success": "fill:#f0fdf4,stroke:#16a34a,color:#14532d",
    "failed": "fill:#fef2f2,stroke:#dc2626,color:#7f1d1d",
    "skipped": "fill:#f8fafc,stroke:#94a3b8,color:#64748b,stroke-dasharray:4 3",
}


def mermaid(drawing: Drawing) -> str:
    """A flow chart; every name is quoted and escaped, so that none can be more than a name."""
    lines = [f"%% {_comment(drawing.title)}", "flowchart LR"]
    used: dict[str, list[str]] = {}
    for number, box in enumerate(drawing.boxes):
        opening, closing = _SHAPES[box.role]
        lines.append(f"  b{number}{opening}{'<br/>'.join(mermaid_text(line) for line in box.lines)}{closing}")
        kind = class_of(box.role, box.status)
        if kind:
            used.setdefault(kind, []).append(f"b{number}")
    for arrow in drawing.arrows:
        label = f'|"{mermaid_text(arrow.label)}"|' if arrow.label else ""
        lines.append(f"  b{arrow.source} -->{label} b{arrow.target}")
    for kind, names in used.items():
        lines.append(f"  classDef {kind} {_CLASSES[kind]}")
        lines.append(f"  class {','.join(names)} {kind}")
    return "\n".join(lines) + "\n"


def class_of(role: str, status: str) -> str:
    """How a box is coloured: by the interface, or by what a run made of it."""
    if role != "node":
        return role
    if status in ("", "pending", "running"):
        return ""
    return status if status in ("success", "skipped") else "failed"


def mermaid_text(text: str) -> str:
    """A text inside a quoted label: everything that Mermaid or HTML reads as more than itself as a character code."""
    return "".join(char if char.isalnum() or char in " _-.,:/()→…" else f"#{ord(char)};" for char in text)


def _comment(text: str) -> str:
    # %%{ would begin a directive
    return " ".join(text.replace("{", "(").replace("}", ")").split())


# A workflow's drawing as SVG: boxes in layers from left to right, arrows that go round the boxes between. Layers by the longest way from a source;
# long arrows get a place of their own in every layer that they cross; within a layer what is connected is drawn near each other (barycentres, a few
# sweeps). No scripts, no links, no fonts from elsewhere; every text is escaped.


_CHAR = 7.4
_LINE = 18
_PAD = 12
_GAP_X = 90
_GAP_Y = 22
_VIA = 10
"""The height that an arrow takes in a layer that it crosses."""
_SWEEPS = 4
MAX_VIAS = 20_000
"""With more crossings than that, arrows go straight."""
_COLOURS = {
    "": ("#ffffff", "#64748b", "#0f172a"),
    "input": ("#eef2ff", "#6366f1", "#1e1b4b"),
    "output": ("#ecfdf5", "#10b981", "#064e3b"),
    "success": ("#f0fdf4", "#16a34a", "#14532d"),
    "failed": ("#fef2f2", "#dc2626", "#7f1d1d"),
    "skipped": ("#f8fafc", "#94a3b8", "#64748b"),
}


def text_width(text: str) -> float:
    """How wide a text is about, in pixels: East Asian characters take two columns, marks that combine none."""
    columns = 0
    for char in text:
        if unicodedata.combining(char):
            continue
        columns += 2 if unicodedata.east_asian_width(char) in "WF" else 1
    return columns * _CHAR


def svg(drawing: Drawing) -> str:
    """The drawing as one SVG document."""
    return _Layout(drawing).text()


class _Layout:
    """Where everything stands. Items are the boxes and, behind them, the places where arrows cross layers."""

    def __init__(self, drawing: Drawing) -> None:
        self.drawing = drawing
        count = len(drawing.boxes)
        self.width = [max((text_width(line) for line in box.lines), default=0) + 2 * _PAD for box in drawing.boxes]
        self.height: list[float] = [len(box.lines) * _LINE + _PAD for box in drawing.boxes]
        self.layer = _layers(count, [(arrow.source, arrow.target) for arrow in drawing.arrows])
        last = max(self.layer, default=0)
        for number, box in enumerate(drawing.boxes):
            if box.role == "output":
                self.layer[number] = last
        self.ways = self._ways()
        self.rows = self._rows()
        self._place()
        self.tips = self._tips()

    def _ways(self) -> list[list[int]]:
        """For each arrow the items that it passes, its ends included."""
        spans = [self.layer[arrow.target] - self.layer[arrow.source] for arrow in self.drawing.arrows]
        crossing = sum(max(0, span - 1) for span in spans)
        ways: list[list[int]] = []
        for arrow, span in zip(self.drawing.arrows, spans, strict=True):
            way = [arrow.source]
            for step in range(1, span if crossing <= MAX_VIAS else 0):
                way.append(len(self.layer))
                self.layer.append(self.layer[arrow.source] + step)
                self.width.append(0)
                self.height.append(_VIA)
            ways.append([*way, arrow.target])
        return ways

    def _rows(self) -> list[list[int]]:
        rows: list[list[int]] = [[] for _ in range(max(self.layer, default=-1) + 1)]
        for item, layer in enumerate(self.layer):
            rows[layer].append(item)
        near: list[tuple[list[int], list[int]]] = [([], []) for _ in self.layer]
        for way in self.ways:
            for left, right in pairwise(way):
                near[left][1].append(right)
                near[right][0].append(left)
        place: dict[int, float] = {item: at for row in rows for at, item in enumerate(row)}
        for sweep in range(_SWEEPS):
            forward = sweep % 2 == 0
            for row in rows if forward else reversed(rows):
                means = {
                    item: _mean([place[item] for item in near[item][0 if forward else 1]], place[item]) for item in row
                }
                row.sort(key=lambda item, by=means: by[item])
                place.update({item: float(at) for at, item in enumerate(row)})
        return rows

    def _place(self) -> None:
        self.x: list[float] = [0.0] * len(self.layer)
        self.y: list[float] = [0.0] * len(self.layer)
        heights = [sum(self.height[item] for item in row) + _GAP_Y * max(0, len(row) - 1) for row in self.rows]
        top = _GAP_Y * 2 + _LINE
        self.total_height = max(heights, default=0) + top + _GAP_Y
        x = float(_GAP_Y)
        for row, height in zip(self.rows, heights, strict=True):
            widest = max((self.width[item] for item in row), default=0)
            y = top + (max(heights) - height) / 2
            for item in row:
                self.x[item], self.y[item] = x + (widest - self.width[item]) / 2, y
                y += self.height[item] + _GAP_Y
            x += widest + _GAP_X
        self.total_width = max(x - _GAP_X + _GAP_Y, text_width(self.drawing.title) + 2 * _GAP_Y, 120.0)

    # writing

    def text(self) -> str:
        width, height = _number(self.total_width), _number(self.total_height)
        title = xml_text(self.drawing.title)
        fonts = "ui-monospace, Menlo, Consolas, 'Noto Sans Mono CJK SC', monospace"
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            f'role="img" font-family="{fonts}" font-size="12">'
        )
        tip = (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0 0 L8 4 L0 8 z" fill="#64748b"/></marker></defs>'
        )
        named = f'<text x="{_GAP_Y}" y="{_GAP_Y + 8}" font-size="14" font-weight="bold" fill="#0f172a">{title}</text>'
        ground = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
        parts = [head, f"<title>{title}</title>", tip, ground, named]
        parts += [self._arrow(number) for number in range(len(self.ways))]
        parts += [self._box(number, box) for number, box in enumerate(self.drawing.boxes)]
        parts += [self._label(number) for number in range(len(self.ways))]
        return "\n".join(part for part in [*parts, "</svg>"] if part) + "\n"

    def _box(self, number: int, box: Box) -> str:
        kind = class_of(box.role, box.status)
        fill, stroke, colour = _COLOURS[kind]
        x, y, width, height = self.x[number], self.y[number], self.width[number], self.height[number]
        dashes = ' stroke-dasharray="4 3"' if kind == "skipped" else ""
        radius = 6 if box.role == "node" else _number(height / 2)
        size = f'x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" height="{_number(height)}" rx="{radius}"'
        parts = [f'<rect {size} fill="{fill}" stroke="{stroke}"{dashes}/>']
        for line, text in enumerate(box.lines):
            weight = ' font-weight="bold"' if line == 0 else ""
            at = y + _PAD / 2 + _LINE * line + 13
            parts.append(
                f'<text x="{_number(x + width / 2)}" y="{_number(at)}" text-anchor="middle" fill="{colour}"{weight}>{xml_text(text)}</text>'
            )
        return "<g>" + "".join(parts) + "</g>"

    def _tips(self) -> list[float]:
        """How high each arrow comes in: those that come to the same box stand one below the other, in the order of where they come from."""
        coming: dict[int, list[int]] = {}
        for number, way in enumerate(self.ways):
            coming.setdefault(way[-1], []).append(number)
        tips = [0.0] * len(self.ways)
        for item, numbers in coming.items():
            numbers.sort(key=lambda number: self.y[self.ways[number][-2]] + self.height[self.ways[number][-2]] / 2)
            step = self.height[item] / (len(numbers) + 1)
            for at, number in enumerate(numbers):
                tips[number] = self.y[item] + step * (at + 1)
        return tips

    def _right(self, item: int) -> tuple[float, float]:
        return self.x[item] + self.width[item], self.y[item] + self.height[item] / 2

    def _left(self, item: int) -> tuple[float, float]:
        return self.x[item], self.y[item] + self.height[item] / 2

    def _arrow(self, number: int) -> str:
        way = self.ways[number]
        x, y = self._right(way[0])
        path = [f"M{_number(x)} {_number(y)}"]
        for item in way[1:]:
            to_x, to_y = self._left(item)
            if item == way[-1]:
                to_y = self.tips[number]
            bend = max(24.0, abs(to_x - x) / 2)
            path.append(
                f"C{_number(x + bend)} {_number(y)} {_number(to_x - bend)} {_number(to_y)} {_number(to_x)} {_number(to_y)}"
            )
            x, y = to_x, to_y
        return f'<path d="{" ".join(path)}" fill="none" stroke="#94a3b8" marker-end="url(#tip)"/>'

    def _label(self, number: int) -> str:
        label = self.drawing.arrows[number].label
        if not label:
            return ""
        x, y = self.x[self.ways[number][-1]], self.tips[number]
        return (
            f'<text x="{_number(x - 10)}" y="{_number(y - 5)}" text-anchor="end" font-size="10" fill="#475569" '
            f'stroke="#ffffff" stroke-width="3" paint-order="stroke">{xml_text(label)}</text>'
        )


def _layers(count: int, arrows: list[tuple[int, int]]) -> list[int]:
    """The layer of each box: behind all that leads to it. Boxes of a circle come after what leads into it."""
    after: list[list[int]] = [[] for _ in range(count)]
    waits = [0] * count
    for source, target in arrows:
        after[source].append(target)
        waits[target] += 1
    layer = [0] * count
    ready = [item for item in range(count) if not waits[item]]
    done = [False] * count
    left = iter(range(count))
    while True:
        for item in ready:
            done[item] = True
            for target in after[item]:
                if not done[target]:
                    layer[target] = max(layer[target], layer[item] + 1)
                    waits[target] -= 1
                    if not waits[target]:
                        ready.append(target)
        stuck = next((item for item in left if not done[item]), None)
        if stuck is None:
            return layer
        ready = [stuck]


def _mean(values: list[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _number(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")


def xml_text(text: str) -> str:
    """A text as XML content; characters that XML has not are shown as �."""
    kept = "".join(
        char if char in "\t\n" or (ord(char) >= 32 and not 0xD800 <= ord(char) <= 0xDFFF) else "\ufffd" for char in text
    )
    kept = kept.replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")
    return kept.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
