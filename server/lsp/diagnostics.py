"""Diagnostics: pushed when the input is idle, or pulled by clients that declare it; never both.

Idle means that nothing is waiting to be read, so a burst of keystrokes is answered once and a single one at once, without
a fixed delay.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from tamis.protocols.positions import LineIndex
from tamis.server.analysis.diagnostics import diagnose
from tamis.server.lsp.documents import Document, uri_of
from tamis.server.lsp.structs import (
    CodeDescription,
    Diagnostic,
    DocumentDiagnosticParams,
    FullReport,
    Location,
    Position,
    PublishDiagnosticsParams,
    Range,
    RelatedInformation,
    UnchangedReport,
)

if TYPE_CHECKING:
    from tamis.server.analysis.answers import Finding, Related
    from tamis.server.analysis.snapshot import Snapshot
    from tamis.server.lsp.session import Session

SOURCE = "tamis"
REGISTRY_WAIT_SECONDS = 0.5
ONLY_ANSWER_WAIT_SECONDS = 5.0
"""For clients that pull and cannot be told to pull again: what they get without the tools would stay wrong."""
_SEVERITIES = {"error": 1, "warning": 2, "information": 3, "hint": 4}
_TAGS = {"unnecessary": 1, "deprecated": 2}


class Publisher:
    """Which documents are owed findings, and what was last said about each."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._owed: dict[str, None] = {}
        self._said: dict[str, tuple[int | None, bytes]] = {}
        self._refresh = False

    @property
    def _pulled(self) -> bool:
        return self._session.can("textDocument.diagnostic")

    @property
    def waiting(self) -> bool:
        """Whether something is to be sent when the input is idle."""
        return bool(self._owed) or self._refresh

    def changed(self, document: Document) -> None:
        """A document was opened or edited."""
        if not self._pulled and document.kind != "other":
            self._owed[document.uri] = None

    def refresh(self, documents: Iterable[Document]) -> None:
        """What documents mean may have changed without an edit to them (tools, settings, files)."""
        if self._pulled:
            self._refresh = self._session.can("workspace.diagnostics.refreshSupport")
        else:
            self._owed.update((document.uri, None) for document in documents if document.kind != "other")

    def closed(self, document: Document) -> None:
        """Withdraws what was pushed about a document."""
        self._owed.pop(document.uri, None)
        if self._said.pop(document.uri, None) is not None:
            self._session.notify("textDocument/publishDiagnostics", PublishDiagnosticsParams(document.uri, []))

    def publish_next(self) -> None:
        """Sends what is owed to one document."""
        session = self._session
        if self._refresh:
            self._refresh = False
            session.ask("workspace/diagnostic/refresh", None)
            return
        uri = next(iter(self._owed), None)
        if uri is None:
            return
        del self._owed[uri]
        document = session.documents.get(uri)
        if document is None:
            return
        items = collect(session, document)
        encoded = msgspec.json.encode(items)
        if self._said.get(uri) == (document.version, encoded):
            return
        self._said[uri] = (document.version, encoded)
        version = UNSET if document.version is None else document.version
        session.notify("textDocument/publishDiagnostics", PublishDiagnosticsParams(uri, items, version))


def pull(session: Session, params: DocumentDiagnosticParams) -> FullReport | UnchangedReport:
    """``textDocument/diagnostic``; the result id is a digest of the findings, so equal findings are never sent twice."""
    document = session.documents.get(params.text_document.uri)
    items = collect(session, document) if document is not None else []
    result_id = f"{hash(msgspec.json.encode(items)) & 0xFFFFFFFFFFFFFFFF:x}"
    if result_id == params.previous_result_id:
        return UnchangedReport("unchanged", result_id)
    return FullReport("full", result_id, items)


def collect(session: Session, document: Document) -> list[Diagnostic]:
    """A document's findings in the client's terms."""
    if document.kind == "other":
        return []
    if session.can("textDocument.diagnostic") and not session.can("workspace.diagnostics.refreshSupport"):
        wait = ONLY_ANSWER_WAIT_SECONDS
    else:
        # Calls mean nothing without the tools; a manifest's own findings need not wait for the others.
        wait = 0.0 if document.kind == "manifest" else REGISTRY_WAIT_SECONDS
    snapshot = session.workspace.snapshot(document, wait=wait)
    return [to_lsp(finding, document, snapshot) for finding in diagnose(snapshot)]


def to_lsp(finding: Finding, document: Document, snapshot: Snapshot) -> Diagnostic:
    """A finding as an LSP diagnostic."""
    related = [
        RelatedInformation(Location(*_place(item, document, snapshot)), item.message) for item in finding.related
    ]
    return Diagnostic(
        document.range(finding.span),
        finding.message,
        severity=_SEVERITIES[finding.severity],
        code=finding.code,
        source=SOURCE,
        code_description=CodeDescription(finding.href) if finding.href else UNSET,
        tags=[_TAGS[tag] for tag in finding.tags] or UNSET,
        related_information=related or UNSET,
        data={"slug": finding.slug},
    )


def _place(related: Related, document: Document, snapshot: Snapshot) -> tuple[str, Range]:
    if not related.path:
        return document.uri, document.range(related.span)
    lines = LineIndex(snapshot.neighbours.get(related.path, ""))
    start, end = (lines.position(offset, document.encoding) for offset in related.span)
    return uri_of(related.path), Range(Position(*start), Position(*end))
