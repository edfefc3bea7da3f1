"""Findings of one JSON container, kept relative to it so that they hold while other parts of the document change.

Must not know what is found.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tamis.protocols.jsontext.quote import quoted
from tamis.protocols.jsontext.tree import JsonNode, Member
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
        return tuple(moved(diag, -self.base) for diag in self._found)


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
    found = node.get(name) if node is not None and node.kind == "object" else None
    return found if found is not None and found.kind == "object" else None


def renaming(member: Member, name: str, sure: Applicability = "safe") -> Fix:
    """The fix that gives a member another name."""
    return Fix(f"Rename to '{name}'", (Edit(member.key_start, member.key_end, quoted(name)),), sure)


def without_member(node: JsonNode, member: Member, title: str, sure: Applicability = "unsafe") -> Fix | None:
    """The fix that takes a member out, with the comma that belongs to it; None for the half-typed."""
    at = next((i for i, one in enumerate(node.members) if one is member), -1)
    if at < 0 or member.value is None:
        return None
    spans = [one.span for one in node.members]
    return Fix(title, (_cut(spans, at),), sure)


def without_item(node: JsonNode, index: int, title: str, sure: Applicability = "unsafe") -> Fix:
    """The fix that takes an item out of a list, with its comma."""
    return Fix(title, (_cut([item.span for item in node.items], index),), sure)


def _cut(spans: list[Span], at: int) -> Edit:
    if at + 1 < len(spans):
        return Edit(spans[at][0], spans[at + 1][0], "")
    if at > 0:
        return Edit(spans[at - 1][1], spans[at][1], "")
    return Edit(*spans[at], "")
