"""``textDocument/references`` and ``textDocument/documentHighlight``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.server.lsp.verb import Verb
from tamis.server.lsp.workspace.elsewhere import Elsewhere, asked, offset_of

if TYPE_CHECKING:
    from lsprotocol import types

    from tamis.server.lsp.session import Session

_READ, _WRITE = 2, 3


def references(session: Session, params: types.ReferenceParams) -> list[dict[str, Any]]:
    """Where a tool or parameter is named, in every file."""
    from tamis.server.analysis.navigation.references import find_references

    opened = asked(session, params.text_document.uri)
    if opened is None:
        return []
    document, snapshot = opened
    sites = find_references(
        snapshot, offset_of(document, params.position), include_declaration=params.context.include_declaration
    )
    places = Elsewhere(session, snapshot)
    return [places.location(site.path, site.span) for site in sites]


def document_highlight(session: Session, params: types.DocumentHighlightParams) -> list[dict[str, Any]]:
    """Where it is named in this file."""
    from tamis.server.analysis.navigation.references import highlights

    opened = asked(session, params.text_document.uri)
    if opened is None:
        return []
    document, snapshot = opened
    places = Elsewhere(session, snapshot)
    return [
        {"range": places.range(snapshot.path, highlight.span), "kind": _WRITE if highlight.write else _READ}
        for highlight in highlights(snapshot, offset_of(document, params.position))
    ]


REQUESTS = (
    Verb(
        method="textDocument/references",
        params="ReferenceParams",
        handler=references,
        schedule="snapshot",
        capability={"referencesProvider": True},
    ),
    Verb(
        method="textDocument/documentHighlight",
        params="DocumentHighlightParams",
        handler=document_highlight,
        schedule="snapshot",
        capability={"documentHighlightProvider": True},
    ),
)
