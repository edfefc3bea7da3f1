"""Raw texts to typed values: what is read, what is read with a warning, what is refused."""

from __future__ import annotations

import contextlib
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.check import check_call
from tamis.protocols.schema.coerce import Reading
from tamis.protocols.schema.coerce_text import read_json_text
from tamis.protocols.schema.plan import compile_plan
from tests.protocols.json_calls import read

from . import validation_adapter


def one(schema: Any, raw: Any, reading: Reading = "any") -> tuple[Any, list[str]]:
    """The value of one parameter ``p`` (or ``...`` when refused) and the codes said about it."""
    outcome = compile_plan({"type": "object", "properties": {"p": schema}}).check({"p": raw}, reading)
    said = [finding.code for finding in [*outcome.errors, *outcome.warnings]]
    if not outcome.valid:
        return ..., said
    assert isinstance(outcome.coerced, dict)
    return outcome.coerced["p"], said


INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
BOOLEAN = {"type": "boolean"}
NAMES = {"type": "array", "items": {"type": "string"}}
COUNTS = {"type": "array", "items": INTEGER}
PERSON = {"type": "object", "properties": {"age": INTEGER, "name": {"type": "string"}}, "additionalProperties": False}


@pytest.mark.parametrize("text", ["007", "true", "null", "1e5", "1.0", '{"a": 1}', "", "  x ", "[1]"])
def test_a_text_stays_as_it_was_written(text: str):  # ruling 2, F21
    assert one({"type": "string"}, text) == (text, [])
    assert one({}, text) == (text, [])
    assert one({"type": ["integer", "string"]}, text) == (text, [])
    assert one({"anyOf": [INTEGER, {"type": "string"}]}, text) == (text, [])


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (INTEGER, "42", 42),
        (INTEGER, " -3\n", -3),
        (INTEGER, "123456789012345678901234567890", 123456789012345678901234567890),
        (NUMBER, " 2.5 ", 2.5),
        (NUMBER, "1e5", 100000.0),
        (NUMBER, "7", 7),
        (BOOLEAN, "true", True),
        (BOOLEAN, " false ", False),
        ({"type": "null"}, "null", None),
        ({"type": ["integer", "null"]}, "null", None),
        ({"type": ["string", "null"]}, "null", None),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "null", None),
        ({"enum": [1, 2, 3]}, "2", 2),
        ({"enum": ["1", 1]}, "1", "1"),
        ({"const": "v1"}, "v1", "v1"),
        ({"$ref": "#/properties/q"}, "x", "x"),
    ],
)
def test_a_plain_text_is_read_without_a_word(schema: Any, text: str, value: Any):
    assert one(schema, text) == (value, []) if "$ref" not in schema else True


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (INTEGER, "30000.0", 30000),
        (INTEGER, "1e3", 1000),
        (INTEGER, "+5", 5),
        (INTEGER, "007", 7),
        (NUMBER, ".5", 0.5),
        (NUMBER, "+1.5", 1.5),
        (BOOLEAN, "True", True),
        (BOOLEAN, "FALSE", False),
        ({"enum": ["fast", "slow"]}, " fast ", "fast"),
        ({"anyOf": [INTEGER, BOOLEAN]}, "True", True),
    ],
)
def test_a_loose_text_is_read_with_a_warning(schema: Any, text: str, value: Any):  # interface "Checking", F22
    found, said = one(schema, text)
    assert found == value and type(found) is type(value)
    assert said == ["VA411"]


@pytest.mark.parametrize(
    ("schema", "text", "code"),
    [
        *(
            (INTEGER, text, "VA410")
            for text in ("", "true", "1-5", "30,000", "1_000", "0x10", "12abc", "１２", "null", "NaN")
        ),
        *((INTEGER, text, "VA412") for text in ("3.7", "1e400", "1e-3", "5.0000000000000000001", "9007199254740993.0")),
        *((NUMBER, text, "VA410") for text in ("5.", "NaN", "Infinity", "1,5", "")),
        (NUMBER, "1e999", "VA412"),
        *((BOOLEAN, text, "VA410") for text in ("truee", "yes", "1", "是", "")),
        *(({"type": "null"}, text, "VA410") for text in ("", "NULL", "None")),
        ({"enum": ["fast", "slow"]}, "Fast", "VA430"),
        ({"enum": ["fast", "slow"]}, "I think fast is best", "VA430"),
        ({"type": ["integer", "null"]}, "", "VA410"),
        ({"anyOf": [INTEGER, BOOLEAN]}, "x", "VA440"),
        (INTEGER, "9" * 4_001, "VA410"),
    ],
)
def test_nothing_is_rounded_cut_or_guessed(schema: Any, text: str, code: str):
    assert one(schema, text) == (..., [code])


@pytest.mark.parametrize(("text", "meant"), [("yes", "true"), ("0", "false"), ("是", "true")])
def test_a_word_for_yes_or_no_is_refused_with_a_suggestion(text: str, meant: str):
    outcome = compile_plan({"type": "object", "properties": {"p": BOOLEAN}}).check({"p": text})
    assert outcome.errors[0].suggestion == meant


# Lists and objects


def test_repeated_elements_are_read_item_by_item():
    assert one(COUNTS, ["1", "2"]) == ([1, 2], [])
    outcome = compile_plan({"type": "object", "properties": {"p": COUNTS}}).check({"p": ["1", "x"]})
    assert [(finding.code, finding.path) for finding in outcome.errors] == [("VA410", "/p/1")]


def test_one_element_under_a_list_is_a_list_of_one():  # ruling 2, F23, A08
    files = {"type": "array", "items": {"type": "object", "properties": {"path": {"type": "string"}}}}
    assert one(files, {"path": "a.ts"}, "markup") == ([{"path": "a.ts"}], [])
    assert one(files, {"path": "a.ts"}, "any") == ([{"path": "a.ts"}], ["VA413"])
    assert one(files, {"path": "a.ts"}, "typed") == (..., ["VA410"])
    assert one(NAMES, "Alice", "markup") == (["Alice"], [])
    assert one(NAMES, "Alice", "any") == (["Alice"], ["VA413"])


def test_item_children_are_a_list_unless_the_schema_wants_an_object():  # ruling 15, A08
    assert one(NAMES, {"item": ["Alice", "Bob"]}, "markup") == (["Alice", "Bob"], [])
    assert one(NAMES, {"item": "Alice"}, "markup") == (["Alice"], [])
    box = {"type": "object", "properties": {"item": {"type": "string"}}}
    assert one(box, ["Alice"], "markup") == ({"item": "Alice"}, [])
    assert one({"type": "object", "properties": {"item": NAMES}}, ["A"], "markup") == ({"item": ["A"]}, [])


def test_a_plain_text_is_no_list_and_the_list_is_proposed():
    outcome = compile_plan({"type": "object", "properties": {"p": NAMES}}).check({"p": "a, b"}, "text")
    assert [(finding.code, finding.suggestion) for finding in outcome.errors] == [("VA410", '["a","b"]')]
    assert one(NAMES, "a, b", "markup") == (..., ["VA410"])
    assert one(NAMES, "", "markup") == (..., ["VA410"])


def test_nested_elements_are_read_by_their_own_schemas():
    assert one(PERSON, {"age": "25", "name": "007"}) == ({"age": 25, "name": "007"}, [])


def test_typed_json_is_not_coerced():
    assert one(INTEGER, "5", "typed") == (..., ["VA410"])
    assert one(INTEGER, 5.0, "typed") == (5, [])
    assert one(BOOLEAN, 1) == (..., ["VA410"])


# JSON text


@pytest.mark.parametrize(
    ("text", "value", "said"),
    [
        ('{"age": 25}', {"age": 25}, []),
        ('\n {"age": 1}\n ', {"age": 1}, []),
        ('{"age": "25"}', {"age": 25}, ["VA411"]),
        ('{"age": 1, "age": 2}', {"age": 2}, ["VA423"]),
        ('\ufeff{"age": 1}', {"age": 1}, ["VA411"]),
        ('{"name": "\\ud800"}', {"name": "\ufffd"}, ["VA411"]),
        ('{"age": 1,}', {"age": 1}, ["VA420"]),
        ('{"name": "a\nb\tc"}', {"name": "a\nb\tc"}, ["VA420"]),
        ('{"age": \\n25\\n}', {"age": 25}, ["VA420"]),
        ('{"name": "C:\\new"}', {"name": "C:\new"}, ["VA411"]),
    ],
)
def test_json_text_is_read_and_each_assumption_is_said(text: str, value: Any, said: list[str]):  # D59, F19, F20
    assert one(PERSON, text) == (value, said)


@pytest.mark.parametrize(
    ("text", "code", "proposed"),
    [
        ("{'age': 25}", "VA420", '{"age": 25}'),
        ("{'ok': True, 'name': None}", "VA420", '{"ok": true, "name": null}'),
        ("{age: 25}", "VA420", '{"age": 25}'),
        ('{"name": "C:\\Users"}', "VA420", '{"name": "C:\\\\Users"}'),
        ('```json\n{"age": 1}\n```', "VA420", '{"age": 1}'),
        ('// note\n{"age": 1}', "VA420", '\n{"age": 1}'),
        ('{"age": NaN}', "VA420", None),
        ('{"age": 1} and more', "VA420", None),
        ('{"q": "say "hi""}', "VA420", None),
        ("[1]", "VA422", None),
        ('"{\\"age\\": 25}"', "VA422", '{"age": 25}'),
        ("5", "VA410", None),
        ("", "VA410", None),
    ],
)
def test_other_json_is_refused_and_a_repair_is_only_proposed(text: str, code: str, proposed: str | None):  # F20
    outcome = compile_plan({"type": "object", "properties": {"p": PERSON}}).check({"p": text})
    assert [(finding.code, finding.path, finding.suggestion) for finding in outcome.errors] == [(code, "/p", proposed)]


def test_a_word_in_broken_json_does_not_change_what_is_wrong_with_it():
    """What a sentence quotes is the model's: it decides nothing."""
    assert one(PERSON, '{"name": digits}') == (..., ["VA420"])


@pytest.mark.parametrize(
    "text",
    ['{"age": 25, "name": "A', '{"age": 25', '{"name": "a\nb', '{"age": 2, "name": tr', "[1, 2,", '{"name": "x\\'],
)
def test_json_that_was_cut_off_never_runs(text: str):  # F2
    assert one({"type": ["object", "array"]}, text) == (..., ["VA421"])


def test_deep_json_and_long_numbers_are_refused_without_a_crash():
    assert one({}, "[" * 100_000) == ("[" * 100_000, [])
    assert one({"type": "array"}, "[" * 100_000) == (..., ["VA424"])
    assert one({"type": "array"}, "[" + "9" * 5_000 + "]") == (..., ["VA424"])


def test_an_error_inside_json_text_has_its_path_and_a_syntax_error_its_character():
    plan = compile_plan({"type": "object", "properties": {"p": PERSON}})
    assert [finding.path for finding in plan.check({"p": '{"age": "x", "nmae": 1}'}).errors] == ["/p/age", "/p/nmae"]
    (finding,) = plan.check({"p": '{"age": 2 "name": 1}'}).errors
    assert finding.at == (10, 11)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=6),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    )
)
def test_good_json_text_is_read_as_the_standard_library_reads_it(value: Any):
    text = json.dumps(value, ensure_ascii=False)
    found, notes = read_json_text(text)
    assert found == value and type(found) is type(value)
    assert all(not note.error for note in notes)


@given(st.text(st.sampled_from("{}[]\",: \n\\ntrue1'a"), max_size=14))
def test_any_text_gives_a_value_or_a_located_error(text: str):
    value, notes = read_json_text(text)
    errors = [note for note in notes if note.error]
    assert len(errors) <= 1 and (not errors or value is None)
    assert all(0 <= note.at[0] <= note.at[1] <= len(text) for note in notes)
    with contextlib.suppress(ValueError):
        wanted = json.loads(text)
        assert value == wanted and not errors


# Null for what is not given, as strict modes of model services write it (export openaiStrict)


_STRICT = {
    "type": "object",
    "properties": {
        "q": {"type": "string"},
        "limit": {"type": "integer"},
        "mark": {"type": ["string", "null"]},
        "near": {"$ref": "#/$defs/place"},
        "kind": {"enum": ["a", "b"]},
        "places": {"type": "array", "items": {"$ref": "#/$defs/place"}},
    },
    "required": ["q"],
    "$defs": {
        "place": {
            "type": "object",
            "properties": {"lat": {"type": "number"}, "name": {"type": "string"}},
            "required": ["lat"],
        }
    },
}


def test_a_null_for_an_optional_parameter_that_allows_none_counts_as_not_given_with_a_warning():
    plan = compile_plan(_STRICT)
    given: Any = {"q": "x", "limit": None, "kind": None, "near": {"lat": 1.5, "name": None}, "mark": None}
    given["places"] = [{"lat": 2, "name": None}]
    outcome = plan.check(given)
    assert outcome.coerced == {"q": "x", "near": {"lat": 1.5}, "mark": None, "places": [{"lat": 2}]}
    places = ["/limit", "/kind", "/near/name", "/places/0/name"]
    assert [(one.code, one.path, one.severity) for one in outcome.warnings] == [
        ("VA442", path, "warning") for path in places
    ]
    assert plan.check({"q": "x", "near": None}).coerced == {"q": "x"}
    alternatives = {"type": "object", "properties": {"p": {"anyOf": [{"type": "boolean"}, _STRICT["$defs"]["place"]]}}}
    assert compile_plan(alternatives).check({"p": {"lat": 1, "name": None}}).coerced == {"p": {"lat": 1}}


def test_a_null_for_a_required_parameter_an_item_or_in_an_output_is_an_error():
    plan = compile_plan(_STRICT)
    for args, path in (
        ({"q": None}, "/q"),
        ({"q": "x", "near": {"lat": None}}, "/near/lat"),
        ({"q": "x", "places": [None]}, "/places/0"),
    ):
        assert [(one.code, one.path) for one in plan.check(args).errors] == [("VA410", path)]
    assert [one.path for one in plan.check({"q": "x", "limit": None}, "typed").errors] == ["/limit"]


def test_a_null_in_a_call_of_json_is_dropped_too():
    text = (
        '<tool_call>{"name": "t", "arguments": {"q": "x", "limit": null, "near": {"lat": 1, "name": null}}}</tool_call>'
    )
    (call,) = read(text).calls
    found = check_call(call, text, compile_plan(_STRICT))
    assert found.valid and found.coerced == {"q": "x", "near": {"lat": 1}}
    assert [one.finding.path for one in found.problems] == ["/limit", "/near/name"]


# The corpus


def test_the_corpus_rows_get_the_result_that_a_careful_reader_expects(
    corpora: Path, capsys: pytest.CaptureFixture[str]
):
    spec = importlib.util.spec_from_file_location("corpus_validate", corpora / "calls" / "validate.py")
    assert spec is not None and spec.loader is not None
    scorer: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scorer)
    tools = json.loads((corpora / "calls" / "validation_schemas.json").read_text())
    grades: dict[str, int] = {}
    for line in (corpora / "calls" / "validation.jsonl").read_text().splitlines():
        row = json.loads(line)
        found = validation_adapter.check(row["tool"], row["raw"], tools)
        grade = scorer.grade(row, found)
        grades[grade] = grades.get(grade, 0) + 1
        wanted = row["expect"].get("errors", [])
        if not found["valid"]:
            for error in wanted:
                key = "tool" if "tool" in error else "param"
                hits = [one for one in found["errors"] if one.get(key) == error[key]]
                assert hits, row["id"]
                assert "suggest" not in error or any(hit.get("suggest") == error["suggest"] for hit in hits), row["id"]
    total = sum(grades.values())
    assert not grades.get("harmful") and not grades.get("crash") and not grades.get("silent"), grades
    assert (grades.get("exact", 0) + grades.get("accepted", 0)) / total >= 0.97, grades
