"""``⟦formatrange:n⟧``: the edits that format the ``n`` lines from a place on, through ``rangeFormatting`` and ``rangesFormatting``."""

from __future__ import annotations

from typing import Any

from tamis.protocols.positions import LineIndex
from tamis.server.analysis.shown.formatting import Layout, format_ranges
from tests.lsp.markers import Core, Mark, Wire
from tests.lsp.verbs.format import at, edits_of, render_edits

MARK = "formatrange"
CAPABILITIES: dict[str, Any] = {"textDocument": {"rangeFormatting": {"rangesSupport": True}}}


def _span(text: str, mark: Mark) -> tuple[int, int]:
    index = LineIndex(text)
    line = index.position(mark.offset)[0] + int(mark.argument)
    return mark.offset, index.offset(line, 0)


def through_core(core: Core, name: str, mark: Mark) -> list[str]:
    text = core.text(name)
    edits = format_ranges(core.snapshot(name), [_span(text, mark)], Layout())
    return render_edits(f"formatrange {name}:{at(text, mark.offset)}", text, list(edits))


def through_wire(wire: Wire, name: str, mark: Mark) -> list[str]:
    text = wire.text(name)
    span = _span(text, mark)
    wanted = {"start": wire.position(name, span[0]), "end": wire.position(name, span[1])}
    common = {"textDocument": {"uri": wire.uri(name)}, "options": {"tabSize": 2, "insertSpaces": True}}
    assert wire.capabilities["documentRangeFormattingProvider"] == {"rangesSupport": True}
    found = wire.ask("textDocument/rangeFormatting", {**common, "range": wanted})
    assert found == wire.ask("textDocument/rangesFormatting", {**common, "ranges": [wanted, wanted]})
    return render_edits(f"formatrange {name}:{at(text, mark.offset)}", text, edits_of(wire, name, found))
