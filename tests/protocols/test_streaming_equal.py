"""Streaming equals reading the whole text, at every split point and whatever follows (ruling 11, P8, P9)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.model import ReadOptions
from tamis.protocols.reader import read_text
from tamis.protocols.streaming.reader import outside_blocks
from tests.protocols.corpus_adapter import tools
from tests.protocols.streams import check_feeds, check_stream, feed, pieces

FILES = ["action_tag", "action_inputs", "tam", "vcp", "negatives"]
ACTION = "<ACTION><T><a>x</a></T></ACTION>"
TAM = "\n<|[REQUEST_TOOL]|>\ncommand:»»»x«««\np:»»»v«««\n<|[END_TOOL]|>\n"
VCP = "\n<<<[TOOL_REQUEST]>>>\ntool_name:「始」x「末」,\np:「始」v「末」\n<<<[END_TOOL_REQUEST]>>>\n"
SNIPPETS = [
    *("<ACTION>", "</ACTION>", "<T>", "</T>", "<a>", "</a>", "<a>x</a>", "<a/>", "</a></T></ACTION>", "<ACTION><T/></ACTION>"),
    *("<![CDATA[", "]]>", "<!--", "-->", "&lt;", "<", ">", "text", "\n", " ", "\r\n", "```", "```xml\n", "\n```", "`", "``", "~~~"),
    *("<think>", "</think>", "<think>a</think>", "<tool_id>t</tool_id>", "<inputs>", "</inputs>", '<input name="q">', "</input>"),
    *("\u200b", "</", "<ACTION", "\\", "＜ACTION＞", "＜/ACTION＞", "<|[REQUEST_TOOL]|>", "<|[END_TOOL]|>", "»»»", "«««", "command:"),
    *("<<<[TOOL_REQUEST]>>>", "<<<[END_TOOL_REQUEST]>>>", "「始」", "「末」", "tool_name:", "p:", ">>>", "<<<"),
    *("<<<[TOOL_RESULT]>>>", "<<<[END_TOOL_RESULT]>>>", ACTION, TAM, VCP, '{"toolName":"x","arguments":{}}', "{", "}", "[", "]", "// c"),
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(SNIPPETS), max_size=16).map("".join)
OPTIONS = st.builds(
    ReadOptions,
    reasoning_calls=st.sampled_from(["ignore", "run"]),
    fenced_calls=st.sampled_from(["auto", "run", "ignore"]),
    allow_multiple_blocks=st.booleans(),
    max_blocks=st.sampled_from([1, 2, 100_000]),
)


def rows(corpora: Path, name: str) -> list[dict[str, Any]]:
    lines = (corpora / "calls" / f"{name}.jsonl").read_text("utf-8").splitlines()
    return [row for row in map(json.loads, lines) if "text" in row]


@pytest.mark.parametrize("name", FILES)
def test_every_corpus_text_cut_in_two_gives_what_the_whole_gives(corpora: Path, name: str, is_long: bool) -> None:
    for row in rows(corpora, name):
        text, options = row["text"], ReadOptions(tools=tools(row))
        whole = read_text(text, options=options)
        outside = outside_blocks(whole)
        step = 1 if is_long else max(1, len(text) // 4)
        for cut in range(len(row["id"]) % step, len(text), step):
            check_feeds(feed([text[:cut], text[cut:]], options=options), whole, outside)


@pytest.mark.slow
@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("name", FILES)
def test_every_corpus_text_one_character_at_a_time_gives_what_the_whole_gives(
    corpora: Path, name: str, complete: bool, is_long: bool
) -> None:
    found = rows(corpora, name)
    for row in found if is_long else found[complete::10]:
        protocol = row["protocol"].split("-")[0]
        check_stream(
            list(row["text"]),
            protocol if protocol in ("action", "tam", "vcp") else "auto",
            ReadOptions(tools=tools(row)),
            complete=complete,
        )


@given(TEXTS, OPTIONS, st.data(), st.booleans())
def test_any_cutting_of_any_text_gives_what_the_whole_gives(
    text: str, options: ReadOptions, data: Any, complete: bool
) -> None:  # P8
    cuts = data.draw(st.sets(st.integers(0, len(text)), max_size=20))
    protocol = data.draw(st.sampled_from(["auto", "auto", "action", "tam", "vcp", "json"]))
    check_stream(pieces(text, cuts), protocol, options, complete=complete)


@given(TEXTS, OPTIONS)
def test_one_character_at_a_time_gives_what_the_whole_gives(text: str, options: ReadOptions) -> None:  # P8
    check_stream(list(text), options=options)


@given(TEXTS, TEXTS, OPTIONS)
def test_what_was_given_stands_whatever_follows(text: str, more: str, options: ReadOptions) -> None:  # P9
    given_before = feed(list(text), options=options)
    whole = read_text(text + more, options=options)
    check_feeds(given_before, whole, outside_blocks(whole))


@pytest.mark.parametrize("block", [ACTION, TAM, VCP])
@given(before=TEXTS, more=TEXTS)
def test_a_good_block_stands_whatever_follows(block: str, before: str, more: str) -> None:  # P9
    given_before = feed(list(before + block))
    whole = read_text(before + block + more)
    check_feeds(given_before, whole, outside_blocks(whole))


@given(st.text(max_size=300), st.data())
def test_random_text_never_raises(text: str, data: Any) -> None:
    check_stream(pieces(text, data.draw(st.sets(st.integers(0, len(text)), max_size=8))))
