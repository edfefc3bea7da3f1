"""One round of an agent's loop: a model's answer is read, its calls run, and what the model reads next is written (seed 001 §9, seed 000 §3.3).

The loop itself is the host's: it gives the model the observation and comes back with the next answer until ``stop`` is there.
``ToolCallConfig`` governs (ruling 42): a missing one means that tool calls are off. Must not know framing or who asks the model.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ExecuteTextResult, ExecutionError, ExecutionResult, StepResult, StepStop
from tamis.protocols.manifest.profile import Profile, ToolCallConfig
from tamis.protocols.model import Document
from tamis.protocols.observation import cut_middle
from tamis.protocols.positions import PositionEncoding
from tamis.server.runtime.agents.session import (
    DENIED_ROUNDS,
    LOOP_ROUNDS,
    AgentSession,
    Sessions,
    Unfinished,
    digest_of,
)
from tamis.server.runtime.agents.views import Asked, asked_for, execution_result, kept_text
from tamis.server.runtime.calls.model import CallContext, OnEvent, State, TokenAnswer
from tamis.server.runtime.calls.runner import failure
from tamis.server.runtime.execution.text import (
    TextOptions,
    beside_results,
    check_approval,
    execute_text,
    plan_text,
    refuse_text,
    unread_observations,
)
from tamis.server.runtime.observe.trail import Trail
from tamis.server.runtime.settings.profile import AgentRules

MAX_IDLE_ROUNDS = 10
"""So many rounds running may ask for calls of which none can run (unknown tools, unfit arguments, blocks that cannot be read)."""
LOGGED_CHARS = 8_000
"""So much of a text and of an observation stands in the audit log."""

Read = Callable[[str, str], Document]
"""Reads a text in a protocol. Raises ``ValueError`` for one that nobody brings."""


class StepRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of a model. ``config`` holds the fields of ``ToolCallConfig`` that the request gives, by their names in the file."""

    text: str
    session_id: str
    config: dict[str, Any] = {}
    new_turn: bool = False
    """Somebody spoke to the model since its last answer: its rounds count anew."""
    approval: TokenAnswer | None = None
    """A person's answer to the question that a result of this same answer held: its other calls keep their results."""
    encoding: PositionEncoding | None = None


def config_of(rules: AgentRules, config: dict[str, Any], default_protocol: str) -> ToolCallConfig:
    """The config in force: what the request gives, over the profile's, over the defaults; without either, calls are off (V17)."""
    profile = rules.profile
    own = profile.config if profile is not None and profile.has_config else ToolCallConfig()
    known = msgspec.to_builtins(own)
    known["protocol"] = rules.protocol or default_protocol
    return msgspec.convert({**known, **config}, ToolCallConfig)


async def step(request: StepRequest, context: CallContext, sessions: Sessions, read: Read) -> StepResult:
    """One round. Steps of one session run one after another. Raises ``TooManyWaitingError``, ``ApprovalUnknown`` for an answer that fits
    none of its calls, and ``ValueError`` for an unknown protocol."""
    config = config_of(context.agent, request.config, context.settings.protocol.default)
    document = read(request.text, config.protocol)
    cancelled = context.cancelled or asyncio.Event()
    session = sessions.open(request.session_id)
    context = msgspec.structs.replace(
        context,
        cancelled=cancelled,
        caller=msgspec.structs.replace(context.caller, session_id=request.session_id),
        agent=_rules(context.agent, config),
    )
    options = TextOptions(
        mode="parallel" if config.parallel_execution else "sequential",
        call_prefix=f"step-{sessions.number()}",
        encoding=request.encoding,
        approval=request.approval,
    )
    with context.services.running_calls.entered("", request.session_id, cancelled):
        async with session.turn(cancelled) as mine:
            if not mine:
                # it never had its turn, so nothing of it is the conversation's
                iteration = session.iteration
                session = AgentSession(request.session_id)
                session.iteration = iteration
            return await _Round(request, config, document, options, context, session, read).run()


def _rules(rules: AgentRules, config: ToolCallConfig) -> AgentRules:
    if rules.problem:
        return rules
    profile = rules.profile or Profile()
    return msgspec.structs.replace(rules, profile=msgspec.structs.replace(profile, config=config, has_config=True))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


class _Round:
    """What one round knows while it goes on."""

    def __init__(
        self,
        request: StepRequest,
        config: ToolCallConfig,
        document: Document,
        options: TextOptions,
        context: CallContext,
        session: AgentSession,
        read: Read,
    ) -> None:
        before = session.unfinished if request.approval is not None else None
        if before is not None and before.digest == _digest(request.text):
            options = msgspec.structs.replace(options, call_prefix=before.prefix, done=before.done)
        else:
            before = None
        self.before = before
        """The round that this one finishes."""
        self.request = request
        self.config = config
        self.document = document
        self.options = options
        self.context = context
        self.session = session
        self.read = read
        self.planned = plan_text(document)
        self.asked: list[Asked] = asked_for(document, self.planned, options, context.registry)
        self.unread = unread_observations(document)
        self.beside = beside_results(document)
        self.trail = Trail(context.services.audit, context.services.log, str(context.root), options.call_prefix)

    async def run(self) -> StepResult:
        session = self.session
        turn_iteration = 0 if self.request.new_turn or session.answered else session.turn_iteration
        cancelled = self.context.cancelled is not None and self.context.cancelled.is_set()
        if not cancelled and not self._off() and not self._spent(turn_iteration):
            # before anything of this answer is the conversation's
            await check_approval(self.document, self.context, self.options)
        if self.request.new_turn or session.answered:
            session.new_turn()
        answer = kept_text(self.document, self.asked)
        session.unfinished = None
        if self.before is None:
            session.add_answer(answer, self.asked)
        self.trail.keep_secret([secret for question in self.asked for secret in question.secrets])
        self.trail.note(
            "agent.answered",
            sessionId=self.request.session_id,
            protocol=self.config.protocol,
            text=cut_middle(answer, LOGGED_CHARS),
            calls=len(self.asked),
            unreadBlocks=len(self.unread),
        )
        try:
            done, stop, explanation = await self._outcome()
        except BaseException as error:
            session.broke_off([question.request.request_id for question in self.asked], type(error).__name__)
            raise
        if not self.asked:
            done.observation = "\n".join(text for _block, text in self.beside.told)
        self._record(done, stop, explanation)
        result = self._result(done, stop, explanation)
        self.trail.note(
            "agent.observed",
            sessionId=self.request.session_id,
            iteration=result.iteration,
            statuses=[result.status for result in done.results],
            observation=cut_middle(done.observation, LOGGED_CHARS),
            stop=stop,
            message=explanation,
        )
        return result

    async def _outcome(self) -> tuple[ExecuteTextResult, StepStop | None, str]:
        session, config = self.session, self.config
        if not self.asked and not self.unread:
            session.answered = True
            explanations = (self._passed_over(), self.beside.explanation)
            return self._refused(failure("SecurityError", "")), "noTools", "\n".join(filter(None, explanations))
        if off := self._off():
            return self._refused(failure("SecurityError", off)), "denied", f"No call was run: {off}."
        if self._spent(session.turn_iteration):
            rounds = "1 round" if config.max_iterations == 1 else f"{config.max_iterations} rounds"
            limit = f"this agent may call tools in {rounds} of a turn (maxIterations), which it has done"
            error = failure("SecurityError", limit, code="maxIterations")
            return self._refused(error), "maxIterations", f"No call was run: {limit}. {_GO_ON}"
        context = self.context.having(on_event=self._recorder(self.context.observer.on_event))
        done = await execute_text(self.document, context, self.options)
        stop, explanation = self._judged(done.results)
        return done, stop, explanation

    def _spent(self, turn_iteration: int) -> bool:
        return turn_iteration >= self.config.max_iterations and self.before is None

    def _off(self) -> str:
        return self.context.agent.problem or ("" if self.config.enabled else _OFF)

    def _passed_over(self) -> str:
        """What an answer without a call in its session's protocol asks for in another one; empty when it asks for nothing."""
        spoken = self.config.protocol
        if spoken == "auto":
            return ""
        whole = self.read(self.request.text, "auto")
        places = [item.block for item in plan_text(whole)] + [block for block, _text in unread_observations(whole)]
        protocols = sorted({whole.blocks[block].protocol for block in places} - {spoken})
        if not protocols:
            return ""
        named = "" if "protocol" in self.request.config else ", since config.protocol names no other"
        text = f"The answer has calls in {' and '.join(protocols)}, which were not read: it is read as {spoken}{named}. Set config.protocol to '{protocols[0]}' or 'auto'."
        off = self._off()
        return f"{text} No call would run, either: {off}." if off else text

    def _judged(self, results: Sequence[ExecutionResult]) -> tuple[StepStop | None, str]:
        """Counts the round, and says whether the loop ends with it."""
        session = self.session
        pairs = [(question.args, result) for question, result in zip(self.asked, results, strict=True)]
        ran = [pair for pair in pairs if pair[1].attempts > 0 or pair[1].status == "accepted"]
        counted = any(not result.replayed for _, result in ran)
        if counted and not (self.before is not None and self.before.counted):
            session.iteration += 1
            session.turn_iteration += 1
        waits = any(result.status == "inputRequired" for result in results)
        if waits:
            done = {
                item.index: result
                for item, result in zip(self.planned, results, strict=True)
                if result.status not in ("inputRequired", "cancelled")
            }
            session.unfinished = Unfinished(_digest(self.request.text), self.options.call_prefix, done, counted)
        if self.context.cancelled is not None and self.context.cancelled.is_set():
            return "cancelled", "The step was cancelled. What was finished before stands."
        denied = [pair for pair in pairs if pair[1].status == "denied"]
        # the same answer given again for another question is the same round
        goes_on = waits and self.before is not None
        # rounds that correct themselves neither are a loop nor end one
        repeated = session.repeats.add(digest_of(ran)) if ran and not goes_on else 0
        if not denied:
            session.denials.clear()
        insisted = session.denials.add(digest_of(denied)) if denied and not ran and not goes_on else 0
        session.idle_rounds = 0 if ran or denied or waits else session.idle_rounds + 1
        if repeated >= LOOP_ROUNDS:
            return (
                "loopDetected",
                f"The same calls with the same arguments gave the same results {repeated} rounds running.",
            )
        if insisted >= DENIED_ROUNDS:
            return "denied", f"The user denied the same calls {insisted} rounds running."
        if session.idle_rounds >= MAX_IDLE_ROUNDS:
            return "maxIterations", f"{session.idle_rounds} rounds running asked for calls of which none could run."
        return None, ""

    def _refused(self, error: ExecutionError) -> ExecuteTextResult:
        context = self.context.having(on_event=self._recorder(self.context.observer.on_event))
        return refuse_text(self.document, context, self.options, error)

    def _recorder(self, on_event: OnEvent | None) -> OnEvent:
        def tell(call_id: str, state: State) -> None:
            self.session.note_state(call_id, state)
            if on_event is not None:
                on_event(call_id, state)

        return tell

    def _record(self, done: ExecuteTextResult, stop: StepStop | None, explanation: str) -> None:
        untold = list(self.beside.told) if self.before is None else []
        for item, question, result in zip(self.planned, self.asked, done.results, strict=True):
            while untold and untold[0][0] < item.block:
                self.session.add_unread(untold.pop(0)[1])
            if item.index not in self.options.done:
                self.session.add_result(question, result)
        for _block, text in untold:
            self.session.add_unread(text)
        if stop is not None and explanation:
            self.session.add_stop(stop, explanation)

    def _result(self, done: ExecuteTextResult, stop: StepStop | None, explanation: str) -> StepResult:
        requests = [question.request for question in self.asked]
        return StepResult(
            response_text=done.parse.response_text,
            publishable=not self.unread and not any(_is_wrong(result) for result in done.results),
            trailing_text=done.parse.trailing_text,
            has_tool_requests=bool(requests),
            requests=requests,
            results=done.results,
            observation=done.observation,
            iteration=self.session.iteration,
            stop=UNSET if stop is None else stop,
            explanation=explanation or UNSET,
            parsed_requests=requests,
            execution_results=[
                execution_result(question, result) for question, result in zip(self.asked, done.results, strict=True)
            ],
        )


def _is_wrong(result: ExecutionResult) -> bool:
    """Whether a call was not what the tool or its protocol asks for, so that the model is to write it again."""
    error = result.error
    return error is not UNSET and result.attempts == 0 and error.type in ("UnknownTool", "ParameterValidationError")


_OFF = "tool calls are off for this agent: toolCallConfig.enabled is not true, in the request's config or the agent profile"
_GO_ON = "A new turn (newTurn), or an answer without a call, begins the count again"


# A text of a model whose calls are run for a face, written down as a round of an agent is: what was said, what was read of it, what is answered
# (A59).


MAX_CODES = 50


async def execute_noted_text(
    document: Document,
    context: CallContext,
    options: TextOptions,
    on_result: Callable[[ExecutionResult], None] | None = None,
    on_unread: Callable[[str], None] | None = None,
) -> ExecuteTextResult:
    """``execute_text`` with the text before and the observation behind it in the audit log, masked and shortened as an agent's are."""
    planned = plan_text(document)
    asked = asked_for(document, planned, options, context.registry)
    trail = Trail(context.services.audit, context.services.log, str(context.root), options.call_prefix, context.trace)
    trail.keep_secret([secret for question in asked for secret in question.secrets])
    trail.note(
        "text.received",
        protocols=list(dict.fromkeys(block.protocol for block in document.blocks)),
        text=cut_middle(kept_text(document, asked), LOGGED_CHARS),
        calls=len(planned),
        setAside=sum(block.aside for block in document.blocks),
        findings=[diag.code for diag in document.diagnostics[:MAX_CODES]],
    )
    done = await execute_text(document, context, options, on_result, on_unread)
    trail.note(
        "text.observed",
        statuses=[result.status for result in done.results],
        observation=cut_middle(done.observation, LOGGED_CHARS),
    )
    return done
