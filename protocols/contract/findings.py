"""What is wrong with a text, with arguments, a definition or a conversion. Must not know who found it, or word a finding."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from tamis.protocols.contract.base import Range, TextEdit, Wire
from tamis.protocols.model import Severity


class Diagnostic(Wire, kw_only=True):
    """A finding in a text, with its catalogue code and slug."""

    code: str
    slug: str
    severity: Severity
    range: Range
    message: str
    fix: list[TextEdit] | UnsetType = UNSET
    data: dict[str, Any] | UnsetType = UNSET


class Repair(Wire, kw_only=True):
    """Something the reader assumed; ``message`` is a sentence that a model can act on."""

    code: str
    slug: str
    range: Range
    message: str


class Problem(Wire, kw_only=True):
    """A finding in arguments, a call or a manifest; ``path`` is a JSON Pointer."""

    code: str
    slug: str
    path: str
    message: str
    expected: str | UnsetType = UNSET
    received: str | UnsetType = UNSET
    suggestion: str | UnsetType = UNSET
    range: Range | UnsetType = UNSET


class Loss(Wire, kw_only=True):
    """Something that an export could not carry over."""

    code: str
    path: str
    message: str


class ManifestFault(Wire, kw_only=True):
    """Why a definition gave no tool, or one that cannot be called."""

    path: str
    message: str
    line: int
    """From one; 0 where there is no text to point at."""
    column: int
    tool_id: str
    """The id that the manifest declares, as far as it can be read."""


class FileDiagnostics(Wire, kw_only=True):
    """Findings of one file."""

    path: str
    diagnostics: list[Diagnostic]


class CheckResult(Wire, kw_only=True):
    """Result of ``tamis check --format json``."""

    files: list[FileDiagnostics]
    errors: int
    warnings: int
