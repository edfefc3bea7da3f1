"""One call, from a name and arguments to a result: resolve, check, ask, grant, run, judge.

The order is the safety: nothing runs before the tool is known, its arguments fit, a person was asked where the policy says
so, and the grant stands. Every way it can end is an ``ExecutionResult`` (interface, Running); this module never raises for
what a tool or a model did. Must not know framing or faces.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Literal, cast

import msgspec
from msgspec import UNSET

from tamis.protocols.check import to_problem
from tamis.protocols.contract import (
    ErrorDetails,
    ErrorType,
    ExecutionError,
    ExecutionResult,
    Granted,
    Permissions,
    Problem,
    SandboxInfo,
    Status,
    Usage,
)
from tamis.protocols.manifest.reading import ExternalScript, Manifest
from tamis.protocols.model import Call, Json
from tamis.protocols.observation import Style, observation, plain, unknown_tool
from tamis.protocols.positions import PositionEncoding
from tamis.protocols.schema.secrets import MASK, mask
from tamis.sandbox import model as sandbox
from tamis.server.runtime.checking import Checked, check_arguments, check_parsed, check_wire_call
from tamis.server.runtime.config import Settings
from tamis.server.runtime.entry_points import boot_program
from tamis.server.runtime.folders import make_below
from tamis.server.runtime.interpreters import interpreters_of, missing_runtime
from tamis.server.runtime.output import OutputError, read_output
from tamis.server.runtime.permissions import Grant, grant
from tamis.server.runtime.registry import Registry, Tool

MAX_LOG_LINES = 500
MAX_LOG_LINE_CHARS = 2_000
MAX_DETAIL_CHARS = 4_000


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
OnOutput = Callable[[str, str], None]
"""Called with the stream's name and text while a script runs."""


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What a call runs under; the registry is the one that was in force when the request came."""

    registry: Registry
    settings: Settings
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
    """Runs one call, up to ``attempts`` times while it fails (seed 002 ``retry_N``); always returns a result."""
    started = time.perf_counter()
    result = ExecutionResult(
        call_id=request.call_id,
        tool_id=request.name,
        version="",
        status="error",
        usage=Usage(cpu_ms=0.0, max_rss_bytes=0),
        permissions=Permissions(requested={}, granted=Granted(), denied=[]),
    )
    problems = False
    try:
        tool = _resolve(request, around.registry)
        result.tool_id, result.version = tool.tool_id, tool.manifest.version
        args, problems = _arguments(request, tool)
        rights = grant(tool.manifest, around.settings.policy)
        result.permissions = rights.permissions
        _allowed(tool, rights)
        await _approved(request, tool, args, around)
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
    result.observation = observation(
        result, request.style, step=request.step, problems=problems and result.attempts == 0
    )
    return result


def failure(error_type: ErrorType, message: str, **details: Any) -> ExecutionError:
    """An error with details, leaving out what is empty."""
    given = {name: value for name, value in details.items() if value not in (None, "", [], ())}
    return ExecutionError(type=error_type, message=message, details=ErrorDetails(**given) if given else UNSET)


def _resolve(request: CallRequest, registry: Registry) -> Tool:
    tool = registry.get(request.name, request.version)
    if tool is not None:
        return tool
    versions = registry.versions(request.name)
    if versions:
        wanted = request.version or request.name.rpartition("@")[2]
        text = f"Tool '{request.name.rpartition('@')[0] or request.name}' has no version '{plain(wanted)}'; there is {', '.join(versions[:8])}"
        raise _Stopped("error", failure("UnknownTool", text, code="versionUnsatisfied"))
    text, suggestion = unknown_tool(request.name, registry.names())
    problem = Problem(
        code="VA401", slug="unknown-tool", path="", message=text, suggestion=UNSET if suggestion is None else suggestion
    )
    raise _Stopped("error", failure("UnknownTool", text, errors=[problem], code="toolNotFound"))


def _arguments(request: CallRequest, tool: Tool) -> tuple[dict[str, Any], bool]:
    check = check_request(request, tool)
    if check.valid:
        return check.coerced, False
    text = "; ".join(problem.message for problem in check.errors)
    raise _Stopped("error", failure("ParameterValidationError", text, errors=check.errors))


def check_request(request: CallRequest, tool: Tool) -> Checked:
    """Coerces and checks the arguments of a request against the tool's schema."""
    if request.call is not None:
        return check_parsed(request.call, request.source, tool, request.encoding)
    if request.wire_call is not None:
        return check_wire_call(request.wire_call, tool)
    return check_arguments(request.args, tool)


def _allowed(tool: Tool, rights: Grant) -> None:
    if not tool.callable:
        raise _Stopped("blocked", failure("SecurityError", "the manifest says agentCallable: false"))
    if rights.blocked:
        raise _Stopped("blocked", failure("SecurityError", rights.blocked))
    handler = tool.manifest.handler
    if not isinstance(handler, ExternalScript):
        raise _Stopped("error", failure("ServiceError", f"no service '{handler.service_name}' is registered"))
    if not tool.available:
        raise _Stopped("error", failure("ScriptError", tool.reason))


def needs_approval(manifest: Manifest, rights: Grant, policy: str) -> bool:
    """Whether a person must be asked, by the manifest's wish or the operator's policy."""
    if policy == "always" or manifest.execution.require_confirmation:
        return True
    return policy == "writes" and bool(rights.write or rights.own_write or rights.hosts)


async def _approved(request: CallRequest, tool: Tool, args: dict[str, Any], around: Surroundings) -> None:
    rights = grant(tool.manifest, around.settings.policy)
    if not request.ask and not needs_approval(tool.manifest, rights, around.settings.policy.require_confirmation):
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
    from tamis.sandbox.backend import run

    handler = tool.manifest.handler
    assert isinstance(handler, ExternalScript)
    missing = missing_runtime(tool.manifest, around.settings)
    if missing:
        result.attempts = 0
        raise _Stopped("error", failure("DependencyError", missing))
    limits = limits_of(around.settings, tool.manifest, request.timeout_ms)
    secrets = secret_texts(args, masked(args, tool))
    on_output = around.on_output

    def show(stream: str, data: bytes) -> None:
        if on_output is not None:
            on_output(stream, _without(plain(data.decode("utf-8", "replace")), secrets))

    try:
        own = [make_below(tool.folder, name) for name in rights.own_write]
    except OSError as error:
        text = f"the writable folder '{error.filename or rights.own_write[0]}' cannot be made: {error.strerror}"
        raise _Stopped("error", failure("SecurityError", text)) from None
    outcome = await run(
        sandbox.RunRequest(
            folder=tool.folder,
            script=handler.script_path,
            language=handler.language,
            args=(handler.entry_point,) if handler.entry_point else (),
            boot=boot_program(handler.language) if handler.entry_point else "",
            stdin=msgspec.json.encode(args),
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
    _judge(outcome, tool, limits, secrets, around.settings.protocol.stderr_fails, result)


def _judge(
    outcome: sandbox.RunOutcome,
    tool: Tool,
    limits: sandbox.Limits,
    secrets: tuple[str, ...],
    stderr_fails: bool,
    result: ExecutionResult,
) -> None:
    """Turns an outcome into the result's status, output or error (ruling 37; sandbox spec, Classification)."""
    info = outcome.sandbox
    result.sandbox = SandboxInfo(backend=info.backend, version=info.version, layers=list(info.layers), warm=info.warm)
    result.usage = Usage(cpu_ms=round(outcome.cpu_ms, 3), max_rss_bytes=outcome.max_rss_bytes)
    result.error, result.output = UNSET, UNSET
    stderr = _without(plain(outcome.stderr.decode("utf-8", "replace")), secrets)
    output: Any = UNSET
    error: ExecutionError | None = None
    if outcome.kind == "ok":
        try:
            output = read_output(outcome.stdout)
        except OutputError as problem:
            shown = f"Standard output began with: {plain(problem.excerpt)}" if problem.excerpt else ""
            error = failure(
                "OutputFormatError", problem.text, text=_without(_details(shown, stderr), secrets), exit_code=0
            )
        else:
            error = _output_fault(tool, output)
            if error is None and stderr_fails and stderr.strip():
                error = failure("ScriptError", "the script wrote to standard error", text=_tail(stderr), exit_code=0)
    elif outcome.kind == "cancelled":
        result.status = "cancelled"
    elif outcome.kind == "timeout":
        result.status = "timeout"
        error = failure("TimeoutError", f"no result after {limits.wall_ms} ms", text=_tail(stderr), limit="wall")
    elif outcome.kind == "unavailable":
        fix = f"; fix: {outcome.remedy}" if outcome.remedy else ""
        error = failure("SandboxUnavailable", f"{outcome.message}{fix}")
        result.sandbox = None
    else:
        error_type: ErrorType = outcome.error_type or "ScriptError"
        # A failed script's remedy is its own standard error, which is in the details.
        remedy = "" if error_type == "ScriptError" else outcome.remedy
        text = f"{outcome.message}; {remedy}" if remedy else outcome.message
        error = failure(
            error_type,
            text,
            text=_tail(stderr),
            limit=outcome.limit,
            exit_code=outcome.exit_code,
            signal=outcome.signal,
            denied_hosts=list(outcome.denied_hosts),
        )
        if outcome.kind == "refused":
            result.attempts = max(0, result.attempts - 1)
    result.logs, result.logs_truncated = _logs(outcome, stderr, secrets, with_stdout=output is UNSET)
    if error is not None:
        result.status = result.status if outcome.kind == "timeout" else "error"
        result.error = error
    elif outcome.kind == "ok":
        result.status, result.output = "success", output


def _output_fault(tool: Tool, output: Any) -> ExecutionError | None:
    plan = tool.output_plan
    if plan is None or plan.is_valid(output):
        return None
    found = [to_problem(finding) for finding in plan.check(output, "typed").errors]
    text = "; ".join(problem.message for problem in found[:8])
    return failure(
        "OutputValidationError", f"the script's output does not fit the manifest's output schema: {text}", errors=found
    )


def _logs(
    outcome: sandbox.RunOutcome, stderr: str, secrets: tuple[str, ...], *, with_stdout: bool
) -> tuple[list[str], bool]:
    lines: deque[str] = deque(maxlen=MAX_LOG_LINES)
    cut = outcome.stderr_truncated or (with_stdout and outcome.stdout_truncated)
    streams = [("stderr", stderr)]
    if with_stdout:
        streams.insert(0, ("stdout", _without(plain(outcome.stdout.decode("utf-8", "replace")), secrets)))
    count = 0
    for name, text in streams:
        for line in text.splitlines():
            if line.strip():
                count += 1
                cut = cut or len(line) > MAX_LOG_LINE_CHARS
                lines.append(f"{name}: {line[:MAX_LOG_LINE_CHARS]}")
    return list(lines), cut or count > MAX_LOG_LINES


def _details(shown: str, stderr: str) -> str:
    tail = _tail(stderr)
    return f"{shown}\n{tail}" if shown and tail else shown or tail


def _tail(text: str) -> str:
    """The end of a log, where the cause stands."""
    text = text.strip()
    return text if len(text) <= MAX_DETAIL_CHARS else "…" + text[-MAX_DETAIL_CHARS + 1 :]


def masked(args: dict[str, Any], tool: Tool) -> dict[str, Any]:
    """The arguments with what ``x-secret`` marks hidden."""
    return cast("dict[str, Any]", mask(cast("Json", args), tool.manifest.parameters or {}))


def secret_texts(args: object, masked: object) -> tuple[str, ...]:
    """The texts that ``x-secret`` hides, found where the masked arguments differ (D83); short ones cannot be told apart."""
    found: set[str] = set()
    stack: list[tuple[Any, Any]] = [(args, masked)]
    while stack:
        real, shown = stack.pop()
        if isinstance(real, dict) and isinstance(shown, dict):
            stack.extend((real[key], shown.get(key)) for key in real)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType, reportUnknownMemberType]
        elif isinstance(real, list) and isinstance(shown, list):
            stack.extend(zip(real, shown, strict=False))  # pyright: ignore[reportUnknownArgumentType]
        elif real != shown and isinstance(real, str) and len(real) >= 4:
            found.add(real)
    return tuple(sorted(found, key=len, reverse=True))


def _without(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        text = text.replace(secret, MASK)
    return text
