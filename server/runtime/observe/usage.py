"""How often each tool was called, how often it failed, and when it was used last (D87): kept in the store, over all daemons of a root.

Calls are counted in memory and written together, now and then and at the end, so that no call waits for it or opens the store. Only a
process that stays counts: a command that runs one call would pay more for the count than for the call. Must not know metrics.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Mapping

import msgspec

from tamis.protocols.contract import ExecutionResult
from tamis.server.runtime.store.store import Store

WRITE_S = 30.0
"""Counts are written at most this long after the call."""
FORGET_S = 400 * 86_400.0
"""A tool that was not used for so long is forgotten."""


class ToolUsage(msgspec.Struct, frozen=True, rename="camel"):
    """The counts of one tool; ``last_used`` is seconds since the epoch."""

    tool_id: str
    calls: int
    failures: int
    last_used: float


class UsageCounts:
    """The counts of one root. Replayed calls and calls of unknown tools are none."""

    def __init__(
        self, store: Store | None, root: str, also: Callable[[sqlite3.Connection], object] | None = None
    ) -> None:
        """``store`` None counts nothing. ``also`` is done whenever counts are written."""
        self._store = store
        self._root = root
        self._also = also
        self._new: dict[str, tuple[int, int, float]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def note(self, result: ExecutionResult) -> None:
        """Counts a call that has ended; a task's when it ends, not when it is accepted. A call that was not run and not refused
        by a person or a policy (its arguments were wrong) counts as a failure."""
        if (
            self._store is None
            or not result.version
            or result.replayed
            or result.status in ("accepted", "inputRequired")
        ):
            return
        calls, failures, _ = self._new.get(result.tool_id, (0, 0, 0.0))
        failed = result.status in ("error", "timeout")
        self._new[result.tool_id] = (calls + 1, failures + failed, time.time())
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WRITE_S, self.write)

    def write(self) -> None:
        """Hands what was counted to the store, without waiting."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        new, self._new = self._new, {}
        if new and self._store is not None:
            self._store.post(lambda db: _add(db, self._root, new))
            if self._also is not None:
                self._store.post(self._also)

    async def all(self) -> list[ToolUsage]:
        """The counts of every tool of the root, by id; those of other daemons as far as they are written."""
        if self._store is None:
            return []
        self.write()
        return await self._store.run(lambda db: _all(db, self._root), durable=False)


def _add(db: sqlite3.Connection, root: str, new: Mapping[str, tuple[int, int, float]]) -> None:
    db.executemany(
        """INSERT INTO usage VALUES (?, ?, ?, ?, ?) ON CONFLICT (root, tool_id) DO UPDATE SET
        calls = calls + excluded.calls, failures = failures + excluded.failures, last_used = max(last_used, excluded.last_used)""",
        [(root, tool_id, *counts) for tool_id, counts in new.items()],
    )
    now = time.time()
    # what was used in the future, because a clock was set back, would never be forgotten
    db.execute("UPDATE usage SET last_used = ?1 WHERE last_used > ?1", (now,))
    db.execute("DELETE FROM usage WHERE last_used < ?", (now - FORGET_S,))


def _all(db: sqlite3.Connection, root: str) -> list[ToolUsage]:
    wanted = "SELECT tool_id, calls, failures, last_used FROM usage WHERE root = ? ORDER BY tool_id"
    return [ToolUsage(*row) for row in db.execute(wanted, (root,)).fetchall()]
