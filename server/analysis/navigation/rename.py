"""Renaming tools, parameters and definitions across the workspace.

The edits are proven before they are given: every edited text is read again, and unless each place has the new name and everything
else is read as before, the rename is refused with the reason. Nothing is renamed in part. Must not know LSP.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import msgspec

from tamis.protocols.invisible import NOT_IN_NAMES
from tamis.protocols.manifest.reading import tool_id_fault
from tamis.protocols.manifest.workflow import PREFIX
from tamis.protocols.model import MAX_NAME_CHARS, Edit, escape_pointer
from tamis.protocols.observation import plain
from tamis.protocols.positions import Span
from tamis.server.analysis.navigation.definition import text_of, tree_of
from tamis.server.analysis.navigation.inline import KINDS as INLINE
from tamis.server.analysis.navigation.inline import check_inline, rename_inline
from tamis.server.analysis.navigation.proof import Proof, apply, disproof
from tamis.server.analysis.navigation.references import Site, index_id, occurrences_of, sites_of
from tamis.server.analysis.navigation.reverse import Before, Memory, Place, Remembered, shifted, way_back, with_losses
from tamis.server.analysis.navigation.schemas_here import DEFINITIONS, arguments_schema, object_schema, property_of
from tamis.server.analysis.navigation.spelled import RenameEdit, RenameRefusedError, edit_of, follows, in_files
from tamis.server.analysis.navigation.subject import Subject, has_slots, subject_at
from tamis.server.analysis.snapshot import Snapshot

_UNWRITABLE = re.compile(rf"[\x00-\x1f\x7f\"\\<>&=「」«»{NOT_IN_NAMES}]")


class Renamable(msgspec.Struct, frozen=True):
    """What can be renamed: its place and its name as it stands."""

    span: Span
    name: str
    subject: Subject


def prepare(snapshot: Snapshot, offset: int, *, files: bool = False) -> Renamable:
    """What a rename at an offset would change; raises ``RenameRefusedError``. ``files``: a workflow's file may be renamed too."""
    subject = subject_at(snapshot, offset)
    if subject is None:
        raise RenameRefusedError(
            "Only tool ids, their aliases, parameters, definitions of a schema, variables, environments and names of blocks can be renamed"
        )
    subject = _named(snapshot, subject)
    if subject.kind in INLINE:
        check_inline(snapshot, subject)
    if subject.kind == "tool":
        workflow = workflow_of(snapshot, subject.name)
        if workflow and not files:
            raise RenameRefusedError(f"'{subject.name}' is named by its workflow file; rename the file")
        if snapshot.index is None or not (workflow or any(site.declares for site, _ in _tool_sites(snapshot, subject))):
            raise RenameRefusedError(f"No manifest of the workspace declares '{subject.name}'")
    elif subject.kind == "parameter" and has_slots(snapshot, subject.manifest):
        raise RenameRefusedError("The inputs of a workflow or a node are wired in a graph; rename them in its editor")
    elif subject.kind == "parameter" and not any(site.declares for site in sites_of(snapshot, subject)):
        owner = f"no parameter of '{subject.tool_id}'" if subject.tool_id else "no parameter of a known tool"
        raise RenameRefusedError(f"'{subject.name}' is {owner}")
    elif subject.kind == "script":
        raise RenameRefusedError("A script is renamed as a file; the manifest follows")
    elif subject.kind == "entry":
        raise RenameRefusedError("A function is renamed in its script")
    return Renamable(subject.span, subject.name, subject)


def rename(
    snapshot: Snapshot, offset: int, new: str, *, files: bool = False, memory: Memory | None = None
) -> list[RenameEdit]:
    """The edits of a rename, by file and place, proven; raises ``RenameRefusedError``. The same name again gives none.

    Of a workflow's id they go with the renaming of its file (``moved_workflow``). What ``memory`` knows is undone to the byte.
    """
    renamable = prepare(snapshot, offset, files=files)
    subject = renamable.subject
    if new == subject.name:
        return []
    workflow = workflow_of(snapshot, subject.name) if subject.kind == "tool" else ""
    known: Known = memory.of(subject.name, new, partial(text_of, snapshot)) if memory is not None else {}
    if subject.kind in INLINE:
        return rename_inline(snapshot, subject, new, known)
    if subject.kind == "tool":
        _check_id(snapshot, subject, new, workflow=bool(workflow))
        sites = [
            (site, name) for site, name in _tool_sites(snapshot, subject, known) if not workflow or not site.declares
        ]
    else:
        _check_name(snapshot, subject, new)
        sites = [(site, subject.name) for site in sites_of(snapshot, subject)]
    changes = [(site, name, _made(snapshot, subject, site, name, new, known)) for site, name in sites]
    _check_made(snapshot, subject, {(name, then.name) for _, name, then in changes})
    edits = [RenameEdit(site.path, Edit(*site.span, then.raw), site.aside) for site, _, then in changes]
    places = {(site.path, site.span[0]): (name, then.name) for site, name, then in changes}
    _prove(snapshot, subject, new, edits, places)
    return with_losses(snapshot, subject, new, edits, [site for site, _ in sites], _move(workflow, new))


MAX_LEFT = 3
"""Texts that are named of those that a rename leaves."""


def left_in(snapshot: Snapshot, offset: int, edits: Sequence[RenameEdit]) -> str:
    """What a rename at an offset leaves as it is, as a sentence: texts in which the name stays, since nothing is read as a call or filled in
    there (chats, prose, forms that are not read). Empty where there are none."""
    subject = subject_at(snapshot, offset)
    index = snapshot.index
    if subject is None or not edits or index is None or subject.kind not in ("tool", *INLINE):
        return ""
    subject = _named(snapshot, subject)
    name = ".".join(subject.names) if subject.kind in INLINE else subject.name
    if not name:
        return ""
    before, behind = (
        (r"(?<!\\)\{\{[ \t]*", r"(?![\w-])") if subject.kind in INLINE else (r"(?<![\w:.-])", r"(?![\w:-])")
    )
    stays = re.compile(before + re.escape(name) + behind)
    edited = in_files(edits)
    left: list[str] = []
    for path in index.files():
        if index.kind(path) != "text" or name not in (text := text_of(snapshot, path)):
            continue
        if stays.search(apply(text, [one.edit for one in edited.get(path, ())])) is not None:
            left.append(path)
    if not left:
        return ""
    more = f" and {len(left) - MAX_LEFT} more" if len(left) > MAX_LEFT else ""
    named = ", ".join(f"'{plain(posixpath.basename(path))}'" for path in left[:MAX_LEFT])
    return f"'{name}' stays as it is where nothing is read as a call or filled in (chats, prose, other forms): {named}{more}"


def remembered(snapshot: Snapshot, offset: int, new: str, edits: Sequence[RenameEdit]) -> Remembered | None:
    """What a rename at an offset does, to be undone later; None for one that does nothing."""
    subject = subject_at(snapshot, offset)
    if subject is None or not edits or snapshot.index is None:
        return None
    subject = _named(snapshot, subject)
    occurrences = occurrences_of(snapshot, subject.tool_id) if subject.tool_id else []
    names = {(one.path, span[0]): one.name for one in occurrences for span in one.spans}
    move = moved_workflow(snapshot, offset, new)
    texts: dict[str, str] = {}
    if subject.kind == "tool":
        way = way_back(snapshot.index, subject, new, edits, move)
        texts = {path: way.after.text(path) for path, _ in way.more}
    before: dict[Place, Before] = {}
    for path, mine in in_files(edits).items():
        changes = [rename_edit.edit for rename_edit in mine]
        text = text_of(snapshot, path)
        then = move[1] if move is not None and path == move[0] else path
        texts[then] = apply(text, changes)
        for start, now in shifted(changes).items():
            raw = next(text[edit.start : edit.end] for edit in changes if edit.start == start)
            name = names.get((path, start), subject.name) if subject.kind == "tool" else subject.name
            before[then, now] = Before(raw, name)
    return Remembered(subject.name, new, texts, before)


def workflow_of(snapshot: Snapshot, tool_id: str) -> str:
    """The file that a workflow's id stands for; empty for any other name."""
    if snapshot.index is None or not tool_id.startswith(PREFIX):
        return ""
    tools = snapshot.index.declarations(tool_id)
    path = next((tool.path for tool in tools if tool.declared.kind == "workflow"), "")
    # One that is too large for the index is known to the registry only.
    tool = snapshot.registry.get(tool_id) if snapshot.registry is not None and not path else None
    return tool.path if tool is not None and tool.tool_id == tool_id else path


def moved_workflow(snapshot: Snapshot, offset: int, new: str) -> tuple[str, str] | None:
    """The old and the new path of the workflow file that a rename at an offset renames, or None where it renames none."""
    subject = subject_at(snapshot, offset)
    tool_id = _named(snapshot, subject).name if subject is not None and subject.kind == "tool" else ""
    return _move(workflow_of(snapshot, tool_id), new)


def _move(path: str, new: str) -> tuple[str, str] | None:
    if not path:
        return None
    folder, slash, name = path.rpartition("/")
    return path, f"{folder}{slash}{new.removeprefix(PREFIX)}.{name.rpartition('.')[2]}"


def _named(snapshot: Snapshot, subject: Subject) -> Subject:
    """A reference as what it refers to, a name that is made of a tool's id as the id."""
    if subject.kind == "tool" and subject.name != subject.tool_id and not subject.declares:
        text = _becomes(snapshot, msgspec.structs.replace(subject, name=subject.tool_id), subject.name, subject.tool_id)
        return subject if text is None else msgspec.structs.replace(subject, name=subject.tool_id)
    if subject.kind != "reference":
        return subject
    path = subject.path
    written = snapshot.text[slice(*subject.span)]
    if len(path) < 2 or "/" not in written or not written.endswith("/" + escape_pointer(str(path[-1]))):
        raise RenameRefusedError("This reference leads to no name that could be changed")
    name = str(path[-1])
    span = (subject.span[1] - len(escape_pointer(name)), subject.span[1])
    if path[-2] in DEFINITIONS:
        return msgspec.structs.replace(subject, kind="definition", name=name, span=span)
    if path[-2] == "properties":
        return msgspec.structs.replace(subject, kind="parameter", name=name, span=span, schema=object_schema(path[:-2]))
    raise RenameRefusedError("This reference leads to no name that could be changed")


Known = Mapping[str, Mapping[int, Before]]
"""What is remembered of places: by file, and where a name begins in it."""


def _tool_sites(snapshot: Snapshot, subject: Subject, known: Known = MappingProxyType({})) -> list[tuple[Site, str]]:
    """The places that a rename of a tool's name changes, each with the name that stands there. In a file of which is ``known`` what stood
    there it is those places."""
    names = {
        (occurrence.path, span): occurrence.name
        for occurrence in occurrences_of(snapshot, subject.tool_id)
        for span in occurrence.spans
    }
    changes = {name for name in names.values() if _becomes(snapshot, subject, name, subject.name) is not None}
    return [
        (site, name)
        for site in sites_of(snapshot, subject)
        if (name := names.get((site.path, site.span), ""))
        and (site.span[0] in known[site.path] if site.path in known else name in changes)
    ]


def _becomes(snapshot: Snapshot, subject: Subject, name: str, new: str) -> str | None:
    """What a name of the tool becomes when the subject's name becomes ``new``; None where it stays."""
    if name == subject.name:
        return new
    if subject.name != subject.tool_id or snapshot.index is None:
        return None
    return follows(snapshot.index, subject.tool_id, name, new, workflow_of(snapshot, subject.tool_id))


def _made(snapshot: Snapshot, subject: Subject, site: Site, name: str, new: str, known: Known) -> Before:
    """What comes to a place: as it is written, and the name that it is."""
    before = known.get(site.path, {}).get(site.span[0])
    if before is not None:
        return before
    then = _becomes(snapshot, subject, name, new) or new
    return Before(edit_of(snapshot, subject, site, then).new_text, then)


def _check_made(snapshot: Snapshot, subject: Subject, names: Collection[tuple[str, str]]) -> None:
    """A name that is made of the new id must not mean another tool."""
    for name, text in sorted(names):
        index, registry = snapshot.index, snapshot.registry
        if subject.kind != "tool" or name == subject.name or text == name or index is None:
            continue
        tool = registry.get(text) if registry is not None else None
        meant = {*index.may_mean(text), *((tool.tool_id,) if tool is not None else ())} - {subject.tool_id}
        if meant:
            other = min(meant)
            raise RenameRefusedError(
                f"Calls that say '{name}' would have to say '{text}', which means '{other}' already"
            )


# New names


def _check_id(snapshot: Snapshot, subject: Subject, new: str, *, workflow: bool) -> None:
    fault = tool_id_fault(new)
    if fault is None and workflow and (not new.startswith(PREFIX) or "/" in new or "." in new):
        fault = f"a workflow's id is '{PREFIX}' and the name of its file"
    if fault is not None:
        raise RenameRefusedError(f"'{new}' cannot be a tool id: {fault}")
    if new.startswith(PREFIX) and not workflow:
        raise RenameRefusedError(f"'{new}' cannot be a tool id of a manifest: '{PREFIX}' names workflow files")
    tool = snapshot.registry.get(new) if snapshot.registry is not None else None
    owner = snapshot.index.resolve(new) if snapshot.index is not None else None
    if tool is None and owner is None:
        _check_calls(snapshot, subject, new)
        return
    declared = snapshot.index.declarations(owner) if owner is not None and snapshot.index is not None else []
    path = tool.path if tool is not None else declared[0].path if declared else ""
    what = f"'{subject.name}' itself" if owner == subject.tool_id else f"the tool '{owner or new}'"
    raise RenameRefusedError(f"'{new}' is taken: it is a name of {what}{f' in {path}' if path else ''}")


def _check_calls(snapshot: Snapshot, subject: Subject, new: str) -> None:
    """A new id must not take calls from another tool, which exports call so."""
    index = snapshot.index
    for other in index.may_mean(new) if index is not None else ():
        if other != subject.tool_id and any(occurrence.name == new for occurrence in occurrences_of(snapshot, other)):
            raise RenameRefusedError(f"'{new}' is taken: calls reach the tool '{other}' by it")


def _check_name(snapshot: Snapshot, subject: Subject, new: str) -> None:
    if not new.strip() or new != new.strip():
        raise RenameRefusedError("A name cannot be empty, nor begin or end with blanks")
    if len(new) > MAX_NAME_CHARS:
        raise RenameRefusedError(f"A name has at most {MAX_NAME_CHARS} characters")
    if _UNWRITABLE.search(new):
        raise RenameRefusedError(f"'{new}' holds a character that calls or JSON use as markup")
    tree = tree_of(snapshot, subject.manifest)
    if subject.kind == "parameter":
        taken = property_of(tree, _schema(snapshot, subject), new) is not None
    else:
        node = tree.root.at(subject.path[:-1]) if tree.root is not None else None
        taken = node is not None and node.kind == "object" and node.member(new) is not None
    if taken:
        what = "parameter" if subject.kind == "parameter" else "definition"
        raise RenameRefusedError(f"'{new}' is taken: there is a {what} of that name beside '{subject.name}'")


def _schema(snapshot: Snapshot, subject: Subject) -> tuple[str | int, ...]:
    if subject.manifest == snapshot.path:
        return subject.schema
    return arguments_schema(tree_of(snapshot, subject.manifest)) or ("parameters",)


# Proof


def _prove(
    snapshot: Snapshot,
    subject: Subject,
    new: str,
    edits: list[RenameEdit],
    places: Mapping[tuple[str, int], tuple[str, str]],
) -> None:
    by_path: dict[str, list[Edit]] = {}
    for edit in edits:
        by_path.setdefault(edit.path, []).append(edit.edit)
    declared = index_id(snapshot, subject.manifest)
    proof = Proof(
        what="tool" if subject.kind == "tool" else "name",
        old=subject.name,
        new=new,
        manifest=subject.manifest,
        tool_id=subject.tool_id or declared,
        schema=_schema(snapshot, subject) if subject.kind == "parameter" else (),
    )
    for path, changes in by_path.items():
        names = {start: change for (file, start), change in places.items() if file == path}
        reason = disproof(snapshot, path, text_of(snapshot, path), changes, proof, names)
        if reason:
            raise RenameRefusedError(f"'{subject.name}' cannot become '{new}': {reason} ({path})")
