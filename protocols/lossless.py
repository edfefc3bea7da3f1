"""A block as tokens without gaps: markers, names, delimiters, values, comments, noise and blanks, which together are its text.

The call model keeps what a block means; this view keeps how it is written, for editors and for the proof that the reader
leaves nothing out. Each protocol cuts its own blocks. Must not know diagnostics.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tamis.protocols.model import Block, Document
from tamis.protocols.plugins import extras_of

TokenKind = Literal[
    "marker",
    "tag",
    "tool",
    "key",
    "attribute",
    "entity",
    "separator",
    "delimiter",
    "value",
    "comment",
    "decoration",
    "fence",
    "noise",
    "blank",
]


class Token(msgspec.Struct, frozen=True, gc=False):
    """A stretch of the text, in code points of the whole of it."""

    kind: TokenKind
    start: int
    end: int


class Tiles:
    """The tokens of one block as they are put down, from left to right."""

    def __init__(self, text: str, offset: int) -> None:
        self.text = text
        self.tokens: list[Token] = []
        self._offset = offset

    def put(self, kind: TokenKind, start: int, end: int) -> None:
        """One token, unless it is empty; one that goes on with the same noise or blanks is joined to the one before."""
        if start >= end:
            return
        last = self.tokens[-1] if self.tokens else None
        if last is not None and last.kind == kind and kind in ("noise", "blank", "decoration"):
            self.tokens[-1] = Token(kind, last.start, end + self._offset)
        else:
            self.tokens.append(Token(kind, start + self._offset, end + self._offset))

    def words(self, kind: TokenKind, start: int, end: int) -> None:
        """A stretch of one kind with blanks at its ends."""
        part = self.text[start:end]
        left = start + len(part) - len(part.lstrip())
        right = max(left, start + len(part.rstrip()))
        self.put("blank", start, left)
        self.put(kind, left, right)
        self.put("blank", right, end)


def block_tokens(document: Document, block: Block) -> list[Token]:
    """The tokens of a block, in order and without gaps; a protocol that has no such view gives one token of noise."""
    tokens = extras_of(block.protocol).block_tokens(document.text, block)
    return [Token("noise", *block.span)] if tokens is None else tokens
