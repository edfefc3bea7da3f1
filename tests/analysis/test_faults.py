"""Fixes go by the fault of a finding: what a sentence quotes of the document decides nothing."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.jsontext.tokens import JsonFault
from tamis.protocols.schema.check import SchemaFault, check_schema
from tamis.server.analysis.actions.fixes import quick_fixes
from tamis.server.analysis.kinds import kind_of
from tamis.server.analysis.manifests import metaschema_says
from tamis.server.analysis.snapshot import Snapshot

BROKEN = {
    "control-character": '"a\tb"',
    "empty-document": "",
    "foreign-comment": "# x\n1",
    "foreign-word": "True",
    "missing-closer": "[{]",
    "missing-colon": '{"a" 1}',
    "missing-comma": "[1 2]",
    "missing-member": "{,}",
    "missing-name": "{:1}",
    "missing-value": "[,]",
    "not-a-number": "01",
    "not-finite": "NaN",
    "out-of-range": "1e999",
    "single-quotes": "'a'",
    "stray-closer": "[1}]",
    "stray-colon": '{"a": 1: 2}',
    "text-behind": "1 2",
    "too-deep": "[" * 3000,
    "too-many-digits": "9" * 5000,
    "unclosed-string": '["a\n]',
    "unexpected-value": "[abc]",
    "unknown-escape": '"\\q"',
    "unquoted-name": "{a: 1}",
}
WRONG: dict[str, Any] = {
    "bad-pattern": {"pattern": "("},
    "empty-enum": {"enum": []},
    "list-for-schema": {"items": [1]},
    "named-twice": {"required": ["a", "a"]},
    "not-boolean": {"uniqueItems": 1},
    "not-count": {"minLength": -1},
    "not-examples": {"examples": 1},
    "not-list": {"required": "a"},
    "not-name": {"required": [1]},
    "not-names": {"dependentRequired": {"a": [1]}},
    "not-number": {"minimum": "1"},
    "not-object": {"properties": 1},
    "not-positive": {"multipleOf": 0},
    "not-schema": {"not": 1},
    "not-schemas": {"anyOf": []},
    "not-text": {"format": 1},
    "not-type": {"type": "str"},
    "not-types": {"type": []},
    "ref-endless": {"$ref": "#"},
    "ref-nowhere": {"$ref": "#/$defs/none"},
}


@pytest.mark.parametrize("fault", get_args(JsonFault))
def test_each_fault_of_json_is_told_as_data(fault: str) -> None:
    found = {diag.args.get("fault") for diag in parse_json(BROKEN[fault]).diagnostics}
    assert fault in found, found


@pytest.mark.parametrize("fault", [name for name in get_args(SchemaFault) if name != "too-large"])
def test_each_fault_of_a_schema_is_told_as_data(fault: str) -> None:
    assert fault in {issue.args.get("fault") for issue in check_schema(WRONG[fault])}


def manifest(schema: Any) -> Snapshot:
    text = json.dumps({"toolId": "t:a", "parameters": schema}, indent=2)
    return Snapshot("/w/a.tool.json", kind_of("/w/a.tool.json", "json"), text, None)


def test_a_text_that_quotes_a_sentence_gets_no_fix_of_it() -> None:
    snapshot = manifest(
        {"type": "object", "properties": {"a": {"format": 1, "minLength": "x is a list of names, not y"}}}
    )
    at = snapshot.text.index("x is a list")
    assert not [action.fix for action in quick_fixes(snapshot, (at, at)) if "[" in action.fix.edits[0].new_text]


def test_a_schema_that_quotes_a_sentence_is_told_by_the_metaschema_too() -> None:
    snapshot = manifest({"type": "object", "properties": {"a": {"minLength": "more than one"}}})
    (diag,) = [diag for diag in snapshot.manifest.diagnostics if diag.code == "VA450"]
    assert metaschema_says(diag)
