"""Which tool a call means: by id, alias, pinned version, and in VCP by ``toolId_methodName`` or ``command`` too (rulings 30, 35; V45).

What fits no tool, or several, is refused with what was perhaps meant, and never routed to a neighbour (F25). Must not know whether a call may run.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

import msgspec
from msgspec import UNSET

from tamis.protocols.check import to_problem
from tamis.protocols.contract import ExecutionResult, Problem
from tamis.protocols.messages import AbuseSuspected
from tamis.protocols.observation import plain, unknown_tool
from tamis.protocols.plugins import extras_of
from tamis.protocols.schema.plan import Finding
from tamis.protocols.schema.secrets import MASK
from tamis.server.runtime.calls.model import CallContext, CallRequest, Stopped
from tamis.server.runtime.calls.prepared import CallPlan
from tamis.server.runtime.calls.runner import failure
from tamis.server.runtime.handlers.script.judge import MAX_DENIED, UNSANDBOXED, received
from tamis.server.runtime.handlers.secrets import spellings_at_hand
from tamis.server.runtime.observe.masking import secret_texts
from tamis.server.runtime.observe.redaction import Redacted, redacted
from tamis.server.runtime.observe.trail import Caller, Trail
from tamis.server.runtime.policy.permissions import Grant
from tamis.server.runtime.policy.rules import SUSPICIOUS
from tamis.server.runtime.tools.loader import SUFFIX
from tamis.server.runtime.tools.registry import COMMAND, Registry, Resolved, Tool
from tamis.server.runtime.tools.versions import split_pin

MAX_SHOWN = 8
"""Versions, and ids of tools, that a message names."""


def not_executable(call: Mapping[str, Any]) -> str:
    """Why a call off the wire may not run, whatever its tool; empty when it may. A host may bring what was only shown (ruling 1)."""
    if call.get("complete") is False:
        return "its text was cut off"
    if call.get("executable") is False:
        return "what the text was read from has an error or more than one reading, or it was only an example"
    return ""


def _executable(wire_call: Mapping[str, Any]) -> None:
    why = not_executable(wire_call)
    if why:
        problem = to_problem(Finding("VA405", "", "error", {"why": why}))
        raise Stopped(
            "error", failure("ParameterValidationError", problem.message, errors=[problem], code="notExecutable")
        )


def resolve(request: CallRequest, registry: Registry, resolution: Resolved | None = None) -> tuple[Tool, CallRequest]:
    """The tool of a call, and the call without the part of its arguments that named the tool. Raises ``Stopped``.

    ``resolution``: what ``look_up`` gave, where it was asked before.
    """
    if request.wire_call is not None:
        _executable(request.wire_call)
    resolution = resolution or look_up(request, registry)
    if resolution.tool is not None:
        return resolution.tool, without(request, COMMAND) if resolution.takes_command else request
    name = request.name
    if resolution.candidates:
        shown = " or ".join(f"'{plain(candidate)}'" for candidate in resolution.candidates[:MAX_SHOWN])
        text = f"Tool name '{plain(name)}' fits several tools: write {shown}"
        raise Stopped(
            "error",
            failure("UnknownTool", text, errors=[_problem(text, resolution.candidates[0])], code="toolAmbiguous"),
        )
    versions = registry.versions(name)
    if versions:
        pin = split_pin(name)
        wanted = plain(request.version or (pin[1] if pin is not None else ""))
        there = ", ".join(versions[:MAX_SHOWN])
        if pin is not None and request.version:
            text = f"Tool '{pin[0]}' is asked for as '{plain(pin[1])}' and as '{wanted}': give one of them; there is {there}"
        else:
            text = f"Tool '{pin[0] if pin is not None else name}' has no version '{wanted}'; there is {there}"
        raise Stopped("error", failure("UnknownTool", text, code="versionUnsatisfied"))
    broken = next((error for error in registry.errors if error.tool_id == name), None)
    if broken is not None:
        what = "manifest" if broken.path.endswith(SUFFIX) else "definition"
        text = f"Unknown tool ID '{plain(name)}': its {what} {broken.place} is not registered: {broken.message}"
        raise Stopped("error", failure("UnknownTool", text, code="toolNotFound"))
    text, suggestion = unknown_tool(name, registry.names())
    raise Stopped("error", failure("UnknownTool", text, errors=[_problem(text, suggestion)], code="toolNotFound"))


def tool_of(request: CallRequest, registry: Registry) -> Tool | None:
    """The tool of a call, if it has one."""
    return look_up(request, registry).tool


def look_up(request: CallRequest, registry: Registry) -> Resolved:
    """What the name of a call leads to."""
    if request.call is None and request.wire_call is None:
        return registry.resolve_call(request.name, "", (), request.version)
    protocol, args = _spoken(request)
    return registry.resolve_call(request.name, protocol, args, request.version)


def _spoken(request: CallRequest) -> tuple[str, dict[str, Any]]:
    """The protocol that a call was written in, and its arguments where they may name the tool; empty for a call that a host made itself."""
    if request.call is not None:
        protocol = request.call.protocol
        return protocol, dict(request.call.args(request.source)) if extras_of(protocol).by_command else {}
    if request.wire_call is None:
        return "", {}
    wire = request.wire_call
    args = wire.get("args")
    protocol = wire.get("protocol")
    if not isinstance(protocol, str) or not extras_of(protocol).by_command or not isinstance(args, dict):
        return "", {}
    return protocol, cast("dict[str, Any]", args)


def without(request: CallRequest, name: str) -> CallRequest:
    """The same call without one argument."""
    if request.call is not None:
        params = [param for param in request.call.params if param.name != name]
        return msgspec.structs.replace(request, call=msgspec.structs.replace(request.call, params=params))
    if request.wire_call is not None:
        args = {key: value for key, value in request.wire_call.get("args", {}).items() if key != name}
        return msgspec.structs.replace(request, wire_call={**request.wire_call, "args": args})
    return msgspec.structs.replace(request, args={key: value for key, value in request.args.items() if key != name})


def _problem(text: str, suggestion: str | None) -> Problem:
    return Problem(
        code="VA401", slug="unknown-tool", path="", message=text, suggestion=UNSET if suggestion is None else suggestion
    )


# What is written down of a call: as it came, its rights, its end, and a tool that is refused again and again. Decides nothing.


def note_received(request: CallRequest, plan: CallPlan | None, context: CallContext, trail: Trail) -> None:
    """The call as it came; its secrets are known from here on. ``plan``: that of its tool, if it has one."""
    args = _given_args(request)
    if plan is not None:
        shown = args
        if plan.tool.may_have_secrets:
            shown = received(args, plan.tool)
            trail.keep_secret(secret_texts(args, shown))
        if plan.may_be_given:
            trail.keep_granted(spellings_at_hand(plan.tool, context))
    else:
        # what is secret in them is not known
        shown = dict.fromkeys(args, MASK)
    trail.note(
        "call.received",
        name=request.name,
        version=request.version,
        args=shown,
        caller=_told_of(context.caller),
        dryRun=request.dry_run or None,
        requestId=request.idempotency_key,
    )


@lru_cache(maxsize=64)
def _told_of(caller: Caller) -> Redacted:
    """Who called, as it is written down. A host's next calls come from the same."""
    return Redacted(redacted({name: text for name, text in msgspec.to_builtins(caller).items() if text}))


def _given_args(request: CallRequest) -> dict[str, Any]:
    """The arguments as they came, not coerced."""
    if request.call is not None:
        return dict(request.call.args(request.source))
    if request.wire_call is not None:
        args = request.wire_call.get("args")
        return cast("dict[str, Any]", args) if isinstance(args, dict) else {}
    return request.args


def note_rights(rights: Grant, trail: Trail) -> None:
    """What it was granted, and what it was refused."""
    if rights.permissions.requested:
        trail.note("rights.granted", **msgspec.to_builtins(rights.permissions.granted))
    for denied in rights.permissions.denied[:MAX_DENIED]:
        trail.note("rights.denied", "warning", kind=denied.kind, value=denied.value, reason=denied.reason)


def note_ended(result: ExecutionResult, trail: Trail, event: str = "call.ended") -> None:
    """What became of it."""
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
        usage=Redacted(msgspec.to_builtins(result.usage)) if result.attempts else None,
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


def note_abuse(result: ExecutionResult, context: CallContext, trail: Trail) -> None:
    """That its tool was refused too often for reasons of security, if it was."""
    secure = result.error is not UNSET and result.error.type == "SecurityError"
    refused = secure + trail.refused
    if refused and context.services.refusals is not None and context.services.refusals.add(result.tool_id, refused):
        text = f"the tool was refused {SUSPICIOUS} times within a minute; look at what it is and what it was given"
        trail.note("abuse.suspected", "warning", message=text)
        caller = context.caller
        suspicion = AbuseSuspected(
            tool_id=result.tool_id,
            call_id=result.call_id,
            session_id=caller.session_id,
            agent_id=caller.agent_id,
            message=text,
        )
        context.services.connection.tell("abuse/suspected", suspicion)
