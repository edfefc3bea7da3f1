"""One call, from a name and arguments to a result: resolve, check, ask, grant, run, judge.

The order is the safety: nothing runs before the tool is known, its arguments fit, a person was asked where the policy says
so, and the grant stands. Every way it can end is an ``ExecutionResult`` (interface, Running); this module never raises for
what a tool or a model did. Must not know framing or faces.
"""

from __future__ import annotations

import time
from typing import Any, cast

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ExecutionError, ExecutionResult, Granted, Permissions, Problem, Usage
from tamis.protocols.model import Param, Piece, Value
from tamis.protocols.observation import observation, plain, unknown_tool
from tamis.protocols.schema.secrets import MASK
from tamis.server.runtime.calls.approving import approved
from tamis.server.runtime.calls.checking import Checked, check_arguments, check_parsed, check_wire_call
from tamis.server.runtime.calls.dispatch import Invocation, Runner, runner_of, runs_script
from tamis.server.runtime.calls.failures import failure
from tamis.server.runtime.calls.model import CallRequest, Stopped, Surroundings
from tamis.server.runtime.calls.rates import SUSPICIOUS
from tamis.server.runtime.calls.replays import KeyReused
from tamis.server.runtime.calls.resources import ResourceError, resolve_resource
from tamis.server.runtime.records.masking import result_without, secret_texts
from tamis.server.runtime.records.trail import Trail
from tamis.server.runtime.registry.registry import Registry, Tool
from tamis.server.runtime.rights.path_grants import Place, inside
from tamis.server.runtime.rights.permissions import Grant, grant
from tamis.server.runtime.rights.places import place_of
from tamis.server.runtime.scripts.judge import MAX_DENIED, UNSANDBOXED, masked, received
from tamis.server.runtime.scripts.running import target_of
from tamis.server.runtime.scripts.service import ScriptTarget


async def execute(request: CallRequest, around: Surroundings, attempts: int = 1) -> ExecutionResult:
    """Runs one call, up to ``attempts`` times while it fails (seed 002 ``retry_N``); always returns a result.

    With an idempotency key the call is run once: the same key and content give the stored result again (ruling 26).
    """
    trail = Trail(around.audit, around.log, str(around.root), request.call_id)
    _note_received(request, around, trail)
    try:
        result = await _once(request, around, attempts, trail)
    except BaseException as error:
        trail.note("call.ended", "warning", status="aborted", message=type(error).__name__)
        raise
    _note_ended(result, trail)
    _note_abuse(result, around, trail)
    return result


async def _once(request: CallRequest, around: Surroundings, attempts: int, trail: Trail) -> ExecutionResult:
    key, replays = request.idempotency_key, around.replays
    if not key or replays is None or request.dry_run:
        return await _execute(request, around, attempts, trail)
    content = [request.name, request.version, _content(request)]
    try:
        stored = await replays.stored(key, content)
    except KeyReused:
        text = f"the request id '{plain(key)}' was used before with other content; use a new one"
        error = failure("ParameterValidationError", text, code="idempotencyMismatch")
        return _observed(_blank(request, error), request, trail, problems=True)
    if stored is not None:
        return msgspec.structs.replace(stored, call_id=request.call_id, replayed=True)
    try:
        result = await _execute(request, around, attempts, trail)
    except BaseException:
        replays.drop(key)
        raise
    if result.attempts and result.status != "cancelled":
        replays.keep(key, result)
    else:
        replays.drop(key)
    return result


def _note_received(request: CallRequest, around: Surroundings, trail: Trail) -> None:
    given = _given_args(request)
    tool = around.registry.get(request.name, request.version)
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
        caller=msgspec.to_builtins(around.caller),
        dryRun=request.dry_run or None,
        requestId=request.idempotency_key,
    )


def _note_ended(result: ExecutionResult, trail: Trail) -> None:
    error = None if result.error is UNSET else result.error
    details = None if error is None or error.details is UNSET else error.details
    trail.note(
        "call.ended",
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


def _content(request: CallRequest) -> object:
    if request.call is not None:
        call = request.call
        return [call.args(request.source), call.uris, call.type_hints]
    return request.wire_call or request.args


def _blank(request: CallRequest, error: ExecutionError) -> ExecutionResult:
    result = _new_result(request)
    result.error = error
    return result


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
        tool = _resolve(request, around.registry)
        result.tool_id, result.version = tool.tool_id, tool.manifest.version
        trail.of_tool(tool.tool_id, tool.manifest.version)
        _listed(tool, around)
        request, resources = _with_resources(request, around)
        args = _arguments(request, tool)
        trail.keep_secret(secret_texts(args, masked(args, tool)))
        target = target_of(tool, args) if runs_script(tool) else None
        rights = _rights(tool, target, resources, around)
        result.permissions = rights.permissions
        _note_rights(rights, trail)
        _allowed(tool, rights, around)
        runner = runner_of(tool)
        missing = runner.problem(tool, around.parts)
        if missing:
            raise Stopped("error", failure(runner.problem_type, missing))
        await approved(request, tool, args, rights, around, trail)
        _within_rate(around)
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
            await _run(runner, call, attempts)
    except Stopped as stop:
        result.status = stop.status
        if stop.error is not None:
            result.error = stop.error
            problems = stop.error.type in ("UnknownTool", "ParameterValidationError")
    result.duration_ms = round((time.perf_counter() - started) * 1000, 3)
    return _observed(result, request, trail, problems=problems)


async def _run(runner: Runner, call: Invocation, attempts: int) -> None:
    result = call.result
    for attempt in range(1, max(1, attempts) + 1):
        result.attempts = attempt
        try:
            await runner.run(call)
        except Stopped as stop:
            if not stop.started:
                result.attempts -= 1
                raise
            result.status, result.error = stop.status, UNSET if stop.error is None else stop.error
        if result.status not in ("error", "timeout"):
            break


def _rights(tool: Tool, target: ScriptTarget | None, resources: tuple[str, ...], around: Surroundings) -> Grant:
    folder = tool.folder if target is None else target.folder
    access = tool.manifest.security_context.file_access
    # looking around costs more than all the rest of a call that asks for no file
    asks = access.allow_read or access.allow_write
    place = place_of(folder, around.registry, around.settings, around.root) if asks else Place(folder=folder)
    rights = grant(tool.manifest, around.settings.policy, place)
    shown = (*rights.read, *(folder.path for folder in (*rights.write, *rights.own_write)))
    more = [path for path in dict.fromkeys(resources) if not any(inside(path, there) for there in shown)]
    return msgspec.structs.replace(rights, read=(*rights.read, *more))


def _note_rights(rights: Grant, trail: Trail) -> None:
    if rights.permissions.requested:
        trail.note("rights.granted", **msgspec.to_builtins(rights.permissions.granted))
    for denied in rights.permissions.denied[:MAX_DENIED]:
        trail.note("rights.denied", "warning", kind=denied.kind, value=denied.value, reason=denied.reason)


def _resolve(request: CallRequest, registry: Registry) -> Tool:
    tool = registry.get(request.name, request.version)
    if tool is not None:
        return tool
    versions = registry.versions(request.name)
    if versions:
        wanted = request.version or request.name.rpartition("@")[2]
        text = f"Tool '{request.name.rpartition('@')[0] or request.name}' has no version '{plain(wanted)}'; there is {', '.join(versions[:8])}"
        raise Stopped("error", failure("UnknownTool", text, code="versionUnsatisfied"))
    broken = next((error for error in registry.errors if error.tool_id == request.name), None)
    if broken is not None:
        text = (
            f"Unknown tool ID '{plain(request.name)}': its manifest {broken.place} is not registered: {broken.message}"
        )
        raise Stopped("error", failure("UnknownTool", text, code="toolNotFound"))
    text, suggestion = unknown_tool(request.name, registry.names())
    problem = Problem(
        code="VA401", slug="unknown-tool", path="", message=text, suggestion=UNSET if suggestion is None else suggestion
    )
    raise Stopped("error", failure("UnknownTool", text, errors=[problem], code="toolNotFound"))


def _listed(tool: Tool, around: Surroundings) -> None:
    # An id that is not in the agent's inventory does not exist for the agent (A23).
    if not around.agent.lists(tool.tool_id):
        text = f"Unknown tool ID '{plain(tool.tool_id)}': it is not in the agent's inventory"
        problem = Problem(code="VA402", slug="tool-not-allowed", path="", message=text)
        raise Stopped("error", failure("UnknownTool", text, errors=[problem], code="toolNotAllowed"))


def _with_resources(request: CallRequest, around: Surroundings) -> tuple[CallRequest, tuple[str, ...]]:
    """The request with each parameter that was given by URI as the path of its resource, and these paths."""
    uris = request.call.uris if request.call is not None else (request.wire_call or {}).get("uris") or {}
    if not uris:
        return request, ()
    paths: dict[str, str] = {}
    for name, uri in uris.items():
        try:
            paths[name] = resolve_resource(str(uri), around.settings.resources, around.root)
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
    wire["args"] = {**wire.get("args", {}), **paths}
    return msgspec.structs.replace(request, wire_call=wire), tuple(paths.values())


def _within_rate(around: Surroundings) -> None:
    wait = around.rate.take() if around.rate is not None else 0.0
    if wait > 0:
        limit = around.settings.policy.calls_per_minute
        text = f"more than {limit} calls a minute (policy.callsPerMinute); try again in {wait:.0f} s"
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
        raise Stopped("blocked", failure("SecurityError", "the manifest says agentCallable: false"))
    if rights.blocked:
        raise Stopped("blocked", failure("SecurityError", rights.blocked))
    if not tool.available:
        raise Stopped("error", failure("ScriptError", tool.reason))
