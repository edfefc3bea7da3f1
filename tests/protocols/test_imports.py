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
from tamis.protocols.manifest.imported import Imported, fit_name, fit_version
from tamis.protocols.manifest.imports import import_tools
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
            "execution": {"taskSupport": "optional"},
        }
    )
    assert not any(note.startswith("/execution") for note in notes)  # its server says it with each list
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
    assert manifest["handler"] == {
        "type": "external-script",
        "scriptPath": "Sum.js",
        "language": "nodejs",
        "result": "vcp",
    }
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
    manifest, _ = one(plugin(description=request(a="(必需) 1", b="(必需) 2"), example=request(a="3")))
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
    data["configSchema"] = {"API_KEY": "string", "PATH": "string"}
    _, notes = one(data)
    assert {note.partition(":")[0] for note in notes} >= {"/pluginType", "/communication", "/configSchema"}


def test_settings_of_a_plugin_become_variables_and_secrets() -> None:  # ruling 60
    data = plugin()
    data["configSchema"] = {
        "WEATHER_KEY": {"type": "string"},
        "UNITS": {"type": "string", "default": "metric"},
        "DAYS": {"type": "integer", "default": 3},
        "CITY": "string",
    }
    tool, notes = one(data)
    assert tool["env"] == {"UNITS": "metric", "DAYS": "3"}
    assert tool["securityContext"] == {"secrets": ["WEATHER_KEY"]}
    said = " ".join(notes)
    assert '"TOOL_ID" = ["WEATHER_KEY"] to [policy.secrets]' in said
    assert "CITY have no default" in said


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
    *("schema", "script", "fs_prefixes", "network_allow", "env_allow", "permissions", "timeout_ms", "configSchema"),
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


def test_variables_of_an_mcp_server_that_are_keys_are_named_with_what_to_write() -> None:  # ruling 60
    data = {"mcpServers": {"weather": {"command": "node", "env": {"WEATHER_API_KEY": "x", "UNITS": "metric"}}}}
    why_not = import_tools("mcpServers", data).why_not
    assert "name WEATHER_API_KEY in mcpServers.NAME.secrets" in why_not
    assert "UNITS" not in why_not


# Fields of other runners (F6)


def losses(data: object) -> set[tuple[str, str]]:
    made = imported(data)
    return {(note.code, note.path) for tool in made.tools for note in tool.notes}


def scripted(**fields: Any) -> dict[str, Any]:
    return {"name": "gh_read", "description": "Reads issues of a repository.", "schema": {"type": "object"}, **fields}


def test_a_definition_with_a_schema_and_a_script_is_known() -> None:  # F6
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    manifest, _ = one(scripted(schema=schema, script="read.py"))
    assert manifest["parameters"] == schema
    assert manifest["handler"] == {"type": "external-script", "scriptPath": "read.py", "language": "python"}


def test_rights_of_a_definition_are_asked_for() -> None:  # F6
    data = scripted(
        fs_prefixes=["state/gh_cache/", "/srv/data"],
        network_allow=["api.github.com", "https://x.example/v1"],
        env_allow=["GITHUB_TOKEN", "UNITS", "LD_PRELOAD"],
        timeout_ms=2500,
    )
    manifest, _ = one(data)
    folders = ["state/gh_cache/**", "/srv/data/**"]
    assert manifest["securityContext"] == {
        "fileAccess": {"allowRead": folders, "allowWrite": folders},
        "networkAccess": {"allowHosts": ["api.github.com", "x.example"]},
        "secrets": ["GITHUB_TOKEN"],
    }
    assert manifest["execution"] == {"timeoutMs": 2500}
    assert losses(data) >= {
        ("path-relative", "/fs_prefixes/0"),
        ("permission-widened", "/network_allow/1"),
        ("credentials", "/env_allow"),
        ("env-to-set", "/env_allow"),
        ("field-dropped", "/env_allow/2"),
    }


@pytest.mark.parametrize("path", ["../x", "~/x", "/proc/self", "a\\b", "fs://x"])
def test_a_path_that_can_never_be_granted_is_not_asked_for(path: str) -> None:  # F6
    data = scripted(fs_prefixes=[path])
    assert "securityContext" not in one(data)[0]
    assert ("permission-dropped", "/fs_prefixes/0") in losses(data)


@pytest.mark.parametrize("path", [".", "./", "**", "/"])
def test_a_folder_that_nothing_may_write_is_at_most_read(path: str) -> None:  # F6
    context = one(scripted(fs_prefixes=[path]))[0].get("securityContext", {})
    assert "allowWrite" not in context.get("fileAccess", {})


@pytest.mark.parametrize(
    ("permissions", "context"),
    [
        ({"network": {"allow": ["a.example"]}}, {"networkAccess": {"allowHosts": ["a.example"]}}),
        ({"read": ["in"], "write": ["out"]}, {"fileAccess": {"allowRead": ["in/**"], "allowWrite": ["out/**"]}}),
        (
            ["fs:read:in", "net:a.example"],
            {"fileAccess": {"allowRead": ["in/**"]}, "networkAccess": {"allowHosts": ["a.example"]}},
        ),
        ({"shell": False, "network": []}, None),
    ],
)
def test_permissions_become_what_is_asked_for(permissions: Any, context: Any) -> None:  # F6
    assert one(scripted(permissions=permissions))[0].get("securityContext") == context


@pytest.mark.parametrize("permissions", [{"shell": True}, ["admin"], "all", {"network": True}, [7]])
def test_a_permission_without_a_counterpart_is_named(permissions: Any) -> None:  # F6
    data = scripted(permissions=permissions)
    assert "securityContext" not in one(data)[0]
    assert {code for code, path in losses(data) if path.startswith("/permissions")} & {
        "permission-dropped",
        "field-dropped",
    }


@pytest.mark.parametrize(("field", "value"), [("timeout_ms", "5s"), ("timeoutSec", -1), ("timeout_ms", True)])
def test_a_time_that_is_none_is_named(field: str, value: Any) -> None:  # F6
    data = scripted(**{field: value})
    assert "execution" not in one(data)[0]
    assert ("field-dropped", f"/{field}") in losses(data)


def test_seconds_become_milliseconds() -> None:  # F6
    assert one(scripted(timeoutSec=5))[0]["execution"] == {"timeoutMs": 5000}


@pytest.mark.parametrize(
    ("word", "kind"),
    [("dict", "object"), ("float", "number"), ("tuple", "array"), ("str", "string"), ("any", None), ("Frob", None)],
)
def test_types_of_other_languages_become_those_of_json(word: str, kind: str | None) -> None:  # F6
    listed = {"name": "f", "description": "Does it.", "arguments": [{"name": "x", "type": word, "desc": "What."}]}
    part = one(listed)[0]["parameters"]["properties"]["x"]
    assert part == {"type": kind, "description": "What."} if kind else {"description": "What."}
    code = "type-dropped" if word == "Frob" else "type-mapped"
    assert (code, "/arguments/0/type") in losses(listed)
    schema = {"type": "dict", "properties": {"x": {"type": "array", "items": {"type": word}}}}
    deep = [{"name": "f", "description": "Does it.", "parameters": schema}]
    assert one(deep)[0]["parameters"]["properties"]["x"]["items"] == ({"type": kind} if kind else {})
    assert (code, "/0/parameters/properties/x/items/type") in losses(deep)


def test_a_choice_of_types_with_any_takes_anything() -> None:  # F6
    schema = {"type": "object", "properties": {"x": {"type": ["str", "any"]}, "y": {"type": ["int", "null"]}}}
    properties = one(scripted(schema=schema))[0]["parameters"]["properties"]
    assert properties == {"x": {}, "y": {"type": ["integer", "null"]}}


def test_rights_beside_a_function_are_taken_too() -> None:  # F6
    data = {"name": "f", "description": "Does it.", "parameters": {"type": "object"}, "network_allow": ["a.example"]}
    assert one(data)[0]["securityContext"] == {"networkAccess": {"allowHosts": ["a.example"]}}
