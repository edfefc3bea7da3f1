"""What the server announces of the verbs that move: definitions, references, renames, symbols, links, linked editing.

Plain data, answered before anything heavy is imported. Must not import lsprotocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamis.server.lsp.session import Session

METHODS = frozenset(
    {
        "textDocument/definition",
        "textDocument/declaration",
        "textDocument/implementation",
        "textDocument/references",
        "textDocument/documentHighlight",
        "textDocument/prepareRename",
        "textDocument/rename",
        "workspace/willRenameFiles",
        "textDocument/documentSymbol",
        "workspace/symbol",
        "workspaceSymbol/resolve",
        "textDocument/documentLink",
        "documentLink/resolve",
        "textDocument/linkedEditingRange",
        "textDocument/prepareCallHierarchy",
        "callHierarchy/incomingCalls",
        "callHierarchy/outgoingCalls",
    }
)
"""Requests of these verbs."""

MOVED = (
    {"scheme": "file", "pattern": {"glob": "**/*.{py,js,mjs,cjs,ts,mts,cts,tsx,jsx}", "matches": "file"}},
    {"scheme": "file", "pattern": {"glob": "**/*.{json,jsonc}", "matches": "file"}},
    {"scheme": "file", "pattern": {"glob": "**/*", "matches": "folder"}},
)
"""The files and folders whose renames are asked about: scripts, manifests, workflows and what holds them."""


def moving_capabilities(session: Session) -> dict[str, Any]:
    """The parts of ``ServerCapabilities`` that belong to these verbs, without those below ``workspace``."""
    rename: Any = {"prepareProvider": True} if session.can("textDocument.rename.prepareSupport") else True
    return {
        "definitionProvider": True,
        "declarationProvider": True,
        "implementationProvider": True,
        "referencesProvider": True,
        "documentHighlightProvider": True,
        "renameProvider": rename,
        "documentSymbolProvider": {"label": "Tamis"},
        "workspaceSymbolProvider": {"resolveProvider": True},
        "documentLinkProvider": {"resolveProvider": True},
        "linkedEditingRangeProvider": True,
        "callHierarchyProvider": True,
    }


def file_operations(session: Session) -> dict[str, Any]:
    """What of ``workspace.fileOperations`` belongs to these verbs."""
    if not session.can("workspace.fileOperations.willRename"):
        return {}
    return {"willRename": {"filters": list(MOVED)}}
