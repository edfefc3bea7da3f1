"""Workflow files read with places, and what their graphs lack (seed 004, seed 000 §7; W02 to W12, ruling 31, ruling 36)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.catalogue import message, severity
from tamis.protocols.model import Diag
from tamis.protocols.workflow.graph import Unknown, check_graph, findings_at
from tamis.protocols.workflow.model import TYPES, Slot, Slots, connects, converted, fits, slots_of
from tamis.protocols.workflow.reading import read_workflow


class Tools(Unknown):
    """Two tools and two workflows that call each other."""

    known: ClassVar = {
        "t:echo": Slots({"text": Slot("text", "STRING", required=True)}, {"output": Slot("output", "STRING")}),
        "workflow:other": Slots({}, {"output": Slot("output")}),
    }

    def slots(self, node_type: str) -> Slots | None:
        return self.known.get(node_type)

    def names(self) -> Iterable[str]:
        return self.known

    def judges(self, node_type: str) -> bool:
        return not node_type.startswith("host:")

    def called(self, node_type: str) -> str:
        return node_type.removeprefix("workflow:") if node_type.startswith("workflow:") else ""

    def calls_of(self, workflow_id: str) -> Iterable[str]:
        return ["third"] if workflow_id == "other" else ["mine"] if workflow_id == "third" else []


def found(content: dict[str, Any] | str, types: Unknown | None = None) -> list[tuple[str, str]]:
    """Each finding's code, with the text that it stands at."""
    text = content if isinstance(content, str) else json.dumps(content)
    reading = read_workflow(text, "mine")
    graph = findings_at(check_graph(reading.draft, types or Tools()), reading.tree) if reading.draft is not None else []
    return [(diag.code, text[slice(*diag.span)]) for diag in [*reading.diagnostics, *graph]]


def of_nodes(*nodes: dict[str, Any], edges: list[dict[str, str]] | None = None, **more: Any) -> dict[str, Any]:
    return {"nodes": list(nodes), "edges": edges or []} | more


def test_a_whole_workflow_has_no_findings() -> None:
    content = of_nodes(
        {"id": "in", "type": "core:GroupInput", "position": {"x": 1}, "width": 3},
        {"id": "e", "fullType": "t:echo", "inputValues": {}, "configValues": {}},
        {"id": "out", "type": "core:GroupOutput"},
        edges=[
            {"id": "1", "source": "in", "sourceHandle": "q", "target": "e", "targetHandle": "text"},
            {"sourceNodeId": "e", "sourceHandle": "output", "targetNodeId": "out", "targetHandle": "a"},
        ],
        interfaceInputs={"q": {"dataFlowType": "STRING", "required": True}},
        interfaceOutputs={"a": {"dataFlowType": "STRING"}},
        viewport={"zoom": 1},
    )
    assert found(content) == []
    workflow = read_workflow(json.dumps(content), "mine").workflow
    assert workflow is not None
    assert [node.type for node in workflow.nodes or ()] == ["core:GroupInput", "t:echo", "core:GroupOutput"]


def test_comments_and_trailing_commas_are_read_unless_strict() -> None:  # W04, ruling 31
    text = '{ // a workflow\n "interfaceInputs": {}, "nodes": [], }'
    reading = read_workflow(text, "mine")
    assert reading.workflow is not None
    assert [severity(diag) for diag in reading.diagnostics] == ["hint", "hint"]
    assert read_workflow(text, "mine", strict=True).workflow is None


def test_a_file_with_only_an_interface_has_no_graph_to_judge() -> None:  # W05
    assert found({"interfaceInputs": {"a": {"dataFlowType": "STRING"}}, "interfaceOutputs": {"b": {}}}) == []


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([], [("WF901", "[]")]),
        ({"nodes": {}}, [("WF901", "{}")]),
        ({"nodes": [1]}, [("WF901", "1")]),
        ({"nodes": [], "edges": "x"}, [("WF901", '"x"')]),
        ({"nodes": [{"type": "merge"}]}, [("WF902", "{")]),
        ({"nodes": [{"id": "a", "type": 5.5}]}, [("WF901", "5.5")]),
        ({"nodes": [{"id": " ", "type": "merge"}]}, [("WF901", '" "')]),
        ({"nodes": [{"id": "a", "type": "merge", "inputs": []}]}, [("WF901", "[]")]),
        ({"nodes": [], "interfaceInputs": []}, [("WF901", "[]")]),
        ({"nodes": [], "interfaceInputs": {"a": 1}}, [("WF901", "1")]),
        ({"nodes": [], "execution": {"timeoutMs": 0}}, [("WF903", "0")]),
        ({"nodes": [], "execution": {"mode": "later"}}, [("WF903", '"later"')]),  # T21
        ({"nodes": [], "interfaceInput": {}}, [("WF904", '"interfaceInput"')]),
        ({"nodes": [{"id": "a", "type": "merge", "inptus": {}}]}, [("WF904", '"inptus"')]),
        (of_nodes({"id": "a", "type": "t:ecko"}), [("WF905", '"t:ecko"')]),
        (of_nodes({"id": "a", "type": "host:thing"}), []),
        (of_nodes({"id": "a", "type": "merge"}, {"id": "a", "type": "merge"}), [("WF906", '"a"')]),
        (of_nodes({"id": "a", "type": "t:echo"}), [("WF911", '"a"')]),
        (of_nodes({"id": "a", "type": "t:echo", "inputs": {"text": "x", "txt": 1}}), [("WF908", '"txt"')]),
        (of_nodes({"id": "a", "type": "t:echo", "inputs": {"text": [1]}}), [("WF917", '"text"')]),
        (of_nodes({"id": "a", "type": "t:echo", "inputs": {"text": 5}}), []),
        (of_nodes({"id": "a", "type": "constant"}), [("WF919", '"constant"')]),
        (of_nodes({"id": "a", "type": "template", "config": {"template": 1}}), [("WF919", "{")]),
        (
            of_nodes({"id": "a", "type": "condition", "inputs": {"value": 1}, "config": {"operator": "is"}}),
            [("WF919", "{")],
        ),
        (of_nodes({"id": "a", "type": "map", "inputs": {"items": []}, "config": {"type": "map"}}), [("WF919", '"map"')]),
        (of_nodes({"id": "a", "type": "map", "inputs": {"items": []}, "config": {"type": "t:eco"}}), [("WF905", '"t:eco"')]),
        (of_nodes({"id": "a", "type": "map", "inputs": {"items": []}, "config": {"type": "t:echo"}}), []),
        (of_nodes({"id": "a", "type": "workflow:mine"}), [("WF905", '"workflow:mine"'), ("WF916", '"workflow:mine"')]),
        (of_nodes({"id": "a", "type": "workflow:other"}), [("WF916", '"workflow:other"')]),
        (of_nodes(interfaceOutputs={"o": {}}), [("WF913", '"o"')]),
        (of_nodes(interfaceInputs={"i": {}}), [("WF914", '"i"')]),
        (of_nodes(outputInterfaceMappings={"o": {"nodeId": "a", "slotKey": "b"}}), [("WF921", '"o"')]),
        ({"nodes": [], "interfaceInputs": {"a": {"dataFlowType": "string"}}}, [("WF918", '"string"'), ("WF914", '"a"')]),
        (
            {"nodes": [], "interfaceInputs": {"a": {"dataFlowType": "FLOAT", "config": {"default": "x"}}}},
            [("WF920", '"x"'), ("WF914", '"a"')],
        ),
    ],
)  # fmt: skip
def test_every_fault_is_a_finding_at_its_place(content: Any, expected: list[tuple[str, str]]) -> None:
    assert found(json.dumps(content)) == expected


def test_a_file_whose_name_cannot_be_an_id(  # W02
) -> None:
    reading = read_workflow('{"nodes": []}', "my flow")
    assert [diag.code for diag in reading.diagnostics] == ["WF923"]
    assert reading.workflow is None


def edges_to(target: str, *sources: str) -> list[dict[str, str]]:
    return [
        {
            "source": one.split(".")[0],
            "sourceHandle": one.split(".")[1],
            "target": target.split(".")[0],
            "targetHandle": target.split(".")[1],
        }
        for one in sources
    ]


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        (edges_to("e.text", "c.value"), []),
        (edges_to("e.text", "l.value"), [("WF909", '"text"')]),
        (edges_to("e.text", "c.value", "c.value"), [("WF915", '"text"')]),
        (edges_to("e.text", "c.vale"), [("WF908", '"vale"')]),
        (edges_to("e.txt", "c.value"), [("WF908", '"txt"'), ("WF911", '"e"')]),
        (edges_to("f.text", "c.value"), [("WF907", '"f"'), ("WF911", '"e"')]),
        (edges_to("e.text", "e.output"), [("WF910", '"e"')]),
        (edges_to("m.a", "e.output") + edges_to("e.text", "m.value"), [("WF910", '"e"')]),
    ],
)
def test_what_leads_where(edges: list[dict[str, str]], expected: list[tuple[str, str]]) -> None:
    nodes = [
        {"id": "c", "type": "constant", "config": {"value": 3}},
        {"id": "l", "type": "constant", "config": {"value": [3]}},
        {"id": "e", "type": "t:echo"},
        {"id": "m", "type": "merge"},
    ]
    assert found(of_nodes(*nodes, edges=edges)) == expected


def test_a_misspelled_name_has_a_fix() -> None:
    text = json.dumps(of_nodes({"id": "a", "type": "t:ecko", "inputs": {"text": "x"}}))
    reading = read_workflow(text, "mine")
    assert reading.draft is not None
    (diag,) = findings_at(check_graph(reading.draft, Tools()), reading.tree)
    assert diag.fix is not None
    (edit,) = diag.fix.edits
    assert json.loads(text[: edit.start] + edit.new_text + text[edit.end :])["nodes"][0]["type"] == "t:echo"


@pytest.mark.slow
def test_ten_thousand_nodes_in_a_circle_are_one_finding() -> None:
    count = 10_000
    nodes = [{"id": f"n{i}", "type": "merge"} for i in range(count)]
    edges = [
        {"source": f"n{i}", "sourceHandle": "value", "target": f"n{(i + 1) % count}", "targetHandle": "x"}
        for i in range(count)
    ]
    reading = read_workflow(json.dumps(of_nodes(*nodes, edges=edges)), "mine")
    assert reading.workflow is not None
    (finding,) = check_graph(reading.workflow, Tools())
    said = message(Diag(finding.code, (0, 0), dict(finding.args)))
    assert said.startswith("These nodes wait for each other: 'n0' → 'n1' → 'n2'")
    assert said.endswith("… (10000 in all)")


@pytest.mark.slow
def test_graphs_beyond_the_limit_are_cut_and_said() -> None:
    text = '{"nodes": [' + ",".join(['{"id":"a","type":"merge"}'] * 20_001) + "]}"
    reading = read_workflow(text, "mine")
    assert [diag.code for diag in reading.diagnostics] == ["WF922"]
    assert reading.workflow is None


# types


@pytest.mark.parametrize("kind", TYPES)
def test_every_type_goes_into_itself_and_into_what_takes_anything(kind: str) -> None:  # ruling 36
    assert connects(kind, kind)
    assert connects(kind, "WILDCARD")
    assert connects(kind, "CONVERTIBLE_ANY")
    assert connects("WILDCARD", kind)


@pytest.mark.parametrize(
    ("source", "target", "right"),
    [
        ("INTEGER", "FLOAT", True),
        ("FLOAT", "INTEGER", False),
        ("INTEGER", "STRING", True),
        ("BOOLEAN", "STRING", True),
        ("STRING", "INTEGER", False),
        ("OBJECT", "STRING", False),
        ("ARRAY", "OBJECT", False),
        ("BINARY", "STRING", False),
        ("BOOLEAN", "INTEGER", False),
    ],
)
def test_which_types_go_into_which(source: str, target: str, right: bool) -> None:
    assert connects(source, target) is right


@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        ("a", {"STRING"}),
        (True, {"BOOLEAN"}),
        (3, {"INTEGER", "FLOAT"}),
        (3.0, {"INTEGER", "FLOAT"}),
        (3.5, {"FLOAT"}),
        ({}, {"OBJECT"}),
        ([], {"ARRAY"}),
        (None, set[str]()),
    ],
)
def test_which_values_are_of_which_type(value: Any, kinds: set[str]) -> None:
    assert {kind for kind in TYPES[:6] if fits(value, kind)} == kinds
    assert all(fits(value, kind) for kind in TYPES[6:])


@pytest.mark.parametrize(
    ("value", "text"), [(1, "1"), (1.5, "1.5"), (True, "true"), (10**30, "1" + "0" * 30), ("a", "a")]
)
def test_single_values_become_texts(value: Any, text: str) -> None:
    assert converted(value, "STRING") == text
    assert converted(value, "WILDCARD") is value


def test_the_slots_of_a_tool_come_from_its_schemas() -> None:
    parameters: Any = {"properties": {"a": {"type": "string"}, "b": {"type": ["integer", "null"]}}, "required": ["a"]}
    output: Any = {"type": "object", "properties": {"n": {"type": "number"}}}
    slots = slots_of(parameters, output)
    assert slots.inputs == {"a": Slot("a", "STRING", required=True), "b": Slot("b")}
    assert slots.outputs == {"n": Slot("n", "FLOAT"), "output": Slot("output", "OBJECT")}
    assert not slots.open_inputs
    assert not slots.open_outputs
    assert slots_of(None, None) == Slots({}, {"output": Slot("output")}, open_inputs=True, open_outputs=True)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "nodes",
                    "edges",
                    "id",
                    "type",
                    "inputs",
                    "config",
                    "source",
                    "target",
                    "interfaceInputs",
                    "interfaceOutputs",
                    "x",
                ]
            )
            | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
    max_leaves=25,
)


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "nodes",
                "edges",
                "interfaceInputs",
                "interfaceOutputs",
                "outputInterfaceMappings",
                "interfaceInputMappings",
                "execution",
            ]
        ),
        JSON,
    )
)
def test_nothing_that_is_json_raises(content: Any) -> None:
    text = json.dumps(content)
    for code, _ in found(text):
        assert code[:2] in ("WF", "MF")


@given(st.text(max_size=60) | st.binary(max_size=40).map(lambda data: data.decode("latin-1")))
def test_nothing_that_is_text_raises(text: str) -> None:
    found(text)
