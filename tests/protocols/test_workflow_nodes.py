"""The built-in kinds of nodes, and the payload that engines get (W16, A46, A47)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.workflow.kinds import NodeError, compute, filled, holes, item_slot, kind_slots, same
from tamis.protocols.workflow.model import Node, Slot, Slots
from tamis.protocols.workflow.payload import single_node_payload, workflow_payload
from tamis.protocols.workflow.reading import read_workflow

VALUES: dict[str, Any] = {"name": "Ann", "n": 3, "list": [{"a": 1}, "x"], "deep": {"a": {"b": None}}, "with.dot": "dot"}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("Hi {{name}}!", "Hi Ann!"),
        ("{{ name }}{{n}}", "Ann3"),
        ("{{list}}", '[{"a":1},"x"]'),
        ("{{list.0.a}} {{list.1}} {{deep.a.b}}", "1 x null"),
        ("{{with.dot}}", "dot"),
        ("{name} {{}} {{ }}", "{name} {{}} {{ }}"),
        ("{{{name}}}", "{Ann}"),
        ("", ""),
    ],
)
def test_templates(template: str, text: str) -> None:
    assert filled(template, VALUES) == text


@pytest.mark.parametrize("template", ["{{nobody}}", "{{list.2}}", "{{deep.x}}", "{{n.a}}"])
def test_a_hole_that_nothing_fills_is_a_fault(template: str) -> None:
    with pytest.raises(NodeError):
        filled(template, VALUES)


def test_a_value_with_holes_is_not_filled_again() -> None:
    assert filled("{{a}}", {"a": "{{b}}", "b": "secret"}) == "{{b}}"


@given(st.text(max_size=200))
def test_any_template_is_filled_or_refused(template: str) -> None:
    values: dict[str, Any] = {name.split(".", 1)[0]: "v" for name in holes(template)}
    try:
        assert "{{" not in filled(template, values) or "{{" in template
    except NodeError:
        assert any("." in name for name in holes(template))


@pytest.mark.parametrize(
    ("operator", "value", "than", "holds"),
    [
        ("truthy", "a", None, True),
        ("truthy", 0, None, False),
        ("truthy", 0.0, None, False),
        ("truthy", False, None, False),
        ("truthy", [], None, False),
        ("truthy", None, None, False),
        ("truthy", {"a": 1}, None, True),
        ("empty", "", None, True),
        ("empty", 0, None, False),
        ("equals", 1, 1.0, True),
        ("equals", 1, True, False),
        ("equals", {"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, True),
        ("equals", [1], [1, 2], False),
        ("notEquals", "a", "b", True),
        ("less", 1, 2.5, True),
        ("less", "a", "b", True),
        ("lessOrEqual", 2, 2, True),
        ("greater", 3, 2, True),
        ("greaterOrEqual", 1, 2, False),
        ("contains", "hello", "ell", True),
        ("contains", [1, True], True, True),
        ("contains", [1], True, False),
        ("contains", {"k": 0}, "k", True),
        ("contains", "a1", 1, True),
    ],
)
def test_conditions(operator: str, value: Any, than: Any, holds: bool) -> None:
    taken = compute("condition", {"operator": operator, "than": than}, {"value": value})
    assert taken == {"then" if holds else "else": value, "result": holds}


@pytest.mark.parametrize(("operator", "value"), [("less", None), ("greater", [1]), ("contains", 3), ("less", True)])
def test_what_cannot_be_compared_is_a_fault(operator: str, value: Any) -> None:
    with pytest.raises(NodeError):
        compute("condition", {"operator": operator, "than": 2}, {"value": value})


def test_a_condition_passes_other_data_on_and_may_be_given_what_it_compares_with() -> None:
    given_to = {"value": 1, "than": 1, "data": "through"}
    assert compute("condition", {"operator": "equals", "than": 9}, given_to) == {"then": "through", "result": True}


def test_a_merge_takes_the_first_that_is_there() -> None:
    assert compute("merge", {}, {"b": 0, "a": 1}) == {"value": 0}
    assert compute("merge", {}, {}) == {}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_every_value_equals_its_copy(value: Any) -> None:
    assert same(value, json.loads(json.dumps(value)))


@pytest.mark.slow
def test_equality_is_not_bounded_by_depth() -> None:
    a: Any = 1
    b: Any = 1
    for _ in range(100_000):
        a, b = [a], [b]
    assert same(a, b)


def test_which_slot_of_a_tool_takes_the_item() -> None:
    two = Slots({"a": Slot("a", required=True), "b": Slot("b")})
    assert item_slot(Node("m", "map"), two) == "a"
    assert item_slot(Node("m", "map", {"a": 1}), two) == "b"
    assert item_slot(Node("m", "map", {}, {"item": "b"}), two) == "b"
    assert item_slot(Node("m", "map"), Slots(open_inputs=True)) == "item"
    assert set(kind_slots("template", Node("t", "template", {}, {"template": "{{a.b}} {{a}}{{c}}"})).inputs) == {
        "a",
        "c",
    }


# payloads


def test_path_a_the_payload_of_a_workflow() -> None:  # A46, W16
    content: dict[str, Any] = {
        "id": "skill_greet_player",
        "inputInterface": {
            "player_id": {"dataFlowType": "STRING", "required": True},
            "mood": {"dataFlowType": "STRING", "config": {"default": "calm"}},
            "left": {},
        },
        "outputInterface": {"greeting": {"dataFlowType": "STRING"}},
        "nodes": [
            {"id": "in", "type": "core:GroupInput"},
            {"id": "say", "type": "llm:Say", "inputs": {"tone": "x"}, "config": {"t": 1}},
        ],
        "edges": [{"source": "in", "sourceHandle": "player_id", "target": "say", "targetHandle": "who"}],
        "interfaceInputMappings": {"mood": {"nodeId": "say", "slotKey": "tone"}},
        "outputInterfaceMappings": {"greeting": {"nodeId": "say", "slotKey": "text"}},
    }
    workflow = read_workflow(json.dumps(content), "greet").workflow
    assert workflow is not None
    assert workflow_payload(workflow, {"player_id": "p1"}) == {
        "workflowId": "greet",
        "nodes": [
            {"id": "in", "fullType": "core:GroupInput", "inputs": {"player_id": "p1", "mood": "calm"}},
            {"id": "say", "fullType": "llm:Say", "inputs": {"tone": "calm"}, "configValues": {"t": 1}},
        ],
        "edges": [{"sourceNodeId": "in", "sourceHandle": "player_id", "targetNodeId": "say", "targetHandle": "who"}],
        "inputs": {"player_id": "p1", "mood": "calm"},
        "interfaceInputs": content["inputInterface"],
        "interfaceOutputs": content["outputInterface"],
        "outputInterfaceMappings": {"greeting": {"sourceNodeId": "say", "sourceSlotKey": "text"}},
    }


def test_path_b_the_payload_of_one_tool_alone() -> None:  # A47
    assert single_node_payload("demo:Add", {"a": 1, "b": 2}, ["sum", "carry"]) == {
        "nodes": [{"id": "node", "fullType": "demo:Add", "inputs": {"a": 1, "b": 2}}],
        "edges": [],
        "inputs": {"a": 1, "b": 2},
        "outputInterfaceMappings": {
            "sum": {"sourceNodeId": "node", "sourceSlotKey": "sum"},
            "carry": {"sourceNodeId": "node", "sourceSlotKey": "carry"},
        },
    }
