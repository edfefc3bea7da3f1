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


def in_turn(work: Mapping[str, Callable[[], object]], *, rounds: int = 15, at_least: float = 0.02) -> dict[str, Sample]:
    """Runs every callable in turn, `rounds` times; each round repeats a callable until `at_least` seconds have passed."""
    counts: dict[str, int] = {}
    for name, call in work.items():
        call()
        started = time.perf_counter()
        call()
        counts[name] = max(1, round(at_least / max(time.perf_counter() - started, 1e-9)))
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, call in work.items():
            gc.collect()
            gc.disable()
            started = time.perf_counter()
            for _ in range(counts[name]):
                call()
            seconds[name].append((time.perf_counter() - started) / counts[name])
            gc.enable()
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
