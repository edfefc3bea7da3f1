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
    secret: str | UnsetType = UNSET
    """The name of the secret that is missing."""
    setting: str | UnsetType = UNSET
    """The setting of the operator's that is to be written or mended."""
    remedy: str | UnsetType = UNSET
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
    secrets: list[str] | UnsetType = UNSET
    """Names of secrets, never values; only of a tool that has any."""


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
    called_as: str | UnsetType = UNSET
    """The name that the text calls the tool by, where it is not its id: an alias that a prompt showed. Observations use it."""
    version: str
    status: Status
    output: Any = UNSET
    parts: list[dict[str, Any]] | UnsetType = UNSET
    """Images, sounds and resources of the result as the tool gave them (MCP's content parts), for the host to show; observations name them only."""
    error: ExecutionError | UnsetType = UNSET
    logs: list[str] = []
    logs_truncated: bool = False
    duration_ms: float = 0.0
    usage: Usage
    sandbox: SandboxInfo | None = None
    permissions: Permissions
    attempts: int = 0
    replayed: bool = False
    protected: bool | UnsetType = UNSET
    """Of a call with a key: whether every daemon of the store sees the key, also after a restart. ``false``: the store could not be had, so
    another process, or a later one, might run the call once more."""
    task_id: str | UnsetType = UNSET
    approval: dict[str, Any] | UnsetType = UNSET
    warnings: list[Problem] | UnsetType = UNSET
    """What is odd in the arguments of a call that ran all the same: texts that have not the ``format`` of their schema."""
    observation: str = ""


class ExecuteTextResult(Wire, kw_only=True):
    """Result of ``tool/executeText``."""

    parse: ParseResult
    results: list[ExecutionResult]
    observation: str
    """What the model reads next; empty when there is nothing to tell it."""
    explanation: str | UnsetType = UNSET
    """Why nothing was run, for a person, where every call of the text was set aside."""
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
