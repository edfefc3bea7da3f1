"""Safe fixes are safe (P4): applied all at once, they leave the calls that run as they are and make no other one run."""

from __future__ import annotations

import random

import pytest

from tamis.protocols.model import ReadOptions, ToolHint
from tamis.protocols.reader import read_text
from tests.protocols.fuzz import Case, check_repair, failure_of, run

# Found by ``python -m tests.protocols.fuzz --repairs`` and made as small as they get.
ACTION = [
    ':»»»<ACTION> c\n<tool_call>\n{"name": "a_b", "arguments": {}}\n</tool_call>',
    '<ACTION>`<tool_call>{"name":"","":{}}</tool_call>',
    '<ACTION><T><a></a></T><tool_call>{"name":"","":{"":""}}</tool_call></ACTION>',
    '<ACTION><tool_id>n</tool_id><inputs><input name="h"><t<[cdata[</input><"<![CDATA[]]></input></inputs></ACTION>',
    '<ACTION><toolid>t<inputs><input name="h"><<![CDATA[/input><a<![CDATA[]]></inputs></ACTION>',
    '<ACTION><tool_id>n</tool_id><inputs><input name="h"><i]]&gt;</i><![CDATA[</input><"<![CDATA[]]></input></inputs></ACTION>',
    "<ACTION><b><path></<[cdata[path><b<![CDATA[]]></1></b></ACTION>",
    "<ACTION><e><t><![CDATA[]]> ]]></d></b></ACTION>",
    '<ACTION><toolid>b</t><inputs><t name="b"><![CDATA[]]>p]]></m></s></ACTION>',
    "<ACTION><tool_id>n</tool_id><n> e</ACTION></ACTION>",
    '<ACTION><toolid>x</d><inputs><i ]></t><n=t name="t"></t></s></ACTION>',
    "<ACTION><toolid>y</d><inputs><i=y name=t></n></s></ACTION>",
    '<ACTION><tool_id>`\n说</tool_id><inputs><input name="a"></input></inputs></ACTION>',
    '<ACTION><tool_id>&"</tool_id><inputs><input name="e"></input></inputs></ACTION>',
    '<ACTION><toolid>r<[CDATA[\xad]]></i><t name="a"></d><inputs><t name="t"></i></u></n></ACTION>',
    '<ACTION><toolid>> \u200b<inputs><t name="e"><</inputs></ACTION>',
    "<ACtION>/<`/说></y></ACTION>",
    '<ACTION><inputs><n name="u">></inputs><toolid>y<\ufeff/d></ACTION>',
    "<ACTION<GetPlayerInfo<player_id><</player_id</GetPlayerInfo<\xad</ACTION>",
    "<action<wRITeNote<c/<a</WriteNote</ACTION>",
    "<ACTION><t><inputs><input></input></inputs></ACTION>",
    "<ACTION><t<inputs></inputs</ACTION>",
    '<ACTION><toolid>t<inputs><i name="h"></t><n><![CDATA[</input><u<![CDATA[]]></t></s></ACTION>',
    '<ACTION><toolid>t<m>e</d><inputs><i name="h"></x></y></ACTION>\n<ACTION><e>\x1b',
    '<ACTION><toolid>n</d><inputs><i name="a"></t><input name="d"> </t></x></ACTION></input></inputs></ACTION>',
    '<ACTION><tool_id>a</tool_id><inputs><input name="f"> </input></ACTION><"</input></inputs></ACTION>',
    '<ACTION><!----><inputs><n name="u"></t></inputs><toolid>"></t><u name="t"></t></inputs</ACTION>',
    "<ACTION><T><a></a></T><![CDATA[<<<[TOOL_REQUEST]>>>tool_name:「始」b「末」<<<[END_TOOL_REQUEST]>>>",
    "```\n<ACTION<action<read_file>\n<a>/a>\n<q><item></item></q>/read_file></ACTION>\n```",
    "<ACTION><tool_id>core:run</tool_id><<item>><i</i</s></ACTION>",
    "<ACTION><y><t><i<x</i<[CDATA[<![CDATA[]]>]]></x><b><</b></y></ACTION>",
    "<<<[TOOL_REQUEST]>>>:「始」「末」<ACTION><tool_id></tool_id><ACTION<i<ACTION><a_b><q></q></a_b></ACTION>",
    "<ACTION<inputs</ACTION>`<ACTION><toolid>T</t></inputs</ACTION>",
    "＜ACTION＞a</」<think></think><ACTION<o<ACTION<a_b><b>/b></a_b>",
    "<ACTION><b><file_path><!--</file_path><o<![CDATA[-->\x1c]]></o<</ACTION>",
]
TAM = [
    "<|[REQUEST_TOOL]|>:»«<|[REQUEST_TOOL]|>:»»»«<|[END_TOOL]|><|[REQUEST_TOOL]|>command:»:»»»«««\n/\n</ACTION>",
    "<|[REQUEST_TOOL]|>command:»»>»«««\n<|[END_TOOL]|>",
    "<|[REQUEST_TOOL]|>command1:»»»n«««h1:>>»»«««\n<|[END_TOOL]|>",
    "<|[REQUEST_TOOL]|>command:«««»\ny:«««<|[END_TOOL]|>",
    "<|[REQUEST_TOOL]|>command:»»»«\ne\u200b»»«««<|[END_TOOL]|>",
    "<|[REQUEST_TOOL]|>command:»»»«\u200b1:»»«««<|[END_TOOL]|>",
    "<|[REQUEST_TOOL]|><|[d1:»»»«««command1:»»»b \u200b«««",
    "<|[REQUEST_TOOL]|>command1:»»»\xad«««11:»»»«««-1_1:»»»«««command2:»»»x«««<|[END_TOOL]|>",
    "<|[REQUEST_TOOL]|>common:»»»«««command1:»»»A«««<|[END_TOOL]|>",
    "<|[REQUEST_TOOL]|>comment_1:»»»x«««command:»»»A«««<|[END_TOOL]|>",
    "<|[REQUEST_TOOL]|>command1:»»»T«««a>:»»»«««<|[END_TOOL]|>",
    "<|[REQUEST_TOOL]|>s>:»»»«««d_1:»»»«««command2:»»»T«««<|[END_TOOL]|>",
    "<|[REQUEST_TOOL]|>1_1:»»»«««command2:»»»_«««1_:»»»«««-2:»»»«««",
    "<|[REQUEST_TOOL]|>command:»»»b«««-1:»»»«««_1:»»»«««m1_1:»»»«««<|[END_TOOL]|>",
    "<ACTION<e\n```<|[REQUEST_TOOL]|>command:»T«<|[END_TOOL]|>\n```",
    "<|[REQUEST_TOOL]|>A\n:»«</ACTION><<<[TOOL_REQUEST]>>>tool_name:「始」K「末」\n<<\u200bENDTOOLREQUEST>>",
]
VCP = [
    "<<<[TOOL_REQUEST]>>>tool_name「始」e「末」:=「始」「末」<<<[END_TOOL_REQUEST]>>>",
    "<<<[TOOL_REQUEST]>>>tool_name「始」T「末」1:：「始」「末」<<<[END_TOOL_REQUEST]>>>",
    "<<<[TOOL_REQUEST]>>>tool_name:「始「始」末」<<<[END_TOOL_REQUEST]>>>",
    "</think><<<[TOOL_REQUEST]>>>tool_name:始」K末」\nq:「始「始」「末<<<[END_TOOL_REQUEST]>>>",
    "<<<[TOOL_REQUEST]>>>tool_name:「始」\ny:「\u200b始」「末」<<<[END_TOOL_REQUEST]>>>",
    "<<<[TOOL_REQUEST]>>><![CDATA[,:「始」「末」<<<[END_TOOL_REQUEST]>>><ACTION<i</ACTION>",
    "<<<[TOOL_REQUEST]>>>tool_name:「始」「末」><![CDATA[\ntool_name:「始」」「末」<<<[END_TOOL_REQUEST]>>><ACTION<r</ACTION>",
    "<<<[TOOL_REQUEST]>>>\n>\ntool_name:「始-「末」\n<<<[END_TOOL_REQUEST]>>>>>",
    "<<TOOLREQUEST>>:「始」「末」><![CDATA[<<ENDTOOLREQUEST>><ACTION<i</ACTION>",
    "<ACTION><</t</ACTION<[REQUESTTOOL><<TOOLREQUEST>>\ntool_name:「始」b「末」\n><<ENDTOOLREQUEST>>",
    '<<<[TOOL_REQUEST]>>>2:-「末ESCAPE」«\n2:>\n```\n<ACTION><tool_id>r</tool_id><inputs><input name="h"></input>{</inputs></ACTION>\n```',
]
RUN_IN_FENCES = [
    "<ACTION><y><command><![CDATA[</COmmand></y></ACTION></ACTION><ACTION><K><command><![CDATA[]]></b><q></q></c></ACTION>",
    "```<ACTION><T><a></a></T></ACTION>\n```a\n```\n<ACTION><T><a></a></T></ACTION>",
    "```<ACTION><T><b></b></T></ACTION>\n```</think>\n```\n<<<[TOOL_REQUEST]>>>tool_name:「始」T「末」<<<[END_TOOL_REQUEST]>>>",
    '```\n```<ACTION><tool_id>t</tool_id><inputs><input name="c"></input></inputs></ACTION>\n```',
    "<action>```<ACTION><a_b><item></item><k></k></a_b></ACTION>",
]
TOOLS = {"a_b": ToolHint("a_b", {"type": "object", "properties": {"q": {"type": "string"}, "x1": {"type": "integer"}}})}


@pytest.mark.parametrize("text", [*ACTION, *TAM, *VCP])
def test_safe_fixes_of_odd_texts_keep_the_calls(text: str) -> None:  # P4
    check_repair(Case(text, "auto", ReadOptions()))
    check_repair(Case(text, "auto", ReadOptions(tools=TOOLS)))


@pytest.mark.parametrize("text", RUN_IN_FENCES)
def test_taking_a_fence_away_keeps_the_calls(text: str) -> None:  # P4 ruling 7
    options = ReadOptions(fenced_calls="run", allow_multiple_blocks=True)
    check_repair(Case(text, "auto", options))
    check_repair(Case(text, "auto", ReadOptions(complete=False, fenced_calls="run", allow_multiple_blocks=True)))


def test_safe_fixes_of_mutated_texts_keep_the_calls(is_long: bool) -> None:  # P4
    if is_long:
        seed = str(random.randrange(10**9))
        done, found = run(seed, check_repair, seconds=600)
    else:
        seed = "safe fixes"
        done, found = run(seed, check_repair, count=1_500)
    assert {kind: case.text for kind, case in found.items()} == {}, f"seed {seed}, {done} cases"


def test_a_fix_that_changes_a_call_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.protocols.fuzz.apply_edits", lambda text, edits: text.replace("1", "2"))
    case = Case("<ACTION><T><a>1</a><b>x</T></ACTION>", "auto", ReadOptions())
    assert failure_of(case, check_repair) == "repairs change the calls (AX102)"


@pytest.mark.parametrize(
    "text",
    [
        "<ACTION<Kb.Query<l\n/Kb.Query></ACTION>",
        "<action<wRITeNote<c/<a</WriteNote</ACTION>",
        "<ACTION><T><a>1</a><\u200b/b></T></ACTION>",
        "<ACTION><T><a><![CDATA[x]]>y]]></m></T></ACTION>",
        "<|[REQUEST_TOOL]|>command1:»»»\xad«««<|[END_TOOL]|>",
    ],
)
def test_a_tag_that_may_be_another_one_is_refused(text: str) -> None:  # ruling 1
    assert [call for call in read_text(text).calls if call.executable] == []


@pytest.mark.parametrize("mark", ["![CDATA[", "[CDATA["])
@pytest.mark.parametrize("value", ["x", "x < y", "a & b"])
@pytest.mark.parametrize(
    "shape", ["<ACTION><T><a>{}</a></T></ACTION>", "<ACTION><T><a><item>{}</item></a></T></ACTION>"]
)
def test_a_section_that_lost_its_first_bracket_is_one(mark: str, value: str, shape: str) -> None:  # AX122
    document = read_text(shape.format(f"{mark}{value}]]>"))
    assert [diag.code for diag in document.diagnostics] == ["AX122"]
    (call,) = document.calls
    assert call.executable
    assert call.args(document.text)["a"] in (value, [value])
    assert read_text(shape.format(f"{mark}1] of x")).diagnostics == []
