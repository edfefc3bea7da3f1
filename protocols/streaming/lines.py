"""Lines and characters of places in a text that is read piece by piece, counted on as it goes by.

Must not know what stands at the places.
"""

from __future__ import annotations

from collections.abc import Callable

from tamis.protocols.positions import LineIndex, PositionEncoding, Span


class BlockLines:
    """The lines of one block, whose offsets count in the whole text."""

    def __init__(self, block: str, start: int, line: int, character: int) -> None:
        self._index = LineIndex(block)
        self._start = start
        self._line = line
        self._character = character

    def position(self, offset: int, encoding: PositionEncoding = "utf-32") -> tuple[int, int]:
        """The zero-based (line, character) in the whole text; the encoding is the one that was counted in."""
        line, character = self._index.position(offset - self._start, encoding)
        return self._line + line, character + (0 if line else self._character)

    def places(self, span: Span, encoding: PositionEncoding = "utf-32") -> tuple[int, int, int, int]:
        """``position`` of both ends of a span."""
        return *self.position(span[0], encoding), *self.position(span[1], encoding)


class LineCounter:
    """Where the blocks of a text begin, asked for in order; each character of the text is counted once."""

    def __init__(self, slice_of: Callable[[int, int], str], encoding: PositionEncoding | None) -> None:
        self._slice = slice_of
        self._encoding: PositionEncoding = encoding or "utf-32"
        self._at = 0
        self._line = 0
        self._character = 0

    def block(self, block: str, start: int) -> BlockLines:
        """The lines of the block that begins at ``start``, which is not before that of the last one asked for."""
        between = self._slice(self._at, start)
        line, character = LineIndex(between).position(len(between), self._encoding)
        self._line += line
        self._character = character + (0 if line else self._character)
        self._at = start
        return BlockLines(block, start, self._line, self._character)
