"""Node definitions as tools (A41, A47; seed 000 §7.1, ruling 36)."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.contract import ExecutionError, ExecutionResult
from tamis.protocols.manifest.node import read_nodes
from tamis.protocols.manifest.reading import ExternalScript, WorkflowHandler
from tamis.protocols.manifest.workflow import workflow_tool
from tamis.server.runtime.calls.model import CallRequest
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.tools.registry import Tool
from tests.sample_tools import make_tool

INPUTS: dict[str, Any] = {
    "image": {"dataFlowType": "BINARY", "displayName": "The image.", "required": True},
    "radius": {"dataFlowType": "FLOAT", "description": "In pixels.", "config": {"default": 2.5}},
    "mode": {
        "dataFlowType": "STRING",
        "matchCategories": ["ComboOption"],
        "config": {"suggestions": [{"value": "box"}, {"value": "gauss"}]},
    },
}
NODE: dict[str, Any] = {
    "fullType": "image:Blur",
    "displayName": "Blur",
    "description": "Blurs an image.",
    "category": "image",
    "inputs": INPUTS,
    "outputs": {"image": {"dataFlowType": "BINARY"}, "took": {"dataFlowType": "INTEGER"}},
    "width": 240,
}


def written(root: Path, *nodes: Any) -> Runtime:
    (root / "n.node.json").write_text(json.dumps(nodes[0] if len(nodes) == 1 else list(nodes)), "utf-8")
    return Runtime(root)


def got(runtime: Runtime, tool_id: str) -> Tool:
    found = runtime.registry.get(tool_id)
    assert found is not None
    return found


def test_a_node_definition_is_a_tool_with_the_slot_rules_of_workflows() -> None:  # A41, ruling 36
    (node,) = read_nodes(json.dumps(NODE)).nodes
    manifest = node.manifest
    assert (manifest.tool_id, manifest.display_name, manifest.description) == ("image:Blur", "Blur", "Blurs an image.")
    assert manifest.parameters == {
        "type": "object",
        "properties": {
            "image": {"description": "The image."},
            "radius": {"type": "number", "description": "In pixels."},
            "mode": {"type": "string", "enum": ["box", "gauss"]},
        },
        "required": ["image"],
    }
    assert manifest.parameters == workflow_tool("x", {"interfaceInputs": INPUTS})["parameters"]
    assert manifest.tags == ("image",)
    assert manifest.handler == WorkflowHandler("image:Blur"), "the workflow engine runs it, wrapped alone (A47)"


def test_a_node_that_names_a_tool_is_run_by_that_tool(tmp_path: Path) -> None:  # A41, A45
    make_tool(tmp_path, "core:blur", version="1.3.0", execution={"timeoutMs": 1234})
    runtime = written(tmp_path, NODE | {"toolId": "core:blur@^1"})
    node = got(runtime, "image:Blur")
    assert isinstance(node.manifest.handler, ExternalScript)
    assert node.manifest.execution.timeout_ms == 1234
    assert node.folder == got(runtime, "core:blur").folder
    assert (node.origin, node.available, node.path) == ("node", True, str(tmp_path / "n.node.json"))


@pytest.mark.parametrize(
    ("tool_id", "cause"),
    [("core:blurr", "did you mean 'core:blur'"), ("core:blur@^9", "has no version '^9'; there is 1.0.0")],
)
def test_a_node_whose_tool_is_not_there_says_so(tmp_path: Path, tool_id: str, cause: str) -> None:
    make_tool(tmp_path, "core:blur")
    node = got(written(tmp_path, NODE | {"toolId": tool_id}), "image:Blur")
    assert not node.available
    assert cause in node.reason


def test_a_node_whose_work_a_node_shall_do_says_so(tmp_path: Path) -> None:
    ways = {
        "n:a": "n:b",
        "n:b": "n:a@^1",
        "n:self": "n:self@1.0.0",
        "n:in": "n:self",
        "n:two": "n:wrapped",
        "n:wrapped": "",
    }
    nodes = [NODE | {"fullType": name} | ({"toolId": to} if to else {}) for name, to in ways.items()]
    runtime = written(tmp_path, *nodes)
    told = {name: got(runtime, name).reason.partition(";")[0] for name in ways}
    assert told == {
        "n:a": "`toolId` leads in a circle, n:a → n:b → n:a",
        "n:b": "`toolId` leads in a circle, n:b → n:a → n:b",
        "n:self": "`toolId` names the node itself",
        "n:in": "`toolId` names 'n:self', which is a node too",
        "n:two": "`toolId` names 'n:wrapped', which is a node too",
        "n:wrapped": told["n:wrapped"],
    }


def test_a_node_whose_id_another_node_has_too_ends_no_reading(tmp_path: Path) -> None:
    runtime = written(tmp_path, NODE | {"fullType": "n:a"}, NODE | {"fullType": "n:a", "toolId": "core:none"})
    assert got(runtime, "n:a").tool_id == "n:a"
    others = tmp_path / "others"
    others.mkdir()
    runtime = written(others, NODE | {"fullType": "n:a", "toolId": "n:a"}, NODE | {"fullType": "n:a"})
    assert got(runtime, "n:a").tool_id == "n:a"


def test_a_node_of_a_tool_that_cannot_run_says_why(tmp_path: Path) -> None:
    (make_tool(tmp_path, "core:blur") / "tool.py").unlink()
    assert (
        "does not exist beside the manifest"
        in got(written(tmp_path, NODE | {"toolId": "core:blur"}), "image:Blur").reason
    )


def test_a_list_of_definitions_gives_those_that_can_be_read(tmp_path: Path) -> None:  # D48
    runtime = written(
        tmp_path, NODE, {"fullType": "a b"}, 3, {"displayName": "x"}, {"fullType": "image:Flip", "inputs": [1]}
    )
    assert [one.tool_id for one in runtime.registry.tools] == ["image:Blur"]
    assert [(one.tool_id, one.line) for one in runtime.registry.errors] == [
        ("a b", 1),
        ("", 1),
        ("", 1),
        ("image:Flip", 1),
    ]


@pytest.mark.parametrize(
    "text", ["", "{", "[", "3", '"x"', "{}", "[[]]", '{"fullType": 3}', '{"fullType": ""}', "null"]
)
def test_what_is_no_definition_is_an_error_with_a_place(tmp_path: Path, text: str) -> None:
    (tmp_path / "n.node.json").write_text(text)
    registry = Runtime(tmp_path).registry
    assert registry.tools == []
    assert [error.path for error in registry.errors] == [str(tmp_path / "n.node.json")]
    assert registry.errors[0].message


def test_a_definition_that_a_tool_could_have_put_there_is_not_registered(tmp_path: Path) -> None:
    make_tool(tmp_path, "core:writer", securityContext={"fileAccess": {"allowWrite": ["out"]}})
    out = tmp_path / "core_writer" / "out"
    out.mkdir()
    registry = written(out, NODE) and Runtime(tmp_path).registry
    assert [one.tool_id for one in registry.tools] == ["core:writer"]
    assert "could have put it there" in registry.errors[0].message


def test_two_files_that_define_one_node_are_a_conflict(tmp_path: Path) -> None:  # ruling 35
    (tmp_path / "a.node.json").write_text(json.dumps(NODE))
    (tmp_path / "b.node.json").write_text(json.dumps(NODE))
    registry = Runtime(tmp_path).registry
    assert len(registry.tools) == 1
    assert [conflict.tool_id for conflict in registry.conflicts] == ["image:Blur"]


def test_a_node_is_called_like_any_tool(tmp_path: Path) -> None:  # A45: one entry for both
    make_tool(tmp_path, "core:blur", properties={"image": {"type": "string"}, "radius": {"type": "number"}})
    runtime = written(tmp_path, NODE | {"toolId": "core:blur"})

    async def run(args: dict[str, Any]) -> ExecutionResult:
        return await execute(CallRequest(call_id="c", name="image:Blur", args=args), runtime.call_context())

    done = asyncio.run(run({"image": "a.png", "radius": 2}))
    assert (done.tool_id, done.status, done.output) == ("image:Blur", "success", {"image": "a.png", "radius": 2})
    refused = asyncio.run(run({"radius": 2})).error
    assert isinstance(refused, ExecutionError)
    assert "Missing required parameter 'image'" in refused.message


IDS = st.sampled_from(["n:a", "n:b", "n:c", "core:t"])
NAMED = st.builds(str.__add__, IDS, st.sampled_from(["", "@1.0.0", "@^1", "@", "@9"]))
DEFINITION = st.fixed_dictionaries({"fullType": IDS}, optional={"toolId": NAMED})
WORKFLOW = st.builds(
    lambda name, kinds: {
        "id": name.partition(":")[2],
        "name": name,
        "description": "Does a thing.",
        "nodes": [{"id": f"s{index}", "type": kind} for index, kind in enumerate(kinds)],
    },
    IDS,
    st.lists(NAMED, max_size=3),
)


@given(st.lists(DEFINITION, max_size=5), st.lists(WORKFLOW, max_size=2), st.lists(IDS, max_size=2))
def test_definitions_that_name_each_other_in_any_way_are_all_read(  # no folder ends a reading
    definitions: list[dict[str, Any]], workflows: list[dict[str, Any]], manifests: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "tamis.toml").write_text('workflows = ["flows"]\n')
        (root / "flows").mkdir()
        for index, tool_id in enumerate(manifests):
            make_tool(root / f"m{index}", tool_id)
        for index, definition in enumerate(definitions):
            (root / f"{index}.node.json").write_text(json.dumps(NODE | definition))
        for index, workflow in enumerate(workflows):
            (root / "flows" / f"{index}.json").write_text(json.dumps(workflow))
        registry = Runtime(root).registry
        known = {name for tool in registry.tools for name in tool.names}
        # "n:a@" and the like name no version: the file is told of
        assert {definition["fullType"] for definition in definitions} <= known or registry.errors
        assert set(manifests) <= known
        for tool in registry.tools:
            assert tool.available or tool.reason
