"""What a rename and the same one backwards leave otherwise than it was, and the memory by which the way back is found all the same.

Two spellings of a name can become one (the id `core:echo` and what exports call it, `core_echo`, both become `plain`); then the new text
alone does not tell which stood where. Such places are said, and a rename that is remembered is undone to the byte in every file that is
as it left it. Pure. Must not know how a rename is proven, or LSP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

import msgspec

from tamis.protocols.model import Edit
from tamis.protocols.positions import LineIndex
from tamis.server.analysis.index import WorkspaceIndex
from tamis.server.analysis.navigation.proof import apply
from tamis.server.analysis.navigation.references import Site
from tamis.server.analysis.navigation.spelled import RenameEdit, edit_of, follows, in_files
from tamis.server.analysis.navigation.subject import Subject
from tamis.server.analysis.snapshot import Snapshot
from tamis.server.runtime.tools.versions import plain_spellings

MAX_REMEMBERED = 16
MAX_SAID = 3

Place = tuple[str, int]
"""A file, and where a name begins in it."""


class Before(msgspec.Struct, frozen=True):
    """What stood at a place before a rename: as it was written, and the name that it was."""

    raw: str
    name: str


class Remembered(msgspec.Struct, frozen=True):
    """A rename that was answered: the names, the texts that it leaves, and what stood there."""

    old: str
    new: str
    texts: Mapping[str, str]
    before: Mapping[Place, Before]


class Memory:
    """The last renames of a session."""

    def __init__(self) -> None:
        self._kept: list[Remembered] = []

    def keep(self, remembered: Remembered) -> None:
        """Remembers a rename."""
        self._kept = [*self._kept[1 - MAX_REMEMBERED :], remembered]

    def of(self, old: str, new: str, text_of: Callable[[str], str]) -> Mapping[str, Mapping[int, Before]]:
        """What stood where before the rename that one from ``old`` to ``new`` undoes, by file: of those that are as it left them."""
        for remembered in reversed(self._kept):
            if (remembered.old, remembered.new) != (new, old):
                continue
            same = {path for path, text in remembered.texts.items() if text_of(path) == text}
            by_path: dict[str, dict[int, Before]] = {path: {} for path in same}
            for (path, start), before in remembered.before.items():
                if path in same:
                    by_path[path][start] = before
            return by_path
        return {}


def shifted(edits: Sequence[Edit]) -> dict[int, int]:
    """Where the edits of one text begin once all are made, by where they begin."""
    ordered = sorted(edits, key=lambda edit: edit.start)
    grown = accumulate((len(edit.new_text) - (edit.end - edit.start) for edit in ordered), initial=0)
    return {edit.start: edit.start + by for edit, by in zip(ordered, grown, strict=False)}


def after_rename(
    index: WorkspaceIndex, edits: Mapping[str, Sequence[Edit]], move: tuple[str, str] | None
) -> WorkspaceIndex:
    """The index once the edits are made, and a workflow's file has its new name."""
    texts: dict[str, str | None] = {path: apply(index.text(path), mine) for path, mine in edits.items()}
    if move is not None:
        texts[move[1]] = texts.get(move[0], index.text(move[0]))
        texts[move[0]] = None
    return index.with_texts(texts)


def names_back(after: WorkspaceIndex, tool_id: str, new: str, old: str, path: str) -> dict[Place, tuple[str, str]]:
    """Every place that renaming ``new`` back to ``old`` would change, with the name there and the one that would come.

    ``tool_id`` is the tool's id now, ``new`` that or an alias; ``path`` its file, of a workflow.
    """
    names_back: dict[Place, tuple[str, str]] = {}
    # As the registry resolves them where no call stands, in a profile.
    also = [name for name in plain_spellings(tool_id) if after.may_mean(name) == (tool_id,)]
    for occurrence in after.occurrences(tool_id, also):
        then = (
            old
            if occurrence.name == new
            else follows(after, tool_id, occurrence.name, old, path)
            if new == tool_id
            else None
        )
        if then is not None:
            names_back.update({(occurrence.path, span[0]): (occurrence.name, then) for span in occurrence.spans})
    return names_back


def said_of(places: Sequence[tuple[str, int]], text_of: Callable[[str], str]) -> str:
    """Places for a person: file and line, the first few."""
    lines = [f"{path}:{LineIndex(text_of(path)).position(at)[0] + 1}" for path, at in places]
    named = list(dict.fromkeys(lines))
    return ", ".join(named[:MAX_SAID]) + (f" and {len(named) - MAX_SAID} more" if len(named) > MAX_SAID else "")


class WayBack(msgspec.Struct, frozen=True):
    """What renaming back would do: to the places that were renamed, by where they are now, and to others (``more``) in the texts after."""

    after: WorkspaceIndex
    names: Mapping[Place, str]
    more: Sequence[Place]


def way_back(
    index: WorkspaceIndex, subject: Subject, new: str, edits: Sequence[RenameEdit], move: tuple[str, str] | None
) -> WayBack:
    """What renaming a tool back would change; ``move``: where its workflow's file goes."""
    by_path = {path: [rename_edit.edit for rename_edit in mine] for path, mine in in_files(edits).items()}
    after = after_rename(index, by_path, move)
    old_file, new_file = move or ("", "")
    tool_id = new if subject.name == subject.tool_id else subject.tool_id
    reverse = names_back(after, tool_id, new, subject.name, new_file)
    names: dict[Place, str] = {}
    for path, mine in by_path.items():
        now = new_file if path == old_file else path
        for start, place in shifted(mine).items():
            if (now, place) in reverse:
                names[path, start] = reverse.pop((now, place))[1]
    # A workflow's own declaration stands nowhere in its file.
    more = sorted(place for place in reverse if not (move is not None and place == (new_file, 0)))
    return WayBack(after, names, more)


def with_losses(
    snapshot: Snapshot,
    subject: Subject,
    new: str,
    edits: Sequence[RenameEdit],
    sites: Sequence[Site],
    move: tuple[str, str] | None,
) -> list[RenameEdit]:
    """The edits, those marked that renaming back would not undo, or after which it would change more."""
    if subject.kind != "tool" or snapshot.index is None:
        back: Mapping[Place, str] = {(site.path, site.span[0]): subject.name for site in sites}
        return [
            _lossy(snapshot, subject, new, rename_edit, site, back)
            for rename_edit, site in zip(edits, sites, strict=True)
        ]
    way = way_back(snapshot.index, subject, new, edits, move)
    marked = [
        _lossy(snapshot, subject, new, rename_edit, site, way.names)
        for rename_edit, site in zip(edits, sites, strict=True)
    ]
    if way.more and marked:
        where = said_of(way.more, way.after.text)
        note = f"'{new}' is named elsewhere already, and renaming back would change that too: {where}"
        first = next((i for i, site in enumerate(sites) if site.declares), 0)
        marked[first] = msgspec.structs.replace(marked[first], lost=f"{marked[first].lost} {note}".strip())
    return marked


def _lossy(
    snapshot: Snapshot, subject: Subject, new: str, rename_edit: RenameEdit, site: Site, back: Mapping[Place, str]
) -> RenameEdit:
    then = back.get((site.path, site.span[0]))
    raw = rename_edit.edit.new_text
    if then is not None:
        turned = msgspec.structs.replace(subject, name=new)
        raw = edit_of(snapshot, turned, msgspec.structs.replace(site, raw=raw), then).new_text
    if raw == site.raw:
        return rename_edit
    kept = f"Renaming back leaves '{raw}' where '{site.raw}' stands now"
    return msgspec.structs.replace(rename_edit, lost=kept)
