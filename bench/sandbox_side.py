"""What is measured of the sandbox: with the standard library and `tamis.sandbox` alone, so that any user can run it.

usage: python -m bench.sandbox_side PART EFFORT BUN    prints the part's results as JSON
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from bench.measure import EFFORT, Timed, in_turn, process
from tamis.sandbox import engine, probe, runner
from tamis.sandbox.interpreters import find_interpreter
from tamis.sandbox.model import Interpreter, Interpreters, Limits, RunRequest
from tamis.sandbox.warm.pool import Pool, PoolSettings

INPUT = b'{"text": "x", "numbers": [1, 2, 3]}'
SCRIPTS = {
    "python": ("tool.py", "import json, sys\nprint(json.dumps({'echo': json.load(sys.stdin)}))\n"),
    "nodejs": ("tool.js", "console.log(JSON.stringify({echo: JSON.parse(require('fs').readFileSync(0, 'utf8'))}));\n"),
    "bun": ("tool.ts", "console.log(JSON.stringify({echo: JSON.parse(require('fs').readFileSync(0, 'utf8'))}));\n"),
}
AT_ONCE = (1, 2, 4, 8, 64)
KILLED = {
    "sleeps": "import time; time.sleep(60)",
    "ignores SIGTERM and the like": (
        "import signal, time\nfor s in range(1, 32):\n  try: signal.signal(s, signal.SIG_IGN)\n  except OSError: pass\ntime.sleep(60)"
    ),
    "five daemons": (
        "import os, time\nfor _ in range(5):\n  if os.fork() == 0:\n    os.setsid()\n    if os.fork(): os._exit(0)\n    time.sleep(60)\ntime.sleep(60)"
    ),
    "fork bomb, 60 processes": "import os, time\nfor _ in range(59):\n  if os.fork() == 0: break\ntime.sleep(60)",
}


class _Folder:
    """A tool's folder that any user can read."""

    def __init__(self, language: str, source: str = "") -> None:
        name, text = SCRIPTS[language]
        self.path = os.path.realpath(tempfile.mkdtemp(prefix="tamis-bench-"))
        Path(self.path).chmod(0o755)
        self.script = f"{self.path}/{name}"
        Path(self.script).write_text(source or text)
        self.language: Any = language

    def request(self, bun: str = "", **more: Any) -> RunRequest:
        interpreters = Interpreters(bun=bun or None)
        name = os.path.basename(self.script)
        return RunRequest(
            folder=self.path, script=name, language=self.language, stdin=INPUT, interpreters=interpreters, **more
        )


def _plain(found: Interpreter, script: str) -> list[str]:
    words = {"python": ["-s", "-B"], "nodejs": [], "bun": ["run"]}[found.language]
    return [found.file or found.path, *words, script]


def _bare(found: Interpreter, folder: _Folder) -> list[str]:
    """Bubblewrap with what a script needs to run, and no more."""
    words = [probe.probe(backend="bubblewrap").path, "--unshare-all", "--ro-bind", "/usr", "/usr"]
    for name in ("bin", "lib", "lib64"):
        if os.path.islink(f"/{name}"):
            words += ["--symlink", f"usr/{name}", f"/{name}"]
        elif os.path.isdir(f"/{name}"):
            words += ["--ro-bind", f"/{name}", f"/{name}"]
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--ro-bind", folder.path, "/tool", "--clearenv"]
    for host, inside in found.binds:
        words += ["--ro-bind", host, inside]
    words += ["--"]
    plain = _plain(found, f"/tool/{os.path.basename(folder.script)}")
    return [*words, found.path, *plain[1:]]


async def _called(run: Callable[[RunRequest], Awaitable[Any]], request: RunRequest) -> Any:
    outcome = await run(request)
    assert outcome.kind == "ok", outcome
    return outcome


def calls(bun: str) -> dict[str, dict[str, list[float]]]:
    """Seconds of cold and warm calls and of what stands beside them, by language."""
    return {language: _calls(language, bun) for language in SCRIPTS if language != "bun" or bun}


def _calls(language: Any, bun: str) -> dict[str, list[float]]:
    folder = _Folder(language)
    request = folder.request(bun)
    found = find_interpreter(language, request.interpreters)
    assert isinstance(found, Interpreter), found
    loop = asyncio.new_event_loop()
    pool = Pool(PoolSettings(eager=True))

    def cold() -> None:
        loop.run_until_complete(_called(runner.run, request))

    async def ready() -> float:
        # a call that finds a sandbox waiting; its replacement is up before the next side has its turn
        started = time.perf_counter()
        outcome = await _called(pool.run, request)
        spent = time.perf_counter() - started
        assert outcome.sandbox.warm
        await pool.settle()
        await asyncio.sleep(0.02)
        return spent

    def warm(times: int) -> float:
        return sum(loop.run_until_complete(ready()) for _ in range(times))

    env = {"PATH": "/usr/bin:/bin", "HOME": "/tmp"}
    work = {
        "cold": cold,
        "plain subprocess": process(_plain(found, folder.script), data=INPUT, env=env),
        "bare bwrap": process(_bare(found, folder), data=INPUT, env=env),
    }
    others: dict[str, Timed] = {}
    if language != "bun":
        loop.run_until_complete(_called(pool.run, request))
        loop.run_until_complete(pool.settle())
        others["warm"] = warm
    samples = in_turn(work, others=others, rounds=31, at_least=0)
    loop.run_until_complete(pool.close())
    loop.close()
    return {name: list(sample.seconds) for name, sample in samples.items()}


def rate(bun: str) -> dict[str, dict[str, float]]:
    """Calls per second by how many are under way."""
    folder = _Folder("python")
    request = folder.request()
    words = _plain(Interpreter("python", "/usr/bin/python3"), folder.script)

    async def plain(_: RunRequest) -> None:
        child = await asyncio.create_subprocess_exec(*words, stdin=-1, stdout=-1, stderr=-1, env={"PATH": "/usr/bin"})
        await child.communicate(INPUT)

    async def at(count: int, once: Callable[[RunRequest], Awaitable[Any]]) -> float:
        total = EFFORT.size(max(60, 2 * count))
        left = iter(range(total))

        async def worker() -> None:
            for _ in left:
                await once(request)

        started = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(count)))
        return total / (time.perf_counter() - started)

    async def all_of() -> dict[str, dict[str, float]]:
        pool, waiting = Pool(PoolSettings(eager=True, templates=True)), Pool(PoolSettings(eager=True))
        kinds: dict[str, Callable[[RunRequest], Awaitable[Any]]] = {
            "plain subprocess": plain,
            "cold": lambda one: _called(runner.run, one),
            "through the pool": lambda one: _called(waiting.run, one),
            "through the pool, of a template": lambda one: _called(pool.run, one),
        }
        found: dict[str, dict[str, float]] = {kind: {} for kind in kinds}
        for count in AT_ONCE:
            for kind, once in kinds.items():
                found[kind][str(count)] = await at(count, once)
        await pool.close()
        await waiting.close()
        return found

    return asyncio.run(all_of())


def pace(bun: str) -> dict[str, dict[str, float]]:
    """Calls of one tool by one caller who waits for each answer: milliseconds of a call, calls a second, and the share of warm starts."""
    request = _Folder("python").request()

    async def calls(pause: float) -> dict[str, float]:
        pool = Pool()
        for _ in range(3):
            await _called(pool.run, request)
        await pool.settle()
        spent: list[float] = []
        warm, began = 0, time.perf_counter()
        due = began
        for _ in range(EFFORT.size(300)):
            due = max(due + pause, time.perf_counter() - 0.1)  # what is missed is not made up for
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            started = time.perf_counter()
            outcome = await _called(pool.run, request)
            spent.append((time.perf_counter() - started) * 1000)
            warm += outcome.sandbox.warm
        seconds = time.perf_counter() - began
        await pool.close()
        count = len(spent)
        return {
            "mean": sum(spent) / count,
            "median": sorted(spent)[count // 2],
            "rate": count / seconds,
            "warm": warm / count,
        }

    async def both() -> dict[str, dict[str, float]]:
        return {"one behind the other": await calls(0.0), "50 a second": await calls(0.02)}

    return asyncio.run(both())


def kill(bun: str) -> dict[str, list[float]]:
    """Seconds from the deadline until the run's answer, which comes when all of it is dead."""
    found: dict[str, list[float]] = {}
    noted: list[float] = []
    end = engine.Standing._end  # pyright: ignore[reportPrivateUsage]

    def noting(standing: engine.Standing, ending: Any) -> None:
        if ending == "wall":
            noted.append(time.perf_counter())
        end(standing, ending)

    engine.Standing._end = noting  # pyright: ignore[reportPrivateUsage]
    try:
        for name, source in KILLED.items():
            request = _Folder("python", source).request(limits=Limits(wall_ms=400))
            found[name] = []
            for _ in range(max(1, round(9 * EFFORT.rounds))):
                outcome = asyncio.run(runner.run(request))
                found[name].append(time.perf_counter() - noted[-1])
                assert outcome.kind == "timeout", outcome
    finally:
        engine.Standing._end = end  # pyright: ignore[reportPrivateUsage]
    return found


IMPORTS_NOTHING = "import sys\nprint(sys.stdin.read())\n"


def _own_bytes(pid: int) -> int:
    """What a process has written to and shares with nobody."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii")
    return sum(int(size) for size in re.findall(r"^Private_Dirty:\s+(\d+) kB", rollup, re.MULTILINE)) * 1024


def _own_bytes_below(pid: int) -> int:
    """The same of all processes below one; those that end meanwhile count nothing."""
    size = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        for child in map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text("ascii").split()):
            try:
                size += _own_bytes(child) + _own_bytes_below(child)
            except OSError:
                continue
    return size


def _own_bytes_of_bare(imports: str) -> int:
    """The same of an interpreter that waits without a sandbox, with these modules loaded."""
    found = find_interpreter("python", Interpreters())
    command = [found.file or found.path, "-s", "-B", "-c", f"{imports}\nimport os\nos.write(1, b'x')\nos.read(0, 1)"]
    # as few variables as in a sandbox
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={}) as waiting:
        assert waiting.stdin is not None
        assert waiting.stdout is not None
        waiting.stdout.read(1)
        size = _own_bytes(waiting.pid)
        waiting.stdin.close()
    return size


def idle(bun: str) -> dict[str, Any]:
    """Bytes of a waiting sandbox by language, and seconds of cold calls of daemons of two sizes."""
    sizes: dict[str, int] = {}
    own: dict[str, int] = {
        "an interpreter that waits, without a sandbox": _own_bytes_of_bare("import sys"),
        "the same that imported json": _own_bytes_of_bare("import json, sys"),
    }

    async def waiting(language: str, source: str = "") -> tuple[int, int]:
        pool = Pool(PoolSettings(eager=True))
        await _called(pool.run, _Folder(language, source).request())
        await pool.settle()
        await asyncio.sleep(0.3)
        try:
            return pool.metrics().memory_bytes, _own_bytes_below(os.getpid())
        finally:
            await pool.close()

    for name, source in (("a script that imports nothing", IMPORTS_NOTHING), ("a script that imports json", "")):
        own[f"a waiting sandbox of {name}"] = asyncio.run(waiting("python", source))[1]
    for language in ("python", "nodejs"):
        sizes[language] = asyncio.run(waiting(language))[0]
    loop = asyncio.new_event_loop()
    request = _Folder("python").request()

    def cold() -> None:
        loop.run_until_complete(_called(runner.run, request))

    def large(times: int) -> float:
        ballast = bytearray(b"\x01") * EFFORT.size(1 << 30)
        started = time.perf_counter()
        for _ in range(times):
            cold()
        spent = time.perf_counter() - started
        del ballast
        return spent

    found = in_turn({"daemon as it starts": cold}, others={"daemon with 1 GB resident": large}, rounds=25, at_least=0)
    loop.close()
    return {"idle": sizes, "own": own, "ballast": {name: list(one.seconds) for name, one in found.items()}}


PARTS: dict[str, Callable[[str], Any]] = {"calls": calls, "rate": rate, "pace": pace, "kill": kill, "idle": idle}


def main() -> None:
    part, effort, bun = sys.argv[1:4]
    EFFORT.rounds = float(effort)
    sys.stdout.buffer.write(msgspec.json.encode(PARTS[part](bun)))


if __name__ == "__main__":
    main()
