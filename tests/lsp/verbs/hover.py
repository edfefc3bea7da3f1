"""``⟦hover⟧``: what a hover says."""

from __future__ import annotations

from tamis.server.analysis.hover import explain
from tests.lsp.markers import Core, Mark, Wire, render_hover

MARK = "hover"


def through_core(core: Core, name: str, mark: Mark) -> list[str]:
    hover = explain(core.snapshot(name), mark.offset)
    return render_hover(name, core.text(name), mark.offset, (hover.span, hover.markdown) if hover else None)


def through_wire(wire: Wire, name: str, mark: Mark) -> list[str]:
    hover = wire.ask("textDocument/hover", wire.at(name, mark))
    answer = (wire.span(name, hover["range"]), hover["contents"]["value"]) if hover else None
    return render_hover(name, wire.text(name), mark.offset, answer)
