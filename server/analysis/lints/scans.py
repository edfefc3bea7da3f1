"""Looks at all children of a wide container, of which an edit touches one: the others are not looked at again.

``memo.kept`` keeps a look at one container as long as its text stays. ``speaking`` does so for the children of a container that is
edited all the time, without a step for each: it is given the ``Scans`` of the document (``snapshot.manifest.memory.scans``). What
``look`` finds must depend on nothing but the child, its key, and how far its value stands from its key, and count places from
the start of the value. Must not know what is found.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import compress, count
from operator import is_not
from typing import Any, TypeVar

from tamis.protocols.jsontext.green import Branch
from tamis.protocols.jsontext.tree import JsonNode

T = TypeVar("T")
Scans = dict[Hashable, Any]
"""What the last look at each wide container gave; any version of the document may be the one that left it."""


class _Scan:
    """One look at all children; ``loud`` holds what was found, by index."""

    __slots__ = ("keys", "loud", "shapes", "values")

    def __init__(self, branch: Branch, loud: dict[int, Any]) -> None:
        self.keys = branch.keys
        self.shapes = branch.shapes
        self.values = branch.values
        self.loud = loud


def speaking(node: JsonNode, key: Hashable, look: Callable[[int], T], scans: Scans | None) -> list[tuple[int, T]]:
    """The children for which ``look(index)`` gives anything, with what it gave, in order."""
    branch = node.green
    if not isinstance(branch, Branch):
        return []
    before = scans.get(key) if scans is not None else None
    if isinstance(before, _Scan):
        loud = _taken_over(before, branch, look)
    else:
        loud = {i: found for i in range(len(branch.values)) if (found := look(i))}
    if scans is not None:
        scans[key] = _Scan(branch, loud)
    return sorted(loud.items(), key=_index)


def _index(item: tuple[int, object]) -> int:
    return item[0]


def _taken_over(before: _Scan, branch: Branch, look: Callable[[int], Any]) -> dict[int, Any]:
    size, old = len(branch.values), len(before.values)
    changed: Sequence[int]
    if branch.values is before.values and branch.keys is before.keys and branch.shapes is before.shapes:
        return before.loud
    was = branch.was
    if size == old and was is not None and was.values is before.values and was.keys is before.keys:
        # It is known where the edit was.
        loud = dict(before.loud)
        changed = range(was.low, was.top)
    elif size == old:
        differing = {*compress(range(size), map(is_not, before.values, branch.values))}
        if before.keys is not branch.keys and before.keys != branch.keys:
            differing.update(compress(range(size), map(is_not, before.keys, branch.keys)))
        if before.shapes is not branch.shapes and before.shapes != branch.shapes:
            differing.update(i for i in range(size) if before.shapes[i] != branch.shapes[i])
        loud = dict(before.loud) if differing else before.loud
        changed = sorted(differing)
    else:
        head, tail = _equal(before, branch)
        loud = {i: found for i, found in before.loud.items() if i < head}
        loud.update({i - old + size: found for i, found in before.loud.items() if i >= old - tail})
        changed = range(head, size - tail)
    for i in changed:
        found = look(i)
        if found:
            loud[i] = found
        else:
            loud.pop(i, None)
    return loud


def _equal(before: _Scan, branch: Branch) -> tuple[int, int]:
    """How many children are the same at the start and at the end."""
    least = min(len(before.values), len(branch.values))
    head = tail = least
    for old, new in ((before.values, branch.values), (before.keys, branch.keys)):
        if old and new:
            head = min(head, next(compress(count(), map(is_not, old, new)), least))
            tail = min(tail, next(compress(count(), map(is_not, reversed(old), reversed(new))), least))
    while head and branch.shapes and before.shapes[:head] != branch.shapes[:head]:
        head //= 2
    while tail and branch.shapes and before.shapes[-tail:] != branch.shapes[-tail:]:
        tail //= 2
    return head, min(tail, least - head)
