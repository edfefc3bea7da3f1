"""What a workflow does when a node fails: ``onError`` and ``retry`` of nodes (T6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.workflow.graph import check_graph
from tamis.protocols.workflow.payload import workflow_payload
from tamis.protocols.workflow.reading import read_workflow
from tests.runtime.service_world import error_of
from tests.runtime.workflow_world import World, edge, flow, statuses


def fails(_args: dict[str, Any]) -> Any:
    from tamis.server.runtime.calls.model import HostError

    raise HostError("out of order")


def after(node: dict[str, Any]) -> dict[str, Any]:
    """A workflow with this node, one that depends on it, one that does not, and a handler."""
    nodes = [
        {"id": "n", **node},
        {"id": "next", "type": "template", "config": {"template": "got {{x}}"}},
        {"id": "free", "type": "constant", "config": {"value": 1}},
        {"id": "sorry", "type": "template", "config": {"template": "sorry: {{error.message}} ({{error.nodeId}})"}},
        {"id": "all", "type": "merge"},
    ]
    slot = {"template": "text", "map": "results"}.get(node["type"], "output")
    edges = [edge(f"n.{slot}", "next.x"), edge("next.text", "all.a"), edge("sorry.text", "all.b")]
    if "goto" not in (node.get("onError") or {}):
        nodes = [one for one in nodes if one["id"] != "sorry"]
        edges.pop()
    return flow(nodes, edges, {"y": "all.value", "free": "free.value"})


BROKEN_TEMPLATE = {"type": "template", "config": {"template": "{{x.y}}"}, "inputs": {"x": {}}}
BROKEN_MAP = {"type": "map", "config": {"type": "t:fails"}, "inputs": {"items": [1, 2, 3]}}
NODES = {"a tool": {"type": "t:fails"}, "a template": BROKEN_TEMPLATE, "a map": BROKEN_MAP}


@pytest.mark.parametrize("node", NODES.values(), ids=NODES)
def test_a_failure_ends_the_run_unless_the_node_says_otherwise(tmp_path: Path, node: dict[str, Any]) -> None:
    """T6."""
    for number, more in enumerate(({}, {"onError": "stop"})):
        folder = tmp_path / str(number)
        folder.mkdir()
        result = World(folder, {"w": after(node | more)}, {"fails": fails}).run("workflow:w")
        assert result.status == "error"
        assert error_of(result)["details"]["node"]["nodeId"] == "n"


@pytest.mark.parametrize("node", NODES.values(), ids=NODES)
def test_a_failure_that_is_skipped_leaves_out_what_depends_on_it(tmp_path: Path, node: dict[str, Any]) -> None:
    """T6."""
    made = World(tmp_path, {"w": after(node | {"onError": "skip"})}, {"fails": fails})
    result, steps = made.run_traced("workflow:w")
    assert (result.status, result.output) == ("success", {"free": 1})
    assert statuses(steps) == {"n": "error", "next": "skipped", "free": "success", "all": "skipped"}


@pytest.mark.parametrize("node", NODES.values(), ids=NODES)
def test_a_value_stands_for_the_result_of_what_failed(tmp_path: Path, node: dict[str, Any]) -> None:
    """T6."""
    made = World(tmp_path, {"w": after(node | {"onError": {"value": [7]}})}, {"fails": fails})
    result, steps = made.run_traced("workflow:w")
    assert (result.status, result.output) == ("success", {"y": "got [7]", "free": 1})
    assert statuses(steps)["n"] == "error"


@pytest.mark.parametrize("node", NODES.values(), ids=NODES)
def test_a_failure_leads_to_its_handler_with_what_went_wrong(tmp_path: Path, node: dict[str, Any]) -> None:
    """T6."""
    made = World(tmp_path, {"w": after(node | {"onError": {"goto": "sorry"}})}, {"fails": fails})
    result, steps = made.run_traced("workflow:w")
    assert result.status == "success", result
    assert result.output["y"].startswith("sorry: ")
    assert result.output["y"].endswith(" (n)")
    assert statuses(steps) == {"n": "error", "next": "skipped", "free": "success", "sorry": "success", "all": "success"}


def test_a_handler_is_skipped_where_nothing_failed(tmp_path: Path) -> None:
    """T6."""
    content = after({"type": "t:works", "onError": {"goto": "sorry"}})
    result, steps = World(tmp_path, {"w": content}, {"works": lambda _args: {"error": "a word"}}).run_traced(
        "workflow:w"
    )
    assert result.output["y"] == 'got {"error":"a word"}'
    assert statuses(steps)["sorry"] == "skipped"


def test_a_tool_that_has_no_parameter_for_the_error_is_called_without_it(tmp_path: Path) -> None:
    """T6: else its schema would refuse the call."""
    nodes = [{"id": "n", "type": "t:fails", "onError": {"goto": "h"}}, {"id": "h", "type": "game:strict"}]
    made = World(tmp_path, {"w": flow(nodes, [], {"y": "h.output"})}, {"fails": fails, "strict": lambda args: args})
    closed = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
    made.register("game", {"name": "strict", "description": "d", "agentCallable": True, "parameters": closed})
    assert made.run("workflow:w").output == {}


def test_two_failures_may_share_a_handler(tmp_path: Path) -> None:
    """T6."""
    nodes = [
        {"id": "a", "type": "t:works", "onError": {"goto": "h"}},
        {"id": "b", "type": "t:fails", "onError": {"goto": "h"}},
        {"id": "h", "type": "template", "config": {"template": "{{error.nodeId}}"}},
    ]
    content = flow(nodes, [], {"y": "h.text"})
    assert World(tmp_path, {"w": content}, {"fails": fails, "works": lambda _a: 1}).run("workflow:w").output == "b"


def test_a_handler_that_fails_ends_the_run(tmp_path: Path) -> None:
    """T6."""
    nodes = [{"id": "n", "type": "t:fails", "onError": {"goto": "h"}}, {"id": "h", "type": "t:fails"}]
    result = World(tmp_path, {"w": flow(nodes, [], {"y": "h.output"})}, {"fails": fails}).run("workflow:w")
    assert error_of(result)["details"]["node"]["nodeId"] == "h"


@pytest.mark.parametrize(
    ("retry", "status", "calls"), [(0, "error", 1), (1, "error", 2), (2, "success", 3), (5, "success", 3)]
)
def test_a_node_is_tried_again_as_often_as_it_says(
    tmp_path: Path, retry: int, status: str, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T6."""
    monkeypatch.setattr("tamis.server.runtime.execution.preparing.FIRST_PAUSE_S", 0.001)
    seen: list[int] = []

    def flaky(args: dict[str, Any]) -> Any:
        seen.append(1)
        return "well" if len(seen) == 3 else fails(args)

    content = flow([{"id": "n", "type": "t:flaky", "retry": retry}], [], {"y": "n.output"})
    result = World(tmp_path, {"w": content}, {"flaky": flaky}).run("workflow:w")
    assert (result.status, len(seen)) == (status, calls)


def test_a_cancel_is_no_failure_that_a_node_can_pass_over(tmp_path: Path) -> None:
    """T6: neither is the run's own time."""
    import asyncio

    def hangs(_args: dict[str, Any]) -> Any:
        return asyncio.Event().wait()

    nodes = [{"id": "n", "type": "t:hangs", "onError": {"value": 1}}]
    made = World(tmp_path, {"w": flow(nodes, [], {"y": "n.output"}, execution={"timeoutMs": 300})}, {"hangs": hangs})
    assert made.run("workflow:w").status == "timeout"


@pytest.mark.parametrize(
    ("node", "codes"),
    [
        ({"onError": "continue"}, ["WF901"]),
        ({"onError": {"goto": 1}}, ["WF901"]),
        ({"onError": {"goto": "h", "value": 1}}, ["WF901"]),
        ({"onError": {}}, ["WF901"]),
        ({"onError": 1}, ["WF901"]),
        ({"retry": -1}, ["WF903"]),
        ({"retry": 101}, ["WF903"]),
        ({"retry": "2"}, ["WF901"]),
        ({"onError": {"goto": "nobody"}}, ["WF907"]),
        ({"onError": {"goto": "n"}}, ["WF910"]),
        ({"onError": {"goto": "i"}}, ["WF919"]),
        ({"onError": {"value": None}}, []),
        ({"onError": {"goto": "h"}, "retry": 3}, []),
    ],
)
def test_what_a_file_says_wrong_of_failures_is_found_at_its_place(node: dict[str, Any], codes: list[str]) -> None:
    """T6."""
    import json

    nodes = [
        {"id": "n", "type": "constant", "config": {"value": 1}, **node},
        {"id": "h", "type": "template", "config": {"template": "{{error}}"}, "inputs": {"error": ""}},
        {"id": "i", "type": "input"},
    ]
    text = json.dumps(flow(nodes, [], {"y": "n.value", "z": "h.text"}))
    reading = read_workflow(text, "w")
    found = [diag.code for diag in reading.diagnostics]
    if reading.workflow is not None:
        found += [one.code for one in check_graph(reading.workflow)]
    assert found == codes


def test_other_engines_are_told(tmp_path: Path) -> None:
    """T6."""
    import json

    nodes = [{"id": "n", "type": "a:b", "onError": {"value": 1}, "retry": 2}, {"id": "m", "type": "a:b"}]
    reading = read_workflow(json.dumps(flow(nodes)), "w")
    assert reading.workflow is not None
    first, second = workflow_payload(reading.workflow, {})["nodes"]
    assert (first["onError"], first["retry"]) == ({"value": 1}, 2)
    assert "onError" not in second and "retry" not in second


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["goto", "value", "x"]), inner, max_size=2), max_leaves=4), st.integers() | st.text(max_size=3))  # fmt: skip
def test_any_words_of_failures_are_read(on_error: Any, retry: Any) -> None:
    """T6: reading never raises, and gives nothing but what is allowed."""
    import json

    nodes = [{"id": "n", "type": "constant", "config": {"value": 1}, "onError": on_error, "retry": retry}]
    reading = read_workflow(json.dumps(flow(nodes, [], {"y": "n.value"})), "w")
    assert reading.draft is not None
    assert reading.draft.nodes is not None
    node = reading.draft.nodes[0]
    assert 0 <= node.retry <= 100
    assert node.on_error in ("stop", "skip") or (isinstance(node.on_error, dict) and len(node.on_error) == 1)
    check_graph(reading.draft)
