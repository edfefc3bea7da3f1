"""What the client tells of files and folders: changed on disk, made, renamed or deleted in the editor, added to the workspace."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tamis.server.lsp.documents import path_of
from tamis.server.lsp.structs import (
    DidChangeFoldersParams,
    DidChangeWatchedFilesParams,
    FilesParams,
    RenamedFilesParams,
)
from tamis.server.lsp.verb import Verb
from tamis.server.lsp.workspace import watching
from tamis.server.lsp.workspace.watching import SCRIPTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.server.lsp.session import Session
    from tamis.server.lsp.workspace.roots import Root


def watched(session: Session, params: DidChangeWatchedFilesParams) -> None:
    """Files changed on disk: those are looked at again, whatever the event says of them."""
    _look(session, [change.uri for change in params.changes])
    if any(change.uri.endswith(SCRIPTS) for change in params.changes):
        # What a script says is held against its manifest.
        session.diagnostics.refresh(document for document in session.documents.values() if document.kind == "manifest")


def operated(session: Session, params: FilesParams) -> None:
    """Files or folders were created or deleted in the editor."""
    _look(session, [file.uri for file in params.files])


def renamed(session: Session, params: RenamedFilesParams) -> None:
    """Files or folders were renamed in the editor."""
    _look(session, [uri for file in params.files for uri in (file.old_uri, file.new_uri)])


def _look(session: Session, uris: list[str]) -> None:
    """Looks at files again."""
    paths = [path.rstrip("/") for uri in uris if (path := path_of(uri))]
    session.workspace.forget_facts()
    session.scanner.look(paths)


def folders(session: Session, params: DidChangeFoldersParams) -> None:
    """Folders were added or removed."""
    for folder in params.event.removed:
        if path := path_of(folder.uri):
            removed = session.workspace.remove(path.rstrip("/") or "/")
            if removed is not None:
                _forget(session, removed)
    paths = [path.rstrip("/") or "/" for folder in params.event.added if (path := path_of(folder.uri))]
    added = tuple(session.workspace.add(path) for path in paths if os.path.isabs(path))
    session.tools_changed()
    watching.load(session, added)


def _forget(session: Session, root: Root) -> None:
    session.scanner.later(lambda: session.scanner.forget(root))


def _operation(name: str) -> Callable[[Session], dict[str, Any]]:
    def capability(session: Session) -> dict[str, Any]:
        if not session.can(f"workspace.fileOperations.{name}"):
            return {}
        everything = {"filters": [{"scheme": "file", "pattern": {"glob": "**/*"}}]}
        return {"workspace": {"fileOperations": {name: everything}}}

    return capability


NOTIFICATIONS = (
    Verb(
        method="workspace/didChangeWatchedFiles",
        params=DidChangeWatchedFilesParams,
        handler=watched,
        schedule="now",
    ),
    Verb(
        method="workspace/didChangeWorkspaceFolders",
        params=DidChangeFoldersParams,
        handler=folders,
        schedule="now",
        capability={"workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}}},
    ),
    Verb(
        method="workspace/didCreateFiles",
        params=FilesParams,
        handler=operated,
        schedule="now",
        capability=_operation("didCreate"),
    ),
    Verb(
        method="workspace/didDeleteFiles",
        params=FilesParams,
        handler=operated,
        schedule="now",
        capability=_operation("didDelete"),
    ),
    Verb(
        method="workspace/didRenameFiles",
        params=RenamedFilesParams,
        handler=renamed,
        schedule="now",
        capability=_operation("didRename"),
    ),
)
