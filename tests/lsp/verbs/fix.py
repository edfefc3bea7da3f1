"""``⟦fix⟧``: quick fixes with the lines that they leave."""

from __future__ import annotations

from typing import Any

from tamis.server.analysis.actions.fixes import quick_fixes
from tests.lsp.markers import Core, Mark, Wire, render_fixes

MARK = "fix"
CAPABILITIES: dict[str, Any] = {
    "textDocument": {"codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}}}}
}


def through_core(core: Core, name: str, mark: Mark) -> list[str]:
    fixes = [
        (action.fix.title, [(edit.start, edit.end, edit.new_text) for edit in action.fix.edits])
        for action in quick_fixes(core.snapshot(name), (mark.offset, mark.offset))
    ]
    return render_fixes(name, core.text(name), mark.offset, fixes)


def through_wire(wire: Wire, name: str, mark: Mark) -> list[str]:
    where = wire.at(name, mark)
    point = {"start": where["position"], "end": where["position"]}
    actions = wire.ask(
        "textDocument/codeAction",
        {
            "textDocument": where["textDocument"],
            "range": point,
            "context": {"diagnostics": [], "only": ["quickfix"]},
        },
    )
    more = _refactorings(wire, name, mark)
    fixes = [
        (
            action["title"],
            [(*wire.span(name, edit["range"]), edit["newText"]) for edit in edits_of(action["edit"], wire.uri(name))],
        )
        for action in actions
        # Comments that silence a finding are asked for with a mark of their own.
        if action["title"] not in more and action["kind"] != "quickfix.tamis.ignore"
    ]
    return render_fixes(name, wire.text(name), mark.offset, fixes)


def _refactorings(wire: Wire, name: str, mark: Mark) -> set[str]:
    """Titles of the actions that mend more than one finding says, which have a mark of their own (``⟦act⟧``)."""
    from tamis.server.analysis.actions.refactorings import refactorings
    from tests.lsp.marker_core import core_of

    snapshot = core_of(wire.case, wire.root).snapshot(name)
    return {item.title for item in refactorings(snapshot, (mark.offset, mark.offset))}


def edits_of(edit: dict[str, Any], uri: str) -> list[dict[str, Any]]:
    """The edits of one document, in either form."""
    if "changes" in edit:
        return edit["changes"][uri]
    return [
        one for change in edit["documentChanges"] if change["textDocument"]["uri"] == uri for one in change["edits"]
    ]
