"""How a new name is written where an old one stands: as JSON, a tag, a key. Raises where it cannot be. Must not know why it is written."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from tamis.protocols.export.names import portable_name
from tamis.protocols.jsontext.tokens import quoted
from tamis.protocols.manifest.reading import script_path_fault, tool_id_fault
from tamis.protocols.manifest.workflow import PREFIX
from tamis.protocols.model import Edit, escape_pointer
from tamis.protocols.plugins import editing_of
from tamis.protocols.positions import LineIndex
from tamis.server.analysis.facts import Declared, workflow_id
from tamis.server.analysis.index import WorkspaceIndex
from tamis.server.analysis.navigation.definition import text_of
from tamis.server.analysis.navigation.references import Site
from tamis.server.analysis.navigation.subject import Subject
from tamis.server.analysis.snapshot import Snapshot

_TAG = re.compile(r"[^\s<>/!?\"'`=&][^\s<>\"'`=&]*")
"""What can stand in a tag at all; whether it is read as the same call is for the proof (ruling 13)."""


class RenameRefusedError(Exception):
    """Why something cannot be renamed, as a sentence for a person."""


class RenameEdit(msgspec.Struct, frozen=True):
    """One edit of a rename. ``aside``: it changes an example or reasoning, where nothing runs. ``lost``: why renaming back would not give
    what was there, as a sentence."""

    path: str
    edit: Edit
    aside: bool = False
    lost: str = ""


def edit_of(snapshot: Snapshot, subject: Subject, site: Site, new: str) -> Edit:
    """The edit that puts a new name at a place, in the form in which names stand there."""
    text = new
    if site.form == "json":
        text = quoted(new)[1:-1]
    elif site.form == "pointer":
        text = quoted(escape_pointer(new))[1:-1]
    elif site.form in ("tag", "close") and not _TAG.fullmatch(new):
        where = _place(snapshot, site)
        raise RenameRefusedError(f"'{new}' is no tag name, which {where} needs; write that call with <inputs> first")
    elif site.form == "key":
        text = editing_of(site.protocol).renamed_key(site.raw, subject.name, new)
    return Edit(*site.span, text)


def _place(snapshot: Snapshot, site: Site) -> str:
    line = LineIndex(text_of(snapshot, site.path)).position(site.span[0])[0]
    return f"{site.path}:{line + 1}"


def in_files(edits: Iterable[RenameEdit]) -> Mapping[str, list[RenameEdit]]:
    """The edits by file."""
    files: dict[str, list[RenameEdit]] = {}
    for edit in edits:
        files.setdefault(edit.path, []).append(edit)
    return files


# Names that are made of a tool's id, and so become others with it: what exports call it, of a workflow also its bare name and its path. Aliases are
# names of their own. Pure.


def follows(index: WorkspaceIndex, tool_id: str, name: str, new: str, path: str = "") -> str | None:
    """What a name of a tool becomes when its id becomes ``new``; None for a name that stays. ``path``: the workflow's file."""
    if name == tool_id:
        return new
    if tool_id.startswith(PREFIX) and new.startswith(PREFIX):
        bare, then = tool_id.removeprefix(PREFIX), new.removeprefix(PREFIX)
        declared = [
            declaration for declaration in index.declarations(tool_id) if declaration.declared.kind == "workflow"
        ]
        if name == bare:
            # The `id` in the file stays what it is.
            return None if any(tool.declared.own_id == bare for tool in declared) else then
        for file in (path, *(tool.path for tool in declared)):
            base = posixpath.basename(file)
            if base and f"/{file}".endswith(f"/{name}") and not any(tool.declared.own_id == name for tool in declared):
                return f"{name[: -len(base)]}{then}.{base.rpartition('.')[2]}"
    if name in index.exports(tool_id):
        gemini = name != portable_name(tool_id, "openai") and name == portable_name(tool_id, "gemini")
        return portable_name(new, "gemini" if gemini else "openai")
    return None


# What must be edited when files move: ``handler.scriptPath`` of manifests, and the ids of workflows, which are their files' names. The edits are for
# the files where they stand before the move. Pure.


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
            rename_edit = _script(index, path, facts.declared, moves, notes)
            edits += [rename_edit] if rename_edit is not None else []
        elif facts.kind == "workflow":
            edits += _workflow(index, path, facts.declared, moves, notes, roots)
    return sorted(set(edits), key=lambda rename_edit: (rename_edit.path, rename_edit.edit.start)), notes


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
        RenameEdit(occurrence.path, Edit(*span, quoted(name)[1:-1]), occurrence.use.aside)
        for occurrence in index.occurrences(old, paths)
        if occurrence.role != "declaration"
        and (name := paths.get(occurrence.name) or follows(index, old, occurrence.name, new, path))
        not in (None, occurrence.name)
        for span in occurrence.spans
    ]
