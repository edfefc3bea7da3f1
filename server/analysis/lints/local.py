"""Findings of one JSON container, kept relative to it so that they hold while other parts of the document change.

Must not know what is found.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import compress, count
from operator import is_not
from typing import Any, TypeVar, cast

import msgspec

from tamis.protocols.jsontext.green import Branch
from tamis.protocols.jsontext.tokens import quoted
from tamis.protocols.jsontext.tree import JsonNode, Member, memo_of
from tamis.protocols.model import Applicability, Diag, Edit, Fix, Severity
from tamis.protocols.positions import Span

Locals = tuple[Diag, ...]
"""Findings whose places count from a container's start."""


class Collector:
    """Takes findings at absolute places and keeps them relative to ``base``."""

    __slots__ = ("_found", "base")

    def __init__(self, base: int = 0) -> None:
        self.base = base
        self._found: list[Diag] = []

    def add(
        self,
        code: str,
        span: Span,
        args: Mapping[str, str | int] | None = None,
        *,
        severity: Severity | None = None,
        fix: Fix | None = None,
    ) -> None:
        """One finding at an absolute place."""
        self._found.append(Diag(code, span, dict(args or {}), severity=severity, fix=fix))

    @property
    def found(self) -> Locals:
        """What was added, relative to the base."""
        return tuple([moved(diag, -self.base) for diag in self._found]) if self._found else ()


def moved(diag: Diag, by: int) -> Diag:
    """A finding, with its fix, at a place ``by`` characters further on."""
    if not by:
        return diag
    fix = diag.fix
    if fix is not None:
        edits = tuple(Edit(edit.start + by, edit.end + by, edit.new_text) for edit in fix.edits)
        fix = msgspec.structs.replace(fix, edits=edits)
    return msgspec.structs.replace(diag, span=(diag.span[0] + by, diag.span[1] + by), fix=fix)


def text_of(node: JsonNode | None) -> str | None:
    """A node's text, or None where it is no text."""
    return node.value if node is not None and node.kind == "string" and isinstance(node.value, str) else None


def texts_of(node: JsonNode | None) -> list[tuple[str, JsonNode]]:
    """The texts of a list with their nodes; anything else in it is left out."""
    items = node.items if node is not None and node.kind == "array" else []
    return [(item.value, item) for item in items if item.kind == "string" and isinstance(item.value, str)]


def object_at(node: JsonNode | None, name: str) -> JsonNode | None:
    """The object under a name, or None."""
    member = node.get(name) if node is not None and node.kind == "object" else None
    return member if member is not None and member.kind == "object" else None


def renaming(member: Member, name: str, sure: Applicability = "safe") -> Fix:
    """The fix that gives a member another name."""
    return Fix(f"Rename to '{name}'", (Edit(member.key_start, member.key_end, quoted(name)),), sure)


def without_member(node: JsonNode, member: Member, title: str, sure: Applicability = "unsafe") -> Fix | None:
    """The fix that takes a member out, with the comma that belongs to it; None for the half-typed."""
    at = bisect_left(node.members, member.key_start, key=_start)
    if at == len(node.members) or node.members[at] is not member or member.value is None:
        return None
    return Fix(title, (_cut(node.members, at),), sure)


def _start(member: Member) -> int:
    return member.key_start


def without_item(node: JsonNode, index: int, title: str, sure: Applicability = "unsafe") -> Fix:
    """The fix that takes an item out of a list, with its comma."""
    return Fix(title, (_cut(node.items, index),), sure)


def _cut(entries: Sequence[Member] | Sequence[JsonNode], at: int) -> Edit:
    start, end = entries[at].span
    if at + 1 < len(entries):
        return Edit(start, entries[at + 1].span[0], "")
    return Edit(entries[at - 1].span[1] if at > 0 else start, end, "")


# Findings that are kept with the container that they are about. Built on what the tree says of unchanged parts (``protocols/jsontext/tree.py``).


T = TypeVar("T")


def kept(node: JsonNode, key: Hashable, look: Callable[[], T]) -> T:
    """What ``look`` finds in a container, found once as long as the container's text stays as it is."""
    memo = memo_of(node)
    cached = memo.get(key)
    if cached is None:
        cached = memo[key] = look()
    return cast("T", cached)


# Looks at all children of a wide container, of which an edit touches one: the others are not looked at again. ``memo.kept`` keeps a look at one
# container as long as its text stays. ``speaking`` does so for the children of a container that is edited all the time, without a step for each: it
# is given the ``Scans`` of the document (``snapshot.manifest.memory.scans``). What ``look`` finds must depend on nothing but the child, its key, and
# how far its value stands from its key, and count places from the start of the value.


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


def speaking(branch: Branch, key: Hashable, look: Callable[[int], T], scans: Scans | None) -> list[tuple[int, T]]:
    """The children for which ``look(index)`` gives anything, with what it gave, in order."""
    before = scans.get(key) if scans is not None else None
    if isinstance(before, _Scan):
        loud = _taken_over(before, branch, look)
    else:
        loud = {i: findings for i in range(len(branch.values)) if (findings := look(i))}
    if scans is not None:
        scans[key] = _Scan(branch, loud)
    return sorted(loud.items(), key=_index) if loud else []


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
        loud = {i: findings for i, findings in before.loud.items() if i < head}
        loud.update({i - old + size: findings for i, findings in before.loud.items() if i >= old - tail})
        changed = range(head, size - tail)
    for i in changed:
        findings = look(i)
        if findings:
            loud[i] = findings
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
