"""What is kept of an agent's conversation: messages in the seed's records, bounds, paging, secrets, and the end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from tamis.protocols.contract import SessionMessage, StepResult
from tamis.server.runtime.agents import session as sessions_module
from tamis.server.runtime.agents.session import MAX_CONTENT_CHARS, MAX_MESSAGES, AgentSession, Sessions
from tamis.server.runtime.calls.model import Question, Reply
from tamis.server.runtime.calls.running_calls import RunningCalls
from tests.runtime.agent_world import TEXT, World, echo, fails
from tests.sample_tools import action, tam, vcp

SECRET = "hunter2-hunter2"


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path, {"protocol": {"default": "action"}})
    made.tool("echo", echo)
    made.tool("fail", fails)
    made.tool(
        "login", lambda user, password: f"{user}:{password}", {"user": TEXT, "password": TEXT | {"x-secret": True}}
    )
    return made


def rounds(world: World, *texts: str, **config: Any) -> list[StepResult]:
    async def run() -> list[StepResult]:
        return [await world.step(text, **config) for text in texts]

    return asyncio.run(run())


def requested(message: SessionMessage) -> list[dict[str, Any]]:
    return msgspec.to_builtins(message.metadata)["toolCallsRequested"]


def test_messages_have_the_seed_s_roles_and_metadata(world: World) -> None:  # V07, V55, V56, V57
    rounds(world, "Wait. " + action("echo", text="x"), "Done.")
    first, second, third = world.session().messages
    assert [message.role for message in (first, second, third)] == ["assistant", "tool", "assistant"]
    assert first.content == "Wait. " + action("echo", text="x")
    assert requested(first) == [
        {"requestId": "step-1-1", "toolName": "echo", "args": {"text": "x"}, "status": "completed", "resultIn": 1}
    ]
    record = msgspec.to_builtins(second.metadata)["toolCall"]
    assert record.pop("durationMs") >= 0
    wanted = {"requestId": "step-1-1", "toolName": "echo", "status": "success", "rawArgs": {"text": "x"}}
    assert record == wanted | {"requestedIn": 0}
    assert second.content == 'Observation: Tool echo executed successfully. Result: {"text": "x"}'
    assert third.content == "Done."
    assert third.metadata.tool_calls_requested is UNSET


@pytest.mark.parametrize(
    ("text", "config", "status", "narrow", "error"),
    [
        (action("fail"), {}, "completed", "error", "the pump is dry"),
        (action("ecco"), {}, "completed", "error", "Unknown tool ID 'ecco'"),
        (action("echo", text="x"), {"requireConfirmation": True}, "denied", "denied", "用户拒绝了该操作"),
        (action("echo", text="x"), {"toolToggles": {"echo": False}}, "completed", "error", "switches 'echo' off"),
    ],
    ids=["failed", "unknown", "denied", "blocked"],
)
def test_a_call_that_did_not_succeed_says_why_where_it_was_asked_for(
    world: World, text: str, config: dict[str, Any], status: str, narrow: str, error: str
) -> None:  # V56, V57
    async def deny(_question: Question) -> Reply:
        return Reply(answer="deny")

    world.ask = deny
    rounds(world, text, **config)
    answer, result = world.session().messages
    (one,) = requested(answer)
    assert one["status"] == status
    assert error in one["error"]
    assert result.metadata.tool_call is not UNSET
    assert result.metadata.tool_call.status == narrow


def test_every_request_has_its_message_right_behind_the_answer(world: World) -> None:  # V54
    text = tam({"command": "echo", "text": "1"}, {"command": "fail"}, {"command": "echo", "text": "3"})
    rounds(world, text, "Hm.", text, protocol="tam")
    messages = world.session().messages
    assert [message.role for message in messages] == [
        "assistant",
        *["tool"] * 3,
        "assistant",
        "assistant",
        *["tool"] * 3,
    ]
    for at in (0, 5):
        ids = [one["requestId"] for one in requested(messages[at])]
        records = [message.metadata.tool_call for message in messages[at + 1 : at + 4]]
        assert ids == [record.request_id for record in records if record is not UNSET]
    cancelled = requested(messages[0])[2]
    assert (cancelled["status"], "it was cancelled" in cancelled["error"]) == ("completed", True)


def test_the_records_show_the_states_while_calls_run(world: World) -> None:  # V57, V60
    seen: list[list[str]] = []

    def look() -> None:
        seen.append([one["status"] for one in requested(world.session().messages[0])])
        assert world.session().state == "running"

    async def allow(_question: Question) -> Reply:
        look()
        return Reply(answer="allow")

    world.ask = allow
    world.functions["echo"] = lambda **_args: look()
    rounds(world, vcp("echo", text="1") + vcp("fail"), protocol="vcp", requireConfirmation=True)
    assert seen[:2] == [["awaiting_approval", "pending"], ["executing", "pending"]]
    assert [one["status"] for one in requested(world.session().messages[0])] == ["completed", "completed"]
    assert world.session().state == "idle"


def test_a_step_that_breaks_off_leaves_no_call_open(world: World) -> None:  # V54
    async def run() -> None:
        begun = asyncio.Event()

        async def wait(**_args: Any) -> None:
            begun.set()
            await asyncio.Event().wait()

        world.functions["echo"] = wait
        task = asyncio.ensure_future(world.step(action("echo", text="x")))
        await begun.wait()
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()

    asyncio.run(run())
    answer, end = world.session().messages
    assert requested(answer)[0]["status"] == "completed"
    assert "broke off" in requested(answer)[0]["error"]
    assert end.metadata.stop == "cancelled"
    assert world.session().state == "idle"


# secrets


@pytest.mark.parametrize(
    "text",
    [
        f"It is {SECRET}. " + action("login", user="ann", password=SECRET),
        vcp("login", user="ann", password=SECRET),
        tam({"command": "login", "user": "ann", "password": SECRET}),
        action("login", user="ann", passwort=SECRET),
        action("logn", user="ann", password=SECRET),
    ],
    ids=["action", "vcp", "tam", "misspelled parameter", "unknown tool"],
)
def test_secrets_are_in_no_record(world: World, text: str) -> None:  # V56, D83
    (result,) = rounds(world, text, protocol="auto")
    assert SECRET in result.requests[0].raw_block
    kept = msgspec.json.encode(world.session()).decode()
    assert "***" in kept
    assert SECRET not in kept
    assert SECRET not in result.execution_results[0].result


def test_a_secret_that_is_spelled_otherwise_in_the_text_is_hidden_too(world: World) -> None:  # D83
    rounds(world, "<ACTION><login><user>ann</user><password>a&amp;b&lt;c-secret</password></login></ACTION>")
    kept = world.session().messages[0].content
    assert kept == "<ACTION><login><user>ann</user><password>***</password></login></ACTION>"


def test_the_password_of_a_vcp_block_is_a_secret_though_it_is_no_argument(world: World) -> None:  # ruling 28, D83
    rounds(world, vcp("echo", text="x", tool_password=SECRET), protocol="vcp")
    assert SECRET not in msgspec.json.encode(world.session()).decode()


# bounds


def test_long_sessions_are_read_in_pages(world: World) -> None:
    rounds(world, *[f"answer {n}" for n in range(7)])
    first = world.session(limit=3)
    second = world.session(cursor=str(first.next_cursor), limit=3)
    third = world.session(cursor=str(second.next_cursor), limit=3)
    assert [[message.index for message in view.messages] for view in (first, second, third)] == [
        [0, 1, 2],
        [3, 4, 5],
        [6],
    ]
    assert third.next_cursor is UNSET
    assert world.session(cursor="99").messages == []
    assert world.session(cursor="nonsense", limit=-4).messages[0].index == 0


def test_the_oldest_messages_go_and_it_is_said_how_many(world: World) -> None:
    session = AgentSession("s")
    for number in range(MAX_MESSAGES + 5):
        session.add_answer(str(number), [])
    view = session.view(0, 2)
    assert (view.dropped, [message.content for message in view.messages]) == (5, ["5", "6"])
    assert view.messages[0].index == 5


def test_a_session_s_characters_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions_module, "MAX_SESSION_CHARS", 10_000)
    session = AgentSession("s")
    for _ in range(50):
        session.add_answer("x" * 1_000, [])
    assert session.size <= 10_000
    session.add_answer("y" * (MAX_CONTENT_CHARS + 5_000), [])
    (only,) = session.view(0, 9).messages
    assert len(only.content) <= MAX_CONTENT_CHARS
    assert "characters cut" in only.content


def test_an_answer_with_very_many_calls_is_kept_in_bounds(world: World) -> None:
    calls = "".join("<echo><text>x</text></echo>" for _ in range(600))
    (result,) = rounds(world, f"<ACTION>{calls}</ACTION>", toolToggles={"echo": False})
    assert len(result.requests) == len(result.results) == 600
    answer = world.session().messages[0]
    assert (len(requested(answer)), answer.metadata.more_requested) == (500, 100)


def test_raw_blocks_of_steps_whose_fields_are_mixed_do_not_grow_with_the_square(world: World) -> None:  # F18
    keys = [f"command_{n}:»»»echo«««" for n in range(300)] + [f"text_{n}:»»»{'x' * 50}«««" for n in range(300)]
    text = "<|[REQUEST_TOOL]|>\n" + "\n".join(keys) + "\n<|[END_TOOL]|>"
    (result,) = rounds(world, text, protocol="tam", toolToggles={"echo": False})
    assert len(result.requests) == 300
    assert sum(len(one.raw_block) for one in result.requests) <= 5 * len(text)


def test_idle_sessions_are_forgotten_and_the_one_used_longest_ago_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    sessions = Sessions(RunningCalls(), clock=lambda: now[0])
    monkeypatch.setattr(sessions_module, "MAX_SESSIONS", 3)
    for name in ("a", "b", "c"):
        sessions.open(name).add_answer("x", [])
    sessions.open("a")
    sessions.open("d")
    assert [sessions.view(name).state for name in "abcd"] == ["idle", "none", "idle", "idle"]
    now[0] = sessions_module.MAX_IDLE_S + 1.0
    sessions.open("e")
    assert [sessions.view(name).state for name in "acde"] == ["none", "none", "none", "idle"]


def test_a_session_that_was_idle_too_long_begins_anew() -> None:
    now = [0.0]
    sessions = Sessions(RunningCalls(), clock=lambda: now[0])
    sessions.open("a").iteration = 3
    now[0] = sessions_module.MAX_IDLE_S + 1.0
    assert sessions.open("a").iteration == 0


def test_all_sessions_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions_module, "MAX_ALL_CHARS", 5_000)
    sessions = Sessions(RunningCalls())
    for number in range(20):
        sessions.open(str(number)).add_answer("x" * 1_000, [])
    assert len(sessions) <= 6
    assert sessions.view("19").state == "idle"


def test_a_session_whose_step_runs_is_never_forgotten(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions_module, "MAX_SESSIONS", 1)

    async def run() -> StepResult:
        begun, release = asyncio.Event(), asyncio.Event()

        async def wait(**_args: Any) -> None:
            begun.set()
            await release.wait()

        world.functions["echo"] = wait
        task = asyncio.ensure_future(world.step(action("echo", text="x"), "busy"))
        await begun.wait()
        for number in range(4):
            await world.step("plain", str(number))
        release.set()
        return await task

    assert asyncio.run(run()).iteration == 1
    assert world.session("busy").iteration == 1


@pytest.mark.parametrize("session_id", ["会话😀", "a" * 1_000, "../x", "\u0000", " "])
def test_sessions_have_ids_of_every_script_and_length(world: World, session_id: str) -> None:
    async def run() -> None:
        await world.step(action("echo", text="x"), session_id)

    asyncio.run(run())
    assert world.session(session_id).iteration == 1
    assert world.session("other").state == "none"


# the end


def test_the_end_of_a_session_forgets_it_and_cancels_what_runs(world: World) -> None:  # V52, V54
    async def run() -> tuple[list[str] | None, StepResult]:
        begun = asyncio.Event()

        async def wait(**_args: Any) -> None:
            begun.set()
            await asyncio.Event().wait()

        world.functions["echo"] = wait
        task = asyncio.ensure_future(world.step(action("echo", text="x")))
        await begun.wait()
        ended = world.runtime.parts.sessions.end("s")
        return ended, await task

    ended, result = asyncio.run(run())
    assert ended == [result.requests[0].request_id]
    assert (result.stop, result.results[0].status) == ("cancelled", "cancelled")
    assert world.session().state == "none"
    assert world.runtime.parts.sessions.end("s") is None


def test_nothing_is_left_of_calls_that_ended(world: World) -> None:
    rounds(world, *[action("echo", text=str(n)) for n in range(20)], maxIterations=50)
    assert len(world.runtime.parts.running_calls) == 0
    assert world.runtime.parts.running_calls.cancel(session_id="s") == []


# logs


def test_a_round_is_in_the_audit_log_with_its_text_and_its_outcome(world: World) -> None:  # A30, D27
    world.settings = {"protocol": {"default": "action"}, "audit": {"enabled": True, "path": "audit.jsonl"}}
    rounds(world, action("login", user="ann", password=SECRET))
    text = (world.root / "audit.jsonl").read_text(encoding="utf-8")
    assert SECRET not in text
    events = [msgspec.json.decode(line) for line in text.splitlines()]
    names = [event["event"] for event in events]
    assert (names[0], names[-1]) == ("agent.answered", "agent.observed")
    answered, observed = events[0], events[-1]
    assert (answered["callId"], answered["sessionId"], answered["calls"]) == ("step-1", "s", 1)
    assert "<login>" in answered["text"]
    assert observed["statuses"] == ["success"]
    assert {event["callId"] for event in events[1:-1]} == {"step-1-1"}


def test_a_request_leads_to_its_result_and_back(tmp_path: Path) -> None:
    """V70, seed 001 §11.2.2: by the indices of their messages, in several rounds, and for each call of one answer."""
    world = World(tmp_path)
    world.tool("echo", echo)
    world.tool("fails", fails, {})
    block = "<ACTION><echo><text>{}</text></echo><fails></fails></ACTION>"

    async def talk() -> None:
        for text in ("a", "b"):
            await world.step(block.format(text))

    asyncio.run(talk())
    messages = {message.index: message for message in world.session().messages}
    requested = [
        (message.index, one)
        for message in messages.values()
        for one in ([] if message.metadata.tool_calls_requested is UNSET else message.metadata.tool_calls_requested)
    ]
    assert len(requested) == 4
    for index, one in requested:
        assert isinstance(one.result_in, int)
        record = messages[one.result_in].metadata.tool_call
        assert record is not UNSET
        assert (record.request_id, record.requested_in) == (one.request_id, index)
