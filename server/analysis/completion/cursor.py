"""Where in a call block the cursor stands, from the text around it alone.

Completion works in text that is half-written, where reading finds no call yet. So this looks only at the block around the
cursor: which protocol, which tool, which parameters are there, and whether a name or a value is being typed. One pass over the
block, bounded. Must not know tools.
"""

from __future__ import annotations

import re
from functools import cache

from tamis.protocols.plugins import SHIPPED, editing_of
from tamis.server.analysis.completion.action_cursor import in_action
from tamis.server.analysis.completion.cursor_place import Cursor
from tamis.server.analysis.completion.pair_cursor import in_fields

__all__ = ["Cursor", "find_cursor"]

MAX_BLOCK_CHARS = 256 * 1024


@cache
def _openers() -> re.Pattern[str]:
    """The opening markers of all protocols whose blocks can be half-written, each a group with the protocol's id."""
    named = ((name, editing_of(name).opens) for name in SHIPPED)
    return re.compile("(?i:" + "|".join(f"(?P<{name}>{opens})" for name, opens in named if opens) + ")")


def find_cursor(text: str, offset: int) -> Cursor | None:
    """The cursor's place inside the block around ``offset``; None outside every block."""
    opener = _last_opener(text, max(0, offset - MAX_BLOCK_CHARS), offset)
    if opener is None:
        return None
    protocol = opener.lastgroup or ""
    editing = editing_of(protocol)
    closer = editing.closes
    if closer.search(text, opener.end(), offset) is not None:
        return None
    ceiling = min(len(text), offset + MAX_BLOCK_CHARS)
    closing = closer.search(text, offset, ceiling)
    following = _openers().search(text, offset, ceiling)
    end = min(closing.start() if closing else ceiling, following.start() if following else ceiling)
    if editing.fields is not None:
        return in_fields(text, opener.end(), offset, end, protocol, editing.fields)
    return in_action(text, opener.end(), offset, end, protocol)


def _last_opener(text: str, floor: int, offset: int) -> re.Match[str] | None:
    """The last opening marker before the cursor: from one ``<`` to the one before it, so that prose costs nothing."""
    openers = _openers()
    at = text.rfind("<", floor, offset)
    while at >= 0:
        found = openers.match(text, at, offset)
        if found is not None:
            return found
        at = text.rfind("<", floor, at)
    return None
