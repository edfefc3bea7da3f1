"""Open documents: their text at a version, changed incrementally, and what kind of file each is.

A ``Document`` is never changed: a change makes the next one. So another thread may keep the one it has, and whatever was
computed from it stays true of it. Must not know what a document means.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote_to_bytes, urlsplit

import msgspec

from tamis.protocols.positions import LineIndex, PositionEncoding, Span
from tamis.server.analysis.kinds import DocumentKind, kind_of
from tamis.server.lsp.structs import ContentChange, Position, Range

if TYPE_CHECKING:
    from tamis.protocols.jsontext.tree import JsonTree

ENCODINGS: tuple[PositionEncoding, ...] = ("utf-32", "utf-8", "utf-16")
"""In our order of preference: code points are Python's own columns, the others are counted."""


def choose_encoding(offered: Iterable[str] | None) -> PositionEncoding:
    """The position encoding for a client that offers these; UTF-16 is what LSP takes for granted."""
    known = set(offered or ())
    for encoding in ENCODINGS:
        if encoding in known:
            return encoding
    return "utf-16"


def path_of(uri: str) -> str | None:
    """The path of a ``file:`` URI; None for every other scheme, and for what names no absolute path."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    path = os.fsdecode(unquote_to_bytes(parts.path)) if parts.scheme == "file" else ""
    return path if path.startswith("/") and "\0" not in path else None


def uri_of(path: str) -> str:
    """The ``file:`` URI of an absolute path; the name of a document that was never saved is its URI already."""
    return "file://" + quote(os.fsencode(path)) if path.startswith("/") else path


def name_of(uri: str) -> str:
    """What stands for a document's path where it has none."""
    try:
        return urlsplit(uri).path
    except ValueError:
        return uri


MAX_EDITS = 200
"""Edits that are kept for a tree that nobody asked for meanwhile; a whole reading costs as much as some hundreds."""


class _Kept(msgspec.Struct, frozen=True, gc=False, eq=False):
    """The tree of an earlier version, and the edits since: (start, end, new text), one after the other."""

    tree: JsonTree
    edits: tuple[tuple[int, int, str], ...] = ()

    def with_edits(self, edits: list[tuple[int, int, str]]) -> _Kept | None:
        """The same tree with more edits; None when so many have come that nobody seems to ask for it."""
        if len(self.edits) + len(edits) > MAX_EDITS:
            return None
        return _Kept(self.tree, (*self.edits, *edits))

    def now(self, text: str) -> _Kept:
        """The tree of this version, whose text is there."""
        from tamis.protocols.jsontext.edit import edited

        tree = self.tree
        *before, last = self.edits
        for edit in before:
            tree = edited(tree, *edit)
        return _Kept(edited(tree, *last, text))


class Document:
    """One open document at one version."""

    __slots__ = ("_lines", "_trees", "encoding", "kind", "language_id", "path", "text", "uri", "version")

    def __init__(
        self,
        uri: str,
        language_id: str,
        version: int | None,
        text: str,
        encoding: PositionEncoding,
        before: Document | None = None,
    ) -> None:
        self.uri = uri
        self.language_id = language_id
        self.version = version
        self.text = text
        self.encoding: PositionEncoding = encoding
        self.path = path_of(uri) if before is None else before.path
        self.kind: DocumentKind = kind_of(self.path or name_of(uri), language_id) if before is None else before.kind
        self._lines: LineIndex | None = None
        self._trees: dict[bool, _Kept] = {}

    @property
    def lines(self) -> LineIndex:
        """The line starts; built on first use, from those of the version before where there are any."""
        if self._lines is None:
            self._lines = LineIndex(self.text)
        return self._lines

    def tree(self, strict: bool) -> JsonTree:
        """The text as JSON, without comments and trailing commas if ``strict``; from the tree of the version before if there is one."""
        kept = self._trees.get(strict)
        if kept is None:
            from tamis.protocols.jsontext.parse import parse_json

            kept = _Kept(parse_json(self.text, comments=not strict))
        elif kept.edits:
            kept = kept.now(self.text)
        self._trees[strict] = kept
        return kept.tree

    def offset(self, position: Position) -> int:
        """The code-point offset of an editor position."""
        return self.lines.offset(position.line, position.character, self.encoding)

    def range(self, span: Span) -> Range:
        """The editor range of a span."""
        start = self.lines.position(span[0], self.encoding)
        end = start if span[1] == span[0] else self.lines.position(span[1], self.encoding)
        return Range(Position(*start), Position(*end))

    def changed(self, changes: list[ContentChange], version: int | None) -> Document:
        """The document after the changes, each of which refers to the text that the one before it left."""
        text, lines = self.text, self._lines
        edits: list[tuple[int, int, str]] = []
        for change in changes:
            new = change.text
            if change.range is None:
                start, end, new = difference(text, new)
            else:
                lines = lines or LineIndex(text)
                first = lines.offset(change.range.start.line, change.range.start.character, self.encoding)
                last = first
                if change.range.end != change.range.start:
                    last = lines.offset(change.range.end.line, change.range.end.character, self.encoding)
                # A client that sends a range backwards means the same range.
                start, end = min(first, last), max(first, last)
            if lines is not None:
                lines = lines.edited(start, end, new)
                text = lines.text
            else:
                text = "".join((text[:start], new, text[end:]))
            edits.append((start, end, new))
        document = Document(self.uri, self.language_id, version, text, self.encoding, before=self)
        document._lines = lines
        for strict, kept in list(self._trees.items()):
            more = kept.with_edits(edits)
            if more is not None:
                document._trees[strict] = more
        return document


def difference(old: str, new: str) -> tuple[int, int, str]:
    """The one edit that makes a text into another: what of the old one is replaced, by what.

    A client without incremental changes sends the whole text at each; what both have at their ends counts as left alone.
    """
    most = min(len(old), len(new))
    head = _common(most, lambda size: old.startswith(new[:size]))
    tail = _common(most - head, lambda size: old.endswith(new[len(new) - size :]))
    return head, len(old) - tail, new[head : len(new) - tail]


def _common(most: int, holds: Callable[[int], bool]) -> int:
    """The largest size up to ``most`` that holds, where every smaller one does."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low
