"""An ACTION block as tokens without gaps (the lossless view of ``protocols/lossless.py``).

What the calls say comes first: tool ids, names, values with their entities. What is left of the markup is cut as the scanner
of the tolerant path sees it. Must not know findings.
"""

from __future__ import annotations

from collections.abc import Iterable

from tamis.protocols.action.attributes import read_attributes
from tamis.protocols.action.tokens import Token as Tag
from tamis.protocols.action.tokens import Tokens
from tamis.protocols.base import Source
from tamis.protocols.lossless import Tiles, Token, TokenKind
from tamis.protocols.model import Block, Value

Claim = tuple[int, int, TokenKind]


def action_tokens(text: str, block: Block) -> list[Token]:
    """The tokens of one block of ``text``, in order; together they are its text."""
    start, end = block.span
    tags = _tags(text, block)
    taken = _merged([], _names(block))
    taken = _merged(taken, [(*span, "marker") for span in (block.open, block.close) if span is not None])
    taken = _merged(taken, [(*comment.span, "comment") for comment in block.comments])
    taken = _merged(taken, _values(block))
    taken = _merged(taken, [claim for tag in tags for claim in _markup(text, tag)])
    tiles = Tiles(text, 0)
    at = start
    for left, right, kind in taken:
        if right <= start or left >= end:
            continue
        tiles.words("noise", at, max(at, left))
        tiles.put(kind, max(at, left), min(right, end))
        at = max(at, min(right, end))
    tiles.words("noise", at, end)
    return tiles.tokens


def _tags(text: str, block: Block) -> list[Tag]:
    end = block.close[0] if block.close is not None else block.span[1]
    tokens = Tokens(Source(text), block.open[1], end)
    out: list[Tag] = []
    while (tag := tokens.get(len(out))) is not None:
        out.append(tag)
    return out


def _names(block: Block) -> list[Claim]:
    claims: list[Claim] = [(*call.tool_span, "tool") for call in block.calls]
    for call in block.calls:
        claims.extend((*param.name_span, "key") for param in call.params)
    return claims


def _values(block: Block) -> Iterable[Claim]:
    """The leaves of all values, piece by piece: what decodes to something else is an entity, what lies between is markup."""
    for call in block.calls:
        for param in call.params:
            for _, value in param.value.walk():
                if value.kind == "text":
                    yield from _pieces(value)


def _pieces(value: Value) -> Iterable[Claim]:
    for piece in value.pieces:
        yield piece.start, piece.end, "value" if piece.text is None else "entity"


def _markup(text: str, tag: Tag) -> list[Claim]:
    """The parts of one piece of markup, from left to right."""
    if tag.kind == "comment":
        return [(tag.start, tag.end, "comment")]
    if tag.kind == "cdata":
        start, end = tag.content
        return [(tag.start, start, "delimiter"), *_blank_or(text, start, end), (end, tag.end, "delimiter")]
    if tag.kind in ("pi", "doctype"):
        return [(tag.start, tag.end, "noise")]
    claims: list[Claim] = [(tag.start, tag.name_span[0], "tag"), (*tag.name_span, "key")]
    at = tag.name_span[1]
    for attribute in read_attributes(text, tag.attributes):
        claims.append((at, attribute.name_span[0], "tag"))
        claims.append((*attribute.name_span, "attribute"))
        at = attribute.name_span[1]
        if attribute.value is not None:
            claims.append((at, attribute.value.span[0], "tag"))
            claims.append((*attribute.value.span, "value"))
            at = attribute.value.span[1]
    claims.append((at, tag.end, "tag"))
    return claims


def _blank_or(text: str, start: int, end: int) -> list[Claim]:
    """The inside of a section that no value claims: the blanks of its layout, or a text that was dropped."""
    return [] if text[start:end].strip() else [(start, end, "blank")]


def _merged(taken: list[Claim], new: Iterable[Claim]) -> list[Claim]:
    """``taken`` (sorted, disjoint) with as much of the new claims as is still free, sorted and disjoint."""
    out: list[Claim] = []
    i = 0
    at = 0
    for start, end, kind in sorted(new, key=_start):
        start = max(start, at)
        while start < end:
            while i < len(taken) and taken[i][1] <= start:
                out.append(taken[i])
                i += 1
            limit = taken[i][0] if i < len(taken) else end
            if limit > start:
                out.append((start, min(end, limit), kind))
                start = min(end, limit)
            else:
                start = min(end, taken[i][1])
            at = start
    out.extend(taken[i:])
    return out


def _start(claim: Claim) -> int:
    return claim[0]
