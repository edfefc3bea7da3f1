"""Runs that wait for a host that polls: which there are, and which one a call of the host goes on with.

A question of a workflow's node, or of the MCP server whose tool is called, parks its run, and the host's call ends ``inputRequired`` with it. When the
host repeats the call with the token, the answer goes to who waits for it, and the call is given the run's end or its next question; nothing that was
run is begun anew. Must not know what a run is of, nor how a question came about.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ApprovalRequest, ExecutionResult
from tamis.protocols.manifest.reading import McpTool, WorkflowHandler
from tamis.protocols.observation import observation
from tamis.server.runtime.calls.model import (
    CallContext,
    CallRequest,
    Question,
    Reply,
    State,
    TokenAnswer,
    end_state,
    states_of,
)
from tamis.server.runtime.calls.running_calls import told_when_set
from tamis.server.runtime.execution.approvals.questions import ApprovalUnknown, put_off
from tamis.server.runtime.execution.resolving import tool_of
from tamis.server.runtime.observe.masking import result_without

if TYPE_CHECKING:
    from tamis.server.runtime.calls.runner import Invocation
    from tamis.server.runtime.handlers.workflow.streams import RunRecord


# One run whose host polls, as its questions and the host's calls see it. Its questions are put one after the other, each as the
# end of a call of the host; the call that brings the answer waits for the run as the one before did. A run that nobody can come back to is asked
# nothing more: its questions end as those that nobody answered.


CLOSE_S = 2.0
HEARD_ROUNDS = 256
"""So many rounds of the loop a run has to hear that a node was refused before its next question is put: most end with that node."""
Work = Callable[[CallContext], Coroutine[Any, Any, ExecutionResult]]
"""Runs the call in this context to its end."""


class Turn:
    """One call's turn to ask: while it has it, no other question of the run is put."""

    def __init__(self, run: SuspendedRun) -> None:
        self._run = run
        self._came: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def come(self) -> asyncio.Future[bool]:
        """Done when the turn is there. From then on it lasts until the call needs nobody's word any more."""
        self._run.wait_for_turn(self)
        return self._came

    def has_come(self) -> None:
        """Tells it."""
        if not self._came.done():
            self._came.set_result(True)

    @property
    def unasked(self) -> Reply | None:
        """What a question comes to that can be put to nobody."""
        return self._run.unasked

    async def ask(self, question: Question) -> Reply:
        """Puts the question, and waits for what settles it."""
        return await self._run.ask(question)


class SuspendedRun:
    """One run, from the call that began it to the call that was given its end."""

    def __init__(
        self,
        request: CallRequest,
        context: CallContext,
        binding: str,
        on_suspended: Callable[[SuspendedRun], None],
        on_over: Callable[[SuspendedRun], None],
    ) -> None:
        """``on_suspended`` is told each time that it waits for its host, ``on_over`` when nothing of it is left to be told."""
        self._on_suspended = on_suspended
        self._on_over = on_over
        self._approvals = context.services.execution.approvals
        self._on_resolved = context.observer.on_resolved
        self._on_event = context.observer.on_event
        self._began = time.perf_counter()
        self.request = request
        self.binding = binding
        """Stands for the call that began it: who repeats that call may answer."""
        self.cancelled = asyncio.Event()
        self.call: Invocation | None = None
        """The call as it runs, from when it does."""
        self.record: Callable[[], RunRecord] | None = None
        """What is known of the workflow's nodes now."""
        self.tokens: set[str] = set()
        """Those with which the host can come back."""
        self.attached: CallContext | None = None
        """Of the request that waits for the run now."""
        self._task: asyncio.Task[ExecutionResult] | None = None
        self._resumed = False
        self._shown: ApprovalRequest | None = None
        self._turns: deque[Turn] = deque()
        self._refused = False
        self._is_hearing = False
        self._moved = asyncio.Event()
        self._over = False

    # what the run does

    def begin(self, context: CallContext, run: Work) -> None:
        """Starts it; ``context`` is what the call that begins it runs under."""
        self.attached = context
        own = context.having(
            suspended=self,
            cancelled=self.cancelled,
            on_event=None if self._on_event is None else self._tell_state,
            on_progress=self._progress,
        )
        self._task = asyncio.get_running_loop().create_task(run(own))
        self._task.add_done_callback(self._ended)

    @contextmanager
    def turn(self) -> Generator[Turn]:
        """The turn of a node's call, for as long as it may need somebody's word."""
        turn = Turn(self)
        try:
            yield turn
        finally:
            self._leave(turn)

    def wait_for_turn(self, turn: Turn) -> None:
        """The call needs somebody's word; one that has its turn keeps it."""
        if turn not in self._turns:
            self._turns.append(turn)
        self._pass_on()

    def _leave(self, turn: Turn) -> None:
        if turn in self._turns:
            self._turns.remove(turn)
        if self._refused:
            self._refused, self._is_hearing = False, True
            self._hear(HEARD_ROUNDS)
        self._pass_on()
        self._look()

    def _hear(self, rounds: int) -> None:
        if rounds and self._turns:
            asyncio.get_running_loop().call_soon(self._hear, rounds - 1)
            return
        self._is_hearing = False
        self._pass_on()

    def _pass_on(self) -> None:
        if self._turns and not self._is_hearing:
            self._turns[0].has_come()

    @property
    def unasked(self) -> Reply | None:
        """What a question comes to now that cannot be put; None where it can."""
        if self._over:
            # it goes on behind the handle of a stream: its call was answered
            return Reply(answer="unavailable")
        return None if self._is_reachable else Reply(answer="timeout")

    async def ask(self, question: Question) -> Reply:
        """Puts a node's question to the host."""
        settled: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        def settle(reply: Reply) -> None:
            self.tokens.discard(token)
            if self._shown is shown:
                # before whoever answered looks for the next question
                self._shown = None
            if not settled.done():
                settled.set_result(reply)
            self._look()

        shown = self._approvals.hand_out(put_off(question, self.binding), self._on_resolved, settle)
        token = str(shown.token)
        self.tokens.add(token)
        self._shown = shown
        self._look()
        try:
            reply = await settled
            # a server that is not answered goes on
            self._refused = reply.answer != "allow" and question.elicitation is None
            return reply
        finally:
            if self._shown is shown:
                self._shown = None
            self._approvals.withdraw(token)

    # what a host's call does

    def take(self, request: CallRequest, context: CallContext, token_answer: TokenAnswer | None) -> None:
        """A call waits for the run from now on, with an answer or without one. Raises ``ApprovalUnknown``; then it does not."""
        if self.attached is not None:
            raise ApprovalUnknown("the run was taken up already")
        if token_answer is not None:
            try:
                self._approvals.check(token_answer, (self.binding,))
            except ApprovalUnknown:
                if not token_answer.lenient:
                    raise
                token_answer = None
        self._resumed, self.attached = True, context
        if self.call is not None:
            self.call.trail.note("call.resumed", "info", by=request.call_id)
        if token_answer is not None and not self.cancelled.is_set():
            # a run that was cancelled may not have heard of it yet
            self._approvals.answer(token_answer, self.binding)

    async def outcome(self, request: CallRequest, context: CallContext) -> ExecutionResult:
        """The run's end, or the question that it waits for; a cancel of the call is one of the run."""
        if context.cancelled is not None and context.cancelled.is_set():
            # before its question could be taken for the outcome
            self.cancelled.set()
        states = states_of(context.observer.on_event)
        calls, cancel = context.services.running_calls, told_when_set(context.cancelled, self.cancelled.set)
        try:
            if request is self.request:
                with cancel:
                    return await self._next(request)
            states.begin(request.call_id)
            states(request.call_id, "executing")
            with calls.entered(request.call_id, context.caller.session_id, self.cancelled), cancel:
                result = await self._next(request)
        except asyncio.CancelledError:
            await self.abort()
            raise
        finally:
            self.attached = None
            self._look()
        states(request.call_id, end_state(result.status))
        return result

    async def _next(self, request: CallRequest) -> ExecutionResult:
        assert self._task is not None
        while True:
            if self._shown is not None and not self.cancelled.is_set():
                result = self._waiting(request, self._shown)
                self._on_suspended(self)
                return result
            if self._task.done() and not self._turns:
                self._over = True
                self._tell_record(request)
                return self._final(request, self._task.result())
            self._moved.clear()
            await self._moved.wait()

    def _waiting(self, request: CallRequest, shown: ApprovalRequest) -> ExecutionResult:
        """The result of a call whose run waits for an answer."""
        assert self.call is not None
        self._tell_record(request)
        result = msgspec.structs.replace(
            self.call.result,
            status="inputRequired",
            output=UNSET,
            error=UNSET,
            approval=msgspec.to_builtins(shown),
            usage=msgspec.structs.replace(self.call.result.usage),
            duration_ms=round((time.perf_counter() - self._began) * 1000, 3),
        )
        return self._observed(request, result)

    def _final(self, request: CallRequest, result: ExecutionResult) -> ExecutionResult:
        return result if request is self.request else self._observed(request, result)

    def _observed(self, request: CallRequest, result: ExecutionResult) -> ExecutionResult:
        """The result as that of this call."""
        own = UNSET if request.call is None else request.call.meta.get("id", UNSET)
        result = msgspec.structs.replace(result, call_id=request.call_id, tool_call_id=own)
        secrets = () if self.call is None else self.call.trail.secrets
        result.observation = observation(result_without(result, secrets), request.style, step=request.step)
        return result

    def _tell_record(self, request: CallRequest) -> None:
        if self.record is not None and self.call is not None:
            record = self.record()
            # the nodes' states go on
            steps = [msgspec.structs.replace(step) for step in record.steps]
            self.call.services.workflows.give(request.call_id, msgspec.structs.replace(record, steps=steps))

    # how it ends

    @property
    def _is_reachable(self) -> bool:
        return self.attached is not None or bool(self.tokens)

    def _look(self) -> None:
        """Something has changed."""
        self._moved.set()
        if self._task is not None and self._task.done() and not self._is_reachable:
            self._over = True
        if self._over:
            self._on_over(self)

    def _ended(self, task: asyncio.Task[ExecutionResult]) -> None:
        if not task.cancelled():
            # a run that nobody comes for any more may have failed
            task.exception()
        self._look()

    def expire(self) -> None:
        """Nobody comes back to it."""
        for token in list(self.tokens):
            self._approvals.expire(token)

    async def abort(self) -> None:
        """Ends it at once."""
        self.cancelled.set()
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=CLOSE_S)

    @property
    def task(self) -> asyncio.Task[ExecutionResult] | None:
        """The run itself."""
        return self._task

    def _tell_state(self, call_id: str, state: State) -> None:
        # the call that took the run up tells its own states, which may be under the same id
        resumed = self._resumed and self.attached is not None
        if self._on_event is not None and not (resumed and call_id == self.request.call_id):
            self._on_event(call_id, state)

    def _progress(self, call_id: str, text: str) -> None:
        attached = self.attached
        if attached is not None and attached.observer.on_progress is not None:
            attached.observer.on_progress(call_id, text)


MAX_SUSPENDED = 32
"""So many runs wait for their hosts; with one more the question of the oldest has expired."""
CANCEL_S = 0.05


def may_park(request: CallRequest, context: CallContext) -> bool:
    """Whether a call is a run that may ask something meanwhile, of a workflow or by an MCP server, and whose host can come back to it."""
    if not context.asking.polls or not context.services.connection.stays or context.closed or request.dry_run:
        return False
    tool = tool_of(request, context.registry)
    asks = (WorkflowHandler, McpTool) if context.asking.elicits else WorkflowHandler
    if tool is None or not isinstance(tool.manifest.handler, asks):
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
        suspended_run = SuspendedRun(
            request, context, binding, self._suspended, lambda item: self._runs.pop(item, None)
        )
        self._runs[suspended_run] = None
        suspended_run.begin(context, run)
        return suspended_run

    def of(self, request: CallRequest, binding: str) -> tuple[SuspendedRun, TokenAnswer | None] | None:
        """The run that a call goes on with, and the answer that it brings; None for one that begins anew.

        That is the run of its token; without one, and for a call of a text of which the answer is another's, the run that waits for the same
        call under the same idempotency key, or from the same text. Raises ``ApprovalUnknown`` for a token of another call's run.
        """
        approval = request.approval
        same = [candidate for candidate in self._runs if candidate.binding == binding and candidate.attached is None]
        again = next((candidate for candidate in same if _is_again(request, candidate.request)), None)
        if approval is not None:
            run = next((candidate for candidate in self._runs if approval.token in candidate.tokens), None)
            if run in same and not (approval.lenient and _is_elsewhere(request, run.request)):
                return run, approval
            if not approval.lenient and (run is not None or again is not None):
                raise ApprovalUnknown("the token belongs to another call, or is used")
        return None if again is None else (again, None)

    def _suspended(self, run: SuspendedRun) -> None:
        # the oldest is the one that was not asked about for longest
        self._runs.pop(run, None)
        self._runs[run] = None
        waiting = [
            suspended_run
            for suspended_run in self._runs
            if suspended_run is run or (suspended_run.attached is None and suspended_run.tokens)
        ]
        for suspended_run in waiting[:-MAX_SUSPENDED]:
            suspended_run.expire()

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
    token_answer, place = request.approval, _place(request)
    return token_answer is not None and token_answer.lenient and place is not None and place == _place(first)


def has_same_key(request: CallRequest, first: CallRequest) -> bool:
    """Whether both go by the same idempotency key; of one session, as the calls of one run are."""
    return (request.idempotency_key, request.key_is_models) == (first.idempotency_key, first.key_is_models)


def _is_elsewhere(request: CallRequest, first: CallRequest) -> bool:
    """Whether both are calls of the same text, but not the same one."""
    return request.call is not None and request.source == first.source and _place(request) != _place(first)


def _place(request: CallRequest) -> tuple[str, tuple[int, int]] | None:
    """Where a call stands: its text, and its place there."""
    return None if request.call is None else (request.source, request.call.span)
