"""A person's word before a call: when it is asked for, what is shown, what each answer lets run (V09, V14, V43, V61, ruling 40)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from tamis.protocols.contract import ApprovalResolved, ExecutionResult
from tamis.server.runtime.calls.model import Answer, CallRequest, Question, Reply, Stopped
from tamis.server.runtime.calls.runner import Invocation, failure
from tamis.server.runtime.doctor import examine
from tamis.server.runtime.execution import preparing as steps
from tamis.server.runtime.execution.approvals.replies import OPTIONS, read_reply
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.execution.text import TextOptions, execute_text
from tamis.server.runtime.observe.trail import Caller
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.settings.protocols import load_protocol
from tests.runtime.fake_approver import ALWAYS, Host, Ran, Recorder, new_root, one, recorded
from tests.sample_tools import action, make_tool, tam, vcp


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Ran]:
    return recorded(monkeypatch)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return new_root(tmp_path, monkeypatch)


# When a person is asked


@pytest.mark.parametrize(
    ("policy", "fields", "asked"),
    [
        ({}, {}, False),
        ({}, {"execution": {"requireConfirmation": True}}, True),  # V14
        ({"requireConfirmation": "always"}, {}, True),
        ({"requireConfirmation": "writes"}, {}, False),
        ({"requireConfirmation": "writes"}, {"securityContext": {"fileAccess": {"allowWrite": ["out/**"]}}}, True),
        ({"tools": {"t:*": "ask"}}, {}, True),
        ({"tools": {"t:*": "ask", "t:own": "allow"}}, {}, False),
        ({"tools": {"t:own@1.0.0": "ask"}}, {}, True),
        ({"tools": {"t:own@2.*": "ask"}}, {}, False),
        ({"requireConfirmation": "always", "tools": {"t:own": "allow"}}, {}, False),
        ({"tools": {"t:own": "allow"}}, {"execution": {"requireConfirmation": True}}, False),
        ({"rules": [{"tool": "t:own", "verdict": "allow"}], "tools": {"t:own": "ask"}}, {}, False),
    ],
)
def test_when_a_person_is_asked(
    root: Path, ran: list[Ran], policy: dict[str, Any], fields: dict[str, Any], *, asked: bool
) -> None:  # V14, V43
    make_tool(root, "t:own", **fields)
    result, host = one(root, {"policy": policy}, "allow", name="t:own")
    assert (result.status, len(host.questions)) == ("success", int(asked)), result
    assert len(ran) == 1


@pytest.mark.parametrize("config", [{"mode": "manual"}, {"requireConfirmation": True}])
def test_the_agents_own_bound_is_not_loosened_by_a_rule(
    root: Path, ran: list[Ran], config: dict[str, Any]
) -> None:  # V09, V14
    profile = {"toolCallConfig": {"enabled": True, **config}}
    (root / "agent_profile.json").write_text(json.dumps(profile))
    settings = {"profile": "agent_profile.json", "policy": {"tools": {"t:echo": "allow"}}}
    result, host = one(root, settings, "deny")
    assert (result.status, len(host.questions), ran) == ("denied", 1, [])


@pytest.mark.parametrize(
    ("rule", "args", "verdict"),
    [
        ({"parameter": "text", "matches": "/etc/*", "verdict": "deny"}, {"text": "/etc/passwd"}, "deny"),
        ({"parameter": "text", "matches": "/etc/*", "verdict": "deny"}, {"text": "/srv/etc/"}, "run"),
        ({"parameter": "/text", "matches": "*", "verdict": "deny"}, {"text": ""}, "deny"),
        ({"parameter": "text", "verdict": "deny"}, {}, "run"),
        ({"parameter": "count", "matches": "7", "verdict": "ask"}, {"count": 7}, "ask"),
        ({"parameter": "/text/0", "matches": "*", "verdict": "deny"}, {"text": "x"}, "run"),
        ({"agent": "agent-1", "verdict": "deny"}, {}, "deny"),
        ({"agent": "other", "verdict": "deny"}, {}, "run"),
        ({"client": "chat*", "verdict": "deny"}, {}, "deny"),
        ({"face": "rpc", "verdict": "deny"}, {}, "run"),
        ({"session": "session-1", "tool": "t:ec*", "verdict": "deny"}, {}, "deny"),
        ({"tool": "T:ECHO", "verdict": "deny"}, {}, "run"),
    ],
)
def test_a_rule_looks_at_tool_caller_and_parameter(
    root: Path, ran: list[Ran], rule: dict[str, Any], args: dict[str, Any], verdict: str
) -> None:  # D81
    async def run() -> tuple[ExecutionResult, Host]:
        host = Host(
            root, {"policy": {"rules": [rule]}}, "allow", caller=Caller("test", "session-1", "agent-1", "chatty")
        )
        return await host.call(args), host

    result, host = asyncio.run(run())
    assert (result.status == "blocked") == (verdict == "deny")
    assert len(host.questions) == (verdict == "ask")
    assert len(ran) == (verdict != "deny")


def test_the_first_rule_that_fits_decides_and_a_refusal_names_it(
    root: Path, ran: list[Ran]
) -> None:  # D81, D85, ruling 40
    rules = [
        {"parameter": "text", "matches": "ok", "verdict": "allow"},
        {"tool": "t:*", "verdict": "deny", "reason": "only ok is ok"},
    ]
    result, _ = one(root, {"policy": {"rules": rules}}, args={"text": "ok"})
    assert result.status == "success"
    result, _ = one(root, {"policy": {"rules": rules}}, args={"text": "other"})
    assert result.status == "blocked"
    assert result.error is not UNSET
    assert result.error.type == "SecurityError"
    assert result.observation == (
        "Observation: Tool t:echo was not executed: policy forbids it: rule 2 of policy.rules in host settings denies it: only ok is ok."
    )
    assert len(ran) == 1


@pytest.mark.parametrize(("values", "verdict"), [(["a1", "a2"], "run"), (["a1", "b"], "ask"), ([], "ask")])
def test_what_opens_must_fit_every_value_below(
    root: Path, ran: list[Ran], values: list[str], verdict: str
) -> None:  # D81
    make_tool(root, "t:list", properties={"names": {"type": "array"}})
    rules = [{"parameter": "/names/*", "matches": "a*", "verdict": "allow"}, {"verdict": "ask"}]
    _, host = one(root, {"policy": {"rules": rules}}, "allow", name="t:list", args={"names": values})
    assert len(host.questions) == (verdict == "ask")
    denies = [{"parameter": "names", "matches": "a2", "verdict": "deny"}]
    result, _ = one(root, {"policy": {"rules": denies}}, name="t:list", args={"names": values})
    assert (result.status == "blocked") == ("a2" in values)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ({"tools": {"t:echo": "maybe"}}, "'policy.tools.t:echo' must be one of"),
        ({"rules": [{"verdict": "denied"}]}, "'policy.rules.1.verdict' must be one of"),
        ({"rules": [{"tol": "x"}]}, "'policy.rules.1.tol'"),
        ({"rules": ["x"]}, "'policy.rules.1' must be a table"),
        ({"rules": {}}, "'policy.rules' must be a list of tables"),
    ],
)
def test_a_rule_that_cannot_be_read_closes_everything(
    root: Path, ran: list[Ran], policy: dict[str, Any], words: str
) -> None:
    result, _ = one(root, {"policy": policy}, "allow")
    assert result.status == "blocked"
    assert words in result.observation
    assert ran == []


# What each answer means


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        ({"outcome": "selected", "optionId": "allow"}, "success"),
        ({"outcome": "selected", "optionId": "session"}, "success"),
        ({"outcome": "selected", "optionId": "always"}, "success"),
        ({"outcome": "selected", "optionId": "reject"}, "denied"),
        ({"outcome": "selected", "optionId": "never"}, "denied"),
        ({"outcome": "cancelled"}, "cancelled"),
        ({"outcome": "cancelled", "optionId": "allow"}, "cancelled"),
        ({"outcome": "selected", "optionId": "yes"}, "cancelled"),
        ({"outcome": "selected", "optionId": "allow_once"}, "cancelled"),
        ({"outcome": "selected", "optionId": ["allow"]}, "cancelled"),
        ({"outcome": "selected", "optionId": True}, "cancelled"),
        ({"outcome": "selected"}, "cancelled"),
        ({"optionId": "allow"}, "cancelled"),
        ({"outcome": "Selected", "optionId": "allow"}, "cancelled"),
        ({"outcome": "selected", "optionId": "allow-all"}, "cancelled"),
        ("allow", "cancelled"),
        (True, "cancelled"),
        (None, "cancelled"),
        ([], "cancelled"),
        ({"outcome": "selected", "optionId": "allow", "editedArgs": "rm"}, "error"),
        ({"outcome": "selected", "optionId": "allow", "editedArgs": {"no_such": 1}}, "error"),
        ({"outcome": "selected", "optionId": "allow", "editedArgs": None, "comment": 7}, "success"),
    ],
)
def test_only_a_clear_answer_lets_a_call_run(root: Path, ran: list[Ran], raw: Any, status: str) -> None:  # V61
    result, host = one(root, ALWAYS, read_reply(raw, OPTIONS), args={"text": "x"})
    assert result.status == status
    assert ran == ([("t:echo", {"text": "x"})] if status == "success" else [])
    assert result.attempts == len(ran)
    assert len(host.resolved) == 1


@pytest.mark.parametrize(
    "raw", [{"decision": "approve"}, {"outcome": "selected", "optionId": "yes"}, {"optionId": "allow"}, "allow", []]
)
def test_an_answer_that_was_not_offered_is_told_with_what_was(root: Path, ran: list[Ran], raw: Any) -> None:
    """Ruling 40: the call is cancelled, and its text, its error and its log say why; what the host sent is not repeated."""
    result, _host = one(root, ALWAYS, read_reply(raw, OPTIONS), args={"text": "x"})
    cause = (
        "the host's answer was none of the options that were offered: outcome 'selected' with optionId "
        "'allow', 'session', 'always', 'reject', 'never'"
    )
    assert (result.status, ran, result.approval["outcome"]) == ("cancelled", [], "cancelled")
    assert result.observation.endswith(f"was not executed: it was cancelled, since {cause}.")
    assert result.error and result.error.message == cause


@pytest.mark.parametrize("raw", [None, {"outcome": "cancelled"}, {"outcome": "cancelled", "optionId": "allow"}])
def test_a_question_that_was_closed_needs_no_cause(root: Path, ran: list[Ran], raw: Any) -> None:  # ruling 40
    result, _host = one(root, ALWAYS, read_reply(raw, OPTIONS), args={"text": "x"})
    assert result.observation.endswith("was not executed: it was cancelled.") and not result.error


def test_who_cannot_be_asked_is_not_there(root: Path, ran: list[Ran]) -> None:  # ruling 40
    async def run() -> ExecutionResult:
        async def ask(_question: Question) -> Answer:
            raise ConnectionError("gone")

        context = Runtime(root, ALWAYS).call_context(ask=ask)
        return await execute(CallRequest(call_id="c", name="t:echo"), context)

    assert (asyncio.run(run()).status, ran) == ("approvalUnavailable", [])


WORDS = {
    "denied": "the user denied it (用户拒绝了该操作).",
    "approvalTimeout": "no one answered the approval request in time; this is not a refusal.",
    "approvalUnavailable": "there is no one to ask for approval.",
    "cancelled": "it was cancelled.",
    "blocked": "policy forbids it: policy.tools 't:echo' in host settings denies it.",
}
TEXTS = {
    "action": (action("t:echo", text="x"), "Observation: Tool t:echo was not executed: {}"),
    "tam": (tam({"command": "t:echo", "text": "x"}), "Observation: Tool t:echo was not executed: {}"),
    "vcp": (vcp("t:echo", text="x"), "result:「始」Tool t:echo was not executed: {}「末」"),
    "hermes": (
        '<tool_call>\n{"name": "t:echo", "arguments": {"text": "x"}}\n</tool_call>',
        '"error": "Tool t:echo was not executed: {}"',
    ),
}


@pytest.mark.parametrize("protocol", TEXTS)
@pytest.mark.parametrize("status", WORDS)
def test_the_non_answers_have_words_of_their_own_in_every_protocol(
    root: Path, ran: list[Ran], protocol: str, status: str
) -> None:  # ruling 40, V61
    answers: dict[str, Answer] = {
        "denied": "deny",
        "approvalTimeout": "timeout",
        "approvalUnavailable": "unavailable",
        "cancelled": "cancelled",
    }
    assert load_protocol("hermes") == ""
    text, wanted = TEXTS[protocol]
    settings = {"policy": {"tools": {"t:echo": "deny"}}} if status == "blocked" else ALWAYS

    async def run() -> str:
        host = Host(root, settings, *([answers[status]] if status in answers else []))
        document = host.runtime.read(text, protocol)
        done = await execute_text(document, host.call_context(), TextOptions())
        assert [result.status for result in done.results] == [status]
        return done.observation

    assert wanted.format(WORDS[status]) in asyncio.run(run())
    assert ran == []


@pytest.mark.parametrize("protocol", TEXTS)
def test_what_took_too_long_is_none_of_them(
    root: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:  # ruling 40
    class Slow(Recorder):
        async def run(self, call: Invocation) -> None:
            raise Stopped("timeout", failure("TimeoutError", "no result after 5 ms", limit="wall"), started=True)

    monkeypatch.setattr(steps, "runner_of", lambda _tool: Slow())  # pyright: ignore[reportUnknownLambdaType]
    assert load_protocol("hermes") == ""

    async def run() -> str:
        runtime = Runtime(root)
        done = await execute_text(runtime.read(TEXTS[protocol][0], protocol), runtime.call_context(), TextOptions())
        assert [result.status for result in done.results] == ["timeout"]
        return done.observation

    said = asyncio.run(run())
    assert "Tool t:echo failed. Error type: TimeoutError. Message: no result after 5 ms." in said
    assert "was not executed" not in said


def test_the_doctor_lists_the_rules(root: Path) -> None:  # D81
    (root / "tamis.toml").write_text('[[policy.rules]]\ntool = "x*"\nverdict = "deny"\nmatches = "y"\n')
    checks = examine(Runtime(root))["checks"]
    assert "rule 1 of policy.rules: deny x*" in [one["text"] for one in checks if one["name"] == "policy"]
    (fault,) = [one["text"] for one in checks if one["name"] == "configuration"]
    assert fault == "policy.rules: rule 1 says what a parameter 'matches', but names no 'parameter'"


def test_nobody_in_time_is_a_timeout_and_a_late_answer_is_nothing(root: Path, ran: list[Ran]) -> None:  # ruling 40
    async def run() -> ExecutionResult:
        async def ask(_question: Question) -> Answer:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return "allow"  # too late, and against its will
            return "allow"

        context = Runtime(root, {"policy": {"requireConfirmation": "always", "approvalTimeoutMs": 30}}).call_context(
            ask=ask
        )
        return await execute(CallRequest(call_id="c", name="t:echo"), context)

    assert (asyncio.run(run()).status, ran) == ("approvalTimeout", [])


def test_a_cancel_withdraws_the_question(root: Path, ran: list[Ran]) -> None:  # V52
    async def run() -> tuple[ExecutionResult, bool, list[ApprovalResolved]]:
        withdrawn, asked, cancel = asyncio.Event(), asyncio.Event(), asyncio.Event()
        resolved: list[ApprovalResolved] = []

        async def ask(_question: Question) -> Answer:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                withdrawn.set()
            return "allow"

        context = Runtime(root, ALWAYS).call_context(ask=ask, cancelled=cancel)
        context = context.having(on_resolved=resolved.append)
        call = asyncio.ensure_future(execute(CallRequest(call_id="c", name="t:echo"), context))
        await asked.wait()
        assert [one.call_id for one in context.services.execution.approvals.open] == ["c"]
        cancel.set()
        result = await call
        assert context.services.execution.approvals.open == []
        return result, withdrawn.is_set(), resolved

    result, withdrawn, resolved = asyncio.run(run())
    assert (result.status, withdrawn, ran) == ("cancelled", True, [])
    assert [(one.call_id, one.outcome) for one in resolved] == [("c", "cancelled")]


def test_the_comment_of_a_refusal_reaches_the_model(root: Path, ran: list[Ran]) -> None:  # V61
    reply = Reply(answer="deny", comment="not on a \u202eFriday")
    result, _ = one(root, ALWAYS, reply)
    said = "was not executed: the user denied it (用户拒绝了该操作). The user's comment: not on a \\u202eFriday."
    assert result.observation == f"Observation: Tool t:echo {said}"
    assert ran == []


def test_what_is_too_deep_to_be_shown_does_not_run(root: Path, ran: list[Ran]) -> None:
    make_tool(root, "t:any", properties={"value": {}})
    for depth in (10, 100_000):
        value: Any = []
        for _ in range(depth):
            value = [value]
        result, host = one(root, ALWAYS, "allow", name="t:any", args={"value": value})
        assert (result.status == "success", len(host.questions)) == ((True, 1) if depth == 10 else (False, 0))
    assert len(ran) == 1
