"""Runs of workflows that wait for a host that polls: which there are, and which one a call of the host goes on with.

A node's question parks its run, and the host's call ends ``inputRequired`` with it. When the host repeats the call with the token, the answer goes
to the node that waits, and the call is given the run's end or its next question; nothing that was run is begun anew. Must not know how a run
goes on (``suspended_run.py``).
"""

from __future__ import annotations

import asyncio

from tamis.protocols.manifest.reading import WorkflowHandler
from tamis.server.runtime.calls.model import CallContext, CallRequest, TokenAnswer
from tamis.server.runtime.execution.approvals.questions import ApprovalUnknown
from tamis.server.runtime.execution.resolving import tool_of
from tamis.server.runtime.execution.suspended_run import CLOSE_S, SuspendedRun, Work

MAX_SUSPENDED = 32
"""So many runs wait for their hosts; with one more the question of the oldest has expired."""
CANCEL_S = 0.05


def may_park(request: CallRequest, context: CallContext) -> bool:
    """Whether a call is the run of a workflow whose host can come back to it."""
    if not context.asking.polls or not context.parts.stays or context.closed or request.dry_run:
        return False
    tool = tool_of(request, context.registry)
    if tool is None or not isinstance(tool.manifest.handler, WorkflowHandler):
        return False
    # what becomes a task has its answer at once, and no call to come back with
    return request.wait or tool.manifest.execution.mode != "async"


class SuspendedRuns:
    """The runs of one runtime that have begun under a host that polls, and were not told to it to their end."""

    def __init__(self) -> None:
        self._runs: dict[SuspendedRun, None] = {}

    def __len__(self) -> int:
        return len(self._runs)

    def begin(self, request: CallRequest, context: CallContext, binding: str, run: Work) -> SuspendedRun:
        """Begins a run for a call of that binding."""
        made = SuspendedRun(request, context, binding, self._suspended, lambda one: self._runs.pop(one, None))
        self._runs[made] = None
        made.begin(context, run)
        return made

    def of(self, request: CallRequest, binding: str) -> tuple[SuspendedRun, TokenAnswer | None] | None:
        """The run that a call goes on with, and the answer that it brings; None for one that begins anew.

        That is the run of its token; without one, and for a call of a text of which the answer is another's, the run that waits for the same
        call under the same idempotency key, or from the same text. Raises ``ApprovalUnknown`` for a token of another call's run.
        """
        approval = request.approval
        same = [one for one in self._runs if one.binding == binding and one.attached is None]
        again = next((one for one in same if _is_again(request, one.request)), None)
        if approval is not None:
            run = next((one for one in self._runs if approval.token in one.tokens), None)
            if run in same and not (approval.lenient and _is_elsewhere(request, run.request)):
                return run, approval
            if not approval.lenient and (run is not None or again is not None):
                raise ApprovalUnknown("the token belongs to another call, or is used")
        return None if again is None else (again, None)

    def _suspended(self, run: SuspendedRun) -> None:
        # the oldest is the one that was not asked about for longest
        self._runs.pop(run, None)
        self._runs[run] = None
        waiting = [one for one in self._runs if one is run or (one.attached is None and one.tokens)]
        for one in waiting[:-MAX_SUSPENDED]:
            one.expire()

    async def close(self) -> None:
        """Cancels what still runs, and waits for it."""
        for run in list(self._runs):
            run.cancelled.set()
        tasks = {run.task for run in self._runs if run.task is not None and not run.task.done()}
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=CANCEL_S)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=CLOSE_S)
        self._runs.clear()


def _is_again(request: CallRequest, first: CallRequest) -> bool:
    """Whether a call that names no question of a run is all the same the one that began it."""
    if request.idempotency_key:
        return has_same_key(request, first)
    given, place = request.approval, _place(request)
    return given is not None and given.lenient and place is not None and place == _place(first)


def has_same_key(request: CallRequest, first: CallRequest) -> bool:
    """Whether both go by the same idempotency key; of one session, as the calls of one run are."""
    return (request.idempotency_key, request.key_is_models) == (first.idempotency_key, first.key_is_models)


def _is_elsewhere(request: CallRequest, first: CallRequest) -> bool:
    """Whether both are calls of the same text, but not the same one."""
    return request.call is not None and request.source == first.source and _place(request) != _place(first)


def _place(request: CallRequest) -> tuple[str, tuple[int, int]] | None:
    """Where a call stands: its text, and its place there."""
    return None if request.call is None else (request.source, request.call.span)
