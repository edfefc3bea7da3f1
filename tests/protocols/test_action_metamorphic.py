"""Spoiled ACTION blocks are read as the good ones or refused, never otherwise (rulings 1 and 18, F1 to F9, F14 to F16).

Not among the spoilings, because two careful readers differ there: text between the parts of a structure (AX114 keeps the
whole as text), a lost opening tag around a structure, raw markup that is itself well-formed, and a text cut behind a
complete call by a host that does not know it (ruling 18: the calls that are there run).
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from random import Random

import pytest

from tamis.protocols.catalogue import severity
from tamis.protocols.model import Document, Json, ReadOptions
from tamis.protocols.reader import read_text
from tamis.protocols.repair import apply_edits, safe_edits
from tests.protocols.action_calls import Block, Part, good_block
from tests.protocols.action_perturbations import PERTURBATIONS, perturbed

UNSAFE = {"TC003", "TC007", "TC014", "AX113", "AX134"}
"""Warnings that a person settles: their fixes are unsafe by the catalogue."""
Calls = list[tuple[str, dict[str, Json]]]


def read(text: str, block: Block) -> Document:
    return read_text(text, "action", ReadOptions(complete=block.complete))


def runnable(document: Document) -> Calls:
    return [(call.tool_id, call.args(document.text)) for call in document.calls if call.executable]


def trimmed(value: Json) -> Json:
    """Without the blanks around texts, which an unclosed value loses (ruling 18), and with one kind of line end."""
    if isinstance(value, str):
        return value.replace("\r\n", "\n").replace("\r", "\n").strip()
    if isinstance(value, list):
        return [trimmed(item) for item in value]
    return {name: trimmed(part) for name, part in value.items()} if isinstance(value, dict) else value


def alike(one: Calls, other: Calls) -> bool:
    return [(tool, trimmed(args)) for tool, args in one] == [(tool, trimmed(args)) for tool, args in other]


def cases(name: str, number: int) -> list[Block]:
    """Blocks with that one thing spoiled; seeds are the places in the run, so that a failure names its own."""
    found: list[Block] = []
    for seed in range(number):
        rng = Random(f"{name} {seed}")
        block = perturbed(rng, good_block(rng), [name])
        if block.done:
            found.append(block)
    return found


def number(is_long: bool) -> int:
    return 2_000 if is_long else 20


@pytest.mark.parametrize("seed", range(4))
def test_good_blocks_are_read_exactly(seed: int, is_long: bool) -> None:
    for case in range(number(is_long)):
        block = good_block(Random(f"good {seed} {case}"))
        document = read(block.text, block)
        assert runnable(document) == [(tool, dict(args)) for tool, args in block.calls], block.text
        assert all(severity(diag) in ("hint", "information") for diag in document.diagnostics), block.text


@pytest.mark.parametrize("name", PERTURBATIONS)
def test_a_spoiled_block_is_read_the_same_or_refused(name: str, is_long: bool) -> None:
    found = cases(name, number(is_long))
    assert found
    for block in found:
        runs = runnable(read(block.text, block))
        want: Calls = [(tool, dict(args)) for tool, args in block.calls]
        if name == "cut-unknown":
            want = want[: len(runs)]
        assert not runs or alike(runs, want), block.text


def test_a_text_known_to_be_cut_never_runs(is_long: bool) -> None:  # F1
    for block in cases("cut", number(is_long) * 5):
        assert runnable(read(block.text, block)) == [], block.text


@pytest.mark.parametrize("name", PERTURBATIONS)
def test_safe_fixes_lead_to_clean_text_with_the_same_calls(name: str, is_long: bool) -> None:  # P4 P6
    for block in cases(name, number(is_long)):
        _check_repair(block)


def test_safe_fixes_of_blocks_spoiled_twice_keep_the_calls(is_long: bool) -> None:  # P4 P6
    names = list(PERTURBATIONS)
    for seed in range(number(is_long) * 20):
        rng = Random(f"twice {seed}")
        _check_repair(perturbed(rng, good_block(rng), rng.sample(names, 2)), clean=False)


@pytest.mark.parametrize("name", ["action_tag", "action_inputs"])
def test_safe_fixes_of_corpus_texts_lead_to_clean_text(name: str, corpora: Path) -> None:  # P4 P6
    for line in (corpora / "calls" / f"{name}.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        complete = row["finish_reason"] != "length"
        document = read_text(row["text"], "action", ReadOptions(complete=complete))
        calls = tuple(runnable(document))
        if calls:
            _check_repair(Block("", (Part("text", row["text"]),), calls, complete))


def _check_repair(block: Block, *, clean: bool = True) -> None:
    text = block.text
    document = read(text, block)
    runs = runnable(document)
    want: Calls = [(tool, dict(args)) for tool, args in block.calls]
    for _ in range(4):
        edits = safe_edits(document.diagnostics)
        if not edits:
            break
        assert all(a.end <= b.start for a, b in itertools.pairwise(edits)), block.text
        assert all(0 <= edit.start <= edit.end <= len(text) for edit in edits)
        text = apply_edits(text, edits)
        document = read(text, block)
        again = runnable(document)
        if runs:
            assert again == runs or alike(again, runs), (block.text, text)
        elif clean:
            # What was refused stays refused, or a repair of its spelling makes it the good call.
            assert not again or alike(again, want[: len(again)]), (block.text, text)
    else:
        pytest.fail(f"still being repaired after four rounds: {block.text!r}")
    if runs and clean:
        left = {diag.code for diag in document.diagnostics if severity(diag) == "warning"} - UNSAFE
        assert not left, (block.text, text)
