"""What the hot lane answers: each method with the struct of its params and its handler. Holds no state and no rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tamis.server.lsp import completion, lifecycle, pulling, syncing
from tamis.server.lsp.structs import (
    CompletionParams,
    DidChangeConfigurationParams,
    DidChangeFoldersParams,
    DidChangeParams,
    DidChangeWatchedFilesParams,
    DidOpenParams,
    DocumentDiagnosticParams,
    DocumentParams,
    FilesParams,
    InitializeParams,
    RenamedFilesParams,
    SetTraceParams,
    WorkspaceDiagnosticParams,
)
from tamis.server.lsp.workspace import watching

if TYPE_CHECKING:
    from tamis.server.lsp.envelope import MessageId
    from tamis.server.lsp.session import Session

    Request = Callable[[Session, Any, MessageId], Any]
    Notification = Callable[[Session, Any], Any]


def _at_once(handler: Notification) -> Request:
    """A handler that does not need to know which request it answers."""
    return lambda session, params, _: handler(session, params)


def _abort_tests(session: Session, _params: object) -> None:
    session.abort_tests()


REQUESTS: dict[str, tuple[type[Any], Request]] = {
    "initialize": (InitializeParams, _at_once(lifecycle.initialize)),
    "shutdown": (object, _at_once(lifecycle.shutdown)),
    "textDocument/completion": (CompletionParams, _at_once(completion.complete)),
    "completionItem/resolve": (dict[str, Any], _at_once(completion.resolve)),
    "textDocument/diagnostic": (DocumentDiagnosticParams, _at_once(pulling.pull)),
    "workspace/diagnostic": (WorkspaceDiagnosticParams, pulling.pull_workspace),
}

HOT_METHODS = frozenset(REQUESTS)
"""Requests that this lane answers."""

NEED_TOOLS = frozenset({"textDocument/completion", "textDocument/diagnostic"})
"""Requests that wait for the tools of their document's folder (``waiting.py``)."""

NOTIFICATIONS: dict[str, tuple[type[Any], Notification]] = {
    "initialized": (object, lifecycle.initialized),
    "$/setTrace": (SetTraceParams, lifecycle.set_trace),
    "textDocument/didOpen": (DidOpenParams, syncing.opened),
    "textDocument/didChange": (DidChangeParams, syncing.changed),
    "textDocument/didClose": (DocumentParams, syncing.closed),
    "textDocument/didSave": (DocumentParams, syncing.saved),
    "workspace/didChangeWatchedFiles": (DidChangeWatchedFilesParams, watching.watched),
    "workspace/didChangeConfiguration": (DidChangeConfigurationParams, lifecycle.configuration),
    "workspace/didChangeWorkspaceFolders": (DidChangeFoldersParams, watching.folders),
    "experimental/abortRunTest": (object, _abort_tests),
    "workspace/didCreateFiles": (FilesParams, watching.operated),
    "workspace/didDeleteFiles": (FilesParams, watching.operated),
    "workspace/didRenameFiles": (RenamedFilesParams, watching.renamed),
}

FRAMEWORK_NOTIFICATIONS = frozenset({"window/workDoneProgress/cancel"})
"""Notifications for the framework lane."""
