"""Runs of backticks that can quote nothing are passed over; what is read is the same as if each were looked at."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols import reader
from tamis.protocols.model import Document, ReadOptions
from tamis.protocols.reader import read_text

ACTION = '<ACTION>\n<tool_id>core:echo</tool_id>\n<inputs>\n<input name="a">x`y</input>\n</inputs>\n</ACTION>'
FRAGMENTS = [
    "`",
    "``",
    "```",
    "```\n",
    "````xml\n",
    "~~~\n",
    "\n",
    "\r\n",
    "\r",
    " ",
    "text ",
    "<ACTION>",
    "</ACTION>",
    ACTION,
]
FRAGMENTS += ["<<<[TOOL_REQUEST]>>>", "<<<[END_TOOL_REQUEST]>>>", "<think>", "</think>", "&lt;ACTION&gt;", "＜ACTION＞"]
FRAGMENTS += ["《《[TOOL_REQUEST]》》", "\\<ACTION>", "<table>", "`<ACTION>`", "``a``", "`a`b", "<\nACTION>", "> "]


def every_run(text: str, options: ReadOptions) -> Document:
    """The text read with a look at every run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader._Scan, "_run", lambda scan, at: reader.TICKS.search(scan._text, at))
        return read_text(text, "auto", options)


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join), st.sampled_from(["auto", "run"]))
def test_passing_over_inline_code_changes_nothing(text: str, fenced: str) -> None:
    options = ReadOptions(fenced_calls="run" if fenced == "run" else "auto")
    assert read_text(text, "auto", options) == every_run(text, options)


def test_inline_code_far_from_any_marker_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    run = reader.Context.run
    monkeypatch.setattr(
        reader.Context, "run", lambda context, start, end: asked.append(start) or run(context, start, end)
    )
    document = read_text("a `b` and ``c``\n\n" * 500 + "`<ACTION>`\n\n" + ACTION + "\n" + "a `b` and ``c``\n\n" * 500)
    assert len(document.calls) == 1 and [diag.code for diag in document.diagnostics] == ["TC009"]
    assert len(asked) == 1
