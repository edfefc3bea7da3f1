"""``⟦offer⟧``: what can be run, converted or copied at a place, as code actions that are commands."""

from __future__ import annotations

from typing import Any

from tamis.server.analysis.running.lenses import CONVERT, COPY_AS, Around, run_actions
from tamis.server.analysis.running.rewriting import can_become, form_title
from tests.lsp.markers import Core, Mark, Wire, place

MARK = "offer"
CAPABILITIES: dict[str, Any] = {
    "textDocument": {"codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}}}},
    "workspace": {"applyEdit": True},
}
Row = tuple[str, str, tuple[int, int]]


def through_core(core: Core, name: str, mark: Mark) -> list[str]:
    trusted = core.case.options.get("trusted") is not False
    rows: list[Row] = []
    for lens in run_actions(core.snapshot(name), (mark.offset, mark.offset), Around(trusted)):
        if lens.command == CONVERT:
            names = [f"Convert to {form_title(one)}" for one in can_become(core.snapshot(name), lens.target)]
        elif lens.command == COPY_AS:
            names = ["Copy the call as…"]
        else:
            names = [lens.title.removeprefix("▶ ")]
        rows += [(title, lens.command, lens.target.span) for title in names]
    return render(name, core.text(name), mark, rows)


def through_wire(wire: Wire, name: str, mark: Mark) -> list[str]:
    where = wire.at(name, mark)
    span = {"start": where["position"], "end": where["position"]}
    context = {"diagnostics": [], "only": ["refactor.tamis.run", "refactor.rewrite.tamis.convert"]}
    found = wire.ask(
        "textDocument/codeAction", {"textDocument": where["textDocument"], "range": span, "context": context}
    )
    rows = [
        (one["title"], one["command"]["command"], wire.span(name, one["command"]["arguments"][0]["range"]))
        for one in found
    ]
    return render(name, wire.text(name), mark, rows)


def render(name: str, text: str, mark: Mark, rows: list[Row]) -> list[str]:
    lines = [f"offers {place(text, (mark.offset, mark.offset))} {name}"]
    lines += [f"  {title} → {command} {place(text, target)}" for title, command, target in rows]
    return lines
