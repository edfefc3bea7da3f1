"""The daemon is killed at any point: while it launches, at the gate, while scripts run, while it cleans up. Nothing stays."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.sandbox import support

DAEMON = """
import asyncio, os, sys
sys.path.insert(0, sys.argv[1])
from tamis.sandbox import probe, runner
from tamis.sandbox.model import Limits, Mount
from tamis.sandbox.warm.pool import Pool, PoolSettings
from tests.sandbox import support
folder, script, data = sys.argv[2:]
limits = Limits(wall_ms=int(os.environ["CHAOS_WALL"]))
warm = os.environ["CHAOS_WARM"] == "1"
# a call with a grant of its own is never run warm
wanted = support.request(folder, script, limits=limits, args=(data,), write=() if warm else (Mount(data),))
async def one():
    while True:
        await runner.run(wanted)
async def main():
    await runner.run(support.request(folder, "first.py"))
    print("start", flush=True)
    if warm:
        pool = Pool(PoolSettings(eager=True))
        while True:
            await asyncio.gather(*(pool.run(wanted) for _ in range(2)))
            await asyncio.sleep(0.01)
    await asyncio.gather(*(one() for _ in range(3)))
asyncio.run(main())
"""

# name, script, time limit in ms: short runs are killed in launch and reap, long ones while they run
SCRIPTS = {
    "quick": ("pass", 10_000),
    "warm": ("pass", 10_000),
    "hangs": (
        "import os, time\nfor _ in range(3):\n    if os.fork() == 0:\n        os.setsid()\n        if os.fork(): os._exit(0)\n        time.sleep(86400)\ntime.sleep(86400)",
        600_000,
    ),
    "ends": ("import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(86400)\ntime.sleep(86400)", 30),
    "bombs": ("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", 600_000),
    "writes": (
        "import sys, os\nwhile True:\n    open(sys.argv[1] + '/x', 'w').write('x'); os.mkfifo(sys.argv[1] + '/f'); os.unlink(sys.argv[1] + '/f')",
        20,
    ),
}


def _left(mark: str, daemon: int) -> list[str]:
    lines = [f"process {pid}" for pid in support.marked(mark)]
    lines.extend(f"child {pid}" for pid in support.children())
    lines.extend(f"group {path}" for path in sorted(support.own_groups(daemon)))
    return lines


def _kill_once(root: Path, name: str, wait: float) -> tuple[bool, list[str]]:
    """Start a daemon, kill it after `wait` seconds of work: whether scripts ran just then, and the temporary files that are left of it."""
    source, wall = SCRIPTS[name]
    script = f"chaos_{os.getpid()}_{time.monotonic_ns()}.py"
    folder = support.tool_folder(root, source, script)
    support.tool_folder(root, "pass", "first.py")
    data, temporary = root / "data", root / "temporary"
    data.mkdir(exist_ok=True)
    temporary.mkdir(exist_ok=True)
    env = {**os.environ, "CHAOS_WALL": str(wall), "CHAOS_WARM": str(int(name == "warm")), "TMPDIR": str(temporary)}
    process = subprocess.Popen(
        [sys.executable, "-c", DAEMON, str(Path(__file__).parents[2]), folder, script, os.path.realpath(data)],
        stdout=subprocess.PIPE,
        cwd="/",
        env=env,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"start\n"
    time.sleep(wait)
    ran = any(pid != process.pid for pid in support.marked(f"/tool/{script}"))
    process.kill()
    process.wait()
    process.stdout.close()
    while _left(f"/tool/{script}", process.pid):
        time.sleep(0.02)
        support.reap_orphans()
    return ran, os.listdir(temporary)


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_killed_at_any_point_leaves_nothing(tmp_path: Path, name: str, is_long: bool) -> None:
    moments = random.Random(name)
    rounds = met = 0
    while rounds < (60 if is_long else 2) or not met:
        wait = moments.random() ** 2 * 0.25
        ran, left = _kill_once(tmp_path, name, wait)
        assert left == [], wait
        met += ran
        rounds += 1
