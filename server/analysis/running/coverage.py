"""What the examples of a manifest that were run have covered of it: which parameters had a value, which values of an ``enum`` came, which
permissions were granted.

Counts are values that came, of a permission the runs that had it. A parameter inside of others is covered by what reaches it: members of
objects, items of lists. Pure; must not run anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from tamis.protocols.positions import Span
from tamis.protocols.schema.words import is_list, is_object, json_equal

if TYPE_CHECKING:
    from tamis.protocols.jsontext.tree import JsonNode
    from tamis.server.analysis.snapshot import Snapshot

MAX_ITEMS = 2_000
"""Parts of one manifest that are told."""
MAX_DEPTH = 32
MAX_NAME_CHARS = 100
_PERMISSIONS = {
    "fileAccess/allowRead": "read",
    "fileAccess/allowWrite": "write",
    "networkAccess/allowHosts": "network",
    "requiredCapabilities": "capability",
    "secrets": "secret",
}
"""Where a manifest asks for rights, and what a refusal calls them (``Denied.kind``)."""


class Covered(msgspec.Struct, frozen=True):
    """A part of a manifest, where it stands, and how often it was used."""

    kind: Literal["parameter", "value", "permission"]
    name: str
    span: Span
    count: int


class Exercise(msgspec.Struct, frozen=True):
    """One run of an example: what it gave to the tool, and what the tool was refused, as kind and the manifest's value."""

    given: Any
    refused: frozenset[tuple[str, str]] = frozenset()


def covered(snapshot: Snapshot, exercises: Sequence[Exercise]) -> list[Covered]:
    """The parts of a manifest in the order of its parameters and permissions, at most ``MAX_ITEMS``."""
    found: list[Covered] = []
    for part in _parts(snapshot, exercises):
        if len(found) == MAX_ITEMS:
            break
        found.append(part)
    return found


def _parts(snapshot: Snapshot, exercises: Sequence[Exercise]) -> Iterator[Covered]:
    tree = snapshot.manifest.tree
    parameters = tree.node_at("/parameters")
    if parameters is not None:
        yield from _below(parameters, [exercise.given for exercise in exercises], 0)
    for place, kind in _PERMISSIONS.items():
        asked = tree.node_at(f"/securityContext/{place}")
        for item in asked.items if asked is not None else ():
            if isinstance(item.value, str):
                granted = sum((kind, item.value) not in exercise.refused for exercise in exercises)
                yield Covered("permission", _name(item.value), item.span, granted)


def _below(schema: JsonNode, values: list[Any], depth: int) -> Iterator[Covered]:
    """The parts of a schema that these values reached."""
    if depth > MAX_DEPTH:
        return
    for member in schema.members:
        node = member.value
        if node is None:
            continue
        if member.key == "properties":
            yield from _properties(node, values, depth)
        elif member.key == "items":
            yield from _below(node, [item for value in values if is_list(value) for item in value], depth + 1)
        elif member.key == "enum":
            for item in node.items:
                wanted = item.to_python()
                came = sum(json_equal(value, wanted) for value in values)
                yield Covered("value", _name(wanted), item.span, came)


def _properties(node: JsonNode, values: list[Any], depth: int) -> Iterator[Covered]:
    for member in node.members:
        given = [value[member.key] for value in values if is_object(value) and member.key in value]
        yield Covered("parameter", _name(member.key), (member.key_start, member.key_end), len(given))
        if member.value is not None:
            yield from _below(member.value, given, depth + 1)


def _name(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode("utf-8", "replace")
    return text[:MAX_NAME_CHARS]
