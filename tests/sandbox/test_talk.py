"""Talking to a sandboxed program while it runs: every line arrives once and in order, each side is bounded, nothing is left."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tamis.sandbox import runner
from tamis.sandbox.model import Limits, RunOutcome
from tamis.sandbox.talk import Talk, TalkEnded
from tests.sandbox import support

ECHO = "import sys\nfor line in sys.stdin:\n    print('said ' + line.rstrip('\\n'), flush=True)\n"


def talked(
    tmp_path: Path,
    source: str,
    work: Callable[[Talk], Awaitable[object]],
    *,
    talk: Talk | None = None,
    wall_ms: int = 300_000,
) -> tuple[RunOutcome, object]:
    folder = support.tool_folder(tmp_path, source)
    wanted = support.request(folder, limits=Limits(wall_ms=wall_ms))

    async def both() -> tuple[RunOutcome, object]:
        conversation = talk or Talk()
        running = asyncio.ensure_future(runner.run(wanted, talk=conversation))
        found = await work(conversation)
        return await running, found

    return asyncio.run(both())


def test_lines_go_both_ways_until_the_input_is_closed(tmp_path: Path) -> None:
    async def work(talk: Talk) -> list[bytes | None]:
        found: list[bytes | None] = []
        for number in range(50):
            await talk.write(f"{number} 工具".encode())
            found.append(await talk.read())
        talk.close()
        found.append(await talk.read())
        return found

    outcome, found = talked(tmp_path, ECHO, work)
    assert (outcome.kind, outcome.exit_code, outcome.stdout) == ("ok", 0, b"")
    assert found == [*(f"said {number} 工具".encode() for number in range(50)), None]


def test_a_program_that_prints_faster_than_is_read_waits_and_loses_nothing(tmp_path: Path) -> None:
    source = "for number in range(20_000): print(number, 'x' * 50)\n"

    async def work(talk: Talk) -> int:
        await asyncio.sleep(0.5)
        assert talk._waiting < 400_000  # pyright: ignore[reportPrivateUsage]
        count = 0
        while (line := await talk.read()) is not None:
            assert line == b"%d %s" % (count, b"x" * 50)
            count += 1
        return count

    outcome, count = talked(tmp_path, source, work, talk=Talk(max_waiting_bytes=100_000))
    assert (outcome.kind, count) == ("ok", 20_000)


def test_a_program_that_does_not_read_holds_the_writer_back(tmp_path: Path) -> None:
    source = "import sys, time\nprint('up', flush=True)\ntime.sleep(1.0)\nprint(len(sys.stdin.read()), flush=True)\n"

    async def work(talk: Talk) -> bytes | None:
        assert await talk.read() == b"up"
        for _ in range(40):
            await talk.write(b"y" * 9_999)
        talk.close()
        return await talk.read()

    outcome, told = talked(tmp_path, source, work, talk=Talk(max_waiting_bytes=50_000))
    assert (outcome.kind, told) == ("ok", b"400000")


def test_a_line_without_an_end_is_the_limit(tmp_path: Path) -> None:
    source = "import sys\nwhile True: sys.stdout.write('x' * 10_000)\n"

    async def work(talk: Talk) -> bytes | None:
        return await talk.read()

    outcome, line = talked(tmp_path, source, work, talk=Talk(max_line_bytes=100_000))
    assert (outcome.kind, outcome.limit, line) == ("limit", "stdout", None)


def test_a_last_line_without_a_line_feed_counts(tmp_path: Path) -> None:
    async def work(talk: Talk) -> list[bytes | None]:
        return [await talk.read(), await talk.read(), await talk.read()]

    outcome, found = talked(tmp_path, "import sys; sys.stdout.write('one\\r\\ntwo')\n", work)
    assert (outcome.kind, found) == ("ok", [b"one", b"two", None])


def test_writing_to_a_program_that_is_gone_is_said(tmp_path: Path) -> None:
    async def work(talk: Talk) -> None:
        assert await talk.read() is None
        with pytest.raises(TalkEnded):
            await talk.write(b"anyone?")

    outcome, _ = talked(tmp_path, "raise SystemExit(3)\n", work)
    assert outcome.exit_code == 3


def test_a_run_that_is_refused_ends_its_conversation(tmp_path: Path) -> None:
    folder = support.tool_folder(tmp_path, ECHO)

    async def both() -> tuple[RunOutcome, bytes | None]:
        talk = Talk()
        running = asyncio.ensure_future(runner.run(support.request(folder, "../out.py"), talk=talk))
        with pytest.raises(TalkEnded):
            await talk.write(b"x")
        return await running, await talk.read()

    outcome, line = asyncio.run(both())
    assert (outcome.kind, line) == ("refused", None)


def test_a_cancel_ends_the_program_and_the_conversation(tmp_path: Path) -> None:
    folder = support.tool_folder(tmp_path, "import time\nprint('up', flush=True)\ntime.sleep(3600)\n")

    async def both() -> tuple[RunOutcome, bytes | None]:
        talk, stop = Talk(), asyncio.Event()
        running = asyncio.ensure_future(runner.run(support.request(folder), talk=talk, cancelled=stop))
        assert await talk.read() == b"up"
        stop.set()
        return await running, await talk.read()

    outcome, line = asyncio.run(both())
    assert (outcome.kind, line) == ("cancelled", None)


def test_conversations_take_no_turns_of_runs_that_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that stays up must not keep scripts from running."""
    monkeypatch.setattr("tamis.sandbox.engine.at_once", lambda: 1)
    folder = support.tool_folder(tmp_path, ECHO)
    quick = support.tool_folder(tmp_path / "quick", "print(1)\n")

    async def both() -> tuple[RunOutcome, RunOutcome]:
        talk = Talk()
        running = asyncio.ensure_future(runner.run(support.request(folder), talk=talk))
        await talk.write(b"hello")
        assert await talk.read() == b"said hello"
        other = await runner.run(support.request(quick))
        talk.close()
        return other, await running

    other, talked_to = asyncio.run(both())
    assert (other.kind, other.stdout, talked_to.kind) == ("ok", b"1\n", "ok")
