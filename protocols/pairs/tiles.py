"""A TAM or VCP block as tokens without gaps (the lossless view of ``protocols/lossless.py``).

The block is walked again by the tolerant walk, because a block keeps its meaning and not its punctuation. Must not know what a
key means.
"""

from __future__ import annotations

from tamis.protocols.base import Source
from tamis.protocols.lossless import Tiles, Token
from tamis.protocols.model import Block
from tamis.protocols.pairs.bounds import past
from tamis.protocols.pairs.lexer import lex
from tamis.protocols.pairs.walk import BLANK, FENCE_LINE, Dialect, Pair


def pair_tokens(text: str, block: Block, dialect: Dialect) -> list[Token]:
    """The tokens of one block of ``text``, in order; together they are its text."""
    start, end = block.span
    inner = text[start:end]
    low = block.open[1] - start
    high = (block.close[0] if block.close is not None else end) - start
    source = Source(inner)
    lexed = lex(source, low, len(inner), dialect, complete=True)
    tiles = Tiles(inner, start)
    tiles.put("marker", 0, low)
    comments = {comment.span[0]: comment.span[1] for comment in lexed.comments}
    at = low
    for pair in [pair for pair in lexed.pairs if pair.end <= high]:
        _between(tiles, at, pair.start, comments, dialect)
        _pair(tiles, pair, dialect)
        at = pair.end
    _between(tiles, at, high, comments, dialect)
    if block.close is not None:
        tiles.put("marker", high, block.close[1] - start)
        _between(tiles, block.close[1] - start, len(inner), {}, dialect)
    return tiles.tokens


def _pair(tiles: Tiles, pair: Pair, dialect: Dialect) -> None:
    text = tiles.text
    tiles.words("decoration", pair.start, pair.key[0])
    tiles.put("key", *pair.key)
    at = pair.key[1]
    while at < pair.value[0]:
        blank = past(BLANK, text, at, pair.value[0])
        tiles.put("blank", at, blank)
        at = blank
        separator = dialect.separator.match(text, at, pair.value[0])
        head = dialect.head.match(text, at, pair.value[0])
        if separator is not None:
            tiles.put("separator", *separator.span())
            at = separator.end()
        elif head is not None and head.end() >= pair.value[0]:
            tiles.put("delimiter", at, pair.value[0])
            at = pair.value[0]
        elif at < pair.value[0]:
            tiles.put("decoration", at, at + 1)
            at += 1
    tiles.put("value", *pair.value)
    tiles.words("delimiter", pair.value[1], pair.end)


def _between(tiles: Tiles, at: int, end: int, comments: dict[int, int], dialect: Dialect) -> None:
    """What stands between two pairs: blanks, comments, separators, fences, and text that is none of these."""
    text = tiles.text
    while at < end:
        blank = past(BLANK, text, at, end)
        tiles.put("blank", at, blank)
        at = blank
        if at >= end:
            return
        stop = comments.get(at)
        if stop is not None:
            tiles.put("comment", at, min(stop, end))
            at = min(stop, end)
        elif text[at] in dialect.between:
            tiles.put("separator", at, at + 1)
            at += 1
        elif (fence := FENCE_LINE.match(text, at, end)) is not None:
            tiles.put("fence", *fence.span())
            at = fence.end()
        else:
            line = min((i for i in (text.find("\n", at, end), text.find("\r", at, end)) if i >= 0), default=end)
            tiles.put("noise", at, line)
            at = line
