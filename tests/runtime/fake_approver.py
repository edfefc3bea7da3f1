"""Somebody who is asked before calls, and a runner that only writes down what would have run; for tests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tamis.protocols.contract import ApprovalResolved, ExecutionResult
from tamis.server.runtime.calls.model import Answer, CallContext, CallRequest, Question, Reply
from tamis.server.runtime.calls.runner import Invocation
from tamis.server.runtime.execution import preparing as steps
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.observe.trail import Caller
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.settings.profile import AgentRules
from tests.sample_tools import make_tool

ALWAYS: dict[str, Any] = {"policy": {"requireConfirmation": "always"}}
Ran = tuple[str, dict[str, Any]]
Asker = Callable[[Question], Awaitable[Answer | Reply]]


class Recorder:
    """A runner that only writes down what would have run."""

    problem_type = "ScriptError"

    def __init__(self) -> None:
        self.ran: list[Ran] = []

    def problem(self, _tool: object, _parts: object) -> str:
        return ""

    async def run(self, call: Invocation) -> None:
        self.ran.append((call.tool.tool_id, call.args))
        call.result.status, call.result.output = "success", call.args


def recorded(monkeypatch: pytest.MonkeyPatch) -> list[Ran]:
    """What would have run from now on, in order: the tool's id and its arguments."""
    recorder = Recorder()
    monkeypatch.setattr(steps, "runner_of", lambda _tool: recorder)  # pyright: ignore[reportUnknownLambdaType]
    return recorder.ran


def new_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root with the tool ``t:echo``, and a state folder of its own."""
    monkeypatch.setenv("TAMIS_STATE_DIR", str(tmp_path / "state"))
    folder = tmp_path / "root"
    folder.mkdir()
    make_tool(folder, "t:echo", properties={"text": {"type": "string"}, "count": {"type": "integer"}})
    return folder


class Host:
    """One runtime with somebody who answers."""

    def __init__(self, root: Path, settings: dict[str, Any], *answers: Answer | Reply, **context: Any) -> None:
        self.runtime = Runtime(root, settings)
        self.answers = list(answers)
        self.questions: list[Question] = []
        self.resolved: list[ApprovalResolved] = []
        self.caller = context.pop("caller", Caller("test", "session-1", "agent-1"))
        self.more = context

    async def ask(self, question: Question) -> Answer | Reply:
        self.questions.append(question)
        return self.answers.pop(0)

    def call_context(self) -> CallContext:
        made = self.runtime.call_context(ask=self.ask, caller=self.caller)
        if not self.runtime.settings.profile:
            # whether an agent without a profile may call anything is not what is shown here
            made = msgspec.structs.replace(made, agent=AgentRules())
        return made.having(on_resolved=self.resolved.append, **self.more)

    async def call(self, args: dict[str, Any] | None = None, name: str = "t:echo", **request: Any) -> ExecutionResult:
        return await execute(CallRequest(call_id="call-1", name=name, args=args or {}, **request), self.call_context())


def one(root: Path, settings: dict[str, Any], *answers: Answer | Reply, **call: Any) -> tuple[ExecutionResult, Host]:
    async def run() -> tuple[ExecutionResult, Host]:
        host = Host(root, settings, *answers)
        return await host.call(**call), host

    return asyncio.run(run())
