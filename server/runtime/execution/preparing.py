"""From a request to a call that can be asked about and run: its arguments checked, its script found, its rights granted.

What may not be so raises ``Stopped``. Runs nothing; must not know how a call is asked about or run.
"""

from __future__ import annotations

import asyncio
from traceback import format_exception
from typing import Any, TypeVar, cast

import msgspec
from msgspec import UNSET

from tamis.protocols.check import told
from tamis.protocols.contract import ExecutionResult, Problem
from tamis.protocols.levels import FORMAT
from tamis.protocols.manifest.reading import McpTool
from tamis.protocols.model import Param, Piece, Value
from tamis.protocols.observation import plain
from tamis.server.runtime.calls.checking import (
    Checked,
    check_arguments,
    check_parsed,
    check_wire_call,
    filled,
    formats_held,
)
from tamis.server.runtime.calls.model import CallContext, CallRequest, Stopped
from tamis.server.runtime.calls.outputs import own_line
from tamis.server.runtime.calls.prepared import CallPlan, Prepared
from tamis.server.runtime.calls.runner import Invocation, Runner, failure, secret_failure
from tamis.server.runtime.calls.running_calls import unless_cancelled
from tamis.server.runtime.execution.approving import needs_approval
from tamis.server.runtime.handlers.runners import runner_of, runs_script
from tamis.server.runtime.handlers.script.judge import masked
from tamis.server.runtime.handlers.script.running import target_of
from tamis.server.runtime.observe.masking import problems_without, secret_texts
from tamis.server.runtime.observe.trail import Trail
from tamis.server.runtime.policy.path_grants import Place, inside, place_of
from tamis.server.runtime.policy.permissions import Grant, asks_nothing, grant
from tamis.server.runtime.policy.resources import (
    MAX_URIS,
    ResourceError,
    is_resource,
    is_uris,
    resolve_resource,
    target_path,
)
from tamis.server.runtime.policy.rules import speaks_of
from tamis.server.runtime.policy.strangers import bare, refused
from tamis.server.runtime.tools.builtin import ScriptTarget, is_script_service
from tamis.server.runtime.tools.listing import in_inventory
from tamis.server.runtime.tools.registry import Tool


def plan_of(tool: Tool, context: CallContext) -> CallPlan:
    """What is the same in each call of a tool under what is in force for this one; made with the first of them."""
    plans = context.services.plans
    plan = plans.get(tool, context.registry, context.settings, context.agent)
    if plan is None:
        plan = _planned(tool, context)
        plans.keep(plan)
    return plan


def _planned(tool: Tool, context: CallContext) -> CallPlan:
    settings, agent, manifest = context.settings, context.agent, tool.manifest
    policy, is_of_server = settings.policy, isinstance(manifest.handler, McpTool)
    rights = None
    if asks_nothing(manifest) and not is_of_server:
        rights = grant(manifest, policy, Place(folder=tool.folder), settings.secrets)
    return CallPlan(
        registry=context.registry,
        settings=settings,
        agent=agent,
        tool=tool,
        runner=runner_of(tool),
        runs_script=runs_script(tool),
        mirrors=is_script_service(manifest.handler),
        is_listed=in_inventory(tool, agent, context.registry),
        rights=rights,
        is_allowed=rights is not None and tool.callable and tool.available and not agent.refusal(tool.tool_id),
        is_free=rights is not None
        and not agent.asks
        and not needs_approval(manifest, rights, policy.require_confirmation)
        and not speaks_of(policy, tool.tool_id, manifest.version),
        may_be_given=is_of_server or bool(manifest.security_context.secrets or policy.hosts),
    )


def check_listed(tool: Tool, context: CallContext) -> None:
    """Refuses a tool that is not in the agent's inventory: for the agent it does not exist (A23)."""
    if not in_inventory(tool, context.agent, context.registry):
        text = f"Unknown tool ID '{plain(tool.tool_id)}': it is not in the agent's inventory"
        problem = Problem(code="VA402", slug="tool-not-allowed", path="", message=text)
        raise Stopped("error", failure("UnknownTool", text, errors=[problem], code="toolNotAllowed"))


def with_resources(request: CallRequest, context: CallContext) -> tuple[CallRequest, tuple[str, ...]]:
    """The request with each parameter that was given by URI as the path of its resource, and these paths."""
    uris: object = request.call.uris if request.call is not None else (request.wire_call or {}).get("uris")
    if not uris:
        return request, ()
    if not is_uris(uris):
        text = f"'uris' must be an object of at most {MAX_URIS} parameter names, each with the URI of its value"
        raise Stopped("error", failure("ParameterValidationError", text))
    paths: dict[str, str] = {}
    for name, uri in filled(uris, context.variables).items():
        try:
            paths[name] = resolve_resource(uri, context.settings.resources, context.root)
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


def checked_arguments(
    request: CallRequest, tool: Tool, context: CallContext, result: ExecutionResult
) -> dict[str, Any]:
    """The arguments of a request as the tool gets them; what is odd in them is told in the result."""
    check = formats_held(_check_request(request, tool), context.settings.lint)
    if check.valid and context.variables:
        with_values = filled(check.coerced, context.variables)
        if with_values != check.coerced:
            # what the host put in has to fit as well
            check = formats_held(check_arguments(with_values, tool), context.settings.lint)
    if check.valid:
        _tell_odd(check, tool, result)
        return check.coerced
    raise Stopped("error", failure("ParameterValidationError", told(check.errors), errors=check.errors))


def with_targets(args: dict[str, Any], tool: Tool, rights: Grant, context: CallContext) -> dict[str, Any]:
    """The arguments as the tool gets them: a URI that it writes to is the path that it may write (T36). Raises ``Stopped``."""
    paths: dict[str, str] = {}
    for name in tool.targets:
        uri = args.get(name)
        if not isinstance(uri, str) or not is_resource(uri):
            continue
        writable = [folder.path for folder in (*rights.write, *rights.own_write)]
        try:
            paths[name] = target_path(uri, context.settings.resources, context.root, writable)
        except ResourceError as error:
            raise Stopped("blocked", failure("SecurityError", f"parameter '{name}': {error}")) from None
    return {**args, **paths} if paths else args


def _tell_odd(check: Checked, tool: Tool, result: ExecutionResult) -> None:
    odd = [warning for warning in check.warnings if warning.code == FORMAT] if check.warnings else []
    secrets = secret_texts(check.coerced, masked(check.coerced, tool)) if odd else ()
    result.warnings = problems_without(odd, secrets) if odd else UNSET


def edited_arguments(args: dict[str, Any], tool: Tool, context: CallContext, result: ExecutionResult) -> dict[str, Any]:
    """Arguments that a person wrote instead of the model's, checked like those."""
    check = formats_held(check_arguments(args, tool), context.settings.lint)
    if check.valid:
        _tell_odd(check, tool, result)
        return check.coerced
    text = f"the arguments as the user changed them do not fit: {told(check.errors)}"
    raise Stopped("error", failure("ParameterValidationError", text, errors=check.errors))


def _check_request(request: CallRequest, tool: Tool) -> Checked:
    """Coerces and checks the arguments of a request against the tool's schema."""
    if request.call is not None:
        return check_parsed(request.call, request.source, tool, request.encoding)
    if request.wire_call is not None:
        return check_wire_call(request.wire_call, tool)
    return check_arguments(request.args, tool)


def ready_to_run(
    tool: Tool,
    args: dict[str, Any],
    resources: tuple[str, ...],
    context: CallContext,
    trail: Trail,
    plan: CallPlan | None = None,
) -> Prepared:
    """A call with checked arguments, with what it would run and what it may do. ``plan``: the tool's own, where it is at hand."""
    if tool.may_have_secrets:
        trail.keep_secret(secret_texts(args, masked(args, tool)))
    plan = plan or plan_of(tool, context)
    target = target_of(tool, args) if plan.runs_script else None
    rights = plan.rights
    if rights is None or resources:
        return Prepared(tool, args, target, _rights(tool, target, resources, context), _server(tool, context))
    return Prepared(tool, args, target, rights)


def _server(tool: Tool, context: CallContext) -> tuple[Tool, Any] | None:
    handler = tool.manifest.handler
    if not isinstance(handler, McpTool):
        return None
    stand_in = context.services.handlers.mcp.stand_in(handler.server)
    declared = context.settings.mcp_servers.get(handler.server)
    return None if stand_in is None else (stand_in, msgspec.to_builtins(declared))


def _rights(tool: Tool, target: ScriptTarget | None, resources: tuple[str, ...], context: CallContext) -> Grant:
    handler = tool.manifest.handler
    if isinstance(handler, McpTool):
        # the server's rights are those of each of its tools
        tool = context.services.handlers.mcp.stand_in(handler.server) or tool
    folder = tool.folder if target is None else target.folder
    access = tool.manifest.security_context.file_access
    # looking around costs more than all the rest of a call that asks for no file
    asks = access.allow_read or access.allow_write
    place = place_of(folder, context.registry, context.settings, context.root) if asks else Place(folder=folder)
    rights = grant(tool.manifest, context.settings.policy, place, context.settings.secrets)
    if context.services.gate is not None and not context.services.gate.lets(tool, rights):
        rights = refused(rights, grant(tool.manifest, bare(context.settings.policy), place, context.settings.secrets))
    if not resources:
        return rights
    shown = (*rights.read, *(folder.path for folder in (*rights.write, *rights.own_write)))
    more = [path for path in dict.fromkeys(resources) if not any(inside(path, there) for there in shown)]
    # a right like any other: it is told, shown to whoever is asked, and an answer about other files is none about these
    granted = rights.permissions.granted
    granted = msgspec.structs.replace(granted, read=[*granted.read, *more])
    permissions = msgspec.structs.replace(rights.permissions, granted=granted)
    return msgspec.structs.replace(rights, read=(*rights.read, *more), permissions=permissions)


def check_allowed(tool: Tool, rights: Grant, context: CallContext) -> None:
    """Refuses what the agent's profile, the definition or the policy forbids, and a tool that cannot be run."""
    refused = context.agent.refusal(tool.tool_id)
    if refused:
        raise Stopped("blocked", failure("SecurityError", refused))
    if not tool.callable:
        hosts = tool.origin == "host"
        text = "the host does not say agentCallable: true of it" if hosts else "the manifest says agentCallable: false"
        raise Stopped("blocked", failure("SecurityError", text))
    if rights.lacks is not None:
        raise Stopped("blocked", secret_failure(rights.blocked, rights.lacks))
    if rights.blocked:
        raise Stopped("blocked", failure("SecurityError", rights.blocked))
    if not tool.available:
        raise Stopped("error", failure(tool.problem_type, tool.reason))


def check_rate(tool: Tool, context: CallContext) -> None:
    """Counts the call, and refuses it where there were too many within a minute."""
    caller = context.caller
    full = (
        context.services.rate.take(tool.tool_id, caller.agent_id, caller.session_id)
        if context.services.rate is not None
        else None
    )
    if full is not None:
        text = f"more than {full.limit} calls a minute ({full.setting}); try again in {full.wait_s:.0f} s"
        raise Stopped("error", failure("RateLimited", text))


# How often a call that fails is tried again, and how long to wait before that (seed 002 ``retry_N``, ruling 24).


T = TypeVar("T")

MAX_ATTEMPTS = 101
"""The first and a hundred more: a text may ask for any number."""
FIRST_PAUSE_S = 0.1
MAX_PAUSE_S = 5.0


def backoff_s(attempt: int) -> float:
    """Seconds to wait after that failed attempt (the first is 1): 0.1, 0.2, 0.4 and so on, at most 5."""
    return min(MAX_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(attempt - 1, 16))


async def run_attempts(runner: Runner, call: Invocation, attempts: int) -> None:
    """Runs a call until it does not fail, at most ``attempts`` times; a cancel ends the pauses between them too. ``timeoutMs`` is each attempt's.

    Raises ``Stopped`` when the runner did not start it.
    """
    result = call.result
    last = min(max(1, attempts), MAX_ATTEMPTS)
    for attempt in range(1, last + 1):
        result.attempts = attempt
        try:
            await runner.run(call)
        except Stopped as stop:
            if not stop.started:
                result.attempts -= 1
                raise
            result.status, result.error = stop.status, UNSET if stop.error is None else stop.error
        except Exception as error:
            # a fault in a runner costs the call, never the results of the other calls of its text
            text = f"the handler failed with {type(error).__name__}: {error}"
            result.status, result.error = "error", failure("ServiceError", text, code="handlerFailed")
            call.trail.note("handler.failed", "error", message="".join(format_exception(error, limit=8)))
        if result.status not in ("error", "timeout"):
            return
        if attempt == last:
            if attempts > MAX_ATTEMPTS:
                text = (
                    f"{attempts - 1} further attempts were asked for, and {MAX_ATTEMPTS - 1} are the most that are made"
                )
                result.logs = [*result.logs, own_line(text)]
            return
        pause = backoff_s(attempt)
        call.trail.note("call.retried", attempt=attempt, status=result.status, pauseMs=round(pause * 1000))
        try:
            await unless_cancelled(call.context.cancelled, asyncio.sleep(pause))
        except Stopped as stop:
            result.status, result.error = stop.status, UNSET
            return
