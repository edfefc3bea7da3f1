"""What the server says it can do, as plain data: answered before anything heavy is imported.

Each verb of the framework lane stands in ``FRAMEWORK_METHODS``, with its module in ``features/``. Must not import lsprotocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.server.lsp import completion

if TYPE_CHECKING:
    from tamis.server.lsp.session import Session

FRAMEWORK_METHODS = frozenset(
    {
        "textDocument/hover",
        "textDocument/codeAction",
    }
)
"""Requests of the framework lane; a test holds this against what the features register."""


def server_capabilities(session: Session) -> dict[str, Any]:
    """``ServerCapabilities`` for this client."""
    capabilities: dict[str, Any] = {
        "positionEncoding": session.encoding,
        "textDocumentSync": {"openClose": True, "change": 2, "save": {"includeText": False}},
        "completionProvider": {"triggerCharacters": list(completion.TRIGGERS)},
        "hoverProvider": True,
        "codeActionProvider": {"codeActionKinds": ["quickfix", "source.fixAll.tamis"]},
        "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}},
        "experimental": {"tamis": {"rpc": 1}},
    }
    if session.can("textDocument.diagnostic"):
        capabilities["diagnosticProvider"] = {
            "identifier": "tamis",
            "interFileDependencies": True,
            "workspaceDiagnostics": False,
        }
    return capabilities
