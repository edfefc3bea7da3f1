"""Asking a person before a call: when it is needed, and what each answer means (rulings 40 and 42).

Who is asked, and how, is the face's; must not know framing.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from tamis.protocols.contract import Status
from tamis.protocols.manifest.reading import Manifest
from tamis.server.runtime.calls.model import Answer, CallRequest, Question, Stopped, Surroundings
from tamis.server.runtime.records.trail import Trail
from tamis.server.runtime.registry.registry import Tool
from tamis.server.runtime.rights.permissions import Grant
from tamis.server.runtime.scripts.judge import masked


def needs_approval(manifest: Manifest, rights: Grant, policy: str) -> bool:
    """Whether a person must be asked, by the manifest's wish or the operator's policy."""
    if policy == "always" or manifest.execution.require_confirmation:
        return True
    return policy == "writes" and bool(rights.write or rights.own_write or rights.hosts)


async def approved(
    request: CallRequest, tool: Tool, args: dict[str, Any], rights: Grant, around: Surroundings, trail: Trail
) -> None:
    """Returns when the call may go on: nobody need be asked, or a person allowed it. Raises ``Stopped`` otherwise."""
    by_policy = needs_approval(tool.manifest, rights, around.settings.policy.require_confirmation)
    if not request.ask and not around.agent.asks and not by_policy:
        return
    if around.cancelled is not None and around.cancelled.is_set():
        raise Stopped("cancelled")
    if around.ask is None:
        trail.note("approval.answered", "info", answer="unavailable")
        raise Stopped("approvalUnavailable")
    question = Question(
        request.call_id,
        tool.tool_id,
        tool.manifest.display_name,
        masked(args, tool),
        rights.permissions,
        around.settings.policy.approval_timeout_ms,
    )
    trail.note("approval.asked", args=question.args, timeoutMs=question.timeout_ms)
    since = time.monotonic()
    asked = asyncio.ensure_future(around.ask(question))
    waits: set[asyncio.Future[Any]] = {asked}
    stop = asyncio.ensure_future(around.cancelled.wait()) if around.cancelled is not None else None
    if stop is not None:
        waits.add(stop)
    try:
        await asyncio.wait(waits, timeout=question.timeout_ms / 1000, return_when=asyncio.FIRST_COMPLETED)
        answer: Answer = "cancelled"
        if stop is None or not stop.done():
            answer = asked.result() if asked.done() else "timeout"
    finally:
        for waited in waits:
            waited.cancel()
    trail.note("approval.answered", "info", answer=answer, waitedMs=round((time.monotonic() - since) * 1000))
    outcomes: dict[Answer, Status] = {
        "deny": "denied",
        "timeout": "approvalTimeout",
        "unavailable": "approvalUnavailable",
        "cancelled": "cancelled",
    }
    if answer in outcomes:
        raise Stopped(outcomes[answer])
