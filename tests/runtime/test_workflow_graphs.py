"""Graphs of any shape and size: random ones give what a naive evaluation gives, large ones are run, circles are refused."""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.growth import processor_seconds
from tests.runtime.service_world import error_of
from tests.runtime.workflow_world import World, edge, flow

SKIPPED = object()


def join(args: dict[str, Any]) -> dict[str, Any]:
    return {"text": "+".join(f"{name}={json.dumps(args[name])}" for name in sorted(args)), "count": len(args)}


def random_graph(source: random.Random, count: int) -> dict[str, Any]:
    """A graph without circles, whose nodes are listed in no order."""
    nodes: list[dict[str, Any]] = []
    edges: list[dict[str, str]] = []
    slots: list[str] = []
    for number in range(count):
        name = f"n{number}"
        kind = source.choice(["constant", "template", "condition", "merge", "map", "tool"]) if slots else "constant"
        given_by = [source.choice(slots) for _ in range(source.randint(1, 3))] if slots else []
        if kind == "constant":
            value = source.choice([0, 1, 2.5, "", "x", [1, 2], [], {"a": 1}, None, True])
            nodes.append({"id": name, "type": "constant", "config": {"value": value}})
            slots.append(f"{name}.value")
        elif kind == "template":
            nodes.append(
                {
                    "id": name,
                    "type": "template",
                    "config": {"template": " ".join(f"{{{{s{i}}}}}" for i in range(len(given_by)))},
                }
            )
            edges += [edge(place, f"{name}.s{i}") for i, place in enumerate(given_by)]
            slots.append(f"{name}.text")
        elif kind == "condition":
            nodes.append({"id": name, "type": "condition"})
            edges.append(edge(given_by[0], f"{name}.value"))
            slots += [f"{name}.then", f"{name}.else"]
        elif kind == "merge":
            nodes.append({"id": name, "type": "merge"})
            edges += [edge(place, f"{name}.s{i}") for i, place in enumerate(given_by)]
            slots.append(f"{name}.value")
        elif kind == "map":
            items = [source.randint(0, 9) for _ in range(source.randint(0, 4))]
            config = {"type": "template", "item": "x", "config": {"template": "{{x}}/{{y}}"}}
            nodes.append({"id": name, "type": "map", "config": config, "inputs": {"items": items}})
            edges.append(edge(given_by[0], f"{name}.y"))
            slots.append(f"{name}.results")
        else:
            nodes.append({"id": name, "type": "t:join"})
            edges += [edge(place, f"{name}.s{i}") for i, place in enumerate(given_by)]
            slots += [f"{name}.text", f"{name}.count"]
    source.shuffle(nodes)
    wanted = source.sample(slots, min(len(slots), 4))
    return flow(nodes, edges, {f"o{i}": place for i, place in enumerate(wanted)})


def shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def naive(content: dict[str, Any]) -> dict[str, Any]:
    """The outputs by going back from each of them, one node at a time, with nothing shared with the engine."""
    nodes = {node["id"]: node for node in content["nodes"]}

    def value_of(place: tuple[str, str]) -> Any:
        node, slot = nodes[place[0]], place[1]
        inputs = dict(node.get("inputs", {}))
        skipped = False
        for one in content["edges"]:
            if one["target"] == node["id"]:
                value = value_of((one["source"], one["sourceHandle"]))
                if value is SKIPPED:
                    skipped = True
                else:
                    inputs[one["targetHandle"]] = value
        kind, config = node["type"], node.get("config", {})
        if kind == "merge":
            firsts = [one["targetHandle"] for one in content["edges"] if one["target"] == node["id"]]
            return next((inputs[name] for name in firsts if name in inputs), SKIPPED)
        if skipped:
            return SKIPPED
        if kind == "constant":
            return config["value"]
        if kind == "template":
            return " ".join(shown(inputs[f"s{i}"]) for i in range(len(inputs)))
        if kind == "condition":
            return inputs["value"] if bool(inputs["value"]) == (slot == "then") else SKIPPED
        if kind == "map":
            return [f"{item}/{shown(inputs['y'])}" for item in inputs["items"]]
        return join(inputs)[slot]

    found = {
        name: value_of((one["nodeId"], one["slotKey"])) for name, one in content["outputInterfaceMappings"].items()
    }
    return {name: value for name, value in found.items() if value is not SKIPPED}


@given(st.integers(0, 2**32), st.integers(1, 12))
def test_random_graphs_give_what_a_naive_evaluation_gives(seed: int, count: int) -> None:
    content = random_graph(random.Random(seed), count)
    expected = naive(content)
    with tempfile.TemporaryDirectory() as folder:
        result = World(Path(folder), {"g": content}, {"join": join}, audit={"enabled": False}).run("workflow:g")
    assert result.status == "success", result
    if len(content["outputInterfaceMappings"]) == 1:
        assert result.output == next(iter(expected.values()), None)
    else:
        assert result.output == expected


def chain(count: int) -> dict[str, Any]:
    nodes: list[dict[str, Any]] = [{"id": "n0", "type": "constant", "config": {"value": 1}}]
    nodes += [{"id": f"n{i}", "type": "merge"} for i in range(1, count)]
    edges = [edge(f"n{i}.value", f"n{i + 1}.x") for i in range(count - 1)]
    return flow(nodes, edges, {"o": f"n{count - 1}.value"})


def test_five_thousand_nodes_in_a_chain_and_side_by_side(tmp_path: Path) -> None:
    wide = flow(
        [{"id": f"n{i}", "type": "constant", "config": {"value": i}} for i in range(5000)]
        + [{"id": "m", "type": "merge"}],
        [edge(f"n{i}.value", f"m.s{i}") for i in range(5000)],
        {"o": "m.value"},
    )
    world = World(tmp_path, {"chain": chain(5000), "wide": wide})
    result, steps = world.run_traced("workflow:chain")
    assert result.output == 1
    assert len(steps) == 5000
    assert world.run("workflow:wide").output == 0


def test_the_time_of_a_run_grows_with_the_graph(tmp_path: Path) -> None:
    world = World(tmp_path, {"small": chain(500), "large": chain(2000)})
    world.run("workflow:small")
    world.run("workflow:large")
    small = processor_seconds(lambda: world.run("workflow:small"))
    large = processor_seconds(lambda: world.run("workflow:large"))
    assert large < max(small, 0.01) * 10  # quadratic work gives 16


def test_five_thousand_calls_of_one_workflow(tmp_path: Path, is_long: bool) -> None:
    count = 5000 if is_long else 300
    node = {
        "id": "m",
        "type": "map",
        "config": {"type": "t:join", "item": "x"},
        "inputs": {"items": list(range(count))},
    }
    world = World(tmp_path, {"m": flow([node], outputs={"o": "m.results"})}, {"join": join}, audit={"enabled": False})
    result = world.run("workflow:m", timeout_ms=600_000)
    assert [one["text"] for one in result.output] == [f"x={i}" for i in range(count)]


def test_a_large_circle_is_named_and_not_run(tmp_path: Path) -> None:
    nodes = [{"id": f"n{i}", "type": "merge"} for i in range(2_000)]
    edges = [edge(f"n{i}.value", f"n{(i + 1) % 2_000}.x") for i in range(2_000)]
    result = World(tmp_path, {"c": flow(nodes, edges, {"o": "n0.value"})}).run("workflow:c")
    assert result.attempts == 0
    assert "These nodes wait for each other: 'n0' → 'n1' → " in error_of(result)["message"]
    assert "(2000 in all)" in error_of(result)["message"]


def test_an_engine_that_is_given_a_circle_ends_too(tmp_path: Path) -> None:
    from tamis.server.runtime.handlers.workflow.builtin import BuiltInEngine
    from tamis.server.runtime.handlers.workflow.engine import EngineError

    edges = [("a", "b"), ("b", "a")]
    payload = {
        "nodes": [{"id": name, "fullType": "merge", "inputs": {}} for name in "ab"],
        "edges": [
            {"sourceNodeId": a, "sourceHandle": "value", "targetNodeId": b, "targetHandle": "x"} for a, b in edges
        ],
        "outputInterfaceMappings": {},
    }

    class Run:
        max_parallel = 1
        stopping = asyncio.Event()
        outputs: ClassVar[dict[str, Any]] = {}

    with pytest.raises(EngineError, match="wait for each other"):
        asyncio.run(BuiltInEngine().run(payload, Run()))  # type: ignore[arg-type] # no more is asked of it here


@pytest.mark.parametrize(
    "payload",
    [{}, {"nodes": 1, "edges": []}, {"nodes": [{"id": "a"}, {"id": "a"}], "edges": []}, {"nodes": [], "edges": [{}]}],
)
def test_a_payload_that_is_none_is_refused(payload: dict[str, Any]) -> None:
    from tamis.server.runtime.handlers.workflow.builtin import BuiltInEngine
    from tamis.server.runtime.handlers.workflow.engine import EngineError

    with pytest.raises(EngineError):
        asyncio.run(BuiltInEngine().run(payload, None))  # type: ignore[arg-type] # it is refused before it is run
