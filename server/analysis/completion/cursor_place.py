"""A cursor's place inside a call block, and small looks at the text around it. Must not know protocols."""

from __future__ import annotations

import re
from collections import deque
from typing import Literal

import msgspec

from tamis.protocols.positions import Span

MAX_SHORT_CHARS = 200

Expect = Literal["tool", "parameter", "attribute", "value", "open", "close", "field", "nothing"]


class Cursor(msgspec.Struct, frozen=True):
    """What is being typed inside a block.

    ``expect`` says what belongs at the cursor and ``span`` what of it is typed already. ``path`` leads from the tool to the
    value (parameter name, then keys of nested elements). ``present`` are the names that the call has already.
    """

    protocol: str
    expect: Expect
    span: Span
    tool_id: str = ""
    path: tuple[str, ...] = ()
    present: frozenset[str] = frozenset()
    suffix: str = ""
    """``_N`` of the step the cursor is in, where a block has several."""
    steps: tuple[int, ...] = ()
    shape: Literal["tag", "inputs", ""] = ""
    open_tags: tuple[str, ...] = ()
    bare: bool = False
    """Only the name belongs here: inside ``name="…"``, or before a ``:`` that is there already."""
    value: Span = (0, 0)
    """The source of the whole value around the cursor, as far as it can be told; ``container`` is what it stands in."""
    container: str = ""


def whole_value(text: str, span: Span, stop: int) -> Span:
    """A value up to its end, where it is a short one on one line: choosing another replaces all of it."""
    start, offset = span
    rest = text[offset:stop].rstrip() if 0 <= stop - offset <= MAX_SHORT_CHARS else "\n"
    return span if "\n" in rest or "\r" in rest or "\n" in text[start:offset] else (start, offset + len(rest))


def first_char(text: str, start: int, end: int) -> int:
    """The first character that is not blank; ``end`` where all are."""
    while start < end and text[start].isspace():
        start += 1
    return start


def last_match(pattern: re.Pattern[str], text: str, start: int, end: int) -> re.Match[str] | None:
    """The last match in a stretch of text."""
    return next(iter(deque(pattern.finditer(text, start, end), maxlen=1)), None)
