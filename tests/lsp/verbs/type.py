r"""``⟦type:c⟧``: what is typed for the user behind the character ``c``, which stands before the mark (``\n`` is a new line)."""

from __future__ import annotations

from tamis.server.analysis.shown.formatting import Layout
from tamis.server.analysis.shown.on_type import on_type
from tests.lsp.markers import Core, Mark, Wire
from tests.lsp.verbs.format import at, edits_of, render_edits

MARK = "type"


def through_core(core: Core, name: str, mark: Mark) -> list[str]:
    text = core.text(name)
    edits = on_type(core.snapshot(name), mark.offset, mark.argument.replace("\\n", "\n"), Layout())
    return render_edits(f"type {name}:{at(text, mark.offset)}", text, list(edits))


def through_wire(wire: Wire, name: str, mark: Mark) -> list[str]:
    text = wire.text(name)
    typed = mark.argument.replace("\\n", "\n")
    provider = wire.capabilities["documentOnTypeFormattingProvider"]
    assert typed in (provider["firstTriggerCharacter"], *provider["moreTriggerCharacter"])
    options = {"tabSize": 2, "insertSpaces": True}
    found = wire.ask("textDocument/onTypeFormatting", {**wire.at(name, mark), "ch": typed, "options": options})
    return render_edits(f"type {name}:{at(text, mark.offset)}", text, edits_of(wire, name, found or []))
