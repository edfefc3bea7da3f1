"""Rounds of an agent and what is kept of its session, with the records' names and shapes of seed 001. Must not know a model."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from tamis.protocols.contract.base import Wire
from tamis.protocols.contract.results import ExecutionResult

NarrowStatus = Literal["success", "error", "denied"]
"""A status as the seeds' records have it: everything but the first and the last is an error."""


class ParsedToolRequest(Wire, kw_only=True):
    """One call that an answer asks for (seed 001 §3.3); ``request_id`` is the ``call_id`` of its result."""

    request_id: str
    tool_name: str
    raw_block: str
    """The exact piece of the text: the block, or the call's part of a block with several calls."""
    args: dict[str, str]
    """Texts as they are, other values as JSON; ``uri_x`` holds the URI that the parameter ``x`` was given by."""


class ToolExecutionResult(Wire, kw_only=True):
    """A result as a record (seed 001 §3.3); ``result`` is the output or the error as text, with secrets masked."""

    request_id: str
    tool_name: str
    status: NarrowStatus
    result: str
    duration_ms: float


StepStop = Literal["noTools", "maxIterations", "loopDetected", "denied", "cancelled"]


class StepResult(Wire, kw_only=True):
    """Result of ``agent/step``. ``parsed_requests`` and ``execution_results`` are the same as records, in the shapes that hosts keep (seed 001 §3.3, V22)."""

    response_text: str
    publishable: bool
    """Whether ``response_text`` may be shown to a person: false when a call of the answer was wrong and the model will try again."""
    trailing_text: str
    has_tool_requests: bool
    requests: list[ParsedToolRequest]
    results: list[ExecutionResult]
    observation: str
    """What the model reads next; empty when there is nothing to tell it."""
    iteration: int
    """The rounds of this session in which at least one call ran."""
    stop: StepStop | UnsetType = UNSET
    """Why the loop ends here; missing: give the model the observation and go on."""
    explanation: str | UnsetType = UNSET
    """``stop`` in words, with the remedy; with ``noTools`` only where calls were seen and not run."""
    parsed_requests: list[ParsedToolRequest]
    execution_results: list[ToolExecutionResult]


class ToolCallRecord(Wire, kw_only=True):
    """``metadata.toolCall`` of a message with role ``tool`` (seed 001 §10.2)."""

    request_id: str
    tool_name: str
    status: NarrowStatus
    duration_ms: float
    raw_args: dict[str, str] | UnsetType = UNSET
    requested_in: int | UnsetType = UNSET
    """The index of the ``assistant`` message that asked for it."""


class RequestedToolCall(Wire, kw_only=True):
    """One of ``metadata.toolCallsRequested`` of a message with role ``assistant`` (seed 001 §10.2)."""

    request_id: str
    tool_name: str
    args: dict[str, str]
    status: Literal["pending", "awaiting_approval", "executing", "completed", "denied"]
    error: str | UnsetType = UNSET
    result_in: int | UnsetType = UNSET
    """The index of the ``tool`` message with what came of it, the last one; absent as long as there is none."""


class MessageMetadata(Wire, kw_only=True):
    """What a message of a session is about; ``stop`` only in the one that explains it."""

    tool_call: ToolCallRecord | UnsetType = UNSET
    tool_calls_requested: list[RequestedToolCall] | UnsetType = UNSET
    more_requested: int | UnsetType = UNSET
    """How many further calls the answer asked for than are listed."""
    stop: StepStop | UnsetType = UNSET


class SessionMessage(Wire, kw_only=True):
    """One message of a session; ``index`` counts from its beginning. Secrets are masked, long contents are cut in their middle."""

    index: int
    role: Literal["user", "assistant", "system", "tool"]
    content: str
    metadata: MessageMetadata


class SessionView(Wire, kw_only=True):
    """Result of ``agent/session``; a session that is not known is ``none`` and empty."""

    session_id: str
    state: Literal["none", "idle", "running"]
    iteration: int
    turn_iteration: int
    """The rounds that count for ``maxIterations``: those since the model last answered without a call."""
    messages: list[SessionMessage]
    dropped: int
    """How many of the oldest messages are no longer kept."""
    next_cursor: str | UnsetType = UNSET


class EndedSession(Wire, kw_only=True):
    """Result of ``agent/end``; ``cancelled`` are the ids of the calls that still ran."""

    ended: bool
    cancelled: list[str]
