"""Where in a call block the cursor stands, from the text around it alone.

Completion works in text that is half-written, where reading finds no call yet. So this looks only at the block around the
cursor: which protocol, which tool, which parameters are there, and whether a name or a value is being typed. One pass over the
block, bounded. Must not know tools.
"""

from __future__ import annotations

import re

from tamis.server.analysis.completion.action_cursor import in_action
from tamis.server.analysis.completion.cursor_place import Cursor
from tamis.server.analysis.completion.pair_cursor import TAM, VCP, in_fields

__all__ = ["Cursor", "find_cursor"]

MAX_BLOCK_CHARS = 256 * 1024

_OPENERS = re.compile(
    r"(?i:(?P<action><action>)|(?P<tam><\|?\[request_tool\]\|?>)|(?P<vcp><{2,4}\[tool_request(?:_?exp)?\]>{2,4}))"
)
_CLOSERS = {
    "action": re.compile(r"(?i:</\s{0,8}action\s{0,8}>)"),
    "tam": re.compile(r"(?i:<\|?\[end_tool\]\|?>)"),
    "vcp": re.compile(r"(?i:<{2,4}\[end_tool_request(?:_?exp)?\]>{2,4})"),
}


def find_cursor(text: str, offset: int) -> Cursor | None:
    """The cursor's place inside the block around ``offset``; None outside every block."""
    opener = _last_opener(text, max(0, offset - MAX_BLOCK_CHARS), offset)
    if opener is None:
        return None
    protocol = opener.lastgroup or ""
    closer = _CLOSERS[protocol]
    if closer.search(text, opener.end(), offset) is not None:
        return None
    ceiling = min(len(text), offset + MAX_BLOCK_CHARS)
    closing = closer.search(text, offset, ceiling)
    following = _OPENERS.search(text, offset, ceiling)
    end = min(closing.start() if closing else ceiling, following.start() if following else ceiling)
    if protocol == "action":
        return in_action(text, opener.end(), offset, end)
    if protocol == "tam":
        return in_fields(text, opener.end(), offset, end, TAM)
    return in_fields(text, opener.end(), offset, end, VCP)


def _last_opener(text: str, floor: int, offset: int) -> re.Match[str] | None:
    """The last opening marker before the cursor: from one ``<`` to the one before it, so that prose costs nothing."""
    at = text.rfind("<", floor, offset)
    while at >= 0:
        found = _OPENERS.match(text, at, offset)
        if found is not None:
            return found
        at = text.rfind("<", floor, at)
    return None
