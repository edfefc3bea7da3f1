"""Positions in a text: code-point offsets to editor positions and back.

Inside the project every position is a code-point offset into a Python ``str``, half open. Editors count columns in UTF-8
bytes, UTF-16 units or code points, whichever was negotiated; this module is the only place that converts (ruling 9). A text is
counted in blocks, so that an edit makes one block anew and a column in a long line needs no count of all that stands before it.
Must not know documents, files or LSP types.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import accumulate, count
from operator import add
from typing import Literal

import msgspec

PositionEncoding = Literal["utf-8", "utf-16", "utf-32"]
Span = tuple[int, int]
"""Code-point offsets into a text, half open: ``text[span[0]:span[1]]``."""

# LSP ends a line at \n, \r\n and a lone \r, and nowhere else; str.splitlines() also breaks at \f, \v, U+0085 and U+2028/9.
_LINE_END = re.compile(r"\r\n|\n|\r")
_BLOCK = 1024
"""Code points in a block as it is cut; after edits a block has between a quarter and twice as many."""


class _Block(msgspec.Struct, frozen=True, gc=False, eq=False):
    """Some characters of a text; no line end is cut in two.

    ``ends`` are the ends of its line ends from its start; ``more`` counts, by encoding, the units that it has more than code points.
    """

    length: int
    ends: list[int]
    more: dict[PositionEncoding, int]


class LineIndex:
    """Line starts of one text, with conversions in all three position encodings; never changed.

    Lookups are O(log length) plus the length of a block; an ASCII text or block needs no count.
    """

    __slots__ = ("_bases", "_blocks", "_lines", "_more", "_parts", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._parts: list[str] | None = None
        self._blocks = _cut(text, 0, len(text)) or [_Block(0, [], {})]
        # Where each block starts, how many lines ended before it, and by encoding how many units were more than code points.
        self._bases = _sums(block.length for block in self._blocks)
        self._lines = _sums(len(block.ends) for block in self._blocks)
        self._more: dict[PositionEncoding, list[int]] = {}

    @property
    def text(self) -> str:
        """The text."""
        return self._text

    def edited(self, start: int, end: int, new: str) -> LineIndex:
        """The index of this one's text with ``new`` in place of ``[start, end)``, and with it that text. This one stays as it is.

        The text is put together from its blocks: to cut a long one of wide characters in two takes longer than all else about a keystroke.
        """
        blocks, bases = self._blocks, self._bases
        parts = self._parts
        if parts is None:
            parts = [self._text[base : base + block.length] for base, block in zip(bases, blocks, strict=True)]
        delta = len(new) - (end - start)
        # The characters beside the edit belong to it: a line feed may join a carriage return, or leave it.
        low = bisect_right(bases, max(start - 1, 0)) - 1
        high = bisect_right(bases, end)
        base = bases[low]
        stop = (bases[high] if high < len(bases) else len(self._text)) + delta
        if stop - base < _BLOCK // 4 and high < len(blocks):
            high += 1
        part = "".join(parts[low:high])
        part = "".join((part[: start - base], new, part[end - base :]))
        new_blocks = _cut(part, 0, len(part))
        new_parts = [part]
        if len(new_blocks) != 1:
            lengths = [block.length for block in new_blocks]
            new_parts = [part[at : at + length] for at, length in zip(_sums(lengths), lengths, strict=True)]
        if len(blocks) == high - low and not new_blocks:
            new_blocks, new_parts = [_Block(0, [], {})], [""]
        index = LineIndex.__new__(LineIndex)
        index._parts = [*parts[:low], *new_parts, *parts[high:]]
        index._text = text = "".join(index._parts)
        index._blocks = blocks[:low] + new_blocks + blocks[high:]
        if high - low == len(new_blocks) == 1:
            # Most edits: one block is another.
            more_lines = len(new_blocks[0].ends) - len(blocks[low].ends)
            index._bases = _moved(bases, high, delta)
            index._lines = _moved(self._lines, high, more_lines)
        else:
            index._bases = _replaced(bases, low, high, [block.length for block in new_blocks], delta)
            lines = [len(block.ends) for block in new_blocks]
            gone = sum([len(block.ends) for block in blocks[low:high]])
            index._lines = _replaced(self._lines, low, high, lines, sum(lines) - gone)
        index._more = {}
        if not text.isascii():
            for encoding, sums in self._more.items():
                more: list[int] = []
                at = base
                for block in new_blocks:
                    more.append(_more(block, text, at, encoding))
                    at += block.length
                gone = sum(block.more[encoding] for block in blocks[low:high])
                index._more[encoding] = _replaced(sums, low, high, more, sum(more) - gone)
        return index

    @property
    def line_count(self) -> int:
        """Number of lines; an empty text has one."""
        return self._lines[-1] + len(self._blocks[-1].ends) + 1

    def line_span(self, line: int) -> Span:
        """The offsets of a line without its line end."""
        start = self._start(line)
        end = self._start(line + 1) if line + 1 < self.line_count else len(self._text)
        while end > start and self._text[end - 1] in "\r\n":
            end -= 1
        return start, end

    def position(self, offset: int, encoding: PositionEncoding = "utf-32") -> tuple[int, int]:
        """The zero-based (line, character) of a code-point offset; an offset outside the text is clamped into it."""
        text = self._text
        if offset < 0:
            offset = 0
        elif offset > len(text):
            offset = len(text)
        at = bisect_right(self._bases, offset) - 1
        ends = self._blocks[at].ends
        base = self._bases[at]
        inner = bisect_right(ends, offset - base)
        line = self._lines[at] + inner
        start = base + ends[inner - 1] if inner else self._start(line)
        if encoding == "utf-32" or text.isascii():
            return line, offset - start
        return line, offset - start + self._more_before(offset, encoding) - self._more_before(start, encoding)

    def offset(self, line: int, character: int, encoding: PositionEncoding = "utf-32") -> int:
        """The code-point offset of a zero-based (line, character).

        A line past the end gives the end of the text; a character past the line's end gives the line's end, as LSP says;
        a character inside a surrogate pair or a UTF-8 sequence gives the start of that code point.
        """
        if line < 0:
            return 0
        lines = self._lines[-1] + len(self._blocks[-1].ends) + 1
        if line >= lines:
            return len(self._text)
        start = self._start(line)
        if character <= 0:
            return start
        end = self._start(line + 1) if line + 1 < lines else len(self._text)
        while end > start and self._text[end - 1] in "\r\n":
            end -= 1
        if encoding == "utf-32" or self._text.isascii():
            return min(start + character, end)
        # The last offset with no more units before it than that many; it lies in the last block that begins with no more.
        wanted = start + self._more_before(start, encoding) + character
        more = self._sums(encoding)
        bases = self._bases
        low, high = bisect_right(bases, start) - 1, bisect_right(bases, end) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if bases[middle] + more[middle] <= wanted:
                low = middle
            else:
                high = middle - 1
        base, block = bases[low], self._blocks[low]
        rest = wanted - base - more[low]
        if not block.more[encoding]:
            return min(base + rest, end)
        first, last = max(start - base, 0), min(end - base, block.length)
        known = _after_units(self._text[base : base + last], rest, encoding)
        if known is not None:
            return base + max(known, first)
        while first < last:
            middle = (first + last + 1) // 2
            if _units(self._text[base : base + middle], encoding) <= rest:
                first = middle
            else:
                last = middle - 1
        return base + first

    def _start(self, line: int) -> int:
        """The offset at which a line starts."""
        if line <= 0:
            return 0
        at = bisect_right(self._lines, line - 1) - 1
        return self._bases[at] + self._blocks[at].ends[line - 1 - self._lines[at]]

    def _sums(self, encoding: PositionEncoding) -> list[int]:
        """How many units more than code points there are before each block; counted when it is first asked for."""
        sums = self._more.get(encoding)
        if sums is None:
            pairs = zip(self._blocks, self._bases, strict=True)
            sums = self._more[encoding] = _sums(_more(block, self._text, base, encoding) for block, base in pairs)
        return sums

    def _more_before(self, offset: int, encoding: PositionEncoding) -> int:
        """How many units more than code points there are before an offset."""
        sums = self._sums(encoding)
        at = bisect_right(self._bases, offset) - 1
        base = self._bases[at]
        if base == offset or not self._blocks[at].more[encoding]:
            return sums[at]
        return sums[at] + _units(self._text[base:offset], encoding) - (offset - base)


def _cut(text: str, start: int, end: int) -> list[_Block]:
    """A part of a text as blocks."""
    blocks: list[_Block] = []
    while start < end:
        stop = end if end - start <= 2 * _BLOCK else start + _BLOCK
        if stop < end and text[stop] == "\n" and text[stop - 1] == "\r":
            stop += 1
        part = text[start:stop]
        if "\r" in part:
            ends = [match.end() for match in _LINE_END.finditer(part)]
        else:
            # The lengths of the lines before, and one for each line end: no step of this is Python's.
            lines = part.split("\n")
            lines.pop()
            ends = [*map(add, accumulate(map(len, lines)), count(1))]
        blocks.append(_Block(stop - start, ends, {}))
        start = stop
    return blocks


def _sums(numbers: Iterable[int]) -> list[int]:
    """For each number the sum of those before it."""
    sums = [0, *accumulate(numbers)]
    sums.pop()
    return sums


def _moved(sums: list[int], high: int, delta: int) -> list[int]:
    """The sums, more by ``delta`` from an index on."""
    return [*sums[:high], *map(delta.__add__, sums[high:])] if delta else sums


def _replaced(sums: list[int], low: int, high: int, numbers: list[int], delta: int) -> list[int]:
    """The sums with other numbers in place of ``low:high``, which together are more by ``delta``."""
    first = sums[low]
    new_sums = [*accumulate(numbers, initial=first)][:-1]
    rest = sums[high:]
    return [*sums[:low], *new_sums, *(map(delta.__add__, rest) if delta else rest)]


def _more(block: _Block, text: str, base: int, encoding: PositionEncoding) -> int:
    """How many units more than code points a block has; remembered."""
    surplus = block.more.get(encoding)
    if surplus is None:
        part = text[base : base + block.length]
        surplus = block.more[encoding] = 0 if part.isascii() else _units(part, encoding) - block.length
    return surplus


def _units(text: str, encoding: PositionEncoding) -> int:
    # A lone surrogate has no UTF-8 form of its own; editors count it as the three bytes of its code point, or one unit.
    if encoding == "utf-16":
        return len(text.encode("utf-16-le", "surrogatepass")) // 2
    return len(text.encode("utf-8", "surrogatepass"))


def _after_units(text: str, units: int, encoding: PositionEncoding) -> int | None:
    """How many code points of a text take no more than so many units; None of one with lone surrogates, which is counted otherwise."""
    try:
        if encoding == "utf-16":
            return len(text.encode("utf-16-le")[: 2 * units].decode("utf-16-le", "ignore"))
        return len(text.encode("utf-8")[:units].decode("utf-8", "ignore"))
    except UnicodeEncodeError:
        return None


# Lines and characters of places in a text that is read piece by piece, counted on as it goes by.


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
