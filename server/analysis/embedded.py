"""JSON inside the values of calls: its tree, and the way between a place in the decoded text and its source characters.

A value may stand in CDATA, between ``»»»`` and ``«««``, between ``「始」`` and ``「末」``, as element or attribute text with entities, or as
a JSON string in a JSON call. Every offset of the decoded text leads to its source and back, and an edit of the decoded text
becomes one of the source that reads back as meant, or none where the container cannot hold it. Must not know schemas.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property

from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.jsontext.tree import JsonTree
from tamis.protocols.model import Block, Call, Edit, Param, Piece, Value, escape_pointer
from tamis.protocols.plugins import editing_of
from tamis.protocols.positions import Span
from tamis.server.analysis.completion.proposals import escape_snippet

_ESCAPED = re.compile(r"\\([\\$}])")
_BREAK = re.compile(r"\r?\n[\t ]*")


class Embedded:
    """One value as JSON text: ``text`` is what it decodes to, ``pieces`` are where that stands in ``source``."""

    def __init__(self, source: str, pieces: Sequence[Piece], container: str, empty_at: int = 0) -> None:
        """``empty_at`` is the place of a value without any characters."""
        self.source = source
        self.pieces = tuple(pieces)
        self.container: str = container
        self._empty_at = empty_at
        self.text = "".join(source[p.start : p.end] if p.text is None else p.text for p in self.pieces)
        # Who writes quotes as entities goes on to do so, and an editor compares what is typed with what is proposed.
        self._quotes = container in ("text", "attribute") and any(p.text == '"' for p in self.pieces)
        before = self.pieces[0].start if self.pieces else empty_at
        self._delimiter = source[before - 1 : before] if container == "attribute" else ""
        self._starts: list[int] = []
        self._ends: list[int] = []
        at = 0
        for piece in self.pieces:
            self._starts.append(at)
            at += piece.end - piece.start if piece.text is None else len(piece.text)
            self._ends.append(piece.end)

    @cached_property
    def tree(self) -> JsonTree:
        """The text as a tree; broken text gives what could be read."""
        return parse_json(self.text)

    @property
    def span(self) -> Span:
        """The source from the first to the last character."""
        return (self.pieces[0].start, self.pieces[-1].end) if self.pieces else (self._empty_at, self._empty_at)

    def to_source(self, at: int) -> int:
        """The source offset where a decoded character begins; at the end of the text, where its last one ends."""
        if not self.pieces:
            return self._empty_at
        if at >= len(self.text):
            return self.pieces[-1].end
        index = bisect_right(self._starts, max(at, 0)) - 1
        piece = self.pieces[index]
        return piece.start + (max(at, 0) - self._starts[index]) if piece.text is None else piece.start

    def to_text(self, offset: int) -> int:
        """The decoded offset of a source offset: inside an entity that of its character, between two pieces where the next begins."""
        index = bisect_right(self._ends, offset)
        if index >= len(self.pieces):
            return len(self.text)
        piece = self.pieces[index]
        return self._starts[index] + (max(0, offset - piece.start) if piece.text is None else 0)

    def source_span(self, span: Span) -> Span:
        """The source of ``text[start:end]``, from its first to the end of its last character."""
        start, end = span
        if end <= start:
            at = self._end_of(start) if start else self.to_source(0)
            return at, at
        return self.to_source(start), self._end_of(end)

    def _end_of(self, at: int) -> int:
        """Where the decoded character before ``at`` ends in the source."""
        if not self.pieces:
            return self._empty_at
        index = bisect_right(self._starts, max(min(at, len(self.text)) - 1, 0)) - 1
        piece = self.pieces[index]
        return piece.start + (min(at, len(self.text)) - self._starts[index]) if piece.text is None else piece.end

    def edit(self, span: Span, new_text: str) -> Edit | None:
        """``text[start:end]`` replaced, as an edit of the source; None where the container cannot hold the new text."""
        written = self.escape(new_text)
        if written is None:
            return None
        if self.container == "cdata" and new_text:
            # A closing bracket beside the place and one in the new text must not meet as the section's end.
            around = self.text[max(0, span[0] - 2) : span[0]] + new_text + self.text[span[1] : span[1] + 2]
            if "]]>" in around and "]]>" not in new_text:
                return None
        start, end = self.source_span(span)
        return Edit(start, end, written)

    def escape(self, text: str) -> str | None:
        """Text as the container writes it, or None."""
        if self.container in ("text", "attribute"):
            text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
            text = text.replace('"', "&quot;") if self._quotes or self._delimiter == '"' else text
            return text.replace("'", "&apos;") if self._delimiter == "'" else text
        if self.container == "cdata":
            return text.replace("]]>", "]]]]><![CDATA[>")
        if self.container == "json":
            return json.dumps(text, ensure_ascii=False)[1:-1]
        forbidden = editing_of(self.container.partition("-")[0]).forbidden[self.container]
        return None if forbidden.search(text) else text

    def escape_stops(self, snippet: str) -> str | None:
        """A snippet as the container writes it: its tab stops stay tab stops."""
        if self.container == "json":
            # A line break inside a JSON string would be the two characters of its escape.
            snippet = _BREAK.sub(" ", snippet)
        out: list[str] = []
        at = 0
        for match in [*_ESCAPED.finditer(snippet), None]:
            start = match.start() if match is not None else len(snippet)
            plain = self.escape(snippet[at:start])
            if plain is None:
                return None
            # In a JSON string the quote's own backslash must not begin an escape of the snippet.
            out.append(plain.replace("\\", "\\\\") if self.container == "json" else plain)
            if match is not None:
                written = self.escape(match[1])
                if written is None:
                    return None
                out.append(escape_snippet(written))
                at = match.end()
        return "".join(out)


def of_value(call: Call, value: Value, source: str) -> Embedded | None:
    """The text of a value of a call; None for one that is no text."""
    if value.kind != "text":
        return None
    return Embedded(source, value.pieces, editing_of(call.protocol).container(value, source), value.span[0])


def texts_of(call: Call) -> Iterator[tuple[str, Value]]:
    """Every text among a call's arguments, with its JSON Pointer."""
    for param in call.params:
        for pointer, value in param.value.walk("/" + escape_pointer(param.name)):
            if value.kind == "text":
                yield pointer, value


# Where in a text an offset lies: block, call, parameter. Look-ups by bisection, so that a long text costs no more than a short one.


def blocks_in(blocks: Sequence[Block], span: Span | None) -> Sequence[Block]:
    """The blocks that touch a span; all without one. Blocks come in the order of the text and never overlap."""
    if span is None:
        return blocks
    first = max(0, bisect_right(blocks, span[0], key=_start) - 1)
    while first < len(blocks) and blocks[first].span[1] < span[0]:
        first += 1
    return blocks[first : bisect_right(blocks, span[1], key=_start)]


def _start(block: Block) -> int:
    return block.span[0]


def block_at(blocks: Sequence[Block], offset: int) -> Block | None:
    """The block that an offset lies in or touches; of two that meet there the later one."""
    enclosing = blocks_in(blocks, (offset, offset))
    return enclosing[-1] if enclosing else None


def calls_at(block: Block, offset: int) -> Iterator[Call]:
    """The calls of a block around an offset, the innermost place first: the calls of a batch may share its lines."""
    for call in block.calls:
        if _holds(call.tool_span, offset):
            yield call
    for call in block.calls:
        if not _holds(call.tool_span, offset) and _holds(call.span, offset):
            yield call
    for call in block.calls:
        if not _holds(call.tool_span, offset) and not _holds(call.span, offset) and param_at(call, offset):
            yield call


def param_at(call: Call, offset: int) -> Param | None:
    """The parameter of a call around an offset."""
    return next((param for param in call.params if _holds(param.span, offset)), None)


def _holds(span: Span, offset: int) -> bool:
    return span[0] <= offset <= span[1]
