"""Workflows drawn as Mermaid and SVG: every name is only a name, wide characters have room, large graphs are drawn."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.workflow.drawing import MAX_DRAWN, Drawing, Timing, drawing_of, mermaid, svg, text_width
from tamis.protocols.workflow.reading import read_workflow

SVG = "{http://www.w3.org/2000/svg}"


def drawn(content: dict[str, Any], timings: dict[str, Timing] | None = None) -> Drawing:
    draft = read_workflow(json.dumps(content), "flow").draft
    assert draft is not None
    return drawing_of(draft, timings)


def edge(a: str, b: str) -> dict[str, str]:
    return dict(zip(("source", "sourceHandle", "target", "targetHandle"), (*a.split("."), *b.split(".")), strict=True))


GREET: dict[str, Any] = {
    "name": "问候",
    "interfaceInputs": {"who": {"dataFlowType": "STRING"}},
    "interfaceOutputs": {"said": {"dataFlowType": "STRING"}},
    "nodes": [
        {"id": "in", "type": "input"},
        {"id": "say", "type": "template", "displayName": "说你好", "config": {"template": "{{x}}"}},
        {"id": "if", "type": "condition"},
        {"id": "out", "type": "output"},
    ],
    "edges": [
        edge("in.who", "say.x"),
        edge("in.who", "if.value"),
        edge("if.then", "say.y"),
        edge("say.text", "out.said"),
    ],
}


def test_mermaid_shows_the_interface_the_nodes_and_what_leads_where() -> None:
    assert mermaid(drawn(GREET)).splitlines() == [
        "%% 问候",
        "flowchart LR",
        '  b0(["who<br/>STRING"])',
        '  b1["说你好<br/>template"]',
        '  b2["if<br/>condition"]',
        '  b3(["said<br/>STRING"])',
        '  b0 -->|"x"| b1',
        '  b0 -->|"value"| b2',
        '  b2 -->|"then → y"| b1',
        '  b1 -->|"text"| b3',
        "  classDef input fill:#eef2ff,stroke:#6366f1,color:#1e1b4b",
        "  class b0 input",
        "  classDef output fill:#ecfdf5,stroke:#10b981,color:#064e3b",
        "  class b3 output",
    ]


def test_the_times_of_a_run_are_shown() -> None:
    timings = {"say": Timing("success", 12.34), "if": Timing("error", 2500.0)}
    drawing = drawn(GREET, timings)
    assert [box.lines[-1] for box in drawing.boxes[1:3]] == ["12.3 ms", "error, 2.50 s"]
    assert [box.status for box in drawing.boxes[1:3]] == ["success", "error"]
    assert "class b2 failed" in mermaid(drawing)
    texts = [node.text for node in ElementTree.fromstring(svg(drawing)).iter(f"{SVG}text")]
    assert "12.3 ms" in texts


@given(st.text(max_size=30), st.text(min_size=1, max_size=30))
def test_no_name_is_more_than_a_name(title: str, name: str) -> None:
    content = {
        "name": title,
        "nodes": [{"id": name, "type": name}, {"id": "b", "type": "merge"}],
        "edges": [{"source": name, "sourceHandle": name, "target": "b", "targetHandle": name}],
    }
    drawing = drawn(content)
    root = ElementTree.fromstring(svg(drawing))  # it is well-formed
    allowed = {f"{SVG}{tag}" for tag in ("svg", "title", "defs", "marker", "path", "rect", "text", "g")}
    assert {node.tag for node in root.iter()} <= allowed
    assert all(not attribute.lower().startswith("on") for node in root.iter() for attribute in node.attrib)
    for line in mermaid(drawing).splitlines()[1:]:
        for label in re.findall(r'"([^"]*)"', line):
            assert re.fullmatch(r"(?:[^<>\"`{}\[\];#&|%]|<br/>|#\d+;)*", label), label


def test_wide_characters_have_twice_the_room() -> None:
    assert text_width("中文") == text_width("abcd")
    assert text_width("e\u0301") == text_width("e")
    assert text_width("ｗ") == 2 * text_width("w")


def boxes(document: str) -> list[tuple[float, float, float, float]]:
    found = ElementTree.fromstring(document).findall(f".//{SVG}g/{SVG}rect")
    return [tuple(float(rect.attrib[name]) for name in ("x", "y", "width", "height")) for rect in found]  # type: ignore[misc] # four each


@given(
    st.integers(2, 14).flatmap(
        lambda count: st.tuples(
            st.just(count), st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=30)
        )
    )
)
def test_boxes_never_overlap_and_stay_inside(graph: tuple[int, list[tuple[int, int]]]) -> None:
    count, pairs = graph
    nodes = [{"id": f"n{i}" + "宽" * (i % 5), "type": "merge"} for i in range(count)]
    edges = [
        {"source": nodes[a]["id"], "sourceHandle": "value", "target": nodes[b]["id"], "targetHandle": "x"}
        for a, b in pairs
    ]
    document = svg(drawn({"nodes": nodes, "edges": edges}))
    root = ElementTree.fromstring(document)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    found = boxes(document)
    assert len(found) == count
    for x, y, w, h in found:
        assert x >= 0 and y >= 0 and x + w <= width and y + h <= height
    for number, (x, y, w, h) in enumerate(found):
        for other_x, other_y, other_w, other_h in found[number + 1 :]:
            apart = x + w <= other_x or other_x + other_w <= x or y + h <= other_y or other_y + other_h <= y
            assert apart


def test_arrows_go_from_left_to_right() -> None:
    nodes = [{"id": f"n{i}", "type": "merge"} for i in (3, 0, 2, 1)]
    found = boxes(
        svg(drawn({"nodes": nodes, "edges": [edge(f"n{a}.value", f"n{b}.x") for a, b in pairwise(range(4))]}))
    )
    by_node = {node["id"]: box[0] for node, box in zip(nodes, found, strict=True)}
    assert by_node["n0"] < by_node["n1"] < by_node["n2"] < by_node["n3"]


def test_a_file_with_only_an_interface_is_drawn() -> None:
    drawing = drawn({"interfaceInputs": {"a": {}}, "interfaceOutputs": {"b": {}}})
    assert len(boxes(svg(drawing))) == 2
    assert ElementTree.fromstring(svg(drawn({"nodes": []}))).tag == f"{SVG}svg"


@pytest.mark.slow
@pytest.mark.parametrize("span", [1, 1700])
def test_large_graphs_are_drawn_and_cut(span: int) -> None:
    count = 5000
    nodes = [{"id": f"n{i}", "type": "merge"} for i in range(count)]
    edges = [edge(f"n{i}.value", f"n{i + step}.s{step}") for i in range(count - span) for step in {1, span}]
    drawing = drawn({"nodes": nodes, "edges": edges})
    assert len(drawing.boxes) == MAX_DRAWN
    document = svg(drawing)
    assert len(boxes(document)) == MAX_DRAWN
    assert f"the first {MAX_DRAWN} of 5000 nodes" in mermaid(drawing).splitlines()[0]
