"""What analyses answer: plain data in editor terms, with code-point offsets. Must not know LSP's spelling of it."""

from __future__ import annotations

from typing import Literal

import msgspec

from tamis.protocols.model import Fix, Severity
from tamis.protocols.positions import Span

Tag = Literal["unnecessary", "deprecated"]
ItemKind = Literal["block", "tool", "parameter", "value", "property", "file", "folder", "namespace", "keyword"]


class Related(msgspec.Struct, frozen=True):
    """Another place that belongs to a finding; ``path`` empty means the same document."""

    message: str
    span: Span = (0, 0)
    path: str = ""
    line: int | None = None
    """Zero-based line, for another file whose text is not at hand; then ``span`` does not count."""


class Finding(msgspec.Struct, frozen=True):
    """One diagnostic of a document."""

    span: Span
    code: str
    slug: str
    severity: Severity
    message: str
    tags: tuple[Tag, ...] = ()
    related: tuple[Related, ...] = ()
    fix: Fix | None = None
    href: str = ""


class Proposal(msgspec.Struct, frozen=True):
    """One completion. ``text`` replaces ``span``; ``snippet`` is the same with tab stops, for editors that know them."""

    label: str
    kind: ItemKind
    span: Span
    text: str
    snippet: str = ""
    detail: str = ""
    documentation: str = ""
    filter: str = ""
    sort: str = ""
    deprecated: bool = False
    extra: tuple[tuple[int, int, str], ...] = ()
    """More edits away from ``span``: (start, end, new text)."""
    subject: object = None
    """The tool or schema that is described where ``documentation`` is empty; worded only when somebody asks."""
    preselect: bool = False
    aside: str = ""
    """A few words beside the label: the tool's namespace, the type of a parameter."""


class Proposals(msgspec.Struct, frozen=True):
    """Completions; ``cut`` says that there were more."""

    items: tuple[Proposal, ...] = ()
    cut: bool = False


class HoverText(msgspec.Struct, frozen=True):
    """What is said about a place, as Markdown."""

    span: Span
    markdown: str


class Action(msgspec.Struct, frozen=True):
    """A quick fix for a finding."""

    finding: Finding
    fix: Fix
