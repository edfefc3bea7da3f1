"""One call, from a name and arguments to a result: resolve, check, ask, grant, run, judge.

The order is the safety: nothing runs before the tool is known, its arguments fit, a person was asked where the policy says
so, and the grant stands. Every way it can end is an ``ExecutionResult`` (interface, Running); this module never raises for
what a tool or a model did. Must not know framing or faces.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult, Granted, Permissions, Problem, Usage
from tamis.protocols.manifest.reading import McpTool
from tamis.protocols.model import Param, Piece, Value
from tamis.protocols.observation import observation, plain
from tamis.protocols.schema.secrets import MASK
from tamis.server.runtime.agents.discovery import in_inventory
from tamis.server.runtime.approvals.prepared import Prepared
from tamis.server.runtime.calls.approving import approved, question_ahead
from tamis.server.runtime.calls.checking import Checked, check_arguments, check_parsed, check_wire_call
from tamis.server.runtime.calls.dispatch import Invocation, Runner, runner_of, runs_script
from tamis.server.runtime.calls.failures import failure
from tamis.server.runtime.calls.model import CallRequest, Question, Stopped, Surroundings
from tamis.server.runtime.calls.once import run_once
from tamis.server.runtime.calls.rates import SUSPICIOUS
from tamis.server.runtime.calls.resolving import resolve, tool_of
from tamis.server.runtime.calls.resources import MAX_URIS, ResourceError, is_uris, resolve_resource
from tamis.server.runtime.calls.retries import run_attempts
from tamis.server.runtime.calls.states import end_state, states_of
from tamis.server.runtime.records.masking import result_without, secret_texts
from tamis.server.runtime.records.trail import Trail
from tamis.server.runtime.registry.registry import Tool
from tamis.server.runtime.rights.path_grants import Place, inside
from tamis.server.runtime.rights.permissions import Grant, grant
from tamis.server.runtime.rights.places import place_of
from tamis.server.runtime.scripts.judge import MAX_DENIED, UNSANDBOXED, masked, received
from tamis.server.runtime.scripts.running import target_of
from tamis.server.runtime.scripts.service import ScriptTarget
from tamis.server.runtime.tasks.limits import for_tasks

if TYPE_CHECKING:
    from tamis.server.runtime.records.telemetry import Span


async def execute(request: CallRequest, around: Surroundings, attempts: int = 1) -> ExecutionResult:
    """Runs one call, up to ``attempts`` times while it fails (seed 002 ``retry_N``); always returns a result.

    With an idempotency key the call is run once: the same key and content give the stored result again (ruling 26).
    """
    span = _span(request, around)
    if span is not None:
        around = msgspec.structs.replace(around, trace=span.trace)
    trail = Trail(around.audit, around.log, str(around.root), request.call_id, around.trace)
    states, cancelled = states_of(around.on_event), around.cancelled or asyncio.Event()
    around = msgspec.structs.replace(around, on_event=states, cancelled=cancelled)
    states.begin(request.call_id)
    _note_received(request, around, trail)
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
    _note_ended(result, trail)
    # a tool that was found has a version; a name that a model made up is not counted by itself
    around.parts.metrics.ended(result, known=bool(result.version))
    around.parts.usage.note(result)
    _note_abuse(result, around, trail)
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
    try:
        result = await run_once(request, around, trail, lambda: _execute(request, around, attempts, trail))
    except Stopped as stop:
        result = _new_result(request)
        result.status, result.error = stop.status, UNSET if stop.error is None else stop.error
        return _observed(result, request, trail, problems=stop.error is not None)
    return _observed(result, request, trail, problems=False) if result.replayed else result


def _note_received(request: CallRequest, around: Surroundings, trail: Trail) -> None:
    given = _given_args(request)
    tool = tool_of(request, around.registry)
    if tool is not None:
        shown = received(given, tool)
        trail.keep_secret(secret_texts(given, shown))
    else:
        # what is secret in them is not known
        shown = dict.fromkeys(given, MASK)
    trail.note(
        "call.received",
        name=request.name,
        version=request.version,
        args=shown,
        caller={name: text for name, text in msgspec.to_builtins(around.caller).items() if text},
        dryRun=request.dry_run or None,
        requestId=request.idempotency_key,
    )


def _note_ended(result: ExecutionResult, trail: Trail, event: str = "call.ended") -> None:
    error = None if result.error is UNSET else result.error
    details = None if error is None or error.details is UNSET else error.details
    trail.note(
        event,
        "info",
        status=result.status,
        error=None if error is None else error.type,
        message=None if error is None else error.message,
        limit=None if details is None or details.limit is UNSET else details.limit,
        durationMs=result.duration_ms,
        attempts=result.attempts,
        usage=msgspec.to_builtins(result.usage) if result.attempts else None,
        sandbox=_holding(result),
        replayed=result.replayed or None,
        taskId=None if result.task_id is UNSET else result.task_id,
    )


def _holding(result: ExecutionResult) -> dict[str, Any] | None:
    """What held a run, with the layers that did not: those that did are nearly always all."""
    info = result.sandbox
    if info is None:
        return None
    from tamis.sandbox.job import LAYERS

    told = {"backend": info.backend, "version": info.version, "warm": info.warm, "layers": len(info.layers)}
    missing = [layer for layer in LAYERS if layer not in info.layers]
    return told | ({"missing": missing} if missing and info.backend != UNSANDBOXED else {})


def _note_abuse(result: ExecutionResult, around: Surroundings, trail: Trail) -> None:
    secure = result.error is not UNSET and result.error.type == "SecurityError"
    refused = secure + trail.refused
    if refused and around.refusals is not None and around.refusals.add(result.tool_id, refused):
        text = f"the tool was refused {SUSPICIOUS} times within a minute; look at what it is and what it was given"
        trail.note("abuse.suspected", "warning", message=text)


def _given_args(request: CallRequest) -> dict[str, Any]:
    """The arguments as they came, not coerced."""
    if request.call is not None:
        return dict(request.call.args(request.source))
    if request.wire_call is not None:
        args = request.wire_call.get("args")
        return cast("dict[str, Any]", args) if isinstance(args, dict) else {}
    return request.args


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
    problems = False
    try:
        if around.closed:
            raise Stopped("blocked", failure("SecurityError", around.closed))
        tool, request = resolve(request, around.registry)
        result.tool_id, result.version = tool.tool_id, tool.manifest.version
        trail.of_tool(tool.tool_id, tool.manifest.version)
        _listed(tool, around)
        request, resources = _with_resources(request, around)
        ready = _ready(tool, _arguments(request, tool), resources, around, trail)
        result.permissions = ready.rights.permissions
        _note_rights(ready.rights, trail)
        _allowed(tool, ready.rights, around)
        runner = runner_of(tool)
        missing = runner.problem(tool, around.parts)
        if missing:
            raise Stopped("error", failure(runner.problem_type, missing))

        def again(args: dict[str, Any]) -> Prepared:
            changed = _ready(tool, _edited(args, tool), resources, around, trail)
            _allowed(tool, changed.rights, around)
            return changed

        ready = await approved(request, ready, around, trail, result, again)
        args, target, rights = ready.args, ready.target, ready.rights
        result.permissions = rights.permissions
        _within_rate(tool, around)
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
    _note_ended(result, call.trail, "task.ended")
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
        _listed(tool, around)
        request, resources = _with_resources(request, around)
        ready = _ready(tool, _arguments(request, tool), resources, around, trail)
        _allowed(tool, ready.rights, around)
        if runner_of(tool).problem(tool, around.parts):
            return None
        return await question_ahead(request, ready, around, anyway=anyway)
    except Stopped:
        return None


def _ready(
    tool: Tool, args: dict[str, Any], resources: tuple[str, ...], around: Surroundings, trail: Trail
) -> Prepared:
    """A call with checked arguments, with what it would run and what it may do."""
    trail.keep_secret(secret_texts(args, masked(args, tool)))
    target = target_of(tool, args) if runs_script(tool) else None
    return Prepared(tool, args, target, _rights(tool, target, resources, around))


def _edited(args: dict[str, Any], tool: Tool) -> dict[str, Any]:
    """Arguments that a person wrote instead of the model's, checked like those."""
    check = check_arguments(args, tool)
    if check.valid:
        return check.coerced
    text = "; ".join(problem.message for problem in check.errors)
    text = f"the arguments as the user changed them do not fit: {text}"
    raise Stopped("error", failure("ParameterValidationError", text, errors=check.errors))


def _since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)


def _rights(tool: Tool, target: ScriptTarget | None, resources: tuple[str, ...], around: Surroundings) -> Grant:
    handler = tool.manifest.handler
    if isinstance(handler, McpTool):
        # the server's rights are those of each of its tools
        tool = around.parts.mcp.stand_in(handler.server) or tool
    folder = tool.folder if target is None else target.folder
    access = tool.manifest.security_context.file_access
    # looking around costs more than all the rest of a call that asks for no file
    asks = access.allow_read or access.allow_write
    place = place_of(folder, around.registry, around.settings, around.root) if asks else Place(folder=folder)
    rights = grant(tool.manifest, around.settings.policy, place)
    if not resources:
        return rights
    shown = (*rights.read, *(folder.path for folder in (*rights.write, *rights.own_write)))
    more = [path for path in dict.fromkeys(resources) if not any(inside(path, there) for there in shown)]
    return msgspec.structs.replace(rights, read=(*rights.read, *more))


def _note_rights(rights: Grant, trail: Trail) -> None:
    if rights.permissions.requested:
        trail.note("rights.granted", **msgspec.to_builtins(rights.permissions.granted))
    for denied in rights.permissions.denied[:MAX_DENIED]:
        trail.note("rights.denied", "warning", kind=denied.kind, value=denied.value, reason=denied.reason)


def _listed(tool: Tool, around: Surroundings) -> None:
    # An id that is not in the agent's inventory does not exist for the agent (A23).
    if not in_inventory(tool, around.agent, around.registry):
        text = f"Unknown tool ID '{plain(tool.tool_id)}': it is not in the agent's inventory"
        problem = Problem(code="VA402", slug="tool-not-allowed", path="", message=text)
        raise Stopped("error", failure("UnknownTool", text, errors=[problem], code="toolNotAllowed"))


def _with_resources(request: CallRequest, around: Surroundings) -> tuple[CallRequest, tuple[str, ...]]:
    """The request with each parameter that was given by URI as the path of its resource, and these paths."""
    uris: object = request.call.uris if request.call is not None else (request.wire_call or {}).get("uris")
    if not uris:
        return request, ()
    if not is_uris(uris):
        text = f"'uris' must be an object of at most {MAX_URIS} parameter names, each with the URI of its value"
        raise Stopped("error", failure("ParameterValidationError", text))
    paths: dict[str, str] = {}
    for name, uri in uris.items():
        try:
            paths[name] = resolve_resource(uri, around.settings.resources, around.root)
        except ResourceError as error:
            raise Stopped("error", failure("SecurityError", f"parameter '{name}': {error}")) from None
    if request.call is not None:
        added = [
            Param(name, Value("text", request.call.span, (Piece(0, 0, path),)), request.call.span, request.call.span)
            for name, path in paths.items()
        ]
        call = msgspec.structs.replace(request.call, params=[*request.call.params, *added])
        return msgspec.structs.replace(request, call=call), tuple(paths.values())
    wire = dict(request.wire_call or {})
    args = wire.get("args")
    wire["args"] = {**cast("dict[str, Any]", args if isinstance(args, dict) else {}), **paths}
    return msgspec.structs.replace(request, wire_call=wire), tuple(paths.values())


def _within_rate(tool: Tool, around: Surroundings) -> None:
    full = around.rate.take(tool.tool_id) if around.rate is not None else None
    if full is not None:
        text = f"more than {full.limit} calls a minute ({full.setting}); try again in {full.wait_s:.0f} s"
        raise Stopped("error", failure("RateLimited", text))


def _arguments(request: CallRequest, tool: Tool) -> dict[str, Any]:
    check = check_request(request, tool)
    if check.valid:
        return check.coerced
    text = "; ".join(problem.message for problem in check.errors)
    raise Stopped("error", failure("ParameterValidationError", text, errors=check.errors))


def check_request(request: CallRequest, tool: Tool) -> Checked:
    """Coerces and checks the arguments of a request against the tool's schema."""
    if request.call is not None:
        return check_parsed(request.call, request.source, tool, request.encoding)
    if request.wire_call is not None:
        return check_wire_call(request.wire_call, tool)
    return check_arguments(request.args, tool)


def _allowed(tool: Tool, rights: Grant, around: Surroundings) -> None:
    refused = around.agent.refusal(tool.tool_id)
    if refused:
        raise Stopped("blocked", failure("SecurityError", refused))
    if not tool.callable:
        hosts = tool.origin == "host"
        said = "the host does not say agentCallable: true of it" if hosts else "the manifest says agentCallable: false"
        raise Stopped("blocked", failure("SecurityError", said))
    if rights.blocked:
        raise Stopped("blocked", failure("SecurityError", rights.blocked))
    if not tool.available:
        raise Stopped("error", failure(tool.problem_type, tool.reason))
