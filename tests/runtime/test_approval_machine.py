"""Whatever the order of questions, answers, edits, expiries, cancels and changes: a call runs if and only if it was allowed, for exactly
what was shown (ruling 40, V61)."""

from __future__ import annotations

import asyncio
import os
import selectors
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tamis.protocols.contract import ApprovalResolved, ExecutionResult
from tamis.server.runtime.calls.model import CallRequest, Question, Reply, TokenAnswer
from tamis.server.runtime.calls.runner import Invocation
from tamis.server.runtime.execution import preparing as steps
from tamis.server.runtime.execution.approvals.questions import ApprovalUnknown
from tamis.server.runtime.execution.approvals.replies import read_reply
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.observe.trail import Caller
from tamis.server.runtime.runtime import Runtime
from tests.sample_tools import make_tool

TIMEOUT_S = 100.0
TEXTS = st.sampled_from(["a", "b", "bad"])
EDITS = st.sampled_from([None, {"text": "a"}, {"text": "mine"}, {"text": "bad"}, {"no": 1}, "x", []])
RAW = st.one_of(
    st.fixed_dictionaries(
        {"outcome": st.sampled_from(["selected", "cancelled", "Selected"])},
        optional={
            "optionId": st.sampled_from(["allow", "session", "always", "reject", "never", "allow-all", "yes", None, 1]),
            "editedArgs": EDITS,
            "comment": st.sampled_from(["no", None, 3]),
        },
    ),
    st.sampled_from([None, "allow", True, [], {}]),
)


class _Still(selectors.DefaultSelector):
    """A selector that never waits: time goes on only when a test says so."""

    def select(self, timeout: float | None = None) -> Any:
        return super().select(0 if timeout is None or timeout > 0.001 else timeout)


class Clock(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        super().__init__(_Still())
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def settle(self) -> None:
        """Lets everything happen that can happen now."""

        async def turns() -> None:
            for _ in range(12):
                await asyncio.sleep(0)

        self.run_until_complete(turns())

    def stored(self, work: Any) -> Any:
        """Waits for work that another thread does."""
        return self.run_until_complete(work)


class Asked:
    """A call that began, and what was said about it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.cancel = asyncio.Event()
        self.task: asyncio.Task[ExecutionResult] | None = None
        self.reply: asyncio.Future[Any] | None = None
        self.question: Question | None = None
        self.may: list[dict[str, Any]] = []
        """The arguments that a person allowed for it."""
        self.began = 0


def allows(raw: Any) -> bool:
    """What "a clear allow" is, said a second time and plainly."""
    return (
        isinstance(raw, dict)
        and raw.get("outcome") == "selected"
        and raw.get("optionId") in ("allow", "session", "always")
    )


class Approvals(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tamis-approvals-"))
        self.state = os.environ["TAMIS_STATE_DIR"]
        os.environ["TAMIS_STATE_DIR"] = str(self.folder / "state")
        make_tool(self.folder, "t:echo", properties={"text": {"type": "string"}})
        self.loop = Clock()
        self.real = steps.runner_of
        steps.runner_of = lambda _tool: self  # type: ignore[assignment,return-value]  # pyright: ignore
        rules = [{"parameter": "text", "matches": "bad", "verdict": "deny"}]
        policy = {"requireConfirmation": "always", "approvalTimeoutMs": TIMEOUT_S * 1000, "rules": rules}
        policy["approvalTimeoutMs"] = int(TIMEOUT_S * 1000)
        self.runtime = Runtime(self.folder, {"policy": policy, "audit": {"enabled": False}})
        self.calls: list[Asked] = []
        self.tokens: dict[str, str] = {}
        self.used: dict[str, str] = {}
        self.holds = False
        """Whether a person allowed the tool for the session or always."""
        self.refused = False
        self.ran: list[tuple[str, dict[str, Any]]] = []
        self.permitted: list[tuple[str, dict[str, Any]]] = []
        self.resolved: list[ApprovalResolved] = []

    # The runner that only writes down

    problem_type = "ScriptError"

    def problem(self, _tool: object, _parts: object) -> str:
        return ""

    async def run(self, call: Invocation) -> None:
        self.ran.append((call.request.call_id, call.args))
        call.result.status, call.result.output = "success", None

    # What happens

    def call_context(self, one: Asked, *, polls: bool = False) -> Any:
        async def ask(question: Question) -> Reply:
            one.question = question
            one.reply = self.loop.create_future()
            return read_reply(await one.reply, question.options)

        made = self.runtime.call_context(ask=None if polls else ask, cancelled=one.cancel, caller=Caller("test", "s"))
        return made.having(polls=polls, on_resolved=self.resolved.append)

    def started(self, one: Asked, request: CallRequest, *, polls: bool = False) -> None:
        self.calls.append(one)

        async def go() -> ExecutionResult:
            return await execute(request, self.call_context(one, polls=polls))

        one.task = self.loop.create_task(go())
        self.until(lambda: one.task is not None and (one.task.done() or one.question is not None))

    def until(self, done: Any) -> None:
        """Goes on until it is so; the store's thread needs time of its own."""
        import time

        self.loop.settle()
        while not done():
            time.sleep(0.001)
            self.loop.settle()

    @rule(text=TEXTS)
    def call(self, text: str) -> None:
        one = Asked(text)
        identity = f"call-{len(self.calls)}"
        if self.holds and not self.refused and text != "bad":
            self.permitted.append((identity, {"text": text}))
        self.started(one, CallRequest(call_id=identity, name="t:echo", args={"text": text}))
        if text == "bad" or self.refused:
            assert one.question is None

    @rule(text=TEXTS)
    def poll(self, text: str) -> None:
        one = Asked(text)
        identity = f"call-{len(self.calls)}"
        if self.holds and not self.refused and text != "bad":
            self.permitted.append((identity, {"text": text}))
        self.started(one, CallRequest(call_id=identity, name="t:echo", args={"text": text}), polls=True)
        assert one.task is not None
        result = one.task.result()
        if result.status == "inputRequired":
            self.tokens[result.approval["token"]] = text  # type: ignore[index]

    @precondition(lambda self: self.tokens)
    @rule(data=st.data(), option=st.sampled_from(["allow", "session", "reject"]))
    def come_back_with_the_call(self, data: st.DataObject, option: str) -> None:
        token = data.draw(st.sampled_from(list(self.tokens)))
        self.come(token, self.tokens[token], option)

    @precondition(lambda self: self.tokens or self.used)
    @rule(data=st.data(), text=TEXTS, option=st.sampled_from(["allow", "reject", "session", "yes"]))
    def come_back_with_any(self, data: st.DataObject, text: str, option: str) -> None:
        self.come(data.draw(st.sampled_from([*self.tokens, *self.used])), text, option)

    @precondition(lambda self: self.used)
    @rule(data=st.data())
    def come_back_twice(self, data: st.DataObject) -> None:
        token = data.draw(st.sampled_from(list(self.used)))
        self.come(token, self.used[token], "allow")

    def come(self, token: str, text: str, option: str) -> None:
        one = Asked(text)
        identity = f"call-{len(self.calls)}"
        fits = token in self.tokens and self.tokens[token] == text and option != "yes"
        if fits and option != "reject":
            self.permitted.append((identity, {"text": text}))
        given = TokenAnswer(token=token, option_id=option)
        self.started(one, CallRequest(call_id=identity, name="t:echo", args={"text": text}, approval=given), polls=True)
        assert one.task is not None
        error = one.task.exception()
        assert (error is None) == (fits or text == "bad"), (error, fits)
        assert error is None or isinstance(error, ApprovalUnknown)
        if fits:
            self.used[token] = self.tokens.pop(token)
            self.holds |= option == "session"

    @precondition(lambda self: self.waiting())
    @rule(
        data=st.data(),
        kind=st.integers(0, 9),
        option=st.sampled_from(["allow", "allow", "session"]),
        edited=EDITS,
        raw=RAW,
    )
    def answer(self, data: st.DataObject, kind: int, option: str, edited: Any, raw: Any) -> None:
        one = data.draw(st.sampled_from(self.waiting()))
        clear: dict[str, Any] = {"outcome": "selected", "optionId": option}
        if kind < 4:
            self.answered(one, clear)
        elif kind < 7:
            self.answered(one, {**clear, "editedArgs": edited})
        elif kind < 9:
            self.answered(one, raw)
        else:
            self.answered(one, clear, late=True)

    def answered(self, one: Asked, raw: Any, *, late: bool = False) -> None:
        assert one.reply is not None
        question, identity = one.question, f"call-{self.calls.index(one)}"
        assert question is not None
        assert question.args == {"text": one.text}
        if late:
            self.loop.now += TIMEOUT_S
            self.tokens.clear()
        if allows(raw) and not late and not one.cancel.is_set():
            edited = raw.get("editedArgs")
            args = question.args if edited is None else edited
            if args in ({"text": "a"}, {"text": "b"}, {"text": "mine"}):
                self.permitted.append((identity, args))
                self.holds |= raw["optionId"] in ("session", "always")
        if isinstance(raw, dict) and (raw.get("outcome"), raw.get("optionId")) == ("selected", "never") and not late:
            self.refused = True
        one.question = None
        one.reply.set_result(raw)
        self.until(lambda: one.task is not None and one.task.done())
        for other in self.waiting() if late else []:
            self.until(lambda other=other: other.task is not None and other.task.done())

    @precondition(lambda self: self.waiting())
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.waiting()))
        one.cancel.set()
        self.until(lambda: one.task is not None and one.task.done())
        assert one.task is not None
        assert one.task.result().status == "cancelled"

    @precondition(lambda self: len(self.waiting()) + len(self.tokens) > 2)
    @rule()
    def time_passes(self) -> None:
        waiting = self.waiting()
        self.loop.now += TIMEOUT_S + 1
        self.tokens.clear()
        for one in waiting:
            self.until(lambda one=one: one.task is not None and one.task.done())
            assert one.task is not None
            assert one.task.result().status == "approvalTimeout"

    @precondition(lambda self: self.holds or self.refused)
    @rule()
    def revoke(self) -> None:
        self.loop.stored(self.runtime.parts.approvals.standing.revoke(lambda _: True))
        self.holds = self.refused = False

    @precondition(lambda self: not self.waiting())
    @rule()
    def the_tool_changes(self) -> None:
        # answers that hold, and tokens, are for another tool now
        script = self.folder / "t_echo" / "tool.py"
        script.write_text(script.read_text() + "#\n")
        self.used.update(self.tokens)
        self.tokens.clear()
        self.holds = self.refused = False

    def waiting(self) -> list[Asked]:
        return [one for one in self.calls if one.task is not None and not one.task.done()]

    @invariant()
    def what_ran_is_what_was_allowed(self) -> None:
        if hasattr(self, "loop"):
            self.loop.settle()
            assert self.ran == self.permitted

    def teardown(self) -> None:
        if not hasattr(self, "loop"):
            return
        for one in self.waiting():
            one.cancel.set()
            self.until(lambda one=one: one.task is not None and one.task.done())
        asked = [one.approval_id for one in self.resolved]
        assert len(asked) == len(set(asked))  # each question is settled once
        assert [one.call_id for one in self.runtime.parts.approvals.open if one.call_id not in asked] == [
            one.call_id for one in self.runtime.parts.approvals.open
        ]
        steps.runner_of = self.real
        self.loop.stored(self.runtime.parts.store.run(lambda _: None))
        self.loop.close()
        os.environ["TAMIS_STATE_DIR"] = self.state
        shutil.rmtree(self.folder)


TestApprovals = Approvals.TestCase
TestApprovals.settings = settings(stateful_step_count=24)
