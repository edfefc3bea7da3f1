"""What is announced of running: commands, lenses, documents of ours. Plain data, answered before anything heavy is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamis.server.lsp.session import Session

COMMANDS = (
    "tamis.run",
    "tamis.dryRun",
    "tamis.runExample",
    "tamis.testExamples",
    "tamis.previewPrompt",
    "tamis.convert",
    "tamis.copyAs",
    "tamis.cancel",
    "tamis.rerunLast",
    "tamis.showResult",
    "tamis.clearResults",
    "tamis.showReferences",
    "tamis.approve",
    "tamis.explain",
)
METHODS = frozenset(
    {
        "textDocument/codeLens",
        "codeLens/resolve",
        "workspace/executeCommand",
        "workspace/textDocumentContent",
        "experimental/discoverTest",
        "experimental/runTest",
    }
)
SCHEMES = ("tamis-result", "tamis-prompt")
RUN_KIND = "refactor.tamis.run"
CONVERT_KIND = "refactor.rewrite.tamis.convert"
KINDS = (RUN_KIND, CONVERT_KIND)
"""Kinds of the code actions that are commands."""


def run_capabilities(session: Session) -> dict[str, Any]:
    """The parts of ``ServerCapabilities`` that belong to running."""
    return {
        "codeLensProvider": {"resolveProvider": True, "workDoneProgress": False},
        "executeCommandProvider": {"commands": list(COMMANDS), "workDoneProgress": True},
    }


def run_workspace_capabilities(session: Session) -> dict[str, Any]:
    """The parts of ``ServerCapabilities.workspace`` that belong to running."""
    if not session.can("workspace.textDocumentContent"):
        return {}
    return {"textDocumentContent": {"schemes": list(SCHEMES)}}
