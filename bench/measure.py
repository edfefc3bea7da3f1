"""Timing for benchmarks: things that are compared run in turn, in one process, so that a drift of the machine hits both."""

from __future__ import annotations

import gc
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path


@dataclass(frozen=True)
class Sample:
    """Seconds per call over several rounds."""

    name: str
    seconds: tuple[float, ...]

    @property
    def minimum(self) -> float:
        return min(self.seconds)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


Timed = Callable[[int], float]
"""Does its work that many times and says how many seconds that took."""


@dataclass
class Effort:
    """How much measuring is worth; a smoke test lowers it."""

    rounds: float = 1.0
    sizes: float = 1.0

    def size(self, full: int) -> int:
        """A text's size (or a count) at this effort."""
        return max(1, round(full * self.sizes))


EFFORT = Effort()


def timed(call: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> Timed:
    """The time of a callable in this process by that clock, without garbage collection."""

    def run(times: int) -> float:
        gc.collect()
        gc.disable()
        try:
            started = clock()
            for _ in range(times):
                call()
            return clock() - started
        finally:
            gc.enable()

    return run


def in_turn(
    work: Mapping[str, Callable[[], object]],
    *,
    others: Mapping[str, Timed] | None = None,
    rounds: int = 15,
    at_least: float = 0.02,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Sample]:
    """Runs everything in turn, `rounds` times; each round repeats a callable until `at_least` seconds have passed.

    All sides of a comparison belong in one call: only then does a slow second of the machine (a neighbour, its clock) hit all of
    them alike. `others` measure themselves, such as another process. How often each runs in a round is found by doubling, so
    that caches and the interpreter are warm before the first measurement. What runs in this process alone is best measured with
    `clock=time.process_time`, which stands still while a neighbour has the processor.
    """
    sides = {name: timed(call, clock) for name, call in work.items()} | dict(others or {})
    rounds = max(1, round(rounds * EFFORT.rounds))
    at_least *= min(1.0, EFFORT.rounds)
    counts: dict[str, int] = {}
    for name, run in sides.items():
        run(1)  # the first one loads modules and compiles patterns
        count, spent = 1, run(1)
        while spent < at_least:
            count = max(count * 2, min(count * 16, round(count * at_least / max(spent, 1e-9))))
            spent = run(count)
        counts[name] = count
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, run in sides.items():
            seconds[name].append(run(counts[name]) / counts[name])
    return {name: Sample(name, tuple(values)) for name, values in seconds.items()}


def process(words: list[str], *, data: bytes = b"", env: Mapping[str, str] | None = None) -> Callable[[], object]:
    """A whole process as a callable; fails loudly when the process fails."""

    def run() -> object:
        return subprocess.run(words, input=data, capture_output=True, check=True, env=dict(env) if env else None)

    return run


def shown(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} µs"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def table(title: str, rows: list[tuple[str, Sample, Sample, str]]) -> str:
    """A Markdown table: what, ours, the anchor, the ratio of medians (and of minima), the bar."""
    lines = [
        f"### {title}",
        "",
        "| what | ours (min / median) | beside it (min / median) | ratio of medians | ratio of minima | bar |",
        "|---|---|---|---|---|---|",
    ]
    for what, ours, anchor, bar in rows:
        lines.append(
            f"| {what} | {shown(ours.minimum)} / {shown(ours.median)} | {anchor.name}: {shown(anchor.minimum)} / {shown(anchor.median)} "
            f"| {ours.median / anchor.median:.2f} | {ours.minimum / anchor.minimum:.2f} | {bar} |"
        )
    return "\n".join(lines) + "\n"


def machine() -> str:
    """What was measured on: no host names, no paths."""
    cpu = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.partition(":")[2].strip()
            break
    import os

    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("msgspec", "lxml", "jsonschema"))
    return (
        f"{cpu}, {os.cpu_count()} processors, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, {versions}"
    )
