"""What is typed for a person who types: the end of a mark or an element, the indentation of a new line. Only where it is sure.

Looks at the block around the cursor alone, as completion does.
"""

from __future__ import annotations

import re

from tamis.protocols.model import Edit
from tamis.protocols.plugins import extras_of
from tamis.server.analysis.completion.cursor import find_cursor
from tamis.server.analysis.kinds import MAX_ANALYSED_CHARS
from tamis.server.analysis.shown.formatting import Layout
from tamis.server.analysis.snapshot import Snapshot

TRIGGERS = (">", "»", "」", "\n")
MAX_LOOKED = 256 * 1024

_HEAD = re.compile(r"「始(ESCAPE|exp)?」\Z")
_OPENED = re.compile(r"<([^\s<>/!?&\"'=]{1,256})(?:\s[^<>]{0,1024})?>\Z")
_RAW = re.compile(r"<!\[CDATA\[|<!--|\]\]>|-->")


def on_type(snapshot: Snapshot, offset: int, typed: str, layout: Layout | None = None) -> tuple[Edit, ...]:
    """The edits after ``typed``, which ends at ``offset``; none nearly everywhere."""
    text = snapshot.text
    if snapshot.kind != "text" or len(text) > MAX_ANALYSED_CHARS or not 0 < offset <= len(text):
        return ()
    if typed == "\n":
        return _indent(text, offset, layout or Layout())
    if text[offset - 1] != typed:
        return ()
    if typed == "»":
        return _tail(text, offset, "»»»", "«««", "tam")
    if typed == "」":
        head = _HEAD.search(text, max(0, offset - 12), offset)
        return _tail(text, offset, head[0], f"「末{head[1] or ''}」", "vcp") if head is not None else ()
    if typed == ">":
        return _element(text, offset)
    return ()


def _tail(text: str, offset: int, head: str, tail: str, protocol: str) -> tuple[Edit, ...]:
    """The closing mark, if the rest of the line is free."""
    if not text.endswith(head, 0, offset) or text[offset - len(head) - 1 : offset - len(head)] == head[0]:
        return ()
    line = text[offset : _line_end(text, offset)]
    if line.strip(" \t,，"):
        return ()
    start = _line_start(text, offset)
    # The mark ends a key's line, so that a text which only speaks of marks is left alone.
    if re.fullmatch(r"[ \t>*-]*[^\n:：]{1,256}[:：][ \t]*", text[start : offset - len(head)]) is None:
        return ()
    cursor = find_cursor(text, offset - len(head))
    if cursor is None or cursor.protocol != protocol or cursor.expect == "value":
        return ()
    if _closes_later(text, offset, head, tail):
        return ()
    return (Edit(offset, offset, tail),)


def _closes_later(text: str, offset: int, head: str, tail: str) -> bool:
    """Whether a closing mark comes before the next opening one and before the next key: then the value has its end already."""
    limit = min(len(text), offset + MAX_LOOKED)
    closing = text.find(tail, offset, limit)
    if closing < 0:
        return False
    opening = text.find(head, offset, limit)
    return opening < 0 or closing < opening


def _element(text: str, offset: int) -> tuple[Edit, ...]:
    """The closing tag of an element of an ACTION block that was just opened."""
    opened = _OPENED.search(text, max(0, offset - 1400), offset)
    if opened is None or opened[0].endswith("/>"):
        return ()
    name = opened[1]
    rest = text[offset : _line_end(text, offset)].lstrip(" \t")
    if rest and not rest.startswith("</"):
        # What follows on the line may be meant to stand inside.
        return ()
    if name == "ACTION":
        return (
            ()
            if _inline(text, opened.start()) or _has_closer(text, offset, name)
            else (Edit(offset, offset, "</ACTION>"),)
        )
    cursor = find_cursor(text, opened.start())
    if (
        cursor is None
        or not extras_of(cursor.protocol).elements
        or cursor.expect == "nothing"
        or _in_raw(text, opened.start())
    ):
        return ()
    # In a value, markup is text more often than an element.
    if cursor.expect == "value" and text[_line_start(text, opened.start()) : opened.start()].strip():
        return ()
    if _has_closer(text, offset, name):
        return ()
    return (Edit(offset, offset, f"</{name}>"),)


def _inline(text: str, at: int) -> bool:
    """Whether a marker stands in a line of prose or in code marks, and so is only spoken of."""
    return bool(text[_line_start(text, at) : at].strip()) or text[at - 1 : at] == "`"


def _in_raw(text: str, at: int) -> bool:
    last = None
    for match in _RAW.finditer(text, max(0, at - MAX_LOOKED), at):
        last = match[0]
    return last is not None and last.startswith("<!")


def _has_closer(text: str, offset: int, name: str) -> bool:
    """Whether the element is closed already: a closing tag of that name before another opening one, in this block."""
    limit = min(len(text), offset + MAX_LOOKED)
    end = text.find("</ACTION>", offset, limit)
    if name != "ACTION" and end >= 0:
        limit = end
    depth = 1
    for match in re.finditer(rf"<(/?){re.escape(name)}(?=[\s>/])", text[offset:limit]):
        depth += -1 if match[1] else 1
        if depth == 0:
            return True
    return False


def _indent(text: str, offset: int, layout: Layout) -> tuple[Edit, ...]:
    """The indentation of a new line between the elements of an ACTION block."""
    cursor = find_cursor(text, offset)
    if (
        cursor is None
        or not extras_of(cursor.protocol).elements
        or cursor.expect not in ("tool", "parameter")
        or _in_raw(text, offset)
    ):
        return ()
    start = _line_start(text, offset)
    end = start
    while end < len(text) and text[end] in " \t":
        end += 1
    if start > offset or end < offset:
        return ()
    # A closing tag stands where its element began.
    depth = len(cursor.open_tags) + 1 - (1 if text.startswith("</", end) else 0)
    wanted = _margin(text, start) + layout.indent * depth
    return () if text[start:end] == wanted else (Edit(start, end, wanted),)


def _margin(text: str, start: int) -> str:
    """The indentation of the line where the block begins."""
    at = text.rfind("<ACTION>", max(0, start - MAX_LOOKED), start)
    if at < 0:
        return ""
    line = _line_start(text, at)
    blank = text[line:at]
    return blank if not blank.strip() else blank[: len(blank) - len(blank.lstrip())]


def _line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def _line_end(text: str, at: int) -> int:
    return min((i for i in (text.find("\n", at), text.find("\r", at)) if i >= 0), default=len(text))
