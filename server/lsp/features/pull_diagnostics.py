"""Diagnostics that are asked for: of one document, with those of the documents beside it, and of the whole workspace.

Findings of files that are not open are made in the scanner's thread, a few at a time, and kept as long as text and tools are the
same. A client that streams is answered as soon as something changed and not before (its request is held); any other is
answered at once. Clients to which diagnostics are pushed get those of files too where the settings say so. Must not know what a
finding means.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from tamis.server.analysis.kinds import uses_tools
from tamis.server.lsp import diagnostics
from tamis.server.lsp.documents import Document, path_of, uri_of
from tamis.server.lsp.pending import HELD
from tamis.server.lsp.structs import (
    Diagnostic,
    DocumentDiagnosticParams,
    FullReport,
    PublishDiagnosticsParams,
    UnchangedReport,
    WorkspaceDiagnosticParams,
    WorkspaceFullReport,
    WorkspaceUnchangedReport,
)
from tamis.server.lsp.trace import report_failure
from tamis.server.lsp.verb import Verb

if TYPE_CHECKING:
    from tamis.server.analysis.snapshot import Snapshot
    from tamis.server.lsp.envelope import MessageId
    from tamis.server.lsp.session import Session

MAX_RELATED = 20
MAX_REPORTED = 2_000
"""Files with findings that are reported; more are said in the log."""
SLICE_SECONDS = 0.05
REPORTS_A_MESSAGE = 100
NO_FINDINGS = "none"
_WORKSPACE = "workspace/diagnostic"


def pull(session: Session, params: DocumentDiagnosticParams) -> FullReport | UnchangedReport:
    """``textDocument/diagnostic``; the result id is a digest of the findings, so equal findings are never sent twice."""
    document = session.documents.get(params.text_document.uri)
    if document is None:
        return _report([], params.previous_result_id)
    report = _report(diagnostics.collect(session, document), params.previous_result_id)
    if document.kind == "manifest" and session.can("textDocument.diagnostic.relatedDocumentSupport"):
        related = _related(session, document)
        if related:
            report.related_documents = related
    return report


def _report(items: list[Diagnostic], previous: str | None) -> FullReport | UnchangedReport:
    result_id = digest(items)
    return UnchangedReport("unchanged", result_id) if result_id == previous else FullReport("full", result_id, items)


def digest(items: list[Diagnostic]) -> str:
    """The result id of findings."""
    return f"{hash(msgspec.json.encode(items)) & 0xFFFFFFFFFFFFFFFF:x}" if items else NO_FINDINGS


def _related(session: Session, document: Document) -> dict[str, FullReport | UnchangedReport]:
    """The reports of documents that a finding of this one points into, and of those that one pointed into before: a duplicate id
    is a finding of both files."""
    workspace = session.workspace
    now = _paths_beside(workspace.snapshot(document))[:MAX_RELATED]
    before = session.reports.beside.get(document.uri, [])
    session.reports.beside[document.uri] = now
    reports: dict[str, FullReport | UnchangedReport] = {}
    for path in dict.fromkeys((*now, *before)):
        other = workspace.open_document(path)
        if other is None:
            root = workspace.root_of(path)
            text = root.texts.get(path) if root is not None else None
            other = Document(uri_of(path), "", None, text or "", session.encoding)
            items = diagnostics.items_of(workspace.fresh_snapshot(other), other) if text is not None else []
        else:
            items = diagnostics.collect(session, other)
        if other.uri != document.uri:
            reports[other.uri] = _report(items, None)
    return reports


def _paths_beside(snapshot: Snapshot) -> list[str]:
    from tamis.server.analysis.diagnostics import diagnose

    return list(dict.fromkeys(item.path for finding in diagnose(snapshot) for item in finding.related if item.path))


def pull_workspace(session: Session, params: WorkspaceDiagnosticParams, request_id: MessageId) -> Any:
    """``workspace/diagnostic``: answered when the files were looked at, and for a client that streams when there is news."""
    session.reports.ask(request_id, params)
    return HELD


class _Asked:
    """A request for the workspace's findings."""

    def __init__(self, request_id: MessageId, params: WorkspaceDiagnosticParams) -> None:
        self.request_id = request_id
        self.token = params.partial_result_token
        self.known = {
            previous_result_id.uri: previous_result_id.value for previous_result_id in params.previous_result_ids
        }


class _Found(msgspec.Struct):
    """A file's findings and what they were made from."""

    text: str
    registry: object
    settings: object
    facts: object
    items: list[Diagnostic]
    result_id: str
    encoding: str


class Reports:
    """The findings of all files: made in slices in the scanner's thread, given out on the session's lane."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._asked: _Asked | None = None
        self._found: dict[str, _Found] = {}
        self._settings: list[str] = []
        """The paths of the folders' `tamis.toml` files that hold something."""
        self._unread: dict[str, str] = {}
        """Definitions that are not read, by path: links, pipes, what is too large; and why."""
        self._said: dict[str, str] = {}
        self._running = False
        self._again = False
        self._cut = False
        self.beside: dict[str, list[str]] = {}
        """By document: the paths whose findings were sent along with its own."""

    @property
    def pushed(self) -> bool:
        """Whether findings of files that are not open are published."""
        return not self._session.diagnostics.pulled and any(
            root.settings is not None and root.settings.settings.diagnostics.workspace == "on"
            for root in self._session.workspace.roots
        )

    # On the session's lane

    def ask(self, request_id: MessageId, params: WorkspaceDiagnosticParams) -> None:
        """A request; of two the later one is held, and the other is answered with nothing new."""
        if self._asked is not None:
            self._session.answer(self._asked.request_id, _WORKSPACE, {"items": []})
        self._asked = _Asked(request_id, params)
        self._run()

    def cancel(self, request_id: MessageId) -> None:
        """A held request was cancelled."""
        from tamis.server.wire.jsonrpc import REQUEST_CANCELLED, RpcError

        if self._asked is not None and self._asked.request_id == request_id:
            self._asked = None
            self._session.fail(request_id, RpcError(REQUEST_CANCELLED, "Cancelled"))

    def end(self) -> None:
        """The session ends: nothing stays held."""
        if self._asked is not None:
            self.cancel(self._asked.request_id)

    def opened(self, uri: str) -> None:
        """A document was opened: what is said of it from now on is the publisher's."""
        self._said.pop(uri, None)

    def closed(self, uri: str) -> None:
        """A document was closed: its file counts again."""
        self.beside.pop(uri, None)
        self.changed()

    def changed(self) -> None:
        """Files, tools or settings changed."""
        if self._asked is not None or self.pushed or self._said:
            self._run()

    def _run(self) -> None:
        if self._running:
            self._again = True
        else:
            self._running = True
            self._again = False
            self._session.scanner.later(lambda: self._start())

    # In the scanner's thread

    def _start(self) -> None:
        workspace = self._session.workspace
        workspace.settle()
        self._settings = [place for root in workspace.roots if (place := root.settings_place)]
        self._unread = {error.path: error.message for root in workspace.roots for error in root.unread}
        paths = [path for path in workspace.index.files() if path.startswith("/")]
        paths = list(dict.fromkeys((*paths, *self._settings, *self._unread)))
        for path in self._found.keys() - set(paths):
            del self._found[path]
        self._slice(paths, 0)

    def _slice(self, paths: list[str], at: int) -> None:
        until = time.monotonic() + SLICE_SECONDS
        while at < len(paths) and time.monotonic() < until:
            self._session.scanner.give_way()
            self._look(paths[at])
            at += 1
        if at < len(paths):
            self._session.scanner.later(lambda: self._slice(paths, at))
        else:
            self._session.post(self._finish)

    def _look(self, path: str) -> None:
        session = self._session
        workspace = session.workspace
        document = workspace.open_document(path) or Document(uri_of(path), "", None, self._text(path), session.encoding)
        is_settings = path in self._settings
        if not uses_tools(document.kind) and not is_settings:
            self._found.pop(path, None)
            return
        snapshot = workspace.fresh_snapshot(document)
        key = (snapshot.text, snapshot.registry, snapshot.settings, snapshot.folder)
        known = self._found.get(path)
        if (
            known is not None
            and not is_settings  # what they name may have come or gone
            and path not in self._unread
            and key[0] == known.text
            and key[1] is known.registry
            and key[2:] == (known.settings, known.facts)
        ):
            return
        try:
            unread = None if workspace.index.knows(path) else self._unread.get(path)
            items = diagnostics.items_of(snapshot, document) if unread is None else [diagnostics.unread(unread)]
        except Exception:  # one strange file must not keep the others from being looked at
            report_failure(f"diagnostics of {os.path.basename(path)}")
            items = []
        self._found[path] = _Found(*key, items, digest(items), document.encoding)

    def _text(self, path: str) -> str:
        workspace = self._session.workspace
        root = workspace.root_of(path)
        return root.settings_text if root is not None and path == root.settings_place else workspace.index.text(path)

    # On the session's lane again

    def _finish(self) -> None:
        self._running = False
        if self._again:
            self._run()
            return
        reported = self._reported()
        if self._asked is not None:
            self._answer(self._asked, reported)
        if self.pushed or self._said:
            self._push(reported if self.pushed else {})

    def _reported(self) -> dict[str, tuple[Document | None, _Found]]:
        """Files by the URI that the client knows them by, those with findings first in number."""
        workspace = self._session.workspace
        by_path = dict(sorted(self._found.items()))
        if len(by_path) > MAX_REPORTED:
            with_findings = [path for path, report in by_path.items() if report.items]
            if len(with_findings) > MAX_REPORTED and not self._cut:
                self._cut = True
                self._session.log(
                    f"{len(with_findings)} files have findings; those of the first {MAX_REPORTED} are reported"
                )
            by_path = {path: by_path[path] for path in with_findings[:MAX_REPORTED]}
        result: dict[str, tuple[Document | None, _Found]] = {}
        for path, report in by_path.items():
            document = workspace.open_document(path)
            result[document.uri if document is not None else uri_of(path)] = (document, report)
        return result

    def _answer(self, asked: _Asked, reported: dict[str, tuple[Document | None, _Found]]) -> None:
        session = self._session
        reports: list[WorkspaceFullReport | WorkspaceUnchangedReport] = []
        news = False
        for uri, (document, current) in reported.items():
            version = document.version if document is not None else None
            before = asked.known.get(uri)
            if before == current.result_id:
                reports.append(WorkspaceUnchangedReport(uri, version, "unchanged", current.result_id))
            elif current.items or before is not None:
                news = True
                reports.append(WorkspaceFullReport(uri, version, "full", current.result_id, current.items))
        for uri in asked.known.keys() - reported.keys():
            # A file that is gone, or says nothing about tools any more.
            if asked.known[uri] != NO_FINDINGS and path_of(uri) and session.documents.get(uri) is None:
                news = True
                reports.append(WorkspaceFullReport(uri, None, "full", NO_FINDINGS, []))
        if asked.token is not None and not news:
            return
        self._asked = None
        if asked.token is None:
            session.answer(asked.request_id, _WORKSPACE, {"items": reports})
            return
        workspace_full_reports = [report for report in reports if isinstance(report, WorkspaceFullReport)]
        for at in range(0, len(workspace_full_reports), REPORTS_A_MESSAGE):
            value = {"items": workspace_full_reports[at : at + REPORTS_A_MESSAGE]}
            session.notify("$/progress", {"token": asked.token, "value": value})
        session.answer(asked.request_id, _WORKSPACE, {"items": []})

    def _push(self, reported: dict[str, tuple[Document | None, _Found]]) -> None:
        """Publishes what changed about files that are not open; open documents are the publisher's."""
        result_ids: dict[str, str] = {}
        for uri, (document, report) in reported.items():
            if document is None and report.items:
                result_ids[uri] = report.result_id
                if self._said.get(uri) != report.result_id:
                    self._publish(uri, report.items)
        for uri in self._said.keys() - result_ids.keys():
            if uri not in self._session.documents:
                self._publish(uri, [])
        self._said = result_ids

    def _publish(self, uri: str, items: Iterable[Diagnostic]) -> None:
        params = PublishDiagnosticsParams(uri, list(items), UNSET)
        self._session.notify("textDocument/publishDiagnostics", params, key=("diagnostics", uri))


def _capability(session: Session) -> dict[str, Any]:
    if not diagnostics.pulls(session):
        return {}
    about = {"identifier": "tamis", "interFileDependencies": True, "workspaceDiagnostics": True}
    return {"diagnosticProvider": about}


REQUESTS = (
    Verb(
        method="textDocument/diagnostic",
        params=DocumentDiagnosticParams,
        handler=pull,
        schedule="now",
        capability=_capability,
        waits=diagnostics.tools_wait,
    ),
    Verb(
        method=_WORKSPACE,
        params=WorkspaceDiagnosticParams,
        handler=pull_workspace,
        schedule="now",
        gets_id=True,
    ),
)
