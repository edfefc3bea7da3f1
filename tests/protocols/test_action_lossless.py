"""Tokens of ACTION blocks: without gaps, and what they are called is what they are (P11)."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from tamis.protocols.lossless import block_tokens
from tamis.protocols.model import Document, ReadOptions
from tamis.protocols.reader import read_text
from tests.growth import growth
from tests.protocols.action_calls import good_block
from tests.protocols.action_perturbations import PERTURBATIONS, perturbed
from tests.protocols.hostile_texts import STRESS


def check(document: Document) -> None:
    """The tokens of each block are its text, and every tool id, name and value of its calls is in tokens of that kind."""
    text = document.text
    for block in document.blocks:
        tokens = block_tokens(document, block)
        assert [tokens[0].start, tokens[-1].end] == list(block.span)
        assert all(a.end == b.start and a.start < a.end for a, b in pairwise(tokens))
        kind_at: dict[int, str] = {}
        for token in tokens:
            kind_at.update((at, token.kind) for at in range(token.start, token.end))
        for call in block.calls:
            assert {kind_at[at] for at in range(*call.tool_span)} <= {"tool"}
            for param in call.params:
                names = {kind_at[at] for at in range(*param.name_span)}
                assert names <= {"key", "tool"}, text
                for _, value in param.value.walk():
                    for piece in value.pieces if value.kind == "text" else ():
                        assert {kind_at[at] for at in range(piece.start, piece.end)} <= {
                            "value",
                            "entity",
                            "tool",
                            "key",
                        }


def kinds(text: str) -> list[tuple[str, str]]:
    document = read_text(text)
    return [(t.kind, text[t.start : t.end]) for t in block_tokens(document, document.blocks[0]) if t.kind != "blank"]


def test_a_block_is_cut_into_what_it_is_written_with() -> None:
    assert kinds("<ACTION>\n<T><!-- c --><a>x &lt; y</a>, <b><![CDATA[z]]></b></T></ACTION>") == [
        ("marker", "<ACTION>"),
        ("tag", "<"),
        ("tool", "T"),
        ("tag", ">"),
        ("comment", "<!-- c -->"),
        ("tag", "<"),
        ("key", "a"),
        ("tag", ">"),
        ("value", "x "),
        ("entity", "&lt;"),
        ("value", " y"),
        ("tag", "</"),
        ("key", "a"),
        ("tag", ">"),
        ("noise", ","),
        ("tag", "<"),
        ("key", "b"),
        ("tag", ">"),
        ("delimiter", "<![CDATA["),
        ("value", "z"),
        ("delimiter", "]]>"),
        ("tag", "</"),
        ("key", "b"),
        ("tag", ">"),
        ("tag", "</"),
        ("key", "T"),
        ("tag", ">"),
        ("marker", "</ACTION>"),
    ]


def test_attributes_are_cut_into_names_and_values() -> None:
    found = kinds('<ACTION><tool_id>k:Q</tool_id><inputs><input name="q" type="s">1</input></inputs></ACTION>')
    assert ("tool", "k:Q") in found
    assert ("attribute", "name") in found
    assert ("key", "q") in found
    assert ("attribute", "type") in found
    assert ("value", "s") in found


@pytest.mark.parametrize("name", ["action_tag", "action_inputs", "negatives"])
def test_every_corpus_block_is_given_back(name: str, corpora: Path) -> None:
    for line in (corpora / "calls" / f"{name}.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        check(read_text(row["text"], "action", ReadOptions(complete=row["finish_reason"] != "length")))


def test_every_spoiled_block_is_given_back(is_long: bool) -> None:
    names = list(PERTURBATIONS)
    for seed in range(40_000 if is_long else 200):
        rng = Random(f"tokens {seed}")
        block = perturbed(rng, good_block(rng), rng.sample(names, 2))
        check(read_text(block.text, "action", ReadOptions(complete=block.complete)))


@pytest.mark.share(8)
@pytest.mark.parametrize(
    "name", ["CDATA sections", "comments", "nested closed", "stray closers", "parameters", "big CDATA"]
)
def test_cutting_is_linear(name: str) -> None:  # ruling 10
    def cut(text: str) -> None:
        document = read_text(text)
        for block in document.blocks:
            block_tokens(document, block)

    assert growth(STRESS[name], cut, 1_000) <= 8
