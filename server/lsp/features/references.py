"""``textDocument/references`` and ``textDocument/documentHighlight``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from tamis.server.analysis.navigation.references import find_references, highlights
from tamis.server.lsp.workspace.elsewhere import Elsewhere, asked, offset_of

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from tamis.server.lsp.session import Session

_READ, _WRITE = 2, 3


def register(server: LanguageServer, session: Session) -> None:
    """Registers both verbs."""

    def references(params: types.ReferenceParams) -> list[dict[str, Any]]:
        found = asked(session, params.text_document.uri)
        if found is None:
            return []
        document, snapshot = found
        sites = find_references(
            snapshot, offset_of(document, params.position), include_declaration=params.context.include_declaration
        )
        places = Elsewhere(session, snapshot)
        return [places.location(site.path, site.span) for site in sites]

    def document_highlight(params: types.DocumentHighlightParams) -> list[dict[str, Any]]:
        found = asked(session, params.text_document.uri)
        if found is None:
            return []
        document, snapshot = found
        places = Elsewhere(session, snapshot)
        return [
            {"range": places.range(snapshot.path, one.span), "kind": _WRITE if one.write else _READ}
            for one in highlights(snapshot, offset_of(document, params.position))
        ]

    server.feature(types.TEXT_DOCUMENT_REFERENCES)(references)
    server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)(document_highlight)
