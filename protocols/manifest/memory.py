"""What is known of a manifest from its versions before, so that a keystroke costs what it changed.

Nothing here can be wrong of a value that is still there: everything is known of a value, none of a place. Must not know what a
manifest's fields mean.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

from tamis.protocols.jsontext.green import Green
from tamis.protocols.jsontext.tree import JsonNode
from tamis.protocols.manifest.embedded import FieldMemory
from tamis.protocols.manifest.fields import Findings
from tamis.protocols.manifest.worked import ExamplesMemory
from tamis.protocols.schema.facts import Facts

T = TypeVar("T")


class Memory:
    """What readings of one document leave for the next one; ``before`` is what the last one left."""

    __slots__ = ("examples", "fields", "leaves", "outer", "output", "parameters", "scans")

    def __init__(self, before: Memory | None = None) -> None:
        self.parameters = FieldMemory() if before is None else before.parameters
        self.output = FieldMemory() if before is None else before.output
        self.examples = ExamplesMemory() if before is None else before.examples
        self.leaves: dict[object, Facts] = {} if before is None else before.leaves
        self.outer: tuple[object, object] | None = None if before is None else before.outer
        """All other fields as they stood when no fault was found in them, and what they were read as."""
        self.fields: dict[str, tuple[Green, object]] = {} if before is None else before.fields
        """By field the last value in which no fault was found, and what it was read as."""
        self.scans: dict[Hashable, Any] = {} if before is None else before.scans
        """Room for who looks at wide containers of the document (``server/analysis/lints/scans.py``)."""


def read_once(
    name: str, root: JsonNode, found: Findings, memory: Memory, read: Callable[[JsonNode | None, Findings], T]
) -> T:
    """One field of the outermost object as ``read`` reads it; a value without faults is read once."""
    member = root.member(name)
    node = member.value if member is not None else None
    if node is None or node.kind == "error":
        return read(None, found)
    known = memory.fields.get(name)
    if known is not None and known[0] is node.green:
        return cast("T", known[1])
    before = len(found.diags)
    made = read(node, found)
    if len(found.diags) == before and not found.full:
        memory.fields[name] = (node.green, made)
    return made
