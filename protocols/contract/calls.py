"""The calls of a text: as they are read, while they arrive, repaired, explained and in another form. Must not know what running
one gives.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from tamis.protocols.contract.base import Range, TextEdit, Wire
from tamis.protocols.contract.findings import Diagnostic, Loss, Repair


class WireBlock(Wire, kw_only=True):
    """One block found in a text."""

    protocol: str
    range: Range
    complete: bool


class WireCall(Wire, kw_only=True):
    """One call as it was read; ``args`` are uncoerced."""

    call_id: str
    index: int
    protocol: str
    tool_id: str
    args: dict[str, Any]
    step: int | UnsetType = UNSET
    on_error: Literal["stop", "continue"] | UnsetType = UNSET
    retry: int | UnsetType = UNSET
    request_id: str | UnsetType = UNSET
    uris: dict[str, str] | UnsetType = UNSET
    type_hints: dict[str, str] | UnsetType = UNSET
    meta: dict[str, str] | UnsetType = UNSET
    complete: bool = True
    executable: bool = True
    repairs: list[Repair] = []
    range: Range
    tool_id_range: Range
    arg_ranges: dict[str, Range] = {}


class WireComment(Wire, kw_only=True):
    """A comment inside a block."""

    range: Range
    text: str


class ParseResult(Wire, kw_only=True):
    """What was found in a text."""

    response_text: str
    trailing_text: str
    blocks: list[WireBlock]
    calls: list[WireCall]
    diagnostics: list[Diagnostic]
    comments: list[WireComment]
    reasoning: list[Range] = []
    """Where the text is reasoning, in order."""


class NewText(Wire, kw_only=True):
    """New characters of an argument's value, which has ``length`` characters with them."""

    argument: str
    text: str
    length: int


class PartialCall(Wire, kw_only=True):
    """What can be seen of a call that is being written; for display only."""

    protocol: str
    tool_id: str | UnsetType = UNSET
    done: list[str]
    argument: str | UnsetType = UNSET
    new: list[NewText]


class OpenedStream(Wire, kw_only=True):
    """Result of ``parse/open``."""

    stream_id: str


class FedText(Wire, kw_only=True):
    """Result of ``parse/feed``: what has become certain with this piece of the text."""

    text: str
    calls: list[WireCall]
    retracted: list[str] = []
    """``callId`` of calls that earlier pieces gave: a closer of reasoning shows that they were not meant."""
    partial: PartialCall | UnsetType = UNSET


class RepairResult(Wire, kw_only=True):
    """Result of ``tool/repair``: ``edits`` turn the text that was given into ``text``; ``calls`` have their ranges in ``text``."""

    edits: list[TextEdit]
    text: str
    calls: list[WireCall]


class Assumption(Wire, kw_only=True):
    """Something of warning level that the reader assumed; ``fix`` would have made it unnecessary."""

    code: str
    slug: str
    range: Range
    message: str
    calls: list[int]
    fix: list[TextEdit] | UnsetType = UNSET
    applicability: Literal["safe", "unsafe"] | UnsetType = UNSET


class AlternativeCall(Wire, kw_only=True):
    """A call as another reading would have it."""

    protocol: str
    tool_id: str
    args: dict[str, Any]
    step: int | UnsetType = UNSET


class Alternative(Wire, kw_only=True):
    """A reading that was not taken: the calls that it would run, and how to get it, by ``edits`` or by ``options``."""

    title: str
    code: str
    slug: str
    range: Range
    calls: list[AlternativeCall]
    edits: list[TextEdit] | UnsetType = UNSET
    options: dict[str, Any] | UnsetType = UNSET


class ExplainResult(Wire, kw_only=True):
    """Result of ``tool/explain``."""

    assumptions: list[Assumption]
    alternatives: list[Alternative]


class ConvertResult(Wire, kw_only=True):
    """Result of ``tool/convert``: the calls in their other form, and what it could not carry over."""

    text: str
    losses: list[Loss]
