"""What the end of a text that goes on may be the beginning of: markers cut in two (F17).

One pattern for each kind of marker is built from its parts so that it matches every beginning of it that ends where the
text ends. The patterns may take a little more than the protocols' own (then a few characters are shown one token later),
never less. Must not know blocks.
"""

from __future__ import annotations

import re
from functools import cache

from tamis.protocols.invisible import IN_LAYOUT
from tamis.protocols.marks import marks_of
from tamis.protocols.patterns import lazy
from tamis.protocols.plugins import BUILT_IN, extras_of, find_protocol

INSIDE = rf"[{IN_LAYOUT}\u00ad\u200e\u200f]*+"
BLANKS = rf"[ \t{IN_LAYOUT}]*+"
GAP = rf"[ \t_\-{IN_LAYOUT}]*+"


def begun(*parts: str) -> str:
    """A pattern for every beginning of ``parts``, one after the other, up to the end of the text."""
    pattern = ""
    for part in reversed(parts):
        pattern = f"{part}(?:{pattern})?+" if pattern else part
    return rf"(?:{pattern})\Z"


def word_begun(word: str) -> list[str]:
    """The letters of a word in any case, as parts for ``begun``; what nobody sees may stand between them."""
    return [f"(?i:{letter}){INSIDE}" for letter in word]


_RUN = r"`++\Z|~++\Z"
_HEAD = lazy(r"\W*+\w++")
MAX_OPENER = 512
"""Characters of a plug-in's opening marker behind its first word, at most: so long is text behind that word held back."""


def _plugged(name: str) -> str:
    """The beginnings of a plug-in's marker: its first word, in any case, with blanks and bars, and what an opener may say behind it."""
    protocol = find_protocol(name)
    marker = (protocol.markers.open if protocol is not None else "") or "<"
    head = _HEAD.match(marker)
    marker = head.group() if head is not None else marker
    junk = r"[ \t|_\-]*+"
    parts = [f"(?i:{re.escape(char)}){'' if char.isalnum() or not i else '?+'}{junk}" for i, char in enumerate(marker)]
    return begun(*parts, rf"(?s:.{{0,{MAX_OPENER}}}+)")


def _beginnings(name: str) -> str:
    return extras_of(name).begun().opener or _plugged(name)


@cache
def begun_opener(ids: tuple[str, ...]) -> re.Pattern[str]:
    """Where, at the end of a text, an opening marker may have begun."""
    return re.compile("|".join(_beginnings(i) for i in ids))


@cache
def begun_marker(ids: tuple[str, ...]) -> re.Pattern[str]:
    """Where, at the end of a text, anything may have begun that the pass over it has to take note of."""
    others = (extras_of(i).begun().other for i in ids)
    return re.compile("|".join([*map(_beginnings, ids), *filter(None, others), _RUN]))


@cache
def opener(ids: tuple[str, ...]) -> re.Pattern[str]:
    """An opening marker of any of the protocols; VCP's definition and result blocks, which are text, are none."""
    parts: list[str] = []
    for i in ids:
        protocol = find_protocol(i)
        if protocol is not None:
            parts.append((extras_of(i).requests or protocol.opener).pattern)
    return re.compile("|".join(parts) or r"(?!)")


def knows_signs(ids: tuple[str, ...]) -> bool:
    """Whether characters tell where markers may begin; else only a search for whole markers can (plug-ins)."""
    return all(i in BUILT_IN for i in ids)


@cache
def loud(tags: tuple[str, ...]) -> re.Pattern[str]:
    """A character with which a mark or a marker of the built-in protocols can begin."""
    signs = dict.fromkeys("<＜《`~" + "".join(sign for sign, _ in marks_of(tags).others))
    return re.compile(f"[{re.escape(''.join(signs))}]")
