"""What a person changes, for how long an answer holds, tokens, and several questions at once (V61, ruling 40)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult
from tamis.server.runtime.calls.model import Answer, CallContext, CallRequest, Question, Reply, TokenAnswer
from tamis.server.runtime.execution.approvals.questions import ApprovalUnknown
from tamis.server.runtime.execution.approvals.replies import read_reply
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.execution.text import TextOptions, execute_text
from tamis.server.runtime.observe.trail import Caller
from tamis.server.runtime.runtime import Runtime
from tests.runtime.fake_approver import ALWAYS, Asker, Host, Ran, new_root, one, recorded
from tests.sample_tools import make_tool, tam, vcp


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Ran]:
    return recorded(monkeypatch)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return new_root(tmp_path, monkeypatch)


# Edited arguments


def test_what_the_user_wrote_is_coerced_and_runs_and_is_said(root: Path, ran: list[Ran]) -> None:  # V61
    result, _ = one(
        root, ALWAYS, Reply(answer="allow", edited_args={"text": "mine", "count": "7"}), args={"text": "yours"}
    )
    assert ran == [("t:echo", {"text": "mine", "count": 7})]
    assert result.approval == {
        "outcome": "allowed",
        "scope": "once",
        "standing": False,
        "editedArgs": {"text": "mine", "count": 7},
    }
    first, _, rest = result.observation.partition("\n")
    assert first == 'Note: the user changed the arguments of t:echo to {"text": "mine", "count": 7}'
    assert rest.startswith("Observation: Tool t:echo executed successfully. Result: ")


@pytest.mark.parametrize("edited", [{"count": "many"}, {"text": 1, "other": 2}, [], "x", 3])
def test_an_edit_that_does_not_fit_never_runs(root: Path, ran: list[Ran], edited: Any) -> None:
    result, _ = one(root, ALWAYS, Reply(answer="allow", edited_args=edited), args={"text": "yours"})
    assert (result.status, ran) == ("error", [])
    assert result.error is not UNSET
    assert result.error.type == "ParameterValidationError"
    assert "as the user changed them" in result.observation


def test_an_edit_does_not_pass_a_rule(root: Path, ran: list[Ran]) -> None:  # D81
    settings = {
        "policy": {
            "requireConfirmation": "always",
            "rules": [{"parameter": "text", "matches": "bad", "verdict": "deny"}],
        }
    }
    settings["policy"]["rules"].append({"verdict": "ask"})
    result, _ = one(root, settings, Reply(answer="allow", edited_args={"text": "bad"}), args={"text": "good"})
    assert (result.status, ran) == ("blocked", [])


def test_a_mask_that_was_left_is_the_secret_behind_it(root: Path, ran: list[Ran]) -> None:  # D83
    make_tool(root, "t:key", properties={"key": {"type": "string", "x-secret": True}, "text": {"type": "string"}})
    reply = Reply(answer="allow", edited_args={"key": "***", "text": "new"})
    result, host = one(root, ALWAYS, reply, name="t:key", args={"key": "hunter2-hunter2", "text": "old"})
    assert ran == [("t:key", {"key": "hunter2-hunter2", "text": "new"})]
    assert host.questions[0].args == {"key": "***", "text": "old"}
    assert host.questions[0].risk == "medium"
    assert "hunter2" not in str((host.questions, result.approval, result.observation))


def test_an_edit_that_changes_the_rights_is_shown_before_it_runs(root: Path, ran: list[Ran]) -> None:  # D85
    handler = {"type": "service-method", "serviceName": "ExternalScriptExecutionService", "methodName": "executeScript"}
    properties = {"scriptPath": {"type": "string"}}
    folder = make_tool(root, "t:script", properties=properties, handler=handler)
    for name in ("a.py", "b.py"):
        (folder / name).write_text("print(1)")
    edit = Reply(answer="allow", edited_args={"scriptPath": "b.py"})
    result, host = one(root, ALWAYS, edit, "deny", name="t:script", args={"scriptPath": "a.py"})
    assert [question.args for question in host.questions] == [{"scriptPath": "a.py"}, {"scriptPath": "b.py"}]
    assert (result.status, ran) == ("denied", [])
    result, host = one(root, ALWAYS, edit, "allow", name="t:script", args={"scriptPath": "a.py"})
    assert ran == [("t:script", {"scriptPath": "b.py"})]


def test_a_script_that_changes_while_it_is_asked_about_is_asked_about_again(root: Path, ran: list[Ran]) -> None:
    folder = make_tool(root, "t:moving")

    async def run() -> tuple[ExecutionResult, int]:
        asked = 0

        async def ask(_question: Question) -> Answer:
            nonlocal asked
            asked += 1
            if asked == 1:
                (folder / "tool.py").write_text("print('something else')")
                return "allow"
            return "deny"

        around = Runtime(root, ALWAYS).call_context(ask=ask)
        return await execute(CallRequest(call_id="c", name="t:moving"), around), asked

    result, asked = asyncio.run(run())
    assert (result.status, asked, ran) == ("denied", 2, [])


# Answers that hold


def test_an_answer_for_the_session_holds_for_the_session(root: Path, ran: list[Ran]) -> None:  # V61
    async def run() -> None:
        host = Host(root, ALWAYS, Reply(answer="allow", scope="session"), "deny", "deny")
        assert (await host.call({"text": "a"})).status == "success"
        result = await host.call({"text": "b"})
        assert result.status == "success"
        assert result.approval == {"outcome": "allowed", "scope": "session", "standing": True}
        host.caller = Caller("test", "session-2", "agent-1")
        assert (await host.call({"text": "c"})).status == "denied"
        host.caller = Caller("test", "session-1", "agent-2")
        assert (await host.call({"text": "d"})).status == "denied"
        assert len(host.questions) == 3
        await host.runtime.close()

    asyncio.run(run())
    assert [args["text"] for _, args in ran] == ["a", "b"]


@pytest.mark.parametrize(("answer", "status"), [("allow", "success"), ("deny", "denied")])
def test_an_answer_for_always_outlives_the_process_until_it_is_revoked(
    root: Path, ran: list[Ran], answer: Answer, status: str
) -> None:
    async def run() -> None:
        host = Host(root, ALWAYS, Reply(answer=answer, scope="always"))
        assert (await host.call()).status == status
        await host.runtime.close()
        later = Host(root, ALWAYS, caller=Caller("test", "another", "agent-1"))
        assert (await later.call()).status == status
        (held,) = await later.runtime.parts.approvals.standing.listed()
        assert (held.tool_id, held.version, held.agent_id) == ("t:echo", "1.0.0", "agent-1")
        assert held.kind == ("allow_always" if answer == "allow" else "reject_always")
        assert await later.runtime.parts.approvals.standing.revoke(lambda entry: entry.id == held.id) == [held.id]
        later.answers.append("deny")
        assert (await later.call()).status == "denied"
        assert len(later.questions) == 1
        await later.runtime.close()

    asyncio.run(run())
    assert len(ran) == (2 if answer == "allow" else 0)


@pytest.mark.parametrize("change", ["version", "manifest", "script", "rights"])
def test_a_changed_tool_asks_again(root: Path, ran: list[Ran], change: str) -> None:
    context = {"fileAccess": {"allowWrite": ["/srv/none/**"]}}
    folder = make_tool(
        root, "t:held", securityContext={"fileAccess": {"allowWrite": ["out/**"]}} if change == "x" else context
    )

    async def run() -> None:
        host = Host(root, ALWAYS, Reply(answer="allow", scope="always"))
        assert (await host.call(name="t:held")).status == "success"
        await host.runtime.close()
        if change == "version":
            make_tool(root, "t:held", version="1.0.1", securityContext=context)
        elif change == "manifest":
            make_tool(root, "t:held", securityContext=context, tags=["new"])
        elif change == "script":
            (folder / "tool.py").write_text("print('other')")
        else:
            make_tool(root, "t:held", securityContext={"fileAccess": {"allowWrite": ["out/**"]}})
        later = Host(root, ALWAYS, "deny")
        assert (await later.call(name="t:held")).status == "denied"
        assert len(later.questions) == 1
        await later.runtime.close()

    asyncio.run(run())
    assert len(ran) == 1


def test_an_answer_to_one_rules_question_is_none_to_anothers(root: Path, ran: list[Ran]) -> None:  # D81
    rules = [{"parameter": "text", "matches": "drop *", "verdict": "ask"}, {"verdict": "ask"}]

    async def run() -> None:
        host = Host(root, {"policy": {"rules": rules}}, Reply(answer="allow", scope="session"), "deny")
        assert (await host.call({"text": "select"})).status == "success"
        assert (await host.call({"text": "drop all"})).status == "denied"
        assert (await host.call({"text": "select 2"})).status == "success"
        await host.runtime.close()

    asyncio.run(run())
    assert len(ran) == 2


def test_who_insists_on_being_asked_is_asked_each_time(root: Path, ran: list[Ran]) -> None:
    async def run() -> None:
        host = Host(root, {}, Reply(answer="allow", scope="always"), "deny")
        assert (await host.call(ask=True)).status == "success"
        assert (await host.call(ask=True)).status == "denied"
        await host.runtime.close()

    asyncio.run(run())
    assert len(ran) == 1


# Tokens


class Poller(Host):
    def __init__(self, root: Path, settings: dict[str, Any] = ALWAYS) -> None:
        super().__init__(root, settings, polls=True)

    def call_context(self) -> CallContext:
        return super().call_context().having(ask=None)

    async def token(self, args: dict[str, Any], **request: Any) -> str:
        result = await self.call(args, **request)
        assert (result.status, result.attempts) == ("inputRequired", 0)
        assert result.approval is not UNSET
        assert "it waits for an approval" in result.observation
        return result.approval["token"]

    async def answer(self, args: dict[str, Any], token: str, option: str = "allow", **more: Any) -> ExecutionResult:
        request = {name: more.pop(name) for name in ("name",) if name in more}
        return await self.call(args, approval=TokenAnswer(token=token, option_id=option, **more), **request)


def test_a_token_answers_once_what_was_shown(root: Path, ran: list[Ran]) -> None:
    async def run() -> None:
        host = Poller(root)
        token = await host.token({"text": "a"})
        assert [one.call_id for one in host.runtime.parts.approvals.open] == ["call-1"]
        assert (await host.answer({"text": "a"}, token)).status == "success"
        with pytest.raises(ApprovalUnknown):
            await host.answer({"text": "a"}, token)
        assert [one.outcome for one in host.resolved] == ["allowed"]
        await host.runtime.close()

    asyncio.run(run())
    assert ran == [("t:echo", {"text": "a"})]


def test_a_token_fits_nothing_else(root: Path, ran: list[Ran]) -> None:
    make_tool(root, "t:other", properties={"text": {"type": "string"}})

    async def run() -> None:
        host = Poller(root)
        token = await host.token({"text": "a"})
        for args, more in (
            ({"text": "b"}, {}),
            ({}, {}),
            ({"text": "a"}, {"name": "t:other"}),
            ({"text": "a"}, {"option": "yes"}),
            ({"text": "a"}, {"option": "allow-all"}),
        ):
            with pytest.raises(ApprovalUnknown):
                await host.answer(args, token, **more)
        with pytest.raises(ApprovalUnknown):
            await host.answer({"text": "a"}, token[:-1] + ("A" if token[-1] != "A" else "B"))
        host.caller = Caller("test", "session-2", "agent-1")
        with pytest.raises(ApprovalUnknown):
            await host.answer({"text": "a"}, token)
        host.caller = Caller("test", "session-1", "agent-1")
        (root / "t_echo" / "tool.py").write_text("print('changed')")
        with pytest.raises(ApprovalUnknown):
            await host.answer({"text": "a"}, token)
        assert ran == []
        await host.runtime.close()

    asyncio.run(run())


def test_a_token_carries_refusals_edits_and_scopes(root: Path, ran: list[Ran]) -> None:
    async def run() -> None:
        host = Poller(root)
        result = await host.answer({"text": "a"}, await host.token({"text": "a"}), "reject", comment="no")
        assert (result.status, result.observation.endswith("comment: no.")) == ("denied", True)
        edited = {"text": "mine"}
        assert (
            await host.answer({"text": "a"}, await host.token({"text": "a"}), edited_args=edited)
        ).status == "success"
        assert (await host.answer({"text": "a"}, await host.token({"text": "a"}), "session")).status == "success"
        assert (await host.call({"text": "c"})).status == "success"
        await host.runtime.close()

    asyncio.run(run())
    assert [args["text"] for _, args in ran] == ["mine", "a", "c"]


def test_a_token_expires_and_that_is_told(root: Path, ran: list[Ran]) -> None:
    async def run() -> None:
        host = Poller(root, {"policy": {"requireConfirmation": "always", "approvalTimeoutMs": 20}})
        token = await host.token({"text": "a"})
        while not host.resolved:
            await asyncio.sleep(0.01)
        assert [one.outcome for one in host.resolved] == ["timeout"]
        assert host.runtime.parts.approvals.open == []
        with pytest.raises(ApprovalUnknown):
            await host.answer({"text": "a"}, token)
        await host.runtime.close()

    asyncio.run(run())
    assert ran == []


# Several calls of one text


def together(root: Path, text: str, asker: Asker, mode: Any = "sequential", **settings: Any) -> list[str]:
    async def run() -> list[str]:
        runtime = Runtime(root, {"policy": {"requireConfirmation": "always", **settings}})
        around = runtime.call_context(ask=asker).having(asks_together=True)
        done = await execute_text(runtime.read(text, "auto"), around, TextOptions(mode=mode))
        assert around.services.execution.approvals.open == []
        return [result.status for result in done.results]

    return asyncio.run(run())


TWO = tam({"command": "t:echo", "text": "1"}, {"command": "t:echo", "text": "2"}, {"command": "t:echo", "text": "3"})


@pytest.mark.parametrize(
    ("text", "mode"),
    [(TWO, "sequential"), ("\n".join(vcp("t:echo", text=str(n)) for n in (1, 2, 3)), "parallel")],
)
def test_the_calls_of_a_text_are_shown_together_and_answered_each_for_itself(
    root: Path, ran: list[Ran], text: str, mode: str
) -> None:  # V61
    shown: list[Question] = []
    all_shown = asyncio.Event()

    async def ask(question: Question) -> Answer:
        shown.append(question)
        if len(shown) == 3:
            all_shown.set()
        await all_shown.wait()  # nobody is asked one after the other
        return "deny" if question.args["text"] == "3" else "allow"

    assert together(root, text, ask, mode) == ["success", "success", "denied"]
    assert [question.batch and (question.batch.index, question.batch.count) for question in shown] == [
        (0, 3),
        (1, 3),
        (2, 3),
    ]
    assert len({question.batch.id for question in shown if question.batch}) == 1
    assert sorted(args["text"] for _, args in ran) == ["1", "2"]


def test_a_call_that_will_be_replayed_is_not_asked_about(root: Path, ran: list[Ran]) -> None:  # T24, V61
    shown: list[str] = []

    async def ask(question: Question) -> Answer:
        shown.append(question.args["text"])
        return "allow"

    def keyed(*pairs: tuple[str, str]) -> str:
        block = "<|[REQUEST_TOOL]|>\nrequest_id:»»»{}«««\ncommand:»»»t:echo«««\ntext:»»»{}«««\n<|[END_TOOL]|>"
        return "\n".join(block.format(*pair) for pair in pairs)

    twice = keyed(("a", "1"), ("b", "2"), ("b", "2"))
    assert together(root, twice, ask) == ["success"] * 3
    assert shown == ["1", "2"]
    assert together(root, keyed(("a", "1"), ("c", "3"), ("b", "2"), ("d", "4")), ask) == ["success"] * 4
    assert shown == ["1", "2", "3", "4"]
    assert together(root, twice, ask) == ["success"] * 3
    assert (len(shown), len(ran)) == (4, 4)


@pytest.mark.parametrize(("option", "status"), [("allow-all", "success"), ("reject-all", "denied")])
def test_one_answer_can_be_for_all(root: Path, ran: list[Ran], option: str, status: str) -> None:  # V61
    async def ask(question: Question) -> Reply:
        if question.args["text"] != "2":
            await asyncio.Event().wait()
        return read_reply({"outcome": "selected", "optionId": option}, question.options)

    text = "\n".join(vcp("t:echo", text=str(n)) for n in (1, 2, 3))
    assert together(root, text, ask) == [status] * 3
    assert len(ran) == (3 if status == "success" else 0)


def test_questions_of_calls_that_are_not_reached_are_withdrawn(root: Path, ran: list[Ran]) -> None:  # V54
    withdrawn: list[str] = []

    async def ask(question: Question) -> Answer:
        if question.args["text"] == "1":
            return "deny"
        try:
            await asyncio.Event().wait()
        finally:
            withdrawn.append(question.args["text"])
        return "allow"

    assert together(root, TWO, ask) == ["denied", "cancelled", "cancelled"]
    assert (sorted(withdrawn), ran) == (["2", "3"], [])


def test_an_early_answer_is_for_what_was_shown_only(root: Path, ran: list[Ran]) -> None:
    folder = root / "t_echo"
    asked: list[str] = []

    async def ask(question: Question) -> Answer:
        asked.append(question.args["text"])
        if asked == ["1", "2", "3"]:
            # after all of them were shown the script becomes another one
            (folder / "tool.py").write_text("print('other')")
        return "allow" if len(asked) <= 3 else "deny"

    assert together(root, TWO, ask)[0] == "denied"
    assert ran == []
