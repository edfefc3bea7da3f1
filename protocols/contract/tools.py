"""Which tools there are: listed, described, their arguments checked, and what is new of them. Must not know how one runs."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from tamis.protocols.contract.base import Wire
from tamis.protocols.contract.findings import Loss, ManifestFault, Problem


class ToolSummary(Wire, kw_only=True):
    """One line of ``tool/list``."""

    tool_id: str
    version: str
    display_name: str
    description: str
    kind: Literal["tool", "workflow", "service"]
    namespace: str
    tags: list[str]
    callable: bool
    available: bool
    reason: str | UnsetType = UNSET
    source: str
    definition: dict[str, Any] | UnsetType = UNSET


class ToolList(Wire, kw_only=True):
    """Result of ``tool/list``, in a stable order."""

    tools: list[ToolSummary]
    next_cursor: str | UnsetType = UNSET
    etag: str


class Description(Wire, kw_only=True):
    """Result of ``tool/describe``; ``definition`` is an object, in the form ``vcp`` the text of a definition block."""

    definition: dict[str, Any] | str
    losses: list[Loss]
    tokens: int


class ValidateResult(Wire, kw_only=True):
    """Result of ``tool/validate``; ``coerced`` is there exactly when ``valid``."""

    valid: bool
    errors: list[Problem]
    warnings: list[Problem]
    coerced: Any = UNSET


class ToolConflict(Wire, kw_only=True):
    """Two manifests that claim the same id and version, or the same name."""

    tool_id: str
    version: str
    kept: str
    """The file that is used; empty when neither is."""
    dropped: str
    message: str


class RegistryChanges(Wire, kw_only=True):
    """What is new, gone and other than before, each as ``id@version``, and what is wrong with definitions now."""

    added: list[str]
    removed: list[str]
    updated: list[str]
    errors: list[ManifestFault]
    conflicts: list[ToolConflict]
    etag: str
    """Another one means other tools."""
