"""Lints of schemas against the public test suite and against real tools: what they claim is so, and sound tools have no errors (D37)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.model import Diag
from tamis.protocols.schema.check import Draft
from tamis.server.analysis.diagnostics import diagnose
from tamis.server.analysis.lints.walk import lint_schemas
from tamis.server.analysis.snapshot import Snapshot

DRAFTS: dict[str, tuple[Draft, Any]] = {
    "draft2020-12": ("2020-12", jsonschema.Draft202012Validator),
    "draft7": ("draft-07", jsonschema.Draft7Validator),
}
SILENT = {"LN703", "LN704", "LN708", "LN709"}
"""Lints that say of a keyword that it does nothing."""


@cache
def groups(folder: Path) -> list[dict[str, Any]]:
    return [group for path in sorted(folder.glob("*.json")) for group in json.loads(path.read_text("utf-8"))]


def linted(text: str, draft: Draft) -> list[Diag]:
    root = parse_json(text).root
    assert root is not None
    return lint_schemas(root, draft, parameters=False) if root.kind == "object" else []


@pytest.mark.parametrize("name", DRAFTS)
def test_a_keyword_that_is_said_to_do_nothing_does_nothing(corpora: Path, name: str) -> None:
    """Taken out, every verdict of the suite stays."""
    draft, validator = DRAFTS[name]
    proved = 0
    for group in groups(corpora / "json-schema-suite" / "tests" / name):
        text = json.dumps(group["schema"], indent=1)
        for diag in linted(text, draft):
            if diag.code not in SILENT or diag.fix is None or not diag.fix.title.startswith("Remove"):
                continue
            (edit,) = diag.fix.edits
            less = json.loads(text[: edit.start] + edit.new_text + text[edit.end :])
            for case in group["tests"]:
                try:
                    before = validator(group["schema"]).is_valid(case["data"])
                    after = validator(less).is_valid(case["data"])
                except Exception:  # a reference that only the suite's server could follow
                    continue
                assert before == after, (group["description"], diag, case)
                proved += 1
    assert proved > 10


@pytest.mark.parametrize("name", DRAFTS)
def test_where_nothing_fits_nothing_fits(corpora: Path, name: str) -> None:
    draft, validator = DRAFTS[name]
    for group in groups(corpora / "json-schema-suite" / "tests" / name):
        for diag in linted(json.dumps(group["schema"]), draft):
            if diag.code == "LN705" and set(group["schema"]) <= {"$schema", diag.args["low"], diag.args["high"]}:
                kind = (int, float) if str(diag.args["low"]).lower().endswith("minimum") else (str, list, dict)
                for case in group["tests"]:
                    if isinstance(case["data"], kind) and not isinstance(case["data"], bool):
                        assert not validator(group["schema"]).is_valid(case["data"])


@given(st.sampled_from([({"type": "string"}, low, high) for low in range(4) for high in range(4)]), st.text(max_size=4))
def test_an_empty_range_refuses_every_text(shape: tuple[dict[str, Any], int, int], text: str) -> None:
    base, low, high = shape
    schema = {**base, "minLength": low, "maxLength": high}
    said = any(diag.code == "LN705" for diag in linted(json.dumps(schema), "2020-12"))
    assert said == (low > high)
    if said:
        assert not jsonschema.Draft202012Validator(schema).is_valid(text)


def real_tools(folder: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    stack: list[Any] = [json.loads(path.read_text("utf-8")) for path in sorted(folder.rglob("*.json"))]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            schema, name = node.get("inputSchema"), node.get("name")
            if isinstance(schema, dict) and isinstance(name, str) and name.isidentifier():
                yield name, str(node.get("description") or "Does what its name says, as it is asked to."), schema
        stack.extend(node.values() if isinstance(node, dict) else node if isinstance(node, list) else ())


def test_real_tools_get_no_false_errors_and_little_noise(corpora: Path) -> None:
    codes: Counter[str] = Counter()
    count = 0
    for name, description, schema in real_tools(corpora / "mcp-tools"):
        manifest = {
            "toolId": f"mcp:{name}",
            "displayName": name,
            "description": description,
            "version": "1.0.0",
            "handler": {"type": "service-method", "serviceName": "S", "methodName": "m"},
            "parameters": schema,
        }
        count += 1
        for finding in diagnose(Snapshot("/w/a.tool.json", "manifest", json.dumps(manifest), None)):
            assert finding.severity in ("hint", "information"), (name, finding)
            codes[finding.code] += 1
    assert count > 200
    del codes["LN731"]  # none of them has an example
    assert sum(codes.values()) < count


def test_unsupported_dialects_get_one_finding() -> None:
    for uri in ("http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-06/schema", "urn:mine"):
        schema = {"$schema": uri, "type": "object", "definitions": {"a": {"type": "number", "minLength": 1}}}
        manifest = {
            "toolId": "t:a",
            "displayName": "A",
            "description": "Gives back what it is given, to try out a call.",
            "version": "1.0.0",
            "handler": {"type": "service-method", "serviceName": "S", "methodName": "m"},
            "parameters": schema,
        }
        found = [
            finding.code for finding in diagnose(Snapshot("/w/a.tool.json", "manifest", json.dumps(manifest), None))
        ]
        assert found.count("LN701") == 1
        assert found == ["LN701"] or uri == "urn:mine"
