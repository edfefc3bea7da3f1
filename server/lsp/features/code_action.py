"""``textDocument/codeAction``: quick fixes of the findings in a range, and one action that applies every safe fix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lsprotocol import types

from tamis.server.analysis.actions import fix_all, quick_fixes
from tamis.server.lsp import convert
from tamis.server.lsp.diagnostics import to_lsp

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from tamis.server.lsp.session import Session

FIX_ALL = "source.fixAll.tamis"


def register(server: LanguageServer, session: Session) -> None:
    """Registers the verb."""

    def code_action(params: types.CodeActionParams) -> list[types.CodeAction | types.Command]:
        document = session.documents.get(params.text_document.uri)
        if document is None or document.kind == "other":
            return []
        versioned = session.can("workspace.workspaceEdit.documentChanges")
        snapshot = session.workspace.snapshot(document, wait=0.5)
        wanted = params.context.only
        actions: list[types.CodeAction | types.Command] = []
        if _wanted(types.CodeActionKind.QuickFix.value, wanted):
            actions += [
                convert.to_quick_fix(
                    document,
                    action.fix,
                    to_lsp(action.finding, document, snapshot),
                    versioned=versioned,
                    preferred=action.fix.applicability == "safe",
                )
                for action in quick_fixes(snapshot, convert.to_span(document, params.range))
            ]
        if wanted and _wanted(FIX_ALL, wanted):
            edits = fix_all(snapshot)
            if edits:
                edit = convert.to_workspace_edit(document, edits, versioned=versioned)
                actions.append(types.CodeAction("Apply all safe fixes", kind=FIX_ALL, edit=edit))
        return actions

    server.feature(types.TEXT_DOCUMENT_CODE_ACTION)(code_action)


def _wanted(kind: str, only: Sequence[types.CodeActionKind | str] | None) -> bool:
    """Whether a client that asks for ``only`` these kinds, or their sub-kinds, wants this one."""
    names = [item.value if isinstance(item, types.CodeActionKind) else item for item in only or ()]
    return not names or any(name == kind or kind.startswith(name + ".") or name == "" for name in names)
