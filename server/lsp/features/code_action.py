"""``textDocument/codeAction``: quick fixes of the findings in a range, refactorings, and one action that applies every safe fix.

What an action does to other files needs their texts: they are read by the workspace. Actions that a client cannot carry out
(it cannot create files) are not offered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lsprotocol import types

from tamis.server.analysis.actions.fixes import fix_all, quick_fixes
from tamis.server.analysis.actions.refactorings import Refactoring, refactorings
from tamis.server.analysis.diagnostics import diagnose
from tamis.server.analysis.lints.ignore import ignoring
from tamis.server.analysis.running.lenses import EXPLAIN
from tamis.server.lsp import convert
from tamis.server.lsp.diagnostics import speaks, to_lsp
from tamis.server.lsp.features import code_lens

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from tamis.protocols.positions import Span
    from tamis.server.analysis.snapshot import Snapshot
    from tamis.server.lsp.documents import Document
    from tamis.server.lsp.session import Session

FIX_ALL = "source.fixAll.tamis"
IGNORE = "quickfix.tamis.ignore"
"""Comments that silence a finding; a kind of their own, so that editors can leave them out."""
MAX_NOTES = 12
_QUICK_FIX = types.CodeActionKind.QuickFix.value


def register(server: LanguageServer, session: Session) -> None:
    """Registers the verb."""

    def code_action(params: types.CodeActionParams) -> list[types.CodeAction | types.Command]:
        document = session.documents.get(params.text_document.uri)
        if document is None or not speaks(document):
            return []
        versioned = session.can("workspace.workspaceEdit.documentChanges")
        snapshot = session.workspace.snapshot(document, wait=0.5)
        wanted = params.context.only
        span = convert.to_span(document, params.range)
        actions: list[types.CodeAction | types.Command] = []
        if _wanted(_QUICK_FIX, wanted):
            actions += [
                convert.to_quick_fix(
                    document,
                    action.fix,
                    to_lsp(action.finding, document, snapshot),
                    versioned=versioned,
                    preferred=action.fix.applicability == "safe",
                )
                for action in quick_fixes(snapshot, span)
            ]
        if document.kind == "other":
            literals = session.can("textDocument.codeAction.codeActionLiteralSupport")
            return actions if literals else _commands(actions)
        if _wanted(IGNORE, wanted):
            actions += _ignoring(document, snapshot, span, versioned=versioned)
        actions += _refactorings(session, document, snapshot, span, wanted)
        actions += [
            item for item in code_lens.actions(session, document, snapshot, span) if _wanted(str(item.kind), wanted)
        ]
        if wanted and _wanted(FIX_ALL, wanted):
            edits = fix_all(snapshot)
            if edits:
                edit = convert.to_workspace_edit(document, edits, versioned=versioned)
                actions.append(types.CodeAction("Apply all safe fixes", kind=FIX_ALL, edit=edit))
        actions.sort(key=_rank)
        return actions if session.can("textDocument.codeAction.codeActionLiteralSupport") else _commands(actions)

    server.feature(types.TEXT_DOCUMENT_CODE_ACTION)(code_action)


def _commands(actions: list[types.CodeAction | types.Command]) -> list[types.CodeAction | types.Command]:
    """What a client gets that knows commands only: an action with an edit cannot be carried out there."""
    return [
        item.command
        for item in actions
        if isinstance(item, types.CodeAction)
        and item.command is not None
        and item.edit is None
        and item.disabled is None
    ]


def _rank(action: types.CodeAction | types.Command) -> int:
    """What mends comes first, what silences last: clients show actions as they are sent."""
    if isinstance(action, types.Command) or action.kind is None:
        return 2
    if action.kind == _QUICK_FIX:
        return 0 if action.is_preferred else 1
    return 3 if action.kind == IGNORE else 2


def _ignoring(
    document: Document, snapshot: Snapshot, span: Span, *, versioned: bool
) -> list[types.CodeAction | types.Command]:
    return [
        types.CodeAction(
            title=fix.title,
            kind=IGNORE,
            diagnostics=[convert.to_diagnostic(to_lsp(finding, document, snapshot))],
            edit=convert.to_workspace_edit(document, fix.edits, versioned=versioned),
        )
        for finding, fix in ignoring(snapshot, span)
    ]


def _refactorings(
    session: Session,
    document: Document,
    snapshot: Snapshot,
    span: Span,
    wanted: Sequence[types.CodeActionKind | str] | None,
) -> list[types.CodeAction]:
    found = refactorings(snapshot, span)
    made: list[types.CodeAction] = []
    for item in found:
        # Whole-document source actions come only when they are asked for: on every light bulb they would be noise.
        if not _wanted(item.kind, wanted) or (item.kind.startswith("source.") and not wanted):
            continue
        if item.disabled and not session.can("textDocument.codeAction.disabledSupport"):
            continue
        edit = None if item.disabled else convert.to_changes(session, document, snapshot, item)
        if edit is None and not item.disabled:
            continue
        made.append(
            types.CodeAction(
                title=item.title,
                kind=item.kind,
                diagnostics=_mended(document, snapshot, item, span) or None,
                is_preferred=item.preferred or None,
                disabled=types.CodeActionDisabled(item.disabled) if item.disabled else None,
                edit=edit,
                command=_said(item) if edit is not None else None,
            )
        )
    return made


def _said(item: Refactoring) -> types.Command | None:
    """What was assumed or left out, which the client says after the edit."""
    if not item.notes:
        return None
    more = [f"… and {len(item.notes) - MAX_NOTES} more"] if len(item.notes) > MAX_NOTES else []
    reason = "\n".join([f"{item.title}:", *item.notes[:MAX_NOTES], *more])
    return types.Command("What was assumed", command=EXPLAIN, arguments=[{"reason": reason}])


def _mended(document: Document, snapshot: Snapshot, item: Refactoring, span: Span) -> list[types.Diagnostic]:
    """The findings of the action's code that the selection touches."""
    if not item.code:
        return []
    return [
        convert.to_diagnostic(to_lsp(finding, document, snapshot))
        for finding in diagnose(snapshot)
        if finding.code == item.code and finding.span[0] <= span[1] and span[0] <= finding.span[1]
    ]


def _wanted(kind: str, only: Sequence[types.CodeActionKind | str] | None) -> bool:
    """Whether a client that asks for ``only`` these kinds, or their sub-kinds, wants this one."""
    names = [item.value if isinstance(item, types.CodeActionKind) else item for item in only or ()]
    return not names or any(name == kind or kind.startswith(name + ".") or name == "" for name in names)
