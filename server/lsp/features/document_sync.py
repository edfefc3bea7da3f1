"""Document sync: what is open, at which version, and what an edit of it changes elsewhere. On the hot lane, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.server.lsp.documents import Document
from tamis.server.lsp.structs import DidChangeParams, DidOpenParams, DocumentParams
from tamis.server.lsp.verb import Verb
from tamis.server.lsp.workspace.watching import DEFINING

if TYPE_CHECKING:
    from tamis.server.lsp.session import Session


def opened(session: Session, params: DidOpenParams) -> None:
    """A document was opened."""
    item = params.text_document
    _put(session, Document(item.uri, item.language_id, item.version, item.text, session.encoding))
    session.reports.opened(item.uri)
    session.poll_if_needed()


def changed(session: Session, params: DidChangeParams) -> None:
    """A document was edited."""
    document = session.documents.get(params.text_document.uri)
    if document is not None:
        _put(session, document.changed(params.content_changes, params.text_document.version))


def _put(session: Session, document: Document) -> None:
    session.documents[document.uri] = document
    if session.workspace.note(document):
        session.files_changed()
    session.diagnostics.changed(document)
    root = session.workspace.root_of(document.path)
    if (
        document.kind in DEFINING
        and root is not None
        and document.path is not None
        and root.loaded.is_set()
        and root.contains(document.path)
        and root.show(document.path, document.text)
    ):
        session.diagnostics.edited(root)


def closed(session: Session, params: DocumentParams) -> None:
    """A document was closed: its pushed findings are withdrawn, and its file counts again."""
    document = session.documents.pop(params.text_document.uri, None)
    if document is None:
        return
    session.diagnostics.closed(document)
    session.workspace.forget(document)
    session.reports.closed(document.uri)
    root = session.workspace.root_of(document.path)
    if document.path is not None:
        session.scanner.look([document.path])
        if root is not None and root.hide(document.path):
            session.tools_changed()
    session.poll_if_needed()


def saved(session: Session, params: DocumentParams) -> None:
    """A document was saved: clients without file watching learn of new tools this way."""
    document = session.documents.get(params.text_document.uri)
    if document is not None and document.path is not None:
        session.scanner.look([document.path])


NOTIFICATIONS = (
    Verb(
        method="textDocument/didOpen",
        params=DidOpenParams,
        handler=opened,
        schedule="now",
        capability={"textDocumentSync": {"openClose": True}},
    ),
    Verb(
        method="textDocument/didChange",
        params=DidChangeParams,
        handler=changed,
        schedule="now",
        capability={"textDocumentSync": {"change": 2}},
    ),
    Verb(method="textDocument/didClose", params=DocumentParams, handler=closed, schedule="now"),
    Verb(
        method="textDocument/didSave",
        params=DocumentParams,
        handler=saved,
        schedule="now",
        capability={"textDocumentSync": {"save": {"includeText": False}}},
    ),
)
