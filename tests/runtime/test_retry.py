"""Failing calls are tried again with growing pauses, which a cancel ends (T20, T21, ruling 24); one fault never costs other results."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult
from tamis.server.runtime.calls.model import CallRequest, Stopped
from tamis.server.runtime.calls.runner import Invocation, failure
from tamis.server.runtime.calls.running_calls import unless_cancelled
from tamis.server.runtime.execution import preparing
from tamis.server.runtime.execution import preparing as execute_module
from tamis.server.runtime.execution import text as text_module
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.execution.preparing import MAX_ATTEMPTS, backoff_s
from tamis.server.runtime.execution.text import TextOptions, execute_text
from tamis.server.runtime.observe.trail import Caller
from tamis.server.runtime.policy.rules import CallRate
from tamis.server.runtime.runtime import Runtime
from tests.sample_tools import make_tool, tam, vcp

FLAKY = """
import os
n = len(os.listdir('.n'))
open(f'.n/{n}', 'w').close()
raise SystemExit(0 if n >= 2 and not print(n) else 1)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_tool(tmp_path, "flaky", FLAKY, securityContext={"fileAccess": {"allowWrite": [".n/**"]}})
    make_tool(tmp_path, "bad", "raise SystemExit(3)")
    make_tool(tmp_path, "ok", "print(1)")
    return tmp_path


class FakeRunner:
    """A runner whose attempts end as told."""

    problem_type = "ServiceError"

    def __init__(self, outcomes: list[Any]) -> None:
        self.outcomes = outcomes
        self.runs = 0

    def problem(self, *_: object) -> str:
        return ""

    async def run(self, call: Invocation) -> None:
        outcome = self.outcomes[min(self.runs, len(self.outcomes) - 1)]
        self.runs += 1
        if isinstance(outcome, BaseException):
            raise outcome
        call.result.status, call.result.error = outcome, UNSET
        if outcome == "success":
            call.result.output = self.runs


def run_fake(
    root: Path, monkeypatch: pytest.MonkeyPatch, outcomes: list[Any], attempts: int
) -> tuple[ExecutionResult, list[float], FakeRunner]:
    """One call whose attempts end as told; its result, and the pauses that it made."""
    runner, pauses = FakeRunner(outcomes), list[float]()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(execute_module, "runner_of", lambda _tool: runner)
    monkeypatch.setattr(preparing.asyncio, "sleep", sleep)
    request = CallRequest(call_id="c", name="ok")
    return asyncio.run(execute(request, Runtime(root).call_context(), attempts)), pauses, runner


def test_a_call_is_tried_again_until_it_succeeds(root: Path) -> None:  # T21
    text = tam({"command": "flaky", "retry": "4"})
    (result,) = run_text(root, text)
    assert (result.status, result.output, result.attempts) == ("success", 2, 3)


def run_text(root: Path, text: str, **options: Any) -> list[ExecutionResult]:
    runtime = Runtime(root)
    return asyncio.run(execute_text(runtime.read(text), runtime.call_context(), TextOptions(**options))).results


def test_n_extra_attempts_are_made_and_counted(root: Path) -> None:  # T21, ruling 24
    for retry in (0, 1, 2):
        (result,) = run_text(root, tam({"command": "bad", "retry": str(retry)}))
        assert (result.status, result.attempts) == ("error", 1 + retry)


def test_retry_and_on_error_of_a_step_work_together(root: Path) -> None:  # T20, T21
    text = tam({"command": "bad", "retry": "1", "on_error": "continue"}, {"command": "ok"})
    assert [(one.status, one.attempts) for one in run_text(root, text)] == [("error", 2), ("success", 1)]
    text = tam({"command": "bad", "retry": "1", "on_error": "stop"}, {"command": "ok"})
    assert [(one.status, one.attempts) for one in run_text(root, text)] == [("error", 2), ("cancelled", 0)]


def test_pauses_double_from_a_tenth_of_a_second_to_five(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result, pauses, _ = run_fake(root, monkeypatch, ["error"], 9)
    assert (result.status, result.attempts) == ("error", 9)
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert backoff_s(10**9) == 5.0


def test_any_number_of_attempts_is_bounded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result, pauses, runner = run_fake(root, monkeypatch, ["timeout"], 10**9)
    assert (result.attempts, runner.runs, len(pauses)) == (MAX_ATTEMPTS, MAX_ATTEMPTS, MAX_ATTEMPTS - 1)
    assert "100 are the most" in result.logs[-1]  # T13
    within, _, _ = run_fake(root, monkeypatch, ["timeout"], MAX_ATTEMPTS)
    assert within.logs == []


@pytest.mark.parametrize("status", ["success", "cancelled", "denied", "blocked", "inputRequired"])
def test_only_failures_are_tried_again(root: Path, monkeypatch: pytest.MonkeyPatch, status: str) -> None:
    result, pauses, _ = run_fake(root, monkeypatch, [status], 5)
    assert (result.status, result.attempts, pauses) == (status, 1, [])


def test_a_call_that_cannot_be_started_is_not_tried_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = Stopped("error", failure("DependencyError", "nothing there"))
    result, pauses, _ = run_fake(root, monkeypatch, [stopped], 5)
    assert (result.status, result.attempts, pauses) == ("error", 0, [])


def test_a_fault_of_a_handler_is_a_failed_attempt(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result, _, _ = run_fake(root, monkeypatch, [ValueError("odd"), "success"], 2)
    assert (result.status, result.output, result.attempts) == ("success", 2, 2)
    result, _, _ = run_fake(root, monkeypatch, [ValueError("odd")], 1)
    assert result.error is not UNSET
    assert (result.error.type, result.error.message) == ("ServiceError", "the handler failed with ValueError: odd")


def test_a_fault_of_a_handler_costs_no_other_result(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # V54
    runner = FakeRunner(["success", RuntimeError("gone"), "success"])
    monkeypatch.setattr(execute_module, "runner_of", lambda _tool: runner)
    results = run_text(root, "\n".join(vcp("ok") for _ in range(3)), mode="parallel")
    assert sorted(result.status for result in results) == ["error", "success", "success"]
    assert [result.call_id for result in results] == ["call-1", "call-2", "call-3"]


def test_parallel_calls_are_bounded_and_keep_their_order(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # V15, V42
    monkeypatch.setattr(text_module, "MAX_PARALLEL", 3)
    now, most = 0, 0

    class Slow(FakeRunner):
        async def run(self, call: Invocation) -> None:
            nonlocal now, most
            now, most = now + 1, max(most, now + 1)
            await asyncio.sleep(0.02 if self.runs % 2 else 0.001)
            await super().run(call)
            now -= 1

    runner = Slow(["success"])
    monkeypatch.setattr(execute_module, "runner_of", lambda _tool: runner)
    results = run_text(root, "\n".join(vcp("ok") for _ in range(10)), mode="parallel")
    assert (most, [result.call_id for result in results]) == (3, [f"call-{number}" for number in range(1, 11)])


def test_a_cancel_ends_the_pause_and_keeps_what_was_counted(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # V52, V53
    monkeypatch.setattr(preparing, "FIRST_PAUSE_S", 1e6)
    monkeypatch.setattr(preparing, "MAX_PAUSE_S", 1e6)

    class Fails(FakeRunner):
        async def run(self, call: Invocation) -> None:
            cancelled = call.context.cancelled
            assert cancelled is not None
            asyncio.get_running_loop().call_later(0.1, cancelled.set)
            await super().run(call)

    monkeypatch.setattr(execute_module, "runner_of", lambda _tool: Fails(["error"]))

    async def run() -> ExecutionResult:
        context = Runtime(root).call_context(cancelled=asyncio.Event())
        return await execute(CallRequest(call_id="c", name="ok"), context, attempts=5)

    result = asyncio.run(run())
    assert (result.status, result.attempts, result.error) == ("cancelled", 1, UNSET)


def test_waiting_ends_with_the_cancel_and_ends_the_work_too() -> None:
    async def run() -> None:
        cancelled, ended = asyncio.Event(), asyncio.Event()

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        asyncio.get_running_loop().call_later(0.01, cancelled.set)
        with pytest.raises(Stopped):
            await unless_cancelled(cancelled, work())
        assert ended.is_set()
        assert await unless_cancelled(None, asyncio.sleep(0, "given")) == "given"
        assert await unless_cancelled(asyncio.Event(), asyncio.sleep(0, "given")) == "given"

    asyncio.run(run())


def test_calls_are_bounded_by_the_minute_all_together_and_tool_by_tool(monkeypatch: pytest.MonkeyPatch) -> None:  # D84
    now = [1000.0]
    monkeypatch.setattr("tamis.server.runtime.policy.rules.time.monotonic", lambda: now[0])
    rate = CallRate(4, {"*": 2, "often": 0, "once": 1})
    assert [rate.take(tool) is None for tool in ("a", "a", "a", "once", "once", "often", "often")] == [
        *(True, True, False, True, False, True, False)
    ]
    full = rate.take("a")
    assert full is not None
    assert (full.limit, full.wait_s) == (4, 60.0)
    now[0] += 60
    assert rate.take("once") is None
    full = rate.take("once")
    assert full is not None
    assert (full.limit, full.setting) == (1, "policy.toolCallsPerMinute of once")
    assert all(CallRate(0).take("a") is None for _ in range(100))


def test_a_tools_own_rate_is_a_result_that_says_so(root: Path) -> None:  # D84
    runtime = Runtime(root, {"policy": {"toolCallsPerMinute": {"ok": 1}}})

    async def run() -> list[ExecutionResult]:
        request = CallRequest(call_id="c", name="ok")
        return [await execute(request, runtime.call_context()) for _ in range(2)]

    first, second = asyncio.run(run())
    assert (first.status, second.status, second.attempts) == ("success", "error", 0)
    assert second.error is not UNSET
    assert second.error.type == "RateLimited"
    assert "policy.toolCallsPerMinute of ok" in second.error.message


def test_calls_are_bounded_agent_by_agent_and_session_by_session(monkeypatch: pytest.MonkeyPatch) -> None:  # D98
    now = [1000.0]
    monkeypatch.setattr("tamis.server.runtime.policy.rules.time.monotonic", lambda: now[0])
    rate = CallRate(0, None, {"*": 2, "guest": 1, "chief": 0}, 3)
    made = [
        ("ann", "s"),
        ("ann", "s"),
        ("ann", "t"),
        ("guest", "u"),
        ("guest", "u"),
        ("chief", "s"),
        ("chief", "s"),
        ("", "t"),
        ("", "t"),
    ]
    taken = [rate.take("x", agent, session) for agent, session in made]
    assert [full is None for full in taken] == [True, True, False, True, False, True, False, True, True]
    assert [full.setting.partition(",")[0] for full in taken if full is not None] == [
        *("policy.agentCallsPerMinute", "policy.agentCallsPerMinute", "policy.sessionCallsPerMinute")
    ]
    now[0] += 60
    assert rate.take("x", "guest", "u") is None


def test_sessions_that_are_quiet_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # D98: a host makes new ones all the time
    now = [1000.0]
    monkeypatch.setattr("tamis.server.runtime.policy.rules.time.monotonic", lambda: now[0])
    monkeypatch.setattr("tamis.server.runtime.policy.rules.MAX_COUNTED", 10)
    rate = CallRate(0, None, None, 1)
    rate._sweep_at = 10
    for number in range(200):
        now[0] += 10
        assert rate.take("x", "", f"s{number}") is None
        assert rate.take("x", "", f"s{number}") is not None
    assert len(rate._times) <= 21


def test_an_agents_own_rate_and_a_sessions_are_results_that_say_so(root: Path) -> None:  # D98
    runtime = Runtime(root, {"policy": {"agentCallsPerMinute": {"*": 1}, "sessionCallsPerMinute": 2}})

    async def run(*callers: tuple[str, str]) -> list[ExecutionResult]:
        request = CallRequest(call_id="c", name="ok")
        made: list[ExecutionResult] = []
        for session, agent in callers:
            caller = Caller("rpc", session, agent)
            made.append(await execute(request, runtime.call_context(caller=caller)))
        return made

    (root / "ann.agent_profile.json").write_text('{"toolCallConfig": {"enabled": true}}')
    results = asyncio.run(run(("s", "ann"), ("s", "ann"), ("s", ""), ("s", ""), ("t", "")))
    assert [one.status for one in results] == ["success", "error", "success", "error", "error"]
    assert "policy.agentCallsPerMinute, this agent's" in results[1].observation
    assert all(one.error and one.error.type == "RateLimited" for one in results if one.status == "error")
