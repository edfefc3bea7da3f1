"""One round of an agent's loop: what it gives, what it runs, and when it says that the loop is over."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from tamis.protocols.contract import StepResult
from tamis.server.runtime.calls.model import Question, Reply
from tests.runtime.agent_world import TEXT, World, echo, fails, hangs
from tests.sample_tools import action, tam, vcp


def make_world(root: Path) -> World:
    made = World(root, {"protocol": {"default": "action"}})
    made.tool("echo", echo)
    made.tool("GetPlayerInfo", lambda player_id: f"{player_id} is Ann", {"player_id": TEXT}, ["player_id"])
    made.tool("fail", fails)
    made.tool("hang", hangs)
    counter = iter(range(1, 1_000))
    made.tool("count", lambda: next(counter), {})
    return made


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


def rounds(world: World, *texts: str, **config: Any) -> list[StepResult]:
    async def run() -> list[StepResult]:
        return [await world.step(text, **config) for text in texts]

    return asyncio.run(run())


def stops(results: list[StepResult]) -> list[str | None]:
    return [None if result.stop is UNSET else result.stop for result in results]


# what a round gives


def test_a_round_gives_what_the_seeds_name(world: World) -> None:  # V20, V21, V22, A03, A27, ruling 4
    text = "Let me see. 😀\n" + action("echo", text="值") + "\nDone."
    (result,) = rounds(world, text)
    assert (result.response_text, result.trailing_text) == ("Let me see. 😀\n", "\nDone.")
    assert result.has_tool_requests
    (request,) = result.requests
    assert request.tool_name == "echo"
    assert request.raw_block == action("echo", text="值")
    assert request.args == {"text": "值"}
    assert [one.call_id for one in result.results] == [request.request_id]
    assert result.observation == 'Observation: Tool echo executed successfully. Result: {"text": "值"}'
    assert (result.iteration, result.stop) == (1, UNSET)
    wire = msgspec.to_builtins(result)
    assert wire["parsedRequests"] == wire["requests"]
    (narrow,) = wire["executionResults"]
    assert set(narrow) == {"requestId", "toolName", "status", "result", "durationMs"}
    assert (narrow["requestId"], narrow["status"], narrow["result"]) == (
        request.request_id,
        "success",
        '{"text": "值"}',
    )


def test_arguments_that_are_no_texts_are_json_in_the_seeds_record(world: World) -> None:  # V20
    world.tool("deep", echo, {"names": {"type": "array"}, "at": {"type": "object"}})
    block = "<ACTION><deep><names><item>a</item><item>值</item></names><at><x>1</x></at></deep></ACTION>"
    (result,) = rounds(world, block)
    assert result.requests[0].args == {"names": '["a", "值"]', "at": '{"x": "1"}'}


def test_the_raw_block_of_several_calls_is_each_call_s_part(world: World) -> None:  # V20
    text = "<ACTION><echo><text>1</text></echo>\n<count></count></ACTION>"
    (result,) = rounds(world, text)
    assert [one.raw_block for one in result.requests] == ["<echo><text>1</text></echo>", "<count></count>"]


def test_text_between_blocks_is_kept_in_order(world: World) -> None:  # A03, V36
    text = "a" + vcp("echo", text="1") + "b" + vcp("count") + "c"
    (result,) = rounds(world, text, protocol="vcp")
    assert [one.tool_name for one in result.requests] == ["echo", "count"]
    assert (result.response_text, result.trailing_text) == ("a", "c")
    assert "".join(one.raw_block for one in result.requests) in text.replace("b<", "<")
    assert [one.tool_id for one in result.results] == ["echo", "count"]


def test_a_failure_is_an_error_in_the_narrow_record(world: World) -> None:  # V21, V44
    (result,) = rounds(world, action("fail"))
    assert result.results[0].status == "error"
    narrow = result.execution_results[0]
    assert narrow.status == "error"
    assert "the pump is dry" in narrow.result


def test_an_answer_without_a_call_ends_the_loop(world: World) -> None:  # A13, V41, V48
    (result,) = rounds(world, "It is sunny.")
    assert (result.stop, result.has_tool_requests, result.requests, result.results) == ("noTools", False, [], [])
    assert (result.response_text, result.observation, result.iteration) == ("It is sunny.", "", 0)
    assert result.explanation is UNSET


# whether anything may run


@pytest.mark.parametrize("config", [{"enabled": False}, {}], ids=["off", "missing"])
def test_without_an_enabled_config_nothing_runs_and_the_result_says_so(
    world: World, config: dict[str, Any]
) -> None:  # V08, V17, ruling 42
    from tamis.server.runtime.agents.step import StepRequest, step

    async def run() -> StepResult:
        request = StepRequest(text=action("echo", text="x"), session_id="s", config=config)
        return await step(request, world.runtime.call_context(), world.runtime.parts.sessions, world.runtime.read)

    result = asyncio.run(run())
    assert world.called == []
    assert (result.stop, result.results[0].status, result.iteration) == ("denied", "blocked", 0)
    assert "toolCallConfig.enabled is not true" in result.observation
    assert "toolCallConfig.enabled is not true" in str(result.explanation)


def test_a_profile_governs_and_the_request_goes_over_it(world: World) -> None:  # ruling 42, V08
    (world.root / "agent_profile.json").write_text(
        json.dumps({"toolCallConfig": {"enabled": True, "protocol": "action"}})
    )
    world.settings = {"profile": "agent_profile.json"}

    async def run(**config: Any) -> str:
        from tamis.server.runtime.agents.step import StepRequest, step

        request = StepRequest(text=action("echo", text="x"), session_id="s", config=config)
        result = await step(request, world.runtime.call_context(), world.runtime.parts.sessions, world.runtime.read)
        return "".join(one.status for one in result.results)

    async def both() -> list[str]:
        return [await run(), await run(enabled=False), await run(toolToggles={"echo": False})]

    assert asyncio.run(both()) == ["success", "blocked", "blocked"]


def test_a_profile_that_cannot_be_read_lets_nothing_run_whatever_the_request_says(world: World) -> None:  # ruling 42
    (world.root / "agent_profile.json").write_text("{")
    world.settings = {"profile": "agent_profile.json", "protocol": {"default": "action"}}
    (result,) = rounds(world, action("echo", text="x"))
    assert (result.stop, result.results[0].status, world.called) == ("denied", "blocked", [])


def test_the_inventory_of_a_profile_stands_also_with_a_config_of_the_request(world: World) -> None:  # A23
    profile = {"tool_ids_inventory": ["count"], "toolCallConfig": {"enabled": True, "protocol": "action"}}
    (world.root / "agent_profile.json").write_text(json.dumps(profile))
    world.settings = {"profile": "agent_profile.json"}
    results = rounds(world, action("echo", text="x"), action("count"))
    assert [result.results[0].status for result in results] == ["error", "success"]
    assert "Unknown tool ID 'echo'" in results[0].observation


@pytest.mark.parametrize(
    ("config", "status"),
    [
        ({"toolToggles": {"echo": False}}, "blocked"),  # V10
        ({"defaultToolEnabled": False}, "blocked"),  # V11
        ({"defaultToolEnabled": False, "toolToggles": {"echo": True}}, "success"),  # V10
        ({"mode": "manual"}, "approvalUnavailable"),  # V09, V43
        ({"requireConfirmation": True}, "approvalUnavailable"),  # V14
        ({"timeout": 60_000}, "success"),  # V13
    ],
)
def test_the_config_decides(world: World, config: dict[str, Any], status: str) -> None:
    (result,) = rounds(world, action("echo", text="x"), **config)
    assert result.results[0].status == status
    assert len(world.called) == (status == "success")


def test_the_protocol_is_the_config_s_and_action_when_it_names_none(tmp_path: Path) -> None:  # V16, T19
    world = World(tmp_path)
    world.tool("echo", echo)
    assert stops(rounds(world, action("echo", text="x"), vcp("echo", text="x"))) == [None, "noTools"]
    assert stops(rounds(world, vcp("echo", text="x"), protocol="vcp")) == [None]
    assert stops(rounds(world, action("echo", text="x"), protocol="auto")) == [None]


def test_the_agent_s_timeout_bounds_a_call(world: World) -> None:  # V13, ruling 40
    (result,) = rounds(world, action("hang"), timeout=30)
    assert result.results[0].status == "timeout"
    assert "TimeoutError" in result.observation
    assert result.iteration == 1


def test_parallel_calls_overlap_and_keep_their_order(world: World) -> None:  # V15
    meeting = asyncio.Barrier(2)

    async def meets(text: str) -> str:
        await meeting.wait()
        return text

    world.tool("meet", meets)
    text = vcp("meet", text="1") + vcp("meet", text="2")
    (result,) = rounds(world, text, protocol="vcp", parallelExecution=True)
    assert [one.output for one in result.results] == ["1", "2"]


def test_serial_calls_do_not_overlap(world: World) -> None:  # V15
    now: list[str] = []

    async def alone(text: str) -> str:
        now.append(text)
        await asyncio.sleep(0)
        assert now == [text]
        now.remove(text)
        return text

    world.tool("alone", alone)
    (result,) = rounds(world, vcp("alone", text="1") + vcp("alone", text="2"), protocol="vcp")
    assert [one.output for one in result.results] == ["1", "2"]


# rounds


def test_only_rounds_in_which_a_call_ran_are_counted(world: World) -> None:  # V49, ruling 41
    texts = [
        "plain",
        action("ecco"),
        action("echo", txet="x"),
        "<ACTION><echo><text>a</",
        action("count"),
        action("fail"),
    ]
    assert [result.iteration for result in rounds(world, *texts)] == [0, 0, 0, 0, 1, 2]


def test_a_round_above_the_limit_runs_nothing_and_says_why(world: World) -> None:  # V12, V50
    results = rounds(world, *[action("count")] * 7, maxIterations=5)
    assert stops(results) == [None] * 5 + ["maxIterations"] * 2
    assert [result.iteration for result in results] == [1, 2, 3, 4, 5, 5, 5]
    assert len(world.called) == 5
    last = results[-1]
    assert (last.results[0].status, last.results[0].attempts) == ("blocked", 0)
    assert "maxIterations" in last.observation
    explaining = world.session().messages[-1]
    assert (explaining.role, explaining.metadata.stop) == ("system", "maxIterations")
    assert "5 rounds" in explaining.content


def test_the_default_limit_is_five_rounds(world: World) -> None:  # V12
    assert stops(rounds(world, *[action("count")] * 6)) == [None] * 5 + ["maxIterations"]


def test_an_answer_without_a_call_begins_the_count_again(world: World) -> None:  # V48, seed 001 §9.1
    texts = [*[action("count")] * 2, "There.", *[action("count")] * 3]
    results = rounds(world, *texts, maxIterations=2)
    assert stops(results) == [None, None, "noTools", None, None, "maxIterations"]
    assert results[-1].iteration == 4
    assert world.session().turn_iteration == 2


def test_a_new_turn_begins_the_count_again(world: World) -> None:  # V50
    async def run() -> list[StepResult]:
        await world.step(action("count"), maxIterations=1)
        refused = await world.step(action("count"), maxIterations=1)
        return [refused, await world.step(action("count"), new_turn=True, maxIterations=1)]

    assert stops(asyncio.run(run())) == ["maxIterations", None]


def test_rounds_that_never_run_anything_end_too(world: World) -> None:
    results = rounds(world, *[action("ecco", n=str(n)) for n in range(11)])
    assert stops(results) == [None] * 9 + ["maxIterations"] * 2
    assert "none could run" in str(results[9].explanation)
    assert stops(rounds(world, action("count"))) == [None]


# loops


def test_the_same_call_with_the_same_result_three_rounds_running_is_a_loop(world: World) -> None:  # V51, ruling 41
    results = rounds(world, *[action("echo", text="x")] * 3)
    assert stops(results) == [None, None, "loopDetected"]
    assert results[-1].results[0].status == "success"
    assert world.session().messages[-1].metadata.stop == "loopDetected"


def test_repeats_with_other_results_are_no_loop(world: World) -> None:  # V51, F26, ruling 8
    assert stops(rounds(world, *[action("count")] * 8, maxIterations=20)) == [None] * 8


def test_the_same_call_several_times_in_one_answer_is_no_loop(world: World) -> None:  # F26, ruling 8
    text = vcp("echo", text="x") * 4
    results = rounds(world, text, text, protocol="vcp")
    assert stops(results) == [None, None]
    assert len(world.called) == 8


def test_something_else_between_ends_a_run_of_repeats(world: World) -> None:  # ruling 41
    one, two = action("echo", text="1"), action("echo", text="2")
    assert stops(rounds(world, one, one, two, one, one, maxIterations=9)) == [None] * 5


def test_rounds_that_correct_themselves_are_no_loop_and_end_none(world: World) -> None:  # V51, A40
    wrong, right = action("echo", txet="x"), action("echo", text="x")
    assert stops(rounds(world, wrong, wrong, wrong, wrong)) == [None] * 4
    assert stops(rounds(world, right, wrong, right, wrong, right)) == [None] * 4 + ["loopDetected"]


def test_the_order_of_arguments_makes_no_other_call(world: World) -> None:  # ruling 41
    world.tool("two", echo, {"a": TEXT, "b": TEXT})
    there, back = action("two", a="1", b="2"), action("two", b="2", a="1")
    assert stops(rounds(world, there, back, there)) == [None, None, "loopDetected"]


def test_failures_that_repeat_are_a_loop_too(world: World) -> None:  # V51
    assert stops(rounds(world, *[action("fail")] * 3)) == [None, None, "loopDetected"]


# self-correction


def test_the_seed_s_two_round_correction(world: World) -> None:  # A40, A28, A24
    wrong = (
        "I'll try to get the player's name.\n<ACTION>\n    <GetPlayerInfo>\n        <playerId>player123</playerId>"
        " <!-- no comment -->\n    </GetPlayerInfo>\n</ACTION>"
    )
    right = (
        "My apologies, I used the wrong parameter name.\n<ACTION>\n    <GetPlayerInfo>\n"
        "        <player_id>player123</player_id>\n    </GetPlayerInfo>\n</ACTION>"
    )
    first, second = rounds(world, wrong, right)
    assert first.response_text == "I'll try to get the player's name.\n"
    assert first.observation.startswith(
        "Observation: Error - Invalid parameters for GetPlayerInfo: Unknown parameter 'playerId', did you mean 'player_id'?"
    )
    assert (first.iteration, first.stop, first.results[0].attempts) == (0, UNSET, 0)
    assert world.called == [("GetPlayerInfo", {"player_id": "player123"})]
    assert second.observation == "Observation: Tool GetPlayerInfo executed successfully. Result: player123 is Ann"
    assert second.iteration == 1


@pytest.mark.parametrize(
    ("text", "protocol", "words"),
    [
        ("ok <ACTION><echo><text>half", "action", "Malformed XML in ACTION block: line 1"),  # A29, ruling 19
        ("<<<[TOOL_REQUEST]>>>\ntool_name:「始」echo「末」", "vcp", "Malformed VCP block"),  # V37
        ("<<<[TOOL_REQUEST]>>>\ntext:「始」x「末」\n<<<[END_TOOL_REQUEST]>>>", "vcp", "Malformed VCP block"),  # V38
    ],
)
def test_a_block_that_cannot_be_read_is_told_and_the_loop_goes_on(
    world: World, text: str, protocol: str, words: str
) -> None:
    (result,) = rounds(world, text, protocol=protocol)
    assert words in result.observation
    assert (result.iteration, result.stop, world.called) == (0, UNSET, [])
    assert any(words in message.content for message in world.session().messages if message.role == "tool")


# people


def test_a_denial_is_told_to_the_model_and_the_loop_goes_on(world: World) -> None:  # V61, seed 001 §11.3 and §12
    asked: list[Question] = []

    async def deny(question: Question) -> Reply:
        asked.append(question)
        return Reply(answer="deny")

    world.ask = deny
    results = rounds(world, action("echo", text="x"), action("echo", text="y"), "Never mind.", requireConfirmation=True)
    assert stops(results) == [None, None, "noTools"]
    assert "用户拒绝了该操作" in results[0].observation
    assert [result.execution_results[0].status for result in results[:2]] == ["denied", "denied"]
    assert "用户拒绝了该操作" in results[0].execution_results[0].result
    assert (results[1].iteration, world.called, len(asked)) == (0, [], 2)


def test_a_model_that_insists_on_what_was_denied_is_stopped(world: World) -> None:  # V61
    async def deny(_question: Question) -> Reply:
        return Reply(answer="deny")

    world.ask = deny
    text = action("echo", text="x")
    results = rounds(world, text, text, requireConfirmation=True)
    assert stops(results) == [None, "denied"]
    assert world.session().messages[-1].metadata.stop == "denied"


def test_an_allowed_call_runs(world: World) -> None:  # V43, V61
    async def allow(_question: Question) -> Reply:
        return Reply(answer="allow")

    world.ask = allow
    (result,) = rounds(world, action("echo", text="x"), requireConfirmation=True)
    assert result.results[0].status == "success"
    assert world.states(result.requests[0].request_id) == ["pending", "awaitingApproval", "executing", "completed"]


# the end from outside


def test_a_cancel_keeps_what_is_done_and_marks_the_rest(world: World) -> None:  # V52, V53, V54
    async def run() -> StepResult:
        cancelled = asyncio.Event()

        async def hang(text: str = "") -> None:
            cancelled.set()
            await asyncio.Event().wait()

        world.functions["hang"] = hang
        text = vcp("echo", text="1") + vcp("hang") + vcp("echo", text="2")
        return await world.step(text, protocol="vcp", cancelled=cancelled)

    result = asyncio.run(run())
    assert [one.status for one in result.results] == ["success", "cancelled", "cancelled"]
    assert (result.stop, result.iteration) == ("cancelled", 1)
    assert len(result.requests) == len(result.results) == 3
    last = [world.states(one.request_id)[-1] for one in result.requests]
    assert last == ["completed", "cancelled", "cancelled"]
    assert [name for name, _ in world.called] == ["echo", "hang"]


def test_all_that_runs_for_a_session_is_cancelled_by_its_id_and_nothing_else(world: World) -> None:  # V52
    async def run() -> tuple[list[str], StepResult, StepResult]:
        begun = asyncio.Semaphore(0)
        release = asyncio.Event()

        async def hang(text: str = "") -> str:
            begun.release()
            await release.wait()
            return "done"

        world.functions["hang"] = hang
        mine = asyncio.ensure_future(world.step(action("hang"), "mine"))
        other = asyncio.ensure_future(world.step(action("hang"), "other"))
        await begun.acquire()
        await begun.acquire()
        cancelled = world.runtime.parts.sessions.cancel("mine")
        first = await mine
        release.set()
        return cancelled, first, await other

    cancelled, mine, other = asyncio.run(run())
    assert cancelled == [mine.requests[0].request_id]
    assert (mine.stop, mine.results[0].status) == ("cancelled", "cancelled")
    assert (other.stop, other.results[0].status) == (UNSET, "success")


def test_one_call_is_cancelled_alone_and_the_loop_goes_on(world: World) -> None:  # V52
    async def run() -> StepResult:
        begun = asyncio.Event()

        async def hang(text: str = "") -> None:
            begun.set()
            await asyncio.Event().wait()

        world.functions["hang"] = hang
        task = asyncio.ensure_future(world.step(vcp("hang") + vcp("echo", text="x"), protocol="vcp"))
        await begun.wait()
        assert world.runtime.parts.running_calls.cancel(call_id="step-1-1") == ["step-1-1"]
        return await task

    result = asyncio.run(run())
    assert [one.status for one in result.results] == ["cancelled", "success"]
    assert result.stop is UNSET


def test_steps_of_one_session_run_one_after_another(world: World) -> None:
    async def run() -> list[StepResult]:
        return await asyncio.gather(*(world.step(action("count"), maxIterations=9) for _ in range(5)))

    results = asyncio.run(run())
    assert [result.iteration for result in results] == [1, 2, 3, 4, 5]
    roles = [message.role for message in world.session().messages]
    assert roles == ["assistant", "tool"] * 5


def test_a_step_that_waits_for_its_turn_can_be_cancelled(world: World) -> None:  # V52, V54
    async def run() -> StepResult:
        begun, release, cancelled = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def hang(text: str = "") -> None:
            begun.set()
            await release.wait()

        world.functions["hang"] = hang
        first = asyncio.ensure_future(world.step(action("hang")))
        await begun.wait()
        second = asyncio.ensure_future(world.step(action("echo", text="x"), cancelled=cancelled))
        await asyncio.sleep(0)
        cancelled.set()
        result = await second
        assert not first.done()
        release.set()
        await first
        return result

    result = asyncio.run(run())
    assert (result.stop, [one.status for one in result.results]) == ("cancelled", ["cancelled"])
    assert [name for name, _ in world.called] == ["hang"]
    assert len(world.session().messages) == 2


def test_too_many_steps_that_wait_are_refused(world: World) -> None:
    from tamis.server.runtime.agents.session import MAX_WAITING, TooManyWaitingError

    async def run() -> int:
        release = asyncio.Event()
        begun = asyncio.Event()

        async def hang(text: str = "") -> None:
            begun.set()
            await release.wait()

        world.functions["hang"] = hang
        first = asyncio.ensure_future(world.step(action("hang")))
        await begun.wait()
        rest = [asyncio.ensure_future(world.step("x")) for _ in range(MAX_WAITING + 3)]
        await asyncio.sleep(0)
        release.set()
        await first
        done = await asyncio.gather(*rest, return_exceptions=True)
        return sum(isinstance(one, TooManyWaitingError) for one in done)

    assert asyncio.run(run()) == 3


def test_tam_steps_that_were_not_reached_have_results_too(world: World) -> None:  # V54, T20
    text = tam({"command": "fail"}, {"command": "echo", "text": "x"})
    (result,) = rounds(world, text, protocol="tam")
    assert [one.status for one in result.results] == ["error", "cancelled"]
    assert [one.request_id for one in result.requests] == [one.call_id for one in result.results]
    assert result.stop is UNSET


def test_questions_that_are_asked_together_all_wait(world: World) -> None:  # V60, V61
    seen: list[dict[str, list[str]]] = []

    async def allow(question: Question) -> Reply:
        # what is asked is known to wait when the question comes
        seen.append({name: list(world.states(name)) for name in ("step-1-1", "step-1-2")})
        await asyncio.sleep(0)
        return Reply(answer="allow")

    world.ask, world.asks_together = allow, True
    text = vcp("echo", text="1") + vcp("echo", text="2")
    (result,) = rounds(world, text, protocol="vcp", requireConfirmation=True)
    assert [one.status for one in result.results] == ["success", "success"]
    assert seen == [{"step-1-1": ["pending", "awaitingApproval"], "step-1-2": ["pending", "awaitingApproval"]}] * 2
    assert world.states("step-1-2") == ["pending", "awaitingApproval", "executing", "completed"]


# whatever a model writes

FEW = min(settings.default.max_examples // 2, 1_000)
"""Examples of a test that runs whole rounds."""
PIECES = st.sampled_from(
    [
        *(
            "Hm. ",
            "😀\n",
            "<think>",
            "</think>",
            "```\n",
            "`",
            "<ACTION>",
            "</ACTION>",
            "<echo>",
            "</echo>",
            "<text>x</text>",
        ),
        *(action("echo", text="值"), action("ecco"), action("echo", txet="x"), action("fail"), action("count")),
        *(
            vcp("echo", text="x"),
            vcp("fail"),
            "<<<[TOOL_REQUEST]>>>",
            "<<<[END_TOOL_REQUEST]>>>",
            "tool_name:「始」echo「末」",
        ),
        *(tam({"command": "echo", "text": "x"}, {"command": "fail"}), "<|[REQUEST_TOOL]|>", "<|[END_TOOL]|>"),
        *("<ACTION><tool_id>echo</tool_id><inputs><input name='text'>x</input></inputs></ACTION>", "\ud800", "\x00"),
    ]
)


@settings(max_examples=FEW)
@given(texts=st.lists(st.lists(PIECES, max_size=6).map("".join), min_size=1, max_size=6), parallel=st.booleans())
def test_whatever_a_model_writes_the_round_is_whole(texts: list[str], parallel: bool) -> None:  # V44, V54, V20, A02
    with TemporaryDirectory() as folder:
        world = make_world(Path(folder))
        results = rounds(world, *texts, protocol="auto", parallelExecution=parallel, maxIterations=3)
        view = world.session(limit=500)
    counted = 0
    for text, result in zip(texts, results, strict=True):
        assert text.startswith(result.response_text)
        assert text.endswith(result.trailing_text)
        assert [one.request_id for one in result.requests] == [one.call_id for one in result.results]
        assert all(one.raw_block in text for one in result.requests)
        assert result.has_tool_requests == bool(result.requests)
        assert counted <= result.iteration <= counted + any(one.attempts for one in result.results)
        counted = result.iteration
        assert (result.stop == "noTools") <= (not result.requests and not result.observation)
        assert result.observation or not result.requests
    # every request that is kept has its result behind it
    asked = [
        one.request_id
        for message in view.messages
        if message.metadata.tool_calls_requested is not UNSET
        for one in message.metadata.tool_calls_requested
    ]
    told = [message.metadata.tool_call for message in view.messages if message.metadata.tool_call is not UNSET]
    assert asked == [record.request_id for record in told]
    assert view.turn_iteration <= 3


# calls in a protocol that the session does not read

JSON_CALL = '{"tool_calls": [{"id": "a", "type": "function", "function": {"name": "echo", "arguments": "{}"}}]}'


@pytest.mark.parametrize("text", [action("echo", text="a"), tam({"command": "echo", "text": "a"}), JSON_CALL])
def test_calls_in_another_protocol_than_the_one_that_is_read_are_told(world: World, text: str) -> None:
    (result,) = rounds(world, text, protocol="vcp")
    assert stops([result]) == ["noTools"] and world.called == []
    assert "were not read: it is read as vcp. Set config.protocol to '" in str(result.explanation)
    (right,) = rounds(world, vcp("nothing:here"), protocol="vcp")
    assert right.explanation is UNSET


def test_the_protocol_that_nobody_named_is_told_where_it_reads_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.tool("echo", echo)
    (result,) = rounds(world, "Look. " + vcp("echo", text="a"))
    assert "it is read as action, since config.protocol names no other. Set config.protocol to 'vcp' or 'auto'." in str(
        result.explanation
    )
    (plain,) = rounds(world, "Nothing to do.")
    assert plain.explanation is UNSET and stops([plain]) == ["noTools"]


def test_without_a_config_the_result_says_that_calls_are_off_in_every_protocol(tmp_path: Path) -> None:  # V17
    world = World(tmp_path)
    world.tool("echo", echo)
    for text in (action("echo", text="a"), vcp("echo", text="a"), tam({"command": "echo", "text": "a"})):
        (result,) = rounds(world, text, enabled=False)
        assert "toolCallConfig.enabled is not true" in str(result.explanation)
    assert world.called == []


# what was seen and not run


def test_a_round_of_set_aside_calls_alone_starts_no_new_round(world: World) -> None:  # ruling 54
    (result,) = rounds(world, f"<think>{action('echo', text='no')}</think> I will not.")
    assert (result.stop, result.observation, result.iteration) == ("noTools", "", 0)
    assert isinstance(result.explanation, str)
    assert "line 1, column 8" in result.explanation


@pytest.mark.parametrize(
    ("text", "publishable"),
    [
        (f"I look. {action('echo', text='1')}", True),
        ("It is sunny.", True),
        (f"I look. {action('nosuch', text='1')}", False),
        (f"I look. {action('echo', wrong='1')}", False),
        ("I look. <ACTION><echo><text>1", False),
    ],
    ids=["valid", "no call", "unknown tool", "wrong parameter", "cut off"],
)
def test_only_the_words_before_a_valid_call_are_publishable(world: World, text: str, publishable: bool) -> None:
    """A54, seed 000 §3.3: a failed attempt is not shown to a person."""
    (result,) = rounds(world, text)
    assert result.publishable is publishable
