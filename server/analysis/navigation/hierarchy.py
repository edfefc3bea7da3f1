"""Who names a tool, and which tools a file names: manifests by their dependencies, texts by their calls, profiles by their lists.

Pure. Must not know LSP.
"""

from __future__ import annotations

import msgspec

from tamis.protocols.positions import Span
from tamis.server.analysis.index import WorkspaceIndex
from tamis.server.analysis.navigation.subject import subject_at
from tamis.server.analysis.snapshot import Snapshot


class Caller(msgspec.Struct, frozen=True):
    """A file that declares a tool or names some. ``tool_id`` is empty for texts and profiles."""

    path: str
    name: str
    span: Span
    tool_id: str = ""
    detail: str = ""


class Edge(msgspec.Struct, frozen=True):
    """The other end, and the places where the naming file names the tool."""

    other: Caller
    spans: tuple[Span, ...]


def callers_at(snapshot: Snapshot, offset: int) -> list[Caller]:
    """The tool at an offset, by the file that declares it; of several versions the one that would run."""
    subject = subject_at(snapshot, offset)
    if subject is None or subject.kind != "tool" or snapshot.index is None:
        return []
    tools = snapshot.index.declarations(subject.tool_id)
    found = [caller_of(snapshot.index, tool.path, tool.tool_id) for tool in tools]
    return [one for one in found if one.path == subject.manifest] or found


def caller_of(index: WorkspaceIndex, path: str, tool_id: str = "") -> Caller:
    """A file as one end; of one that declares several tools the one with this id."""
    facts = index.facts(path)
    own = facts.declares if facts is not None else ()
    declared = next((one for one in own if len(own) == 1 or one.tool_id == tool_id), None)
    if declared is None or not declared.tool_id:
        return Caller(path, path.rsplit("/", 1)[-1], (0, 0))
    return Caller(path, declared.tool_id, declared.span, declared.tool_id, declared.display_name)


def incoming(index: WorkspaceIndex, path: str, tool_id: str = "") -> list[Edge]:
    """The files that name the tool of a file, by path; ``tool_id`` tells which where it declares several."""
    tool_id = caller_of(index, path, tool_id).tool_id
    places: dict[str, list[Span]] = {}
    for one in index.occurrences(tool_id) if tool_id else ():
        if one.role in ("call", "profile", "dependency"):
            places.setdefault(one.path, []).append(one.span)
    return [Edge(caller_of(index, other), tuple(spans)) for other, spans in places.items()]


def outgoing(index: WorkspaceIndex, path: str) -> list[Edge]:
    """The tools that a file names, in the order of their first place; names that nothing declares are left out."""
    facts = index.facts(path)
    places: dict[str, list[Span]] = {}
    for use in facts.uses if facts is not None else ():
        tool_id = index.resolve(use.name, use.protocol) if use.role in ("call", "profile", "dependency") else None
        if tool_id is not None:
            places.setdefault(tool_id, []).append(use.span)
    return [
        Edge(caller_of(index, tools[0].path, tool_id), tuple(spans))
        for tool_id, spans in places.items()
        if (tools := index.declarations(tool_id))
    ]
