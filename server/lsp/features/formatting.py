"""``textDocument/formatting``, ``rangeFormatting``, ``rangesFormatting`` and ``onTypeFormatting``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tamis.server.analysis.kinds import serves
from tamis.server.lsp import convert
from tamis.server.lsp.structs import TextEdit
from tamis.server.lsp.verb import Verb
from tamis.server.lsp.workspace.elsewhere import offset_of

if TYPE_CHECKING:
    from lsprotocol import types

    from tamis.protocols.model import Edit
    from tamis.server.analysis.shown.formatting import Layout
    from tamis.server.lsp.documents import Document
    from tamis.server.lsp.session import Session

TYPED = (">", "»", "」", "\n")
"""Characters after which something may be typed for the user; a test holds them against the analysis."""


def formatting(session: Session, params: types.DocumentFormattingParams) -> msgspec.Raw | None:
    """A whole document in its canonical form."""
    from tamis.server.analysis.shown.formatting import format_document

    document = session.documents.get(params.text_document.uri)
    if document is None or not serves(document.kind, "format"):
        return None
    snapshot = session.workspace.snapshot(document, wait=0.5)
    return _edits(document, format_document(snapshot, _layout(params.options)))


def range_formatting(session: Session, params: types.DocumentRangeFormattingParams) -> msgspec.Raw | None:
    """What a range touches."""
    return _ranges(session, params.text_document.uri, [params.range], params.options)


def ranges_formatting(session: Session, params: types.DocumentRangesFormattingParams) -> msgspec.Raw | None:
    """What several ranges touch."""
    return _ranges(session, params.text_document.uri, params.ranges, params.options)


def _ranges(
    session: Session, uri: str, wanted: Sequence[types.Range], options: types.FormattingOptions
) -> msgspec.Raw | None:
    from tamis.server.analysis.shown.formatting import format_ranges

    document = session.documents.get(uri)
    if document is None or not serves(document.kind, "format"):
        return None
    spans = [convert.to_span(document, place) for place in wanted]
    snapshot = session.workspace.snapshot(document, wait=0.5)
    return _edits(document, format_ranges(snapshot, spans, _layout(options)))


def on_type_formatting(session: Session, params: types.DocumentOnTypeFormattingParams) -> msgspec.Raw | None:
    """What is typed for the user behind a character."""
    from tamis.server.analysis.shown.on_type import on_type

    document = session.documents.get(params.text_document.uri)
    if document is None or document.kind != "text":
        return None
    snapshot = session.workspace.snapshot(document)
    edits = on_type(snapshot, offset_of(document, params.position), params.ch, _layout(params.options))
    return _edits(document, edits)


def _range_capability(session: Session) -> dict[str, Any]:
    several = session.can("textDocument.rangeFormatting.rangesSupport")
    return {"documentRangeFormattingProvider": {"rangesSupport": True} if several else True}


def _layout(options: types.FormattingOptions) -> Layout:
    from tamis.server.analysis.shown.formatting import Layout

    return Layout(options.tab_size, options.insert_spaces, options.trim_final_newlines, options.insert_final_newline)


def _edits(document: Document, edits: Sequence[Edit]) -> msgspec.Raw:
    # A minified file has tens of thousands, which the framework's converter need not see one by one.
    plain = [TextEdit(document.range((edit.start, edit.end)), edit.new_text) for edit in edits]
    return msgspec.Raw(msgspec.json.encode(plain))


REQUESTS = (
    Verb(
        method="textDocument/formatting",
        params="DocumentFormattingParams",
        handler=formatting,
        schedule="snapshot",
        capability={"documentFormattingProvider": True},
    ),
    Verb(
        method="textDocument/rangeFormatting",
        params="DocumentRangeFormattingParams",
        handler=range_formatting,
        schedule="snapshot",
        capability=_range_capability,
    ),
    Verb(
        method="textDocument/rangesFormatting",
        params="DocumentRangesFormattingParams",
        handler=ranges_formatting,
        schedule="snapshot",
    ),
    Verb(
        method="textDocument/onTypeFormatting",
        params="DocumentOnTypeFormattingParams",
        handler=on_type_formatting,
        schedule="snapshot",
        capability={
            "documentOnTypeFormattingProvider": {
                "firstTriggerCharacter": TYPED[0],
                "moreTriggerCharacter": list(TYPED[1:]),
            }
        },
    ),
)
