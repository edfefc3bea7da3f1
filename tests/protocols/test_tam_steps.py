"""TAM keys, steps, modifiers and shared parameters (seed 002 §2.3, §3 and §4, rulings 20 and 23 to 27)."""

from __future__ import annotations

import pytest

from tamis.protocols.catalogue import message
from tamis.protocols.model import ReadOptions, ToolHint
from tamis.protocols.tam.keys import parse_key
from tests.protocols.tam_vcp_blocks import block, call, codes, find, read, repaired, runs, tam, warnings

ONE = "command_1:»»»A.a«««"
TWO = "command_2:»»»B.b«««"


@pytest.mark.parametrize(
    ("raw", "normal"),
    [
        ("File-Path 1", "file_path_1"),
        ("filePath_1", "file_path_1"),
        ("File Path_1", "file_path_1"),
        ("  Query ", "query"),
        ("a--b", "a_b"),
        ("CONTENT1", "content1"),
        ("HTTPServer", "http_server"),
        ("base64", "base64"),
        ("文件-路径", "文件_路径"),
        ("---", ""),
    ],
)
# T08, T09
def test_ruling_20_keys_are_normalised(raw: str, normal: str) -> None:
    assert parse_key(raw).normal == normal


# T10
def test_a_number_glued_to_the_word_is_a_step_when_that_command_exists() -> None:
    assert runs(tam("Command_1:»»»A.a«««", "CONTENT1:»»»v«««")) == [("A.a", {"content": "v"})]
    assert runs(tam("command:»»»A.a«««", "CONTENT1:»»»v«««")) == [("A.a", {"content": "v"})]


def test_ruling_20_a_glued_number_without_such_a_step_belongs_to_the_name() -> None:
    text = tam("command:»»»A.a«««", "base64:»»»b«««", "bm25:»»»c«««", "utf8:»»»d«««", "q_2:»»»e«««")
    assert runs(text) == [("A.a", {"base64": "b", "bm25": "c", "utf8": "d", "q_2": "e"})]
    assert warnings(text) == []


def test_ruling_20_a_separated_number_names_a_missing_step_when_a_command_is_numbered() -> None:
    text = tam(ONE, "p_1:»»»1«««", "q_2:»»»x«««")
    assert runs(text) == [("A.a", {"p": "1"})]
    assert warnings(text) == ["TM230"]


def test_ruling_20_a_declared_name_wins_over_the_number_and_gives_its_spelling() -> None:
    hint = ToolHint("A.a", {"properties": {"scriptPath": {}, "x1": {}, "uri_list": {}, "comment": {}, "line": {}}})
    options = ReadOptions(tools={"A.a": hint})
    text = tam(
        "command:»»»A.a«««",
        "script_path:»»»1«««",
        "x1:»»»2«««",
        "uri_list:»»»3«««",
        "comment:»»»4«««",
        "line1:»»»5«««",
    )
    found = call(text, options=options)
    assert found.args(text) == {"scriptPath": "1", "x1": "2", "uri_list": "3", "comment": "4", "line": "5"}
    assert found.uris == {}


# T11, T12, T13
def test_parameters_follow_their_step_and_steps_run_in_numeric_order() -> None:
    text = tam("command_10:»»»D.d«««", "p_10:»»»3«««", TWO, "p_2:»»»2«««", ONE, "p_1:»»»1«««")
    assert [(found.step, found.tool_id, found.args(text)) for found in read(text).calls] == [
        (1, "A.a", {"p": "1"}),
        (2, "B.b", {"p": "2"}),
        (10, "D.d", {"p": "3"}),
    ]
    assert warnings(text) == []
    assert "TM233" in codes(text)


# T33
def test_a_lone_command_is_step_1() -> None:
    assert call(tam("command:»»»A.a«««")).step == 1


# T26
def test_ruling_23_a_parameter_without_number_belongs_to_the_only_step() -> None:
    text = tam("command_3:»»»A.a«««", "p:»»»1«««")
    assert runs(text) == [("A.a", {"p": "1"})]
    assert warnings(text) == ["TM231"]
    assert "p_3:»»»" in repaired(text)


# T26
def test_ruling_23_with_several_steps_it_is_an_error_that_proposes_common() -> None:
    text = tam(ONE, TWO, "p:»»»1«««")
    assert runs(text) == []
    diag = find(text, "TM231")
    assert diag.fix is not None
    assert diag.fix.edits[0].new_text == "common_p"
    assert (
        message(diag)
        == "p has no step number; the block has several: write common_p for all of them, or p_N for step N"
    )


# T17
def test_uri_fields_stand_apart_from_the_arguments() -> None:
    text = tam(ONE, "uri_image_1:»»»fam://project-data/images/input.png«««")
    found = call(text)
    assert found.args(text) == {}
    assert found.uris == {"image": "fam://project-data/images/input.png"}


def test_a_uri_beside_a_value_is_dropped_with_a_warning() -> None:
    text = tam(ONE, "image_1:»»»x«««", "uri_image_1:»»»fam://y«««")
    assert (call(text).uris, call(text).args(text)) == ({}, {"image": "x"})
    assert warnings(text) == ["TM244"]
    assert warnings(tam(ONE, "uri_image_1:»»»no uri«««")) == ["TM245"]


@pytest.mark.parametrize(
    ("value", "read_as", "warned"),
    [("stop", "stop", []), ("continue", "continue", []), ("Continue", "stop", ["TM240"]), ("skip", "stop", ["TM240"])],
)
# T20
def test_ruling_24_on_error_is_stop_or_continue(value: str, read_as: str, warned: list[str]) -> None:
    text = tam(ONE, f"on_error_1:»»»{value}«««")
    assert call(text).on_error == read_as
    assert warnings(text) == warned
    if warned:
        assert text[slice(*find(text, "TM240").span)] == value


@pytest.mark.parametrize(
    ("value", "read_as", "warned"),
    [("3", 3, []), (" 0 ", 0, []), ("-1", 0, ["TM241"]), ("many", 0, ["TM241"]), ("1.5", 0, ["TM241"])],
)
# T21
def test_ruling_24_retry_is_a_whole_number(value: str, read_as: int, warned: list[str]) -> None:
    text = tam(ONE, f"retry_1:»»»{value}«««")
    assert call(text).retry == read_as
    assert warnings(text) == warned


# T22
def test_type_hints_are_listed_and_not_applied() -> None:
    text = tam(ONE, "type_hint_payload_1:»»»json«««", 'payload_1:»»»{"a": 1}«««')
    assert call(text).type_hints == {"payload": "json"}
    assert call(text).args(text) == {"payload": '{"a": 1}'}
    assert warnings(tam(ONE, "type_hint_p_1:»»»yaml«««", "p_1:»»»x«««")) == ["TM242"]
    assert warnings(tam(ONE, "type_hint_p_1:»»»json«««")) == ["TM243"]


# T23
def test_common_parameters_reach_every_step_and_a_step_wins() -> None:
    text = tam("common_k:»»»shared«««", TWO, ONE, "k_2:»»»own«««")
    one, two = read(text).calls
    assert one.args(text) == {"k": "shared"}
    assert [param.origin for param in one.params] == ["common"]
    assert two.args(text) == {"k": "own"}
    assert warnings(text) == []
    assert "TM246" in codes(text)


# T24, T25
def test_request_id_belongs_to_the_block_and_comment_to_nobody() -> None:
    text = tam("request_id:»»»r-1«««", "comment:»»»note«««", ONE, TWO)
    assert [(found.request_id, found.args(text)) for found in read(text).calls] == [("r-1", {}), ("r-1", {})]


def test_ruling_27_of_equal_keys_the_last_wins() -> None:
    text = tam("command:»»»A.a«««", "filePath:»»»1«««", "file_path:»»»2«««", "file_path:»»»3«««")
    assert runs(text) == [("A.a", {"file_path": "3"})]
    assert warnings(text) == ["TM223", "TC060"]


def test_ruling_27_a_command_given_twice_is_an_error() -> None:
    assert runs(tam(ONE, "command_1:»»»B.b«««")) == []
    assert warnings(tam("command:»»»A.a«««", "command:»»»B.b«««")) == ["TM203"]
    assert warnings(tam("command:»»»A.a«««", ONE)) == ["TM204", "TM203"]


def test_a_step_number_in_another_form_is_a_repair() -> None:
    text = tam("command_01:»»»A.a«««", "p_01:»»»v«««")
    assert runs(text) == [("A.a", {"p": "v"})]
    assert warnings(text) == ["TM234", "TM234"]
    assert warnings(repaired(text)) == []


def test_a_key_without_letters_or_without_anything_is_dropped() -> None:
    assert (runs(tam(ONE, "---:»»»v«««")), warnings(tam(ONE, "---:»»»v«««"))) == ([("A.a", {})], ["TM224"])
    assert (runs(tam(ONE, ":»»»v«««")), warnings(tam(ONE, ":»»»v«««"))) == ([("A.a", {})], ["TC061"])


# T30
def test_an_unknown_variable_gets_a_hint_and_a_shared_parameter_none() -> None:
    assert "TM247" in codes(tam(ONE, "p_1:»»»@{timestamp}«««"))
    assert "TM247" not in codes(tam("common_dir:»»»d«««", ONE, "p_1:»»»@{common_dir}«««"))


def test_spans_cover_the_tool_id_the_key_the_value_and_each_steps_own_fields() -> None:
    text = tam("common_k:»»»z«««", "command_1:»»» A.a «««", "p_1:»»»1«««", TWO, "p_2:»»»2«««")
    one, two = read(text).calls
    assert text[slice(*one.tool_span)] == "A.a"
    assert text[slice(*one.span)] == "command_1:»»» A.a «««\np_1:»»»1«««"
    assert text[slice(*two.span)] == "command_2:»»»B.b«««\np_2:»»»2«««"
    param = one.params[0]
    assert (text[slice(*param.span)], text[slice(*param.name_span)], text[slice(*param.value.span)]) == (
        "p_1:»»»1«««",
        "p_1",
        "1",
    )


def test_repairs_stand_with_the_call_that_they_touch() -> None:
    text = tam(ONE, "p_1:>>>1<<<", TWO, "p_2:»»»2«««")
    one, two = read(text).calls
    assert [diag.code for diag in one.repairs] == ["TM210"]
    assert two.repairs == []


def test_limits_on_parameters_and_steps_reject_the_block() -> None:
    many = tam("command:»»»A.a«««", *(f"p{i}x:»»»v«««" for i in range(10_001)))
    assert [diag.code for diag in block(many).diagnostics if diag.code == "TC022"] == ["TC022"]
    assert runs(many) == []
    steps = tam(*(f"command_{i}:»»»A.a«««" for i in range(1_001)))
    assert "TC022" in warnings(steps)


def test_what_the_rules_allow_gets_a_hint_at_most() -> None:
    # TM222, TM225, TM226, TM232 (ruling 1: key normalisation, dedent, separators, a lone command as step 1)
    text = tam("command:»»»A.a«««,", "  filePath1:»»»a", "  b«««")
    assert runs(text) == [("A.a", {"file_path": "a\nb"})]
    assert warnings(text) == []
    assert set(codes(text)) == {"TM222", "TM225", "TM226", "TM232"}
