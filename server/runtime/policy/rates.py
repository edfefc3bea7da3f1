"""How many calls a minute are let through, and which tool is refused suspiciously often (D84). One of each per runtime."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping

import msgspec

WINDOW_S = 60.0


class Full(msgspec.Struct, frozen=True):
    """Why a call may not run now: the bound and the setting that it comes from, and the seconds after which one more may."""

    limit: int
    setting: str
    wait_s: float


class CallRate:
    """Counts calls in the last minute, all together and tool by tool."""

    def __init__(self, calls_per_minute: int, of_tool: Mapping[str, int] | None = None) -> None:
        """``of_tool``: bounds by tool id, ``*`` for each tool that has none of its own; 0 is no bound."""
        self._limit = calls_per_minute
        self._of_tool = of_tool or {}
        self._times: deque[float] = deque()
        self._tool_times: dict[str, deque[float]] = {}

    def take(self, tool_id: str = "") -> Full | None:
        """Counts one call that may run, and gives None; one that may not is not counted."""
        own = self._of_tool.get(tool_id, self._of_tool.get("*", 0)) if self._of_tool else 0
        if self._limit <= 0 and own <= 0:
            return None
        now = time.monotonic()
        bounds = [(self._limit, "policy.callsPerMinute", self._times)] if self._limit > 0 else []
        if own > 0:
            times = self._tool_times.setdefault(tool_id, deque())
            bounds.append((own, f"policy.toolCallsPerMinute of {tool_id}", times))
        for limit, setting, times in bounds:
            while times and now - times[0] >= WINDOW_S:
                times.popleft()
            if len(times) >= limit:
                return Full(limit, setting, WINDOW_S - (now - times[0]))
        for _, _, times in bounds:
            times.append(now)
        return None


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
