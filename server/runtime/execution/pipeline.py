"""One call, from a name and arguments to a result: resolve → check → authorize → run → judge.

The order is the safety: nothing runs before the tool is known, its arguments fit, its rights are granted, the policy lets it, and a person was
asked where the policy says so. ``authorize`` is the one place of what comes before a person's word, for a call that runs and for one that is only
asked about ahead. Every way it can end is an ``ExecutionResult`` (interface, Running); this module never raises for what a tool or a model did.
Must not know framing or faces.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult
from tamis.protocols.observation import observation, plain
from tamis.server.runtime.calls.model import CallContext, CallRequest, Question, Stopped, end_state, states_of
from tamis.server.runtime.calls.prepared import CallPlan, Prepared
from tamis.server.runtime.calls.runner import Invocation, Runner, empty_result, failure
from tamis.server.runtime.execution.approving import (
    approved,
    check_replay,
    check_ruled,
    question_ahead,
    would_ask,
)
from tamis.server.runtime.execution.idempotency import run_once
from tamis.server.runtime.execution.preparing import (
    check_allowed,
    check_listed,
    check_rate,
    checked_arguments,
    edited_arguments,
    plan_of,
    ready_to_run,
    run_attempts,
    with_resources,
    with_targets,
)
from tamis.server.runtime.execution.resolving import (
    look_up,
    note_abuse,
    note_ended,
    note_received,
    note_rights,
    resolve,
)
from tamis.server.runtime.execution.suspended import has_same_key, may_park
from tamis.server.runtime.handlers.script.judge import UNSANDBOXED, masked
from tamis.server.runtime.handlers.script.running import target_of
from tamis.server.runtime.observe.masking import left_result, result_without
from tamis.server.runtime.observe.trail import Trail
from tamis.server.runtime.tools.builtin import mirror
from tamis.server.runtime.tools.registry import Resolved, Tool

if TYPE_CHECKING:
    from tamis.server.runtime.observe.tracing import Span


class _Course(msgspec.Struct, kw_only=True):
    """A call on its way to its result."""

    asked: CallRequest
    """The call as it came."""
    request: CallRequest
    """The call as far as it was read by now: under its tool's own name, its resources found."""
    context: CallContext
    attempts: int
    trail: Trail
    result: ExecutionResult
    started: float
    found: Resolved | None = None
    """What the call's name leads to, where it was looked up before."""
    plan: CallPlan | None = None
    """What is the same in each call of its tool; None before it is known."""
    resources: tuple[str, ...] = ()
    mirrors: bool = False
    """Whether the output is the script service's own record, also of a call that reached no script."""


def _course(
    request: CallRequest,
    context: CallContext,
    trail: Trail,
    attempts: int = 1,
    found: Resolved | None = None,
    plan: CallPlan | None = None,
) -> _Course:
    return _Course(
        asked=request,
        request=request,
        context=context,
        attempts=attempts,
        trail=trail,
        result=empty_result(request.call_id, request.name, call=request.call),
        started=time.perf_counter(),
        found=found,
        plan=plan,
    )


async def execute(request: CallRequest, context: CallContext, attempts: int = 1) -> ExecutionResult:
    """Runs one call, up to ``attempts`` times while it fails (seed 002 ``retry_N``); always returns a result.

    With an idempotency key the call is run once: the same key and content give the stored result again (ruling 26).
    """
    if may_park(request, context):
        # what would be asked stands for the call: the same one may come back to its run
        question = await question_of(request, context, anyway=True)
        if question is not None:
            return await _in_suspended_run(request, context, attempts, question.binding)
    return await _recorded(request, context, attempts)


async def question_of(request: CallRequest, context: CallContext, *, anyway: bool = False) -> Question | None:
    """The question that a call would put to a person, with ``anyway`` if it had to; None when it would put none, whatever else is
    wrong with it. Runs nothing."""
    course = _course(request, context, Trail(None, None, str(context.root), request.call_id))
    try:
        ready = authorize(course)
        check_runner(ready.tool, context)
        return await question_ahead(course.request, ready, context, anyway=anyway)
    except Stopped:
        return None


# resolve → check → authorize → run → judge


def authorize(course: _Course) -> Prepared:
    """The call as it would run, which neither the registry, the agent's bounds nor the policy forbids. Raises ``Stopped``.

    What is known of the call when it is stopped is in the course's result.
    """
    context, trail, result = course.context, course.trail, course.result
    if context.closed:
        raise Stopped("blocked", failure("SecurityError", context.closed))
    tool, course.request = resolve(course.request, context.registry, course.found)
    plan = course.plan = course.plan or plan_of(tool, context)
    course.mirrors = plan.mirrors
    result.tool_id, result.version = tool.tool_id, tool.version
    trail.of_tool(tool.tool_id, tool.version)
    if not plan.is_listed:
        check_listed(tool, context)
    course.request, course.resources = with_resources(course.request, context)
    ready = ready_to_run(
        tool, checked_arguments(course.request, tool, context, result), course.resources, context, trail, plan
    )
    result.permissions = ready.rights.permissions
    note_rights(ready.rights, trail)
    if not plan.is_allowed:
        check_allowed(tool, ready.rights, context)
    if tool.targets:
        with_targets(ready.args, tool, ready.rights, context)  # before anybody is asked
    return ready


def check_runner(tool: Tool, context: CallContext) -> Runner:
    """What runs the tool's calls. Raises ``Stopped`` where it cannot now."""
    return _able(plan_of(tool, context), context)


def _able(plan: CallPlan, context: CallContext) -> Runner:
    runner, tool = plan.runner, plan.tool
    missing = runner.problem(tool, context.services.handlers)
    if missing:
        raise Stopped("error", failure(runner.problem_type, missing))
    return runner


async def _execute(course: _Course) -> ExecutionResult:
    """The whole sentence: an authorized call is run, or answered with what its key stands for."""
    try:
        ready = authorize(course)
        if not course.request.idempotency_key or course.request.dry_run:
            return await _run(course, ready)
        # a stored result is for whom the policy lets call, as it is now: all that forbids a call stands before it
        check_ruled(ready, course.context, course.trail)
    except Stopped as stop:
        return _judged(course, stop)

    async def may_replay(stored: ExecutionResult) -> None:
        await check_replay(course.request, ready, course.context, course.trail, stored, _no_edit)

    return await _keyed(
        course.asked, course.context, course.trail, lambda: _run(course, ready), course.attempts, may_replay
    )


async def _run(course: _Course, ready: Prepared) -> ExecutionResult:
    """Asks where it must be asked, and runs the call."""
    try:
        runner = _able(course.plan or plan_of(ready.tool, course.context), course.context)
        if course.request.dry_run:
            # Nothing starts, so nobody is asked: that a person would be is part of the answer.
            asks = await would_ask(course.request, ready, course.context, course.trail)
            check_rate(ready.tool, course.context)
            course.result.status = "success"
            course.result.output = {
                "dryRun": True,
                "args": masked(ready.args, ready.tool),
                **({"asks": True} if asks else {}),
            }
            return _judged(course)
        if not _needs_nobody(course):
            asked = time.perf_counter()
            try:
                ready = await _approved(course, ready)
            finally:
                # How long a person thinks is not how long the call takes.
                course.started += time.perf_counter() - asked
        check_rate(ready.tool, course.context)
        call = _begun(course, ready)
        if (
            ready.tool.manifest.execution.mode == "async"
            and course.context.services.connection.stays
            and not course.request.wait
        ):
            await course.context.services.execution.tasks.start(
                call, lambda own: _run_task(runner, own, course.attempts)
            )
            course.result.duration_ms = _since(course.started)
            return _observed(course.result, course.request, course.trail, problems=False)
        await run_attempts(runner, call, course.attempts)
    except Stopped as stop:
        return _judged(course, stop)
    return _judged(course)


def _needs_nobody(course: _Course) -> bool:
    """Whether neither what is in force nor the call itself wants a person's word, or has brought one; then there is nothing to look at."""
    plan, request = course.plan, course.request
    if plan is None or not plan.is_free or course.resources:
        return False
    return not request.ask and request.approval is None and course.context.asking.suspended is None


async def _approved(course: _Course, ready: Prepared) -> Prepared:
    """What a person lets run, where one must be asked. Raises ``Stopped``."""
    context, trail = course.context, course.trail

    def again(args: dict[str, Any]) -> Prepared:
        changed = ready_to_run(
            ready.tool, edited_arguments(args, ready.tool, context, course.result), course.resources, context, trail
        )
        check_allowed(ready.tool, changed.rights, context)
        with_targets(changed.args, ready.tool, changed.rights, context)
        return changed

    allowed = await approved(course.request, ready, context, trail, course.result, again)
    course.result.permissions = allowed.rights.permissions
    return allowed


def _begun(course: _Course, ready: Prepared) -> Invocation:
    """The call as its runner gets it, from now on told to be executing. Raises ``Stopped`` for one that was cancelled."""
    context, request = course.context, course.request
    if ready.tool.manifest.execution.mode == "async":
        # how long a task may run is the operator's to say apart from other calls
        context = msgspec.structs.replace(context, in_task=True)
    args, target = ready.args, ready.target
    if ready.tool.targets:
        args = with_targets(args, ready.tool, ready.rights, context)
        if args is not ready.args and target is not None:
            target = target_of(ready.tool, args)
    call = Invocation(
        request=request,
        tool=ready.tool,
        args=args,
        target=target,
        rights=ready.rights,
        context=context,
        trail=course.trail,
        result=course.result,
        contents=ready.contents,
        run_call=execute,
    )
    if context.cancelled is not None and context.cancelled.is_set():
        raise Stopped("cancelled")
    if context.asking.suspended is not None and context.asking.polls:
        context.asking.suspended.call = call
    if context.observer.on_event is not None:
        context.observer.on_event(request.call_id, "executing")
    return call


async def _run_task(runner: Runner, call: Invocation, attempts: int) -> ExecutionResult:
    """Runs a call as a task, to its end."""
    result, started = call.result, time.perf_counter()
    try:
        if call.context.cancelled is not None and call.context.cancelled.is_set():
            raise Stopped("cancelled")
        await run_attempts(runner, call, attempts)
    except Stopped as stop:
        result.status, result.error = stop.status, UNSET if stop.error is None else stop.error
    call.context.services.execution.tasks.judge(result)
    result.duration_ms = _since(started)
    note_ended(result, call.trail, "task.ended")
    call.context.services.records.metrics.ended(result, known=True)
    call.context.services.records.usage.note(result)
    if call.context.observer.on_event is not None:
        call.context.observer.on_event(call.request.call_id, end_state(result.status))
    return _observed(result, call.request, call.trail, problems=False)


def _judged(course: _Course, stop: Stopped | None = None) -> ExecutionResult:
    """The result of a call that ran to its end, or was stopped."""
    result, problems = course.result, False
    if stop is not None:
        result.status = stop.status
        if stop.error is not None:
            result.error = stop.error
            problems = stop.error.type in ("UnknownTool", "ParameterValidationError")
            if course.mirrors and result.output is UNSET:
                # the record is the output in every case, also where no script was reached (ruling 43)
                mirror(result)
    result.duration_ms = _since(course.started)
    if course.request.told_later and result.status == "success" and _hides_nothing(result, course.trail):
        return result
    return _observed(result, course.request, course.trail, problems=problems)


def _hides_nothing(result: ExecutionResult, trail: Trail) -> bool:
    """Whether the observation of a success is made of the result alone, so that who needs it later makes the same."""
    return not trail.secrets and (result.sandbox is None or result.sandbox.backend != UNSANDBOXED)


def _observed(result: ExecutionResult, request: CallRequest, trail: Trail, *, problems: bool) -> ExecutionResult:
    if request.call is not None and request.name != result.tool_id and "@" not in request.name:
        result.called_as = request.name
    shown = _without_places(result_without(result, trail.secrets), trail.root)
    result.observation = observation(
        shown, request.style, step=request.step, problems=problems and result.attempts == 0
    )
    if result.sandbox is not None and result.sandbox.backend == UNSANDBOXED:
        # an operator insisted; whoever reads the result must know (interface, Running)
        result.observation = f"Note: no sandbox held this run of {plain(result.tool_id)}.\n{result.observation}"
    # the one place that every result passes, whatever its call came to and whoever asked
    return left_result(result, trail.secrets, trail.granted)


def _without_places(result: ExecutionResult, root: str) -> ExecutionResult:
    """The result as a model is told of it: why a call failed names no place of this machine above the project; a host still reads it."""
    if result.error is UNSET:
        return result
    message = result.error.message
    for place, short in ((root, "."), (os.path.expanduser("~"), "~")):
        if len(place) > 1 and place in message:
            message = re.sub(rf"(?<![\w.-]){re.escape(place)}(?![\w.-])", lambda _found, short=short: short, message)
    if message == result.error.message:
        return result
    return msgspec.structs.replace(result, error=msgspec.structs.replace(result.error, message=message))


# what stands around the sentence


async def _recorded(request: CallRequest, context: CallContext, attempts: int) -> ExecutionResult:
    """Runs a call that can be cancelled meanwhile, and writes down what becomes of it."""
    span = None if context.services.records.telemetry is None else _span(request, context)
    if span is not None:
        context = msgspec.structs.replace(context, trace=span.trace)
    services = context.services
    trail = Trail(services.audit, services.log, str(context.root), request.call_id, context.trace)
    observer, states = context.observer, None
    afterwards, cancelled = observer.afterwards, context.cancelled or asyncio.Event()
    if observer.on_event is not None:
        states = states_of(observer.on_event)
        states.begin(request.call_id)
    # the ends of the calls that it makes are not put off with its own
    observer = msgspec.structs.replace(observer, on_event=states, afterwards=None)
    context = msgspec.structs.replace(context, observer=observer, cancelled=cancelled)
    trail.keep_secret(context.secrets)
    found = look_up(request, context.registry)
    plan = None if found.tool is None else plan_of(found.tool, context)
    note_received(request, plan, context, trail)
    running_calls = services.running_calls
    entry = running_calls.add(request.call_id, context.caller.session_id, cancelled)
    try:
        result = await _execute(_course(request, context, trail, attempts, found, plan))
    except BaseException as error:
        trail.note("call.ended", "warning", status="aborted", message=type(error).__name__)
        if states is not None:
            states(request.call_id, "cancelled")
        if span is not None:
            span.ended(None)
        raise
    finally:
        running_calls.remove(entry)
    if span is not None:
        span.ended(result)
    if states is not None:
        states(request.call_id, end_state(result.status))
    if afterwards is None:
        _ended(result, context, trail)
    else:
        afterwards(partial(_ended, result, context, trail))
    return result


def _ended(result: ExecutionResult, context: CallContext, trail: Trail) -> None:
    """Writes down what became of a call, and counts it."""
    note_ended(result, trail)
    # a tool that was found has a version; a name that a model made up is not counted by itself
    context.services.records.metrics.ended(result, known=bool(result.version))
    context.services.records.usage.note(result)
    note_abuse(result, context, trail)


def _span(request: CallRequest, context: CallContext) -> Span | None:
    telemetry = context.services.records.telemetry
    if telemetry is None:
        return None
    caller = context.caller
    told = {"tamis.face": caller.face, "session.id": caller.session_id, "gen_ai.agent.id": caller.agent_id}
    return telemetry.begin(request.call_id, request.name, context.trace, told)


async def _keyed(
    request: CallRequest,
    context: CallContext,
    trail: Trail,
    run: Callable[[], Awaitable[ExecutionResult]],
    attempts: int = 1,
    may_replay: Callable[[ExecutionResult], Awaitable[None]] | None = None,
) -> ExecutionResult:
    """What ``run`` gives, or the stored result of the request's key once ``may_replay`` let it pass (else it raises ``Stopped``)."""
    try:
        result = await run_once(request, context, trail, run, attempts)
        if result.replayed and may_replay is not None:
            await may_replay(result)
    except Stopped as stop:
        result = empty_result(request.call_id, request.name, stop.status, call=request.call)
        result.error = UNSET if stop.error is None else stop.error
        return _observed(result, request, trail, problems=stop.error is not None)
    return _observed(result, request, trail, problems=False) if result.replayed else result


async def _in_suspended_run(request: CallRequest, context: CallContext, attempts: int, binding: str) -> ExecutionResult:
    """As far as the run of a workflow comes whose host polls (``suspended.py``)."""
    # the run may go on when this request is long answered
    context = context.having(afterwards=None)
    runs = context.services.execution.suspended
    match = runs.of(request, binding)
    if match is None:
        run = runs.begin(request, context, binding, lambda own: _recorded(request, own, attempts))
        return await run.outcome(request, context)
    run, answer = match

    async def go_on() -> ExecutionResult:
        run.take(request, context, answer)
        return await run.outcome(request, context)

    if not request.idempotency_key or has_same_key(request, run.request) or run.call is None:
        return await go_on()
    return await _keyed(request, context, run.call.trail, go_on)


def _no_edit(_args: dict[str, Any]) -> Prepared:
    text = "what was run cannot be changed: the stored result of a key is that of its own arguments"
    raise Stopped("error", failure("ParameterValidationError", text))


def _since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)
