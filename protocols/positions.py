"""Positions in a text: code-point offsets to editor positions and back.

Inside the project every position is a code-point offset into a Python ``str``, half open. Editors count columns in UTF-8
bytes, UTF-16 units or code points, whichever was negotiated; this module is the only place that converts (ruling 9).
Must not know documents, files or LSP types.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate, count
from operator import add
from typing import Literal

PositionEncoding = Literal["utf-8", "utf-16", "utf-32"]
Span = tuple[int, int]
"""Code-point offsets into a text, half open: ``text[span[0]:span[1]]``."""

# LSP ends a line at \n, \r\n and a lone \r, and nowhere else; str.splitlines() also breaks at \f, \v, U+0085 and U+2028/9.
_LINE_END = re.compile(r"\r\n|\n|\r")


class LineIndex:
    """Line starts of one text, with conversions in all three position encodings.

    Lookups are O(log lines) plus the length of the prefix of one line; an ASCII text needs no prefix scan.
    """

    __slots__ = ("_ascii", "_starts", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._ascii = text.isascii()
        if "\r" in text:
            self._starts = [0, *(m.end() for m in _LINE_END.finditer(text))]
        else:
            # The lengths of the lines before, and one for each line end: no step of this is Python's.
            lines = text.split("\n")
            lines.pop()
            self._starts = [0, *map(add, accumulate(map(len, lines)), count(1))]

    @property
    def line_count(self) -> int:
        """Number of lines; an empty text has one."""
        return len(self._starts)

    def line_span(self, line: int) -> Span:
        """The offsets of a line without its line end."""
        start = self._starts[line]
        end = self._starts[line + 1] if line + 1 < len(self._starts) else len(self._text)
        while end > start and self._text[end - 1] in "\r\n":
            end -= 1
        return start, end

    def position(self, offset: int, encoding: PositionEncoding = "utf-32") -> tuple[int, int]:
        """The zero-based (line, character) of a code-point offset; an offset outside the text is clamped into it."""
        starts = self._starts
        if offset < 0:
            offset = 0
        elif offset > len(self._text):
            offset = len(self._text)
        line = bisect_right(starts, offset) - 1
        start = starts[line]
        if self._ascii or encoding == "utf-32":
            return line, offset - start
        return line, _units(self._text[start:offset], encoding)

    def offset(self, line: int, character: int, encoding: PositionEncoding = "utf-32") -> int:
        """The code-point offset of a zero-based (line, character).

        A line past the end gives the end of the text; a character past the line's end gives the line's end, as LSP says;
        a character inside a surrogate pair or a UTF-8 sequence gives the start of that code point.
        """
        if line < 0:
            return 0
        if line >= len(self._starts):
            return len(self._text)
        start, end = self.line_span(line)
        if character <= 0:
            return start
        if self._ascii or encoding == "utf-32":
            return min(start + character, end)
        units = 0
        for at in range(start, end):
            width = _width(self._text[at], encoding)
            if units + width > character:
                return at
            units += width
        return end


def _width(char: str, encoding: PositionEncoding) -> int:
    code = ord(char)
    if encoding == "utf-16":
        return 2 if code > 0xFFFF else 1
    if code < 0x80:
        return 1
    if code < 0x800:
        return 2
    return 3 if code < 0x10000 else 4


def _units(text: str, encoding: PositionEncoding) -> int:
    if encoding == "utf-16":
        return len(text) + sum(1 for char in text if char > "\uffff")
    # A lone surrogate has no UTF-8 form of its own; editors count it as the three bytes of its code point.
    return len(text.encode("utf-8", "surrogatepass"))
