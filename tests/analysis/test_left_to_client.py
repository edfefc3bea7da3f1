"""``schemaDiagnostics: "off"``: what the published schema reports is left to the editor's JSON service, and nothing else is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tamis.protocols.manifest.json_schema import published
from tamis.server.analysis.diagnostics import diagnose
from tests.lsp.marker_core import core_of
from tests.lsp.markers import Case

_SOUND: dict[str, Any] = {
    "toolId": "a:b",
    "displayName": "B",
    "description": "Gives the weather of a city when asked, takes its name, gives text.",
    "version": "1.0.0",
    "handler": {"type": "service-method", "serviceName": "S", "methodName": "m"},
}
_SCRIPT = {"type": "external-script", "scriptPath": "x.py", "language": "python"}


def _property(**words: Any) -> dict[str, Any]:
    return {"parameters": {"type": "object", "properties": {"a": words}}}


# One fault each: a field and its value, None to leave it out.
_FAULTS: list[dict[str, Any]] = [
    *({"toolId": value} for value in (5, "", " ", "has space", None)),
    *({"displayName": value} for value in (5, "", " ")),
    *({"description": value} for value in ("short", " ", "")),
    *({"version": value} for value in ("x", "", 1)),
    *({"handler": value} for value in ({"type": "x"}, {}, None, "x", {"type": "external-script"})),
    *({"handler": {**_SCRIPT, **value}} for value in ({"scriptPath": "../x"}, {"scriptPath": ""}, {"language": 5})),
    *({"tags": value} for value in (["a", "a"], [5], "x")),
    *({"aliases": value} for value in (["x y"], ["a", "a"], [5])),
    {"securityContext": {"networkAccess": {"allowHosts": ["https://x"]}}},
    {"securityContext": {"fileAccess": {"allowRead": ["../x"]}}},
    {"securityContext": {"requiredCapabilities": ["foo"]}},
    {"securityContext": {"foo": 1}},
    *({"execution": value} for value in ({"timeoutMs": -1}, {"limits": {"foo": 1}}, {"limits": {"wallMs": 0}})),
    *({"execution": value} for value in ({"mode": "x"}, {"integrity": "x"}, {"idempotent": 1})),
    *({"parameters": value} for value in (5, [], {"type": "array"}, {"type": "strin"}, {"city": {"type": "string"}})),
    *({"parameters": value} for value in ({"required": ["a", 5], "properties": {"a": {}}}, {"properties": []})),
    {"parameters": {"required": ["a", "a"], "properties": {"a": {}}}},
    *({"parameters": value} for value in ({"allOf": [5]}, {"patternProperties": {"a": 5}}, {"prefixItems": [5]})),
    *(_property(**{word: value}) for word, value in (("type", "strin"), ("minimum", "x"), ("required", True))),
    *(_property(**{word: value}) for word, value in (("enum", "x"), ("enum", []), ("items", "string"))),
    *(_property(**{word: value}) for word, value in (("items", [{}]), ("prefixItems", 5), ("pattern", "["))),
    *(_property(**{word: value}) for word, value in (("oneOf", []), ("anyOf", {}), ("not", 5), ("multipleOf", 0))),
    *(_property(**{word: value}) for word, value in (("minLength", -1), ("maxItems", 1.5), ("uniqueItems", "x"))),
    *(_property(**{word: value}) for word, value in (("$ref", 5), ("$ref", "#/no"), ("$comment", 5), ("title", 5))),
    *(_property(**{word: value}) for word, value in (("deprecated", "x"), ("dependentRequired", {"x": 5}))),
    *(_property(**{word: value}) for word, value in (("additionalProperties", "no"), ("$defs", {"x": 5}))),
    *(_property(**{word: value}) for word, value in (("exclusiveMinimum", True), ("properties", {"items": 5}))),
    _property(properties={"prefixItems": {"type": "strin"}}),
    {"parameters": {"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"x": [5]}}},
    *({"output": value} for value in (5, {"type": "x"})),
    *({"examples": value} for value in ({}, [5], [{}], [{"input": 5}], [{"input": {}, "foo": 1}])),
    {"agentCallable": "x"},
    *({"protocolConfig": value} for value in ({"vcpCommand": 5}, {"x": 1})),
    *({"dependencies": value} for value in ({"a b": "1.0.0"}, {"a:b": 5}, {"a:b": "one"}, 5)),
    {"foo": 1},
]


@pytest.mark.parametrize("fault", _FAULTS, ids=lambda fault: json.dumps(fault)[:60])
def test_a_fault_is_told_by_the_schema_or_by_us(fault: dict[str, Any], tmp_path: Path) -> None:
    manifest = {name: value for name, value in {**_SOUND, **fault}.items() if value is not None}
    (tmp_path / "x.py").write_text("pass\n")
    ours: list[list[str]] = []
    for switch in ("on", "off"):
        options = {"schemaDiagnostics": switch, "settings": {"lint": {"LN": "off"}}}
        documents = {"a.tool.json": json.dumps(manifest), "x.py": "pass\n"}
        case = Case(Path("one"), "", documents, {name: [] for name in documents}, options, "")
        ours.append([finding.message for finding in diagnose(core_of(case, tmp_path).snapshot("a.tool.json"))])
    theirs = list(jsonschema.Draft7Validator(published("draft-07")).iter_errors(manifest))
    assert ours[0]
    assert bool(theirs) != bool(ours[1])
    if not theirs:
        assert ours[0] == ours[1]
