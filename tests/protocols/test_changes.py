"""Edits between texts: what two lists do one after the other, done at once; comparing lines that repeat is bounded."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols import changes
from tamis.protocols.changes import applied, are_in_order, composed, line_edits
from tamis.protocols.model import Edit


@st.composite
def edited(draw: st.DrawFn) -> tuple[str, list[Edit], list[Edit]]:
    text = draw(st.text("ab\n", max_size=12))
    first = draw(edits_of(text))
    return text, first, draw(edits_of(applied(text, first)))


@st.composite
def edits_of(draw: st.DrawFn, text: str) -> list[Edit]:
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8, unique=True)))
    return [
        Edit(start, end, draw(st.text("abX\n", max_size=3)))
        for start, end in zip(places[::2], places[1::2], strict=False)
    ]


@given(edited())
def test_edits_of_edits_are_composed(case: tuple[str, list[Edit], list[Edit]]) -> None:
    text, first, second = case
    edits = composed(text, first, second)
    assert are_in_order(edits)
    assert applied(text, edits) == applied(applied(text, first), second)


@pytest.mark.parametrize("wanted", ["same();\n" * 2_000, "same();\n" * 1_990])
def test_lines_that_repeat_are_not_compared_with_one_another(wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison of a thousand equal lines takes minutes (issue 16)."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("compared")

    before = "first\n" + "same();\n" * 1_000 + "middle\n" + "same();\n" * 999 + "last\n"
    after = "1\n" + wanted + "2\n"
    monkeypatch.setattr(difflib, "SequenceMatcher", refuse)
    assert changes.applied(before, line_edits(before, after)) == after
