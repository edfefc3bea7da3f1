"""A person's word before a call: when it is needed, what holds already, and what each answer means (rulings 40 and 42).

A call goes on only with a clear "allow" for exactly the tool, arguments and rights that were shown, or that a person wrote instead and
that were checked like any others. Who is asked, and how, is the face's; must not know framing.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ApprovalOutcome, Approved, ExecutionResult, Status
from tamis.protocols.manifest.reading import Manifest
from tamis.server.runtime.calls.model import Answer, CallContext, CallRequest, Question, Reply, Stopped
from tamis.server.runtime.calls.prepared import Prepared, contents_of, tool_digest
from tamis.server.runtime.calls.runner import failure
from tamis.server.runtime.execution.approvals.questions import ApprovalUnknown, new_question
from tamis.server.runtime.execution.approvals.remembered import new_entry
from tamis.server.runtime.execution.approvals.replies import CANCELLED, with_secrets
from tamis.server.runtime.handlers.script.judge import masked
from tamis.server.runtime.handlers.secrets import spellings_at_hand
from tamis.server.runtime.observe.masking import together, without_in
from tamis.server.runtime.observe.trail import Trail
from tamis.server.runtime.policy.permissions import Grant
from tamis.server.runtime.policy.rules import Ruling, ruling

if TYPE_CHECKING:
    from tamis.server.runtime.execution.suspended import Turn

T = TypeVar("T")

MAX_ROUNDS = 4
"""So often a person is asked about one call: an edit that changes its rights, or a script that changed meanwhile, is a new question."""
_STATUS: dict[Answer, Status] = {
    "deny": "denied",
    "timeout": "approvalTimeout",
    "unavailable": "approvalUnavailable",
    "cancelled": "cancelled",
}
_OUTCOME: dict[Answer, ApprovalOutcome] = {
    "allow": "allowed",
    "deny": "denied",
    "timeout": "timeout",
    "unavailable": "unavailable",
    "cancelled": "cancelled",
}


def needs_approval(manifest: Manifest, rights: Grant, policy: str) -> bool:
    """Whether a person must be asked, by the manifest's wish or the operator's policy."""
    if manifest.execution.require_confirmation:
        return True
    return _confirms(rights, policy)


def _confirms(rights: Grant, policy: str) -> bool:
    return policy == "always" or (policy == "writes" and bool(rights.write or rights.own_write or rights.hosts))


def _ruled(ready: Prepared, context: CallContext, trail: Trail | None) -> Ruling | None:
    """The operator's rule about the call, if any. Raises ``Stopped`` where it forbids the call."""
    manifest = ready.tool.manifest
    decision = ruling(context.settings.policy, manifest.tool_id, manifest.version, ready.args, context.caller)
    if decision is not None and decision.verdict == "deny":
        if trail is not None:
            trail.note("policy.denied", "warning", rule=decision.name, message=decision.sentence)
        raise Stopped("blocked", failure("SecurityError", decision.sentence))
    return decision


def check_ruled(ready: Prepared, context: CallContext, trail: Trail) -> None:
    """Refuses what the operator's rules forbid. Raises ``Stopped``."""
    _ruled(ready, context, trail)


async def check_replay(
    request: CallRequest,
    ready: Prepared,
    context: CallContext,
    trail: Trail,
    stored: ExecutionResult,
    again: Callable[[dict[str, Any]], Prepared],
) -> None:
    """Whether the stored result of a call may be given for this one: where a person must be asked, one said yes to it, or does so now.

    Raises ``Stopped`` where not.
    """
    rule = _ruled(ready, context, trail)
    if not _asks(request, ready, rule, context):
        return
    standing = await _held(request, ready, rule, context, trail)
    if standing is not None and standing.answer == "deny":
        raise Stopped("denied")
    if standing is None and (stored.approval is UNSET or stored.approval.get("outcome") != "allowed"):
        await approved(request, ready, context, trail, _asked_of(stored), again)


def _asked_of(stored: ExecutionResult) -> ExecutionResult:
    """A result that takes what was answered, so that a stored one keeps its own."""
    return msgspec.structs.replace(stored, approval=UNSET)


def _asks(request: CallRequest, ready: Prepared, rule: Ruling | None, context: CallContext) -> bool:
    # The command line's own question, and the bounds of the agent's profile, are no business of the operator's rules.
    if request.ask or context.agent.asks:
        return True
    if rule is not None:
        return rule.verdict == "ask" or _confirms(ready.rights, rule.unless)
    return needs_approval(ready.tool.manifest, ready.rights, context.settings.policy.require_confirmation)


def _scope(rule: Ruling | None, context: CallContext) -> tuple[str, str]:
    """What an answer is bound to beside the tool: the agent that it was given for, and the rule that asked."""
    return context.caller.agent_id, rule.condition if rule is not None else ""


def _shown(ready: Prepared, context: CallContext) -> dict[str, Any]:
    """The arguments without the tool's secrets, those that the operator lets it have, and those of the workflow that the call is a
    node of."""
    granted = spellings_at_hand(ready.tool, context)
    hidden = together(context.secrets, granted) if granted else context.secrets
    return cast("dict[str, Any]", without_in(masked(ready.args, ready.tool), hidden))


def _question(request: CallRequest, ready: Prepared, rule: Ruling | None, context: CallContext) -> Question:
    try:
        return new_question(
            request.call_id,
            ready,
            _shown(ready, context),
            context.settings.policy.approval_timeout_ms,
            *_scope(rule, context),
            context.caller.session_id,
            node=request.node,
        )
    except RecursionError:
        text = "the arguments are nested too deeply to be shown to a person"
        raise Stopped("error", failure("ParameterValidationError", text)) from None


async def question_ahead(
    request: CallRequest, ready: Prepared, context: CallContext, *, anyway: bool = False
) -> Question | None:
    """The question that a call would put to a person when its turn comes; None when it would put none. Raises ``Stopped``.

    ``anyway``: the one that it would put if it had to ask and nothing was answered yet.
    """
    rule = _ruled(ready, context, None)
    if anyway:
        return _question(request, ready, rule, context)
    if context.asking.ask is None or request.approval is not None or not _asks(request, ready, rule, context):
        return None
    if await _standing(request, ready, rule, context) is not None:
        return None
    return _question(request, ready, rule, context)


async def would_ask(request: CallRequest, ready: Prepared, context: CallContext, trail: Trail) -> bool:
    """Whether a person would be asked before the call, who is not: for a dry run. Raises ``Stopped`` where it may not run at all,
    ``ApprovalUnknown`` for an answer: no question was this call's."""
    if request.approval is not None and not request.approval.lenient:
        raise ApprovalUnknown("a dry run asks nobody, so no answer belongs to it")
    rule = _ruled(ready, context, trail)
    if not _asks(request, ready, rule, context):
        return False
    standing = await _held(request, ready, rule, context, trail)
    if standing is not None and standing.answer == "deny":
        raise Stopped("denied")
    return standing is None


async def approved(
    request: CallRequest,
    ready: Prepared,
    context: CallContext,
    trail: Trail,
    result: ExecutionResult,
    again: Callable[[dict[str, Any]], Prepared],
) -> Prepared:
    """What may run: ``ready``, or what ``again`` makes of arguments that a person wrote instead.

    Raises ``Stopped`` for a call that may not, ``ApprovalUnknown`` for a token that is not this call's. What was answered is in
    ``result.approval``.
    """
    suspended = context.asking.suspended if context.asking.ask is None and not context.asking.polls else None
    if suspended is None:
        return await _approved(request, ready, context, trail, result, again, None)
    with suspended.turn() as turn:
        return await _approved(request, ready, context, trail, result, again, turn)


async def _approved(
    request: CallRequest,
    ready: Prepared,
    context: CallContext,
    trail: Trail,
    result: ExecutionResult,
    again: Callable[[dict[str, Any]], Prepared],
    mine: Turn | None,
) -> Prepared:
    for turn in range(MAX_ROUNDS):
        rule = _ruled(ready, context, trail)
        strict = request.approval is not None and not request.approval.lenient
        if turn == 0 and not strict and not _asks(request, ready, rule, context):
            return ready
        if context.cancelled is not None and context.cancelled.is_set():
            raise Stopped("cancelled")
        question = _question(request, ready, rule, context)
        before = tool_digest(ready)
        reply, standing = await _reply(request, question, ready, rule, context, trail, result, mine, first=turn == 0)
        approved = Approved(
            outcome=_OUTCOME[reply.answer],
            scope=reply.scope,
            standing=standing,
            comment=reply.comment or UNSET,
            edited_args=_told_edit(result),
        )
        result.approval = msgspec.to_builtins(approved)
        if reply.answer != "allow":
            if reply.answer == "deny" and reply.scope == "always" and not standing:
                await _keep(reply, ready, rule, context)
            raise Stopped(_STATUS[reply.answer], failure("SecurityError", reply.fault) if reply.fault else None)
        if tool_digest(ready) != before:
            trail.note("approval.void", "warning", message="the tool's files changed while a person was asked")
            continue
        changed = _edited(reply, question, ready, again)
        if changed is not None:
            _ruled(changed, context, trail)
            approved.edited_args = _shown(changed, context)
            result.approval = msgspec.to_builtins(approved)
            trail.note("approval.edited", "info", args=approved.edited_args)
            if not _same_rights(ready, changed):
                # what it may do now was not shown
                ready = changed
                continue
        if reply.scope != "once" and not standing:
            await _keep(reply, ready, rule, context)
        allowed = changed or ready
        return msgspec.structs.replace(allowed, contents=contents_of(allowed))
    raise Stopped("cancelled")


def _told_edit(result: ExecutionResult) -> Any:
    return UNSET if result.approval is UNSET else result.approval.get("editedArgs", UNSET)


async def _reply(
    request: CallRequest,
    question: Question,
    ready: Prepared,
    rule: Ruling | None,
    context: CallContext,
    trail: Trail,
    result: ExecutionResult,
    mine: Turn | None,
    *,
    first: bool,
) -> tuple[Reply, bool]:
    """The answer to a question, and whether it is one that was given before."""
    approvals = context.services.execution.approvals
    approval = request.approval if first else None
    if approval is not None:
        try:
            _, reply = approvals.redeem(approval, question.binding)
        except ApprovalUnknown:
            if not approval.lenient:
                raise
        else:
            trail.note("approval.answered", "info", answer=reply.answer, comment=reply.comment, token=True)
            return reply, False
    standing = await _held(request, ready, rule, context, trail)
    if standing is not None:
        return standing, True
    if context.observer.on_event is not None and (
        context.asking.ask is not None or context.asking.polls or mine is not None
    ):
        context.observer.on_event(request.call_id, "awaitingApproval")
    if mine is not None:
        if await _until_cancelled(mine.come(), context) is None:
            return CANCELLED, False
        # what was answered before its turn came may hold for this question too
        standing = await _held(request, ready, rule, context, trail)
        if standing is not None:
            return standing, True
        unasked = mine.unasked
        if unasked is not None:
            trail.note("approval.answered", "info", answer=unasked.answer)
            return unasked, False
    elif context.asking.ask is None:
        if context.asking.polls:
            trail.note("approval.asked", args=question.args, timeoutMs=question.timeout_ms, token=True)
            result.approval = msgspec.to_builtins(approvals.hand_out(question, context.observer.on_resolved))
            raise Stopped("inputRequired")
        trail.note("approval.answered", "info", answer="unavailable")
        return Reply(answer="unavailable"), False
    turn = context.asking.turn
    if turn is None or mine is not None:
        return await _asked(question, context, trail, mine), False
    if await _until_cancelled(turn.acquire(), context) is None:
        return CANCELLED, False
    try:
        # as above
        standing = await _held(request, ready, rule, context, trail)
        return (await _asked(question, context, trail, mine), False) if standing is None else (standing, True)
    finally:
        turn.release()


async def _asked(question: Question, context: CallContext, trail: Trail, mine: Turn | None) -> Reply:
    """What a person, or whoever was asked ahead, answers now."""
    token = True if mine is not None else None
    trail.note("approval.asked", args=question.args, timeoutMs=question.timeout_ms, token=token)
    since = time.monotonic()
    if mine is not None:
        ahead = mine.ask(question)
    else:
        ahead = context.asking.asked_ahead(question) if context.asking.asked_ahead is not None else None
    if ahead is None:
        reply = await context.services.execution.approvals.ask(question, context)
    else:
        reply = await _until_cancelled(ahead, context) or CANCELLED
    waited = round((time.monotonic() - since) * 1000)
    scope = reply.scope if reply.scope != "once" else None
    trail.note(
        "approval.answered",
        "info",
        answer=reply.answer,
        scope=scope,
        comment=reply.comment,
        message=reply.fault or None,
        waitedMs=waited,
        token=token,
    )
    return reply


async def _until_cancelled(awaited: Awaitable[T], context: CallContext) -> T | None:
    """What comes of it; None for a cancel, which comes to that too."""
    asked = asyncio.ensure_future(awaited)
    stop = asyncio.ensure_future(context.cancelled.wait()) if context.cancelled is not None else None
    waits: set[asyncio.Future[Any]] = {asked} if stop is None else {asked, stop}
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if stop is not None:
            stop.cancel()
        if not asked.done():
            asked.cancel()
            await asyncio.wait({asked})
    return None if asked.cancelled() else asked.result()


async def _held(
    request: CallRequest, ready: Prepared, rule: Ruling | None, context: CallContext, trail: Trail
) -> Reply | None:
    standing = await _standing(request, ready, rule, context)
    if standing is not None:
        trail.note("approval.standing", "info", answer=standing.answer, scope=standing.scope)
    return standing


async def _standing(request: CallRequest, ready: Prepared, rule: Ruling | None, context: CallContext) -> Reply | None:
    binding, answers = tool_digest(ready, *_scope(rule, context)), context.services.execution.approvals.standing
    session_id = context.caller.session_id
    # what was answered in earlier sessions says nothing where the command line asks by itself; what was in this one holds
    kind = answers.in_session(session_id, binding) if request.ask else await answers.find(session_id, binding)
    if kind is None:
        return None
    verb, _, scope = kind.partition("_")
    return Reply(answer="allow" if verb == "allow" else "deny", scope=cast("Any", scope))


async def _keep(reply: Reply, ready: Prepared, rule: Ruling | None, context: CallContext) -> None:
    kind = "reject_always" if reply.answer == "deny" else cast("Any", f"allow_{reply.scope}")
    manifest, caller = ready.tool.manifest, context.caller
    entry = new_entry(
        kind,
        manifest.tool_id,
        manifest.version,
        ready.rights.permissions.granted,
        session_id=caller.session_id,
        agent_id=caller.agent_id,
    )
    await context.services.execution.approvals.standing.keep(entry, tool_digest(ready, *_scope(rule, context)))


def _edited(
    reply: Reply, question: Question, ready: Prepared, again: Callable[[dict[str, Any]], Prepared]
) -> Prepared | None:
    """What is to run with the arguments that a person wrote; None when they left them as they were. Raises ``Stopped``."""
    edited_args = reply.edited_args
    if edited_args is None:
        return None
    if not isinstance(edited_args, dict):
        text = "the arguments as the user changed them are no object"
        raise Stopped("error", failure("ParameterValidationError", text))
    try:
        wanted: dict[str, Any] = with_secrets(cast("dict[str, Any]", edited_args), question.args, ready.args)
        if json.dumps(wanted, sort_keys=True) == json.dumps(ready.args, sort_keys=True):
            return None
        return again(wanted)
    except RecursionError:
        text = "the arguments as the user changed them are nested too deeply"
        raise Stopped("error", failure("ParameterValidationError", text)) from None


def _same_rights(first: Prepared, other: Prepared) -> bool:
    shown = (first.rights.permissions.granted, first.rights.permissions.denied)
    if shown != (other.rights.permissions.granted, other.rights.permissions.denied):
        return False
    if first.target is None or other.target is None:
        return first.target is other.target
    return (first.target.folder, first.target.handler) == (other.target.folder, other.target.handler)
