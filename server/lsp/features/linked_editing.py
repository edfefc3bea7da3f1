"""``textDocument/linkedEditingRange``: both tags of an ACTION element."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from tamis.server.analysis.navigation.linked import WORD, linked_names
from tamis.server.lsp.workspace.elsewhere import Elsewhere, asked, offset_of

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from tamis.server.lsp.session import Session


def register(server: LanguageServer, session: Session) -> None:
    """Registers the verb."""

    def linked_editing_range(params: types.LinkedEditingRangeParams) -> dict[str, Any] | None:
        found = asked(session, params.text_document.uri)
        if found is None:
            return None
        document, snapshot = found
        names = linked_names(snapshot, offset_of(document, params.position))
        if names is None:
            return None
        places = Elsewhere(session, snapshot)
        return {"ranges": [places.range(snapshot.path, span) for span in names], "wordPattern": WORD}

    server.feature(types.TEXT_DOCUMENT_LINKED_EDITING_RANGE)(linked_editing_range)
