"""Foreign tool definitions as manifests (ruling 32): every result reads without errors, and what is lost is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.catalogue import message, severity
from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.manifest.foreign import SHAPES, foreign_shape
from tamis.protocols.manifest.imports import Imported, fit_name, fit_version, import_tools
from tamis.protocols.manifest.reading import is_semver, read_manifest, tool_id_fault

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpora" / "mcp-tools"


def imported(data: object) -> Imported:
    root = parse_json(json.dumps(data)).root
    assert root is not None
    shape = foreign_shape(root)
    assert shape is not None
    return import_tools(shape[0], root.to_python())


def one(data: object) -> tuple[dict[str, Any], list[str]]:
    made = imported(data)
    (tool,) = made.tools
    faults = [message(d) for d in read_manifest(json.dumps(tool.manifest)).diagnostics if severity(d) == "error"]
    assert faults == []
    return tool.manifest, [f"{note.path}: {note.message}" for note in (*made.notes, *tool.notes)]


def test_an_mcp_tool_keeps_its_schemas_and_says_what_its_hints_became() -> None:
    manifest, notes = one(
        {
            "name": "delete.file",
            "description": "Deletes a file for good; there is no way back.",
            "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
            "outputSchema": {"type": "object"},
            "annotations": {"destructiveHint": True, "title": "Delete a file", "readOnlyHint": False},
            "_meta": {},
        }
    )
    assert manifest["toolId"] == "custom:delete.file"
    assert manifest["displayName"] == "Delete a file"
    assert manifest["parameters"]["properties"] == {"path": {"type": "string"}}
    assert manifest["output"] == {"type": "object"}
    assert manifest["execution"] == {"requireConfirmation": True}
    assert any("destructiveHint" in note for note in notes)
    assert any(note.startswith("/_meta: ") for note in notes)


def test_calls_by_the_old_name_go_on_working() -> None:
    manifest, _ = one({"type": "function", "function": {"name": "search_web", "parameters": {"type": "object"}}})
    assert "search_web" in manifest["aliases"]


def test_a_definition_without_description_says_that_one_is_to_be_written() -> None:
    _, notes = one({"name": "x", "input_schema": {"type": "object"}})
    assert any("no description" in note for note in notes)


def test_parameters_that_are_no_object_become_one_parameter() -> None:
    manifest, notes = one({"name": "x", "description": "y", "parameters": {"type": "string"}})
    assert manifest["parameters"] == {
        "type": "object",
        "properties": {"value": {"type": "string"}},
        "required": ["value"],
    }
    assert any("'value'" in note for note in notes)


def test_a_listed_argument_is_required_unless_it_says_otherwise() -> None:
    manifest, _ = one(
        {
            "name": "order",
            "description": "Places an order.",
            "arguments": [
                {"name": "n", "type": "number", "desc": "How many."},
                {"name": "note", "type": "text", "optional": True},
            ],
        }
    )
    assert manifest["parameters"]["required"] == ["n"]
    assert manifest["parameters"]["properties"]["n"] == {"type": "number", "description": "How many."}
    assert manifest["parameters"]["properties"]["note"] == {}


def test_the_script_of_an_implementation_becomes_the_handlers() -> None:
    manifest, notes = one(
        {"id": "a", "description": "b", "implementation": {"type": "node", "file": "./src/run.mjs", "memory": 3}}
    )
    assert manifest["handler"] == {"type": "external-script", "scriptPath": "src/run.mjs", "language": "nodejs"}
    assert any("memory" in note for note in notes)


@pytest.mark.parametrize("path", ["../x.py", "/abs/x.py", "rm -rf /", "$(x).py", "a b", ""])
def test_a_path_that_no_handler_may_have_is_not_taken_over(path: str) -> None:
    manifest, _ = one({"id": "a", "description": "b", "implementation": {"script": path}})
    assert manifest["handler"]["scriptPath"] in ("a.py", "b")


def test_two_tools_of_one_name_stay_two() -> None:
    item = {"name": "x", "description": "y", "parameters": {"type": "object"}}
    made = imported([item, item])
    assert [tool.manifest["toolId"] for tool in made.tools] == ["custom:x", "custom:x-2"]


@pytest.mark.parametrize(
    "data", [{"openapi": "3.1.0"}, {"mcpServers": {}}, {"name": "a", "server": {}, "dxt_version": 1}]
)
def test_a_document_that_holds_no_tools_says_why(data: object) -> None:
    made = imported(data)
    assert made.tools == ()
    assert made.why_not


# VCP plug-ins


def plugin(**changes: Any) -> dict[str, Any]:
    return {
        "name": "Sum",
        "displayName": "求和",
        "version": "1.2",
        "description": "Adds two numbers and gives their sum as a number.",
        "pluginType": "synchronous",
        "entryPoint": {"type": "nodejs", "command": "node Sum.js"},
        "communication": {"protocol": "stdio", "timeout": 9000},
        "capabilities": {"invocationCommands": [{"commandIdentifier": "Sum", "description": "Adds.", **changes}]},
    }


def request(**fields: str) -> str:
    inner = ",\n".join(f"{key}:「始」{value}「末」" for key, value in {"tool_name": "Sum", **fields}.items())
    return f"<<<[TOOL_REQUEST]>>>\n{inner}\n<<<[END_TOOL_REQUEST]>>>"


def test_marks_in_request_blocks_say_what_is_required() -> None:
    manifest, notes = one(plugin(description="Adds.\n" + request(a="(必需) 第一个数", b="(可选, 默认 0) 第二个数")))
    assert manifest["parameters"]["required"] == ["a"]
    assert list(manifest["parameters"]["properties"]) == ["a", "b"]
    assert any("inferred" in note for note in notes)
    assert manifest["handler"] == {"type": "external-script", "scriptPath": "Sum.js", "language": "nodejs"}
    assert manifest["execution"] == {"timeoutMs": 9000}
    assert manifest["version"] == "1.2.0"
    assert manifest["protocolConfig"] == {"vcpCommand": "Sum"}


def test_a_list_of_parameters_in_prose_gives_types() -> None:
    manifest, _ = one(plugin(description="- a (整数, 必需): 第一个\n- b (布尔值, 可选): 第二个\n" + request(a="1")))
    assert manifest["parameters"]["properties"]["a"]["type"] == "integer"
    assert manifest["parameters"]["properties"]["b"]["type"] == "boolean"
    assert manifest["parameters"]["required"] == ["a"]


def test_an_example_becomes_a_typed_example() -> None:
    manifest, _ = one(plugin(description="- a (整数, 必需): 数", example="```\n" + request(a="7") + "\n```"))
    assert manifest["examples"] == [{"description": "Sum", "input": {"a": 7}}]


def test_a_parameter_that_not_every_block_has_is_optional() -> None:
    manifest, _ = one(plugin(description=request(a="1", b="2"), example=request(a="3")))
    assert manifest["parameters"]["required"] == ["a"]


def test_a_declared_schema_is_kept_as_it_is() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    manifest, notes = one(plugin(parameters=schema))
    assert manifest["parameters"] == schema
    assert not any("inferred" in note for note in notes)


def test_what_only_the_vcp_server_can_do_is_said() -> None:
    data = plugin()
    data["pluginType"] = "hybridservice"
    data["communication"] = {"protocol": "direct"}
    data["configSchema"] = {"API_KEY": "string"}
    _, notes = one(data)
    assert {note.partition(":")[0] for note in notes} >= {"/pluginType", "/communication", "/configSchema"}


def test_a_plugin_that_models_do_not_call_is_no_tool() -> None:
    made = import_tools("vcp", {"name": "x", "pluginType": "static"})
    assert "invocationCommands" in made.why_not


# Whatever comes


def test_every_definition_of_the_corpus_becomes_a_manifest() -> None:
    if not CORPUS.is_dir():
        pytest.skip("the folder with tool definitions of MCP servers is not here")
    made = 0
    for path in sorted(CORPUS.rglob("*.json")):
        root = parse_json(path.read_text("utf-8")).root
        shape = foreign_shape(root) if root is not None else None
        if root is None or shape is None:
            continue
        result = import_tools(shape[0], root.to_python())
        assert result.tools or result.why_not, path.name
        for tool in result.tools:
            found = read_manifest(json.dumps(tool.manifest)).diagnostics
            assert [message(d) for d in found if severity(d) == "error"] == [], f"{path.name} {tool.name}"
            made += 1
    assert made > 500


JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
KEYS = (
    *("name", "id", "title", "description", "version", "parameters", "inputSchema", "input_schema", "arguments"),
    *("annotations", "implementation", "function", "tools", "capabilities", "entryPoint", "communication", "tags"),
)


@given(st.sampled_from(sorted(SHAPES)), st.dictionaries(st.sampled_from(KEYS), JSON_VALUES) | JSON_VALUES)
def test_any_value_gives_readable_manifests_or_a_reason(shape: Any, data: Any) -> None:
    made = import_tools(shape, data)
    assert made.tools or made.why_not
    for tool in made.tools:
        reading = read_manifest(json.dumps(tool.manifest))
        faults = {diag.code for diag in reading.diagnostics if severity(diag) == "error"}
        # What was wrong in a schema stays wrong; the rest is ours.
        assert not any(
            severity(diag) == "error"
            and not str(diag.data.get("path", "")).startswith(("/parameters", "/output", "/ex"))
            for diag in reading.diagnostics
        ), faults


@given(st.text(max_size=40))
def test_any_name_fits_after_it_was_made_fit(name: str) -> None:
    assert tool_id_fault(f"custom:{fit_name(name)}") is None


@given(st.text(max_size=20))
def test_any_version_becomes_semantic(version: str) -> None:
    assert is_semver(fit_version(version, lambda *_: None))
