"""How many calls a minute are let through, and which tool is refused suspiciously often (D84). One of each per runtime."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping

import msgspec

WINDOW_S = 60.0
MAX_COUNTED = 1_000
"""From so many tools, agents and sessions on, those that are quiet are forgotten."""


class Full(msgspec.Struct, frozen=True):
    """Why a call may not run now: the bound and the setting that it comes from, and the seconds after which one more may."""

    limit: int
    setting: str
    wait_s: float


class CallRate:
    """Counts calls in the last minute: all together, tool by tool, agent by agent and session by session."""

    def __init__(
        self,
        calls_per_minute: int,
        of_tool: Mapping[str, int] | None = None,
        of_agent: Mapping[str, int] | None = None,
        of_session: int = 0,
    ) -> None:
        """``of_tool``, ``of_agent``: bounds by id, ``*`` for each that has none of its own; 0 is no bound. Calls that name no agent or session
        count as those of one."""
        self._limit = calls_per_minute
        self._of_tool = of_tool or {}
        self._of_agent = of_agent or {}
        self._of_session = of_session
        self._times: dict[tuple[str, str], deque[float]] = {}
        self._sweep_at = MAX_COUNTED

    def take(self, tool_id: str = "", agent_id: str = "", session_id: str = "") -> Full | None:
        """Counts one call that may run, and gives None; one that may not is not counted."""
        bounds = [
            (self._limit, "policy.callsPerMinute", ""),
            (_bound(self._of_tool, tool_id), f"policy.toolCallsPerMinute of {tool_id}", tool_id),
            # their ids are the host's words and nothing for a model
            (_bound(self._of_agent, agent_id), "policy.agentCallsPerMinute, this agent's", agent_id),
            (self._of_session, "policy.sessionCallsPerMinute, this session's", session_id),
        ]
        now = time.monotonic()
        counted: list[deque[float]] = []
        for limit, setting, name in bounds:
            if limit <= 0:
                continue
            times = self._times.setdefault((setting, name), deque())
            while times and now - times[0] >= WINDOW_S:
                times.popleft()
            if len(times) >= limit:
                return Full(limit, setting, WINDOW_S - (now - times[0]))
            counted.append(times)
        for times in counted:
            times.append(now)
        if len(self._times) > self._sweep_at:
            self._sweep(now)
        return None

    def _sweep(self, now: float) -> None:
        """Forgets who did not call within the minute: hosts make new sessions all the time."""
        self._times = {key: times for key, times in self._times.items() if times and now - times[-1] < WINDOW_S}
        self._sweep_at = max(MAX_COUNTED, 2 * len(self._times))


def _bound(bounds: Mapping[str, int], name: str) -> int:
    return bounds.get(name, bounds.get("*", 0)) if bounds else 0


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
