"""``⟦act⟧`` and ``⟦act:kind⟧``: refactorings at a place, of a kind if one is given, with the files that they leave.

Quick fixes of findings have a mark of their own (``⟦fix⟧``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tamis.server.analysis.actions.refactorings import refactorings
from tests.lsp.markers import Core, Mark, Wire, render_changes

MARK = "act"
CAPABILITIES: dict[str, Any] = {
    "workspace": {"workspaceEdit": {"documentChanges": True, "resourceOperations": ["create", "rename", "delete"]}},
    "textDocument": {
        "codeAction": {
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}},
            "disabledSupport": True,
            "isPreferredSupport": True,
        }
    },
}


def through_core(core: Core, name: str, mark: Mark) -> list[str]:
    lines = _head(core.text(name), name, mark)
    for item in refactorings(core.snapshot(name), (mark.offset, mark.offset)):
        if not _wanted(item.kind, mark.argument):
            continue
        changes = {
            core.name(change.path) if change.path else name: (
                change.create,
                [(0, 0, change.text)] if change.create else [(e.start, e.end, e.new_text) for e in change.edits],
            )
            for change in item.changes
        }
        lines += _action(core.case.documents, item.title, item.kind, item.preferred, item.disabled, changes)
    return lines


def through_wire(wire: Wire, name: str, mark: Mark) -> list[str]:
    lines = _head(wire.text(name), name, mark)
    where = wire.at(name, mark)
    context: dict[str, Any] = {"diagnostics": []}
    context["only"] = [mark.argument] if mark.argument else ["quickfix", "refactor"]
    actions = wire.ask(
        "textDocument/codeAction",
        {
            "textDocument": where["textDocument"],
            "range": {"start": where["position"], "end": where["position"]},
            "context": context,
        },
    )
    own = _fixes(wire, name)
    for action in actions:
        # The fixes of findings have a mark of their own, and the lenses of calls another.
        if (
            action["title"] in own
            or ("command" in action and "edit" not in action)
            or not _wanted(action["kind"], mark.argument)
        ):
            continue
        changes: dict[str, tuple[bool, list[tuple[int, int, str]]]] = {}
        created: set[str] = set()
        for change in action.get("edit", {}).get("documentChanges", ()):
            if change.get("kind") == "create":
                created.add(change["uri"])
                continue
            uri = change["textDocument"]["uri"]
            file = wire.name(uri)
            if uri in created:
                changes[file] = (True, [(0, 0, edit["newText"]) for edit in change["edits"]])
            else:
                edits = [(*wire.span(file, edit["range"]), edit["newText"]) for edit in change["edits"]]
                changes[file] = (False, edits)
        disabled = action.get("disabled", {}).get("reason", "")
        lines += _action(
            wire.case.documents, action["title"], action["kind"], action.get("isPreferred", False), disabled, changes
        )
    return lines


def _fixes(wire: Wire, name: str) -> set[str]:
    """Titles of the fixes of findings."""
    from tamis.server.analysis.actions.fixes import quick_fixes
    from tests.lsp.marker_core import core_of

    snapshot = core_of(wire.case, wire.root).snapshot(name)
    return {action.fix.title for action in quick_fixes(snapshot, (0, len(snapshot.text)))}


def _wanted(kind: str, only: str) -> bool:
    # Silencing a finding is offered at each one, and has marker files of its own.
    if kind == "quickfix.tamis.ignore":
        return False
    if only:
        return kind == only or kind.startswith(only + ".")
    return not kind.startswith("source.")


def _head(text: str, name: str, mark: Mark) -> list[str]:
    line = text.count("\n", 0, mark.offset) + 1
    return [f"act {name}:{line}" + (f" {mark.argument}" if mark.argument else "")]


def _action(
    documents: dict[str, str],
    title: str,
    kind: str,
    preferred: bool,
    disabled: str,
    changes: dict[str, tuple[bool, list[tuple[int, int, str]]]],
) -> list[str]:
    lines = [
        f"  {title} [{kind}]" + (" (preferred)" if preferred else "") + (f" cannot: {disabled}" if disabled else "")
    ]
    for file, (create, edits) in sorted(changes.items()):
        lines.append(f"    {'create' if create else 'change'} {Path(file).as_posix()}")
        lines += [f"    {line}" for line in render_changes("" if create else documents[file], edits)]
    return lines
