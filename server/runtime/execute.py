"""One call, from a name and arguments to a result: resolve, check, ask, grant, run, judge.

The order is the safety: nothing runs before the tool is known, its arguments fit, a person was asked where the policy says
so, and the grant stands. Every way it can end is an ``ExecutionResult`` (interface, Running); this module never raises for
what a tool or a model did. Must not know framing or faces.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import (
    ExecutionError,
    ExecutionResult,
    Granted,
    Permissions,
    Problem,
    Status,
    Usage,
)
from tamis.protocols.manifest.reading import ExternalScript, Manifest
from tamis.protocols.model import Call, Param, Piece, Value
from tamis.protocols.observation import Style, observation, plain, unknown_tool
from tamis.protocols.positions import PositionEncoding
from tamis.sandbox import model as sandbox
from tamis.server.runtime.agents import AgentRules
from tamis.server.runtime.checking import Checked, check_arguments, check_parsed, check_wire_call
from tamis.server.runtime.config import Settings
from tamis.server.runtime.entry_points import boot_program
from tamis.server.runtime.folders import make_below
from tamis.server.runtime.integrity import integrity_fault
from tamis.server.runtime.interpreters import interpreters_of, missing_runtime
from tamis.server.runtime.judge import failure, judge, masked, secret_texts, without
from tamis.server.runtime.permissions import Grant, grant
from tamis.server.runtime.rates import CallRate
from tamis.server.runtime.registry import Registry, Tool
from tamis.server.runtime.replays import KeyReused, Replays
from tamis.server.runtime.resources import ResourceError, resolve_resource
from tamis.server.runtime.script_service import ScriptTarget, is_script_service, mirror, script_target


class CallRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be run: by name and arguments, or a call as it was parsed with its source text."""

    call_id: str
    name: str
    version: str | None = None
    args: dict[str, Any] = {}
    call: Call | None = None
    source: str = ""
    encoding: PositionEncoding | None = None
    wire_call: dict[str, Any] | None = None
    """A call as ``tool/parse`` gave it, instead of ``args``."""
    timeout_ms: int | None = None
    dry_run: bool = False
    idempotency_key: str = ""
    ask: bool = False
    """Ask before running whatever the policy says (the command line does)."""
    style: Style = "action"
    step: int | None = None


Answer = Literal["allow", "deny", "timeout", "unavailable", "cancelled"]


class Question(msgspec.Struct, frozen=True):
    """What a person is asked before a call runs; secrets in ``args`` are masked."""

    call_id: str
    tool_id: str
    display_name: str
    args: dict[str, Any]
    permissions: Permissions
    timeout_ms: int


Ask = Callable[[Question], Awaitable[Answer]]
OnOutput = Callable[[str, str, str], None]
"""Called with the call's id, the stream's name and text while a script runs."""


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What a call runs under; the registry is the one that was in force when the request came."""

    registry: Registry
    settings: Settings
    root: Path = Path()
    closed: str = ""
    """Why nothing may run here, whatever it is; empty when calls may."""
    agent: AgentRules = AgentRules()
    rate: CallRate | None = None
    replays: Replays | None = None
    ask: Ask | None = None
    on_output: OnOutput | None = None
    cancelled: asyncio.Event | None = None


class _Stopped(Exception):  # noqa: N818 (an outcome, not a fault)
    """A call ended before or while it ran."""

    def __init__(self, status: Status, error: ExecutionError | None = None) -> None:
        super().__init__(status)
        self.status: Status = status
        self.error = error


async def execute(request: CallRequest, around: Surroundings, attempts: int = 1) -> ExecutionResult:
    """Runs one call, up to ``attempts`` times while it fails (seed 002 ``retry_N``); always returns a result.

    With an idempotency key the call is run once: the same key and content give the stored result again (ruling 26).
    """
    key, replays = request.idempotency_key, around.replays
    if not key or replays is None or request.dry_run:
        return await _execute(request, around, attempts)
    content = [request.name, request.version, _content(request)]
    try:
        stored = await replays.stored(key, content)
    except KeyReused:
        text = f"the request id '{plain(key)}' was used before with other content; use a new one"
        error = failure("ParameterValidationError", text, code="idempotencyMismatch")
        return _observed(_blank(request, error), request, problems=True)
    if stored is not None:
        return msgspec.structs.replace(stored, call_id=request.call_id, replayed=True)
    try:
        result = await _execute(request, around, attempts)
    except BaseException:
        replays.drop(key)
        raise
    if result.attempts and result.status != "cancelled":
        replays.keep(key, result)
    else:
        replays.drop(key)
    return result


def _content(request: CallRequest) -> object:
    if request.call is not None:
        call = request.call
        return [call.args(request.source), call.uris, call.type_hints]
    return request.wire_call or request.args


def _blank(request: CallRequest, error: ExecutionError) -> ExecutionResult:
    result = _new_result(request)
    result.error = error
    return result


def _observed(result: ExecutionResult, request: CallRequest, *, problems: bool) -> ExecutionResult:
    result.observation = observation(
        result, request.style, step=request.step, problems=problems and result.attempts == 0
    )
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


async def _execute(request: CallRequest, around: Surroundings, attempts: int) -> ExecutionResult:
    started = time.perf_counter()
    result = _new_result(request)
    problems = False
    try:
        if around.closed:
            raise _Stopped("blocked", failure("SecurityError", around.closed))
        tool = _resolve(request, around.registry)
        result.tool_id, result.version = tool.tool_id, tool.manifest.version
        _listed(tool, around)
        request, resources = _with_resources(request, around)
        args = _arguments(request, tool)
        rights = grant(tool.manifest, around.settings.policy)
        rights = msgspec.structs.replace(rights, read=(*rights.read, *resources))
        result.permissions = rights.permissions
        _allowed(tool, rights, around)
        missing = missing_runtime(tool.manifest, around.settings)
        if missing:
            raise _Stopped("error", failure("DependencyError", missing))
        await _approved(request, tool, args, rights, around)
        _within_rate(around)
        if request.dry_run:
            result.status, result.output = "success", {"dryRun": True, "args": masked(args, tool)}
        else:
            for attempt in range(1, max(1, attempts) + 1):
                result.attempts = attempt
                await _run(request, tool, args, rights, around, result)
                if result.status not in ("error", "timeout"):
                    break
    except _Stopped as stop:
        result.status = stop.status
        if stop.error is not None:
            result.error = stop.error
            problems = stop.error.type in ("UnknownTool", "ParameterValidationError")
    result.duration_ms = round((time.perf_counter() - started) * 1000, 3)
    return _observed(result, request, problems=problems)


def _resolve(request: CallRequest, registry: Registry) -> Tool:
    tool = registry.get(request.name, request.version)
    if tool is not None:
        return tool
    versions = registry.versions(request.name)
    if versions:
        wanted = request.version or request.name.rpartition("@")[2]
        text = f"Tool '{request.name.rpartition('@')[0] or request.name}' has no version '{plain(wanted)}'; there is {', '.join(versions[:8])}"
        raise _Stopped("error", failure("UnknownTool", text, code="versionUnsatisfied"))
    broken = next((error for error in registry.errors if error.tool_id == request.name), None)
    if broken is not None:
        text = (
            f"Unknown tool ID '{plain(request.name)}': its manifest {broken.place} is not registered: {broken.message}"
        )
        raise _Stopped("error", failure("UnknownTool", text, code="toolNotFound"))
    text, suggestion = unknown_tool(request.name, registry.names())
    problem = Problem(
        code="VA401", slug="unknown-tool", path="", message=text, suggestion=UNSET if suggestion is None else suggestion
    )
    raise _Stopped("error", failure("UnknownTool", text, errors=[problem], code="toolNotFound"))


def _listed(tool: Tool, around: Surroundings) -> None:
    # An id that is not in the agent's inventory does not exist for the agent (A23).
    if not around.agent.lists(tool.tool_id):
        text = f"Unknown tool ID '{plain(tool.tool_id)}': it is not in the agent's inventory"
        problem = Problem(code="VA402", slug="tool-not-allowed", path="", message=text)
        raise _Stopped("error", failure("UnknownTool", text, errors=[problem], code="toolNotAllowed"))


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
            raise _Stopped("error", failure("SecurityError", f"parameter '{name}': {error}")) from None
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
        raise _Stopped("error", failure("RateLimited", text))


def _arguments(request: CallRequest, tool: Tool) -> dict[str, Any]:
    check = check_request(request, tool)
    if check.valid:
        return check.coerced
    text = "; ".join(problem.message for problem in check.errors)
    raise _Stopped("error", failure("ParameterValidationError", text, errors=check.errors))


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
        raise _Stopped("blocked", failure("SecurityError", refused))
    if not tool.callable:
        raise _Stopped("blocked", failure("SecurityError", "the manifest says agentCallable: false"))
    if rights.blocked:
        raise _Stopped("blocked", failure("SecurityError", rights.blocked))
    handler = tool.manifest.handler
    if not isinstance(handler, ExternalScript) and not is_script_service(tool.manifest):
        raise _Stopped("error", failure("ServiceError", f"no service '{handler.service_name}' is registered"))
    if not tool.available:
        raise _Stopped("error", failure("ScriptError", tool.reason))


def needs_approval(manifest: Manifest, rights: Grant, policy: str) -> bool:
    """Whether a person must be asked, by the manifest's wish or the operator's policy."""
    if policy == "always" or manifest.execution.require_confirmation:
        return True
    return policy == "writes" and bool(rights.write or rights.own_write or rights.hosts)


async def _approved(
    request: CallRequest, tool: Tool, args: dict[str, Any], rights: Grant, around: Surroundings
) -> None:
    by_policy = needs_approval(tool.manifest, rights, around.settings.policy.require_confirmation)
    if not request.ask and not around.agent.asks and not by_policy:
        return
    if around.cancelled is not None and around.cancelled.is_set():
        raise _Stopped("cancelled")
    if around.ask is None:
        raise _Stopped("approvalUnavailable")
    question = Question(
        request.call_id,
        tool.tool_id,
        tool.manifest.display_name,
        masked(args, tool),
        rights.permissions,
        around.settings.policy.approval_timeout_ms,
    )
    asked = asyncio.ensure_future(around.ask(question))
    waits: set[asyncio.Future[Any]] = {asked}
    stop = asyncio.ensure_future(around.cancelled.wait()) if around.cancelled is not None else None
    if stop is not None:
        waits.add(stop)
    try:
        await asyncio.wait(waits, timeout=question.timeout_ms / 1000, return_when=asyncio.FIRST_COMPLETED)
        if stop is not None and stop.done():
            raise _Stopped("cancelled")
        answer: Answer = asked.result() if asked.done() else "timeout"
    finally:
        for waited in waits:
            waited.cancel()
    outcomes: dict[Answer, Status] = {
        "deny": "denied",
        "timeout": "approvalTimeout",
        "unavailable": "approvalUnavailable",
        "cancelled": "cancelled",
    }
    if answer in outcomes:
        raise _Stopped(outcomes[answer])


def limits_of(settings: Settings, manifest: Manifest, timeout_ms: int | None) -> sandbox.Limits:
    """The operator's limits, lowered by the manifest and the request; nothing raises them."""
    operator = settings.sandbox
    values = {field: getattr(operator, field) for field in sandbox.Limits.__struct_fields__}
    execution = manifest.execution
    for field in msgspec.structs.fields(operator):
        asked = execution.limits.get(field.encode_name)
        if asked is not None and field.name in values:
            values[field.name] = min(values[field.name], asked)
    if execution.timeout_ms is not None:
        values["wall_ms"] = min(values["wall_ms"], execution.timeout_ms)
    if timeout_ms is not None:
        values["wall_ms"] = min(values["wall_ms"], timeout_ms)
    return sandbox.Limits(**values)


async def _run(
    request: CallRequest,
    tool: Tool,
    args: dict[str, Any],
    rights: Grant,
    around: Surroundings,
    result: ExecutionResult,
) -> None:
    # Loaded on the first run only: reading and listing need no sandbox.
    from tamis.sandbox.runner import run

    target = _target(tool, args)
    handler = target.handler
    asked = [ms for ms in (request.timeout_ms, around.agent.timeout_ms, target.timeout_ms) if ms is not None]
    limits = limits_of(around.settings, tool.manifest, min(asked, default=None))
    secrets = secret_texts(args, masked(args, tool))
    on_output = around.on_output

    def show(stream: str, data: bytes) -> None:
        if on_output is not None:
            on_output(request.call_id, stream, without(plain(data.decode("utf-8", "replace")), secrets))

    fault = integrity_fault(tool)
    if fault:
        raise _Stopped("error", failure("SecurityError", fault))
    try:
        own = [make_below(target.folder, name) for name in rights.own_write]
    except OSError as error:
        text = f"the writable folder '{error.filename or rights.own_write[0]}' cannot be made: {error.strerror}"
        raise _Stopped("error", failure("SecurityError", text)) from None
    outcome = await run(
        sandbox.RunRequest(
            folder=target.folder,
            script=handler.script_path,
            language=handler.language,
            args=(handler.entry_point,) if handler.entry_point else (),
            boot=boot_program(handler.language) if handler.entry_point else "",
            stdin=msgspec.json.encode(target.stdin),
            limits=limits,
            read=tuple(sandbox.Mount(path) for path in rights.read),
            write=tuple(sandbox.Mount(path) for path in (*rights.write, *own)),
            hosts=rights.hosts,
            allow_cidrs=around.settings.policy.allow_cidrs,
            interpreters=interpreters_of(around.settings),
        ),
        on_output=show if on_output is not None else None,
        cancelled=around.cancelled,
    )
    judge(outcome, tool, limits, secrets, around.settings.protocol.stderr_fails, result)
    if is_script_service(tool.manifest):
        mirror(result)


def _target(tool: Tool, args: dict[str, Any]) -> ScriptTarget:
    handler = tool.manifest.handler
    if isinstance(handler, ExternalScript):
        return ScriptTarget(tool.folder, handler, args)
    try:
        return script_target(tool.folder, args)
    except ValueError as error:
        raise _Stopped("error", failure("SecurityError", str(error))) from None
