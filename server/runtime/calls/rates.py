"""How many calls a minute are let through, and which tool is refused suspiciously often (D84). One of each per runtime."""

from __future__ import annotations

import time
from collections import deque

WINDOW_S = 60.0


class CallRate:
    """Counts calls in the last minute."""

    def __init__(self, calls_per_minute: int) -> None:
        self._limit = calls_per_minute
        self._times: deque[float] = deque()

    def take(self) -> float:
        """Counts one call; 0.0 when it may run, else the seconds after which one may."""
        if self._limit <= 0:
            return 0.0
        now = time.monotonic()
        while self._times and now - self._times[0] >= WINDOW_S:
            self._times.popleft()
        if len(self._times) >= self._limit:
            return WINDOW_S - (now - self._times[0])
        self._times.append(now)
        return 0.0


SUSPICIOUS = 10
MAX_TOOLS = 1_000


class Refusals:
    """Counts, tool by tool, what was refused in the last minute for reasons of security. It only tells: each refusal stands anyway."""

    def __init__(self) -> None:
        self._times: dict[str, deque[float]] = {}

    def add(self, tool_id: str, count: int) -> bool:
        """Counts refusals of a tool; whether they became suspicious with these (said once, then again from zero)."""
        now = time.monotonic()
        if tool_id not in self._times and len(self._times) >= MAX_TOOLS:
            self._times.pop(next(iter(self._times)))
        times = self._times.setdefault(tool_id, deque(maxlen=SUSPICIOUS))
        times.extend([now] * min(count, SUSPICIOUS))
        if len(times) < SUSPICIOUS or now - times[0] >= WINDOW_S:
            return False
        times.clear()
        return True
