"""What must be edited when files move: ``handler.scriptPath`` of manifests, and the ids of workflows, which are their files' names.

The edits are for the files where they stand before the move. Pure. Must not know LSP.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from tamis.protocols.jsontext.quote import quoted
from tamis.protocols.manifest.reading import script_path_fault, tool_id_fault
from tamis.protocols.model import Edit
from tamis.server.analysis.facts import Declared, workflow_id
from tamis.server.analysis.index import WorkspaceIndex
from tamis.server.analysis.navigation.own_names import follows
from tamis.server.analysis.navigation.spelled import RenameEdit

Move = tuple[str, str]
"""A file or folder's old and new path."""


def edits_of_moves(
    index: WorkspaceIndex, moves: Sequence[Move], roots: Sequence[str] = ()
) -> tuple[list[RenameEdit], list[str]]:
    """The edits that keep manifests, profiles and calls right, and sentences about what no edit can keep right.

    ``roots`` are the open folders: from there a workflow's path is a name of it.
    """
    edits: list[RenameEdit] = []
    notes: list[str] = []
    for path in index.files():
        facts = index.facts(path)
        if facts is None or facts.declared is None:
            continue
        if facts.kind == "manifest":
            found = _script(index, path, facts.declared, moves, notes)
            edits += [found] if found is not None else []
        elif facts.kind == "workflow":
            edits += _workflow(index, path, facts.declared, moves, notes, roots)
    return sorted(set(edits), key=lambda one: (one.path, one.edit.start)), notes


def moved(path: str, moves: Sequence[Move]) -> str:
    """Where a path is after the moves; of several that hold it the closest counts."""
    best = ("", "")
    for old, new in moves:
        old = old.rstrip("/")
        if (path == old or path.startswith(old + "/")) and len(old) > len(best[0]):
            best = (old, new.rstrip("/"))
    return best[1] + path[len(best[0]) :] if best[0] else path


def _script(
    index: WorkspaceIndex, path: str, declared: Declared, moves: Sequence[Move], notes: list[str]
) -> RenameEdit | None:
    written = declared.script_path
    if not written or script_path_fault(written):
        return None
    script = posixpath.normpath(posixpath.join(posixpath.dirname(path), written))
    manifest_now, script_now = moved(path, moves), moved(script, moves)
    now = posixpath.relpath(script_now, posixpath.dirname(manifest_now))
    if now == posixpath.normpath(written):
        return None
    if script_path_fault(now):
        name = posixpath.basename(manifest_now)
        notes.append(f"{name}: its script would be at '{now}', which is not below the manifest's folder")
        return None
    if written.startswith("./"):
        now = "./" + now
    if index.text(path)[slice(*declared.script_span)] != quoted(written)[1:-1]:
        notes.append(f"{posixpath.basename(path)}: 'scriptPath' is written with escapes; change it to '{now}'")
        return None
    return RenameEdit(path, Edit(*declared.script_span, quoted(now)[1:-1]))


def _workflow(
    index: WorkspaceIndex,
    path: str,
    declared: Declared,
    moves: Sequence[Move],
    notes: list[str],
    roots: Sequence[str],
) -> list[RenameEdit]:
    now = moved(path, moves)
    old, new = declared.tool_id, workflow_id(now)
    others = [tool for tool in index.declarations(old) if tool.path != path]
    if now == path or others or not now.endswith((".json", ".jsonc")):
        return []
    paths = {
        posixpath.relpath(path, root): posixpath.relpath(now, root)
        for root in roots
        if path.startswith(f"{root}/") and now.startswith(f"{root}/")
    }
    paths = {before: after for before, after in paths.items() if index.resolve(before) in (None, old)}
    fault = tool_id_fault(new) if old != new else None
    if fault is None and old != new and index.resolve(new) is not None:
        fault = "another tool has that id"
    if fault is not None:
        notes.append(f"'{old}' cannot become '{new}': {fault}")
        return []
    return [
        RenameEdit(one.path, Edit(*span, quoted(name)[1:-1]), one.use.aside)
        for one in index.occurrences(old, paths)
        if one.role != "declaration"
        and (name := paths.get(one.name) or follows(index, old, one.name, new, path)) not in (None, one.name)
        for span in one.spans
    ]
