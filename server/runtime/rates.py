"""How many calls a minute are let through (D84). One limiter per runtime; a window that slides."""

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
