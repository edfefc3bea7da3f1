"""``⟦ignore⟧``: the actions that write a comment which silences a finding."""

from __future__ import annotations

from typing import Any

from tamis.server.analysis.lints.ignore import ignoring
from tests.lsp.markers import Core, Mark, Wire, render_fixes
from tests.lsp.verbs.fix import edits_of

MARK = "ignore"
CAPABILITIES: dict[str, Any] = {
    "textDocument": {"codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}}}}
}
_KIND = "quickfix.tamis.ignore"


def through_core(core: Core, name: str, mark: Mark) -> list[str]:
    fixes = [
        (fix.title, [(edit.start, edit.end, edit.new_text) for edit in fix.edits])
        for _, fix in ignoring(core.snapshot(name), (mark.offset, mark.offset))
    ]
    return _named(render_fixes(name, core.text(name), mark.offset, fixes))


def through_wire(wire: Wire, name: str, mark: Mark) -> list[str]:
    where = wire.at(name, mark)
    point = {"start": where["position"], "end": where["position"]}
    context = {"diagnostics": [], "only": [_KIND]}
    actions = wire.ask(
        "textDocument/codeAction", {"textDocument": where["textDocument"], "range": point, "context": context}
    )
    assert all(action["kind"] == _KIND and action["diagnostics"] for action in actions)
    fixes = [
        (
            action["title"],
            [(*wire.span(name, edit["range"]), edit["newText"]) for edit in edits_of(action["edit"], wire.uri(name))],
        )
        for action in actions
    ]
    return _named(render_fixes(name, wire.text(name), mark.offset, fixes))


def _named(lines: list[str]) -> list[str]:
    return ["ignore" + lines[0].removeprefix("fix"), *lines[1:]]
