"""Workflows: what there is of them, what a run gave, and the streams that results can hold. Must not know an engine."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from tamis.protocols.contract.base import Wire
from tamis.protocols.contract.findings import Problem
from tamis.protocols.contract.results import ExecutionError, Status

StepStatus = Literal[
    "pending",
    "running",
    "success",
    "error",
    "timeout",
    "cancelled",
    "denied",
    "approvalTimeout",
    "approvalUnavailable",
    "blocked",
    "skipped",
]


class WorkflowStep(Wire, kw_only=True):
    """One node of a run. ``skipped``: it lies on a branch that was not taken. ``started_ms`` counts from the run's beginning."""

    node_id: str
    type: str
    status: StepStatus
    started_ms: float | UnsetType = UNSET
    duration_ms: float | UnsetType = UNSET
    error: ExecutionError | UnsetType = UNSET


class StepChanged(Wire, kw_only=True):
    """Params of ``workflow/stepChanged``: a node of a running workflow is in another state."""

    workflow_id: str
    call_id: str
    step: WorkflowStep


class WorkflowRunResult(Wire, kw_only=True):
    """Result of ``workflow/run``: the values of the interface's outputs by name, and every node in the file's order.

    ``replayed`` and ``approval`` are those of an ``ExecutionResult``: with ``inputRequired`` the question and its token.
    """

    outputs: dict[str, Any]
    steps: list[WorkflowStep]
    status: Status
    call_id: str
    engine: str
    duration_ms: float
    error: ExecutionError | UnsetType = UNSET
    replayed: bool = False
    approval: dict[str, Any] | UnsetType = UNSET
    observation: str


class WorkflowSummary(Wire, kw_only=True):
    """One line of ``workflow/list``; ``reason``: why it cannot be run."""

    workflow_id: str
    tool_id: str
    name: str
    description: str
    inputs: list[str]
    outputs: list[str]
    available: bool
    reason: str | UnsetType = UNSET
    source: str


class WorkflowList(Wire, kw_only=True):
    """Result of ``workflow/list``, in the order of ids."""

    workflows: list[WorkflowSummary]


class WorkflowDescription(Wire, kw_only=True):
    """Result of ``workflow/describe``: the tool that agents see (seed 004 §2.3), the file as it is, and what its graph lacks."""

    workflow_id: str
    tool_id: str
    version: str
    definition: dict[str, Any]
    workflow: dict[str, Any]
    problems: list[Problem]
    source: str


class WorkflowGraph(Wire, kw_only=True):
    """Result of ``workflow/graph``; ``timed``: it shows what the last run of the workflow took."""

    format: Literal["mermaid", "svg"]
    text: str
    timed: bool


class StreamItems(Wire, kw_only=True):
    """Result of ``stream/read``: what has come since the last reading. ``done``: nothing more comes; ``error`` says why it ended early."""

    items: list[Any]
    done: bool
    error: ExecutionError | UnsetType = UNSET
