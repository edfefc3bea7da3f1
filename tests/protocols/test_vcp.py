"""VCP blocks (seed 001 §4 and §7.3, rulings 27 to 30)."""

from __future__ import annotations

import pytest

from tamis.protocols.catalogue import severity
from tamis.protocols.model import ReadOptions, ToolHint
from tests.protocols.tam_vcp_blocks import block, call, codes, find, read, repaired, runs, vcp, warnings

NAME = "tool_name:「始」A_b「末」,"
GOOD = vcp(NAME, "x:「始」1「末」")


# V20, V24, V25
def test_a_request_gives_its_tool_its_arguments_and_its_exact_block() -> None:
    text = f"好的。\n{GOOD}\n完成"
    found = call(text)
    assert found.tool_id == "A_b"
    assert found.args(text) == {"x": "1"}
    assert text[slice(*block(text).span)] == GOOD
    assert codes(text) == []
    assert text[slice(*found.tool_span)] == "A_b"


# V36, F26
def test_several_requests_keep_their_order_and_repeats_stay() -> None:
    text = f"{GOOD}\n{vcp('tool_name:「始」C「末」')}\n{GOOD}"
    assert [tool for tool, _ in runs(text)] == ["A_b", "C", "A_b"]


@pytest.mark.parametrize(
    "fields",
    [
        "tool_name:「始」A_b「末」,\nx:「始」1「末」,\ny:「始」2「末」,",
        "tool_name:「始」A_b「末」\nx:「始」1「末」\ny:「始」2「末」",
        "tool_name:「始」A_b「末」,x:「始」1「末」,y:「始」2「末」",
        "tool_name:「始」A_b「末」x:「始」1「末」 y:「始」2「末」",
        "tool_name:「始」A_b「末」，\nx:「始」1「末」；\ny:「始」2「末」、",
        "tool_name: 「始」A_b「末」\n\nx:\t「始」1「末」\n  y:\n「始」2「末」",
        "tool_name:「始」A_b「末」,\r\nx:「始」1「末」,\r\ny:「始」2「末」",
    ],
)
def test_ruling_28_fields_are_separated_by_commas_lines_or_nothing(fields: str) -> None:
    assert runs(vcp(fields)) == [("A_b", {"x": "1", "y": "2"})]
    assert set(codes(vcp(fields))) <= {"VC321"}


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("x:「始」1", "VC310"),
        ("x:「始」1,", "VC310"),
        ("x:1「末」", "VC311"),
        ("x:{始}1{末}", "VC312"),
        ("x:｢始｣1｢末｣", "VC312"),
        ("x:『始』1『末』", "VC312"),
        ("x:「始}1{末」", "VC312"),
        ("x:「 始 」1「 末 」", "VC312"),
        ("x:「START」1「END」", "VC312"),
        ("x:「始」1「未」", "VC312"),
        ("x:「始」「始」1「末」", "VC312"),
        ("x:「始」1「末", "VC312"),
        ("x:「始」1末」", "VC312"),
        ("x: 1", "VC313"),
        ("x:「末」1「始」", "VC314"),
        ("x：「始」1「末」", "VC320"),
        ("x = 「始」1「末」", "VC320"),
        ('"x":「始」1「末」', "VC324"),
        ("- x:「始」1「末」", "VC324"),
    ],
)
def test_ruling_28_a_bad_spelling_is_a_repair_whose_fix_makes_it_canonical(written: str, code: str) -> None:
    text = vcp(NAME, written, "y:「始」2「末」")
    found = call(text)
    assert found.args(text) == {"x": "1", "y": "2"}
    assert warnings(text) == [code]
    assert [diag.code for diag in found.repairs] == [code]
    assert warnings(repaired(text)) == []
    assert runs(repaired(text)) == runs(text)


@pytest.mark.parametrize(
    "opens",
    [
        "<<[TOOL_REQUEST]>>",
        "<<<<[TOOL_REQUEST]>>>>",
        "<<<[tool_request]>>>",
        "《《《[TOOL_REQUEST]》》》",
        "<<<TOOL_REQUEST>>>",
    ],
)
def test_ruling_28_markers_with_2_to_4_brackets_and_in_any_case_are_repairs(opens: str) -> None:
    text = GOOD.replace("<<<[TOOL_REQUEST]>>>", opens)
    assert runs(text) == [("A_b", {"x": "1"})]
    assert warnings(text) == ["TC004"]
    assert repaired(text) == GOOD


@pytest.mark.parametrize("opens", ["<[TOOL_REQUEST]>", "<<<<<[TOOL_REQUEST]>>>>>", "[TOOL_REQUEST]"])
def test_ruling_28_one_or_five_brackets_are_no_marker(opens: str) -> None:
    assert read(GOOD.replace("<<<[TOOL_REQUEST]>>>", opens)).blocks == []


# V37
def test_ruling_29_a_block_without_its_end_is_dropped_and_reading_goes_on() -> None:
    text = f"<<<[TOOL_REQUEST]>>>\n{NAME}\nsecret:「始」1「末」\n\n改用：\n{vcp('tool_name:「始」B「末」')}"
    assert runs(text) == [("B", {})]
    assert warnings(text) == ["VC301"]
    assert [found.tool_id for found in read(text).calls] == ["B"]


@pytest.mark.parametrize("closes", ["<<<[END_TOOL]>>>", "<|[END_TOOL]|>", "<<<[/TOOL_REQUEST]>>>"])
def test_ruling_29_a_wrong_end_marker_counts_as_missing(closes: str) -> None:
    text = GOOD.replace("<<<[END_TOOL_REQUEST]>>>", closes)
    assert runs(text) == []
    assert "VC301" in warnings(text)


# V38
def test_a_block_without_tool_name_is_dropped_with_a_warning() -> None:
    for text in (vcp("x:「始」1「末」"), vcp("tool:「始」A「末」"), vcp("name:「始」A「末」")):
        assert runs(text) == []
        assert warnings(text) == ["VC302"]
    assert warnings(vcp("tool_name:「始」 「末」")) == ["VC303"]


@pytest.mark.parametrize("key", ["Tool_Name", "tool-name", "toolName", "TOOL NAME"])
def test_ruling_29_tool_name_in_another_spelling_is_a_repair(key: str) -> None:
    text = vcp(f"{key}:「始」A「末」")
    assert runs(text) == [("A", {})]
    assert warnings(text) == ["VC322"]
    assert warnings(repaired(text)) == []


# V39
def test_of_equal_keys_the_last_wins_with_a_warning() -> None:
    text = vcp(NAME, "x:「始」1「末」", "x:「始」2「末」")
    assert runs(text) == [("A_b", {"x": "2"})]
    assert warnings(text) == ["TC060"]
    assert runs(vcp(NAME, "tool_name:「始」C「末」")) == [("C", {})]
    assert warnings(vcp(NAME, "tool_name:「始」C「末」")) == ["VC304"]


# V40, F3
def test_an_empty_value_is_an_empty_string_and_a_missing_one_is_not() -> None:
    assert runs(vcp(NAME, "x:「始」「末」")) == [("A_b", {"x": ""})]
    assert runs(vcp(NAME)) == [("A_b", {})]


# V41
def test_no_block_is_no_error() -> None:
    assert (runs("你好"), warnings("你好")) == ([], [])


@pytest.mark.parametrize(
    "value",
    [
        "<<<[END_TOOL_REQUEST]>>>",
        "<<<[TOOL_REQUEST]>>>",
        "a, b，c、d",
        "x:1, y:2",
        "他说「你好」，书名『红楼梦』",
        "写「始」这个字",
        "&lt;b&gt; &amp;&amp;",
        "if (a < b) && c",
        "  leading and trailing \n",
        "<think>x</think>",
    ],
)
# F5, F6, F13
def test_a_closed_value_is_kept_to_the_byte(value: str) -> None:
    text = vcp(NAME, f"x:「始」{value}「末」,", "y:「始」2「末」")
    assert runs(text) == [("A_b", {"x": value, "y": "2"})]
    assert warnings(text) == []


def test_ruling_28_escape_marks_hold_end_marks_and_end_markers() -> None:
    inner = "写「末」和\ny:「始」2「末」\n<<<[END_TOOL_REQUEST]>>>"
    text = vcp(NAME, f"x:「始ESCAPE」{inner}「末ESCAPE」,", "z:「始exp」a「末」b「末exp」")
    assert runs(text) == [("A_b", {"x": inner, "z": "a「末」b"})]
    assert warnings(text) == []
    assert codes(text) == ["VC316", "VC316"]


# F4: the whole value or a cut one; a call with either guess is worse than none
@pytest.mark.parametrize("value", ["他写「末」这个字", "「末」字", "a「末」b「末」c"])
def test_a_value_with_its_own_end_mark_is_ambiguous_and_runs_nothing(value: str) -> None:
    text = vcp(NAME, f"x:「始」{value}「末」,", "y:「始」2「末」")
    assert runs(text) == []
    assert [d.code for d in read(text).diagnostics if severity(d) == "error"] == ["VC315"]


# F4, ruling 28: the form that can hold the mark
def test_the_fix_for_a_value_with_its_own_end_mark_writes_escape_marks() -> None:
    text = vcp(NAME, "x:「始」他写「末」这个字「末」")
    diag = next(d for d in read(text).diagnostics if d.code == "VC315")
    assert diag.fix is not None
    assert diag.fix.applicability == "unsafe"
    fixed = text
    for edit in reversed(diag.fix.edits):
        fixed = fixed[: edit.start] + edit.new_text + fixed[edit.end :]
    assert runs(fixed) == [("A_b", {"x": "他写「末」这个字"})]


# F24
def test_a_trailing_digit_belongs_to_the_key_without_numbered_commands() -> None:
    assert runs(vcp(NAME, "BM25:「始」true「末」")) == [("A_b", {"BM25": "true"})]


# F24
def test_ruling_28_numbered_commands_make_a_batch() -> None:
    text = vcp(
        NAME,
        "command2:「始」b「末」",
        "path2:「始」q「末」",
        "command1:「始」a「末」",
        "path1:「始」p「末」",
        "BM25:「始」t「末」",
        "path:「始」shared「末」",
        "mode:「始」m「末」",
    )
    assert runs(text) == [
        ("A_b", {"command": "a", "path": "p", "BM25": "t", "mode": "m"}),
        ("A_b", {"command": "b", "path": "q", "BM25": "t", "mode": "m"}),
    ]
    assert warnings(text) == []


def test_ruling_28_meta_fields_stand_apart_unless_the_tool_declares_them() -> None:
    text = vcp(NAME, "archery:「始」no_reply「末」", "maid:「始」咕咕「末」", "valet:「始」v「末」")
    found = call(text)
    assert found.args(text) == {"maid": "咕咕", "valet": "v"}
    assert found.meta == {"archery": "no_reply"}
    assert warnings(text) == []
    assert "VC327" in codes(text)
    declared = ReadOptions(tools={"A_b": ToolHint("A_b", {"properties": {"archery": {}}})})
    assert call(text, options=declared).meta == {}


# VC323
def test_a_key_with_other_characters_is_kept_with_a_warning() -> None:
    text = vcp(NAME, "查询:「始」1「末」")
    assert runs(text) == [("A_b", {"查询": "1"})]
    assert warnings(text) == ["VC323"]
    assert "查询" in str(find(text, "VC323").args)


# VC325
def test_text_between_pairs_is_dropped_and_a_mangled_pair_rejects_the_block() -> None:
    assert warnings(vcp(NAME, "# note", "x:「始」1「末」")) == ["VC325"]
    assert runs(vcp(NAME, "# note", "x:「始」1「末」")) == [("A_b", {"x": "1"})]
    assert runs(vcp(NAME, "what 「末」 is this", "x:「始」1「末」")) == []


@pytest.mark.parametrize("kind", ["DEFINITION", "RESULT"])
# VC326
def test_definition_and_result_blocks_are_no_requests(kind: str) -> None:
    text = f"<<<[TOOL_{kind}]>>>\n{NAME}\n<<<[END_TOOL_{kind}]>>>"
    assert runs(text) == []
    assert (warnings(text), codes(text)[:1]) == ([], ["VC326"])


# F16
def test_a_whole_request_quoted_in_an_unescaped_value_is_ambiguous_and_runs_nothing() -> None:
    inner = vcp("tool_name:「始」Y「末」")
    assert runs(f"<<<[TOOL_REQUEST]>>>\n{NAME}\ncontent:「始」see\n{inner}\n「末」\n<<<[END_TOOL_REQUEST]>>>") == []


# F30
def test_a_call_without_its_envelope_is_no_call_but_gets_a_hint() -> None:
    text = "tool_name:「始」X「末」"
    assert (runs(text), warnings(text), codes(text)) == ([], [], ["TC009"])


# F1
def test_a_cut_block_never_runs_and_a_complete_one_before_it_does() -> None:
    text = f"{GOOD}\n<<<[TOOL_REQUEST]>>>\n{NAME}\ncontent:「始」第一行\n"
    assert runs(text, complete=False) == [("A_b", {"x": "1"})]
    assert "TC001" in warnings(text, complete=False)
    for cut in (GOOD[:-4], GOOD[: GOOD.index("<<<[END")], GOOD.replace("1「末」", "1")):
        assert runs(cut, complete=False) == []


# F17
def test_a_request_quoted_in_a_cut_value_does_not_run() -> None:
    inner = vcp("tool_name:「始」Y「末」")
    text = f"<<<[TOOL_REQUEST]>>>\n{NAME}\ncontent:「始ESCAPE」see\n{inner}\n"
    assert runs(text, complete=False) == []


@pytest.mark.parametrize(("suffix", "calls"), [("EXP", []), ("ESCAPE", [("A_b", {})])])
def test_ruling_28_marker_variants_close_with_their_own_kind(suffix: str, calls: list[tuple[str, object]]) -> None:
    text = f"<<<[TOOL_REQUEST_{suffix}]>>>\n{NAME}\n<<<[END_TOOL_REQUEST_{suffix}]>>>"
    assert runs(text) == calls
    assert warnings(text) == []


def test_a_mention_is_text_and_a_cut_marker_is_not() -> None:
    assert warnings("我不会输出 <<<[TOOL_REQUEST]>>> 块。") == []
    assert warnings("写：\n<<<[TOOL_REQUEST]>>>", complete=False) == ["TC001"]


# F1, ruling 6: wherever the marker stands, the first key behind it is the start of a call
@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize(
    "rest", ["\ntool", "\ntool_name:", "tool_name:「始」A", "\ntool_name:「始」A「末」,\nx:「始」1"]
)
def test_a_request_cut_off_in_the_middle_of_a_line_is_an_error(rest: str, complete: bool) -> None:
    text = f"好的 <<<[TOOL_REQUEST]>>>{rest}"
    assert runs(text, complete=complete) == []
    assert "TC001" in warnings(text, complete=complete)


@pytest.mark.parametrize("rest", [" marker: it opens", " 用于：请求", " to", " opens"])
def test_a_sentence_that_goes_on_behind_the_marker_is_a_mention(rest: str) -> None:
    assert codes(f"The <<<[TOOL_REQUEST]>>>{rest}") == ["TC009"]


def test_spans_slice_to_what_was_written() -> None:
    text = f"😀😀\n{GOOD}"
    found = call(text)
    param = found.params[0]
    assert text[slice(*param.span)] == "x:「始」1「末」"
    assert (text[slice(*param.name_span)], text[slice(*param.value.span)]) == ("x", "1")


# VC326
@pytest.mark.parametrize("complete", [True, False])
def test_a_request_inside_a_definition_or_result_block_does_not_run(complete: bool) -> None:
    text = f"<<<[TOOL_RESULT]>>>\nresult:「始」see\n{GOOD}\n「末」\n<<<[END_TOOL_RESULT]>>>\n"
    assert runs(text, complete=complete) == []
    assert runs(text[: text.index("<<<[END_TOOL_RESULT")], complete=False) == []
    assert runs(text + GOOD, complete=complete) == [("A_b", {"x": "1"})]


def test_an_end_mark_written_twice_is_a_repair() -> None:
    text = vcp(NAME, "x:「始」1「末」「末」,", "y:「始」2「末」")
    assert runs(text) == [("A_b", {"x": "1", "y": "2"})]
    assert warnings(text) == ["VC312"]
    assert warnings(repaired(text)) == []
