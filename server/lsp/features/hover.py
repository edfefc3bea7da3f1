"""``textDocument/hover``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from tamis.server.analysis.hover import explain
from tamis.server.lsp import convert

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from tamis.server.lsp.session import Session


def register(server: LanguageServer, session: Session) -> None:
    """Registers the verb."""

    def hover(params: types.HoverParams) -> types.Hover | None:
        document = session.documents.get(params.text_document.uri)
        if document is None or document.kind == "other":
            return None
        place = params.position
        offset = document.lines.offset(place.line, place.character, document.encoding)
        found = explain(session.workspace.snapshot(document, wait=0.5), offset)
        return convert.to_hover(document, found) if found is not None else None

    server.feature(types.TEXT_DOCUMENT_HOVER)(hover)
