"""From the scanner to the session: folders that are read, tools that are there, and the state that is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tamis.server.lsp.session import Session
    from tamis.server.lsp.workspace.roots import Root

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
