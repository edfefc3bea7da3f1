"""The states of calls: which may follow which, what each outcome is told as, and that no schedule shows an illegal step."""

from __future__ import annotations

import asyncio
import random
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.protocols.contract import CallState, Status, StepResult
from tamis.server.runtime.calls.model import NEXT, STATES, CallRequest, Question, Reply, State, States, end_state
from tamis.server.runtime.calls.running_calls import RunningCalls, own_cancel
from tamis.server.runtime.execution.pipeline import execute
from tests.runtime.agent_world import World, echo, fails
from tests.sample_tools import vcp

# Seed 001 §12: the arrows of the diagram, and the ends that the rulings add to it (40: cancelled, no answer, refused by policy).
LEGAL = {
    ("pending", "awaitingApproval"),  # requireConfirmation: yes
    ("pending", "executing"),  # requireConfirmation: no
    ("pending", "completed"),  # unknown tool, unfit arguments, blocked, no one to ask, replayed
    ("pending", "denied"),  # an answer of the user that still holds
    ("pending", "cancelled"),
    ("awaitingApproval", "executing"),  # user approves
    ("awaitingApproval", "denied"),  # user denies
    ("awaitingApproval", "completed"),  # no answer in time
    ("awaitingApproval", "cancelled"),
    ("executing", "completed"),  # success or error
    ("executing", "cancelled"),
}
FEW = min(settings.default.max_examples // 2, 1_000)
"""Examples of a test that runs whole rounds."""
ENDS = {"completed", "denied", "cancelled"}


def test_the_table_is_the_seed_s_diagram() -> None:  # V62
    assert {(now, then) for now, following in NEXT.items() for then in following} == LEGAL
    assert set(STATES) == set(NEXT) == set(get_args(CallState))
    assert {state for state in STATES if not NEXT[state]} == ENDS


@pytest.mark.parametrize("now", STATES)
@pytest.mark.parametrize("then", STATES)
def test_only_what_the_table_allows_is_told(now: State, then: State) -> None:  # V62
    ways: dict[State, list[State]] = {
        "pending": [],
        "awaitingApproval": ["awaitingApproval"],
        "executing": ["executing"],
    }
    told: list[State] = []
    states = States(lambda _call, state: told.append(state))
    states.begin("c")
    for state in ways.get(now, [now]):
        states("c", state)
    before = len(told)
    assert told[-1] == now
    states("c", then)
    assert told[before:] == ([then] if (now, then) in LEGAL else [])


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.sampled_from([*STATES, None])), max_size=40))
def test_whatever_is_said_only_legal_steps_are_told(said: list[tuple[str, State | None]]) -> None:  # V62
    told: dict[str, list[State]] = {"a": [], "b": []}
    states = States(lambda call, state: told[call].append(state))
    for call, state in said:
        if state is None:
            states.begin(call)
        else:
            states(call, state)
    for steps in told.values():
        assert not steps or steps[0] == "pending"
        for now, then in pairwise(steps):
            assert (now, then) in LEGAL or (now in ENDS and then == "pending")


@pytest.mark.parametrize("status", get_args(Status))
def test_every_outcome_has_its_state(status: Status) -> None:  # V60, ruling 40
    state = end_state(status)
    waiting = {"accepted": "executing", "inputRequired": "awaitingApproval"}
    assert state == waiting.get(status, status if status in ("denied", "cancelled") else "completed")


# calls


def make(root: Path) -> World:
    world = World(root, {"policy": {"approvalTimeoutMs": 30_000}})
    world.tool("echo", echo)
    world.tool("fail", fails)
    return world


def one_call(world: World, **fields: Any) -> list[State]:
    told: list[State] = []

    async def run() -> None:
        context = world.runtime.call_context(ask=world.ask, on_event=lambda _call, state: told.append(state))
        await execute(CallRequest(**({"call_id": "c", "name": "echo", "args": {"text": "x"}} | fields)), context)

    asyncio.run(run())
    return told


def test_a_call_that_runs_is_pending_executing_completed(tmp_path: Path) -> None:  # V60
    assert one_call(make(tmp_path)) == ["pending", "executing", "completed"]
    assert one_call(make(tmp_path), name="fail", args={}) == ["pending", "executing", "completed"]


@pytest.mark.parametrize(
    "fields", [{"name": "ecco"}, {"args": {"n": 1}}, {"dry_run": True}], ids=["unknown", "unfit", "dry run"]
)
def test_a_call_that_does_not_run_never_executes(tmp_path: Path, fields: dict[str, Any]) -> None:  # V60, A28
    assert one_call(make(tmp_path), **fields) == ["pending", "completed"]


@pytest.mark.parametrize(
    ("reply", "states"),
    [
        (Reply(answer="allow"), ["awaitingApproval", "executing", "completed"]),
        (Reply(answer="deny"), ["awaitingApproval", "denied"]),
        (Reply(answer="cancelled"), ["awaitingApproval", "cancelled"]),
        (Reply(answer="timeout"), ["awaitingApproval", "completed"]),
        (Reply(answer="unavailable"), ["awaitingApproval", "completed"]),
    ],
)
def test_every_answer_has_its_state(tmp_path: Path, reply: Reply, states: list[State]) -> None:  # V62, ruling 40
    world = make(tmp_path)

    async def answer(_question: Question) -> Reply:
        return reply

    world.ask = answer
    assert one_call(world, ask=True) == ["pending", *states]


def test_nobody_to_ask_is_no_waiting(tmp_path: Path) -> None:  # V43, ruling 40
    assert one_call(make(tmp_path), ask=True) == ["pending", "completed"]


def test_a_repeated_request_id_completes_without_running(tmp_path: Path) -> None:  # T26, ruling 26
    world = make(tmp_path)
    told: list[State] = []

    async def run() -> None:
        context = world.runtime.call_context(on_event=lambda _call, state: told.append(state))
        for _ in range(2):
            await execute(CallRequest(call_id="c", name="echo", args={"text": "x"}, idempotency_key="k"), context)
        await world.runtime.close()

    asyncio.run(run())
    assert told == ["pending", "executing", "completed", "pending", "completed"]


@settings(max_examples=FEW)
@pytest.mark.parametrize("parallel", [False, True])
@given(seed=st.integers(0, 2**32))
def test_no_schedule_shows_an_illegal_step(parallel: bool, seed: int) -> None:  # V62, V53, V54
    chance = random.Random(seed)
    with TemporaryDirectory() as folder:
        world = make(Path(folder))
        result = asyncio.run(_random_round(world, chance, parallel=parallel))
    ids = [one.request_id for one in result.requests]
    assert [one.call_id for one in result.results] == ids
    for call_id, outcome in zip(ids, result.results, strict=True):
        steps = world.states(call_id)
        assert steps[0] == "pending"
        assert all(pair in LEGAL for pair in pairwise(steps)), steps
        assert steps[-1] == end_state(outcome.status)
        assert ("executing" in steps) >= (outcome.attempts > 0)
    requested = world.session().messages[0].metadata.tool_calls_requested
    assert isinstance(requested, list)
    assert {one.status for one in requested} <= {"completed", "denied"}


async def _random_round(world: World, chance: random.Random, *, parallel: bool) -> StepResult:
    cancelled = asyncio.Event()

    async def pause() -> None:
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
        if chance.random() < 0.1:
            cancelled.set()
        if chance.random() < 0.2:
            running = world.runtime.parts.running_calls
            running.cancel(call_id=f"step-1-{chance.randrange(1, 6)}")

    async def slow(**args: Any) -> Any:
        await pause()
        return fails() if chance.random() < 0.2 else args

    async def answer(_question: Question) -> Reply:
        await pause()
        return Reply(answer=chance.choice(["allow", "allow", "deny", "timeout", "unavailable", "cancelled"]))

    world.ask = answer
    world.functions["echo"] = slow
    text = "".join(vcp(chance.choice(["echo", "echo", "echo", "ecco", "fail"])) for _ in range(5))
    return await world.step(
        text,
        protocol="vcp",
        cancelled=cancelled,
        parallelExecution=parallel,
        requireConfirmation=chance.random() < 0.5,
    )


# what runs, by id


def test_calls_are_cancelled_by_their_id_their_session_or_both() -> None:  # V52
    running = RunningCalls()
    events = {name: asyncio.Event() for name in "abcd"}
    for name, (call_id, session_id) in zip("abcd", [("1", "s"), ("2", "s"), ("1", "t"), ("", "s")], strict=True):
        running.add(call_id, session_id, events[name])
    assert running.cancel() == running.cancel(call_id="", session_id="") == []
    assert running.cancel(call_id="9") == running.cancel(session_id="u") == []
    assert running.cancel(call_id="1", session_id="t") == ["1"]
    assert [events[name].is_set() for name in "abcd"] == [False, False, True, False]
    assert running.cancel(session_id="s") == ["1", "2"]
    assert all(event.is_set() for event in events.values())


def test_a_call_is_cancelled_with_its_request_and_not_the_other_way_round() -> None:  # V52
    async def run() -> None:
        parent = asyncio.Event()
        with own_cancel(parent) as one, own_cancel(parent) as two:
            one.set()
            await asyncio.sleep(0)
            assert not parent.is_set()
            assert not two.is_set()
            parent.set()
            await two.wait()
        with own_cancel(parent) as late:
            assert late.is_set()

    asyncio.run(run())
