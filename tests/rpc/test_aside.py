"""Work in a thread of its own: what it gives or raises, and that nothing holds up the loop meanwhile (R4)."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest

from tamis.server.rpc.aside import aside


def test_the_collector_waits_for_the_last_of_several_works() -> None:
    # a collection of all that a daemon with 10,000 tools holds stopped every thread for a tenth of a second
    gates = [threading.Event() for _ in range(2)]
    seen: list[bool] = []

    def work(number: int) -> int:
        gates[number].wait()
        seen.append(gc.isenabled())
        return number

    async def run() -> None:
        works = [asyncio.ensure_future(aside(lambda number=number: work(number))) for number in range(2)]
        for number in range(2):
            gates[number].set()
            assert await works[number] == number

    assert gc.isenabled()
    asyncio.run(run())
    assert seen == [False, False]
    assert gc.isenabled()


def test_the_collector_goes_on_after_a_work_that_failed() -> None:
    def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        asyncio.run(aside(fail))
    assert gc.isenabled()


def test_a_collector_that_somebody_switched_off_stays_off() -> None:
    gc.disable()
    try:
        asyncio.run(aside(lambda: None))
        assert not gc.isenabled()
    finally:
        gc.enable()
