"""``textDocument/selectionRange``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from lsprotocol import types

from tamis.server.analysis.shown.selection import selection

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from tamis.server.lsp.documents import Document
    from tamis.server.lsp.session import Session


def register(server: LanguageServer, session: Session) -> None:
    """Registers the verb."""

    def selection_range(params: types.SelectionRangeParams) -> list[dict[str, Any]] | None:
        document = session.documents.get(params.text_document.uri)
        if document is None or document.kind == "other":
            return None
        snapshot = session.workspace.snapshot(document, wait=0.5)
        offset = document.lines.offset
        return [
            _chain(document, selection(snapshot, offset(place.line, place.character, document.encoding)))
            for place in params.positions
        ]

    server.feature(types.TEXT_DOCUMENT_SELECTION_RANGE)(selection_range)


def _chain(document: Document, spans: list[tuple[int, int]]) -> dict[str, Any]:
    """The innermost span with the others as its parents."""
    link: dict[str, Any] = {}
    for span in reversed(spans):
        here: dict[str, Any] = {"range": msgspec.to_builtins(document.range(span))}
        if link:
            here["parent"] = link
        link = here
    return link
