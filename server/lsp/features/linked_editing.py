"""``textDocument/linkedEditingRange``: both tags of an ACTION element."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.server.lsp.verb import Verb
from tamis.server.lsp.workspace.elsewhere import Elsewhere, asked, offset_of

if TYPE_CHECKING:
    from lsprotocol import types

    from tamis.server.lsp.session import Session


def linked_editing_range(session: Session, params: types.LinkedEditingRangeParams) -> dict[str, Any] | None:
    """The names that change together."""
    from tamis.server.analysis.navigation.links import WORD, linked_names

    opened = asked(session, params.text_document.uri)
    if opened is None:
        return None
    document, snapshot = opened
    names = linked_names(snapshot, offset_of(document, params.position))
    if names is None:
        return None
    places = Elsewhere(session, snapshot)
    return {"ranges": [places.range(snapshot.path, span) for span in names], "wordPattern": WORD}


REQUESTS = (
    Verb(
        method="textDocument/linkedEditingRange",
        params="LinkedEditingRangeParams",
        handler=linked_editing_range,
        schedule="snapshot",
        capability={"linkedEditingRangeProvider": True},
    ),
)
