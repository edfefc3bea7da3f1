"""A whole text: its calls in order, their results, and one observation for the model.

What ends a sequence: a failed step of a TAM block stops that block unless the step says ``on_error: continue`` (seed 002 §4);
a failed call of an ACTION block stops the rest of that block, whose calls are one plan (seed 000 §8.1); VCP blocks are
independent of each other. ``on_error`` of the request overrides the ACTION and VCP defaults. Must not know framing.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from typing import Literal

import msgspec
from msgspec import UNSET

from tamis.protocols.catalogue import message, severity
from tamis.protocols.contract import ExecuteTextResult, ExecutionError, ExecutionResult, Status
from tamis.protocols.model import Block, Call, Diag, Document
from tamis.protocols.observation import Style, malformed, malformed_result, observation, style_of
from tamis.protocols.passed_over import notes_of
from tamis.protocols.plugins import extras_of
from tamis.protocols.positions import LineIndex, PositionEncoding
from tamis.protocols.wire import parse_result
from tamis.server.runtime.calls.model import CallContext, CallRequest, Question, TokenAnswer, end_state, states_of
from tamis.server.runtime.calls.runner import empty_result, failure
from tamis.server.runtime.calls.running_calls import own_cancel
from tamis.server.runtime.execution.approvals.questions import Together
from tamis.server.runtime.execution.idempotency import is_answered
from tamis.server.runtime.execution.pipeline import execute, question_of
from tamis.server.runtime.observe.trail import Trail

Mode = Literal["sequential", "parallel"]
OnError = Literal["stop", "continue"]
MAX_PARALLEL = 64
"""Calls of one text that run at the same time; the others wait."""


class TextOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How the calls of one text are run."""

    mode: Mode = "sequential"
    on_error: OnError | None = None
    timeout_ms: int | None = None
    idempotency_key: str = ""
    """The host's key for the whole text; a call with a ``request_id`` of its own goes by that."""
    key_of: str = ""
    """Stands for the text that the key was given with."""
    dry_run: bool = False
    ask: bool = False
    approval: TokenAnswer | None = None
    """The answer to a question that an earlier result of one of the calls held; the others are as without it."""
    done: dict[int, ExecutionResult] = {}
    """Results that calls of this text have already, by their place in ``calls``: these are not run again."""
    call_prefix: str = "call"
    encoding: PositionEncoding | None = None


class Planned(msgspec.Struct, frozen=True):
    """One call of a text that is to be run, or refused with the finding that forbids it."""

    index: int
    call: Call
    block: int
    style: Style
    refused: Diag | None


def plan_text(document: Document) -> list[Planned]:
    """The calls that are run or refused, in order; calls that are only reported (reasoning, examples) are left out."""
    planned: list[Planned] = []
    index = {id(call): number for number, call in enumerate(document.calls)}
    for number, block in enumerate(document.blocks):
        error = _first_error(block)
        planned.extend(
            Planned(
                index[id(call)], call, number, style_of(call.protocol, call.shape), None if call.executable else error
            )
            for call in block.calls
            if call.executable or error is not None
        )
    return planned


async def execute_text(
    document: Document,
    context: CallContext,
    options: TextOptions,
    on_result: Callable[[ExecutionResult], None] | None = None,
    on_unread: Callable[[str], None] | None = None,
) -> ExecuteTextResult:
    """Runs the calls of a text; every planned call has a result, also those that were not reached (V54).

    ``on_unread`` is told what the observation says of blocks and parts without a result, before the results of the blocks behind them.
    """
    if context.asking.ask is None or not context.asking.asks_together:
        return await _execute_text(document, context, options, on_result, on_unread)
    states = states_of(context.observer.on_event)
    context = context.having(on_event=states, cancelled=context.cancelled or asyncio.Event())
    planned = plan_text(document)
    for item in planned:
        states.begin(call_id(item, options))
    steps = _step_counts(planned)
    questions: list[Question] = []
    keys = set[str]()
    for item in planned:
        if item.refused is not None or item.index in options.done:
            continue
        request = _request(item, document, options, steps)
        if request.idempotency_key in keys or await is_answered(request, context):
            continue
        question = await question_of(request, context)
        if question is not None:
            questions.append(question)
            # a second call of a key is answered by the first
            keys.update(key for key in (request.idempotency_key,) if key)
    if len(questions) < 2:
        return await _execute_text(document, context, options, on_result, on_unread)
    for question in questions:
        states(question.call_id, "awaitingApproval")
    together = Together(context.services.execution.approvals, questions, context)
    try:
        context = context.having(asked_ahead=together)
        return await _execute_text(document, context, options, on_result, on_unread)
    finally:
        await together.end()


async def _execute_text(
    document: Document,
    context: CallContext,
    options: TextOptions,
    on_result: Callable[[ExecutionResult], None] | None,
    on_unread: Callable[[str], None] | None,
) -> ExecuteTextResult:
    if options.idempotency_key:
        digest = hashlib.sha256(document.text.encode("utf-8", "surrogatepass")).hexdigest()
        options = msgspec.structs.replace(options, key_of=digest)
    run = _TextRun(document, context, options, on_result, on_unread)
    with context.services.running_calls.entered("", context.caller.session_id, run.stop):
        if options.mode == "parallel" and not any(extras_of(item.call.protocol).modifiers for item in run.planned):
            await run.at_once()
        else:
            await run.in_order()
    run.tell_unread(None)
    return run.result()


class _TextRun:
    """The calls of one text while they run: what was told of them, and what they came to."""

    def __init__(
        self,
        document: Document,
        context: CallContext,
        options: TextOptions,
        on_result: Callable[[ExecutionResult], None] | None,
        on_unread: Callable[[str], None] | None,
    ) -> None:
        self.document = document
        self.options = options
        self.planned = plan_text(document)
        self.stop = context.cancelled or asyncio.Event()
        self._states = states_of(context.observer.on_event)
        self._context = context.having(on_event=self._states, cancelled=self.stop)
        self._on_result = on_result
        self._on_unread = on_unread
        self._beside = beside_results(document)
        self._untold = list(self._beside.told)
        self._results: dict[int, ExecutionResult] = {}
        self._steps = _step_counts(self.planned)
        self._stopped_at: int | None = None
        for item in self.planned:
            self._states.begin(call_id(item, options))

    def tell_unread(self, before: int | None) -> None:
        """Tells what was not read as a call before a block, or anywhere."""
        untold = self._untold
        while untold and (before is None or untold[0][0] < before):
            text = untold.pop(0)[1]
            if self._on_unread is not None:
                self._on_unread(text)

    def _tell(self, item: Planned, result: ExecutionResult) -> None:
        self._results[item.index] = result
        self._states(result.call_id, end_state(result.status))
        self.tell_unread(item.block)
        if self._on_result is not None:
            self._on_result(result)

    async def _run(self, item: Planned) -> ExecutionResult:
        if item.index in self.options.done:
            result = self.options.done[item.index]
        elif self.stop.is_set():
            result = _not_reached(item, self.options, self._steps)
        else:
            with own_cancel(self.stop) as cancelled:
                own = self._context.having(cancelled=cancelled)
                result = await _one(item, self.document, own, self.options, self._steps)
        self._tell(item, result)
        return result

    async def at_once(self) -> None:
        """Runs them beside each other, so many as may."""
        gate = asyncio.Semaphore(MAX_PARALLEL)

        async def in_turn(item: Planned) -> ExecutionResult:
            async with gate:
                return await self._run(item)

        await asyncio.gather(*(in_turn(item) for item in self.planned))

    async def in_order(self) -> None:
        """Runs one after the other; a failure ends its block where the call, or the text, says so."""
        stopped_block: int | None = None
        for item in self.planned:
            if item.index not in self.options.done and (item.block == stopped_block or self.stop.is_set()):
                self._tell(item, _not_reached(item, self.options, self._steps))
                continue
            result = await self._run(item)
            if result.status not in ("success", "accepted") and _stops(item.call, self.options.on_error):
                stopped_block = item.block
                self._stopped_at = item.index if self._stopped_at is None else self._stopped_at

    def result(self) -> ExecuteTextResult:
        """What the text came to."""
        ordered = [self._results[item.index] for item in self.planned]
        observations = ((item.block, result.observation) for item, result in zip(self.planned, ordered, strict=True))
        told = sorted([*self._beside.told, *observations], key=lambda words: words[0])
        return ExecuteTextResult(
            parse=parse_result(self.document, self.options.encoding, self.options.call_prefix),
            results=ordered,
            observation="\n".join(words for _block, words in told),
            explanation=self._beside.explanation or UNSET,
            stopped_at=UNSET if self._stopped_at is None else self._stopped_at,
        )


async def _one(
    item: Planned, document: Document, context: CallContext, options: TextOptions, steps: dict[int, int]
) -> ExecutionResult:
    call = item.call
    step = call.step if steps.get(item.block, 0) > 1 else None
    if item.refused is not None:
        result = _refused(item, document, options, step)
        trail = Trail(context.services.audit, context.services.log, str(context.root), result.call_id, context.trace)
        trail.note("call.refused", "info", name=call.tool_id, code=item.refused.code, message=message(item.refused))
        return result
    return await execute(_request(item, document, options, steps), context, attempts=1 + (call.retry or 0))


def _request(item: Planned, document: Document, options: TextOptions, steps: dict[int, int]) -> CallRequest:
    call = item.call
    own, idempotency_key = call.request_id, options.idempotency_key
    # Each step of a block is an execution of its own under the block's request id, each call of a text under the host's key.
    key = f"{own}#{call.step or 1}" if own else f"{idempotency_key}#{item.index}" if idempotency_key else ""
    return CallRequest(
        call_id=call_id(item, options),
        name=call.tool_id,
        call=call,
        source=document.text,
        encoding=options.encoding,
        timeout_ms=options.timeout_ms,
        dry_run=options.dry_run,
        ask=options.ask,
        approval=options.approval,
        idempotency_key=key,
        key_is_models=bool(own),
        key_of=options.key_of if idempotency_key and not own else "",
        style=item.style,
        step=call.step if steps.get(item.block, 0) > 1 else None,
    )


async def check_approval(document: Document, context: CallContext, options: TextOptions) -> None:
    """Raises ``ApprovalUnknown`` when the answer that came with a text fits none of its calls. Runs nothing, and uses nothing up."""
    if options.approval is None or context.closed:
        # where nothing may run, each call's own result says so
        return
    planned = plan_text(document)
    steps = _step_counts(planned)
    questions = [
        await question_of(_request(item, document, options, steps), context, anyway=True)
        for item in planned
        if item.refused is None and item.index not in options.done
    ]
    context.services.execution.approvals.check(
        options.approval, [question.binding for question in questions if question is not None]
    )


def refuse_text(
    document: Document, context: CallContext, options: TextOptions, error: ExecutionError
) -> ExecuteTextResult:
    """What ``execute_text`` gives where nothing may run, whatever it is: each call that it would have planned is ``blocked`` with that error."""
    planned = plan_text(document)
    states, steps = states_of(context.observer.on_event), _step_counts(planned)
    results: list[ExecutionResult] = []
    for item in planned:
        result = _empty(item, options, "blocked")
        result.error = error
        step = item.call.step if steps.get(item.block, 0) > 1 else None
        result.observation = observation(result, item.style, step=step)
        states(result.call_id, "completed")
        trail = Trail(context.services.audit, context.services.log, str(context.root), result.call_id)
        trail.note("call.refused", "info", name=item.call.tool_id, message=error.message)
        results.append(result)
    return ExecuteTextResult(
        parse=parse_result(document, options.encoding, options.call_prefix),
        results=results,
        observation="\n".join(result.observation for result in results),
    )


def call_id(item: Planned, options: TextOptions) -> str:
    """The id that the parse result gives the same call."""
    return f"{options.call_prefix}-{item.index + 1}"


def _stops(call: Call, on_error: OnError | None) -> bool:
    protocol = extras_of(call.protocol)
    own = call.on_error if protocol.modifiers else None
    return (own or on_error or ("stop" if protocol.stops else "continue")) == "stop"


def _step_counts(planned: list[Planned]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for item in planned:
        counts[item.block] = counts.get(item.block, 0) + (item.call.step is not None)
    return counts


def _first_error(block: Block) -> Diag | None:
    return next((diag for diag in block.diagnostics if severity(diag) == "error"), None)


def _empty(item: Planned, options: TextOptions, status: Status = "error") -> ExecutionResult:
    return empty_result(call_id(item, options), item.call.tool_id, status, call=item.call)


def _refused(item: Planned, document: Document, options: TextOptions, step: int | None) -> ExecutionResult:
    assert item.refused is not None
    result = _empty(item, options)
    result.error = failure("ParameterValidationError", message(item.refused), code=item.refused.code)
    observed = extras_of(item.call.protocol).observed
    if observed == "block":
        result.observation = observation(result, item.style, step=step)
    elif observed == "line":
        result.observation = _malformed(item.call.protocol, item.refused, document)
    else:
        # The protocol's own form names the call; the place goes into the message.
        where = _malformed(item.call.protocol, item.refused, document).removeprefix("Observation: Error - ")
        placed = msgspec.structs.replace(
            result, error=failure("ParameterValidationError", where, code=item.refused.code)
        )
        result.observation = observation(placed, item.style, step=step)
    return result


def _not_reached(item: Planned, options: TextOptions, steps: dict[int, int]) -> ExecutionResult:
    result = _empty(item, options, "cancelled")
    step = item.call.step if steps.get(item.block, 0) > 1 else None
    result.observation = observation(result, item.style, step=step)
    return result


class Beside(msgspec.Struct, frozen=True):
    """What is told of a text besides the results of its calls (ruling 54)."""

    told: tuple[tuple[int, str], ...] = ()
    """Parts of the observation, each with the number of its block."""
    explanation: str = ""
    """Why nothing was run, for a person, where all calls of the text were set aside: then the model is told nothing."""


def beside_results(document: Document) -> Beside:
    """What the observation says of blocks and parts that gave no result: not readable, not run, left out."""
    notes = notes_of(document)
    unread = unread_observations(document)
    if not unread and not plan_text(document) and all(note.kind == "setAside" for note in notes):
        return Beside(explanation="\n".join(note.text.removeprefix("Note: ") for note in notes))
    told = [*unread, *((note.block, note.text) for note in notes)]
    return Beside(told=tuple(sorted(told, key=lambda part: part[0])))


def unread_observations(document: Document) -> list[tuple[int, str]]:
    """Observations, each with the number of its block in the text, for blocks that gave no call at all: cut off, not readable, or dropped (A29, V37).

    A dropped block is only a warning of reading; the model that wrote it must learn of it all the same.
    """
    observations: list[tuple[int, str]] = []
    for number, block in enumerate(document.blocks):
        cause = _first_error(block) or next((diag for diag in block.diagnostics if severity(diag) == "warning"), None)
        if cause is not None and not block.calls:
            error = failure("ParameterValidationError", message(cause), code=cause.code)
            sentence = _malformed(block.protocol, cause, document)
            observations.append((number, malformed_result(error, sentence, style_of(block.protocol))))
    return observations


def _malformed(protocol: str, error: Diag, document: Document) -> str:
    line, column = LineIndex(document.text).position(error.span[0])
    return malformed(protocol, line + 1, column + 1, message(error))


def has_unread(document: Document) -> bool:
    """Whether a block was found that could not be read, or the text is call JSON with a fault."""
    broken = any(diag.code == "TC029" and severity(diag) == "warning" for diag in document.diagnostics)
    return broken or bool(unread_observations(document))
