"""Changes on disk: told by the client's watcher, by its file operations, or found by the scanner where the client cannot watch."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tamis.server.lsp.documents import path_of
from tamis.server.lsp.workspace import loading
from tamis.server.lsp.workspace.scanning import Change
from tamis.server.lsp.workspace.wanted import CONFIGURATION, TEXTS

if TYPE_CHECKING:
    from tamis.server.lsp.session import Session
    from tamis.server.lsp.structs import (
        DidChangeFoldersParams,
        DidChangeWatchedFilesParams,
        FilesParams,
        RenamedFilesParams,
    )
    from tamis.server.lsp.workspace.roots import Root

WATCHED = (
    # Manifests, profiles, node definitions; which folders hold workflows the settings say, and those may change.
    "**/*.{json,jsonc}",
    *(f"**/{name}" for name in CONFIGURATION),
    "**/*.{" + ",".join(suffix[1:] for suffix in TEXTS) + "}",
)
SCRIPTS = ("py", "js", "mjs", "cjs", "ts", "tsx")
WATCHED_SCRIPTS = "**/*.{" + ",".join(SCRIPTS) + "}"


def registrations(session: Session) -> list[dict[str, Any]]:
    """What the client is asked to watch, where it can be asked."""
    if not session.client_watches:
        return []
    watchers: list[dict[str, Any]] = [{"globPattern": pattern} for pattern in WATCHED]
    watchers.append({"globPattern": WATCHED_SCRIPTS})
    return [
        {
            "id": "tamis-watch",
            "method": "workspace/didChangeWatchedFiles",
            "registerOptions": {"watchers": watchers},
        }
    ]


def watched(session: Session, params: DidChangeWatchedFilesParams) -> None:
    """Files changed on disk: those are looked at again, whatever the event says of them."""
    look(session, [change.uri for change in params.changes])
    if any(change.uri.endswith(SCRIPTS) for change in params.changes):
        # What a script says is held against its manifest.
        session.diagnostics.refresh(one for one in session.documents.values() if one.kind == "manifest")


def operated(session: Session, params: FilesParams) -> None:
    """Files or folders were created or deleted in the editor."""
    look(session, [file.uri for file in params.files])


def renamed(session: Session, params: RenamedFilesParams) -> None:
    """Files or folders were renamed in the editor."""
    look(session, [uri for file in params.files for uri in (file.old_uri, file.new_uri)])


def look(session: Session, uris: list[str]) -> None:
    """Looks at files again."""
    paths = [path.rstrip("/") for uri in uris if (path := path_of(uri))]
    session.workspace.forget_facts()
    session.scanner.look(paths)


def changed(session: Session, change: Change) -> None:
    """The scanner found that something is different on disk."""
    if change.root not in session.workspace.roots:
        session.scanner.later(lambda: session.scanner.forget(change.root))
        return
    session.workspace.forget_facts()
    if change.tools:
        loading.show_open(session, change.root)
        session.tools_changed()
        loading.tell_status(session, news=True)
    elif change.listing:
        # A script or a file beside a manifest may have come or gone.
        session.diagnostics.refresh(one for one in session.documents.values() if one.kind == "manifest")
    if any(path.endswith((".json", ".jsonc")) for path in change.paths):
        # A workflow that a profile lists may have come or gone.
        session.diagnostics.refresh(one for one in session.documents.values() if one.kind == "profile")
    session.reports.changed()


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
    loading.load(session, added)


def _forget(session: Session, root: Root) -> None:
    session.scanner.later(lambda: session.scanner.forget(root))
