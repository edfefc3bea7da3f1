"""A whole text: its calls in order, their results, and one observation for the model.

What ends a sequence: a failed step of a TAM block stops that block unless the step says ``on_error: continue`` (seed 002 §4);
a failed call of an ACTION block stops the rest of that block, whose calls are one plan (seed 000 §8.1); VCP blocks are
independent of each other. ``on_error`` of the request overrides the ACTION and VCP defaults. Must not know framing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

import msgspec
from msgspec import UNSET

from tamis.protocols.catalogue import message, severity
from tamis.protocols.contract import (
    ExecuteTextResult,
    ExecutionResult,
    Granted,
    Permissions,
    Usage,
)
from tamis.protocols.model import Block, Call, Diag, Document
from tamis.protocols.observation import Style, malformed, malformed_result, observation, style_of
from tamis.protocols.positions import LineIndex, PositionEncoding
from tamis.protocols.wire import parse_result
from tamis.server.runtime.calls.execute import execute
from tamis.server.runtime.calls.failures import failure
from tamis.server.runtime.calls.model import CallRequest, Surroundings
from tamis.server.runtime.records.trail import Trail

Mode = Literal["sequential", "parallel"]
OnError = Literal["stop", "continue"]


class TextOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How the calls of one text are run."""

    mode: Mode = "sequential"
    on_error: OnError | None = None
    timeout_ms: int | None = None
    dry_run: bool = False
    ask: bool = False
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
    around: Surroundings,
    options: TextOptions,
    on_result: Callable[[ExecutionResult], None] | None = None,
    on_unread: Callable[[str], None] | None = None,
) -> ExecuteTextResult:
    """Runs the calls of a text; every planned call has a result, also those that were not reached (V54).

    ``on_unread`` is told the observation of each block that gave no call before the results of the blocks behind it.
    """
    planned = plan_text(document)
    unread = unread_observations(document)
    untold = list(unread)
    results: dict[int, ExecutionResult] = {}
    steps = _step_counts(planned)
    stopped_at: int | None = None

    def tell_unread(before: int | None) -> None:
        while untold and (before is None or untold[0][0] < before):
            text = untold.pop(0)[1]
            if on_unread is not None:
                on_unread(text)

    def tell(item: Planned, result: ExecutionResult) -> None:
        results[item.index] = result
        tell_unread(item.block)
        if on_result is not None:
            on_result(result)

    async def one(item: Planned) -> ExecutionResult:
        result = await _one(item, document, around, options, steps)
        tell(item, result)
        return result

    if options.mode == "parallel" and not any(item.call.protocol == "tam" for item in planned):
        await asyncio.gather(*(one(item) for item in planned))
    else:
        stopped_block: int | None = None
        for item in planned:
            if item.block == stopped_block or (around.cancelled is not None and around.cancelled.is_set()):
                tell(item, _not_reached(item, options, steps))
                continue
            result = await one(item)
            if result.status not in ("success", "accepted") and _stops(item.call, options.on_error):
                stopped_block = item.block
                stopped_at = item.index if stopped_at is None else stopped_at
    tell_unread(None)
    ordered = [results[item.index] for item in planned]
    told = [*unread, *((item.block, results[item.index].observation) for item in planned)]
    text = "\n".join(words for _block, words in sorted(told, key=lambda one: one[0]))
    return ExecuteTextResult(
        parse=parse_result(document, options.encoding, options.call_prefix),
        results=ordered,
        observation=text,
        stopped_at=UNSET if stopped_at is None else stopped_at,
    )


async def _one(
    item: Planned, document: Document, around: Surroundings, options: TextOptions, steps: dict[int, int]
) -> ExecutionResult:
    call = item.call
    step = call.step if steps.get(item.block, 0) > 1 else None
    if item.refused is not None:
        result = _refused(item, document, options, step)
        trail = Trail(around.audit, around.log, str(around.root), result.call_id)
        trail.note("call.refused", "info", name=call.tool_id, code=item.refused.code, message=message(item.refused))
        return result
    return await execute(
        CallRequest(
            call_id=call_id(item, options),
            name=call.tool_id,
            call=call,
            source=document.text,
            encoding=options.encoding,
            timeout_ms=options.timeout_ms,
            dry_run=options.dry_run,
            ask=options.ask,
            # Each step of a block is an execution of its own under the block's request id.
            idempotency_key=f"{call.request_id}#{call.step or 1}" if call.request_id else "",
            style=item.style,
            step=step,
        ),
        around,
        attempts=1 + (call.retry or 0),
    )


def call_id(item: Planned, options: TextOptions) -> str:
    """The id that the parse result gives the same call."""
    return f"{options.call_prefix}-{item.index + 1}"


def _stops(call: Call, on_error: OnError | None) -> bool:
    if call.protocol == "tam":
        return (call.on_error or on_error or "stop") == "stop"
    default = "stop" if call.protocol == "action" else "continue"
    return (on_error or default) == "stop"


def _step_counts(planned: list[Planned]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for item in planned:
        counts[item.block] = counts.get(item.block, 0) + (item.call.step is not None)
    return counts


def _first_error(block: Block) -> Diag | None:
    return next((diag for diag in block.diagnostics if severity(diag) == "error"), None)


def _empty(item: Planned, options: TextOptions) -> ExecutionResult:
    return ExecutionResult(
        call_id=call_id(item, options),
        tool_id=item.call.tool_id,
        tool_call_id=item.call.meta.get("id", UNSET),
        version="",
        status="error",
        usage=Usage(cpu_ms=0.0, max_rss_bytes=0),
        permissions=Permissions(requested={}, granted=Granted(), denied=[]),
    )


def _refused(item: Planned, document: Document, options: TextOptions, step: int | None) -> ExecutionResult:
    assert item.refused is not None
    result = _empty(item, options)
    result.error = failure("ParameterValidationError", message(item.refused), code=item.refused.code)
    if item.style == "vcp":
        result.observation = observation(result, "vcp", step=step)
    elif item.style.partition("-")[0] in ("action", "tam"):
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
    result = _empty(item, options)
    result.status = "cancelled"
    step = item.call.step if steps.get(item.block, 0) > 1 else None
    result.observation = observation(result, item.style, step=step)
    return result


def unread_observations(document: Document) -> list[tuple[int, str]]:
    """Observations, each with the number of its block in the text, for blocks that gave no call at all: cut off, not readable, or dropped (A29, V37).

    A dropped block is only a warning of reading; the model that wrote it must learn of it all the same.
    """
    found: list[tuple[int, str]] = []
    for number, block in enumerate(document.blocks):
        cause = _first_error(block) or next((diag for diag in block.diagnostics if severity(diag) == "warning"), None)
        if cause is not None and not block.calls:
            error = failure("ParameterValidationError", message(cause), code=cause.code)
            sentence = _malformed(block.protocol, cause, document)
            found.append((number, malformed_result(error, sentence, style_of(block.protocol))))
    return found


def _malformed(protocol: str, error: Diag, document: Document) -> str:
    line, column = LineIndex(document.text).position(error.span[0])
    return malformed(protocol, line + 1, column + 1, message(error))


def has_unread(document: Document) -> bool:
    """Whether a block was found that could not be read."""
    return bool(unread_observations(document))
