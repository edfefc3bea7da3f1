"""``⟦fix⟧``: quick fixes with the lines that they leave."""

from __future__ import annotations

from tamis.server.analysis.actions import quick_fixes
from tests.lsp.markers import Core, Mark, Wire, render_fixes

MARK = "fix"


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
    fixes = [
        (
            action["title"],
            [(*wire.span(name, edit["range"]), edit["newText"]) for edit in action["edit"]["changes"][wire.uri(name)]],
        )
        for action in actions
    ]
    return render_fixes(name, wire.text(name), mark.offset, fixes)
