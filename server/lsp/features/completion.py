"""``textDocument/completion`` and ``completionItem/resolve``: proposals as completion items, in the forms that the client knows.

A client without snippets gets no tab stops, one that resolves gets documentation only for what it looks at, one that knows
``itemDefaults`` gets the range once.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import UNSET

from tamis.server.analysis.completion.proposals import complete as propose
from tamis.server.analysis.completion.proposals import documentation_of
from tamis.server.analysis.kinds import serves
from tamis.server.lsp.structs import (
    CompletionItem,
    CompletionList,
    CompletionParams,
    InsertReplaceEdit,
    ItemDefaults,
    LabelDetails,
    MarkupContent,
    Range,
    TextEdit,
)
from tamis.server.lsp.verb import Verb
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from tamis.server.analysis.answers import Proposal
    from tamis.server.lsp.documents import Document
    from tamis.server.lsp.session import Session

TRIGGERS = ("<", "|", "[", "/", '"', ":", "»", "「", "始", ">", "{", ",", "«")
REGISTRY_WAIT_SECONDS = 0.5
KEPT_LISTS = 4
"""Lists whose documentation can still be asked for; a client resolves items of the list that it shows."""
MAX_DOCUMENTATION = 64 * 1024
"""Characters of documentation in one list, for clients that cannot ask for it item by item."""
_KINDS = {
    "block": 15,
    "tool": 3,
    "parameter": 5,
    "value": 12,
    "property": 10,
    "file": 17,
    "folder": 19,
    "namespace": 9,
    "keyword": 14,
}
_FIRST_KINDS = 18
"""Clients that list no kinds know those up to this one."""
_ADJUST_INDENTATION = 2
_ITEM = "textDocument.completion.completionItem."


class Client(msgspec.Struct, frozen=True):
    """What a client can do with completion items."""

    snippets: bool
    tags: bool
    deprecated: bool
    resolves: bool
    insert_replace: bool
    label_details: bool
    preselect: bool
    adjusts: bool
    markdown: bool
    edit_range: bool
    format_default: bool
    kinds: frozenset[int] | None


def _client(session: Session) -> Client:
    capability = session.capability

    def listed(path: str) -> list[Any]:
        supported = capability(path)
        return cast("list[Any]", supported) if isinstance(supported, list) else []

    formats = listed(_ITEM + "documentationFormat")
    defaults = listed("textDocument.completion.completionList.itemDefaults")
    kinds = capability("textDocument.completion.completionItemKind.valueSet")
    return Client(
        snippets=session.can(_ITEM + "snippetSupport"),
        tags=1 in listed(_ITEM + "tagSupport.valueSet"),
        deprecated=session.can(_ITEM + "deprecatedSupport"),
        resolves="documentation" in listed(_ITEM + "resolveSupport.properties"),
        insert_replace=session.can(_ITEM + "insertReplaceSupport"),
        label_details=session.can(_ITEM + "labelDetailsSupport"),
        preselect=session.can(_ITEM + "preselectSupport"),
        adjusts=_ADJUST_INDENTATION in listed(_ITEM + "insertTextModeSupport.valueSet"),
        # Who says nothing about formats is given Markdown, as clients of old take it.
        markdown="markdown" in formats,
        edit_range="editRange" in defaults,
        format_default="insertTextFormat" in defaults,
        kinds=frozenset(item for item in cast("list[Any]", kinds) if isinstance(item, int))
        if isinstance(kinds, list)
        else None,
    )


class Kept:
    """The last lists of a session, so that documentation can be asked for item by item."""

    def __init__(self, session: Session) -> None:
        self.client = _client(session)
        self._next = 0
        self._lists: deque[tuple[int, tuple[Proposal, ...]]] = deque(maxlen=KEPT_LISTS)

    def keep(self, items: tuple[Proposal, ...]) -> int:
        """The number by which a list is known."""
        self._next += 1
        self._lists.append((self._next, items))
        return self._next

    def find(self, data: object) -> Proposal | None:
        """The proposal that an item's ``data`` means; None for one of a list that is gone."""
        if not isinstance(data, list) or len(cast("list[Any]", data)) != 2:
            return None
        number, index = cast("list[Any]", data)
        for known, items in self._lists:
            if known == number and isinstance(index, int) and 0 <= index < len(items):
                return items[index]
        return None


def complete(session: Session, params: CompletionParams) -> CompletionList:
    """Proposals at a position; none for a document that is not open."""
    document = session.documents.get(params.text_document.uri)
    if document is None or not serves(document.kind, "complete"):
        return CompletionList(False, [])
    kept = session.state(Kept)
    client = kept.client
    offset = document.offset(params.position)
    proposals = propose(session.workspace.snapshot(document), offset)
    items = proposals.items
    number = kept.keep(items) if client.resolves and items else 0
    common = _common_range(document, offset, items) if client.edit_range else None
    # Plain text is what a client takes for granted.
    most = 2 if client.format_default and client.snippets and any(item.snippet for item in items) else 1
    maker = _Maker(document, offset, client, number, common, most)
    completion_items = [maker.item(item, index) for index, item in enumerate(items)]
    defaults = UNSET
    if completion_items and (common is not None or most != 1):
        edit_range = common[1] if common is not None else UNSET
        defaults = ItemDefaults(edit_range, most if most != 1 else UNSET)
    return CompletionList(proposals.cut, completion_items, defaults)


def resolve(session: Session, item: dict[str, Any]) -> dict[str, Any]:
    """The same item with its documentation; as it came where its list is gone."""
    if not isinstance(item.get("label"), str):
        raise RpcError(INVALID_PARAMS, "An item to resolve has a label")
    kept = session.state(Kept)
    proposal = kept.find(item.get("data"))
    if proposal is None:
        return item
    documentation = documentation_of(proposal)
    if not documentation:
        return item
    return {**item, "documentation": _markup(documentation, kept.client.markdown)}


def _markup(text: str, markdown: bool) -> MarkupContent:
    return MarkupContent("markdown", text) if markdown else MarkupContent("plaintext", plain(text))


def plain(markdown: str) -> str:
    """Our own Markdown without its marks, for clients that show plain text only."""
    return markdown.replace("**", "").replace("`` ", "").replace(" ``", "").replace("`", "")


def _common_range(document: Document, offset: int, items: tuple[Proposal, ...]) -> tuple[tuple[int, int], Range] | None:
    """The span that all items replace, with its range; None where they differ."""
    spans = {item.span for item in items}
    if len(spans) != 1:
        return None
    span = next(iter(spans))
    return span, document.range(_on_one_line(document.text, span, offset))


def _on_one_line(text: str, span: tuple[int, int], offset: int) -> tuple[int, int]:
    """A span cut to the cursor's line: a client refuses an edit that does not stay on it."""
    start, end = span
    for char in "\n\r":
        start = max(start, min(text.rfind(char, start, offset) + 1, offset))
        position = text.find(char, max(start, offset), end)
        end = position if position >= 0 else end
    return start, max(start, end)


class _Maker:
    """Items of one list."""

    def __init__(
        self,
        document: Document,
        offset: int,
        client: Client,
        number: int,
        common: tuple[tuple[int, int], Range] | None,
        default_format: int,
    ) -> None:
        self._document = document
        self._offset = offset
        self._client = client
        self._number = number
        self._common = common
        self._format = default_format
        self._ranges: dict[tuple[int, int], Range] = {}
        self._said = 0
        self._chosen = False

    def item(self, proposal: Proposal, index: int) -> CompletionItem:
        """One proposal as an item."""
        client = self._client
        snippet = proposal.snippet if client.snippets else ""
        text = snippet or proposal.text
        kind = _KINDS[proposal.kind]
        known = client.kinds
        item = CompletionItem(
            proposal.label,
            kind=kind if (kind in known if known is not None else kind <= _FIRST_KINDS) else UNSET,
            detail=proposal.detail or UNSET,
            sort_text=proposal.sort or UNSET,
            filter_text=proposal.filter if proposal.filter and proposal.filter != proposal.label else UNSET,
        )
        if (2 if snippet else 1) != self._format:
            item.insert_text_format = 2 if snippet else 1
        if client.adjusts and "\n" in text:
            item.insert_text_mode = _ADJUST_INDENTATION
        if client.label_details and proposal.aside and proposal.aside != proposal.label:
            item.label_details = LabelDetails(description=proposal.aside)
        if proposal.deprecated:
            if client.tags:
                item.tags = [1]
            elif client.deprecated:
                item.deprecated = True
        if proposal.preselect and client.preselect and not self._chosen:
            self._chosen = item.preselect = True
        self._edit(item, proposal, text)
        if proposal.extra:
            item.additional_text_edits = [
                TextEdit(self._document.range((start, end)), new) for start, end, new in proposal.extra
            ]
        self._document_item(item, proposal, index)
        return item

    def _edit(self, item: CompletionItem, proposal: Proposal, text: str) -> None:
        if self._common is not None:
            item.text_edit_text = text
            return
        whole = self._range(_on_one_line(self._document.text, proposal.span, self._offset))
        # What is closed by a quote or bracket of its own must replace the old one: there, only one edit is right.
        bare = self._client.insert_replace and text[:1] not in "\"'<{[" and proposal.span[1] > self._offset
        if bare and proposal.span[0] <= self._offset:
            before = self._range(_on_one_line(self._document.text, (proposal.span[0], self._offset), self._offset))
            item.text_edit = InsertReplaceEdit(text, before, whole)
        else:
            item.text_edit = TextEdit(whole, text)

    def _range(self, span: tuple[int, int]) -> Range:
        place = self._ranges.get(span)
        if place is None:
            place = self._ranges[span] = self._document.range(span)
        return place

    def _document_item(self, item: CompletionItem, proposal: Proposal, index: int) -> None:
        if self._number:
            if proposal.documentation or proposal.subject is not None:
                item.data = [self._number, index]
        elif self._said < MAX_DOCUMENTATION:
            documentation = documentation_of(proposal)
            if documentation:
                self._said += len(documentation)
                item.documentation = _markup(documentation, self._client.markdown)


REQUESTS = (
    Verb(
        method="textDocument/completion",
        params=CompletionParams,
        handler=complete,
        schedule="now",
        capability={
            "completionProvider": {
                "triggerCharacters": list(TRIGGERS),
                "resolveProvider": True,
                "completionItem": {"labelDetailsSupport": True},
            }
        },
        waits=lambda _session, _document: REGISTRY_WAIT_SECONDS,
    ),
    Verb(method="completionItem/resolve", params=dict[str, Any], handler=resolve, schedule="now"),
)
