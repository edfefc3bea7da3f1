"""What the server says it can do, as plain data: answered before anything heavy is imported.

Each verb of the framework lane stands in ``FRAMEWORK_METHODS``, with its module in ``features/``. Must not import lsprotocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.server.lsp import command_names, completion, diagnostics, moving, shown
from tamis.server.lsp.tool_names import NAMES

if TYPE_CHECKING:
    from tamis.server.lsp.session import Session

FRAMEWORK_METHODS = frozenset(
    {
        "textDocument/hover",
        "textDocument/codeAction",
        *shown.METHODS,
        *command_names.METHODS,
        *moving.METHODS,
    }
)
"""Requests of the framework lane; a test holds this against what the features register."""


def server_capabilities(session: Session) -> dict[str, Any]:
    """``ServerCapabilities`` for this client."""
    capabilities: dict[str, Any] = {
        "positionEncoding": session.encoding,
        "textDocumentSync": {"openClose": True, "change": 2, "save": {"includeText": False}},
        "completionProvider": {
            "triggerCharacters": list(completion.TRIGGERS),
            "resolveProvider": True,
            "completionItem": {"labelDetailsSupport": True},
        },
        "hoverProvider": True,
        "codeActionProvider": {
            "codeActionKinds": [
                "quickfix",
                "refactor.rewrite",
                "refactor.extract",
                "source.fixAll.tamis",
                "source.sortKeys.tamis",
                *command_names.KINDS,
            ]
        },
        "workspace": {
            "workspaceFolders": {"supported": True, "changeNotifications": True},
        },
        "experimental": {"tamis": {"rpc": 1, "methods": dict.fromkeys(NAMES, "stable")}},
    }
    capabilities |= shown.shown_capabilities(session)
    capabilities |= command_names.run_capabilities(session)
    capabilities["workspace"] |= command_names.run_workspace_capabilities(session)
    capabilities |= moving.moving_capabilities(session)
    if operations := moving.file_operations(session):
        capabilities["workspace"].setdefault("fileOperations", {}).update(operations)
    for name in ("didCreate", "didRename", "didDelete"):
        if session.can(f"workspace.fileOperations.{name}"):
            capabilities["workspace"].setdefault("fileOperations", {})[name] = {
                "filters": [{"scheme": "file", "pattern": {"glob": "**/*"}}]
            }
    if diagnostics.pulls(session):
        capabilities["diagnosticProvider"] = {
            "identifier": "tamis",
            "interFileDependencies": True,
            "workspaceDiagnostics": True,
        }
    return capabilities
