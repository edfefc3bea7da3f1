"""What markers, marks and a protocol's own fields mean, in a sentence or two (seeds 000 to 002, rulings 12 to 30)."""

from __future__ import annotations

import re
from functools import cache

from tamis.protocols.model import Call
from tamis.protocols.plugins import SHIPPED, editing_of


def about_field(protocol: str, key: str, calls: list[Call]) -> str:
    """What a key means that is no parameter, as Markdown; empty for one that means nothing."""
    return editing_of(protocol).about_field(key, calls)


@cache
def lone_marker() -> re.Pattern[str]:
    """A marker of any protocol, wherever it stands."""
    return re.compile("(?i)" + "|".join(marker for name in SHIPPED if (marker := editing_of(name).marker)))


def about_marker(text: str) -> str:
    """What a marker or mark means, as Markdown; empty for any other text."""
    text = text.strip()
    explained = (row for name in SHIPPED for row in editing_of(name).explained)
    return next((meaning for pattern, meaning in explained if pattern.fullmatch(text)), "")
