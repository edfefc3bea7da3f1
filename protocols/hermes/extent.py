"""Where a block of JSON ends: brackets are followed through strings, so that a marker inside a string is text (F4, F16).

Must not know what the JSON says.
"""

from __future__ import annotations

import msgspec

from tamis.protocols.base import Source
from tamis.protocols.invisible import IN_JSON
from tamis.protocols.jsontext.spoken import COMMENT, STRING
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span

OPEN = "<tool_call>"
CLOSE = "</tool_call>"
_NAME = r"(?i:tool[_\- ]?calls?)"
OPENS = lazy(rf"<(?:\|[ \t]*)?[ \t]*{_NAME}[ \t]*(?:\|[ \t]*)?>")
CLOSES = lazy(rf"<(?:\|[ \t]*)?[ \t]*(?:/[ \t]*{_NAME}|{_NAME}[ \t]*/|(?i:end_tool_call))[ \t]*(?:\|[ \t]*)?>")
_SCAN = lazy(
    rf"(?s:(?P<string>{STRING})|(?P<comment>{COMMENT})|(?P<open>[{{\[｛［])|(?P<close>[}}\]｝］])|(?P<stop><|[\"']))"
)
_BLANK = lazy(rf"[ \t\r\n{IN_JSON}]*+")
_BREAK = lazy(r"[\r\n]")

# A text may make every marker look through the strings of all that follows; after so many times its length it is refused.
_PATIENCE = 4


class Extent(msgspec.Struct, frozen=True):
    """How far one JSON value reaches.

    ``end`` is behind its last bracket, or None where it is never closed. ``sealed`` says that a marker stands in a string that is
    closed on its own line: then the text behind that marker belongs to the value, whatever else is wrong with it. ``refused`` says
    that the text was looked through too often already.
    """

    end: int | None
    sealed: bool = False
    refused: bool = False


def skip_blank(text: str, at: int, limit: int) -> int:
    """Behind blanks and invisible characters."""
    match = _BLANK.match(text, at, limit)
    return match.end() if match is not None else at


def next_marker(source: Source, at: int, limit: int) -> Span | None:
    """The next opening or closing marker, wherever it stands."""
    first = source.next_token(OPENS, at, limit)
    close = source.next_token(CLOSES, at, limit)
    return close if first is None or (close is not None and close < first) else first


def extent_of(source: Source, start: int, limit: int) -> Extent:
    """How far the value whose bracket stands at ``start`` reaches; linear in the text for all its blocks together."""
    text = source.text
    spent = source.memo.get("hermes.spent")
    spent = spent if isinstance(spent, int) else 0
    if spent > _PATIENCE * len(text) + 65_536:
        return Extent(None, refused=True)
    depth = 0
    sealed = False
    end: int | None = None
    at = start
    for match in _SCAN.finditer(text, start, limit):
        kind = match.lastgroup
        at = match.end()
        if kind == "string":
            first, last = match.span()
            if not sealed and text.find("<", first, last) >= 0:
                held = next_marker(source, first, last)
                sealed = held is not None and _BREAK.search(text, first, last) is None
        elif kind == "open":
            depth += 1
        elif kind == "close":
            depth -= 1
            if depth == 0:
                end = at
                break
        elif kind == "stop":
            if text[match.start()] != "<":
                at = limit
                break
            marker = next_marker(source, match.start(), min(limit, match.start() + 64))
            if marker is not None and marker[0] == match.start():
                break
    else:
        at = limit
    first = next_marker(source, start, limit)
    if first is not None and at > first[1]:
        # Only what lies behind the next marker can be looked at again from there.
        source.memo["hermes.spent"] = spent + at - first[1]
    return Extent(end, sealed)
