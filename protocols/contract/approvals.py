"""A person's word before a call: what is asked, what can be answered, what holds from then on. Must not know who is asked."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from tamis.protocols.contract.base import Wire
from tamis.protocols.contract.results import Granted, Permissions


class ApprovalOption(Wire, kw_only=True):
    """One of the answers that a person may choose."""

    option_id: str
    label: str
    kind: Literal["allow_once", "allow_session", "allow_always", "reject_once", "reject_always"]


class ApprovalBatch(Wire, kw_only=True):
    """Questions that belong together: those of one text; ``index`` from zero."""

    id: str
    index: int
    count: int


class ApprovalNode(Wire, kw_only=True):
    """The node of a workflow that a call is, the innermost where workflows call workflows; ``item``: of a ``map``, from zero."""

    workflow_id: str
    node_id: str
    item: int | UnsetType = UNSET


class ApprovalChoice(Wire, kw_only=True):
    """One of the values of a field, and how it is shown."""

    value: str
    title: str


class ApprovalField(Wire, kw_only=True):
    """One field of a form. A ``string`` with ``options`` is one of them, an ``array`` several of them; the other words are those of JSON
    Schema. ``error``: what was wrong with it in the answer before, which ``default`` then holds."""

    name: str
    title: str
    type: Literal["string", "number", "integer", "boolean", "array"]
    required: bool
    description: str | UnsetType = UNSET
    format: Literal["email", "uri", "date", "date-time"] | UnsetType = UNSET
    min_length: int | UnsetType = UNSET
    max_length: int | UnsetType = UNSET
    minimum: float | UnsetType = UNSET
    maximum: float | UnsetType = UNSET
    options: list[ApprovalChoice] | UnsetType = UNSET
    min_items: int | UnsetType = UNSET
    max_items: int | UnsetType = UNSET
    default: str | float | bool | list[str] | UnsetType = UNSET
    error: str | UnsetType = UNSET


class ApprovalAddress(Wire, kw_only=True):
    """An address that a server wants a person to open, and its host. Nothing but the person's own click opens it."""

    url: str
    host: str


class ApprovalElicitation(Wire, kw_only=True):
    """What the MCP server of a tool asks while the tool runs, in its own words. ``field``: what the options are values of; ``form``: what
    is typed, for hosts that declared ``forms``; ``url``: what is opened, for the same."""

    server: str
    message: str
    field: str | UnsetType = UNSET
    form: list[ApprovalField] | UnsetType = UNSET
    url: ApprovalAddress | UnsetType = UNSET


class ApprovalRequest(Wire, kw_only=True):
    """Params of ``tool/requestApproval``, which the daemon asks the host; ``token`` stands only in a result, ``node`` where the call is
    a node of a workflow, ``elicitation`` where it is no approval but a question of the tool's MCP server."""

    approval_id: str
    call_id: str
    tool: str
    version: str
    args: dict[str, Any]
    args_preview: str
    risk: Literal["low", "medium", "high"]
    permissions: Permissions
    options: list[ApprovalOption]
    expires_at: str
    batch: ApprovalBatch | UnsetType = UNSET
    node: ApprovalNode | UnsetType = UNSET
    elicitation: ApprovalElicitation | UnsetType = UNSET
    token: str | UnsetType = UNSET


class ApprovalReply(Wire, kw_only=True):
    """The host's answer to ``tool/requestApproval``; ``option_id`` belongs to ``selected``, ``content`` to a form: values by field name."""

    outcome: Literal["selected", "cancelled"]
    option_id: str | UnsetType = UNSET
    edited_args: dict[str, Any] | UnsetType = UNSET
    comment: str | UnsetType = UNSET
    content: dict[str, Any] | UnsetType = UNSET


ApprovalOutcome = Literal["allowed", "denied", "timeout", "unavailable", "cancelled"]


class ApprovalResolved(Wire, kw_only=True):
    """Params of ``tool/approvalResolved``: a question is settled, by an answer or otherwise."""

    approval_id: str
    call_id: str
    outcome: ApprovalOutcome


class Approved(Wire, kw_only=True):
    """What was answered before a call. ``standing``: nobody was asked, for an earlier answer still holds; ``edited_args``: what it
    ran with instead, secrets masked."""

    outcome: ApprovalOutcome
    scope: Literal["once", "session", "always"]
    standing: bool
    edited_args: dict[str, Any] | UnsetType = UNSET
    comment: str | UnsetType = UNSET


class StandingApproval(Wire, kw_only=True):
    """An answer that holds for later calls of the same tool with the same rights."""

    id: str
    kind: Literal["allow_session", "allow_always", "reject_always"]
    tool_id: str
    version: str
    agent_id: str
    session_id: str
    permissions: Granted
    created_at: str


class ApprovalList(Wire, kw_only=True):
    """Result of ``approval/list``: what holds, and the questions that are open."""

    approvals: list[StandingApproval]
    open: list[ApprovalRequest]


class RevokedApprovals(Wire, kw_only=True):
    """Result of ``approval/revoke``: the ids that held until now."""

    revoked: list[str]
