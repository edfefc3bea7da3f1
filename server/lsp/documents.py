"""Open documents: their text at a version, changed incrementally, and what kind of file each is.

A ``Document`` is never changed: a change makes the next one. So another thread may keep the one it has, and whatever was
computed from it stays true of it. Must not know what a document means.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote, unquote, urlsplit

from tamis.protocols.positions import LineIndex, PositionEncoding, Span
from tamis.server.analysis.snapshot import DocumentKind, kind_of
from tamis.server.lsp.structs import ContentChange, Position, Range

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
    """The path of a ``file:`` URI; None for every other scheme."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return None
    return unquote(parts.path) or None


def uri_of(path: str) -> str:
    """The ``file:`` URI of an absolute path."""
    return "file://" + quote(path)


class Document:
    """One open document at one version."""

    __slots__ = ("_lines", "encoding", "kind", "language_id", "path", "text", "uri", "version")

    def __init__(self, uri: str, language_id: str, version: int | None, text: str, encoding: PositionEncoding) -> None:
        self.uri = uri
        self.language_id = language_id
        self.version = version
        self.text = text
        self.encoding: PositionEncoding = encoding
        self.path = path_of(uri)
        self.kind: DocumentKind = kind_of(self.path or urlsplit(uri).path, language_id)
        self._lines: LineIndex | None = None

    @property
    def lines(self) -> LineIndex:
        """The line starts; built on first use."""
        if self._lines is None:
            self._lines = LineIndex(self.text)
        return self._lines

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
        text = self.text
        lines: LineIndex | None = self.lines if changes and changes[0].range is not None else None
        for change in changes:
            if change.range is None:
                text, lines = change.text, None
                continue
            lines = lines or LineIndex(text)
            start = lines.offset(change.range.start.line, change.range.start.character, self.encoding)
            end = lines.offset(change.range.end.line, change.range.end.character, self.encoding)
            # A client that sends a range backwards means the same range.
            start, end = min(start, end), max(start, end)
            text, lines = text[:start] + change.text + text[end:], None
        return Document(self.uri, self.language_id, version, text, self.encoding)
