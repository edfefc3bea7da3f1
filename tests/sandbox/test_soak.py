"""Thousands of calls in a row with every outcome: descriptors, processes, groups, files and memory stay where they were."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import os
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from tamis.sandbox import runner
from tamis.sandbox.model import Limits, Mount, RunRequest
from tamis.sandbox.paths import idmapped
from tests.sandbox import support

# (name, script, what differs, the kinds that it may end as)
SCRIPTS: tuple[tuple[str, str, dict[str, object], set[str]], ...] = (
    ("ok", "import sys; print(len(sys.stdin.read()))", {"stdin": b"x" * 50_000}, {"ok"}),
    ("ok-again", "print(1)", {}, {"ok"}),
    ("error", "raise SystemExit(3)", {}, {"error"}),
    ("signal", "import os; os.kill(os.getpid(), 9)", {}, {"error"}),
    ("timeout", "import time; time.sleep(3600)", {"limits": Limits(wall_ms=60)}, {"timeout"}),
    ("over-output", "import os\nwhile True: os.write(1, b'x' * 65536)", {}, {"limit"}),
    (
        "over-files",
        "x=[open('/dev/null') for _ in range(500)]",
        {"limits": Limits(wall_ms=300_000, open_files=64)},
        {"limit"},
    ),
    ("daemons", "import os,time\nfor _ in range(3):\n  if os.fork()==0: os.setsid(); time.sleep(3600)", {}, {"ok"}),
    ("refused", "", {"script": "../x.py"}, {"refused"}),
    ("missing", "", {"script": "none.py"}, {"refused"}),
    ("writes", "import sys; open(sys.argv[1] + '/x', 'a').write('x')", {"write": ()}, {"ok"}),
    ("cancelled", "import time; time.sleep(3600)", {}, {"cancelled"}),
)


def _requests(root: Path) -> dict[str, RunRequest]:
    data = root / "data"
    data.mkdir()
    real = os.path.realpath(data)
    found: dict[str, RunRequest] = {}
    for name, source, more, _ in SCRIPTS:
        wanted = support.request(support.tool_folder(root / name, source))
        found[name] = msgspec.structs.replace(wanted, **more)
    found["writes"] = msgspec.structs.replace(found["writes"], write=(Mount(real),), args=(real,))
    return found


async def _call(name: str, wanted: RunRequest, moments: random.Random) -> str:
    if name != "cancelled":
        return (await runner.run(wanted)).kind
    if moments.random() < 0.5:
        told = asyncio.Event()
        asyncio.get_running_loop().call_later(moments.random() * 0.05, told.set)
        return (await runner.run(wanted, cancelled=told)).kind
    task = asyncio.create_task(runner.run(wanted))
    await asyncio.sleep(moments.random() * 0.05)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        return (await task).kind
    return "cancelled"


def _held() -> dict[str, object]:
    """All that a leak would show in, but for memory."""
    support.reap_orphans()
    idmapped.forget()  # what is kept for further runs is bounded, and no leak
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "processes": support.children(),
        "threads": len(os.listdir("/proc/self/task")),
        "groups": support.own_groups(),
        "files": sorted(os.listdir(tempfile.gettempdir())),
        "tasks": len(asyncio.all_tasks()),
    }


def test_thousands_of_calls_leave_everything_flat(
    tmp_path: Path, is_long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    calls, rounds = (2000, 10) if is_long else (96, 2)
    moments = random.Random(2000)
    wanted = _requests(tmp_path)
    kinds = {name: allowed for name, _, _, allowed in SCRIPTS}
    names = [name for name, *_ in SCRIPTS]
    seen: Counter[str] = Counter()

    async def some(count: int) -> None:
        chosen = [moments.choice(names) for _ in range(count)]
        for start in range(0, count, 5):
            batch = chosen[start : start + 5]
            ended = await asyncio.gather(*(_call(name, wanted[name], moments) for name in batch))
            for name, kind in zip(batch, ended, strict=True):
                assert kind in kinds[name], (name, kind)
                seen[name] += 1
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)

    async def main() -> list[int]:
        # the loop's threads come one by one, when all there are work at once: all of them are made before the count
        await asyncio.gather(*(asyncio.to_thread(time.sleep, 0.05) for _ in range(100)))
        await some(30)  # what is made once is made
        held, memory = _held(), [support.resident_bytes()]
        for _ in range(rounds):
            await some(calls // rounds)
            while (left := _held()) != held:  # what a killed run held goes when the kernel has come to it
                print(left)
                await asyncio.sleep(0.1)
            memory.append(support.resident_bytes())
        return memory

    memory = asyncio.run(main())
    assert set(seen) == set(names)
    # one outcome of a flood holds 1 MB: a few dozen of them kept would show; what the allocator keeps was given back
    assert memory[-1] - memory[1] < 10_000_000, memory
    assert sorted(os.listdir(tmp_path / "data")) == ["x"]
