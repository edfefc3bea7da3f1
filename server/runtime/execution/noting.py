"""What is written down of a call: as it came, its rights, its end, and a tool that is refused again and again. Decides nothing."""

from __future__ import annotations

from typing import Any, cast

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult
from tamis.protocols.messages import AbuseSuspected
from tamis.protocols.schema.secrets import MASK
from tamis.server.runtime.calls.model import CallContext, CallRequest
from tamis.server.runtime.execution.resolving import tool_of
from tamis.server.runtime.handlers.script.judge import MAX_DENIED, UNSANDBOXED, received
from tamis.server.runtime.handlers.secrets import spellings_at_hand
from tamis.server.runtime.observe.masking import secret_texts
from tamis.server.runtime.observe.trail import Trail
from tamis.server.runtime.policy.permissions import Grant
from tamis.server.runtime.policy.rates import SUSPICIOUS


def note_received(request: CallRequest, context: CallContext, trail: Trail) -> None:
    """The call as it came; its secrets are known from here on."""
    given = _given_args(request)
    tool = tool_of(request, context.registry)
    if tool is not None:
        shown = received(given, tool)
        trail.keep_secret(secret_texts(given, shown))
        trail.keep_granted(spellings_at_hand(tool, context))
    else:
        # what is secret in them is not known
        shown = dict.fromkeys(given, MASK)
    trail.note(
        "call.received",
        name=request.name,
        version=request.version,
        args=shown,
        caller={name: text for name, text in msgspec.to_builtins(context.caller).items() if text},
        dryRun=request.dry_run or None,
        requestId=request.idempotency_key,
    )


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
        context.parts.tell("abuse/suspected", suspicion)
