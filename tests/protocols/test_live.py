"""A block that is set aside is made live by an edit that takes it out of its context (issue 14, rulings 44 to 47)."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.live import made_live
from tamis.protocols.model import Document, Edit, Json, ReadOptions
from tamis.protocols.reader import read_text
from tests.protocols.contexts import ACTION, BLOCKS, LINES, PREFIXES, SET_ASIDE, prefixed

GOOD = ["action_tag", "action_inputs", "tam", "vcp"]
NOBODYS = ("echo", "turn", "json")
"""Contexts of what others wrote: no edit makes that a call of the model."""
WRAPS = {
    "reasoning": "<think>\n{}\n</think>\nx",
    "reasoning, open": "Hm.\n<think>\n{}",
    "reasoning, closer only": "{}\n</think>x",
    "comment": "<!-- {} -->",
    "comment, open": "<!--\n{}",
    "element": "a\n<pre>\n{}\n</pre>\nb",
    "element, open": "<example>\n{}",
    "fence": "`````\n{}\n`````\nx",
    "fence with text": "`````\nx\n{}\ny\n`````\nz",
    "fence, open": "`````\nx\n{}",
    "two": "<pre>\n<!-- {} -->\n</pre>",
}
"""Around a whole text, which may hold blank lines, quotes and marks of its own."""


def live(text: str, edits: tuple[Edit, ...]) -> str:
    """A text with the edits of a fix."""
    parts: list[str] = []
    at = 0
    for edit in edits:
        parts += [text[at : edit.start], edit.new_text]
        at = edit.end
    return "".join([*parts, text[at:]])


def said(document: Document) -> list[tuple[str, dict[str, Json]]]:
    """What runs."""
    return [(call.tool_id, call.args(document.text)) for call in document.calls if call.executable]


def textually(whole: str, wrap: str, sign: str | None) -> str:
    """A wrapped text without what was put around it."""
    if sign is not None:
        return "\n".join(line.removeprefix(sign) for line in whole.split("\n"))
    before, _, behind = wrap.partition("{}")
    return whole.removeprefix(before).removesuffix(behind)


def all_live(text: str) -> Document:
    """A text after the fix of each of its blocks, one after the other, in order."""
    document = read_text(text)
    for i in range(len(document.blocks)):
        fix = made_live(document, document.blocks[i], read_text) if i < len(document.blocks) else None
        if fix is not None:
            document = read_text(live(document.text, fix.edits))
    return document


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
@pytest.mark.parametrize("wrap", SET_ASIDE.values(), ids=SET_ASIDE)
def test_a_block_is_taken_out_of_each_context_but_for_what_others_wrote(wrap: str, block: str) -> None:  # ruling 44
    text = wrap.format(block.replace("\n", "\n> ") if "> {}" in wrap else block)
    document = read_text(text)
    (aside,) = document.blocks
    fix = made_live(document, aside, read_text)
    if aside.context in NOBODYS:
        assert fix is None
        return
    assert fix is not None
    assert fix.applicability == "unsafe"
    again = read_text(live(text, fix.edits))
    assert said(again) == [("Danger", {"path": "/etc/x"})]


@pytest.mark.parametrize("block", ["lines", "tam", "vcp"])
@pytest.mark.parametrize("prefix", PREFIXES)
def test_lines_lose_the_prefix_that_quotes_them(prefix: str, block: str) -> None:  # rulings 46 47
    text = "Text:\n\n" + prefixed(prefix, BLOCKS[block]) + "\n\nMore."
    document = read_text(text)
    fix = made_live(document, document.blocks[0], read_text)
    assert fix is not None
    assert live(text, fix.edits) == f"Text:\n\n{BLOCKS[block]}\n\nMore."


@pytest.mark.parametrize("form", ["{}: ", "{:>3} | ", "2026-01-01T10:00:{:02} WARN  ", "[{}] ", "{}\t"])
def test_a_prefix_that_counts_is_removed_from_each_line(form: str) -> None:  # ruling 47
    text = "\n".join(form.format(i + 8) + line for i, line in enumerate(LINES.split("\n")))
    document = read_text(text)
    fix = made_live(document, document.blocks[0], read_text)
    assert fix is not None
    assert live(text, fix.edits) == LINES


def test_what_stands_beside_the_block_stays_in_its_context() -> None:  # ruling 44
    cases = {
        f"<!-- a {ACTION} b -->": f"<!-- a -->{ACTION}<!-- b -->",
        f"```py\na\n{ACTION}\nb\n```\nc": f"```py\na\n```\n{ACTION}\n```py\nb\n```\nc",
        f"<pre>a {ACTION} b</pre>": f"<pre>a </pre>{ACTION}<pre> b</pre>",
        f"> a\n> {ACTION}\n> b": f"> a\n{ACTION}\n> b",
        f"| {ACTION} | a |\n| b | c |\n": f"|  | a |\n| b | c |\n\n{ACTION}\n",
        f"> Look: {ACTION}": f"Look: {ACTION}",
    }
    for text, wanted in cases.items():
        document = read_text(text)
        fix = made_live(document, document.blocks[0], read_text)
        assert fix is not None, text
        assert live(text, fix.edits).replace("  ", " ") == wanted.replace("  ", " ")


def test_no_fix_where_another_call_would_run_or_be_lost() -> None:  # rulings 7 44
    second = ACTION.replace("/etc/x", "2")
    only_one = f"{ACTION}\n\nNot <code>{second}</code>."
    document = read_text(only_one)
    assert made_live(document, document.blocks[1], read_text) is None
    # What is left of the fence would hold one block and nothing else.
    wrapper = f"```\nx\n{LINES}\n{BLOCKS['tam']}\n```"
    document = read_text(wrapper)
    fix = made_live(document, document.blocks[0], read_text)
    assert fix is None or len(said(read_text(live(wrapper, fix.edits)))) == 1


@pytest.mark.parametrize("text", ["<think><ACTION><t><p>1", "<!-- <ACTION><t> -->", f"```\nx\n{ACTION[:30]}\n```"])
def test_no_fix_for_a_block_that_is_no_good_call(text: str) -> None:  # ruling 44
    document = read_text(text)
    assert document.blocks
    assert all(made_live(document, block, read_text) is None for block in document.blocks)


def test_a_block_that_runs_needs_no_fix() -> None:
    document = read_text(ACTION)
    assert made_live(document, document.blocks[0], read_text) is None


@pytest.mark.parametrize("name", GOOD)
def test_good_texts_taken_out_of_a_context_make_the_same_calls(corpora: Path, name: str, is_long: bool) -> None:
    """Rulings 44 to 47: wrapped and taken out by the fix, a text of the corpus makes the calls that it made."""
    rows = [json.loads(line) for line in (corpora / "calls" / f"{name}.jsonl").read_text().splitlines()]
    good = [row for row in rows if row["expect"]["outcome"] == "ok" and not row["ambiguous"]]
    share = good if is_long else random.Random(14).sample(good, min(5, len(good)))
    wrong: list[tuple[str, str]] = []
    for row in share:
        text = row["text"]
        before = read_text(text)
        if len(before.blocks) != 1:
            # Of several blocks only the first runs (TC007), so that taking out the first tells nothing of the rest.
            continue
        for kind, wrap in {**WRAPS, "quote": "", "prefix": ""}.items():
            sign = {"quote": "> ", "prefix": "// "}.get(kind)
            whole = prefixed(sign, text) if sign else wrap.replace("{}", text)
            assert said(read_text(whole)) == []
            if kind.startswith("comment") and "-->" in text:
                # The comment ends inside the text: no block is left of it.
                continue
            if said(all_live(whole)) != said(before) or said(read_text(textually(whole, wrap, sign))) != said(before):
                wrong.append((row["id"], kind))
    assert wrong == []


ALPHABET = st.sampled_from(["<!--", "-->", "<pre>", "</pre>", "```\n", "`", '"', "> ", "\n", "\n\n", "<think>", "</think>", "| ", "// ", "a ", "“", "”", "</code>", "<code>", ACTION, LINES, BLOCKS["tam"]])  # fmt: skip


@given(st.lists(ALPHABET, max_size=12).map("".join))
def test_a_fix_makes_one_block_live_and_changes_no_other(text: str) -> None:
    """Ruling 44: whatever surrounds a block, its fix makes exactly its calls run; it never raises."""
    document = read_text(text)
    for block in document.blocks:
        fix = made_live(document, block, read_text)
        if fix is None:
            continue
        again = read_text(live(text, fix.edits))
        own = [(call.tool_id, call.args(text)) for call in block.calls]
        assert len(said(again)) == len(said(document)) + len(block.calls)
        assert all(call in said(again) for call in own)


def test_the_setting_of_reasoning_is_the_readers() -> None:  # ruling 45
    options = ReadOptions(reasoning_tags=("plan",))
    text = f"<plan>{ACTION}</plan>"
    document = read_text(text, "auto", options)
    fix = made_live(document, document.blocks[0], lambda other: read_text(other, "auto", options))
    assert fix is not None
    assert live(text, fix.edits) == f"<plan></plan>\n\n{ACTION}"
