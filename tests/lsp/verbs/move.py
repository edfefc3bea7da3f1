"""``⟦move:OLD => NEW⟧``: what moving a file or folder edits first, by file. Where the mark stands does not matter."""

from __future__ import annotations

from typing import Any

from tamis.server.analysis.navigation.spelled import edits_of_moves, in_files
from tests.lsp.markers import Core, Mark, Wire
from tests.lsp.verbs.rename import edits_of

MARK = "move"
CAPABILITIES: dict[str, Any] = {"workspace": {"fileOperations": {"willRename": True}}}


def through_core(core: Core, name: str, mark: Mark) -> list[str]:
    index = core.snapshot(name).index
    assert index is not None
    old, new = mark.argument.split(" => ")
    edits, _notes = edits_of_moves(index, [(core.path(old), core.path(new))], [str(core.root)])
    changes = {
        core.name(path): [(one.edit.start, one.edit.end, one.edit.new_text) for one in mine]
        for path, mine in in_files(edits).items()
    }
    return _render(core.case.documents, mark, changes)


def through_wire(wire: Wire, name: str, mark: Mark) -> list[str]:
    old, new = mark.argument.split(" => ")
    files = {"files": [{"oldUri": wire.uri(old), "newUri": wire.uri(new)}]}
    answer = wire.ask("workspace/willRenameFiles", files)
    return _render(wire.case.documents, mark, edits_of(wire, answer or {}))


def _render(documents: dict[str, str], mark: Mark, changes: dict[str, list[tuple[int, int, str]]]) -> list[str]:
    lines = [f"move {mark.argument}"]
    for other, edits in sorted(changes.items()):
        lines.append(f"  {other}")
        text = documents[other]
        for start, end, new in sorted(edits, reverse=True):
            text = text[:start] + new + text[end:]
        for old, fresh in zip(documents[other].split("\n"), text.split("\n"), strict=True):
            if old != fresh:
                lines += [f"  - {old}", f"  + {fresh}"]
    return lines
