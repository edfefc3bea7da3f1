"""Parsed calls against schemas: every finding at the exact source character, type hints, fixes, masking."""

from __future__ import annotations

from typing import Any

import pytest

from tamis.protocols.catalogue import message
from tamis.protocols.check import CallCheck, check_call, to_problem
from tamis.protocols.model import Call, Param, Piece, Value
from tamis.protocols.schema.plan import compile_plan
from tamis.protocols.schema.secrets import mask

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "count": {"type": "integer", "minimum": 1},
        "options": {"type": "object", "properties": {"deep": {"type": "boolean"}}, "additionalProperties": False},
        "files": {
            "type": "array",
            "items": {"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer"}}},
        },
        "mode": {"enum": ["fast", "slow"]},
    },
    "required": ["path"],
}


def text_value(source: str, shown: str, decoded: str | None = None) -> Value:
    at = source.index(shown)
    return Value("text", (at, at + len(shown)), (Piece(at, at + len(shown), decoded),))


def tag(source: str, name: str, value: Value) -> Param:
    start = source.index(f"<{name}>")
    end = source.index(f"</{name}>") + len(name) + 3
    return Param(name, value, (start, end), (start + 1, start + 1 + len(name)), name, "child")


def action(source: str, *params: Param) -> Call:
    at = source.index("tool")
    return Call("action", "tool", (at, at + 4), (0, len(source)), list(params))


def places(source: str, found: CallCheck) -> list[tuple[str, str]]:
    return [(one.diag.code, source[one.diag.span[0] : one.diag.span[1]]) for one in found.problems]


def test_a_valid_call_gives_typed_arguments():
    source = "<tool><path>007</path><count>5</count></tool>"
    call = action(source, tag(source, "path", text_value(source, "007")), tag(source, "count", text_value(source, "5")))
    found = check_call(call, source, compile_plan(SCHEMA))
    assert found == CallCheck(True, {"path": "007", "count": 5}, [])


def test_an_unknown_name_is_at_the_name_with_a_fix_for_both_tags():  # VA403
    source = "<tool><Path>x</Path></tool>"
    call = action(source, tag(source, "Path", text_value(source, "x")))
    found = check_call(call, source, compile_plan(SCHEMA))
    assert places(source, found) == [("VA403", "Path")]
    fix = found.problems[0].diag.fix
    assert fix is not None and fix.applicability == "safe"
    for edit in sorted(fix.edits, key=lambda one: -one.start):
        source = source[: edit.start] + edit.new_text + source[edit.end :]
    assert source == "<tool><path>x</path></tool>"


def test_a_missing_parameter_is_at_the_tool_and_a_wrong_value_at_the_value():
    source = "<tool><count>many</count></tool>"
    call = action(source, tag(source, "count", text_value(source, "many")))
    found = check_call(call, source, compile_plan(SCHEMA))
    assert not found.valid and found.coerced == {}
    assert places(source, found) == [("VA410", "many"), ("VA404", "tool")]
    assert [finding.path for finding in found.errors] == ["/count", "/path"]


def test_a_place_inside_json_text_is_mapped_through_entities_to_its_source():
    shown = "{&quot;deep&quot;: &quot;maybe&quot;, &quot;dep&quot;: 1}"
    source = f"<tool><path>x</path><options>{shown}</options></tool>"
    pieces: list[Piece] = []
    at = source.index(shown)
    for part in shown.split("&quot;"):
        pieces.append(Piece(at, at + len(part)))
        at += len(part)
        pieces.append(Piece(at, at + 6, '"'))
        at += 6
    pieces.pop()
    start = source.index(shown)
    value = Value("text", (start, start + len(shown)), tuple(pieces))
    call = action(source, tag(source, "path", text_value(source, "x")), tag(source, "options", value))
    found = check_call(call, source, compile_plan(SCHEMA))
    assert places(source, found) == [("VA410", "&quot;maybe&quot;"), ("VA403", "&quot;dep&quot;")]


def test_a_syntax_error_in_json_text_is_at_its_character():  # VA420
    source = '<tool><path>x</path><options>{"deep" true}</options></tool>'
    call = action(
        source,
        tag(source, "path", text_value(source, "x")),
        tag(source, "options", text_value(source, '{"deep" true}')),
    )
    assert places(source, check_call(call, source, compile_plan(SCHEMA))) == [("VA420", '"deep"')]


def test_the_index_of_a_list_of_one_leads_to_the_element_as_written():  # ruling 2
    source = "<tool><path>x</path><files><name>a</name><n>b</n></files></tool>"
    entry = Value(
        "object",
        (source.index("<name>"), source.index("</files>")),
        entries={"name": text_value(source, "a"), "n": text_value(source, "b")},
    )
    call = action(source, tag(source, "path", text_value(source, "x")), tag(source, "files", entry))
    found = check_call(call, source, compile_plan(SCHEMA))
    assert [finding.path for finding in found.errors] == ["/files/0/n"]
    assert places(source, found) == [("VA410", "b")]


def test_markup_in_a_parameter_that_is_declared_as_text_is_that_text():  # ruling 15
    source = "<tool><path><b>x</b></path></tool>"
    at = source.index("<b>")
    value = Value("object", (at, at + 8), entries={"b": text_value(source, "x")})
    found = check_call(action(source, tag(source, "path", value)), source, compile_plan(SCHEMA))
    assert found.coerced == {"path": "<b>x</b>"}


def tam(value: str, hint: str | None, schema: Any) -> tuple[str, CallCheck]:
    source = f"command:»»»tool«««\npayload:»»»{value}«««"
    at = source.index(value, 20)
    param = Param(
        "payload", Value("text", (at, at + len(value)), (Piece(at, at + len(value)),)), (19, len(source)), (19, 26)
    )
    hints = {"payload": hint} if hint else {}
    call = Call("tam", "tool", (11, 15), (0, len(source)), [param], type_hints=hints)
    plan = compile_plan({"type": "object", "properties": {"payload": schema}})
    return source, check_call(call, source, plan)


def test_type_hints_are_applied_before_the_schema():  # T22
    assert tam('{"a": [1]}', "json", {})[1].coerced == {"payload": {"a": [1]}}
    assert tam('"«»"', "json", {"type": "string"})[1].coerced == {"payload": "«»"}
    assert tam("5L2g5aW9", "base64", {"type": "string"})[1].coerced == {"payload": "5L2g5aW9"}
    assert tam("5L2g\n5aW9", "base64", {})[1].coerced == {"payload": "5L2g5aW9"}
    assert tam("5L2g", "text", {})[1].coerced == {"payload": "5L2g"}
    assert tam("[1]", None, {})[1].coerced == {"payload": "[1]"}


@pytest.mark.parametrize(
    ("value", "hint", "code", "place"),
    [
        ('{"a": x}', "json", "VA420", "x"),
        ('{"a": [1', "json", "VA421", "1"),
        ("5L2g!5aW9", "base64", "VA410", "!"),
        ("5L2gA", "base64", "VA410", "5L2gA"),
    ],
)
def test_bad_data_under_a_type_hint_is_located(value: str, hint: str, code: str, place: str):  # T22
    source, found = tam(value, hint, {})
    assert not found.valid and places(source, found) == [(code, place)]


@pytest.mark.parametrize(
    ("encoding", "value", "received"),
    [
        ("base64", "_w", "/w=="),
        ("BASE64", "AP/+gA==", "AP/+gA=="),
        ("base64url", "/w==", "_w=="),
        ("base16", "/w==", "FF"),
        ("base32", "/w==", "74======"),
        ("8bit", "5L2g", "你"),
        ("7bit", "YQ==", "a"),
        ("quoted-printable", "5L2g", "=E4=BD=A0"),
    ],
)
def test_base64_takes_any_bytes_in_the_encoding_that_the_schema_names(encoding: str, value: str, received: str):
    """Ruling 56, T2."""
    found = tam(value, "base64", {"type": "string", "contentEncoding": encoding})[1]
    assert found.valid
    assert found.coerced == {"payload": received}


def test_bytes_that_are_no_text_are_an_error_only_where_the_schema_wants_text():  # ruling 56
    assert tam("/w==", "base64", {"type": "string"})[1].coerced == {"payload": "/w=="}
    source, found = tam("/w==", "base64", {"type": "string", "contentEncoding": "8bit"})
    assert not found.valid
    assert places(source, found) == [("VA410", "/w==")]


def test_a_plain_text_of_tam_is_no_list_of_one():
    source, found = tam("a", None, {"type": "array", "items": {"type": "string"}})
    assert places(source, found) == [("VA410", "a")]
    assert found.errors[0].suggestion == '["a"]'


def test_a_problem_on_the_wire_has_the_path_below_its_prefix_and_a_bare_suggestion():
    source = "<tool><path>x</path><mode>Fast</mode></tool>"
    call = action(source, tag(source, "path", text_value(source, "x")), tag(source, "mode", text_value(source, "Fast")))
    found = check_call(call, source, compile_plan(SCHEMA))
    problem = to_problem(found.errors[0], "/calls/0/args")
    assert (problem.code, problem.slug, problem.path) == ("VA430", "enum", "/calls/0/args/mode")
    assert problem.suggestion == "fast"
    assert problem.message == "'Fast' is not one of \"fast\", \"slow\", did you mean 'fast'?"
    assert message(found.problems[0].diag) == problem.message
    assert found.problems[0].diag.fix is not None


def test_secrets_are_masked_wherever_they_stand():  # x-secret, D27
    secret = {"type": "string", "x-secret": True}
    schema = {
        "properties": {
            "token": secret,
            "auth": {"properties": {"key": {"$ref": "#/$defs/key"}, "user": {}}},
            "list": {"items": {"anyOf": [{"properties": {"pw": secret}}, {"type": "string"}]}},
            "plain": {"type": "string"},
        },
        "$defs": {"key": secret},
    }
    args = {
        "token": "t",
        "auth": {"key": ["k"], "user": "u"},
        "list": [{"pw": "p", "x": 1}],
        "plain": "v",
        "other": 1,
    }
    assert mask(args, schema) == {
        "token": "***",
        "auth": {"key": "***", "user": "u"},
        "list": [{"pw": "***", "x": 1}],
        "plain": "v",
        "other": 1,
    }
    assert mask({"auth": '{"key": "k"}'}, schema) == {"auth": "***"}
    assert args["token"] == "t"


def test_masking_ends_on_schemas_that_refer_to_themselves():
    schema = {"properties": {"child": {"$ref": "#"}, "pw": {"x-secret": True}}}
    deep: Any = {"pw": "x"}
    for _ in range(500):
        deep = {"child": deep}
    assert "'x'" not in repr(mask(deep, schema))
