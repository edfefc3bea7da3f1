"""How this client's user is asked before a call, and the answers that hold (``approval/list``, ``approval/revoke``).

The ladder, first that the client can do (interface, Reverse request): ``tool/requestApproval``, ``window/showMessageRequest``, a token in
the result, else there is no one to ask. Must not decide whether a person has to be asked, nor what an answer lets run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from tamis.protocols.contract import ApprovalList, ApprovalResolved, RevokedApprovals
from tamis.server.rpc.params import Empty, Group, Host, Params
from tamis.server.rpc.session import Request, named_error
from tamis.server.runtime.calls.model import Ask, CallContext, Question, Reply, TokenAnswer
from tamis.server.runtime.execution.approvals.questions import ApprovalUnknown, as_request, ask_by_message
from tamis.server.runtime.execution.approvals.replies import read_reply
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError

_WARNING = 2


class GivenApproval(Params, kw_only=True):
    """A person's answer to the question that an earlier result of this call held."""

    token: str
    option_id: str
    edited_args: dict[str, Any] | None = None
    """Arguments to run with instead; a value that is left ``***`` stays what it was."""
    comment: str | None = None
    """Words for the model, with a refusal."""


class Revoke(Params, kw_only=True):
    """Params of ``approval/revoke``: an answer by its ``id``, all of a tool, or all."""

    id: str | None = None
    tool_id: str | None = None
    all: bool = False


def with_ladder(host: Host, context: CallContext) -> CallContext:
    """What a call runs under, with how this client's user is asked."""

    def resolved(settled: ApprovalResolved) -> None:
        host.session.notify("tool/approvalResolved", settled)

    ask: Ask | None = None
    if host.approval == "request":
        ask = _by_request(host)
    elif host.shows_messages:
        ask = _by_message(host)
    forms = host.approval == "request" and host.elicits and host.shows_forms
    return context.having(
        ask=ask,
        forms=forms,
        addresses=forms,
        elicits=ask is not None and (host.shows_messages or (host.elicits and host.approval == "request")),
        asks_together=host.approval == "request",
        polls=ask is None and host.approval == "poll",
        asks_later=True,
        on_resolved=resolved,
    )


def token_answer(approval: GivenApproval | None, *, lenient: bool = False) -> TokenAnswer | None:
    """The answer that came with a call."""
    if approval is None:
        return None
    return TokenAnswer(
        token=approval.token,
        option_id=approval.option_id,
        edited_args=approval.edited_args,
        comment=approval.comment or "",
        lenient=lenient,
    )


def unknown(
    error: ApprovalUnknown | str, remedy: str = "run the call without 'approval' to be asked again"
) -> RpcError:
    """Error 1401 for a token that answers nothing."""
    return named_error("approvalUnknown", str(error), remedy)


def check_token(host: Host, approval: GivenApproval | None) -> None:
    """Refuses a token that can answer nothing (1401) before anything is run."""
    if approval is not None and not host.runtime.parts.approvals.knows(approval.token):
        raise unknown("the token was never given, is used, or has expired")


def _by_request(host: Host) -> Ask:
    by_message = _by_message(host)

    async def ask(question: Question) -> Reply:
        if question.elicitation is not None and not host.elicits:
            # a host that takes it for an approval might allow what is no approval
            return await by_message(question)
        try:
            raw: object = await host.session.ask("tool/requestApproval", as_request(question))
        except RpcError:
            return Reply(answer="unavailable")
        return read_reply(raw, question.options)

    return ask


def _by_message(host: Host) -> Callable[[Question], Awaitable[Reply]]:
    async def choose(text: str, titles: Sequence[str]) -> str | None:
        params = {"type": _WARNING, "message": text, "actions": [{"title": title} for title in titles]}
        raw: object = await host.session.ask("window/showMessageRequest", params)
        title = cast("dict[str, Any]", raw).get("title") if isinstance(raw, dict) else None
        return title if title in titles else None

    async def ask(question: Question) -> Reply:
        try:
            return await ask_by_message(question, choose)
        except RpcError:
            return Reply(answer="unavailable")

    return ask


def methods(host: Host) -> Group:
    """The methods of this group."""

    async def listed(_request: Request, _params: Empty) -> ApprovalList:
        """The answers of persons that hold for later calls in this folder, and the questions that are open."""
        approvals = host.runtime.parts.approvals
        return ApprovalList(approvals=await approvals.standing.listed(), open=approvals.open)

    async def revoke(_request: Request, params: Revoke) -> RevokedApprovals:
        """Forgets answers that hold; the next call is asked about again."""
        if (params.id is not None) + (params.tool_id is not None) + params.all != 1:
            raise RpcError(INVALID_PARAMS, "give id, toolId or all: true")
        gone = await host.runtime.parts.approvals.standing.revoke(
            lambda entry: params.all or entry.id == params.id or entry.tool_id == params.tool_id
        )
        return RevokedApprovals(revoked=gone)

    return {"approval/list": (Empty, listed), "approval/revoke": (Revoke, revoke)}
