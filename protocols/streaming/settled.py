"""Whether a block that was read in a text that goes on is what it will be in the end, whatever follows.

The readers look behind a block where one reading of it hangs on what stands there: a value that may hold its own closing
tags (F4), a delimiter that may still come, a marker that may get one more bracket. Here is said when none of that can be. A
wrong "no" costs patience, a wrong "yes" could run a call that the whole text does not hold; so "no" is the answer to
everything that is not understood.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Literal

from tamis.protocols.action.match import Match, doubtful_end, match_block
from tamis.protocols.action.tokens import MARKER_KEY, NOWHERE, TagIndex, Tokens
from tamis.protocols.base import CallProtocol, Source
from tamis.protocols.invisible import IN_LAYOUT
from tamis.protocols.marks import marks_of
from tamis.protocols.model import Block
from tamis.protocols.pairs.lexer import lex
from tamis.protocols.pairs.walk import BLANK, Dialect, Lexed
from tamis.protocols.patterns import lazy
from tamis.protocols.plugins import BUILT_IN, extras_of, find_protocol
from tamis.protocols.positions import Span
from tamis.protocols.tam.dialect import DIALECT
from tamis.protocols.tam.dialect import lex_canonical as tam_canonical
from tamis.protocols.vcp.dialect import OPEN as VCP_OPEN
from tamis.protocols.vcp.dialect import OTHER_BLOCK, dialect_of
from tamis.protocols.vcp.dialect import lex_canonical as vcp_canonical

Verdict = Literal["no", "place", "yes"]
"""``place``: where the block ends and what it says is certain, but text behind it could still keep it from running."""

ACTION_MARK = lazy(r"<[\s/]{0,8}+(?i:action)(?=[\s>])")
"""The next marker behind an ACTION block: with it all is known that could keep the block from running."""
_NEXT_ACTION = lazy(r"<(?i:action)>")
BARE_PAIR = lazy(r"[^<＜]{0,200}</(?i:action)>")
"""A block in which nothing can be a call, from behind its opening marker."""
_REST_OF_LINE = 200
_CLOSING_TAG = lazy(r"\s*+</")


def settled(protocol: CallProtocol, source: Source, opener: Span, block: Block, limit: int) -> Verdict:
    """What is certain of ``block``, read from ``opener``; ``limit`` below the text's end is the end of reasoning."""
    verdict = extras_of(protocol.id).settled(source, opener, block, limit)
    return _plugged(protocol, source, block) if verdict is None else verdict


def action_settled(source: Source, opener: Span, block: Block, limit: int) -> Verdict:
    """What is certain of an ACTION block."""
    fixed = limit < len(source.text)
    text = source.text
    if text[opener[1] - 2 : opener[1]] == "/>":
        return "yes"
    if block.state == "mention":
        if (close := BARE_PAIR.match(text, opener[1], limit)) is not None:
            return "yes" if fixed or _line_known(text, close.end()) else "no"
        # Nothing but text up to the next opening marker, or to the end of the reasoning: no call can begin there.
        follow = text.find("<", opener[1], limit)
        if follow < 0:
            return "yes" if fixed and "＜" not in text[opener[1] : limit] else "no"
        known = _NEXT_ACTION.match(text, follow) is not None and "＜" not in text[opener[1] : follow]
        return "yes" if known else "no"
    if block.close is None or block.span[1] != block.close[1]:
        return "no"
    index = source.memo.get("action-tags")
    if not isinstance(index, TagIndex):
        index = source.memo["action-tags"] = TagIndex(source)
    match = match_block(Tokens(source, opener[1], block.close[1]), index)
    if not _well_nested(match, text, block.close):
        return _mended(source, opener, block.close, index) if block.calls else "no"
    # The closing tags could come a second time, and then the last value held the first ones (F4).
    again = match.close is not None and doubtful_end(match.tokens.list, match.close, text)
    if not block.calls:
        return "yes" if fixed or _line_known(text, block.close[1]) else "no"
    # How safe a fix is hangs on whether another closing marker stands behind the block (F4).
    return "place" if again or any(diag.fix is not None for diag in block.diagnostics) else "yes"


def _mended(source: Source, opener: Span, close: Span, index: TagIndex) -> Verdict:
    """A block with tags that do not fit: certain when every look ahead of the pairing ended in text that is there."""
    watched = Lookahead(index, source.text, close[1])
    match = match_block(Tokens(source, opener[1], close[1]), watched)
    if match.nested is not None or match.close is None or watched.undecided:
        return "no"
    end = match.tokens.list[match.close]
    if end.kind != "close" or (end.start, end.end) != close or source.text[end.end - 1] not in ">＞":
        return "no"
    tokens = match.tokens.list[: match.close]
    if any(token.kind == "cdata" or (token.flag and token.flag not in ("own", "own-unclear")) for token in tokens):
        return "no"
    # How a tag is written anew hangs on the next marker (F4).
    return "place"


_UNKNOWN = NOWHERE + 1
"""The place of a tag that the text may have when the rest of it is there."""


class Lookahead(TagIndex):
    """The index of a text that goes on, for one block, whose closing marker ends at ``end``: it notes whether a decision of the pairing
    (``action/match.py``) hung on text that has not come."""

    def __init__(self, index: TagIndex, text: str, end: int) -> None:
        self.opens = index.opens
        self.closes = index.closes
        self.undecided = False
        self._end = end
        # A tag that the end of the text cuts in two may become another one.
        self._whole = text.rfind(">") + 1

    def next_open(self, key: str, at: int) -> int:
        """As ``TagIndex.next_open``, or ``_UNKNOWN``."""
        return self._known(super().next_open(key, at)) if at < NOWHERE else self._lost()

    def next_close(self, key: str, at: int) -> int:
        """As ``TagIndex.next_close``, or ``_UNKNOWN``."""
        if at >= NOWHERE:
            return self._lost()
        if key == MARKER_KEY and at == self._end:
            # What a second closing marker does to the block is looked for when it comes ("place").
            return NOWHERE
        place = super().next_close(key, at)
        if self._end <= place < NOWHERE and at >= self._end:
            # Then the tags behind the block were paired too, of which nothing is known here.
            self.undecided = True
        return self._known(place)

    def is_before(self, place: int, other: int, further: Callable[[], int] | None = None) -> bool:
        """As ``TagIndex.is_before``; undecided when only text to come can tell two places apart, unless one in the text settles it."""
        if place < NOWHERE:
            return place < other and (further is None or place < further())
        if other < NOWHERE:
            return False
        if place == other == NOWHERE:
            return False
        if place == _UNKNOWN and further is not None and further() < NOWHERE:
            return False
        self.undecided = True
        return True

    def _known(self, place: int) -> int:
        return place if place < self._whole else _UNKNOWN

    def _lost(self) -> int:
        self.undecided = True
        return NOWHERE


def _line_known(text: str, at: int) -> bool:
    """Whether all is there of what tells a mention (``<ACTION>…</ACTION>`` in a sentence) from an empty block."""
    return text.find("\n", at, at + _REST_OF_LINE) >= 0 or len(text) >= at + _REST_OF_LINE


def _well_nested(match: Match, text: str, close: Span) -> bool:
    """True when each closing tag closed the innermost element: then the pairing never asked for what stands behind."""
    tokens = match.tokens.list
    if match.nested is not None or match.close is None:
        return False
    end = tokens[match.close]
    if end.kind != "close" or (end.start, end.end) != close or text[end.end - 1] not in ">＞":
        return False
    for i, token in enumerate(tokens[: match.close]):
        if token.kind == "open":
            if not i < token.partner < match.close:
                return False
        elif token.kind == "close":
            if token.partner < 0 and token.flag not in ("own", "own-unclear"):
                return False
            if token.partner >= 0 and tokens[token.partner].key != token.key:
                return False
        elif token.kind == "cdata":
            if token.flag or _CLOSING_TAG.match(text, token.end) is None:
                return False
        elif token.flag:
            return False
    return True


def tam_settled(source: Source, opener: Span, block: Block, limit: int) -> Verdict:
    """What is certain of a TAM block."""
    fixed = limit < len(source.text)
    if fixed:
        return "yes"
    if tam_canonical(source, opener[1], limit) is not None:
        return "yes"
    return _pairs(source, opener, block, limit, DIALECT)


def vcp_settled(source: Source, opener: Span, block: Block, limit: int) -> Verdict:
    """What is certain of a VCP block."""
    fixed = limit < len(source.text)
    text = source.text
    marker = text[opener[0] : opener[1]]
    if OTHER_BLOCK.fullmatch(marker):
        return "yes" if fixed or opener[1] < block.span[1] < len(text) else "no"
    if fixed:
        return "yes"
    if marker == VCP_OPEN and vcp_canonical(source, opener[1], limit) is not None:
        return "yes"
    return _pairs(source, opener, block, limit, dialect_of(marker))


def _pairs(source: Source, opener: Span, block: Block, limit: int, dialect: Dialect) -> Verdict:
    """A block of pairs whose values all have their closing delimiters ends at the next marker, whatever follows that."""
    text = source.text
    follow = BLANK.match(text, opener[1])
    at = follow.end() if follow is not None else opener[1]
    doubled = dialect.opens.match(text, at)
    if doubled is not None:
        return "yes" if doubled.end() < len(text) else "no"
    lexed = lex(source, opener[1], limit, dialect, complete=True)
    if lexed.stop == "end" or lexed.nested is not None or lexed.cut_pair is not None or not _closed(lexed):
        return "no"
    if lexed.stop == "open":
        after = source.next_token(dialect.opens, opener[1], limit)
        return "yes" if after is not None and after[1] < len(text) else "no"
    close = lexed.close
    if close is None or dialect.closes.fullmatch(text, *close) is None:
        return "no"
    # One more bracket could belong to a marker at the very end.
    return "yes" if max(close[1], block.span[1]) < len(text) else "no"


def _closed(lexed: Lexed) -> bool:
    if any(not pair.delimited and pair.family != "bare" for pair in lexed.pairs):
        return False
    return not lexed.findings.overflow and all(item.diag.code != "TC022" for item in lexed.findings.items)


def _plugged(protocol: CallProtocol, source: Source, block: Block) -> Verdict:
    """A plug-in's block is certain at its closing marker when the plug-in says so; otherwise at the end of the text."""
    markers, close = protocol.markers, block.close
    if not markers.final_close or close is None or block.state != "complete" or block.diagnostics:
        return "no"
    return "yes" if source.text[close[0] : close[1]] == markers.close and close[1] == block.span[1] else "no"


# What the end of a text that goes on may be the beginning of: markers cut in two (F17). One pattern for each kind of marker is built from its parts
# so that it matches every beginning of it that ends where the text ends. The patterns may take a little more than the protocols' own (then a few
# characters are shown one token later), never less.


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


def _plugged_opener(name: str) -> str:
    """The beginnings of a plug-in's marker: its first word, in any case, with blanks and bars, and what an opener may say behind it."""
    protocol = find_protocol(name)
    marker = (protocol.markers.open if protocol is not None else "") or "<"
    head = _HEAD.match(marker)
    marker = head.group() if head is not None else marker
    junk = r"[ \t|_\-]*+"
    parts = [f"(?i:{re.escape(char)}){'' if char.isalnum() or not i else '?+'}{junk}" for i, char in enumerate(marker)]
    return begun(*parts, rf"(?s:.{{0,{MAX_OPENER}}}+)")


def _beginnings(name: str) -> str:
    return extras_of(name).begun().opener or _plugged_opener(name)


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
