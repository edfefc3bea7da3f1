"""One call, from a name and arguments to a result: resolve, check, ask, grant, run, judge.

The order is the safety: nothing runs before the tool is known, its arguments fit, a person was asked where the policy says
so, and the grant stands. Every way it can end is an ``ExecutionResult`` (interface, Running); this module never raises for
what a tool or a model did. Must not know framing or faces.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult, Granted, Permissions, Usage
from tamis.protocols.observation import observation, plain
from tamis.server.runtime.approvals.prepared import Prepared
from tamis.server.runtime.calls.approving import approved, question_ahead
from tamis.server.runtime.calls.dispatch import Invocation, Runner, runner_of
from tamis.server.runtime.calls.failures import failure
from tamis.server.runtime.calls.model import CallRequest, Question, Stopped, Surroundings
from tamis.server.runtime.calls.noting import note_abuse, note_ended, note_received, note_rights
from tamis.server.runtime.calls.once import run_once
from tamis.server.runtime.calls.parked import has_same_key, may_park
from tamis.server.runtime.calls.preparing import (
    check_allowed,
    check_listed,
    check_rate,
    checked_arguments,
    edited_arguments,
    ready_to_run,
    with_resources,
)
from tamis.server.runtime.calls.resolving import resolve
from tamis.server.runtime.calls.retries import run_attempts
from tamis.server.runtime.calls.states import end_state, states_of
from tamis.server.runtime.records.masking import result_without
from tamis.server.runtime.records.trail import Trail
from tamis.server.runtime.scripts.judge import UNSANDBOXED, masked
from tamis.server.runtime.scripts.service import is_script_service, mirror
from tamis.server.runtime.tasks.limits import for_tasks

if TYPE_CHECKING:
    from tamis.server.runtime.records.telemetry import Span


async def execute(request: CallRequest, around: Surroundings, attempts: int = 1) -> ExecutionResult:
    """Runs one call, up to ``attempts`` times while it fails (seed 002 ``retry_N``); always returns a result.

    With an idempotency key the call is run once: the same key and content give the stored result again (ruling 26).
    """
    if may_park(request, around):
        # what would be asked stands for the call: the same one may come back to its run
        question = await question_of(request, around, anyway=True)
        if question is not None:
            return await _in_parts(request, around, attempts, question.binding)
    return await _run(request, around, attempts)


async def _in_parts(request: CallRequest, around: Surroundings, attempts: int, binding: str) -> ExecutionResult:
    """As far as the run of a workflow comes whose host polls (``parked.py``)."""
    runs = around.parts.parked
    found = runs.of(request, binding)
    if found is None:
        run = runs.begin(request, around, binding, lambda own: _run(request, own, attempts))
        return await run.outcome(request, around)
    run, given = found

    async def go_on() -> ExecutionResult:
        run.take(request, around, given)
        return await run.outcome(request, around)

    if not request.idempotency_key or has_same_key(request, run.request) or run.call is None:
        return await go_on()
    return await _keyed(request, around, run.call.trail, go_on)


async def _run(request: CallRequest, around: Surroundings, attempts: int) -> ExecutionResult:
    span = _span(request, around)
    if span is not None:
        around = msgspec.structs.replace(around, trace=span.trace)
    trail = Trail(around.audit, around.log, str(around.root), request.call_id, around.trace)
    states, cancelled = states_of(around.on_event), around.cancelled or asyncio.Event()
    around = msgspec.structs.replace(around, on_event=states, cancelled=cancelled)
    states.begin(request.call_id)
    trail.keep_secret(around.secrets)
    note_received(request, around, trail)
    try:
        with around.parts.running_calls.entered(request.call_id, around.caller.session_id, cancelled):
            result = await _once(request, around, attempts, trail)
    except BaseException as error:
        trail.note("call.ended", "warning", status="aborted", message=type(error).__name__)
        states(request.call_id, "cancelled")
        if span is not None:
            span.ended(None)
        raise
    if span is not None:
        span.ended(result)
    states(request.call_id, end_state(result.status))
    note_ended(result, trail)
    # a tool that was found has a version; a name that a model made up is not counted by itself
    around.parts.metrics.ended(result, known=bool(result.version))
    around.parts.usage.note(result)
    note_abuse(result, around, trail)
    return result


def _span(request: CallRequest, around: Surroundings) -> Span | None:
    telemetry = around.parts.telemetry
    if telemetry is None:
        return None
    caller = around.caller
    told = {"tamis.face": caller.face, "session.id": caller.session_id, "gen_ai.agent.id": caller.agent_id}
    return telemetry.begin(request.call_id, request.name, around.trace, told)


async def _once(request: CallRequest, around: Surroundings, attempts: int, trail: Trail) -> ExecutionResult:
    if not request.idempotency_key or request.dry_run:
        return await _execute(request, around, attempts, trail)
    return await _keyed(request, around, trail, lambda: _execute(request, around, attempts, trail), attempts)


async def _keyed(
    request: CallRequest,
    around: Surroundings,
    trail: Trail,
    run: Callable[[], Awaitable[ExecutionResult]],
    attempts: int = 1,
) -> ExecutionResult:
    try:
        result = await run_once(request, around, trail, run, attempts)
    except Stopped as stop:
        result = _new_result(request)
        result.status, result.error = stop.status, UNSET if stop.error is None else stop.error
        return _observed(result, request, trail, problems=stop.error is not None)
    return _observed(result, request, trail, problems=False) if result.replayed else result


def _observed(result: ExecutionResult, request: CallRequest, trail: Trail, *, problems: bool) -> ExecutionResult:
    shown = result_without(result, trail.secrets)
    result.observation = observation(
        shown, request.style, step=request.step, problems=problems and result.attempts == 0
    )
    if result.sandbox is not None and result.sandbox.backend == UNSANDBOXED:
        # an operator insisted; whoever reads the result must know (interface, Running)
        result.observation = f"Note: no sandbox held this run of {plain(result.tool_id)}.\n{result.observation}"
    return result


def _new_result(request: CallRequest) -> ExecutionResult:
    return ExecutionResult(
        call_id=request.call_id,
        tool_id=request.name,
        tool_call_id=UNSET if request.call is None else request.call.meta.get("id", UNSET),
        version="",
        status="error",
        usage=Usage(cpu_ms=0.0, max_rss_bytes=0),
        permissions=Permissions(requested={}, granted=Granted(), denied=[]),
    )


async def _execute(request: CallRequest, around: Surroundings, attempts: int, trail: Trail) -> ExecutionResult:
    started = time.perf_counter()
    result = _new_result(request)
    problems = runs_scripts = False
    try:
        if around.closed:
            raise Stopped("blocked", failure("SecurityError", around.closed))
        tool, request = resolve(request, around.registry)
        result.tool_id, result.version = tool.tool_id, tool.manifest.version
        runs_scripts = is_script_service(tool.manifest)
        trail.of_tool(tool.tool_id, tool.manifest.version)
        check_listed(tool, around)
        request, resources = with_resources(request, around)
        ready = ready_to_run(tool, checked_arguments(request, tool), resources, around, trail)
        result.permissions = ready.rights.permissions
        note_rights(ready.rights, trail)
        check_allowed(tool, ready.rights, around)
        runner = runner_of(tool)
        missing = runner.problem(tool, around.parts)
        if missing:
            raise Stopped("error", failure(runner.problem_type, missing))

        def again(args: dict[str, Any]) -> Prepared:
            changed = ready_to_run(tool, edited_arguments(args, tool), resources, around, trail)
            check_allowed(tool, changed.rights, around)
            return changed

        ready = await approved(request, ready, around, trail, result, again)
        args, target, rights = ready.args, ready.target, ready.rights
        result.permissions = rights.permissions
        check_rate(tool, around)
        if request.dry_run:
            result.status, result.output = "success", {"dryRun": True, "args": masked(args, tool)}
        else:
            call = Invocation(
                request=request,
                tool=tool,
                args=args,
                target=target,
                rights=rights,
                around=around,
                trail=trail,
                result=result,
            )
            if around.cancelled is not None and around.cancelled.is_set():
                raise Stopped("cancelled")
            if around.parked is not None and around.polls:
                around.parked.call = call
            if around.on_event is not None:
                around.on_event(request.call_id, "executing")
            if tool.manifest.execution.mode == "async":
                # how long a task may run is the operator's to say apart from other calls
                call.around = around = for_tasks(around)
                if around.parts.stays and not request.wait:
                    await around.parts.tasks.start(call, lambda own: _apart(runner, own, attempts))
                    result.duration_ms = _since(started)
                    return _observed(result, call.request, trail, problems=False)
            await run_attempts(runner, call, attempts)
    except Stopped as stop:
        result.status = stop.status
        if stop.error is not None:
            result.error = stop.error
            problems = stop.error.type in ("UnknownTool", "ParameterValidationError")
            if runs_scripts and result.output is UNSET:
                # the record is the output in every case, also where no script was reached (ruling 43)
                mirror(result)
    result.duration_ms = _since(started)
    return _observed(result, request, trail, problems=problems)


async def _apart(runner: Runner, call: Invocation, attempts: int) -> ExecutionResult:
    """Runs a call as a task, to its end."""
    result, started = call.result, time.perf_counter()
    try:
        if call.around.cancelled is not None and call.around.cancelled.is_set():
            raise Stopped("cancelled")
        await run_attempts(runner, call, attempts)
    except Stopped as stop:
        result.status, result.error = stop.status, UNSET if stop.error is None else stop.error
    call.around.parts.tasks.judge(result)
    result.duration_ms = _since(started)
    note_ended(result, call.trail, "task.ended")
    call.around.parts.metrics.ended(result, known=True)
    call.around.parts.usage.note(result)
    if call.around.on_event is not None:
        call.around.on_event(call.request.call_id, end_state(result.status))
    return _observed(result, call.request, call.trail, problems=False)


async def question_of(request: CallRequest, around: Surroundings, *, anyway: bool = False) -> Question | None:
    """The question that a call would put to a person, with ``anyway`` if it had to; None when it would put none, whatever else is
    wrong with it. Runs nothing."""
    trail = Trail(None, around.log, str(around.root), request.call_id)
    try:
        tool, request = resolve(request, around.registry)
        check_listed(tool, around)
        request, resources = with_resources(request, around)
        ready = ready_to_run(tool, checked_arguments(request, tool), resources, around, trail)
        check_allowed(tool, ready.rights, around)
        if runner_of(tool).problem(tool, around.parts):
            return None
        return await question_ahead(request, ready, around, anyway=anyway)
    except Stopped:
        return None


def _since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)
