"""Running many at once, each to its verified end."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tamis.sandbox import engine, runner
from tamis.sandbox.limits import watchdog
from tests.sandbox import support


def test_only_so_many_run_at_once_and_all_get_their_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MOST", 3)
    folder = support.tool_folder(tmp_path, "import sys; print(sys.stdin.read())")
    now, most = 0, 0
    stand_up, discard = engine.stand_up, engine.Standing.discard

    async def counted(*args: object, **more: object) -> engine.Standing:
        nonlocal now, most
        now += 1
        most = max(most, now)
        return await stand_up(*args, **more)  # type: ignore[arg-type] # what execute gave

    async def uncounted(standing: engine.Standing) -> None:
        nonlocal now
        await discard(standing)
        now -= 1

    monkeypatch.setattr(engine, "stand_up", counted)
    monkeypatch.setattr(engine.Standing, "discard", uncounted)

    async def one(number: int) -> None:
        outcome = await runner.run(support.request(folder, stdin=b"%d" % number))
        assert outcome.stdout == b"%d\n" % number

    async def work() -> None:
        await asyncio.gather(*(one(number) for number in range(16)))

    asyncio.run(work())
    assert most == 3


def test_turns_come_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MOST", 2)
    order: list[int] = []

    async def one(number: int) -> None:
        async with engine.turn(asyncio.Event()) as came:
            assert came
            order.append(number)
            await asyncio.sleep(0.001)

    async def work() -> None:
        await asyncio.gather(*(one(number) for number in range(20)))

    asyncio.run(work())
    assert order == list(range(20))


def test_cancelled_while_waiting_ends_at_once_and_gives_the_turn_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "MOST", 1)
    folder = support.tool_folder(tmp_path, "import time; print('x', flush=True); time.sleep(3600)")
    quick = support.tool_folder(tmp_path / "quick", "print('y')")

    async def work() -> None:
        up, stop, other = asyncio.Event(), asyncio.Event(), asyncio.Event()
        holder = asyncio.create_task(runner.run(support.request(folder), on_output=lambda *_: up.set(), cancelled=stop))
        await up.wait()
        waiting = asyncio.create_task(runner.run(support.request(quick), cancelled=other))
        dropped = asyncio.create_task(runner.run(support.request(quick)))
        last = asyncio.create_task(runner.run(support.request(quick)))
        await asyncio.sleep(0.05)
        other.set()
        outcome = await waiting
        assert (outcome.kind, outcome.stdout) == ("cancelled", b"")
        dropped.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dropped
        assert not holder.done()
        stop.set()
        assert (await holder).kind == "cancelled"
        assert (await last).stdout == b"y\n"

    asyncio.run(work())


def test_at_once_fits_into_the_descriptors() -> None:
    assert 1 <= engine.at_once() <= engine.MOST


def test_cancelled_while_the_end_is_verified_still_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = support.request(support.tool_folder(tmp_path, "print(1)"))
    reap = engine.Standing._reap  # pyright: ignore[reportPrivateUsage]
    inside = asyncio.Event()
    again = False

    async def slow(standing: engine.Standing) -> None:
        nonlocal again
        if not again:
            again = True
            inside.set()
            await asyncio.sleep(0.2)
        await reap(standing)

    monkeypatch.setattr(engine.Standing, "_reap", slow)

    async def work() -> None:
        task = asyncio.create_task(runner.run(wanted))
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        left = [pid for pid in watchdog.tree(os.getpid())[1:] if b"/tool/" in _cmdline(pid)]
        assert left == []

    asyncio.run(work())


def _cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
