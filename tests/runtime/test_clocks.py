"""The wall clock is set, forwards and back, while calls, questions, tasks, keys and leases are open: nothing blocks, ends or is lost for it."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult
from tamis.server.runtime.calls.model import CallRequest, Question, TokenAnswer
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.policy.rules import WINDOW_S, CallRate
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.store import owners
from tamis.server.runtime.store.owners import LEASE_S, Clock, Owner, is_gone
from tamis.server.runtime.store.store import Store
from tamis.server.runtime.tools.watching import differs, look
from tests.sample_tools import make_tool

DAY = 86_400.0
COUNT = "import os\nn = len(os.listdir('.n'))\nopen(f'.n/{n}', 'w').close()\nprint(n)"
SETS = [pytest.param(days * DAY, id=f"{days:+} days") for days in (-4_000, -1, 1, 4_000)]


class Wall:
    """The wall clock of this process; ``monotonic`` is beside it, and both go on by themselves."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self.later = 0.0
        self._time, self._monotonic = time.time, time.monotonic

    def time(self) -> float:
        """``time.time``."""
        return self._time() + self.ahead + self.later

    def monotonic(self) -> float:
        """``time.monotonic``."""
        return self._monotonic() + self.later


@pytest.fixture
def wall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wall:
    made = Wall()
    monkeypatch.setenv("TAMIS_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(time, "time", made.time)
    monkeypatch.setattr(time, "monotonic", made.monotonic)
    monkeypatch.setattr(owners, "_clock", Clock())
    return made


@pytest.fixture
def root(tmp_path: Path) -> Path:
    writes = {"fileAccess": {"allowWrite": [".n/**"]}}
    make_tool(tmp_path, "count", COUNT, securityContext=writes)
    make_tool(tmp_path, "late", COUNT, securityContext=writes, execution={"mode": "async"})
    return tmp_path


def once(root: Path, key: str = "k", *, meanwhile: Callable[[], object] = bool, **settings: Any) -> ExecutionResult:
    """A call with a key in a runtime of its own; ``meanwhile`` happens when it has begun."""
    runtime = Runtime(root, settings)

    async def run() -> ExecutionResult:
        def look(_call_id: str, state: str) -> None:
            if state == "executing":
                meanwhile()

        try:
            request = CallRequest(call_id="c", name="count", idempotency_key=key)
            return await execute(request, runtime.call_context(on_event=look))
        finally:
            await runtime.close()

    return asyncio.run(run())


# Keys


@pytest.mark.parametrize("by", SETS)
def test_a_result_by_key_is_kept_though_the_clock_is_set_while_its_call_runs(
    root: Path, wall: Wall, by: float
) -> None:  # ruling 26
    def set_it() -> None:
        wall.ahead += by

    assert once(root, meanwhile=set_it).output == 0
    again = once(root)
    assert (again.output, again.replayed) == (0, True)


def test_a_result_from_the_future_is_kept_as_long_as_any_and_no_longer(root: Path, wall: Wall) -> None:
    wall.ahead = 4_000 * DAY
    assert once(root).output == 0
    wall.ahead = 0
    assert once(root).replayed
    wall.later = 0.5 * DAY
    assert once(root).replayed
    wall.later = 1.5 * DAY
    again = once(root)
    assert (again.output, again.replayed) == (1, False)


def test_the_key_of_a_lost_call_from_the_future_is_free_again_in_the_usual_time(root: Path, wall: Wall) -> None:
    wall.ahead = 4_000 * DAY
    assert once(root).output == 0
    with sqlite3.connect(Path(os.environ["TAMIS_STATE_DIR"]) / "tamis.db") as db:
        # as a process leaves it that is killed in its call
        owner = f"{owners._machine()} 999999999 1 00"  # pyright: ignore[reportPrivateUsage]
        db.execute("UPDATE replays SET result = NULL, size = 0, owner = ?", (owner,))
    wall.ahead = 0
    lost = once(root)
    assert lost.error is not UNSET
    assert lost.error.details is not UNSET
    assert lost.error.details.code == "callLost"
    wall.later = 1.5 * DAY
    assert once(root).output == 1


# Owners elsewhere


def looked(folder: Path, beat: float | None, *looks: Callable[[], object]) -> list[bool]:
    """Whether an owner elsewhere is gone that was last heard of at ``beat``: at first, and after each of ``looks``."""

    async def run() -> list[bool]:
        store = Store(folder)
        here = Owner(store)
        try:

            def write(db: sqlite3.Connection) -> None:
                db.execute("DELETE FROM owners")
                if beat is not None:
                    db.execute("INSERT INTO owners VALUES ('elsewhere 1 1 1', ?)", (beat,))

            await store.run(write)
            found = [await store.run(lambda db: is_gone(db, "elsewhere 1 1 1"))]
            for change in looks:
                change()
                found.append(await store.run(lambda db: is_gone(db, "elsewhere 1 1 1")))
            return found
        finally:
            here.close()
            await store.close()

    return asyncio.run(run())


def test_one_that_was_heard_of_in_the_future_is_gone_when_it_stays_silent(tmp_path: Path, wall: Wall) -> None:
    def wait() -> None:
        wall.later += LEASE_S * 0.9

    # the second 0.9 are over its time
    assert looked(tmp_path, wall.time() + 4_000 * DAY, wait, wait) == [False, False, True]


@pytest.mark.parametrize("by", SETS)
def test_one_that_was_heard_of_just_now_is_not_gone_because_the_clock_is_set(
    tmp_path: Path, wall: Wall, by: float
) -> None:
    def set_it() -> None:
        wall.ahead += by

    def wait() -> None:
        wall.later += LEASE_S * 1.1

    # it had time to be heard of again, and was not
    assert looked(tmp_path, wall.time(), set_it, wait) == [False, False, True]


def test_without_a_set_clock_silence_is_what_counts(tmp_path: Path, wall: Wall) -> None:
    assert looked(tmp_path, wall.time() - LEASE_S - 1) == [True]
    assert looked(tmp_path, wall.time() - LEASE_S + 5) == [False]
    assert looked(tmp_path, None) == [True]


# Tasks


@pytest.mark.parametrize("by", SETS)
def test_a_task_ends_and_is_found_though_the_clock_is_set_while_it_runs(
    root: Path, wall: Wall, by: float
) -> None:  # D92
    runtime = Runtime(root)
    runtime.parts.stays = True

    async def run() -> tuple[str, Any]:
        try:
            accepted = await execute(CallRequest(call_id="c", name="late"), runtime.call_context())
            wall.ahead += by
            result = await runtime.parts.tasks.result(str(accepted.task_id), 60_000)
            assert result is not None
            wall.ahead -= by
            second = await execute(CallRequest(call_id="d", name="late"), runtime.call_context())
            await runtime.parts.tasks.result(str(second.task_id), 60_000)
            listed = (await runtime.parts.tasks.page()).tasks
            # R6: one ended before it was made
            assert all(task.ended_at is not UNSET and task.ended_at >= task.created_at for task in listed)
            return str(accepted.task_id), [task.task_id for task in listed]
        finally:
            await runtime.close()

    task_id, listed = asyncio.run(run())
    # one that ended so long ago by the clock is too old for its keepSeconds
    assert (task_id in listed) == (by >= -DAY)


def test_a_task_that_ended_in_the_future_is_forgotten_in_the_usual_time(root: Path, wall: Wall) -> None:
    runtime = Runtime(root)
    runtime.parts.stays = True

    async def task() -> int:
        accepted = await execute(CallRequest(call_id="c", name="late"), runtime.call_context())
        await runtime.parts.tasks.result(str(accepted.task_id), 60_000)
        return len((await runtime.parts.tasks.page()).tasks)

    async def run() -> list[int]:
        try:
            wall.ahead = 4_000 * DAY
            counts = [await task()]
            wall.ahead = 0
            counts.append(await task())
            wall.later = 8 * DAY
            counts.append(await task())
            return counts
        finally:
            await runtime.close()

    assert asyncio.run(run()) == [1, 2, 1]


# Questions, rates, counts


@pytest.mark.parametrize("by", SETS)
def test_questions_and_their_tokens_go_by_no_wall_clock(root: Path, wall: Wall, by: float) -> None:  # ruling 40
    runtime = Runtime(root, {"policy": {"requireConfirmation": "always"}})

    async def ask(_question: Question) -> Any:
        wall.ahead += by
        return "allow"

    async def run() -> list[ExecutionResult]:
        try:
            request = CallRequest(call_id="c", name="count")
            asked = await execute(request, runtime.call_context(ask=ask))
            polling = runtime.call_context().having(polls=True)
            handed_out = await execute(request, polling)
            assert handed_out.approval is not UNSET
            wall.ahead -= 2 * by
            answer = TokenAnswer(token=handed_out.approval["token"], option_id="allow")
            again = await execute(msgspec.structs.replace(request, approval=answer), polling)
            return [asked, handed_out, again]
        finally:
            await runtime.close()

    assert [one.status for one in asyncio.run(run())] == ["success", "inputRequired", "success"]


@pytest.mark.parametrize("by", SETS)
def test_rates_count_a_minute_whatever_the_clock_says(wall: Wall, by: float) -> None:  # D84
    rate = CallRate(1)
    assert rate.take() is None
    wall.ahead += by
    full = rate.take()
    assert full is not None
    assert 0 < full.wait_s <= WINDOW_S
    wall.later += WINDOW_S + 1
    assert rate.take() is None


def test_counts_of_use_from_the_future_are_forgotten_too(root: Path, wall: Wall) -> None:  # D87
    def used() -> list[str]:
        runtime = Runtime(root)
        runtime.parts.stays = True

        async def run() -> list[str]:
            try:
                name = "late" if wall.ahead else "count"
                await execute(CallRequest(call_id="c", name=name, wait=True), runtime.call_context())
                return [one.tool_id for one in await runtime.parts.usage.all()]
            finally:
                await runtime.close()

        return asyncio.run(run())

    wall.ahead = 40_000 * DAY
    assert used() == ["late"]
    wall.ahead = 0
    assert used() == ["count", "late"]
    wall.later = 1_000 * DAY
    assert used() == ["count"]


# Files


def test_a_definition_from_the_future_is_read_once(root: Path, wall: Wall) -> None:
    settings = Settings(tools=("count",))
    ahead = time.time() + 4_000 * DAY
    for path in (root / "count", *(root / "count").iterdir(), root):
        os.utime(path, (ahead, ahead))
    seen = look(root, settings)
    assert not differs(seen)
    definition = root / "count" / "x.tool.json"
    definition.write_text(definition.read_text() + " ")
    assert differs(seen)
