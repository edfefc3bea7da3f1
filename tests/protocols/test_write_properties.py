"""Properties of the writers: what is written reads back exactly, without a word, and to the same text (P1, P2, P3, P5)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.base import PlainCall, Shape, WriteOptions
from tamis.protocols.convert.plain import raw_call
from tamis.protocols.model import Json, ToolHint
from tamis.protocols.plugins import find_protocol
from tamis.protocols.writing.values import same
from tests.protocols.nasty_texts import text
from tests.protocols.writer_helpers import FORMS, OWN, kept, plain_args, read, roundtrip_calls, typed_args, write

NAMES = [
    "value",
    "x",
    "x1",
    "x_1",
    "filePath",
    "file_path",
    "X",
    "command",
    "command_1",
    "command1",
    "on_error",
    "retry",
    "retry_2",
    "type_hint_x",
    "uri_x",
    "common_x",
    "request_id",
    "comment",
    "tool_id",
    "tool_name",
    "toolName",
    "inputs",
    "input",
    "param",
    "item",
    "name",
    "ACTION",
    "action",
    "archery",
    "maid",
    "a b",
    " a",
    "a\n",
    "a-b",
    "a.b",
    "a:b",
    "a/b",
    "城市",
    "Ж",
    "a<b",
    'a"b',
    "",
    "_",
    "1",
]
name = st.one_of(st.sampled_from(NAMES), st.text(max_size=6))
value: st.SearchStrategy[Json] = st.recursive(
    st.one_of(text, st.none(), st.booleans(), st.integers(), st.floats()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(name, st.just("item")), inner, max_size=3)
    ),
    max_leaves=6,
)
texts: st.SearchStrategy[Json] = st.recursive(
    text,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(name, inner, max_size=3)),
    max_leaves=6,
)
tool = st.one_of(
    st.sampled_from(
        [
            "T",
            "T.tool",
            "core:run",
            "3d_print",
            "tool_id",
            "inputs",
            "invoke",
            "tool",
            "工具",
            "a b",
            "w/x.json",
            "",
            "a\nb",
        ]
    ),
    st.text(max_size=5),
)


def calls_of(values: st.SearchStrategy[Json]) -> st.SearchStrategy[list[PlainCall]]:
    call = st.builds(PlainCall, tool, st.dictionaries(name, values, max_size=3))
    return st.lists(call, min_size=1, max_size=3)


@pytest.mark.parametrize("form", FORMS, ids=str)
@given(calls=calls_of(texts))
def test_texts_lists_and_objects_read_back_or_are_refused(
    form: tuple[str, Shape], calls: list[PlainCall]
) -> None:  # P1
    written = write(calls, form)
    document = read(written.text, form)
    expected = kept(calls, written)
    assert [call.tool_id for call in document.calls] == [call.tool_id for call in expected]
    for call, wanted in zip(document.calls, expected, strict=True):
        assert call.executable and call.complete
        for parameter, raw in plain_args(call, document.text).items():
            given = wanted.args[parameter]
            # JSON text stands for what elements cannot carry; it is equal for whoever has the schema.
            assert same(raw, given) or (isinstance(raw, str) and not isinstance(given, str))
        assert call.args(document.text).keys() == wanted.args.keys()


@pytest.mark.parametrize("form", FORMS, ids=str)
@given(calls=calls_of(value))
def test_a_schema_gives_every_type_back(form: tuple[str, Shape], calls: list[PlainCall]) -> None:  # P1, ruling 2
    tools = {call.tool_id: ToolHint(call.tool_id, _schema(call.args)) for call in calls}
    calls = [call for call in calls if tools[call.tool_id].parameters == _schema(call.args)]
    written = write(calls, form, tools)
    document = read(written.text, form, tools)
    for call, wanted in zip(document.calls, kept(calls, written), strict=True):
        assert same(typed_args(call, document.text, tools), wanted.args)


@pytest.mark.parametrize("form", FORMS, ids=str)
@given(calls=calls_of(value))
def test_canonical_text_has_no_findings(form: tuple[str, Shape], calls: list[PlainCall]) -> None:  # P5
    document = read(write(calls, form).text, form)
    assert [diag for diag in document.diagnostics if diag.code not in OWN] == []


@pytest.mark.parametrize("form", FORMS, ids=str)
@given(calls=calls_of(texts))
def test_formatting_what_was_formatted_changes_nothing(form: tuple[str, Shape], calls: list[PlainCall]) -> None:  # P2
    first = write(calls, form)
    document = read(first.text, form)
    again = write([raw_call(call, document.text) for call in document.calls], form)
    assert (again.text, again.refusals) == (first.text, ())


@given(calls=calls_of(value), source=st.sampled_from(FORMS), target=st.sampled_from(FORMS))
def test_a_call_goes_through_another_protocol_unchanged(
    calls: list[PlainCall], source: tuple[str, Shape], target: tuple[str, Shape]
) -> None:  # P3
    calls = calls[:1]
    tools = {call.tool_id: ToolHint(call.tool_id, _schema(call.args)) for call in calls}
    first = write(calls, source, tools)
    document = read(first.text, source, tools)
    moved = [PlainCall(call.tool_id, typed_args(call, document.text, tools)) for call in document.calls]
    second = write(moved, target, tools)
    there = read(second.text, target, tools)
    for call, wanted in zip(there.calls, kept(moved, second), strict=True):
        assert same(typed_args(call, there.text, tools), wanted.args)
    if not first.refusals and not second.refusals:
        assert len(there.calls) == len(calls)


def _schema(args: dict[str, Json]) -> dict[str, Json]:
    """A schema that declares every argument with the types that it has, at every depth."""
    return {"type": "object", "properties": {key: _part(one) for key, one in args.items()}}


def _part(one: Json) -> Json:
    if isinstance(one, dict):
        return {"type": "object", "properties": {key: _part(inner) for key, inner in one.items()}}
    if isinstance(one, list):
        return {"type": "array"}
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return {"type": "null" if one is None else kinds[type(one)]}


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_the_corpus_rows_are_kept_or_refused_never_renamed(corpora: Path, form: tuple[str, Shape]) -> None:
    refused: list[str] = []
    for row, calls in roundtrip_calls(corpora):
        written = write(calls, form)
        document = read(written.text, form)
        refused += [row] if written.refusals else []
        assert [(call.tool_id, plain_args(call, document.text)) for call in document.calls] == [
            (call.tool_id, call.args) for call in kept(calls, written)
        ]
    expected = {"action tag": ["rt-066-tool"], "tam tag": ["rt-071-key"]}
    assert refused == expected.get(" ".join(form), [])


def test_the_canonical_path_reads_what_is_written() -> None:  # P5: no tolerant reading is needed
    from tamis.protocols.action.canonical import read_canonical
    from tamis.protocols.base import Source
    from tamis.protocols.model import ReadOptions

    args: dict[str, Json] = {"a": "x < y", "b": " two\nlines ", "c": "]]>", "d": ["1", "2"], "e": {"f": "g"}, "h": ""}
    for shape in ("tag", "inputs"):
        protocol = find_protocol("action")
        assert protocol is not None
        made = protocol.write_calls([PlainCall("core:tool", args)], WriteOptions(shape=shape)).text
        assert read_canonical(Source(made), (0, 8), len(made), ReadOptions()) is not None


def test_the_canonical_path_leaves_only_elements_of_a_known_tool_to_the_schema() -> None:
    from tamis.protocols.action.canonical import read_canonical
    from tamis.protocols.base import Source
    from tamis.protocols.model import ReadOptions

    def is_read(value: str) -> bool:
        # the comment keeps the block from the loop that knows only plain values
        inputs = f'<!-- c --><input name="a">{value}</input>'
        text = f"<ACTION><tool_id>T</tool_id><inputs>{inputs}</inputs></ACTION>"
        options = ReadOptions(tools={"T": ToolHint("T", {})})
        return read_canonical(Source(text), (0, 8), len(text), options) is not None

    assert is_read("1")
    assert is_read("<![CDATA[1]]>")
    assert not is_read("<k>1</k>")


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_deep_and_endless_values_are_refused_with_a_sentence(form: tuple[str, Shape]) -> None:
    deep: Json = "x"
    for _ in range(1_000):
        deep = [deep]
    huge = 10**5_000
    for one in (deep, {"a": deep}, huge, float("nan"), float("inf"), "\ud800"):
        written = write([PlainCall("T", {"value": one})], form)
        assert (written.text, len(written.refusals)) == ("", 1)
        assert "Traceback" not in str(written.refusals[0].args)
    assert sys.getrecursionlimit() >= 1_000


@pytest.mark.share(8)
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_thousand_calls_are_written_in_linear_time(form: tuple[str, Shape]) -> None:
    calls = [PlainCall("T", {"value": f"{n} < x"}) for n in range(1_000)]
    written = write(calls, form)
    assert not written.refusals
    assert len(read(written.text, form).calls) == 1_000
