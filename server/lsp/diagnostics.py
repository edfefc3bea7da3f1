"""Diagnostics: pushed when the input is idle, or pulled by clients that declare it and can be told to pull again; never both.

Idle means that nothing is waiting to be read, so a burst of keystrokes is answered once and a single one at once, without
a fixed delay.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from tamis.protocols.positions import LineIndex
from tamis.server.analysis.kinds import serves, uses_tools
from tamis.server.lsp.documents import Document, uri_of
from tamis.server.lsp.structs import (
    CodeDescription,
    Diagnostic,
    Location,
    Position,
    PublishDiagnosticsParams,
    Range,
    RelatedInformation,
)
from tamis.server.runtime.settings.rule_pages import page_uri

if TYPE_CHECKING:
    from tamis.server.analysis.answers import Finding, Related
    from tamis.server.analysis.snapshot import Snapshot
    from tamis.server.lsp.session import Session
    from tamis.server.lsp.workspace.roots import Root

SOURCE = "tamis"
REGISTRY_WAIT_SECONDS = 0.5
_SEVERITIES = {"error": 1, "warning": 2, "information": 3, "hint": 4}
_TAGS = {"unnecessary": 1, "deprecated": 2}


class Publisher:
    """What the client is owed when the input is idle, and what was last said about each document."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._owed: dict[str, None] = {}
        self._said: dict[str, tuple[int | None, bytes]] = {}
        self._begun: dict[str, tuple[int | None, bytes]] = {}
        """What was said of large manifests before all that is to be said of them was known."""
        self._asks: dict[str, None] = {}
        self._edited: dict[Root, None] = {}
        self._pulled: bool | None = None
        """What the client said of that in ``initialize``; None before it."""
        self._later: dict[str, float] = {}
        self.arrived: Callable[[], bool] = lambda: False
        self.overtaken = False
        """Whether more input had arrived before the last answer was written; what comes after it may be an answer to it."""

    @property
    def pulled(self) -> bool:
        """Whether the client asks for diagnostics instead of getting them."""
        if self._pulled is None:
            answer = pulls(self._session)
            if self._session.initialize is None:
                return answer
            self._pulled = answer
        return self._pulled

    @property
    def waiting(self) -> bool:
        """Whether something is to be sent when the input is idle."""
        return bool(self._owed or self._asks or self._edited)

    @property
    def urgent(self) -> bool:
        """Whether some of it is about a document itself, and not only about what an edit changed elsewhere."""
        return bool(self._owed or self._asks)

    def owes_first(self, documents: Iterable[Document]) -> bool:
        """Whether a manifest is open about which not all was said yet; any thread."""
        return not self.pulled and any(
            document.kind == "manifest" and document.uri not in self._said for document in documents
        )

    @property
    def due(self) -> float | None:
        """When something is to be sent that waits for tools (monotonic seconds)."""
        return min(self._later.values(), default=None)

    def wake(self) -> None:
        """Waits no longer than was meant for tools."""
        now = time.monotonic()
        for uri in [uri for uri, until in self._later.items() if until <= now]:
            del self._later[uri]
            self._owed[uri] = None
            if (document := self._session.documents.get(uri)) is not None:
                self._session.workspace.waited(document)

    def changed(self, document: Document) -> None:
        """A document was opened or edited."""
        if self.pulled or not speaks(document) or document.uri in self._later:
            return
        if self._session.workspace.waits(document) and (wait := tools_wait(self._session, document)):
            self._later[document.uri] = time.monotonic() + wait
        else:
            self._owed[document.uri] = None

    def edited(self, root: Root) -> None:
        """A manifest of a folder was edited: its tools may be others."""
        self._edited[root] = None

    def refresh(self, documents: Iterable[Document]) -> None:
        """What documents mean may have changed without an edit to them (tools, settings, files)."""
        if not self.pulled:
            documents = list(documents)
            for document in documents:
                self._later.pop(document.uri, None)
            self._owed.update((document.uri, None) for document in documents if speaks(document))
        else:
            self.owe("workspace/diagnostic/refresh")

    def owe(self, method: str) -> None:
        """A refresh to ask the client for; many become one."""
        self._asks[method] = None

    def closed(self, document: Document) -> None:
        """Withdraws what was pushed about a document."""
        self._owed.pop(document.uri, None)
        self._later.pop(document.uri, None)
        told = (self._said.pop(document.uri, None), self._begun.pop(document.uri, None))
        if told != (None, None):
            self._publish(PublishDiagnosticsParams(document.uri, []))

    def publish_next(self) -> None:
        """Does one thing that is owed."""
        self.overtaken = False
        session = self._session
        uri = next(iter(self._owed), None)
        if uri is None:
            if self._edited:
                root = next(iter(self._edited))
                del self._edited[root]
                session.manifest_edited(root)
            elif self._asks:
                method = next(iter(self._asks))
                del self._asks[method]
                session.ask(method, None)
            return
        del self._owed[uri]
        document = session.documents.get(uri)
        if document is None:
            return
        first = self._first(document)
        items = collect(session, document) if first is None else first
        saying = (document.version, msgspec.json.encode(items))
        self.overtaken = self.arrived()
        if first is not None:
            self._begun[uri] = saying
            self._owed[uri] = None
        else:
            before = self._said.get(uri) or self._begun.pop(uri, None)
            self._said[uri] = saying
            if before == saying:
                return
        version = UNSET if document.version is None else document.version
        self._publish(PublishDiagnosticsParams(uri, items, version))

    def _first(self, document: Document) -> list[Diagnostic] | None:
        """What is said of a large manifest at once, while all that is to be said of it was never known; None where that is to be said now."""
        if not serves(document.kind, "diagnose_first") or document.uri in self._said:
            return None
        begun = self._begun.get(document.uri)
        if begun is not None and begun[0] == document.version:
            return None
        from tamis.server.analysis.diagnostics import diagnose_first

        snapshot = self._session.workspace.snapshot(document)
        findings = diagnose_first(snapshot)
        return None if findings is None else [to_lsp(finding, document, snapshot) for finding in findings]

    def _publish(self, params: PublishDiagnosticsParams) -> None:
        # Only the last word about a document matters to a client that does not keep up.
        self._session.notify("textDocument/publishDiagnostics", params, key=("diagnostics", params.uri))


def speaks(document: Document) -> bool:
    """Whether there can be findings of a document."""
    if uses_tools(document.kind):
        return True
    if document.path is None or not serves(document.kind, "diagnose"):
        return False
    from tamis.server.analysis.navigation.workflows import may_be_graph

    return document.kind != "workflow" or may_be_graph(document.path, document.text)


def collect(session: Session, document: Document) -> list[Diagnostic]:
    """A document's findings in the client's terms, with the tools that are known now."""
    if not speaks(document):
        return []
    snapshot = session.workspace.snapshot(document)
    diagnostics = items_of(snapshot, document)
    if session.has_runs(document.uri):
        from tamis.server.lsp.running.runs import run_findings

        diagnostics += run_findings(session, document, snapshot)
    return diagnostics


def pulls(session: Session) -> bool:
    """Whether findings are asked for by this client. One that cannot be told to ask again would keep old findings when other files,
    the settings or the disk change: it is not offered to ask, and gets them like any other."""
    return session.can("textDocument.diagnostic") and session.can("workspace.diagnostics.refreshSupport")


def items_of(snapshot: Snapshot, document: Document) -> list[Diagnostic]:
    """The findings of a snapshot in the client's terms."""
    # Not at start: the answer to initialize waits for no analysis.
    from tamis.server.analysis.diagnostics import diagnose

    return [to_lsp(finding, document, snapshot) for finding in diagnose(snapshot)]


def tools_wait(session: Session, document: Document) -> float:
    """How long findings may wait for the tools of the folder: without them they are incomplete."""
    # Calls mean nothing without the tools; a manifest's own findings need not wait for the others.
    return 0.0 if document.kind == "manifest" else REGISTRY_WAIT_SECONDS


def to_lsp(finding: Finding, document: Document, snapshot: Snapshot) -> Diagnostic:
    """A finding as an LSP diagnostic."""
    related = [
        RelatedInformation(Location(*_place(item, document, snapshot)), item.message) for item in finding.related
    ]
    href = finding.href or page_uri(finding.code)
    return Diagnostic(
        document.range(finding.span),
        finding.message,
        severity=_SEVERITIES[finding.severity],
        code=finding.code,
        source=SOURCE,
        code_description=CodeDescription(href) if href else UNSET,
        tags=[_TAGS[tag] for tag in finding.tags] or UNSET,
        related_information=related or UNSET,
        data={"slug": finding.slug},
    )


def unread(message: str) -> Diagnostic:
    """The finding about a definition that is not read, at its beginning."""
    start = Range(Position(0, 0), Position(0, 0))
    href = page_uri("MF500")
    about = CodeDescription(href) if href else UNSET
    return Diagnostic(
        start,
        message,
        severity=_SEVERITIES["error"],
        code="MF500",
        source=SOURCE,
        code_description=about,
        data={"slug": "unreadable"},
    )


def _place(related: Related, document: Document, snapshot: Snapshot) -> tuple[str, Range]:
    if not related.path:
        return document.uri, document.range(related.span)
    if related.line is not None:
        place = Position(related.line, 0)
        return uri_of(related.path), Range(place, place)
    lines = LineIndex(snapshot.text_at(related.path))
    start, end = (lines.position(offset, document.encoding) for offset in related.span)
    return uri_of(related.path), Range(Position(*start), Position(*end))
