"""Tokens of TAM and VCP blocks: without gaps, and what they are called is what they are."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given

from tamis.protocols.lossless import block_tokens
from tamis.protocols.model import Document
from tamis.protocols.reader import read_text
from tests.growth import growth
from tests.protocols.pair_reading import BUILDERS, faulty
from tests.protocols.tam_vcp_blocks import tam, vcp
from tests.protocols.tam_vcp_texts import SOUP


def check(document: Document) -> None:
    """The tokens of each block are its text, and every name and value of its calls is a token or lies in one."""
    for block in document.blocks:
        if block.protocol not in BUILDERS:
            continue
        tokens = block_tokens(document, block)
        assert [tokens[0].start, tokens[-1].end] == list(block.span)
        assert all(a.end == b.start and a.start < a.end for a, b in pairwise(tokens))
        assert tokens[0].kind == "marker" and (tokens[0].start, tokens[0].end) == block.open
        if block.close is not None:
            assert any((t.start, t.end) == block.close and t.kind == "marker" for t in tokens)
        keys = {(t.start, t.end) for t in tokens if t.kind == "key"}
        values = [t for t in tokens if t.kind == "value"]
        for call in block.calls:
            for param in call.params:
                assert param.name_span in keys
                start, end = param.value.span
                assert start == end or any(t.start <= start and end <= t.end for t in values)


def kinds(text: str) -> list[tuple[str, str]]:
    document = read_text(text)
    return [(t.kind, text[t.start : t.end]) for t in block_tokens(document, document.blocks[0]) if t.kind != "blank"]


def test_a_tam_block_is_cut_into_what_it_is_written_with() -> None:
    assert kinds(tam("# plan", "- command：>>>T.t<<<,", "words", "x:1«««")) == [
        ("marker", "<|[REQUEST_TOOL]|>"),
        ("comment", "# plan"),
        ("decoration", "-"),
        ("key", "command"),
        ("separator", "："),
        ("delimiter", ">>>"),
        ("value", "T.t"),
        ("delimiter", "<<<"),
        ("separator", ","),
        ("noise", "words"),
        ("key", "x"),
        ("separator", ":"),
        ("value", "1"),
        ("delimiter", "«««"),
        ("marker", "<|[END_TOOL]|>"),
    ]


def test_a_vcp_block_is_cut_into_what_it_is_written_with() -> None:
    assert kinds(vcp("tool_name:「始」A「末」,", "x: {始}1{末}")) == [
        ("marker", "<<<[TOOL_REQUEST]>>>"),
        ("key", "tool_name"),
        ("separator", ":"),
        ("delimiter", "「始」"),
        ("value", "A"),
        ("delimiter", "「末」"),
        ("separator", ","),
        ("key", "x"),
        ("separator", ":"),
        ("delimiter", "{始}"),
        ("value", "1"),
        ("delimiter", "{末}"),
        ("marker", "<<<[END_TOOL_REQUEST]>>>"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("protocol", BUILDERS)
def test_tokens_of_blocks_with_faults_leave_nothing_out(protocol: str) -> None:
    for seed in range(1_000):
        found = faulty(protocol, seed, 1 + seed % 2)
        if found is not None:
            check(read_text(found[0].text()))


@given(SOUP)
def test_tokens_of_any_block_leave_nothing_out(text: str) -> None:
    check(read_text(text))
    check(read_text(tam("command:»»»T.t«««", text)))
    check(read_text(vcp("tool_name:「始」T「末」", text)))


@pytest.mark.parametrize("name", ["tam", "vcp"])
def test_tokens_of_the_corpus_leave_nothing_out(corpora: Path, name: str) -> None:
    for line in (corpora / "calls" / f"{name}.jsonl").read_text("utf-8").splitlines():
        check(read_text(json.loads(line)["text"]))


def test_time_grows_with_the_block() -> None:
    def tokens(text: str) -> object:
        document = read_text(text)
        return block_tokens(document, document.blocks[0])

    assert growth(lambda n: tam("command:»»»T.t«««", *(f"# c\np{i}:»»»v«««" for i in range(n))), tokens, 1_000) <= 8
    assert growth(lambda n: tam("command:»»»T.t«««", *(f"words {i}" for i in range(n)), "# c"), tokens, 1_000) <= 8
