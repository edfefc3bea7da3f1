"""The schemas in ``schemas/``: one source, two dialects, the same verdicts (issue: manifest schema published)."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from jsonschema import Draft7Validator, Draft202012Validator

from tamis.protocols.manifest.json_schema import FILES, Dialect, published
from tamis.protocols.manifest.reading import read_manifest

ROOT = Path(__file__).resolve().parents[2]
VALIDATORS: dict[Dialect, Any] = {"draft-07": Draft7Validator, "2020-12": Draft202012Validator}
GOOD: dict[str, Any] = {
    "toolId": "core:echo",
    "displayName": "Echo",
    "description": "Gives back the text that it is given, so that a call can be tried out.",
    "version": "1.0.0",
    "handler": {"type": "external-script", "scriptPath": "echo.py", "language": "python"},
}
SERVICE = {"type": "service-method", "serviceName": "s", "methodName": "m"}
FIXTURES: list[tuple[str, dict[str, Any], bool]] = [
    ("the least", {}, True),
    ("a service", {"handler": SERVICE}, True),
    ("a service without method", {"handler": {"type": "service-method", "serviceName": "s"}}, False),
    ("a script without language", {"handler": {"type": "external-script", "scriptPath": "a.py"}}, False),
    ("a handler of no type", {"handler": {"scriptPath": "a.py", "language": "python"}}, False),
    ("parameters", {"parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}, True),
    ("a type that is none", {"parameters": {"type": "object", "properties": {"a": {"type": "text"}}}}, False),
    ("required that is no list", {"parameters": {"type": "object", "required": "a"}}, False),
    ("output true", {"output": True}, True),
    ("output with a wrong keyword value", {"output": {"minLength": "3"}}, False),
    ("an example without input", {"examples": [{"description": "x"}]}, False),
    ("a field of one's own", {"x-mine": 1}, True),
    ("a timeout of nothing", {"execution": {"timeoutMs": 0}}, False),
    ("a dependency", {"dependencies": {"a:b": "^1.0.0"}}, True),
    ("an empty name", {"displayName": ""}, False),
]


def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("published_schemas", ROOT / "tools" / "published_schemas.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", FILES.values())
def test_the_committed_file_is_what_the_source_gives(name: str) -> None:
    assert (ROOT / "schemas" / name).read_text("utf-8") == tool().texts()[name]


@pytest.mark.parametrize("dialect", FILES)
def test_each_is_a_schema_of_its_dialect(dialect: Dialect) -> None:
    schema = published(dialect)
    VALIDATORS[dialect].check_schema(schema)
    assert schema["$schema"] == VALIDATORS[dialect].META_SCHEMA["$schema"]


@pytest.mark.parametrize("dialect", FILES)
@pytest.mark.parametrize(("what", "changes", "good"), FIXTURES, ids=[what for what, _, _ in FIXTURES])
def test_both_dialects_and_the_reader_give_the_same_verdict(
    dialect: Dialect, what: str, changes: dict[str, Any], good: bool
) -> None:
    manifest = {**GOOD, **changes}
    assert VALIDATORS[dialect](published(dialect)).is_valid(manifest) == good
    assert (read_manifest(json.dumps(manifest)).manifest is not None) == good


def test_a_validator_points_at_the_missing_field_and_not_at_a_branch() -> None:  # if/then by handler type, not oneOf
    for dialect in VALIDATORS:
        broken = {**GOOD, "handler": {"type": "service-method", "serviceName": "s"}}
        (error,) = VALIDATORS[dialect](published(dialect)).iter_errors(broken)
        assert "'methodName' is a required property" in error.message
