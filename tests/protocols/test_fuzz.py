"""What must hold for every text holds for thousands of broken ones (ruling 10, F1, V02, P6, P9, P11)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tamis.protocols.model import Document, ReadOptions
from tests.protocols import fuzz
from tests.protocols.fuzz import Case, RuleError, cases, check, corpus_texts, failure_of, make_case, minimised, run


def test_mutated_texts_are_read_within_the_rules(is_long: bool) -> None:
    if is_long:
        seed = str(random.randrange(10**9))
        done, found = run(seed, seconds=600)
    else:
        seed = "ci"
        done, found = run(seed, count=1_000)
    assert {kind: case.text for kind, case in found.items()} == {}, f"seed {seed}, {done} cases"


@pytest.mark.slow
def test_no_cut_inside_a_good_block_runs_its_call() -> None:  # ruling 1 F1 P9
    rng = random.Random("cuts")
    for _ in range(60):
        text = fuzz.good_block(rng)
        document = fuzz.read(text, "auto", ReadOptions())
        (block,) = document.blocks
        assert block.close is not None
        wanted = [(call.tool_id, call.args(text)) for call in document.calls if call.executable]
        assert len(wanted) == 1, text
        for cut in {rng.randint(block.open[1], block.span[1] - 1) for _ in range(8)}:
            part = fuzz.read(text[:cut], "auto", ReadOptions(complete=False))
            runs = [(call.tool_id, call.args(text)) for call in part.calls if call.executable]
            # `>>` for `>>>` is a closing marker too (ruling 28): then the whole call is there.
            assert runs == [] or (cut > block.close[1] - 2 and runs == wanted), text[:cut]


@pytest.mark.slow
@pytest.mark.parametrize("complete", [True, False])
def test_the_corpus_itself_is_read_within_the_rules(corpora: Path, complete: bool, is_long: bool) -> None:
    texts = corpus_texts()
    assert len(texts) > 100
    # Each text once, as a whole answer or as one that goes on; with `--long` as both.
    for text in texts if is_long else texts[complete::2]:
        check(Case(text, "auto", ReadOptions(complete=complete)))


def test_cases_are_the_same_for_the_same_seed() -> None:
    texts = corpus_texts()
    first, second = cases(5, texts), cases(5, texts)
    assert [next(first) for _ in range(50)] == [next(second) for _ in range(50)]


def test_mutations_reach_every_protocol_and_every_state() -> None:
    """A fuzzer that only makes noise finds nothing: its texts must hold blocks that run, that are cut off, and that are refused."""
    seen: set[tuple[str, str]] = set()
    for number in range(600):
        case = make_case(random.Random(f"reach:{number}"), [])
        seen |= {(block.protocol, block.state) for block in fuzz.read(case.text, "auto", case.options).blocks}
    for protocol in ("action", "tam", "vcp"):
        assert {state for name, state in seen if name == protocol} >= {"complete", "truncated", "rejected"}


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (lambda document: setattr(document, "trailing_span", (9, 9)), "text lost at an end"),
        (lambda document: setattr(document.calls[0], "complete", False), "a doubtful call may run"),
        (lambda document: setattr(document.calls[0].params[0].value, "span", (0, 99)), "value outside its place"),
        (lambda document: document.blocks.append(document.blocks[0]), "block outside its place"),
    ],
)
def test_a_broken_reader_is_found(monkeypatch: pytest.MonkeyPatch, spoil: object, kind: str) -> None:
    assert callable(spoil)
    reading = fuzz.read_text

    def spoilt(text: str, protocol: str = "auto", options: ReadOptions | None = None) -> Document:
        document = reading(text, protocol, options)
        if document.calls:
            spoil(document)
        return document

    monkeypatch.setattr(fuzz, "read_text", spoilt)
    text = "Text.\n<ACTION><t><a>x</a></t></ACTION>\nmore"
    case = Case(text, "auto", ReadOptions())
    with pytest.raises(RuleError, match=kind):
        check(case)
    small = minimised(case, kind)
    assert len(small.text) < len(text)
    assert failure_of(small) == kind
