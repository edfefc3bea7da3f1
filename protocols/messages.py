"""What the daemon sends by itself: notifications, and requests that the host answers.

The other half of the wire contract beside ``contract/``; the descriptions that hosts read are generated from both. Must not
know when any of it is sent.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from tamis.protocols.contract import (
    ApprovalReply,
    ApprovalRequest,
    ApprovalResolved,
    CallEvent,
    RegistryChanges,
    StepChanged,
    Task,
    Wire,
)


class ToolOutput(Wire, kw_only=True):
    """A piece of what a running script writes; all of it comes before the call's response."""

    call_id: str
    seq: int
    """Counts the pieces of a call from 1."""
    stream: str
    """``stdout`` or ``stderr``."""
    text: str
    truncated: bool
    """Whether pieces before this one were dropped, because the host read too slowly, or the rest of the stream is over its limit."""


class ProgressValue(Wire, kw_only=True):
    """How far the work behind a ``workDoneToken`` is."""

    kind: Literal["begin", "report", "end"]
    call_id: str | UnsetType = UNSET
    message: str | UnsetType = UNSET
    percentage: float | UnsetType = UNSET


class Progress(Wire, kw_only=True):
    """Progress of a request that gave a ``workDoneToken``."""

    token: str | int
    value: ProgressValue


class RegistryChanged(RegistryChanges, kw_only=True):
    """The registered tools, or what an agent may call of them, are others than before; lists and prompts with another ``etag`` are out of date."""


class ServiceInvoke(Wire, kw_only=True):
    """Run a method of a service that the host registered; the result is the tool's output, an error reply its failure."""

    service_name: str
    method_name: str
    args: dict[str, Any]
    call_id: str
    """The call's; ``service/cancel`` names it."""
    traceparent: str | UnsetType = UNSET
    """W3C trace context: what the method does is a child of it."""
    tracestate: str | UnsetType = UNSET


class ServiceCancel(Wire, kw_only=True):
    """A method of the host's is no longer waited for; what it still answers is dropped."""

    call_id: str
    """The ``callId`` of its ``service/invoke``."""
    reason: Literal["cancelled", "timeout"]


class EventPublished(Wire, kw_only=True):
    """A model published an event (``PublishEventTool``, seed 000 §4.2)."""

    event_id: str
    event_type: str
    payload: dict[str, Any]
    """The event's data; empty where the model gave none."""
    call_id: str
    session_id: str
    """Of the call's ``context``; empty without one."""
    agent_id: str
    """Of the call's ``context``; empty without one."""
    time: str
    """When it was published (ISO 8601, UTC)."""


class AbuseSuspected(Wire, kw_only=True):
    """A tool was refused for reasons of security so often within a minute that somebody should look at it; for hosts with the capability ``events``."""

    tool_id: str
    call_id: str
    """The call that was one refusal too many."""
    session_id: str
    """Of the call's ``context``; empty without one."""
    agent_id: str
    """Of the call's ``context``; empty without one."""
    message: str


class StateChanged(Wire, kw_only=True):
    """A tool changed an agent's private state (``UpdatePrivateStateTool``)."""

    scope: Literal["world", "private"]
    agent_id: str
    """Whose state it is; empty for calls without ``context.agentId``."""
    keys: list[str]
    """What is other than before; ``state/get`` reads it."""


class CancelRequest(Wire, kw_only=True):
    """A request of the daemon's is no longer of interest; its answer is dropped."""

    id: str | int
    """The request's id."""


class MessageAction(Wire, kw_only=True):
    """One button of a message."""

    title: str


class ShowMessageRequest(Wire, kw_only=True):
    """May this call run? As LSP's message with buttons, for hosts that declared only that."""

    type: int
    """LSP's type of message: 2 is a warning."""
    message: str
    actions: list[MessageAction]


class Sent(msgspec.Struct, frozen=True):
    """A message that the daemon sends: the Struct of its params, and what a request's result is (None: a notification)."""

    params: type[msgspec.Struct]
    result: Any = None


NOTIFICATIONS: dict[str, Sent] = {
    "tool/output": Sent(ToolOutput),
    "tool/event": Sent(CallEvent),
    "tool/approvalResolved": Sent(ApprovalResolved),
    "task/changed": Sent(Task),
    "registry/changed": Sent(RegistryChanged),
    "workflow/stepChanged": Sent(StepChanged),
    "service/cancel": Sent(ServiceCancel),
    "event/published": Sent(EventPublished),
    "state/changed": Sent(StateChanged),
    "abuse/suspected": Sent(AbuseSuspected),
    "$/progress": Sent(Progress),
    "$/cancelRequest": Sent(CancelRequest),
}
"""Notifications of the daemon by name."""

REQUESTS: dict[str, Sent] = {
    "tool/requestApproval": Sent(ApprovalRequest, ApprovalReply),
    "window/showMessageRequest": Sent(ShowMessageRequest, MessageAction | None),
    "service/invoke": Sent(ServiceInvoke, Any),
}
"""Requests of the daemon to the host by name."""
