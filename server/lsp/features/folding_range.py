"""``textDocument/foldingRange``, within what the client can fold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tamis.server.lsp.diagnostics import speaks
from tamis.server.lsp.verb import Verb

if TYPE_CHECKING:
    from lsprotocol import types

    from tamis.server.lsp.session import Session


def folding_range(session: Session, params: types.FoldingRangeParams) -> msgspec.Raw | None:
    """What can be folded in a document."""
    from tamis.server.analysis.shown.folding import folds
    from tamis.server.lsp.fold_data import Wish, fold_ranges

    document = session.documents.get(params.text_document.uri)
    if document is None or not speaks(document):
        return None
    limit = session.capability("textDocument.foldingRange.rangeLimit")
    wish = Wish(
        lines_only=session.capability("textDocument.foldingRange.lineFoldingOnly") is True,
        limit=limit if isinstance(limit, int) and limit > 0 else None,
        texts=session.capability("textDocument.foldingRange.foldingRange.collapsedText") is True,
    )
    areas = folds(session.workspace.snapshot(document, wait=0.5))
    return msgspec.Raw(msgspec.json.encode(fold_ranges(document, areas, wish)))


REQUESTS = (
    Verb(
        method="textDocument/foldingRange",
        params="FoldingRangeParams",
        handler=folding_range,
        schedule="snapshot",
        capability={"foldingRangeProvider": True},
    ),
)
