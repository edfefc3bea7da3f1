"""The canonical spelling of each protocol, and which sentence refuses what it cannot carry."""

from __future__ import annotations

import pytest

from tamis.protocols.base import PlainCall, Shape
from tamis.protocols.catalogue import message
from tamis.protocols.check import check_call
from tamis.protocols.model import Diag, Json, ToolHint
from tamis.protocols.schema.plan import compile_plan
from tests.protocols.writer_helpers import plain_args, read, write

TAG: tuple[str, Shape] = ("action", "tag")
INPUTS: tuple[str, Shape] = ("action", "inputs")
TAM: tuple[str, Shape] = ("tam", "tag")
VCP: tuple[str, Shape] = ("vcp", "tag")


def sentences(calls: list[PlainCall], form: tuple[str, Shape]) -> list[str]:
    written = write(calls, form)
    return [message(Diag(one.code, (0, 0), one.args)) for one in written.refusals]


def test_action_by_tag_has_one_element_per_line() -> None:  # seed 000 §3.1
    calls = [PlainCall("core:a", {"path": "x.py", "diff": "-a\n+b", "files": ["1", "2"]}), PlainCall("b", {})]
    assert write(calls, TAG).text == (
        "<ACTION>\n"
        "  <core:a>\n"
        "    <path>x.py</path>\n"
        "    <diff><![CDATA[-a\n+b]]></diff>\n"
        "    <files>\n"
        "      <item>1</item>\n"
        "      <item>2</item>\n"
        "    </files>\n"
        "  </core:a>\n"
        "  <b></b>\n"
        "</ACTION>"
    )


def test_action_with_inputs_carries_any_name() -> None:  # seed 003 §3.1
    calls = [PlainCall("w/x.json", {"a b": '{"x": 1}', 'q"<': "v"})]
    assert write(calls, INPUTS).text == (
        "<ACTION>\n"
        "  <tool_id>w/x.json</tool_id>\n"
        "  <inputs>\n"
        '    <input name="a b">{"x": 1}</input>\n'
        '    <input name="q&quot;&lt;">v</input>\n'
        "  </inputs>\n"
        "</ACTION>"
    )


def test_tam_numbers_steps_only_where_it_has_to() -> None:  # seed 002 §5
    one = PlainCall("File.Write", {"file_path": "a", "content": "x\ny"})
    assert write([one], TAM).text == (
        "<|[REQUEST_TOOL]|>\ncommand:»»»File.Write«««\nfile_path:»»»a«««\ncontent:»»»x\ny«««\n<|[END_TOOL]|>"
    )
    assert write([PlainCall("T", {"x1": "v"})], TAM).text == (
        "<|[REQUEST_TOOL]|>\ncommand_1:»»»T«««\nx1_1:»»»v«««\n<|[END_TOOL]|>"
    )


def test_tam_writes_every_modifier_of_a_step() -> None:  # seed 002 §4
    calls = [
        PlainCall("a", {"n": {"k": 1}}, step=1, on_error="continue", retry=2, request_id="r", uris={"out": "fam://x"}),
        PlainCall("b", {"x": "1"}, step=3, request_id="r", type_hints={"x": "base64"}),
    ]
    text = write(calls, TAM).text
    assert text == (
        "<|[REQUEST_TOOL]|>\nrequest_id:»»»r«««\ncommand_1:»»»a«««\non_error_1:»»»continue«««\nretry_1:»»»2«««\n"
        'type_hint_n_1:»»»json«««\nn_1:»»»{"k": 1}«««\nuri_out_1:»»»fam://x«««\n'
        "command_3:»»»b«««\ntype_hint_x_3:»»»base64«««\nx_3:»»»1«««\n<|[END_TOOL]|>"
    )
    assert [(call.step, call.request_id) for call in read(text, TAM).calls] == [(1, "r"), (3, "r")]


def test_steps_that_start_again_and_other_request_ids_make_blocks_of_their_own() -> None:
    calls = [PlainCall("a", step=1), PlainCall("b", step=1), PlainCall("c", request_id="r")]
    document = read(write(calls, TAM).text, TAM)
    assert [(len(block.calls), block.calls[0].step) for block in document.blocks] == [(1, 1)] * 3


@pytest.mark.parametrize("name", ["command", "command_1", "on_error", "retry", "type_hint_x", "uri_x", "common_x"])
def test_words_of_tam_are_shared_parameters_of_a_block_with_one_step(name: str) -> None:  # rt-079, rt-085
    calls = [PlainCall("T", {name: " v ", "x": "1"}), PlainCall("U", {"x": "2"})]
    written = write(calls, TAM)
    document = read(written.text, TAM)
    assert not written.refusals
    assert [plain_args(call, document.text) for call in document.calls] == [{name: " v ", "x": "1"}, {"x": "2"}]


def test_a_name_that_tam_spells_otherwise_needs_the_schema() -> None:  # rt-071, ruling 20
    calls = [PlainCall("T", {"filePath": "v"})]
    assert sentences(calls, TAM) == ["TAM would turn parameter filePath into file_path"]
    tools = {"T": ToolHint("T", {"type": "object", "properties": {"filePath": {"type": "string"}}})}
    written = write(calls, TAM, tools)
    assert "\nfile_path:»»»v«««\n" in written.text
    assert read(written.text, TAM, tools).calls[0].args(written.text) == {"filePath": "v"}


def test_vcp_has_a_block_per_call_and_escape_marks_only_where_needed() -> None:  # seed 001 §4.2, ruling 28
    calls = [
        PlainCall("a", {"x": " 1 ", "y": "「末」"}, meta={"archery": "no_reply"}),
        PlainCall("b", {"z": [1, "「末」"]}),
    ]
    assert write(calls, VCP).text == (
        "<<<[TOOL_REQUEST]>>>\ntool_name:「始」a「末」,\nx:「始」 1 「末」,\ny:「始ESCAPE」「末」「末ESCAPE」,\n"
        "archery:「始」no_reply「末」\n<<<[END_TOOL_REQUEST]>>>\n"
        '<<<[TOOL_REQUEST]>>>\ntool_name:「始」b「末」,\nz:「始」[1, "\\u300c末」"]「末」\n<<<[END_TOOL_REQUEST]>>>'
    )


@pytest.mark.parametrize(
    ("form", "call", "sentence"),
    [
        (TAG, PlainCall("3d", {}), "it is no tag name; the shape with <inputs> carries it"),
        (TAG, PlainCall("T", {"inputs": "x"}), "the protocol uses that tag itself"),
        (TAG, PlainCall("T", {"x": "\x01"}), "XML has no way to write U+0001"),
        (
            TAG,
            PlainCall("T", {}, on_error="stop"),
            "onError cannot be written in ACTION by tag: it has no place for that",
        ),
        (TAG, PlainCall("T", {}, uris={"x": "fam://a"}), "uris of x cannot be written"),
        (INPUTS, PlainCall("T", {" a": "x"}), "blanks around a name are no part of it"),
        (INPUTS, PlainCall("T", {"a\nb": "x"}), "its name holds a line break or a control character"),
        (INPUTS, PlainCall("T", {"a\x01b": "x"}), "its name holds a line break or a control character"),
        (TAM, PlainCall("T", {"x": " 1"}, type_hints={"x": "text"}), "TAM would trim or cut it"),
        (TAM, PlainCall("T", {}, retry=-1), "it is a whole number from 0 to 999999999"),
        (TAM, PlainCall("T", {}, meta={"archery": "x"}), "meta of archery cannot be written in TAM"),
        (VCP, PlainCall("T", {"tool_name": "x"}), "that key names the tool"),
        (VCP, PlainCall("T", {"command1": "x"}), "a numbered command makes a batch of calls"),
        (VCP, PlainCall("T", {"river": "x"}), "the host reads that field for itself"),
        (VCP, PlainCall("T", {"x": "「始」「末ESCAPE」"}), "both the marks of a value and ESCAPE marks"),
        (VCP, PlainCall("T", {"城市": "x"}), "a key has only letters, digits, _ and -"),
        (VCP, PlainCall("", {}), "it is empty"),
    ],
    ids=str,
)
def test_what_cannot_be_carried_is_refused_with_its_reason(
    form: tuple[str, Shape], call: PlainCall, sentence: str
) -> None:  # TC050
    written = write([call, PlainCall("fine", {"x": "1"})], form)
    found = [message(Diag(one.code, (0, 0), one.args)) for one in written.refusals]
    assert any(sentence in one for one in found), found
    assert [call.tool_id for call in read(written.text, form).calls] == ["fine"]


@pytest.mark.parametrize("form", [TAG, INPUTS, TAM, VCP], ids=str)
def test_a_schema_that_would_read_a_text_otherwise_refuses_it(form: tuple[str, Shape]) -> None:  # ruling 2
    tools = {"T": ToolHint("T", {"type": "object", "properties": {"x": {"type": ["string", "null"]}}})}
    assert write([PlainCall("T", {"x": None})], form, tools).refusals == ()
    refusal = write([PlainCall("T", {"x": "null"})], form, tools).refusals[0]
    assert refusal.args["why"] == "it would be read as null"


@pytest.mark.parametrize("form", [TAG, INPUTS, TAM, VCP], ids=str)
def test_raw_texts_stay_as_they_are_under_a_schema_that_types_them(form: tuple[str, Shape]) -> None:  # ruling 2
    tools = {"T": ToolHint("T", {"type": "object", "properties": {"n": {"type": "integer"}}})}
    for raw in ("5", "007", " 5", "many"):
        written = write([PlainCall("T", {"n": raw})], form, tools)
        document = read(written.text, form, tools)
        assert plain_args(document.calls[0], document.text) == {"n": raw}


@pytest.mark.parametrize("form", [TAG, INPUTS, VCP], ids=str)
def test_without_a_schema_types_become_json_text(form: tuple[str, Shape]) -> None:
    values: dict[str, Json] = {"a": 5, "b": True, "c": None, "d": [1], "e": {}, "f": []}
    document = read(write([PlainCall("T", values)], form).text, form)
    assert document.calls[0].args(document.text) == {
        "a": "5",
        "b": "true",
        "c": "null",
        "d": "[1]",
        "e": "{}",
        "f": "[]",
    }


def test_tam_keeps_types_without_a_schema() -> None:  # T22
    values: dict[str, Json] = {"a": 5, "b": True, "c": None, "d": [1], "e": {}, "f": 1.5, "g": "5"}
    document = read(write([PlainCall("T", values)], TAM).text, TAM)
    assert plain_args(document.calls[0], document.text) == values


def test_json_text_is_read_without_a_word_about_drives_and_marks() -> None:  # F20
    args: dict[str, Json] = {"a": " C:\new", "b": " D:\temp\\n", "c": "«««\x7f", "d": "\ufeff <|[END_TOOL]|>»"}
    document = read(write([PlainCall("T", args)], TAM).text, TAM)
    checked = check_call(document.calls[0], document.text, compile_plan({}))
    assert (checked.coerced, checked.problems) == (args, [])


@pytest.mark.parametrize("form", [TAG, INPUTS, TAM, VCP], ids=str)
def test_no_calls_are_no_text(form: tuple[str, Shape]) -> None:
    assert (write([], form).text, write([], form).refusals) == ("", ())
