"""Looking for changes on disk while the daemon serves, so that a new tool, workflow or list entry needs no restart (D53, A44, W20).

Times and sizes are asked for in a thread, and what changed is read there; only putting it in force is done on the loop. Must not know what a
registry is made of.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from tamis.server.rpc.aside import aside
from tamis.server.runtime.observe.trail import Log
from tamis.server.runtime.runtime import Runtime

POLL_SECONDS = 0.5
T = TypeVar("T")
LOOKING, READING = 20, 4
"""Looking, and reading what changed, take at most one part in so many of the time."""
SETTLE_SECONDS = 0.1
"""Who writes several files, or one in pieces, is given so long to finish."""


class Watcher(Protocol):
    """The face that looks."""

    def log(self) -> Log:
        """Where what is wrong is said."""
        ...

    @property
    def runtime(self) -> Runtime:
        """Settings and registry of the root."""
        ...


class Watching:
    """The task that looks; it begins with the first runtime, and follows the host to another one."""

    def __init__(self, host: Watcher) -> None:
        self._host = host
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to look, where that was not begun."""
        self._host.runtime.watched = True
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Looks no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        pause = POLL_SECONDS
        while True:
            await asyncio.sleep(pause)
            try:
                pause = max(POLL_SECONDS, await self._once())
            except Exception as error:  # a folder that cannot be looked at is no end of the looking
                pause = 10 * POLL_SECONDS
                self._host.log().warn(f"looking for changes failed: {type(error).__name__}: {error}")

    async def _once(self) -> float:
        """Looks once; how long to wait before the next time, in seconds."""
        from tamis.server.runtime.tools.watching import differs

        runtime = self._host.runtime
        seen = runtime.seen
        if seen is not None:
            other, spent = await aside(lambda: _timed(lambda: differs(seen)))
            if not other:
                return LOOKING * spent
            await asyncio.sleep(SETTLE_SECONDS)
        reading, spent = await aside(lambda: _timed(runtime.read_again))
        # Another request may have made another runtime meanwhile.
        if runtime is self._host.runtime:
            runtime.take(reading)
        return READING * spent


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    started = time.thread_time()
    return work(), time.thread_time() - started
