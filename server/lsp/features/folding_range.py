"""``textDocument/foldingRange``, within what the client can fold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from lsprotocol import types

from tamis.server.analysis.shown.folding import folds
from tamis.server.lsp.diagnostics import speaks
from tamis.server.lsp.fold_data import Wish, fold_ranges

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from tamis.server.lsp.session import Session


def register(server: LanguageServer, session: Session) -> None:
    """Registers the verb."""
    limit = session.capability("textDocument.foldingRange.rangeLimit")
    wish = Wish(
        lines_only=session.capability("textDocument.foldingRange.lineFoldingOnly") is True,
        limit=limit if isinstance(limit, int) and limit > 0 else None,
        texts=session.capability("textDocument.foldingRange.foldingRange.collapsedText") is True,
    )

    def folding_range(params: types.FoldingRangeParams) -> msgspec.Raw | None:
        document = session.documents.get(params.text_document.uri)
        if document is None or not speaks(document):
            return None
        found = folds(session.workspace.snapshot(document, wait=0.5))
        return msgspec.Raw(msgspec.json.encode(fold_ranges(document, found, wish)))

    server.feature(types.TEXT_DOCUMENT_FOLDING_RANGE)(folding_range)
