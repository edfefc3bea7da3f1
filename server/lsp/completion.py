"""``textDocument/completion``: proposals as completion items, without tab stops for clients that do not know them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from tamis.server.analysis.completion import complete as propose
from tamis.server.lsp.structs import CompletionItem, CompletionList, CompletionParams, MarkupContent, TextEdit

if TYPE_CHECKING:
    from tamis.server.analysis.answers import Proposal
    from tamis.server.lsp.documents import Document
    from tamis.server.lsp.session import Session

TRIGGERS = ("<", "|", "[", "/", '"', ":", "»", "「", "始", ">")
REGISTRY_WAIT_SECONDS = 0.5
_KINDS = {"block": 15, "tool": 3, "parameter": 5, "value": 12, "property": 10, "file": 17, "keyword": 14}


def complete(session: Session, params: CompletionParams) -> CompletionList:
    """Proposals at a position; none for a document that is not open."""
    document = session.documents.get(params.text_document.uri)
    if document is None or document.kind == "other":
        return CompletionList(False, [])
    snapshot = session.workspace.snapshot(document, wait=REGISTRY_WAIT_SECONDS)
    found = propose(snapshot, document.offset(params.position))
    snippets = session.can("textDocument.completion.completionItem.snippetSupport")
    deprecated = 1 in (session.capability("textDocument.completion.completionItem.tagSupport.valueSet") or ())
    return CompletionList(found.cut, [_item(item, document, snippets, deprecated) for item in found.items])


def _item(proposal: Proposal, document: Document, snippets: bool, deprecated: bool) -> CompletionItem:
    snippet = proposal.snippet if snippets else ""
    return CompletionItem(
        proposal.label,
        kind=_KINDS[proposal.kind],
        tags=[1] if proposal.deprecated and deprecated else UNSET,
        detail=proposal.detail or UNSET,
        documentation=MarkupContent("markdown", proposal.documentation) if proposal.documentation else UNSET,
        sort_text=proposal.sort or UNSET,
        filter_text=proposal.filter or UNSET,
        insert_text_format=2 if snippet else 1,
        text_edit=TextEdit(document.range(proposal.span), snippet or proposal.text),
        additional_text_edits=[TextEdit(document.range((start, end)), text) for start, end, text in proposal.extra]
        or UNSET,
    )
