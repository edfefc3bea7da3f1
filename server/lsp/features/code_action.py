"""``textDocument/codeAction``: quick fixes of the findings in a range, refactorings, and one action that applies every safe fix.

What an action does to other files needs their texts: they are read by the workspace. Actions that a client cannot carry out
(it cannot create files) are not offered.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from tamis.server.analysis.kinds import serves
from tamis.server.lsp import convert
from tamis.server.lsp.diagnostics import speaks, to_lsp
from tamis.server.lsp.features import code_lens
from tamis.server.lsp.verb import Verb

if TYPE_CHECKING:
    from lsprotocol import types

    from tamis.protocols.positions import Span
    from tamis.server.analysis.actions.refactorings import Refactoring
    from tamis.server.analysis.snapshot import Snapshot
    from tamis.server.lsp.documents import Document
    from tamis.server.lsp.session import Session

FIX_ALL = "source.fixAll.tamis"
IGNORE = "quickfix.tamis.ignore"
"""Comments that silence a finding; a kind of their own, so that editors can leave them out."""
MAX_NOTES = 12
_QUICK_FIX = "quickfix"


def code_action(session: Session, params: types.CodeActionParams) -> list[dict[str, Any]]:
    """What can be done about a range."""
    from tamis.server.analysis.actions.fixes import fix_all, quick_fixes

    document = session.documents.get(params.text_document.uri)
    if document is None or not speaks(document):
        return []
    versioned = session.can("workspace.workspaceEdit.documentChanges")
    snapshot = session.workspace.snapshot(document, wait=0.5)
    wanted = [item.value if isinstance(item, Enum) else item for item in params.context.only or ()]
    span = convert.to_span(document, params.range)
    actions: list[dict[str, Any]] = []
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
    if not serves(document.kind, "refactor"):
        literals = session.can("textDocument.codeAction.codeActionLiteralSupport")
        return actions if literals else _commands(actions)
    if _wanted(IGNORE, wanted):
        actions += _ignoring(document, snapshot, span, versioned=versioned)
    actions += _refactorings(session, document, snapshot, span, wanted)
    actions += [item for item in code_lens.actions(session, document, snapshot, span) if _wanted(item["kind"], wanted)]
    if wanted and _wanted(FIX_ALL, wanted):
        edits = fix_all(snapshot)
        if edits:
            edit = convert.to_workspace_edit(document, edits, versioned=versioned)
            actions.append({"title": "Apply all safe fixes", "kind": FIX_ALL, "edit": edit})
    actions.sort(key=_rank)
    return actions if session.can("textDocument.codeAction.codeActionLiteralSupport") else _commands(actions)


def _commands(actions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a client gets that knows commands only: an action with an edit cannot be carried out there."""
    return [
        action["command"]
        for action in actions
        if "command" in action and "edit" not in action and "disabled" not in action
    ]


def _rank(action: dict[str, Any]) -> int:
    """What mends comes first, what silences last: clients show actions as they are sent."""
    kind = action["kind"]
    if kind == _QUICK_FIX:
        return 0 if action.get("isPreferred") else 1
    return 3 if kind == IGNORE else 2


def _ignoring(document: Document, snapshot: Snapshot, span: Span, *, versioned: bool) -> list[dict[str, Any]]:
    from tamis.server.analysis.lints.ignore import ignoring

    return [
        {
            "title": fix.title,
            "kind": IGNORE,
            "diagnostics": [convert.to_diagnostic(to_lsp(finding, document, snapshot))],
            "edit": convert.to_workspace_edit(document, fix.edits, versioned=versioned),
        }
        for finding, fix in ignoring(snapshot, span)
    ]


def _refactorings(
    session: Session, document: Document, snapshot: Snapshot, span: Span, wanted: Sequence[str]
) -> list[dict[str, Any]]:
    from tamis.server.analysis.actions.refactorings import refactorings

    actions: list[dict[str, Any]] = []
    for item in refactorings(snapshot, span):
        # Whole-document source actions come only when they are asked for: on every light bulb they would be noise.
        if not _wanted(item.kind, wanted) or (item.kind.startswith("source.") and not wanted):
            continue
        if item.disabled and not session.can("textDocument.codeAction.disabledSupport"):
            continue
        edit = None if item.disabled else convert.to_changes(session, document, snapshot, item)
        if edit is None and not item.disabled:
            continue
        action: dict[str, Any] = {"title": item.title, "kind": item.kind}
        if diagnostics := _mended(document, snapshot, item, span):
            action["diagnostics"] = diagnostics
        if item.preferred:
            action["isPreferred"] = True
        if item.disabled:
            action["disabled"] = {"reason": item.disabled}
        if edit is not None:
            action["edit"] = edit
            if (command := _said(item)) is not None:
                action["command"] = command
        actions.append(action)
    return actions


def _said(item: Refactoring) -> dict[str, Any] | None:
    """What was assumed or left out, which the client says after the edit."""
    from tamis.server.analysis.running.lenses import EXPLAIN

    if not item.notes:
        return None
    more = [f"… and {len(item.notes) - MAX_NOTES} more"] if len(item.notes) > MAX_NOTES else []
    reason = "\n".join([f"{item.title}:", *item.notes[:MAX_NOTES], *more])
    return {"title": "What was assumed", "command": EXPLAIN, "arguments": [{"reason": reason}]}


def _mended(document: Document, snapshot: Snapshot, item: Refactoring, span: Span) -> list[dict[str, Any]]:
    """The findings of the action's code that the selection touches."""
    from tamis.server.analysis.diagnostics import diagnose

    if not item.code:
        return []
    return [
        convert.to_diagnostic(to_lsp(finding, document, snapshot))
        for finding in diagnose(snapshot)
        if finding.code == item.code and finding.span[0] <= span[1] and span[0] <= finding.span[1]
    ]


def _wanted(kind: str, only: Sequence[str]) -> bool:
    """Whether a client that asks for ``only`` these kinds, or their sub-kinds, wants this one."""
    return not only or any(name == kind or kind.startswith(name + ".") or name == "" for name in only)


REQUESTS = (
    Verb(
        method="textDocument/codeAction",
        params="CodeActionParams",
        handler=code_action,
        schedule="snapshot",
        capability={
            "codeActionProvider": {
                "codeActionKinds": [
                    "quickfix",
                    "refactor.rewrite",
                    "refactor.extract",
                    "source.fixAll.tamis",
                    "source.sortKeys.tamis",
                    *code_lens.KINDS,
                ]
            }
        },
    ),
)
