"""TAM blocks: markers, delimiters, values, comments (seed 002 §2 and §5, rulings 20 to 22 and 25)."""

from __future__ import annotations

import pytest

from tamis.protocols.catalogue import CATALOGUE, severity
from tamis.protocols.model import Block
from tamis.protocols.reader import read_text
from tests.protocols.tam_vcp_blocks import block, call, codes, find, read, repaired, runs, tam, warnings

COMMAND = "command:»»»T.t«««"

EXAMPLE_51 = """<|[REQUEST_TOOL]|>
command:»»»File.ApplyEdit«««
file_path:»»»/path/to/main.js«««
search_string:»»»console.log("old");«««
replace_string:»»»console.log("new");«««
<|[END_TOOL]|>"""

EXAMPLE_52 = """<|[REQUEST_TOOL]|>
request_id:»»»req-20250805-report«««
common_output_dir:»»»fam://project-x/reports/today«««
comment:»»»生成每日报告的完整流程«««

# 步骤 1: 异步生成封面图，如果失败则跳过
command_1:»»»ImageTool.Generate«««
on_error_1:»»»continue«««
prompt_1:»»»一只戴着宇航头盔的猫头鹰，赛博朋克风格«««
output_uri_1:»»»@{common_output_dir}/cover.png«««

# 步骤 2: 同步写日志
command_2:»»»File.Append«««
file_path_2:»»»@{common_output_dir}/run.log«««
content_2:»»»-- Report generation started at @{timestamp} --«««

# 步骤 3: 构建最终报告
command_3:»»»Report.Build«««
type_hint_payload_3:»»»json«««
payload_3:»»»
{
  "title": "每日运营报告",
  "coverImageUri": "@{common_output_dir}/cover.png",
  "logFileUri": "@{common_output_dir}/run.log",
  "author": "咕咕"
}
«««
<|[END_TOOL]|>"""

EXAMPLE_53 = """<|[REQUEST_TOOL]|>
  # 我的计划
  Command_1: >>>File.Write<<<
  File-Path 1:»»» /logs/today.log «««
  CONTENT1:»»»start…
  another line«««
<|[END_TOOL]|>"""


# T27
def test_example_51_is_read_exactly() -> None:
    found = call(EXAMPLE_51)
    assert (found.tool_id, found.step, found.repairs) == ("File.ApplyEdit", 1, [])
    assert found.args(EXAMPLE_51) == {
        "file_path": "/path/to/main.js",
        "search_string": 'console.log("old");',
        "replace_string": 'console.log("new");',
    }
    assert codes(EXAMPLE_51) == []


# T28
def test_example_52_is_read_exactly_with_its_three_steps() -> None:
    text = EXAMPLE_52
    one, two, three = read(text).calls
    shared = {"output_dir": "fam://project-x/reports/today"}
    assert (one.tool_id, one.step, one.on_error) == ("ImageTool.Generate", 1, "continue")
    assert one.args(text) == {
        "prompt": "一只戴着宇航头盔的猫头鹰，赛博朋克风格",
        "output_uri": "@{common_output_dir}/cover.png",
        **shared,
    }
    assert (two.tool_id, two.on_error) == ("File.Append", None)
    assert two.args(text)["content"] == "-- Report generation started at @{timestamp} --"  # T30
    assert three.type_hints == {"payload": "json"}
    payload = three.args(text)["payload"]
    assert isinstance(payload, str)
    assert payload.startswith('{\n  "title"')
    assert payload.endswith("\n}")
    assert {found.request_id for found in (one, two, three)} == {"req-20250805-report"}
    assert warnings(text) == []


# T31
def test_example_53_is_read_exactly_with_one_warning() -> None:
    text = EXAMPLE_53
    found = call(text)
    assert (found.step, found.tool_id) == (1, "File.Write")
    assert found.args(text) == {"file_path": "/logs/today.log", "content": "start…\nanother line"}  # T32
    assert [alias for code in warnings(text) for alias in CATALOGUE[code].aliases] == ["mixed_delimiters_used"]
    assert [diag.code for diag in found.repairs] == ["TM210"]


# T29
def test_comments_come_back_with_their_ranges() -> None:
    text = EXAMPLE_52
    comments = read(text).comments
    assert [comment.text[:6] for comment in comments] == ["# 步骤 1", "# 步骤 2", "# 步骤 3"]
    assert all(text[slice(*comment.span)] == comment.text for comment in comments)


@pytest.mark.parametrize(
    ("opens", "closes"),
    [
        ("<|[REQUEST_TOOL]|>", "<|[END_TOOL]|>"),
        ("<|[request_tool]|>", "<|[End_Tool]|>"),
        ("   <|[ REQUEST_TOOL ]|>", "< | [END_TOOL] | >"),
    ],
)
# T01, T02
def test_markers_in_any_case_and_with_blanks_need_no_warning(opens: str, closes: str) -> None:
    text = f"Before.\n{opens}\n{COMMAND}\nx:»»»1«««\n{closes}\nAfter."
    assert runs(text) == [("T.t", {"x": "1"})]
    assert warnings(text) == []


@pytest.mark.parametrize(
    ("opens", "closes"),
    [
        ("<|[REQUEST-TOOL]|>", "<|[END TOOL]|>"),
        ("<|REQUEST_TOOL|>", "<|END_TOOL|>"),
        ("<[REQUEST_TOOL]>", "<[END_TOOL]>"),
        ("＜｜［REQUEST_TOOL］｜＞", "＜｜［END_TOOL］｜＞"),
        ("<|[REQUEST_TOOL]|>", "<|[/REQUEST_TOOL]|>"),
    ],
)
def test_other_spellings_of_the_markers_are_repairs(opens: str, closes: str) -> None:
    text = f"{opens}\n{COMMAND}\n{closes}"
    assert runs(text) == [("T.t", {})]
    assert set(warnings(text)) == {"TC004"}
    assert codes(repaired(text)) == []


def test_an_invisible_character_in_a_marker_is_a_repair() -> None:
    assert warnings(f"<|[REQ\u200bUEST_TOOL]|>\n{COMMAND}\n<|[END_TOOL]|>") == ["TC013"]


# T03
def test_a_fence_around_the_block_or_inside_the_markers_is_ignored() -> None:
    assert runs(f"```\n{tam(COMMAND, 'x:»»»1«««')}\n```") == [("T.t", {"x": "1"})]
    assert warnings(tam("```text", COMMAND, "```")) == []


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("x:>>>1<<<", "TM210"),
        ("x:»»»1<<<", "TM210"),
        ("x:>>>1«««", "TM210"),
        ("x:»»1««", "TM212"),
        ("x: » » »1« « «", "TM212"),
        ("x:》》》1《《《", "TM212"),
        ("x:1«««", "TM213"),
        ("x: 1", "TM214"),
        ("x:«««1»»»", "TM215"),
        ("x：»»»1«««", "TM220"),
        ("x = »»»1«««", "TM220"),
        ("x -> »»»1«««", "TM220"),
        ("x »»»1«««", "TM220"),
        ("- x:»»»1«««", "TM221"),
        ('"x":»»»1«««', "TM221"),
        ("**x:** »»»1«««", "TM221"),
        ("// note\nx:»»»1«««", "TM250"),
        ("<!-- note -->\nx:»»»1«««", "TM250"),
        ("; note\nx:»»»1«««", "TM250"),
        ("x:\u200b»»»1«««", "TC013"),
    ],
)
# T06
def test_a_bad_spelling_with_one_reading_is_a_repair_whose_fix_makes_it_canonical(written: str, code: str) -> None:
    text = tam(COMMAND, written, "y:»»»2«««")
    found = call(text)
    assert found.args(text) == {"x": "1", "y": "2"}
    assert warnings(text) == [code]
    assert [diag.code for diag in found.repairs] == [code]
    mended = repaired(text)
    assert warnings(mended) == []
    assert runs(mended) == runs(text)


# T07
def test_a_missing_tail_ends_at_the_next_key_line_or_the_end_marker() -> None:
    assert runs(tam(COMMAND, "x:»»»1", "y:»»»2«««")) == [("T.t", {"x": "1", "y": "2"})]
    assert runs(tam(COMMAND, "x:»»»1", "# note", "y:»»»2«««")) == [("T.t", {"x": "1", "y": "2"})]
    last = tam(COMMAND, "x:»»»1\n2")  # TM211
    assert runs(last) == [("T.t", {"x": "1\n2"})]
    assert CATALOGUE[warnings(last)[0]].aliases == ("missing_tail_delimiter",)


def test_ruling_22_a_missing_tail_at_the_end_of_the_text_does_not_run() -> None:
    text = f"<|[REQUEST_TOOL]|>\n{COMMAND}\nx:»»»1"
    assert runs(text) == []
    assert block(text).state == "truncated"


def test_a_missing_end_marker_runs_only_when_all_values_are_closed_and_nothing_was_cut() -> None:
    text = f"<|[REQUEST_TOOL]|>\n{COMMAND}\nx:»»»1«««"
    assert runs(text) == [("T.t", {"x": "1"})]
    assert warnings(text) == ["TC002"]
    assert runs(text, complete=False) == []  # F1
    prose = f"{text}\n\nDone. Note: I called it."
    assert runs(prose) == [("T.t", {"x": "1"})]
    assert prose[slice(*read(prose).trailing_span)] == "\n\nDone. Note: I called it."


def test_a_block_abandoned_for_another_one_does_not_run() -> None:
    text = f"<|[REQUEST_TOOL]|>\ncommand:»»»A.a«««\n\nprose\n\n{tam(COMMAND)}"
    assert runs(text) == [("T.t", {})]
    assert warnings(text) == ["TC002"]


def test_a_marker_of_another_protocol_closes_a_block_with_a_warning() -> None:
    text = f"<|[REQUEST_TOOL]|>\n{COMMAND}\n<<<[END_TOOL_REQUEST]>>>"
    assert runs(text) == [("T.t", {})]
    assert warnings(text) == ["TC005"]


@pytest.mark.parametrize(
    "value",
    [
        "<|[END_TOOL]|>",
        "see <|[REQUEST_TOOL]|> there",
        "```\ncode\n```",
        "use <think>…</think>",
        "cat <<<word && echo <<< x",
        "««double»» inside",
        "i < n && p->x",
        "&lt;b&gt; &amp;&amp;",
        '{"a": "c: d"}',
        "# no comment",
        "@{timestamp}",
        "007",
        "",
    ],
)
# F5, F6, F13
def test_a_closed_value_is_kept_as_it_is(value: str) -> None:
    text = tam(COMMAND, f"x:»»»{value}«««", "y:»»»2«««")
    assert runs(text) == [("T.t", {"x": value, "y": "2"})]
    assert warnings(text) == []


# F4: the whole value or a cut one; a call with either guess is worse than none
@pytest.mark.parametrize("value", ["a ««« b", "««« b", "写 «««这个««« 字", "a««« b: c"])
def test_a_value_with_its_own_tail_is_ambiguous_and_runs_nothing(value: str) -> None:
    text = tam(COMMAND, f"x:»»»{value}«««", "y:»»»2«««")
    assert runs(text) == []
    assert [d.code for d in read(text).diagnostics if severity(d) == "error"] == ["TM216"]


# F4: over several lines the rest is noise that ends in a delimiter, which is as unclear
def test_a_value_of_several_lines_with_its_own_tail_runs_nothing() -> None:
    text = tam(COMMAND, "x:»»»a", "b ««« c", "d«««", "y:»»»2«««")
    assert runs(text) == []


# F4: layout behind the delimiter is no rest of a value
@pytest.mark.parametrize("rest", ["", "  ", ",", " ,", "；"])
def test_layout_behind_a_value_does_not_stop_its_block(rest: str) -> None:
    assert runs(tam(COMMAND, f"x:»»»a«««{rest}", "y:»»»2«««")) == [("T.t", {"x": "a", "y": "2"})]


# F16
def test_a_whole_block_quoted_in_an_unescaped_value_is_ambiguous_and_runs_nothing() -> None:
    inner = tam("command:»»»B.b«««")
    assert runs(f"<|[REQUEST_TOOL]|>\ncommand:»»»A.a«««\ncontent:»»»\n{inner}\n«««\n<|[END_TOOL]|>") == []


def test_ruling_21_values_lose_their_key_lines_indentation_and_the_blanks_at_both_ends() -> None:
    text = tam("  command:»»»T.t«««", "  x:»»»", "    a", "      b", "  «««", "\ty:»»»1", "\t\t2", "«««")
    assert runs(text) == [("T.t", {"x": "a\n    b", "y": "1\n\t2"})]
    assert warnings(text) == []


def test_every_kept_stretch_of_a_dedented_value_leads_back_to_its_source() -> None:
    text = tam("  command:»»»T.t«««", "  x:»»»a", "  b", "   c«««")
    value = call(text).params[0].value
    decoded = value.text(text)
    assert decoded == "a\nb\n c"
    assert [text[value.source_offset(i)] for i in range(len(decoded))] == list(decoded)


def test_noise_between_fields_is_dropped_with_a_warning() -> None:
    text = tam(COMMAND, "some words", "x:»»»1«««")
    assert runs(text) == [("T.t", {"x": "1"})]
    assert warnings(text) == ["TC011"]


def test_text_behind_a_bare_value_has_two_readings_and_runs_nothing() -> None:
    assert runs(tam(COMMAND, "x: a", "", "b", "y:»»»2«««")) == []


def test_a_nul_in_a_value_rejects_the_block_and_another_control_character_warns() -> None:
    assert runs(tam(COMMAND, "x:»»»\x00«««")) == []
    assert warnings(tam(COMMAND, "x:»»»\x07«««")) == ["TC014"]


def test_a_name_over_the_limit_rejects_the_block() -> None:
    text = tam(COMMAND, f"{'k' * 300}:»»»v«««")
    assert runs(text) == []
    assert warnings(text) == ["TC021"]


def test_a_tool_id_with_bidi_controls_gets_a_warning() -> None:
    assert warnings(tam("command:»»»Re\u202ead.x«««")) == ["TC016"]


@pytest.mark.parametrize(
    "text",
    [
        "Use <|[REQUEST_TOOL]|> to start a call.",
        "TAM 使用 <|[REQUEST_TOOL]|> 和 <|[END_TOOL]|> 作为边界。",
        "The `<|[REQUEST_TOOL]|>` marker starts a call.",
    ],
)
def test_ruling_6_a_mention_is_text(text: str) -> None:
    assert read(text).blocks == []
    assert warnings(text) == []


# F1, ruling 6: wherever the marker stands, the first key behind it is the start of a call
@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("rest", ["\ncomm", "\ncommand_1:", "command:»»»T", "\ncommand:»»»T«««\nx:»»»1"])
def test_a_block_cut_off_in_the_middle_of_a_line_is_an_error(rest: str, complete: bool) -> None:
    text = f"Text <|[REQUEST_TOOL]|>{rest}"
    assert runs(text, complete=complete) == []
    assert "TC001" in warnings(text, complete=complete)


@pytest.mark.parametrize("rest", [" marker opens it: yes", " and\nkey: value", " c", " comes first"])
def test_a_sentence_that_goes_on_behind_the_marker_is_a_mention(rest: str) -> None:
    assert codes(f"The <|[REQUEST_TOOL]|>{rest}") == ["TC009"]


# T19
def test_a_block_without_command_is_an_error() -> None:
    assert warnings(tam("x:»»»1«««")) == ["TM201"]
    assert warnings(tam("command:»»» «««", "x:»»»1«««")) == ["TM202"]
    assert warnings(tam("")) == ["TC012"]


def test_a_doubled_opening_marker_reads_the_inner_block() -> None:
    text = f"<|[REQUEST_TOOL]|>\n{tam(COMMAND)}"
    assert runs(text) == [("T.t", {})]
    assert warnings(text) == ["TC006"]


# F26
def test_the_same_call_twice_is_two_calls_and_all_blocks_run_by_ruling_14() -> None:
    text = f"{tam(COMMAND)}\nthen\n{tam(COMMAND)}"
    assert runs(text) == [("T.t", {}), ("T.t", {})]


def test_crlf_and_cr_line_ends_read_like_lf() -> None:
    text = tam(COMMAND, "x:»»»a\nb«««")
    for end in ("\r\n", "\r"):
        other = text.replace("\n", end)
        assert runs(other) == [("T.t", {"x": f"a{end}b"})]
        assert warnings(other) == []


def test_more_problems_than_the_limit_give_one_error() -> None:
    text = tam(COMMAND, *(f"p{i}x: v" for i in range(400)))
    found: Block = block(text)
    assert found.state == "rejected"
    assert [diag.code for diag in found.diagnostics].count("TC023") == 1


def test_every_finding_is_in_the_catalogue_and_its_span_in_the_text() -> None:
    for text in (EXAMPLE_53, tam("x: 1"), tam(COMMAND, "x »»1")):
        for diag in read_text(text).diagnostics:
            assert severity(diag)
            assert 0 <= diag.span[0] <= diag.span[1] <= len(text)


def test_missing_head_severity_and_place_are_told() -> None:
    text = tam(COMMAND, "x:1«««")
    diag = find(text, "TM213")
    assert text[slice(*diag.span)] == "x:1«««"
    assert diag.repair


def test_quotes_around_a_bare_value_have_two_readings_and_run_nothing() -> None:
    for value in ('"1"', "`1`", "&raquo;&raquo;&raquo;1&laquo;&laquo;&laquo;"):
        assert runs(tam(COMMAND, f"x: {value}")) == []


def test_a_tail_written_twice_is_a_repair() -> None:
    text = tam(COMMAND, "x:»»»1««« «««", "y:»»»2«««")
    assert runs(text) == [("T.t", {"x": "1", "y": "2"})]
    assert warnings(text) == ["TM212"]
    assert warnings(repaired(text)) == []
