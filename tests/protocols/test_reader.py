"""What surrounds blocks: text, reasoning, fences, inline code, mentions, order (rulings 4 to 8)."""

from __future__ import annotations

import pytest

from tamis.protocols.catalogue import message, severity
from tests.protocols.reader_helpers import codes, read, response, runnable, trailing

CALL = "<ACTION><T><a>1</a></T></ACTION>"
RUN = [("T", {"a": "1"})]
VCP = "<<<[TOOL_REQUEST]>>>\ntool_name:「始」T_t「末」,\nx:「始」1「末」\n<<<[END_TOOL_REQUEST]>>>"
TAM = "<|[REQUEST_TOOL]|>\ncommand:»»»T.t«««\nx:»»»1«««\n<|[END_TOOL]|>"
SOFT = {"hint", "information"}


def test_text_around_the_block_comes_back_byte_for_byte() -> None:  # ruling 4 F15
    text = f" \r\n中文🎉 `code` <b>\n\n{CALL}\n tail &amp; \r"
    document = read(text)
    assert response(document) == " \r\n中文🎉 `code` <b>\n\n"
    assert trailing(document) == "\n tail &amp; \r"
    assert runnable(document) == RUN


@pytest.mark.parametrize("tag", ["think", "thinking", "THINK", 'Think duration="3"'])
def test_calls_in_reasoning_are_a_hint_and_not_run(tag: str) -> None:  # ruling 5 F11
    name = tag.split()[0]
    document = read(f"<{tag}>maybe {CALL}</{name}>\n{CALL}")
    assert runnable(document) == RUN
    assert [call.executable for call in document.calls] == [False, True]
    assert codes(document) == ["TC017"]
    assert severity(document.diagnostics[0]) == "hint"


def test_unclosed_reasoning_reaches_to_the_end() -> None:  # ruling 5
    assert runnable(read(f"<think>hm {CALL} {CALL}")) == []


def test_nested_reasoning_ends_with_its_last_tag() -> None:  # ruling 5
    assert runnable(read(f"<think>a<thinking>b</thinking>{CALL}</think>{CALL}")) == RUN


def test_reasoning_calls_can_be_run() -> None:  # ruling 5 F11
    assert runnable(read(f"<think>{CALL}</think>", reasoning_calls="run")) == RUN


def test_stray_end_of_reasoning_hides_nothing() -> None:  # F12
    document = read(f"plan … </think>\n{CALL}")
    assert runnable(document) == RUN
    assert [severity(diag) for diag in document.diagnostics] == ["hint"]


def test_reasoning_tag_in_a_value_is_text() -> None:  # F13 ruling 5
    text = f"<ACTION><T><a><![CDATA[use <think> and ```\n]]></a></T></ACTION>{TAM}"
    document = read(text)
    assert [call.executable for call in document.calls] == [True, True]
    assert runnable(document)[0] == ("T", {"a": "use <think> and ```"})


@pytest.mark.parametrize("call", [CALL, TAM])
@pytest.mark.parametrize("fence", ["```", "```xml", "~~~", "  ```json"])
def test_a_fence_around_nothing_but_the_block_is_a_wrapper(call: str, fence: str) -> None:  # ruling 7 F14
    close = fence.strip()[:3]
    document = read(f"Do it:\n{fence}\n{call}\n{close}\n")
    assert len(runnable(document)) == 1
    assert "TC008" in codes(document)
    assert {severity(diag) for diag in document.diagnostics} <= SOFT


@pytest.mark.parametrize("call", [CALL, TAM, VCP])
def test_a_fence_with_other_lines_is_an_example(call: str) -> None:  # ruling 7 F14
    text = f"For example:\n```\nfirst line\n{call}\n```\nThat is how."
    document = read(text)
    assert runnable(document) == []
    assert {severity(diag) for diag in document.diagnostics} <= SOFT
    assert response(document) == text  # F15


def test_a_fenced_vcp_block_is_an_example() -> None:  # ruling 7
    document = read(f"```\n{VCP}\n```")
    assert runnable(document) == []
    assert len(document.calls) == 1
    assert {severity(diag) for diag in document.diagnostics} <= SOFT


def test_fenced_calls_can_be_run_or_ignored() -> None:  # ruling 7
    assert len(runnable(read(f"```\n{VCP}\n```", fenced_calls="run"))) == 1
    assert runnable(read(f"```\n{CALL}\n```", fenced_calls="ignore")) == []


def test_a_fence_that_is_still_open_in_a_cut_text_is_not_run() -> None:  # rulings 1 and 7
    assert runnable(read(f"```\n{CALL}", complete=False)) == []
    assert runnable(read(f"```\n{CALL}")) == RUN


def test_fences_and_code_inside_values_do_not_count() -> None:  # F14
    body = "```py\nprint(1)\n"
    document = read(f"<ACTION><T><a>{body}</a></T></ACTION>\n```\nx\n```\n{TAM}")
    assert [call.executable for call in document.calls] == [True, True]


@pytest.mark.parametrize(
    "text",
    [
        "Use the `<ACTION>` tag.",
        f"Write `{CALL}` like this.",
        f"``a ` {CALL}``",
        "Use <ACTION> to call tools.",
        "Escape it as \\<ACTION\\> or \\<ACTION>.",
        "The <ACTION></ACTION> tags.",
        "Use <ACTION>...</ACTION> for calls.",
        "`<<<[TOOL_REQUEST]>>>` opens a request.",
        "&lt;ACTION&gt;&lt;T/&gt;&lt;/ACTION&gt;",
        '<action android:name="x" />',
    ],
)
def test_mentions_are_text_with_hints_at_most(text: str) -> None:  # ruling 6 TC010
    document = read(text)
    assert not any(call.executable for call in document.calls)
    assert {severity(diag) for diag in document.diagnostics} <= SOFT
    assert response(document) == text


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize(
    "rest",
    [
        "<text:statistics><text>hello world",
        "<text:statistics>",
        "<text:sta",
        " <t>\n<p>",
        "\n  <t>\n    <p> hello",
        "<tool_id>core:ec",
        "<tool_id>core:echo</tool_id><inputs><input na",
        "<t><p><![CDATA[if a < b",
        '<t>{"p": 1',
        '<invoke name="x"><parameter name="y">1',
        "<t><p>x</p>",
    ],
)
def test_a_call_cut_off_in_the_middle_of_a_line_is_an_error(rest: str, complete: bool) -> None:  # F1 ruling 6 TC001
    document = read(f"Text before <ACTION>{rest}", complete=complete)
    assert runnable(document) == []
    assert "TC001" in [diag.code for diag in document.diagnostics if severity(diag) == "error"]
    assert response(document) == "Text before "


@pytest.mark.parametrize(
    "text",
    [
        "wrap it in <ACTION> tags",
        "the <ACTION><tool> form",
        "the <ACTION><tool><param> form works",
        "The <ACTION><tool_id> form, or <ACTION><tool> or <ACTION><tool_id>",
        'so "<ACTION><t>" is what opens it',
        "it begins with <ACTION><tool>.",
        "use <ACTION><tool>...",
        "the regex /<ACTION>(<(\\w+)>)/ finds it",
        "compare <ACTION> <b and so on",
        "这里写 <ACTION><工具>，然后继续",
    ],
)
def test_prose_that_names_the_markup_stays_a_mention(text: str) -> None:  # ruling 6
    document = read(text)
    assert document.blocks == []
    assert set(codes(document)) == {"TC009"}


def test_an_open_value_in_a_line_holds_the_block_that_follows() -> None:  # ruling 50
    document = read(f"Text <ACTION><a:b><c>foo\n\n{CALL}")
    assert runnable(document) == []
    assert codes(document)[0] == "TC001"


def test_mention_behind_a_block_changes_nothing() -> None:
    assert runnable(read(f"{CALL}\nThe `<ACTION>` block above runs.")) == RUN


@pytest.mark.parametrize("close", ["</ACTION>", "<|[END_TOOL]|>", "<<<[END_TOOL_REQUEST]>>>"])
def test_stray_closing_marker(close: str) -> None:  # ruling 6 TC003
    alone = read(f"text\n  {close}  \nmore")
    assert [(d.code, severity(d)) for d in alone.diagnostics] == [("TC003", "warning")]
    prose = read(f"it ends with {close} there")
    assert [(d.code, severity(d)) for d in prose.diagnostics] == [("TC003", "hint")]


@pytest.mark.parametrize(
    "text",
    ["tool_name:「始」X「末」", "command:»»»T.t«««", "<tool_id>x</tool_id><inputs></inputs>"],
)
def test_a_bare_call_is_no_call_but_a_hint(text: str) -> None:  # F30
    document = read(text)
    assert document.calls == []
    assert [severity(diag) for diag in document.diagnostics] == ["hint"]


def test_byte_order_mark_is_said_and_changes_nothing() -> None:
    document = read(f"\ufeff{CALL}")
    assert runnable(document) == RUN
    assert codes(document) == ["TC015"]


def test_several_blocks_of_the_other_protocols_all_run() -> None:  # ruling 14 F26
    document = read(f"{TAM}\n{TAM}\n{VCP}\n{VCP}\n{CALL}")
    assert len(runnable(document)) == 5


def test_an_opener_inside_a_value_is_no_call() -> None:  # F16
    text = f"<ACTION><T><a><![CDATA[{VCP}\n{TAM}\n{CALL}]]></a></T></ACTION>"
    document = read(text)
    assert [call.tool_id for call in document.calls] == ["T"]


@pytest.mark.parametrize("mode", ["action", "tam", "vcp"])
def test_a_chosen_protocol_reads_only_its_own_blocks(mode: str) -> None:
    text = f"{CALL}\n{TAM}\n{VCP}"
    document = read(text, mode)  # type: ignore[arg-type]  # the parameter is one of the literals
    assert {call.protocol for call in document.calls} == {mode}


@pytest.mark.parametrize("cut", range(1, len(CALL)))
def test_a_cut_text_never_runs(cut: int) -> None:  # F1 F2 ruling 1
    assert runnable(read(CALL[:cut], complete=False)) == []


def test_a_text_that_lacks_only_its_closing_marker_is_not_run_when_cut() -> None:  # ruling 1
    text = CALL.removesuffix("</ACTION>")
    assert runnable(read(text)) == RUN
    cut = read(text, complete=False)
    assert runnable(cut) == []
    assert cut.blocks[0].state == "truncated"
    assert not cut.calls[0].complete


def test_an_earlier_complete_block_of_a_cut_text_runs() -> None:  # ruling 1
    document = read(f"{TAM}\n{TAM[:40]}", complete=False)
    assert len(runnable(document)) == 1


# more blocks than are read of one text


def test_blocks_behind_the_bound_are_told_at_their_place_and_not_run() -> None:  # TC028
    text = f"{VCP}\n{VCP}\n and {VCP} {CALL}"
    document = read(text, max_blocks=2)
    assert [call.executable for call in document.calls] == [True, True]
    (finding,) = [diagnostic for diagnostic in document.diagnostics if diagnostic.code == "TC028"]
    start = text.index(" and ") + 5
    assert finding.span == (start, start + len("<<<[TOOL_REQUEST]>>>"))
    assert severity(finding) == "error"
    assert message(finding) == (
        f"More than 2 blocks; the {len(text) - start} characters from here on are not read, give them as a text of their own"
    )
    assert trailing(document) == text[start - 6 :]


def test_as_many_blocks_as_may_be_are_read_without_a_word() -> None:  # TC028
    document = read(f"{VCP}\n{VCP} and &lt;", max_blocks=2)
    assert (len(document.calls), codes(document)) == (2, [])


def test_a_closer_of_reasoning_behind_the_bound_sets_aside_what_was_read() -> None:  # TC028, ruling 45
    document = read(f"{VCP}\n{VCP} no </think> {VCP}", max_blocks=1)
    assert [call.executable for call in document.calls] == [False]
    assert codes(document) == ["TC017", "TC028", "TC003"]
