"""Tools in the forms of others: MCP's mapping row by row (interop §2.2), the corpus of real tools, VCP (V23, V33), CAIU (D87), round trips."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.base import PromptTool
from tamis.protocols.catalogue import severity
from tamis.protocols.export.names import TARGETS, portable_names
from tamis.protocols.export.targets import caiu_record, export_tool
from tamis.protocols.export.vcp import definition_text, plugin_manifest
from tamis.protocols.manifest.imports import import_mcp, import_tools, shape_of
from tamis.protocols.manifest.reading import Manifest, read_manifest
from tests.protocols.export_rules import faults


def manifest(**fields: Any) -> Manifest:
    data = {
        "toolId": "core:echo",
        "displayName": "Echo",
        "description": "Gives back what it is given, for tests.",
        "version": "1.2.0",
        "handler": {"type": "external-script", "scriptPath": "echo.py", "language": "python"},
        **fields,
    }
    reading = read_manifest(json.dumps({key: value for key, value in data.items() if value is not None}))
    assert reading.manifest is not None, [diag for diag in reading.diagnostics if severity(diag) == "error"]
    return reading.manifest


def exported(target: Any, **fields: Any) -> Any:
    return export_tool(manifest(**fields), target, "core_echo")


# MCP, row by row of interop §2.2


def test_an_mcp_tool_keeps_id_version_tags_and_examples_under_meta() -> None:
    examples = [{"description": "Tea.", "input": {"a": "tea"}, "expectedOutput": "tea"}]
    made = exported("mcp", tags=["text"], examples=examples)
    assert made.losses == []
    definition = made.definition
    assert (definition["name"], definition["title"], definition["annotations"]["title"]) == (
        "core_echo",
        "Echo",
        "Echo",
    )
    assert definition["_meta"] == {
        "dev.tamis/toolId": "core:echo",
        "dev.tamis/version": "1.2.0",
        "dev.tamis/tags": ["text"],
        "dev.tamis/examples": examples,
    }


def test_every_keyword_of_2020_12_survives_in_mcp() -> None:
    schema = {
        "type": "object",
        "$defs": {"a": {"$dynamicRef": "#x"}},
        "properties": {"p": {"prefixItems": [True], "unevaluatedItems": False, "x-secret": True}},
        "dependentSchemas": {"p": {"minProperties": 2}},
        "oneOf": [{"required": ["p"]}, {"required": ["q"]}],
    }
    made = exported("mcp", parameters=schema)
    assert made.definition["inputSchema"] == schema
    assert made.losses == []


@pytest.mark.parametrize(
    ("output", "kept"),
    [
        ({"type": "object", "properties": {}}, True),
        ({"type": "array"}, False),
        ({"anyOf": [{"type": "object"}]}, False),
        (True, False),
    ],
)
def test_an_output_schema_stands_in_mcp_only_where_its_root_is_an_object(output: Any, kept: bool) -> None:
    made = exported("mcp", output=output)
    assert ("outputSchema" in made.definition) is kept
    assert [loss.code for loss in made.losses] == ([] if kept else ["output-dropped"])


@pytest.mark.parametrize(
    ("fields", "hints"),
    [
        ({}, {"readOnlyHint": True, "openWorldHint": False}),
        (
            {"securityContext": {"fileAccess": {"allowWrite": [".cache/**"]}}},
            {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": False},
        ),
        (
            {"securityContext": {"fileAccess": {"allowWrite": [".cache/**"]}}, "x-additive": True},
            {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False},
        ),
        (
            {"securityContext": {"networkAccess": {"allowHosts": ["api.example.com"]}}},
            {"readOnlyHint": True, "openWorldHint": True},
        ),
        ({"execution": {"idempotent": True}}, {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}),
        # what a host's method does is not known here: nothing is promised
        ({"handler": {"type": "service-method", "serviceName": "S", "methodName": "m"}}, {}),
    ],
)
def test_hints_of_mcp_come_from_the_rights_that_are_asked_for(fields: dict[str, Any], hints: dict[str, bool]) -> None:
    made = exported("mcp", **fields)
    assert made.definition["annotations"] == {"title": "Echo", **hints}


# The corpus


def real_tools(folder: Path) -> Iterator[tuple[str, Manifest]]:
    for path in sorted(folder.rglob("*.json")):
        data = json.loads(path.read_text("utf-8"))
        if not ((isinstance(data, dict) and ("inputSchema" in data or "tools" in data)) or isinstance(data, list)):
            continue
        shape = shape_of(data)
        if shape is None:
            continue
        for tool in import_tools(shape, data).tools:
            reading = read_manifest(json.dumps(tool.manifest))
            if reading.manifest is not None:
                yield f"{path.name}: {tool.name}", reading.manifest


@pytest.mark.slow
def test_no_real_tool_is_refused_by_the_rules_of_any_target(corpora: Path) -> None:  # interop §2.3
    count = 0
    for name, one in real_tools(corpora / "mcp-tools"):
        count += 1
        for target in TARGETS:
            made = export_tool(one, target, portable_names([one.tool_id], target)[one.tool_id])
            assert faults(target, made.definition) == [], (name, target)
            assert all(loss.code and loss.message for loss in made.losses)
    assert count > 500


def test_what_a_server_lists_comes_back_unchanged_through_a_manifest(corpora: Path) -> None:
    for path in sorted((corpora / "mcp-tools" / "github_mcp_server").glob("*.json")):
        tool = json.loads(path.read_text("utf-8"))
        (made,) = import_mcp(tool, "github").tools
        reading = read_manifest(json.dumps(made.manifest))
        assert reading.manifest is not None, path
        back = export_tool(reading.manifest, "mcp", tool["name"])
        assert back.definition["inputSchema"] == {"type": "object", **tool["inputSchema"]}
        assert back.definition["description"] == tool["description"].strip() or not tool["description"].strip()
        assert back.losses == []


# VCP


def test_a_definition_block_tells_name_description_parameters_and_example() -> None:  # V23, V33
    parameters = {
        "properties": {"text": {"type": "string", "description": "What to say."}, "n": {"not": {"const": 1}}},
        "required": ["text"],
    }
    one = manifest(parameters=parameters, output={"type": "string"})
    text, losses = definition_text(one, PromptTool("echo", one.description, one.parameters or {}))
    assert text.startswith("<<<[TOOL_DEFINITION]>>>")
    assert text.endswith("<<<[END_TOOL_DEFINITION]>>>")
    for field in ("tool_name:「始」echo「末」", "description:", "parameters:", "example:「始」{"):
        assert field in text
    assert {(loss.code, loss.path) for loss in losses} == {
        ("name-changed", "/toolId"),
        ("keyword-dropped", "/parameters/properties/n/not"),
        ("output-dropped", "/output"),
    }


def test_a_plugin_manifest_says_what_a_vcp_server_will_not_do() -> None:
    made = plugin_manifest(
        manifest(
            handler={"type": "external-script", "scriptPath": "e.mjs", "language": "nodejs", "entryPoint": "run"},
            parameters={"type": "object", "properties": {"n": {"type": "integer"}}},
            securityContext={"fileAccess": {"allowWrite": [".cache/**"]}},
            output={"type": "string"},
            tags=["x"],
            execution={"idempotent": True, "timeoutMs": 1234},
            examples=[{"description": "One.", "input": {"n": 1}, "expectedOutput": "1"}],
        )
    )
    assert made.definition["entryPoint"] == {"type": "nodejs", "command": "node e.mjs"}
    assert made.definition["communication"] == {"protocol": "stdio", "timeout": 1234}
    assert {loss.code for loss in made.losses} == {
        *(
            "name-changed",
            "entry-point-dropped",
            "result-convention",
            "value-as-text",
            "rights-dropped",
            "output-dropped",
        ),
        *("expected-output-dropped", "field-dropped"),
    }
    service = plugin_manifest(manifest(handler={"type": "service-method", "serviceName": "S", "methodName": "m"}))
    assert "handler-dropped" in {loss.code for loss in service.losses}
    assert "entryPoint" not in service.definition


# Round trips: what has no loss comes back

_words = st.sampled_from(["tea", "Milk.", "天气", 'a "quoted" word', "line\nbreak"])
_property = st.fixed_dictionaries(
    {"type": st.sampled_from(["string", "integer", "object"])},
    optional={
        "description": _words,
        "enum": st.just(["x"]),
        "default": st.just("x"),
        "items": st.just({}),
        "x-secret": st.just(True),
    },
)
_manifests = st.fixed_dictionaries(
    {
        "toolId": st.sampled_from(["echo", "core:echo", "天气:查询", "a.b-c_d"]),
        "displayName": st.sampled_from(["Echo", "回声"]),
        "description": _words,
        "version": st.sampled_from(["1.0.0", "2.1.0-rc.1"]),
        "handler": st.sampled_from(
            [
                {"type": "external-script", "scriptPath": "e.py", "language": "python"},
                {"type": "external-script", "scriptPath": "sub/e.js", "language": "nodejs", "entryPoint": "run"},
                {"type": "mcp", "server": "s", "tool": "t"},
            ]
        ),
    },
    optional={
        "parameters": st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.dictionaries(st.sampled_from(["a", "b", "名"]), _property, max_size=3),
            },
            optional={"required": st.just(["a"]), "additionalProperties": st.booleans()},
        ),
        "output": st.sampled_from([{"type": "object"}, {"type": "string"}]),
        "tags": st.just(["t"]),
        "examples": st.just([{"input": {}}]),
        "execution": st.sampled_from([{"timeoutMs": 500}, {"idempotent": True}]),
        "securityContext": st.just({"networkAccess": {"allowHosts": ["a.example"]}}),
    },
)


def _read(data: Any) -> Manifest | None:
    return read_manifest(json.dumps(data)).manifest


def _lost(losses: Any, field: str) -> bool:
    return any(loss.path == f"/{field}" or loss.path.startswith(f"/{field}/") for loss in losses)


@given(_manifests)
def test_what_has_no_loss_comes_back_from_mcp(data: dict[str, Any]) -> None:
    one = _read(data)
    if one is None:
        return
    made = export_tool(one, "mcp", portable_names([one.tool_id], "mcp")[one.tool_id])
    (back,) = import_mcp({"tools": [made.definition]}, "s").tools
    again = _read(back.manifest)
    assert again is not None
    assert back.manifest["toolId"] == one.tool_id
    for field in ("displayName", "version", "tags", "output", "examples"):
        if field in data and not _lost(made.losses, field):
            assert back.manifest.get(field) == data[field], field
    assert back.manifest["description"] == data["description"].strip()
    if not _lost(made.losses, "parameters"):
        assert back.manifest["parameters"] == data.get("parameters", {"type": "object"})


@given(_manifests)
def test_what_has_no_loss_comes_back_from_openai_and_anthropic(data: dict[str, Any]) -> None:
    one = _read(data)
    if one is None:
        return
    for target in ("openai", "anthropic"):
        name = portable_names([one.tool_id], target)[one.tool_id]
        made = export_tool(one, target, name)
        shape = shape_of(made.definition)
        assert shape is not None
        (back,) = import_tools(shape, made.definition).tools
        assert _read(back.manifest) is not None
        if not _lost(made.losses, "toolId"):
            assert str(back.manifest["toolId"]).endswith(one.tool_id)
        assert back.manifest["description"] == data["description"].strip()
        if not _lost(made.losses, "parameters"):
            given = {
                "type": "object",
                **({"properties": {}} if target == "openai" else {}),
                **data.get("parameters", {}),
            }
            assert back.manifest["parameters"] == given
        for field in ("output", "examples"):
            assert field not in data or _lost(made.losses, field)


def test_variables_and_secrets_are_settings_of_a_vcp_plugin_and_come_back() -> None:  # ruling 60
    one = manifest(env={"UNITS": "metric"}, securityContext={"secrets": ["WEATHER_KEY"]})
    made = plugin_manifest(one)
    assert made.definition["configSchema"] == {
        "UNITS": {"type": "string", "default": "metric"},
        "WEATHER_KEY": {"type": "string"},
    }
    (back,) = import_tools("vcp", made.definition).tools
    assert back.manifest["env"] == {"UNITS": "metric"}
    assert back.manifest["securityContext"] == {"secrets": ["WEATHER_KEY"]}


@given(_manifests)
def test_what_has_no_loss_comes_back_from_a_vcp_plugin(data: dict[str, Any]) -> None:
    one = _read(data)
    if one is None:
        return
    made = plugin_manifest(one)
    (back,) = import_tools("vcp", made.definition).tools
    again = _read(back.manifest)
    assert again is not None
    for field in ("displayName", "version"):
        assert back.manifest[field] == data[field]
    assert back.manifest["description"] == data["description"].strip()
    if not _lost(made.losses, "handler"):
        assert back.manifest["handler"] == data["handler"]
    if not any(loss.code == "secret-values" for loss in made.losses) and "parameters" in data:
        assert back.manifest["parameters"] == data["parameters"]
    if "execution" in data and not _lost(made.losses, "execution"):
        assert again.execution.timeout_ms == data["execution"]["timeoutMs"]
    for field in ("tags", "output", "securityContext"):
        assert field not in data or _lost(made.losses, field)


@given(_manifests)
def test_a_caiu_record_loses_nothing_that_a_program_needs(data: dict[str, Any]) -> None:
    one = _read(data)
    if one is None:
        return
    made = caiu_record(one)
    extensions = made.definition["extensions"]
    assert extensions["handler"] == data["handler"]
    if not made.losses:
        assert extensions["parametersSchema"] == data.get("parameters", {})
    assert extensions.get("outputSchema") == data.get("output")
    assert extensions.get("securityContext") == data.get("securityContext")
    assert made.definition["content"]["value"].startswith(f"# {one.display_name}")
