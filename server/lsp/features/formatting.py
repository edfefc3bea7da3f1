"""``textDocument/formatting``, ``rangeFormatting``, ``rangesFormatting`` and ``onTypeFormatting``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
from lsprotocol import types

from tamis.server.analysis.shown.formatting import Layout, format_document, format_ranges
from tamis.server.analysis.shown.on_type import TRIGGERS, on_type
from tamis.server.lsp import convert
from tamis.server.lsp.structs import TextEdit

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from tamis.protocols.model import Edit
    from tamis.server.lsp.documents import Document
    from tamis.server.lsp.session import Session


def register(server: LanguageServer, session: Session) -> None:
    """Registers the verbs."""

    def formatting(params: types.DocumentFormattingParams) -> msgspec.Raw | None:
        document = session.documents.get(params.text_document.uri)
        if document is None or document.kind == "other":
            return None
        snapshot = session.workspace.snapshot(document, wait=0.5)
        return _edits(document, format_document(snapshot, _layout(params.options)))

    def ranges(uri: str, wanted: Sequence[types.Range], options: types.FormattingOptions) -> msgspec.Raw | None:
        document = session.documents.get(uri)
        if document is None or document.kind == "other":
            return None
        spans = [convert.to_span(document, one) for one in wanted]
        snapshot = session.workspace.snapshot(document, wait=0.5)
        return _edits(document, format_ranges(snapshot, spans, _layout(options)))

    def range_formatting(params: types.DocumentRangeFormattingParams) -> msgspec.Raw | None:
        return ranges(params.text_document.uri, [params.range], params.options)

    def ranges_formatting(params: types.DocumentRangesFormattingParams) -> msgspec.Raw | None:
        return ranges(params.text_document.uri, params.ranges, params.options)

    def on_type_formatting(params: types.DocumentOnTypeFormattingParams) -> msgspec.Raw | None:
        document = session.documents.get(params.text_document.uri)
        if document is None or document.kind != "text":
            return None
        place = params.position
        offset = document.lines.offset(place.line, place.character, document.encoding)
        snapshot = session.workspace.snapshot(document)
        return _edits(document, on_type(snapshot, offset, params.ch, _layout(params.options)))

    server.feature(types.TEXT_DOCUMENT_FORMATTING)(formatting)
    server.feature(types.TEXT_DOCUMENT_RANGE_FORMATTING)(range_formatting)
    server.feature(types.TEXT_DOCUMENT_RANGES_FORMATTING)(ranges_formatting)
    options = types.DocumentOnTypeFormattingOptions(TRIGGERS[0], list(TRIGGERS[1:]))
    server.feature(types.TEXT_DOCUMENT_ON_TYPE_FORMATTING, options)(on_type_formatting)


def _layout(options: types.FormattingOptions) -> Layout:
    return Layout(options.tab_size, options.insert_spaces, options.trim_final_newlines, options.insert_final_newline)


def _edits(document: Document, edits: Sequence[Edit]) -> msgspec.Raw:
    # A minified file has tens of thousands, which the framework's converter need not see one by one.
    plain = [TextEdit(document.range((edit.start, edit.end)), edit.new_text) for edit in edits]
    return msgspec.Raw(msgspec.json.encode(plain))
