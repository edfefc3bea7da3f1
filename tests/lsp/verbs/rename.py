"""``⟦rename:NEW⟧``: what a rename leaves, by file, or why it is refused; without a name only what could be renamed."""

from __future__ import annotations

from typing import Any

from tamis.protocols.positions import LineIndex
from tamis.server.analysis.navigation.rename import moved_workflow, prepare, rename
from tamis.server.analysis.navigation.spelled import RenameRefusedError, in_files
from tests.lsp.markers import Core, Mark, Wire, place

MARK = "rename"
CAPABILITIES: dict[str, Any] = {
    "textDocument": {"rename": {"prepareSupport": True}},
    "workspace": {"workspaceEdit": {"documentChanges": True, "resourceOperations": ["create", "rename"]}},
}
Edits = list[tuple[int, int, str]]


def through_core(core: Core, name: str, mark: Mark) -> list[str]:
    documents = core.case.documents
    try:
        found = prepare(core.snapshot(name), mark.offset, files=True)
        if not mark.argument:
            return _prepared(name, documents[name], mark, found.span, found.name)
        edits = rename(core.snapshot(name), mark.offset, mark.argument, files=True)
    except RenameRefusedError as refused:
        return _refused(name, documents[name], mark, str(refused).replace(str(core.root) + "/", ""))
    changes = {
        core.name(path): [(one.edit.start, one.edit.end, one.edit.new_text) for one in mine]
        for path, mine in in_files(edits).items()
    }
    move = moved_workflow(core.snapshot(name), mark.offset, mark.argument)
    moved = [] if move is None else [f"  {core.name(move[0])} → {core.name(move[1])}"]
    return _renamed(documents, name, mark, changes) + moved


def through_wire(wire: Wire, name: str, mark: Mark) -> list[str]:
    documents = wire.case.documents
    text = documents[name]
    answer = _ask(wire, "textDocument/prepareRename", wire.at(name, mark))
    if isinstance(answer, str):
        return _refused(name, text, mark, answer)
    if not mark.argument:
        return _prepared(name, text, mark, wire.span(name, answer["range"]), answer["placeholder"])
    answer = _ask(wire, "textDocument/rename", {**wire.at(name, mark), "newName": mark.argument})
    if isinstance(answer, str):
        return _refused(name, text, mark, answer)
    moves = [one for one in answer.get("documentChanges", ()) if one.get("kind") == "rename"]
    moved = [f"  {wire.name(one['oldUri'])} → {wire.name(one['newUri'])}" for one in moves]
    return _renamed(documents, name, mark, edits_of(wire, answer)) + moved


def edits_of(wire: Wire, answer: dict[str, Any]) -> dict[str, Edits]:
    """A workspace edit's text edits by document, whichever way the server wrote them."""
    operations = [one for one in answer.get("documentChanges", ()) if "textDocument" in one]
    listed = [(one["textDocument"]["uri"], one["edits"]) for one in operations]
    found: dict[str, Edits] = {}
    for uri, edits in [*listed, *answer.get("changes", {}).items()]:
        name = wire.name(uri)
        found[name] = [(*wire.span(name, edit["range"]), edit["newText"]) for edit in edits]
    return found


def _ask(wire: Wire, method: str, params: object) -> Any:
    answer = wire.client.answer(wire.client.request(method, params))
    if "error" in answer:
        assert answer["error"]["code"] == -32803, answer
        return str(answer["error"]["message"]).replace(str(wire.root) + "/", "")
    return answer["result"]


def _title(name: str, text: str, mark: Mark) -> str:
    line, column = LineIndex(text).position(mark.offset)
    return f"rename {name}:{line + 1}:{column + 1}"


def _prepared(name: str, text: str, mark: Mark, span: tuple[int, int], found: str) -> list[str]:
    return [_title(name, text, mark), f"  {place(text, span)} '{found}'"]


def _refused(name: str, text: str, mark: Mark, reason: str) -> list[str]:
    to = f" to {mark.argument}" if mark.argument else ""
    return [f"{_title(name, text, mark)}{to}", f"  refused: {reason}"]


def _renamed(documents: dict[str, str], name: str, mark: Mark, changes: dict[str, Edits]) -> list[str]:
    lines = [f"{_title(name, documents[name], mark)} to {mark.argument}"]
    for other, edits in sorted(changes.items()):
        lines.append(f"  {other}")
        text = documents[other]
        for start, end, new in sorted(edits, reverse=True):
            text = text[:start] + new + text[end:]
        before, after = documents[other].split("\n"), text.split("\n")
        assert len(before) == len(after)
        for old, fresh in zip(before, after, strict=True):
            if old != fresh:
                lines += [f"  - {old.rstrip(chr(13))}", f"  + {fresh.rstrip(chr(13))}"]
    return lines
