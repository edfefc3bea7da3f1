"""Calls that outlive their request. Must not know what such a call does."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from tamis.protocols.contract.approvals import ApprovalRequest
from tamis.protocols.contract.base import Wire
from tamis.protocols.contract.results import ExecutionError, ExecutionResult

TaskStatus = Literal["working", "inputRequired", "completed", "failed", "cancelled"]


class TaskProgress(Wire, kw_only=True):
    """How far a task is: ``progress`` of ``total`` in the tool's own unit, and a few words."""

    progress: float | UnsetType = UNSET
    total: float | UnsetType = UNSET
    message: str | UnsetType = UNSET


class Task(Wire, kw_only=True):
    """A call that outlives its request. ``result`` is there when it is ``completed``, ``error`` when it is ``failed``; times are ISO 8601."""

    task_id: str
    status: TaskStatus
    created_at: str
    ended_at: str | UnsetType = UNSET
    tool_id: str
    call_id: str
    session_id: str | UnsetType = UNSET
    progress: TaskProgress | UnsetType = UNSET
    approvals: list[ApprovalRequest] | UnsetType = UNSET
    """While it is ``inputRequired``, in ``task/get`` of the daemon that runs it: the questions that a host who polls answers with ``task/answer``."""
    result: ExecutionResult | UnsetType = UNSET
    error: ExecutionError | UnsetType = UNSET


class TaskList(Wire, kw_only=True):
    """Result of ``task/list``, the newest first; its tasks have no ``result``, which ``task/get`` gives."""

    tasks: list[Task]
    next_cursor: str | UnsetType = UNSET
