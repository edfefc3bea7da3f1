"""``in_time``: the end of a runner's work by the clock and by a cancel (V52, D64), and what watches an event for it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tamis.server.runtime.calls.model import Stopped
from tamis.server.runtime.calls.runner import Invocation
from tamis.server.runtime.calls.running_calls import in_time, own_cancel, told_when_set

LONG_MS = 60_000


def call(timeout_ms: int = LONG_MS, cancelled: asyncio.Event | None = None) -> Invocation:
    """What ``in_time`` looks at of a call."""
    return cast("Invocation", SimpleNamespace(timeout_ms=timeout_ms, context=SimpleNamespace(cancelled=cancelled)))


async def at_once(value: Any) -> Any:
    return value


async def turns(number: int, value: Any = None) -> Any:
    for _ in range(number):
        await asyncio.sleep(0)
    return value


async def never(ended: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        ended.append("begun to end")
        await turns(3)
        ended.append("ended")


def test_work_gives_what_it_gives_whether_it_waits_or_not() -> None:
    async def run() -> None:
        future = asyncio.get_running_loop().create_future()
        future.set_result("future")
        assert await in_time(call(), at_once("at once")) == "at once"
        assert await in_time(call(cancelled=asyncio.Event()), turns(3, "later")) == "later"
        assert await in_time(call(), future) == "future"
        assert await in_time(call(), asyncio.create_task(turns(2, "task"))) == "task"

    asyncio.run(run())


@pytest.mark.parametrize("waits", [0, 2])
def test_what_work_raises_comes_out(waits: int) -> None:
    async def fails() -> None:
        await turns(waits)
        raise KeyError("its own")

    with pytest.raises(KeyError, match="its own"):
        asyncio.run(in_time(call(cancelled=asyncio.Event()), fails()))


def stopped(ends: Callable[[list[str], asyncio.Event], Awaitable[Any]], *, after: int, ms: int = LONG_MS) -> Stopped:
    """How a call ends whose cancel comes after so many turns of the loop."""

    async def run() -> Stopped:
        ended: list[str] = []
        cancelled = asyncio.Event()
        task = asyncio.create_task(in_time_of(ended, cancelled))
        await turns(after)
        if ms == LONG_MS:
            cancelled.set()
        found = await task
        assert ended == ["begun to end", "ended"]
        return found

    async def in_time_of(ended: list[str], cancelled: asyncio.Event) -> Stopped:
        with pytest.raises(Stopped) as found:
            await in_time(call(ms, cancelled), ends(ended, cancelled))
        # the task goes on as if it had never been cancelled
        current = asyncio.current_task()
        assert current is not None
        assert current.cancelling() == 0
        await turns(3)
        return found.value

    return asyncio.run(run())


async def answers(ended: list[str], _: asyncio.Event) -> str:
    with contextlib.suppress(asyncio.CancelledError):
        await never(ended)
    return "too late"


async def fails(ended: list[str], _: asyncio.Event) -> None:
    try:
        await never(ended)
    except asyncio.CancelledError:
        raise ValueError("while it ended") from None


async def ends_as_asked(ended: list[str], _: asyncio.Event) -> None:
    await never(ended)


@pytest.mark.parametrize("work", [ends_as_asked, answers, fails])
@pytest.mark.parametrize("after", [0, 1, 5])
def test_a_cancel_ends_the_work_first(work: Callable[..., Awaitable[Any]], after: int) -> None:  # V52
    found = stopped(work, after=after)
    assert (found.status, found.error, found.started) == ("cancelled", None, True)


@pytest.mark.parametrize("work", [ends_as_asked, answers, fails])
def test_the_clock_ends_the_work_first(work: Callable[..., Awaitable[Any]]) -> None:  # F14
    found = stopped(work, after=0, ms=20)
    assert found.status == "timeout"
    assert found.error is not None
    assert (found.error.type, found.error.message) == ("TimeoutError", "no result after 20 ms")


def test_a_cancel_of_the_whole_task_goes_through() -> None:
    async def run() -> list[str]:
        ended: list[str] = []
        task = asyncio.create_task(in_time(call(), never(ended)))
        await turns(2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return ended

    assert asyncio.run(run()) == ["begun to end", "ended"]


def test_work_within_work_ends_by_the_outer_clock() -> None:
    async def run() -> Stopped:
        with pytest.raises(Stopped) as found:
            await in_time(call(20), in_time(call(), never([])))
        return found.value

    found = asyncio.run(run())
    assert found.error is not None
    assert found.error.message == "no result after 20 ms"


def test_a_cancel_that_comes_with_the_end_of_the_work_harms_nothing_after_it() -> None:
    async def run() -> str:
        cancelled, gate = asyncio.Event(), asyncio.Event()

        async def work() -> str:
            await gate.wait()
            return "done"

        async def whole() -> str:
            result = await in_time(call(cancelled=cancelled), work())
            await turns(5)
            return result

        task = asyncio.create_task(whole())
        await turns(2)
        gate.set()
        cancelled.set()
        return await task

    assert asyncio.run(run()) == "done"


def test_who_watches_an_event_is_told_once_and_leaves_nothing_behind() -> None:
    async def run() -> None:
        event, told = asyncio.Event(), list[str]()
        with told_when_set(event, lambda: told.append("early")):
            assert len(event._waiters) == 1  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]
        assert not event._waiters  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        with told_when_set(event, lambda: told.append("set")):
            event.set()
            await turns(3)
        with told_when_set(event, lambda: told.append("was set")):
            await turns(3)
        with told_when_set(event, lambda: told.append("over")):
            pass
        with told_when_set(None, lambda: told.append("none")):
            await turns(3)
        assert told == ["set", "was set"]

    asyncio.run(run())


def test_one_call_of_several_is_cancelled_with_all_and_alone() -> None:  # V52
    async def run() -> None:
        parent = asyncio.Event()
        with own_cancel(parent) as own, own_cancel(parent) as other:
            own.set()
            await turns(2)
            assert not other.is_set()
            assert not parent.is_set()
            parent.set()
            await turns(2)
            assert other.is_set()
        with own_cancel(parent) as late:
            assert late.is_set()

    asyncio.run(run())
