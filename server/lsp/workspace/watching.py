"""Changes on disk: told by the client's watcher, by its file operations, or found by the scanner where the client cannot watch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.server.lsp.workspace import loading
from tamis.server.lsp.workspace.scanning import Change
from tamis.server.lsp.workspace.wanted import CONFIGURATION, TEXTS

if TYPE_CHECKING:
    from tamis.server.lsp.session import Session

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
