"""The wire contract: the msgspec Structs of every request and result.

The single typed source of the public interface; every face (command line, JSON-RPC, LSP) encodes these and nothing else.
Field names are camelCase on the wire. A field that may be missing is ``UNSET`` and left out; a field that may be null is
``None`` and written as ``null``. Ranges are LSP ranges in the negotiated encoding; without negotiation they count code
points and carry ``offset``. Must not know how any of it is computed.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from tamis.protocols.model import Severity

RPC_VERSION = 1

Status = Literal[
    "success",
    "error",
    "timeout",
    "cancelled",
    "denied",
    "approvalTimeout",
    "approvalUnavailable",
    "blocked",
    "accepted",
    "inputRequired",
]
ErrorType = Literal[
    "UnknownTool",
    "ParameterValidationError",
    "SecurityError",
    "DependencyError",
    "ScriptError",
    "OutputFormatError",
    "OutputValidationError",
    "ResourceError",
    "TimeoutError",
    "RateLimited",
    "SandboxUnavailable",
    "WorkflowError",
    "ServiceError",
]


class Wire(msgspec.Struct, rename="camel"):
    """Base of everything on the wire: camelCase names. Keyword construction is set by each class: it is not inherited."""


class Position(Wire, kw_only=True):
    """Zero-based line and character, in the negotiated encoding."""

    line: int
    character: int


class Range(Wire, kw_only=True):
    """An LSP range; ``offset`` (code points, half open) is there when no encoding was negotiated."""

    start: Position
    end: Position
    offset: tuple[int, int] | UnsetType = UNSET


class TextEdit(Wire, kw_only=True):
    """An LSP text edit."""

    range: Range
    new_text: str


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


class WireBlock(Wire, kw_only=True):
    """One block found in a text."""

    protocol: str
    range: Range
    complete: bool


class WireCall(Wire, kw_only=True):
    """One call as it was read (``Call`` of the interface); ``args`` are uncoerced."""

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
    partial: PartialCall | UnsetType = UNSET


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


class ValidateResult(Wire, kw_only=True):
    """Result of ``tool/validate``; ``coerced`` is there exactly when ``valid``."""

    valid: bool
    errors: list[Problem]
    warnings: list[Problem]
    coerced: Any = UNSET


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


class Loss(Wire, kw_only=True):
    """Something that an export could not carry over."""

    code: str
    path: str
    message: str


class Description(Wire, kw_only=True):
    """Result of ``tool/describe``."""

    definition: dict[str, Any]
    losses: list[Loss]
    tokens: int


class ErrorDetails(Wire, kw_only=True):
    """Details of a failed run; observations print ``text``."""

    text: str | UnsetType = UNSET
    limit: Literal["wall", "cpu", "memory", "processes", "files", "stdout", "stderr", "stdin"] | UnsetType = UNSET
    exit_code: int | UnsetType = UNSET
    signal: str | UnsetType = UNSET
    errors: list[Problem] | UnsetType = UNSET
    denied_hosts: list[str] | UnsetType = UNSET
    code: str | UnsetType = UNSET


class ExecutionError(Wire, kw_only=True):
    """Why a call did not succeed."""

    type: ErrorType
    message: str
    details: ErrorDetails | UnsetType = UNSET


class Usage(Wire, kw_only=True):
    """What a run used."""

    cpu_ms: float
    max_rss_bytes: int


class SandboxInfo(Wire, kw_only=True):
    """The sandbox a run had."""

    backend: str
    version: str
    layers: list[str]
    warm: bool


class Granted(Wire, kw_only=True):
    """What a run was allowed."""

    read: list[str] = []
    write: list[str] = []
    hosts: list[str] = []
    capabilities: list[str] = []


class Denied(Wire, kw_only=True):
    """One request of a manifest that the policy refused."""

    kind: str
    value: str
    reason: str


class Permissions(Wire, kw_only=True):
    """What a tool asked for, what it got and what was refused."""

    requested: dict[str, Any]
    granted: Granted
    denied: list[Denied]


class ExecutionResult(Wire, kw_only=True):
    """The outcome of one call; every field of the interface is always there."""

    call_id: str
    tool_id: str
    tool_call_id: str | UnsetType = UNSET
    """The id that the call has in its own text, in protocols that give one (call JSON, Hermes)."""
    version: str
    status: Status
    output: Any = UNSET
    error: ExecutionError | UnsetType = UNSET
    logs: list[str] = []
    logs_truncated: bool = False
    duration_ms: float = 0.0
    usage: Usage
    sandbox: SandboxInfo | None = None
    permissions: Permissions
    attempts: int = 0
    replayed: bool = False
    task_id: str | UnsetType = UNSET
    approval: dict[str, Any] | UnsetType = UNSET
    observation: str = ""


class ExecuteTextResult(Wire, kw_only=True):
    """Result of ``tool/executeText``."""

    parse: ParseResult
    results: list[ExecutionResult]
    observation: str
    stopped_at: int | UnsetType = UNSET


class PromptMacro(Wire, kw_only=True):
    """What a macro engine is told of ``{{tools}}`` (seed 001 §6.1)."""

    name: str
    type: str
    phase: str
    description: str
    example: str
    accepts_args: bool
    priority: int
    supported: bool
    context_free: bool


class PromptTokens(Wire, kw_only=True):
    """How many tokens a prompt has; ``per_tool`` is by tool id, without headings and examples."""

    total: int
    exact: bool
    per_tool: dict[str, int]


class PromptResult(Wire, kw_only=True):
    """Result of ``prompt/generate``. ``few_shot`` counts the worked calls shown; ``notes`` say what was left out and why."""

    text: str
    etag: str
    protocol: str
    style: str
    few_shot: int
    tokens: PromptTokens
    macro: PromptMacro
    notes: list[str]


class ObservationText(Wire, kw_only=True):
    """Result of ``observation/format``."""

    text: str


class GrammarText(Wire, kw_only=True):
    """Result of ``prompt/grammar``: a grammar, or a JSON Schema as text."""

    text: str


class FileDiagnostics(Wire, kw_only=True):
    """Findings of one file."""

    path: str
    diagnostics: list[Diagnostic]


class CheckResult(Wire, kw_only=True):
    """Result of ``tamis check --format json``."""

    files: list[FileDiagnostics]
    errors: int
    warnings: int


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
