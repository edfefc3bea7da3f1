"""What a daemon counts: calls, their outcomes and times, requests, questions to people (D94, D86).

Counting never fails and never grows without bound: of more than ``MAX_LABELS`` tools or methods, the further ones are counted
together as ``other``. Times are kept in fixed buckets, so that numbers of several daemons can be added. Must not know how numbers are
written (``metrics.py``) or who asks.
"""

from __future__ import annotations

import bisect
import os
import resource
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from msgspec import UNSET

from tamis import __version__
from tamis.protocols.contract import ExecutionResult
from tamis.protocols.measured import (
    MethodReport,
    MetricsReport,
    MetricsText,
    ProcessNumbers,
    TimeNumbers,
    ToolReport,
)

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds of the time buckets, in seconds; one more holds what is longer."""
MAX_LABELS = 500
OTHER = "other"
T = TypeVar("T")


class Times:
    """How long something took: a histogram with fixed buckets."""

    __slots__ = ("counts", "most", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS_S) + 1)
        self.total = 0.0
        self.most = 0.0

    @property
    def count(self) -> int:
        """How often."""
        return sum(self.counts)

    def add(self, seconds: float) -> None:
        """Counts one."""
        self.counts[bisect.bisect_left(BUCKETS_S, seconds)] += 1
        self.total += seconds
        self.most = max(self.most, seconds)

    def quantile(self, share: float) -> float:
        """About the time, in seconds, within which this share of all were done: read off the buckets, so never finer than they are."""
        wanted, seen = share * self.count, 0
        for at, count in enumerate(self.counts):
            if count and seen + count >= wanted:
                low = BUCKETS_S[at - 1] if at else 0.0
                high = min(BUCKETS_S[at], self.most) if at < len(BUCKETS_S) else self.most
                return low + (max(high, low) - low) * max(0.0, wanted - seen) / count
            seen += count
        return 0.0


class ToolNumbers:
    """The calls of one tool."""

    __slots__ = ("attempts", "replayed", "statuses", "times")

    def __init__(self) -> None:
        self.statuses: Counter[str] = Counter()
        self.times = Times()
        self.attempts = 0
        self.replayed = 0


class MethodNumbers:
    """The requests of one method."""

    __slots__ = ("errors", "times")

    def __init__(self) -> None:
        self.errors = 0
        self.times = Times()


class Metrics:
    """The numbers of one runtime; used from its loop's thread."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.running = 0
        self.tools: dict[str, ToolNumbers] = {}
        self.methods: dict[str, MethodNumbers] = {}
        self.errors: Counter[str] = Counter()
        """Failed calls by error type."""
        self.starts: Counter[str] = Counter()
        """Runs in a sandbox: ``warm`` and ``cold``."""
        self.answers: Counter[str] = Counter()
        """What people answered, and what they did not."""
        self.cpu_s = 0.0
        """Processor time of all scripts, in seconds."""

    def ended(self, result: ExecutionResult, known: bool) -> None:
        """Counts a call. ``known``: its tool is registered; a name that a model made up is no label."""
        numbers = _under(self.tools, result.tool_id if known else OTHER, ToolNumbers)
        numbers.statuses[result.status] += 1
        if result.error is not UNSET:
            self.errors[result.error.type] += 1
        if result.replayed:
            # times, attempts and the rest are those of the run that was counted before
            numbers.replayed += 1
            return
        numbers.times.add(result.duration_ms / 1000)
        numbers.attempts += result.attempts
        if result.sandbox is not None and result.attempts:
            self.starts["warm" if result.sandbox.warm else "cold"] += 1
            # what a workflow used is what its nodes used, which are calls of their own
            self.cpu_s += result.usage.cpu_ms / 1000

    def answered(self, method: str, seconds: float, *, failed: bool) -> None:
        """Counts a request."""
        numbers = _under(self.methods, method, MethodNumbers)
        numbers.errors += failed
        numbers.times.add(seconds)

    def by_status(self) -> Counter[str]:
        """All calls by their status."""
        return sum((numbers.statuses for numbers in self.tools.values()), Counter[str]())


def _under(table: dict[str, T], name: str, make: type[T]) -> T:
    entry = table.get(name)
    if entry is None:
        if len(table) >= MAX_LABELS:
            name = OTHER
        entry = table.setdefault(name, make())
    return entry


def process_numbers() -> Iterator[tuple[str, float]]:
    """This process's own: seconds of processor time, resident bytes, open descriptors."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield "cpuSeconds", round(used.ru_utime + used.ru_stime, 3)
    try:
        with open("/proc/self/statm", encoding="ascii") as stream:
            yield "residentBytes", float(int(stream.read().split()[1]) * resource.getpagesize())
        yield "openFiles", float(len(os.listdir("/proc/self/fd")))
    except (OSError, ValueError, IndexError):
        yield "residentBytes", float(used.ru_maxrss * 1024)


# The daemon's numbers as JSON and in the text format of Prometheus (version 0.0.4).


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def report(metrics: Metrics, *, dropped_log_lines: int = 0) -> MetricsReport:
    """The numbers as data; tools and methods in the order of their names."""
    own = dict(process_numbers())
    statuses = metrics.by_status()
    return MetricsReport(
        uptime_ms=round((time.monotonic() - metrics.started) * 1000),
        process=ProcessNumbers(
            cpu_seconds=own["cpuSeconds"],
            resident_bytes=int(own["residentBytes"]),
            open_files=int(own.get("openFiles", 0)),
        ),
        running=metrics.running,
        calls=statuses.total(),
        by_status=dict(sorted(statuses.items())),
        by_error_type=dict(sorted(metrics.errors.items())),
        starts={"warm": metrics.starts["warm"], "cold": metrics.starts["cold"]},
        approvals=dict(sorted(metrics.answers.items())),
        script_cpu_seconds=round(metrics.cpu_s, 3),
        tools=[
            ToolReport(
                tool_id=name,
                calls=numbers.statuses.total(),
                by_status=dict(sorted(numbers.statuses.items())),
                attempts=numbers.attempts,
                replayed=numbers.replayed,
                duration_ms=_times(numbers.times),
            )
            for name, numbers in sorted(metrics.tools.items())
        ],
        methods=[
            MethodReport(
                method=name, requests=numbers.times.count, errors=numbers.errors, duration_ms=_times(numbers.times)
            )
            for name, numbers in sorted(metrics.methods.items())
        ],
        dropped_log_lines=dropped_log_lines,
    )


def _times(times: Times) -> TimeNumbers:
    count = times.count
    return TimeNumbers(
        count=count,
        mean=round(1000 * times.total / count, 3) if count else 0.0,
        p50=round(1000 * times.quantile(0.5), 3),
        p95=round(1000 * times.quantile(0.95), 3),
        p99=round(1000 * times.quantile(0.99), 3),
        max=round(1000 * times.most, 3),
    )


def prometheus(metrics: Metrics, *, dropped_log_lines: int = 0) -> MetricsText:
    """The numbers as a scraper reads them: base units (seconds, bytes), one help and type line a family."""
    return MetricsText(content_type=CONTENT_TYPE, text="\n".join(_lines(metrics, dropped_log_lines)) + "\n")


Sample = tuple[Mapping[str, str], float]


def _lines(metrics: Metrics, dropped_log_lines: int) -> Iterator[str]:
    own = dict(process_numbers())
    tools, methods = sorted(metrics.tools.items()), sorted(metrics.methods.items())
    yield from _family("tamis_build_info", "gauge", "Which version runs.", [({"version": __version__}, 1)])
    uptime = time.monotonic() - metrics.started
    yield from _family("tamis_uptime_seconds", "gauge", "Since the daemon started.", [({}, uptime)])
    yield from _family("process_cpu_seconds_total", "counter", "Processor time.", [({}, own["cpuSeconds"])])
    yield from _family("process_resident_memory_bytes", "gauge", "Resident memory.", [({}, own["residentBytes"])])
    yield from _family("process_open_fds", "gauge", "Open descriptors.", [({}, own.get("openFiles", 0))])
    yield from _family("tamis_calls_running", "gauge", "Calls that run now.", [({}, metrics.running)])
    yield from _family(
        "tamis_calls_total",
        "counter",
        "Calls by tool and status.",
        [
            ({"tool": name, "status": status}, count)
            for name, numbers in tools
            for status, count in sorted(numbers.statuses.items())
        ],
    )
    errors, answers = sorted(metrics.errors.items()), sorted(metrics.answers.items())
    yield from _counts("tamis_call_errors_total", "Calls that failed, by error type.", "type", errors)
    attempts = [(name, numbers.attempts) for name, numbers in tools]
    yield from _counts("tamis_call_attempts_total", "Runs of a tool, with those of retries.", "tool", attempts)
    replayed = [(name, numbers.replayed) for name, numbers in tools if numbers.replayed]
    yield from _counts("tamis_calls_replayed_total", "Calls that were answered with a stored result.", "tool", replayed)
    yield from _histograms(
        "tamis_call_duration_seconds",
        "How long calls took.",
        [({"tool": name}, numbers.times) for name, numbers in tools],
    )
    starts = [(name, metrics.starts[name]) for name in ("warm", "cold")]
    told = "Runs in a sandbox that waited, or that was started for the call."
    yield from _counts("tamis_sandbox_starts_total", told, "start", starts)
    yield from _family("tamis_script_cpu_seconds_total", "counter", "Processor time of scripts.", [({}, metrics.cpu_s)])
    yield from _counts("tamis_approvals_total", "Questions to a person, by answer.", "answer", answers)
    failed = [(name, numbers.errors) for name, numbers in methods if numbers.errors]
    yield from _counts("tamis_request_errors_total", "Requests that were answered with an error.", "method", failed)
    yield from _histograms(
        "tamis_request_duration_seconds",
        "How long requests took.",
        [({"method": name}, numbers.times) for name, numbers in methods],
    )
    dropped = "Log lines that nobody took."
    yield from _family("tamis_log_lines_dropped_total", "counter", dropped, [({}, dropped_log_lines)])


def _family(name: str, kind: str, help_text: str, samples: Iterable[Sample]) -> Iterator[str]:
    lines = [f"{name}{_labels(labels)} {_number(value)}" for labels, value in samples]
    if lines:
        yield f"# HELP {name} {help_text}"
        yield f"# TYPE {name} {kind}"
        yield from lines


def _counts(name: str, help_text: str, label: str, counts: Iterable[tuple[str, float]]) -> Iterator[str]:
    """A counter with one label."""
    return _family(name, "counter", help_text, [({label: of}, count) for of, count in counts])


def _histograms(name: str, help_text: str, rows: list[tuple[Mapping[str, str], Times]]) -> Iterator[str]:
    if not rows:
        return
    yield f"# HELP {name} {help_text}"
    yield f"# TYPE {name} histogram"
    for labels, times in rows:
        seen = 0
        for bound, count in zip((*BUCKETS_S, float("inf")), times.counts, strict=True):
            seen += count
            yield f"{name}_bucket{_labels({**labels, 'le': _number(bound)})} {seen}"
        yield f"{name}_sum{_labels(labels)} {_number(times.total)}"
        yield f"{name}_count{_labels(labels)} {times.count}"


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else f"{value:.6g}" if value < 1e6 else f"{value:.3f}"
