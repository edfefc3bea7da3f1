"""What a daemon counts: calls, their outcomes and times, requests, questions to people (D94, D86).

Counting never fails and never grows without bound: of more than ``MAX_LABELS`` tools or methods, the further ones are counted
together as ``other``. Times are kept in fixed buckets, so that numbers of several daemons can be added. Must not know how numbers are
written (``exposition.py``) or who asks.
"""

from __future__ import annotations

import bisect
import os
import resource
import time
from collections import Counter
from collections.abc import Iterator
from typing import TypeVar

from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult

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
    found = table.get(name)
    if found is None:
        if len(table) >= MAX_LABELS:
            name = OTHER
        found = table.setdefault(name, make())
    return found


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
