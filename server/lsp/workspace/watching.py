"""Changes on disk: told by the client's watcher, by its file operations, or found by the scanner where the client cannot watch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.server.lsp.workspace.scanning import CONFIGURATION, TEXTS, Change

if TYPE_CHECKING:
    from tamis.server.lsp.session import Session
    from tamis.server.lsp.workspace.roots import Root


# From the scanner to the session: folders that are read, tools that are there, and the state that is told of them.


DEFINING = ("manifest", "workflow", "nodes")
"""The kinds of documents that define tools."""


def load(session: Session, roots: tuple[Root, ...]) -> None:
    """Reads folders behind the messages."""
    session.workspace.forget_facts()
    session.loading = bool(roots)
    tell_status(session)
    if roots:
        session.scanner.load(roots)


def loaded(session: Session, root: Root) -> None:
    """A folder's tools are there, or there anew: what was said without them is said again."""
    show_open(session, root)
    if root.settings is not None:
        for problem in root.settings.problems:
            session.log(problem)
    session.tools_changed()
    session.wake()


def show_open(session: Session, root: Root) -> None:
    """Definitions that are open count as the editor has them."""
    for document in session.documents.values():
        if document.kind in DEFINING and document.path and root is session.workspace.root_of(document.path):
            root.show(document.path, document.text)


def idle(session: Session) -> None:
    """Everything on disk was read."""
    if session.loading:
        session.loading = False
        tell_status(session)


def tell_status(session: Session, *, news: bool = False) -> None:
    """``experimental/serverStatus`` as rust-analyzer has it, for clients that ask for it; with ``news`` only when it is another one."""
    if not session.can("experimental.serverStatusNotification"):
        return
    tools, problems = 0, 0
    for root in session.workspace.roots:
        if (registry := root.registry) is not None:
            tools += len(registry.tools)
            problems += len(registry.errors) + len(registry.conflicts)
    message = f"tools: {tools}" + (f", problems with manifests: {problems}" if problems else "")
    status = {"health": "warning" if problems else "ok", "quiescent": not session.loading, "message": message}
    if news and status == session.status:
        return
    session.status = status
    session.notify("experimental/serverStatus", status, key="status" if session.loading else None)


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
        show_open(session, change.root)
        session.tools_changed()
        tell_status(session, news=True)
    elif change.listing:
        # A script or a file beside a manifest may have come or gone.
        session.diagnostics.refresh(document for document in session.documents.values() if document.kind == "manifest")
    if not change.tools and any(path.endswith(TEXTS) for path in change.paths):
        session.texts_changed()
    if not change.tools:
        session.files_changed()
    session.reports.changed()
