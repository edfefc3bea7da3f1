"""The questions of a runtime from begin to end: each is settled once, by the first of an answer, its expiry, a cancel, or an answer
to its whole batch. What comes later is nobody's.

A question that cannot be put to a person here is handed out with a token, for the host to come back with the answer. Must not know
faces, nor when a question is needed (``execution/approving.py``).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, get_args

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import (
    ApprovalBatch,
    ApprovalElicitation,
    ApprovalNode,
    ApprovalOption,
    ApprovalOutcome,
    ApprovalRequest,
    ApprovalResolved,
)
from tamis.server.runtime.calls.model import (
    Answer,
    Batch,
    CallContext,
    OnResolved,
    Question,
    Reply,
    Stopped,
    TokenAnswer,
)
from tamis.server.runtime.calls.prepared import Prepared, call_digest
from tamis.server.runtime.calls.runner import Invocation
from tamis.server.runtime.calls.running_calls import unless_cancelled
from tamis.server.runtime.execution.approvals.remembered import StandingAnswers
from tamis.server.runtime.execution.approvals.replies import (
    ALLOW,
    BATCH_OPTIONS,
    CANCELLED,
    OPTIONS,
    REJECT,
    chosen,
    json_text,
    line,
    preview,
    question_text,
    risk_of,
    sentence,
)

if TYPE_CHECKING:
    from tamis.server.runtime.execution.suspended import SuspendedRun, Turn

MAX_TOKENS = 1_000
"""So many questions wait with a token; with one more the oldest has expired."""
WITHDRAWN_S = 0.5
ANSWERS: tuple[str, ...] = get_args(Answer)
_OUTCOMES: dict[Answer, ApprovalOutcome] = {
    "allow": "allowed",
    "deny": "denied",
    "timeout": "timeout",
    "unavailable": "unavailable",
    "cancelled": "cancelled",
}


MORE, DETAILS, BACK = "More…", "Details", "Back"
MAX_MORE = 20
"""How often a question is put again by its own buttons: an answer by a program must not hold a call for ever."""
MAX_WHOLE_CHARS = 20_000
Choose = Callable[[str, Sequence[str]], Awaitable[str | None]]


async def ask_by_message(question: Question, choose: Choose, show: Callable[[], object] | None = None) -> Reply:
    """Asks a person who sees a line and three buttons; what they do not show comes by the last of them.

    ``choose`` gives one of the titles or None. ``show`` opens the question as a document; where there is none, the second message has all
    of it. Raises what ``choose`` raises.
    """
    labels = {option.label: option for option in question.options}
    if question.elicitation is not None:
        title = await choose(question_text(question), [*labels])
        return CANCELLED if title not in labels else chosen(labels[title].option_id, question.options)
    text, is_whole = line(question)
    # One says yes to what was shown: what does not fit is shown by the second message.
    first = [one.label for one in (ALLOW, REJECT) if one in question.options and (is_whole or one is not ALLOW)]
    rest = [label for label in labels if label not in first]
    args = question.preview if show is not None else json_text(question.args)
    all_of_it = sentence(question.tool_id, question.display_name, args, question.permissions, MAX_WHOLE_CHARS)
    few = (text, [*first, MORE])
    all_of_them = (all_of_it, [*rest, *([DETAILS] if show is not None else []), BACK])
    shown = few
    for _ in range(MAX_MORE):
        title = await choose(*shown)
        if title == DETAILS and show is not None:
            show()
        elif title in (MORE, BACK):
            shown = all_of_them if title == MORE else few
        else:
            return CANCELLED if title not in labels else chosen(labels[title].option_id, question.options)
    return CANCELLED


class ApprovalUnknown(Exception):  # noqa: N818 (named after the error of the interface, 1401)
    """A token that was never given, is used, has expired, or belongs to something else."""


class _Open:
    """A question that is being asked."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.settled: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

    def settle(self, reply: Reply) -> None:
        if not self.settled.done():
            self.settled.set_result(reply)


class _Token(msgspec.Struct):
    question: Question
    until: float
    expiry: asyncio.TimerHandle
    on_resolved: OnResolved | None
    settle: Callable[[Reply], None] | None
    open: bool = True
    """Whether its question still is one; the token of a run that waits leads to the run's result besides."""


class Approvals:
    """The questions of one runtime, and the answers that hold."""

    def __init__(self, standing: StandingAnswers) -> None:
        self.standing = standing
        self._open: dict[str, _Open] = {}
        self._tokens: dict[str, _Token] = {}

    @property
    def open(self) -> list[ApprovalRequest]:
        """The questions that nobody has answered yet."""
        waiting = [entry.question for entry in self._open.values()]
        handed_out = [token.question for token in self._tokens.values() if token.open]
        return [as_request(question) for question in (*waiting, *handed_out)]

    async def ask(self, question: Question, context: CallContext) -> Reply:
        """Puts a question to a person and waits for what settles it; never raises but when it is cancelled itself."""
        assert context.asking.ask is not None
        loop = asyncio.get_running_loop()
        until = loop.time() + question.timeout_ms / 1000
        entry = self._open[question.approval_id] = _Open(question)
        asked = asyncio.ensure_future(_answered(context.asking.ask(question)))
        stop = asyncio.ensure_future(context.cancelled.wait()) if context.cancelled is not None else None
        waits: set[asyncio.Future[Any]] = {entry.settled, asked}
        if stop is not None:
            waits.add(stop)
        reply = CANCELLED
        try:
            await asyncio.wait(waits, timeout=max(0.0, until - loop.time()), return_when=asyncio.FIRST_COMPLETED)
            if stop is not None and stop.done():
                reply = CANCELLED
            elif entry.settled.done():
                reply = entry.settled.result()
            else:
                # an answer that is there only now that the time is over came too late
                reply = asked.result() if asked.done() and loop.time() < until else Reply(answer="timeout")
        finally:
            del self._open[question.approval_id]
            for waited in waits:
                waited.cancel()
            # What withdraws the question goes out before the call's result does.
            with suppress(asyncio.CancelledError):
                await asyncio.wait({asked}, timeout=WITHDRAWN_S)
            _tell(context.observer.on_resolved, question, reply)
        if reply.whole_batch and question.batch is not None:
            for other in list(self._open.values()):
                if other.question.batch is not None and other.question.batch.id == question.batch.id:
                    other.settle(msgspec.structs.replace(reply, edited_args=None))
        return reply

    async def elicit(self, call: Invocation, asked: ApprovalElicitation, options: tuple[ApprovalOption, ...]) -> Reply:
        """Puts the question of a call's MCP server to a person; like ``ask``. A host that polls gets it with a token, as a part of the call's run."""
        manifest, timeout_ms = call.tool.manifest, call.context.settings.policy.approval_timeout_ms
        permissions = call.rights.permissions
        shown: dict[str, object] = msgspec.to_builtins(asked)
        identity = f"approval-{os.urandom(8).hex()}"
        question = Question(
            approval_id=identity,
            call_id=call.request.call_id,
            tool_id=manifest.tool_id,
            version=manifest.version,
            display_name=manifest.display_name,
            args=shown,
            preview=preview(shown),
            risk=risk_of(permissions, builds=False, secrets=False, unconfined=True),
            permissions=permissions,
            timeout_ms=timeout_ms,
            expires_at=_expiry(timeout_ms),
            binding=identity,
            options=options,
            node=call.request.node,
            elicitation=asked,
        )
        suspended = call.context.asking.suspended
        if call.context.asking.ask is None and suspended is not None:
            return await _in_turn(question, suspended, call.context)
        return await self.ask(question, call.context)

    def hand_out(
        self, question: Question, on_resolved: OnResolved | None, settle: Callable[[Reply], None] | None = None
    ) -> ApprovalRequest:
        """The question with a token that answers it, once, until it expires. ``settle`` is told the answer where a call waits for it."""
        loop = asyncio.get_running_loop()
        token = os.urandom(24).hex()
        seconds = question.timeout_ms / 1000
        expiry = loop.call_later(seconds, self.expire, token)
        self._tokens[token] = _Token(question, loop.time() + seconds, expiry, on_resolved, settle)
        while len(self._tokens) > MAX_TOKENS:
            self.expire(next(iter(self._tokens)))
        request = as_request(question)
        request.token = token
        return request

    def knows(self, token: str) -> bool:
        """Whether a token can still answer something."""
        entry = self._tokens.get(token)
        return entry is not None and asyncio.get_running_loop().time() < entry.until

    def redeem(self, token_answer: TokenAnswer, binding: str) -> tuple[Question, Reply]:
        """The answer that came with a token, for the call of that binding. Raises ``ApprovalUnknown``; then the token is as it was."""
        token, reply = self._fitting(token_answer, (binding,))
        if token.settle is not None:
            raise ApprovalUnknown("the token belongs to a run that waits for it, not to a new one")
        self._use(token_answer.token, reply)
        return token.question, reply

    def answer(self, token_answer: TokenAnswer, binding: str) -> None:
        """Settles the question of a call that waits, for whoever repeats the call of that binding. Raises like ``redeem``."""
        _, reply = self._fitting(token_answer, (binding,))
        self._use(token_answer.token, reply)

    def withdraw(self, token: str) -> None:
        """The question of a call that waits is none any more; its token leads to the call until it expires."""
        entry = self._tokens.get(token)
        if entry is not None and entry.open:
            entry.open = False
            _tell(entry.on_resolved, entry.question, CANCELLED)

    def check(self, token_answer: TokenAnswer, bindings: Collection[str]) -> None:
        """Raises ``ApprovalUnknown`` for an answer that ``redeem`` would take for none of these bindings; uses nothing up."""
        self._fitting(token_answer, bindings)

    def _fitting(self, token_answer: TokenAnswer, bindings: Collection[str]) -> tuple[_Token, Reply]:
        token = self._tokens.get(token_answer.token)
        if token is None or not self.knows(token_answer.token):
            raise ApprovalUnknown(
                "the token was never given, is used, or has expired; run the call without it to be asked again"
            )
        if token.question.binding not in bindings:
            raise ApprovalUnknown(
                "the token belongs to another call: it fits the tool, arguments, rights and session it was given for"
            )
        if token.question.elicitation is not None and not token_answer.option_id:
            return token, CANCELLED
        reply = chosen(
            token_answer.option_id,
            token.question.options,
            token_answer.edited_args,
            token_answer.comment,
            token_answer.content,
        )
        if reply.answer not in ("allow", "deny"):
            raise ApprovalUnknown("the option is none of those that were offered with the token")
        return token, reply

    def expire(self, token: str) -> None:
        """The time of a token is over."""
        self._use(token, Reply(answer="timeout"))

    def close_question(self, token: str) -> None:
        """A person closed the question of a token without an answer."""
        self._use(token, CANCELLED)

    def _use(self, token: str, reply: Reply) -> None:
        entry = self._tokens.pop(token, None)
        if entry is None:
            return
        entry.expiry.cancel()
        if entry.open:
            _tell(entry.on_resolved, entry.question, reply)
        if entry.settle is not None:
            entry.settle(reply)

    def close(self) -> None:
        """No token answers anything any more."""
        for token in self._tokens.values():
            token.expiry.cancel()
        self._tokens.clear()


def new_question(
    call_id: str,
    ready: Prepared,
    args: dict[str, object],
    timeout_ms: int,
    *scope: str,
    node: ApprovalNode | None = None,
) -> Question:
    """What a person is asked now; ``args`` are those of the call with secrets masked, ``scope`` what the answer is bound to beside the
    call itself."""
    manifest = ready.tool.manifest
    permissions = ready.rights.permissions
    return Question(
        approval_id=f"approval-{os.urandom(8).hex()}",
        call_id=call_id,
        tool_id=manifest.tool_id,
        version=manifest.version,
        display_name=manifest.display_name,
        args=args,
        preview=preview(args),
        risk=risk_of(
            permissions,
            builds=manifest.execution.allow_build,
            secrets=args != ready.args,
            unconfined=ready.target is None,
        ),
        permissions=permissions,
        timeout_ms=timeout_ms,
        expires_at=_expiry(timeout_ms),
        binding=call_digest(ready, *scope),
        options=OPTIONS,
        node=node,
    )


def _expiry(timeout_ms: int) -> str:
    from datetime import UTC, datetime, timedelta

    return (datetime.now(UTC) + timedelta(milliseconds=min(timeout_ms, 10**12))).isoformat()


def put_off(question: Question, binding: str) -> Question:
    """The question as it is put now that its turn has come, to be answered with the call of that binding."""
    return msgspec.structs.replace(question, binding=binding, expires_at=_expiry(question.timeout_ms))


def in_batch(question: Question, batch: Batch) -> Question:
    """The question as one of several, which can be answered together."""
    return msgspec.structs.replace(question, batch=batch, options=BATCH_OPTIONS)


def as_request(question: Question) -> ApprovalRequest:
    """The question in the interface's form."""
    batch = question.batch
    return ApprovalRequest(
        approval_id=question.approval_id,
        call_id=question.call_id,
        tool=question.tool_id,
        version=question.version,
        args=question.args,
        args_preview=question.preview,
        risk=question.risk,
        permissions=question.permissions,
        options=list(question.options),
        expires_at=question.expires_at,
        batch=UNSET if batch is None else ApprovalBatch(id=batch.id, index=batch.index, count=batch.count),
        node=question.node or UNSET,
        elicitation=question.elicitation or UNSET,
    )


def _tell(on_resolved: OnResolved | None, question: Question, reply: Reply) -> None:
    if on_resolved is not None:
        outcome = _OUTCOMES[reply.answer]
        on_resolved(ApprovalResolved(approval_id=question.approval_id, call_id=question.call_id, outcome=outcome))


async def _in_turn(question: Question, run: SuspendedRun, context: CallContext) -> Reply:
    """Puts a question to the host that polls, once no other question of the run is put; a cancel of the call settles it too."""

    async def asked(turn: Turn) -> Reply:
        await turn.come()
        return turn.unasked or await turn.ask(question)

    with run.turn() as turn:
        try:
            return await unless_cancelled(context.cancelled, asked(turn))
        except Stopped:
            return CANCELLED


async def _answered(asking: Awaitable[Answer | Reply]) -> Reply:
    try:
        answer = await asking
    except Exception:  # who cannot even be asked is not there, whatever the reason
        return Reply(answer="unavailable")
    if isinstance(answer, Reply):
        return answer
    return Reply(answer=answer) if answer in ANSWERS else CANCELLED


# The questions of one text, asked at once before the turn of its first call comes (V61). Each call takes its answer when its turn comes, if it is
# still the call that was shown.


class Together:
    """Questions that are open together."""

    def __init__(self, approvals: Approvals, questions: Sequence[Question], context: CallContext) -> None:
        """Asks all of them now."""
        identity = f"batch-{os.urandom(8).hex()}"
        self._waiting: dict[tuple[str, str], asyncio.Task[Reply]] = {}
        for index, question in enumerate(questions):
            asked = in_batch(question, Batch(identity, index, len(questions)))
            task = asyncio.get_running_loop().create_task(approvals.ask(asked, context))
            self._waiting[question.call_id, question.binding] = task

    def __call__(self, question: Question) -> Awaitable[Reply] | None:
        """The answer to a question that was asked already, once; None when it has to be asked."""
        return self._waiting.pop((question.call_id, question.binding), None)

    async def end(self) -> None:
        """Withdraws what no call came for."""
        left, self._waiting = list(self._waiting.values()), {}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)
