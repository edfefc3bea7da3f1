"""Positions: code points to UTF-8, UTF-16 and UTF-32 columns and back (ruling 9, S9)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.positions import LineIndex, PositionEncoding

TEXTS = st.text(alphabet=st.sampled_from("ab \t\n\r\f\v\x85\u2028é你😀\U0010ffff\ud800"), max_size=40)
ENCODINGS: tuple[PositionEncoding, ...] = ("utf-8", "utf-16", "utf-32")


def lines_of(text: str) -> list[str]:
    """Lines as LSP cuts them, computed the slow and obvious way."""
    lines = [""]
    at = 0
    while at < len(text):
        if text.startswith("\r\n", at):
            lines.append("")
            at += 2
        elif text[at] in "\r\n":
            lines.append("")
            at += 1
        else:
            lines[-1] += text[at]
            at += 1
    return lines


def units(text: str, encoding: PositionEncoding) -> int:
    if encoding == "utf-32":
        return len(text)
    width = 2 if encoding == "utf-16" else 1
    return len(text.encode("utf-16-le" if encoding == "utf-16" else "utf-8", "surrogatepass")) // width


@given(TEXTS, st.sampled_from(ENCODINGS))
def test_every_offset_converts_and_comes_back(text: str, encoding: PositionEncoding) -> None:
    index = LineIndex(text)
    for offset in range(len(text) + 1):
        line, character = index.position(offset, encoding)
        start, end = index.line_span(line)
        # The only offsets that do not come back are those inside a line end, where LSP has no column.
        assert index.offset(line, character, encoding) == min(offset, end)
        assert character == units(text[start:offset], encoding)


@given(TEXTS)
def test_lines_end_where_lsp_says_and_nowhere_else(text: str) -> None:
    index = LineIndex(text)
    assert [text[slice(*index.line_span(line))] for line in range(index.line_count)] == lines_of(text)


@given(TEXTS, st.integers(-5, 60), st.integers(-5, 60), st.sampled_from(ENCODINGS))
def test_any_position_gives_an_offset_in_the_text(
    text: str, line: int, character: int, encoding: PositionEncoding
) -> None:
    assert 0 <= LineIndex(text).offset(line, character, encoding) <= len(text)


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 10), ("utf-16", 4), ("utf-32", 3)])
def test_an_emoji_counts_four_bytes_two_units_or_one(encoding: PositionEncoding, column: int) -> None:
    assert LineIndex("你😀好x").position(3, encoding) == (0, column)


def test_a_column_inside_a_surrogate_pair_is_the_start_of_the_character() -> None:
    assert LineIndex("a😀b").offset(0, 2, "utf-16") == 1


def test_a_column_past_the_end_of_the_line_is_its_end() -> None:
    index = LineIndex("ab\r\ncd")
    assert index.offset(0, 99, "utf-16") == 2
    assert index.offset(99, 0, "utf-16") == 6
