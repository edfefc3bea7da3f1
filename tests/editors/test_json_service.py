"""With ``schemaDiagnostics: "off"`` an editor's own JSON service tells what the schema says, and nothing is lost between the two (editors 1.3 row 3)."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from tamis.protocols.catalogue import message
from tamis.server.analysis.actions.fixes import quick_fixes
from tamis.server.analysis.diagnostics import diagnose
from tamis.server.analysis.manifests import left_to_client
from tamis.server.analysis.snapshot import Settings, Snapshot

ROOT = Path(__file__).resolve().parents[2]
SCHEMA: dict[str, Any] = json.loads((ROOT / "schemas" / "tool.schema.json").read_text("utf-8"))
VALUES: tuple[Any, ...] = (1, -1, "", None, [], {}, True, "x", ["x", "x"], [1])
TOOL: dict[str, Any] = {
    "toolId": "t:count",
    "displayName": "Count",
    "description": "Counts the words of a text that it is given, and gives their number.",
    "version": "1.0.0",
    "handler": {"type": "external-script", "scriptPath": "count.py", "language": "python"},
    "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


def changed(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    tool = copy.deepcopy(TOOL)
    here = tool
    for name in path[:-1]:
        here = here.setdefault(name, {})
    here[path[-1]] = value
    return tool


def wrong_tools() -> Iterator[dict[str, Any]]:
    """Every field with values of every kind, fields left out, and schemas that are none."""
    for name in TOOL:
        yield {key: value for key, value in TOOL.items() if key != name}
    for name, field in SCHEMA["properties"].items():
        for value in VALUES:
            yield changed((name,), value)
            if "properties" in field:
                yield from (changed((name, inner), value) for inner in (*field["properties"], "unknown"))
    for value in ("sting", *VALUES):
        yield changed(("handler", "language"), value)
        for keyword in ("type", "pattern", "minimum", "enum", "$ref", "properties", "description"):
            yield changed(("parameters", "properties", "text", keyword), value)


def snapshot(text: str) -> Snapshot:
    return Snapshot("/tools/count.tool.json", "manifest", text, None, settings=Settings(schema_diagnostics=False))


def test_what_is_left_to_the_json_service_is_told_by_the_schema() -> None:
    validator = Draft7Validator(SCHEMA)
    left = 0
    for tool in wrong_tools():
        findings = left_to_client(snapshot(json.dumps(tool)))
        left += len(findings)
        assert not findings or not validator.is_valid(tool), [message(one) for one in findings]
    assert left > 300


@pytest.mark.parametrize("wrong", ["pyton", "node"])
def test_a_language_that_an_operator_could_have_named_is_told_by_the_server(wrong: str) -> None:
    said = diagnose(snapshot(json.dumps(changed(("handler", "language"), wrong))))
    assert any(finding.code == "MF503" and wrong in finding.message for finding in said)


def test_faults_that_the_json_service_tells_are_mended_by_the_server() -> None:
    text = json.dumps(changed(("parameters", "properties", "text", "type"), "sting"))
    here = snapshot(text)
    assert not any(finding.code == "VA450" for finding in diagnose(here))
    place = text.index("sting")
    assert any(action.fix.edits[0].new_text.strip('"') == "string" for action in quick_fixes(here, (place, place)))
