"""Things that happen at the wrong moment: cancelling at any point, a tool folder that changes, many runs at once."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tamis.sandbox import runner
from tamis.sandbox.model import Limits, Mount, RunOutcome, RunRequest
from tamis.sandbox.paths import idmapped
from tests.sandbox import support
from tests.waiting import arrives

MINE = "print('mine')"
STRANGE = "print('strange')"


async def _end() -> None:
    """Waits until no process is left; what was killed a moment ago may still be going."""
    while support.children():
        await asyncio.sleep(0.02)
        support.reap_orphans()


def test_cancelled_at_any_moment_leaves_nothing(tmp_path: Path, is_long: bool) -> None:
    # the moments are spread over the set-up, where a killed bubblewrap would leave a child that waits for ever
    moments = random.Random(4)
    data = tmp_path / "data"
    data.mkdir()
    wanted = support.request(
        support.tool_folder(tmp_path, "import time; time.sleep(3600)"), write=(Mount(os.path.realpath(data)),)
    )

    async def main() -> None:
        await runner.run(support.request(support.tool_folder(tmp_path / "first", "pass")))
        before = support.descriptors()
        for _ in range(1500 if is_long else 60):
            task = asyncio.create_task(runner.run(wanted))
            await asyncio.sleep(moments.random() * 0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        idmapped.forget()  # what is kept for the next run is no leak
        await _end()
        await arrives(lambda: support.descriptors() <= before)  # fewer, where something of another test was collected

    asyncio.run(main())
    assert data.stat().st_uid == os.geteuid()


def test_cancelled_at_every_step_of_the_loop_leaves_nothing(tmp_path: Path, is_long: bool) -> None:
    # the task is cancelled after it was resumed n times, for every n that a run has
    wanted = support.request(support.tool_folder(tmp_path, "print(1)"))

    async def cancelled_after(steps: int) -> bool:
        task = asyncio.create_task(runner.run(wanted))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return True
        return False

    async def main() -> None:
        await runner.run(wanted)
        before = support.descriptors()
        for steps in (*range(0, 40, 1 if is_long else 4), *range(40, 4000, 40 if is_long else 400)):
            if not await cancelled_after(steps):
                break
        await _end()
        await arrives(lambda: support.descriptors() <= before)  # fewer, where something of another test was collected

    asyncio.run(main())


def test_cancelled_twice_and_while_ending_leaves_nothing(tmp_path: Path) -> None:
    wanted = support.request(support.tool_folder(tmp_path, "import time; time.sleep(3600)"))

    async def main() -> None:
        for wait in (0.0, 0.002, 0.01, 0.05):
            task = asyncio.create_task(runner.run(wanted))
            await asyncio.sleep(wait)
            for _ in range(20):
                task.cancel()
                await asyncio.sleep(0)
            with pytest.raises(asyncio.CancelledError):
                await task
        await _end()

    asyncio.run(main())


SOURCES: dict[str, tuple[str, Callable[[int, RunOutcome], bool]]] = {
    "echo": (
        "import sys; d=sys.stdin.read(); print(d*100, end='')",
        lambda index, outcome: outcome.kind == "ok" and outcome.stdout == f"run {index}".encode() * 100,
    ),
    "fails": (
        "import sys; sys.exit('words of ' + sys.stdin.read())",
        lambda index, outcome: outcome.kind == "error" and outcome.stderr == f"words of run {index}\n".encode(),
    ),
    "hangs": (
        "import sys,time; print(sys.stdin.read(), flush=True); time.sleep(3600)",
        lambda index, outcome: outcome.kind == "timeout" and outcome.stdout == f"run {index}\n".encode(),
    ),
    "floods": (
        "import os,sys; d=sys.stdin.buffer.read()\nwhile True: os.write(1, d * 4000)",
        lambda index, outcome: (
            outcome.limit == "stdout" and outcome.stdout.startswith(f"run {index}run {index}".encode())
        ),
    ),
    "leaves": (
        "import os,sys,time\nif os.fork()==0:\n  os.setsid(); time.sleep(3600)\nprint(sys.stdin.read())",
        lambda index, outcome: outcome.kind == "ok" and outcome.stdout == f"run {index}\n".encode(),
    ),
}


def test_twenty_runs_at_once_do_not_mix(tmp_path: Path) -> None:
    names = list(itertools.islice(itertools.cycle(SOURCES), 20))
    heard: dict[int, bytearray] = {index: bytearray() for index in range(20)}

    async def one(index: int, name: str) -> RunOutcome:
        wanted = support.request(
            support.tool_folder(tmp_path / name, SOURCES[name][0]),
            stdin=f"run {index}".encode(),
            limits=Limits(wall_ms=2500 if name == "hangs" else 300_000),
        )
        return await runner.run(wanted, on_output=lambda _, piece: heard[index].extend(piece))

    async def main() -> list[RunOutcome]:
        return await asyncio.gather(*(one(index, name) for index, name in enumerate(names)))

    for index, (name, outcome) in enumerate(zip(names, asyncio.run(main()), strict=True)):
        assert SOURCES[name][1](index, outcome), (name, outcome)
        assert bytes(heard[index]) in (outcome.stdout + outcome.stderr, outcome.stderr + outcome.stdout)
    assert support.children() == []


# A tool folder that changes between check and use: what runs is what was there, or nothing


def _flip(work: Callable[[], None], stop: threading.Event) -> threading.Thread:
    def flip() -> None:
        while not stop.is_set():
            work()

    thread = threading.Thread(target=flip, daemon=True)
    thread.start()
    return thread


def _while_it_changes(wanted: RunRequest, change: Callable[[], None], rounds: int) -> list[RunOutcome]:
    async def main() -> list[RunOutcome]:
        outcomes: list[RunOutcome] = []
        for _ in range(rounds):
            outcomes.extend(await asyncio.gather(*(runner.run(wanted) for _ in range(3))))
        return outcomes

    stop = threading.Event()
    flipping = _flip(change, stop)
    try:
        return asyncio.run(main())
    finally:
        stop.set()
        flipping.join()


def _replace(path: Path, make: Callable[[Path], object]) -> None:
    spare = path.with_name(path.name + ".new")
    make(spare)
    os.rename(spare, path)


def _turns(*makes: Callable[[Path], object]) -> Iterator[Callable[[Path], object]]:
    return itertools.cycle(makes)


def _expected(outcomes: list[RunOutcome], *allowed: bytes) -> None:
    for outcome in outcomes:
        missing = b"can't open file" in outcome.stderr or b"can't find" in outcome.stderr or b"[Errno" in outcome.stderr
        fine = outcome.stdout in allowed and outcome.kind == "ok"
        assert fine or outcome.kind in ("refused", "unavailable") or (outcome.kind == "error" and missing), outcome
        assert b"strange" not in outcome.stdout or b"strange\n" in allowed, outcome


def test_script_swapped_for_a_link(tmp_path: Path, is_long: bool) -> None:
    folder = Path(support.tool_folder(tmp_path, MINE))
    (tmp_path / "strange.py").write_text(STRANGE)
    turns = _turns(lambda new: new.symlink_to(tmp_path / "strange.py"), lambda new: new.write_text(MINE))
    _expected(
        _while_it_changes(
            support.request(str(folder)), lambda: _replace(folder / "tool.py", next(turns)), 60 if is_long else 6
        ),
        b"mine\n",
    )


def test_script_swapped_for_a_fifo_does_not_block(tmp_path: Path, is_long: bool) -> None:
    folder = Path(support.tool_folder(tmp_path, MINE))
    turns = _turns(os.mkfifo, lambda new: new.write_text(MINE))
    wanted = support.request(str(folder), limits=Limits(wall_ms=1500))
    outcomes = _while_it_changes(wanted, lambda: _replace(folder / "tool.py", next(turns)), 20 if is_long else 4)
    # one that was swapped after the look blocks inside, where the wall clock ends it
    _expected([outcome for outcome in outcomes if outcome.kind != "timeout"], b"mine\n")


def test_folder_swapped_by_renaming(tmp_path: Path, is_long: bool) -> None:
    folder = Path(support.tool_folder(tmp_path, MINE))
    other = Path(support.tool_folder(tmp_path / "other", STRANGE))
    spare = tmp_path / "spare"

    def swap() -> None:
        for source, target in ((folder, spare), (other, folder), (folder, other), (spare, folder)):
            os.rename(source, target)

    # both are folders that stood at this path: either is what was there, and never a mixture
    outcomes = _while_it_changes(support.request(str(folder)), swap, 40 if is_long else 6)
    _expected(outcomes, b"mine\n", b"strange\n")


def test_folder_swapped_for_a_link_to_the_host(tmp_path: Path, is_long: bool) -> None:
    folder = Path(support.tool_folder(tmp_path, MINE))
    secret = Path(support.tool_folder(tmp_path / "secret", STRANGE))
    spare, link = tmp_path / "spare", tmp_path / "link"
    link.symlink_to(secret)

    def swap() -> None:
        for source, target in ((folder, spare), (link, folder), (folder, link), (spare, folder)):
            os.rename(source, target)

    _expected(_while_it_changes(support.request(str(folder)), swap, 40 if is_long else 6), b"mine\n")


def test_grants_parent_swapped_for_a_link(tmp_path: Path, is_long: bool) -> None:
    # S1, S2: the grant's own folder is opened once, and that is what is shown
    parent = tmp_path / "parent"
    (parent / "data").mkdir(parents=True)
    (parent / "data" / "name").write_text("granted")
    (tmp_path / "secret" / "data").mkdir(parents=True)
    (tmp_path / "secret" / "data" / "name").write_text("strange")
    spare, link = tmp_path / "spare", tmp_path / "link"
    link.symlink_to(tmp_path / "secret")
    place = os.path.realpath(parent) + "/data"
    source = f"import os; print(open('{place}/name').read()); open('{place}/made','w')"
    wanted = support.request(support.tool_folder(tmp_path, source), write=(Mount(place),))

    def swap() -> None:
        for old, new in ((parent, spare), (link, parent), (parent, link), (spare, parent)):
            os.rename(old, new)

    _expected(_while_it_changes(wanted, swap, 40 if is_long else 5), b"granted\n")
    assert os.listdir(tmp_path / "secret" / "data") == ["name"]
    assert (tmp_path / "secret" / "data" / "name").stat().st_uid == os.geteuid()


def test_mount_point_swapped_for_a_link_makes_nothing_on_the_host(tmp_path: Path, is_long: bool) -> None:
    # CVE-2026-87766 with a race: the mount point in the tool's folder becomes a link after it was walked
    folder = Path(support.tool_folder(tmp_path, MINE))
    victim = tmp_path / "victim"
    victim.mkdir()
    cache = folder / "cache"
    cache.mkdir()
    link = folder / "link"
    link.symlink_to(f"/oldroot{os.path.realpath(victim)}/made")

    def swap() -> None:
        for old, new in ((cache, folder / "spare"), (link, cache), (cache, link), (folder / "spare", cache)):
            os.rename(old, new)

    data = tmp_path / "data"
    data.mkdir()
    wanted = support.request(str(folder), read=(Mount(os.path.realpath(data), "/tool/cache"),))
    outcomes = _while_it_changes(wanted, swap, 40 if is_long else 6)
    assert {outcome.kind for outcome in outcomes} <= {"ok", "refused", "unavailable"}, outcomes
    assert os.listdir(victim) == []


def test_two_runs_write_in_one_folder_and_fight_over_it(tmp_path: Path, is_long: bool) -> None:
    # what one run looks through afterwards, another may be changing: folders become FIFOs and links under its eyes
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "x").write_text("untouched")
    place = os.path.realpath(data)
    source = f"""
import os, time
os.chdir({place!r})
end = time.monotonic() + 0.4
while time.monotonic() < end:
    for make in (os.mkdir, os.mkfifo, lambda n: os.symlink({os.path.realpath(tmp_path / "victim")!r}, n)):
        try: make('x')
        except OSError: pass
        try: os.rename('x', 'y')
        except OSError: pass
        for gone in (os.unlink, os.rmdir):
            try: gone('y')
            except OSError: pass
"""
    wanted = support.request(support.tool_folder(tmp_path, source), write=(Mount(place),))

    async def main() -> list[RunOutcome]:
        outcomes: list[RunOutcome] = []
        for _ in range(10 if is_long else 2):
            outcomes.extend(await asyncio.gather(*(runner.run(wanted) for _ in range(6))))
        return outcomes

    assert {outcome.kind for outcome in asyncio.run(main())} == {"ok"}
    assert (tmp_path / "victim" / "x").read_text() == "untouched"
    assert (tmp_path / "victim" / "x").stat().st_uid == os.geteuid()
