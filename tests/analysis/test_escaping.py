"""A manifest's words in a hover: nothing in them becomes markup, and no more is escaped than must be (the finding of a fresh user)."""

from __future__ import annotations

import pytest

from tamis.server.analysis.hover.tools import summary


@pytest.mark.parametrize(
    "text",
    ["notes_search finds", "a__b", "名_称", "issue #12 of a > b", "wow! C# and 2 ~~", "snake_case_name"],
)
def test_what_marks_nothing_is_shown_as_it_is(text: str) -> None:
    assert summary(text) == text.replace("~", "\\~")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("_x_ y", "\\_x\\_ y"),
        ("__init__", "\\_\\_init\\_\\_"),
        ("a_*b*_c", "a\\_\\*b\\*\\_c"),
        ("# no heading", "\\# no heading"),
        ("> no quote", "\\> no quote"),
        ("![x](http://y)", "!\\[x\\](http://y)"),
        ("<img src=x> `code` [a](b) | c \\", "\\<img src=x> \\`code\\` \\[a\\](b) \\| c \\\\"),
        ("a\r# b", "a # b"),
    ],
)
def test_what_would_be_markup_is_escaped(text: str, shown: str) -> None:
    assert summary(text) == shown
