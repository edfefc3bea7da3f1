"""What became of a call: its status, output or error, what it used and was allowed. Must not know how the call was made to run."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from tamis.protocols.contract.base import Wire
from tamis.protocols.contract.calls import ParseResult
from tamis.protocols.contract.findings import Problem

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


class FailedNode(Wire, kw_only=True):
    """The node that a workflow failed at (seed 004 §4, W21); ``item`` counts from zero in the list of a ``map``."""

    node_id: str
    type: str
    status: Status
    error: ExecutionError | UnsetType = UNSET
    item: int | UnsetType = UNSET


class ErrorDetails(Wire, kw_only=True):
    """Details of a failed run; observations print ``text``."""

    text: str | UnsetType = UNSET
    limit: Literal["wall", "cpu", "memory", "processes", "files", "stdout", "stderr", "stdin"] | UnsetType = UNSET
    exit_code: int | UnsetType = UNSET
    signal: str | UnsetType = UNSET
    errors: list[Problem] | UnsetType = UNSET
    denied_hosts: list[str] | UnsetType = UNSET
    code: str | UnsetType = UNSET
    node: FailedNode | UnsetType = UNSET
    """Of a workflow: where it failed."""


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
    """The outcome of one call, however it ended."""

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


class CancelResult(Wire, kw_only=True):
    """Result of ``tool/cancel``: ids of calls and tasks that are being cancelled (the session's own where it is between two calls),
    and those that were given but run nowhere."""

    cancelled: list[str]
    not_found: list[str]


CallState = Literal["pending", "awaitingApproval", "executing", "completed", "denied", "cancelled"]


class CallEvent(Wire, kw_only=True):
    """Params of ``tool/event``: the state that a call is in now."""

    call_id: str
    state: CallState


class ObservationText(Wire, kw_only=True):
    """Result of ``observation/format``."""

    text: str
