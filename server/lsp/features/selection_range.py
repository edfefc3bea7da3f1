"""``textDocument/selectionRange``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tamis.server.analysis.kinds import serves
from tamis.server.lsp.verb import Verb
from tamis.server.lsp.workspace.elsewhere import offset_of

if TYPE_CHECKING:
    from lsprotocol import types

    from tamis.server.lsp.documents import Document
    from tamis.server.lsp.session import Session


def selection_range(session: Session, params: types.SelectionRangeParams) -> list[dict[str, Any]] | None:
    """What a growing selection takes in, at each position."""
    from tamis.server.analysis.shown.selection import selection

    document = session.documents.get(params.text_document.uri)
    if document is None or not serves(document.kind, "selection"):
        return None
    snapshot = session.workspace.snapshot(document, wait=0.5)
    return [_chain(document, selection(snapshot, offset_of(document, place))) for place in params.positions]


def _chain(document: Document, spans: list[tuple[int, int]]) -> dict[str, Any]:
    """The innermost span with the others as its parents."""
    link: dict[str, Any] = {}
    for span in reversed(spans):
        here: dict[str, Any] = {"range": msgspec.to_builtins(document.range(span))}
        if link:
            here["parent"] = link
        link = here
    return link


REQUESTS = (
    Verb(
        method="textDocument/selectionRange",
        params="SelectionRangeParams",
        handler=selection_range,
        schedule="snapshot",
        capability={"selectionRangeProvider": True},
    ),
)
