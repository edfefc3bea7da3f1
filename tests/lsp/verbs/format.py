"""``⟦format⟧``: the edits that format the document; ``⟦format:4⟧`` and ``⟦format:tabs⟧`` with that indentation.

The edits are applied and asked for again: there must be none.
"""

from __future__ import annotations

import msgspec

from tamis.protocols.changes import applied
from tamis.protocols.model import Edit
from tamis.protocols.positions import LineIndex
from tamis.server.analysis.shown.formatting import Layout, format_document
from tests.lsp.markers import Core, Mark, Wire, place

MARK = "format"


def layout_of(argument: str) -> Layout:
    return Layout(insert_spaces=argument != "tabs", tab_size=int(argument) if argument.isdigit() else 2)


def through_core(core: Core, name: str, mark: Mark) -> list[str]:
    snapshot = core.snapshot(name)
    edits = format_document(snapshot, layout_of(mark.argument))
    after = type(snapshot)(
        snapshot.path, snapshot.kind, applied(snapshot.text, edits), snapshot.registry, settings=snapshot.settings
    )
    assert format_document(after, layout_of(mark.argument)) == (), "formatting again changes nothing"
    return render_edits(f"format {name}", core.text(name), list(edits))


def through_wire(wire: Wire, name: str, mark: Mark) -> list[str]:
    layout = layout_of(mark.argument)
    options = {"tabSize": layout.tab_size, "insertSpaces": layout.insert_spaces}
    found = wire.ask("textDocument/formatting", {"textDocument": {"uri": wire.uri(name)}, "options": options})
    return render_edits(f"format {name}", wire.text(name), edits_of(wire, name, found))


def edits_of(wire: Wire, name: str, found: list[dict[str, object]]) -> list[Edit]:
    """Text edits of the wire."""
    edits = msgspec.convert(found, list[dict[str, object]])
    return [Edit(*wire.span(name, edit["range"]), str(edit["newText"])) for edit in edits]  # pyright: ignore[reportArgumentType]


def render_edits(title: str, text: str, edits: list[Edit]) -> list[str]:
    lines = [title]
    lines += [f"  {place(text, (edit.start, edit.end))} → ⟨{edit.new_text.replace(chr(10), '⏎')}⟩" for edit in edits]
    if edits:
        lines += [f"  | {line}".rstrip() for line in applied(text, edits).split("\n")]
    return lines


def at(text: str, offset: int) -> str:
    line, column = LineIndex(text).position(offset)
    return f"{line + 1}:{column + 1}"
