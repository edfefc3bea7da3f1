"""The proof of a rename: an edited text is read again, and must say the same with the new name. Must not know how edits are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.jsontext.tree import JsonNode, Path
from tamis.protocols.model import Call, Document, Edit, Json, ReadOptions, ToolHint
from tamis.protocols.schema.words import is_object
from tamis.server.analysis.facts import facts_of, protocol_of
from tamis.server.analysis.kinds import kind_of
from tamis.server.analysis.navigation.subject import calls_of, tool_id_of
from tamis.server.analysis.snapshot import Snapshot


class Proof(msgspec.Struct, frozen=True):
    """What was renamed: a tool's name, or a parameter or definition of the tool in ``manifest`` (its object schema at ``schema``)."""

    what: Literal["tool", "name"]
    old: str
    new: str
    manifest: str
    tool_id: str
    schema: Path = ()


def apply(text: str, edits: Sequence[Edit]) -> str:
    """A text with disjoint edits applied."""
    parts: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        parts += [text[at : edit.start], edit.new_text]
        at = edit.end
    return "".join([*parts, text[at:]])


Names = Mapping[int, tuple[str, str]]
"""By the place of an edit: the name that stands there, and the one that comes."""


def disproof(snapshot: Snapshot, path: str, text: str, edits: Sequence[Edit], proof: Proof, names: Names) -> str:
    """Why the edited text does not say the same with the new name; empty when it does."""
    ordered = sorted(edits, key=lambda edit: edit.start)
    if any(edit.end > two.start for edit, two in pairwise(ordered)):
        return "two places overlap"
    after = apply(text, ordered)
    if kind_of(path, "") == "text":
        return _of_calls(snapshot, path, text, after, proof, names)
    return _of_json(snapshot, path, text, after, proof, names)


# Calls


def _read(snapshot: Snapshot, path: str, text: str, tools: dict[str, ToolHint]) -> Document:
    from tamis.protocols.reader import read_text

    options = ReadOptions(allow_multiple_blocks=True, tools=tools, also=snapshot.settings.also)
    return read_text(text, protocol_of(path), options)


def _renamed_name(name: str, names: Names, start: int) -> str:
    """A written name after the edit at its place; what stands behind the tool's name in it stays."""
    old, new = names.get(start, ("", ""))
    return name if not old else new + name[len(old) :] if name.startswith(old) else new


def _of_calls(snapshot: Snapshot, path: str, before: str, after: str, proof: Proof, names: Names) -> str:
    hints = snapshot.registry.hints() if snapshot.registry is not None else {}
    old = [call for _, call in calls_of(_read(snapshot, path, before, hints))]
    new = [call for _, call in calls_of(_read(snapshot, path, after, _renamed(hints, proof, names)))]
    if len(old) != len(new):
        return "its calls would be read otherwise"
    starts = set(names)
    for one, two in zip(old, new, strict=True):
        tool = _renamed_name(one.tool_id, names, one.tool_span[0]) if proof.what == "tool" else one.tool_id
        if two.tool_id != tool:
            return f"a call would name '{two.tool_id}' instead of '{tool}'"
        if two.executable != one.executable:
            return f"a call of '{one.tool_id}' would no longer run"
        reason = _of_params(snapshot, one, two, before, after, proof, starts)
        if reason:
            return reason
    return ""


def _of_params(
    snapshot: Snapshot, one: Call, two: Call, before: str, after: str, proof: Proof, starts: set[int]
) -> str:
    expected: dict[str, Json] = {}
    for param in one.params:
        renamed = proof.what == "name" and param.name == proof.old and param.name_span[0] in starts
        if renamed and tool_id_of(snapshot, one.tool_id, one.protocol) != proof.tool_id:
            return f"'{param.name}' is shared with a call of '{one.tool_id}'"
        name = proof.new if renamed else param.name
        if name in expected:
            return f"a call of '{one.tool_id}' has '{name}' already"
        expected[name] = param.value.python(before)
    if list(two.args(after).items()) != list(expected.items()):
        return f"the arguments of a call of '{one.tool_id}' would be read otherwise"
    if set(one.uris) != set(two.uris) and proof.what == "tool":
        return f"the resources of a call of '{one.tool_id}' would be read otherwise"
    if proof.what == "name" and proof.old in one.uris and proof.new not in two.uris and proof.old not in two.uris:
        return f"the resource of '{proof.old}' would be lost"
    return ""


def _renamed(hints: dict[str, ToolHint], proof: Proof, names: Names) -> dict[str, ToolHint]:
    """What readers know of the tools once the rename is done."""
    new_hints = dict(hints)
    if proof.what == "tool":
        for old, new in {(proof.old, proof.new), *names.values()}:
            hint = hints.get(old)
            if hint is not None:
                new_hints[new] = hint
        return new_hints
    for name, hint in hints.items():
        properties = hint.parameters.get("properties")
        if hint.tool_id == proof.tool_id and proof.schema == ("parameters",) and is_object(properties):
            renamed = {proof.new if key == proof.old else key: value for key, value in properties.items()}
            new_hints[name] = msgspec.structs.replace(hint, parameters={**hint.parameters, "properties": renamed})
    return new_hints


# Manifests and profiles


def _of_json(snapshot: Snapshot, path: str, before: str, after: str, proof: Proof, names: Names) -> str:
    old, new = parse_json(before), parse_json(after)
    if len(old.diagnostics) != len(new.diagnostics):
        return "the file would no longer be read as before"
    if old.root is None or new.root is None:
        return ""
    if _shape(old.root) != _shape(new.root):
        return "the file would be read otherwise"
    if proof.what == "tool":
        return _names(snapshot, path, before, after, names)
    return _errors(snapshot, before, after)


def _names(snapshot: Snapshot, path: str, before: str, after: str, names: Names) -> str:
    read = snapshot.index.facts_if if snapshot.index is not None else facts_of
    old, new = read(path, before).uses, read(path, after).uses
    expected = [_renamed_name(use.name, names, use.span[0]) for use in old]
    return "" if [use.name for use in new] == expected else "its names would be read otherwise"


def _errors(snapshot: Snapshot, before: str, after: str) -> str:
    """A renamed parameter must not make an example or a reference wrong."""
    from tamis.protocols.catalogue import severity
    from tamis.protocols.manifest.reading import read_manifest

    counts: list[int] = []
    for text in (before, after):
        reading = read_manifest(text, runtimes=snapshot.settings.runtimes, handlers=snapshot.settings.handlers)
        counts.append(sum(1 for diag in reading.diagnostics if severity(diag) in ("error", "warning")))
    return "" if counts[1] <= counts[0] else "the manifest would have a new fault"


def _shape(node: JsonNode) -> list[int | str]:
    """The tree without its names and values: kinds and numbers of parts, in order."""
    shape: list[int | str] = []
    stack = [node]
    while stack:
        here = stack.pop()
        shape += [here.kind, len(here.members), len(here.items)]
        stack += [member.value for member in here.members if member.value is not None]
        stack += here.items
    return shape
