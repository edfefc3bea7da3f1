"""How a new name is written where an old one stands: as JSON, a tag, a key. Raises where it cannot be. Must not know why it is written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from tamis.protocols.jsontext.quote import quoted
from tamis.protocols.model import Edit, escape_pointer
from tamis.protocols.plugins import editing_of
from tamis.protocols.positions import LineIndex
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
    found: dict[str, list[RenameEdit]] = {}
    for one in edits:
        found.setdefault(one.path, []).append(one)
    return found
