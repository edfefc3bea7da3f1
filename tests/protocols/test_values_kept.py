"""What was written for a value reaches it: comments, runs of delimiters, bytes; nothing is merged, emptied or spread (rulings 17, 52, 56)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.base import PlainCall, WriteOptions
from tamis.protocols.catalogue import message, severity
from tamis.protocols.live import made_live
from tamis.protocols.model import Document, Json, ReadOptions, ToolHint
from tamis.protocols.passed_over import notes_of
from tamis.protocols.plugins import find_protocol
from tamis.protocols.reader import read_text
from tamis.protocols.repair import apply_edits
from tamis.protocols.streaming.reader import StreamReader
from tests.protocols.reader_helpers import codes, runnable
from tests.protocols.streams import check_stream

SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {
        "a": {"type": "string"},
        "b": {"type": "string"},
        "n": {"type": "integer"},
        "o": {"type": "object", "properties": {"o": {"type": "string"}}},
        "l": {"type": "array", "items": {"type": "string"}},
    },
}
TOOLS = {"T": ToolHint("T", SCHEMA), "U": ToolHint("U", {"type": "object", "properties": {"x": {"type": "string"}}})}


def read(body: str, *, known: bool = True) -> Document:
    return read_text(f"<ACTION><T>{body}</T></ACTION>", options=ReadOptions(tools=TOOLS if known else {}))


def one(document: Document) -> dict[str, Json]:
    [(tool, args)] = runnable(document)
    assert tool == "T"
    return args


COMMENTS = ["<!-- c -->", "<!---->", "<!-- &lt; & -->", "<!-- </ACTION> -->", "<!-- <b>1</b> -->", "<!-- </b> -->"]


@pytest.mark.parametrize("comment", COMMENTS)
@pytest.mark.parametrize("around", ["{}", "x{}", "{}x", "x {} y", "\n    x\n    {}\n    y\n"])
def test_a_comment_in_a_value_whose_schema_takes_text_is_part_of_it_byte_for_byte(
    comment: str, around: str
) -> None:  # ruling 17
    document = read(f"<a>{around.format(comment)}</a><b>2</b>")
    expected = around.format(comment).strip("\n").removesuffix("\n    ")
    args = one(document)
    assert str(args["a"]).strip() == expected.strip()
    assert args["b"] == "2"
    assert codes(document) == []
    assert document.comments == []
    value = document.calls[0].params[0].value
    at = value.text(document.text).index(comment)
    assert document.text[slice(*value.source_span(at, at + len(comment)))] == comment


@pytest.mark.parametrize("comment", COMMENTS)
@pytest.mark.parametrize("around", ["x{}", "{}x", "x {} y", "<![CDATA[x]]>{}", "{}<![CDATA[ x ]]>", "<i>x</i>{} y"])
def test_a_comment_beside_any_other_text_is_part_of_the_value(comment: str, around: str) -> None:  # ruling 17
    args = one(read(f"<a>{around.format(comment)}</a>", known=False))
    shown = around.replace("<![CDATA[", "").replace("]]>", "").format(comment)
    assert args == {"a": shown}


def test_an_entity_beside_a_comment_is_decoded_and_one_inside_it_is_not() -> None:  # rulings 16 and 17
    assert one(read("<a>&lt;<!-- &lt; -->&amp;</a>")) == {"a": "<<!-- &lt; -->&"}


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("<l><!-- c --><item>1</item></l>", ["1"]),
        ("<l><item>1</item><!-- c --></l>", ["1"]),
        ("<o><!-- c --><k>1</k></o>", {"k": "1"}),
        ("<n><!-- c --></n>", ""),
    ],
)
def test_a_comment_elsewhere_in_a_value_is_left_out_with_a_warning(body: str, value: Json) -> None:  # ruling 17
    document = read(body)
    assert one(document) == {body[1]: value}
    assert codes(document) == ["AX127"]
    [diag] = document.diagnostics
    assert severity(diag) == "warning"
    assert document.text[slice(*diag.span)] == "<!-- c -->"
    assert [comment.text for comment in document.comments] == ["c"]
    assert document.calls[0].repairs == []


def test_comments_between_parameters_are_ignored() -> None:  # ruling 17
    for text in (
        "<ACTION><!-- 1 --><T><!-- 2 --><a>x</a><!-- 3 --></T><!-- 4 --></ACTION>",
        '<ACTION><!-- 1 --><tool_id>T</tool_id><!-- 2 --><inputs><!-- 3 --><input name="a">x</input></inputs><!-- 4 --></ACTION>',
    ):
        document = read_text(text, options=ReadOptions(tools=TOOLS))
        assert one(document) == {"a": "x"}
        assert codes(document) == []
        assert [comment.text for comment in document.comments] == ["1", "2", "3", "4"]


@given(
    st.lists(
        st.sampled_from(["<!-- c -->", "<!---->", "text", " ", "\n", "<i>", "&amp;", "<![CDATA[", "]]>"]), max_size=5
    )
)
def test_a_text_with_comments_is_written_and_read_back_equal(parts: list[str]) -> None:  # rulings 16 and 17, P1
    value = "".join(parts)
    for name in ("action", "tam", "vcp"):
        protocol = find_protocol(name)
        assert protocol is not None
        written = protocol.write_calls([PlainCall("T", {"a": value})], WriteOptions(tools=TOOLS))
        assert written.text
        document = read_text(written.text, name, ReadOptions(tools=TOOLS))
        assert [call.tool_id for call in document.calls if call.executable] == ["T"]
        if not document.calls[0].type_hints:
            assert one(document) == {"a": value}


# --- ruling 52 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "known", "args"),
    [
        ("<a>1<b>2</b>", False, {"a": "1", "b": "2"}),
        ("<a>1<b>2", True, {"a": "1", "b": "2"}),
        ("<a>1 <b>2", True, {"a": "1", "b": "2"}),
        ("<a>1<b>2<n>3</n>", True, {"a": "1", "b": "2", "n": "3"}),
        ("<x>1</x><y>2</y></T><T><y>3<x>4", False, None),
    ],
)
def test_the_opener_of_a_named_parameter_ends_an_unclosed_one_on_its_line(
    body: str, known: bool, args: dict[str, Json] | None
) -> None:  # ruling 52
    document = read(body, known=known)
    if args is None:
        assert [found for _, found in runnable(document)] == [{"x": "1", "y": "2"}, {"y": "3", "x": "4"}]
    else:
        assert one(document) == args
    assert "AX102" in codes(document)


def test_an_opener_that_nothing_names_stays_text() -> None:
    assert one(read("<a>1<em>2<n>3</n>"))["a"] == "1<em>2"


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    "body",
    [
        "<a></a></a>",
        "<a> </a></a>",
        "<a>\n</a>\n</a>",
        "<a><a></a></a>",
        "<a><a/></a>",
        "<a> <a> </a> </a>",
        "<n><n></n></n>",
    ],
)
def test_a_value_of_nothing_but_its_own_tags_is_an_error_and_not_empty(body: str, known: bool) -> None:  # ruling 52
    document = read(body, known=known)
    assert runnable(document) == []
    assert {"AX105", "AX128"} & set(codes(document))
    inputs = body.replace("<a>", '<input name="a">', 1).replace("<a", '<input name="a"').replace("</a", "</input")
    text = f"<ACTION><tool_id>T</tool_id><inputs>{inputs}</inputs></ACTION>"
    assert "n" in body or runnable(read_text(text, options=ReadOptions(tools=TOOLS if known else {}))) == []


def test_an_object_with_a_property_of_its_own_name_may_be_empty() -> None:
    assert one(read("<o><o></o></o>")) == {"o": {"o": ""}}


# --- ruling 56 ----------------------------------------------------------------------------------------------------


def tam(*lines: str) -> Document:
    text = "\n".join(["<|[REQUEST_TOOL]|>", *lines, "<|[END_TOOL]|>"])
    return read_text(text, options=ReadOptions(tools=TOOLS))


@pytest.mark.parametrize("before", ["", "»", "»»", "»»»", "»»»»"])
@pytest.mark.parametrize("after", ["", "«", "««", "«««", "««««"])
@pytest.mark.parametrize("value", ["x", "", "«x»", "a » b « c"])
def test_of_a_longer_run_the_outer_three_are_the_delimiter(before: str, value: str, after: str) -> None:  # ruling 56
    document = tam("command:»»»T«««", f"a:»»»{before}{value}{after}«««", "b:»»»2«««")
    written = before + value + after
    if not value or "»»»" in written[len(before) :] or runnable(document) == []:
        # A value of delimiters alone may have two readings; it never runs changed.
        assert runnable(document) in ([], [("T", {"a": written, "b": "2"})])
        return
    assert runnable(document) == [("T", {"a": written, "b": "2"})]
    assert codes(document) == []
    [param] = [param for param in document.calls[0].params if param.name == "a"]
    assert document.text[slice(*param.value.span)] == written


@pytest.mark.parametrize(("head", "tail"), [("»", ""), ("", "«"), ("»", "«"), ("»»»", "«««")])
def test_a_value_between_longer_runs_runs_byte_for_byte(head: str, tail: str) -> None:  # ruling 56
    document = tam("command:»»»T«««", f"a:»»»{head}x{tail}«««")
    assert runnable(document) == [("T", {"a": f"{head}x{tail}"})]
    check_stream(document.text)


def test_in_a_command_the_whole_run_is_the_delimiter() -> None:  # ruling 56
    for key in ("command", "command_1", "Command 1"):
        document = tam(f"{key}:»»»»»T««««", "a:»»»x«««")
        assert [tool for tool, _ in runnable(document)] == ["T"], key
        assert "TM212" in codes(document)


def test_where_every_field_has_the_same_longer_run_the_run_is_the_delimiter() -> None:  # ruling 56
    document = tam("command:»»»»T««««", "a:»»»»x««««", "b:»»»»y««««")
    assert runnable(document) == [("T", {"a": "x", "b": "y"})]
    assert codes(document) == ["TM212"] * 3
    assert all(severity(diag) == "warning" for diag in document.diagnostics)
    document = tam("command:»»»»T««««", "a:»»»»x««««", "b:»»»»»y«««««")
    assert runnable(document) == [("T", {"a": "»x«", "b": "»»y««"})]


@pytest.mark.parametrize("value", ["»x", "x«", "»»»x", "x«««", "»»»x«««", "«»", "»", "«", "»»»»", "««««"])
def test_a_value_with_delimiters_at_its_ends_is_written_and_read_back_equal(value: str) -> None:  # ruling 56, P1
    protocol = find_protocol("tam")
    assert protocol is not None
    written = protocol.write_calls([PlainCall("T", {"a": value})], WriteOptions(tools=TOOLS))
    document = read_text(written.text, "tam", ReadOptions(tools=TOOLS))
    [call] = document.calls
    assert call.executable
    if not call.type_hints:
        assert call.args(document.text) == {"a": value}


def test_a_shared_parameter_goes_to_the_steps_whose_tool_declares_it() -> None:  # T1, ruling 56
    document = tam("common_x:»»»1«««", "command_1:»»»T«««", "command_2:»»»U«««", "command_3:»»»Unknown«««")
    assert runnable(document) == [("T", {}), ("U", {"x": "1"}), ("Unknown", {"x": "1"})]
    [diag] = [diag for diag in document.diagnostics if diag.code == "TM248"]
    assert severity(diag) == "hint"
    assert document.text[slice(*diag.span)] == "common_x"
    assert "did you mean" not in message(diag)


def test_a_shared_parameter_that_no_step_declares_has_a_suggestion() -> None:  # rulings 3 56
    tools = {"S": ToolHint("S", {"type": "object", "properties": {"path": {"type": "string"}}})}
    text = "<|[REQUEST_TOOL]|>\ncommon_pth:»»»1«««\ncommand_1:»»»S«««\n<|[END_TOOL]|>"
    document = read_text(text, options=ReadOptions(tools=tools))
    [diag] = [diag for diag in document.diagnostics if diag.code == "TM248"]
    assert message(diag).endswith("does not declare pth, did you mean 'common_path'?")


# --- ruling 13, and bounds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tool=Name", "function=T", "a=b=c".replace("=c", "")])
def test_an_equals_sign_behind_the_first_word_belongs_to_the_name(name: str) -> None:  # ruling 13
    text = f'<ACTION><{name}><p=x>1</p=x></{name}><{name} q="2"/></ACTION>'
    document = read_text(text)
    assert runnable(document) == [(name, {"p=x": "1"}), (name, {"q": "2"})]
    assert [text[slice(*call.tool_span)] for call in document.calls] == [name, name]
    assert text[slice(*document.calls[0].params[0].name_span)] == "p=x"


def test_an_equals_sign_before_a_quote_or_behind_a_blank_is_an_attribute() -> None:  # ruling 13
    document = read_text(
        '<ACTION><tool_id>T</tool_id><inputs><input="a">1</input><input =b>2</input></inputs></ACTION>'
    )
    assert runnable(document) == [("T", {"a": "1", "b": "2"})]
    assert runnable(read_text("<ACTION><T a=1/></ACTION>")) == [("T", {"a": "1"})]


@pytest.mark.parametrize("size", [257, 10_000, 5_000_000])
def test_a_tool_id_beyond_the_bound_is_a_located_error(size: int) -> None:  # A16, ruling 10
    text = f"<ACTION><tool_id>{'x' * size}</tool_id><inputs/></ACTION>"
    document = read_text(text)
    assert codes(document) == ["TC022"]
    assert document.diagnostics[0].span == (17, 17 + size)
    assert [(len(call.tool_id), call.executable) for call in document.calls] == [(256, False)]


def test_a_tool_id_at_the_bound_runs() -> None:
    assert runnable(read_text(f"<ACTION><tool_id>{'x' * 256}</tool_id><inputs/></ACTION>")) == [("x" * 256, {})]


# --- ruling 28 ----------------------------------------------------------------------------------------------------

EXAMPLE = "<<<[TOOL_REQUEST_EXP]>>>\ntool_name:「始」T「末」,\na:「始」1「末」\n<<<[END_TOOL_REQUEST_EXP]>>>"


@pytest.mark.parametrize(
    "text",
    [
        EXAMPLE,
        EXAMPLE.replace("「始」", "「始exp」").replace("「末」", "「末exp」"),
        EXAMPLE.replace("<<<", "<<").replace(">>>", ">>"),
        EXAMPLE.lower(),
        EXAMPLE.replace("_EXP", " exp"),
        EXAMPLE.replace("END_TOOL_REQUEST_EXP", "END_TOOL_REQUEST"),
        EXAMPLE.replace("a:", "a："),
        EXAMPLE.removesuffix("<<<[END_TOOL_REQUEST_EXP]>>>"),
    ],
)
def test_a_block_in_the_spelling_for_examples_is_shown_with_a_hint_and_never_runs(text: str) -> None:  # ruling 28
    for options in (ReadOptions(), ReadOptions(fenced_calls="run", reasoning_calls="run"), ReadOptions(strict=True)):
        document = read_text(f"Look:\n{text}\n", options=options)
        assert runnable(document) == []
        assert "VC328" in codes(document)
        assert {severity(diag) for diag in document.diagnostics if diag.code != "TC003"} == {"hint"}
    check_stream(text)


@pytest.mark.parametrize("size", [1, 9, 500])
def test_a_block_in_the_spelling_for_examples_is_set_aside_and_is_text(size: int) -> None:
    """Rulings 28, 44, 54: it is text of the answer, in a stream too, and the model is told how a request is written."""
    text = f"Look:\n{EXAMPLE}\nThat is it."
    document = read_text(text)
    (block,) = document.blocks
    assert (block.aside, block.context, block.state) == (True, "spelling", "complete")
    assert document.response_span == (0, len(text))
    reader = StreamReader()
    shown = "".join(reader.feed(text[at : at + size]).text for at in range(0, len(text), size))
    assert reader.close() == document
    assert shown + reader.rest.text == text
    (note,) = notes_of(document)
    assert (note.kind, note.code) == ("setAside", "VC328")
    assert "This call was not run" in note.text and "without EXP" in note.text


def test_a_block_for_examples_can_be_made_live() -> None:  # rulings 28, 44
    for text in (EXAMPLE, EXAMPLE.lower(), EXAMPLE.replace("_EXP", " exp"), f"Look:\n{EXAMPLE}\nThat is it."):
        document = read_text(text)
        fix = made_live(document, document.blocks[0], read_text)
        assert fix is not None and fix.applicability == "unsafe"
        assert len(runnable(read_text(apply_edits(text, fix.edits)))) == 1


def test_a_block_for_examples_in_reasoning_is_told_as_reasoning() -> None:  # rulings 5, 28
    document = read_text(f"<think>\n{EXAMPLE}\n</think>\n{EXAMPLE}")
    assert [(block.aside, block.context) for block in document.blocks] == [(True, "reasoning"), (True, "spelling")]


def test_a_good_block_behind_one_for_examples_runs() -> None:  # rulings 28 and 44
    good = EXAMPLE.replace("_EXP", "").replace("「始」T", "「始」U")
    assert [tool for tool, _ in runnable(read_text(f"{EXAMPLE}\n{good}"))] == ["U"]


@pytest.mark.parametrize(
    "marker",
    [
        *(
            "<<<[END_TOOL_REQUEST]>>>",
            "<<[END_TOOL_REQUEST]>>",
            "《《《[END_TOOL_REQUEST]》》》",
            "<<<[TOOL_REQUEST]>>>",
        ),
        *("<<<[TOOL_REQUEST_EXP]>>>", "<<<[end tool request]>>>", "<<<[TOOL_RESULT]>>>", "<|[END_TOOL]|>", "</ACTION>"),
        *("<ACTION>", "<tool_call>", "<<<[END_TOOL_REQUEST]>>>\n<<<[TOOL_REQUEST]>>>", "<<<[END_TOOL_REQUEST]>>>" * 3),
    ],
)
def test_any_marker_inside_a_closed_vcp_value_is_text(marker: str) -> None:  # ruling 28
    value = f"see\n{marker}\nthere"
    text = f"<<<[TOOL_REQUEST]>>>\ntool_name:「始」T「末」,\na:「始」{value}「末」,\nb:「始」2「末」\n<<<[END_TOOL_REQUEST]>>>"
    document = read_text(text)
    assert runnable(document) == [("T", {"a": value, "b": "2"})]
    assert [block.span for block in document.blocks] == [(0, len(text))]
    # Without the block's own marker behind the value nothing closes the block (ruling 29).
    assert runnable(read_text(text.removesuffix("<<<[END_TOOL_REQUEST]>>>"))) == []


PAGE = Path(__file__).parents[2] / "docs" / "protocols.md"
RULES = [
    ("The line of the opening tag and the line of the closing tag go with their tags", "action", "<ACTION><t><a>\n  x\n\n y\n  </a></t></ACTION>", "  x\n\n y"),
    ("Every other blank and line break stays", "action", "<ACTION><t><a> x \r\n y </a></t></ACTION>", " x \r\n y "),
    ("less one line break at its start, and less the last line break with its indentation", "action", "<ACTION><t><a><![CDATA[\n\n-a\n+b &amp;\n  ]]></a></t></ACTION>", "\n-a\n+b &amp;"),
    ("the indentation of the key's own line is taken from the lines that follow, and both ends are trimmed", "tam", "<|[REQUEST_TOOL]|>\ncommand:»»»t«««\n  a:»»» x\n    y\n  z «««\n<|[END_TOOL]|>", "x\n  y\nz"),
    ("what stands between the marks, byte for byte", "vcp", "<<<[TOOL_REQUEST]>>>\ntool_name:「始」t「末」,\na:「始」\n x \n「末」\n<<<[END_TOOL_REQUEST]>>>", "\n x \n"),
]  # fmt: skip
"""What the page says of blanks and line breaks, and a text that shows it."""


@pytest.mark.parametrize(("said", "protocol", "text", "value"), RULES)
def test_the_rule_of_blanks_and_line_breaks_holds_as_its_page_says(
    said: str, protocol: str, text: str, value: str
) -> None:  # A58, seed 000 §3.2
    section = PAGE.read_text("utf-8").partition("## What a value is")[2].partition("\n## ")[0]
    assert said in section
    (call,) = read_text(text, protocol).calls
    assert call.args(text) == {"a": value}
