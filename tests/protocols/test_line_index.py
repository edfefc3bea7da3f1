"""The line index after an edit is the index of the new text, in every encoding; and a lookup counts little."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols import positions
from tamis.protocols.positions import LineIndex, PositionEncoding

ENCODINGS: tuple[PositionEncoding, ...] = ("utf-8", "utf-16", "utf-32")
PIECES = [
    "a",
    "bc ",
    "\n",
    "\r",
    "\r\n",
    "\n\n",
    "é",
    "你好",
    "😀",
    "\U0010ffff",
    "\ud800",
    "\u2028",
    "\x85",
    "",
    "x" * 9,
]

texts = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


@pytest.fixture(params=[2, 5, 1024], ids="blocks of {}".format)
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks, so that small texts have many."""
    monkeypatch.setattr(positions, "_BLOCK", request.param)


def agree(index: LineIndex, text: str) -> None:
    """Every answer is that of an index made of the text, and that of counting."""
    fresh = LineIndex(text)
    assert index.line_count == fresh.line_count == text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
    spans = [index.line_span(line) for line in range(index.line_count)]
    assert spans == [fresh.line_span(line) for line in range(fresh.line_count)]
    assert "\n".join(text[slice(*span)] for span in spans) == text.replace("\r\n", "\n").replace("\r", "\n")
    for encoding in ENCODINGS:
        for offset in range(len(text) + 1):
            line, character = index.position(offset, encoding)
            assert (line, character) == fresh.position(offset, encoding)
            start, end = spans[line]
            assert character == units(text[start:offset], encoding)
            assert index.offset(line, character, encoding) == min(offset, end)
            # One unit more is the next character, or still this one.
            assert index.offset(line, character + 1, encoding) == fresh.offset(line, character + 1, encoding)
        assert index.offset(index.line_count, 0, encoding) == len(text)
        assert index.offset(0, 10**6, encoding) == spans[0][1]


def units(text: str, encoding: PositionEncoding) -> int:
    """Counted character by character."""
    widths = {"utf-8": (1, 2, 3, 4), "utf-16": (1, 1, 1, 2), "utf-32": (1, 1, 1, 1)}[encoding]
    return sum(widths[(char > "\x7f") + (char > "\u07ff") + (char > "\uffff")] for char in text)


def run(text: str, steps: list[tuple[float, int, str]]) -> None:
    index = LineIndex(text)
    for number, (where, width, new) in enumerate(steps):
        start = int(where * len(text))
        end = min(start + width, len(text))
        after = text[:start] + new + text[end:]
        # What was counted for one version is carried into the next, or counted only then.
        if number % 2:
            index.position(len(text), "utf-16")
        now = index.edited(start, end, new)
        assert now.text == after
        assert index.position(len(text)) == LineIndex(text).position(len(text))
        index, text = now, after
        agree(index, text)


@pytest.mark.usefixtures("block")
@given(texts, st.lists(st.tuples(st.floats(0, 1), st.integers(0, 9), st.sampled_from(PIECES)), max_size=5))
def test_an_edited_index_is_that_of_the_new_text(text: str, steps: list[tuple[float, int, str]]) -> None:
    run(text, steps)


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("a\r\nb", (0.5, 0, "x")),  # between the two halves of a line end
        ("a\rb", (0.67, 0, "\n")),  # a lone carriage return becomes half of one
        ("a\nb", (0.34, 0, "\r")),
        ("a\rx\nb", (0.4, 1, "")),
        ("a\r\nb", (0.26, 1, "")),
        ("", (0.0, 0, "a\n")),
        ("a\n", (0.0, 2, "")),
        ("😀😀", (0.5, 1, "x")),
    ],
)
def test_line_ends_that_an_edit_splits_or_joins_count_as_written(text: str, step: tuple[float, int, str]) -> None:
    run(text, [step])


@pytest.mark.usefixtures("block")
def test_long_sessions_keep_the_index_right(is_long: bool) -> None:
    chance = random.Random(5)
    for _ in range(400 if is_long else 2):
        text = "".join(chance.choices(PIECES, k=60))
        steps = [(chance.random(), chance.choice([0, 0, 1, 2, 20]), chance.choice(PIECES)) for _ in range(25)]
        run(text, steps)


def test_an_edit_in_a_large_text_makes_few_blocks_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "name = 你好\n" * 20_000
    index = LineIndex(text)
    cut: list[int] = []
    whole = positions._cut

    def counting(text: str, start: int, end: int) -> list[positions._Block]:
        cut.append(end - start)
        return whole(text, start, end)

    monkeypatch.setattr(positions, "_cut", counting)
    for at in (0, len(text) // 2, len(text)):
        index.edited(at, at, "x")
    assert max(cut) <= 5000


def test_positions_in_a_long_line_count_one_block_each(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "键😀" * 50_000
    index = LineIndex(text)
    assert index.position(len(text), "utf-16") == (0, 150_000)
    counted: list[int] = []
    count = positions._units

    def counting(text: str, encoding: PositionEncoding) -> int:
        counted.append(len(text))
        return count(text, encoding)

    monkeypatch.setattr(positions, "_units", counting)
    at = 77_777
    assert index.position(at, "utf-16") == (0, at + at // 2)
    index = index.edited(at, at, "x")
    assert index.position(90_001, "utf-16") == (0, 135_001)
    assert index.offset(0, 135_001, "utf-16") == 90_001
    assert sum(counted) <= 60_000
