"""Work within a call's time: the end by the clock and by a cancel, for runners that are no sandboxed scripts.

Must not know what the work is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from tamis.server.runtime.calls.dispatch import Invocation
from tamis.server.runtime.calls.failures import failure
from tamis.server.runtime.calls.model import Stopped

T = TypeVar("T")


async def in_time(call: Invocation, work: Awaitable[T]) -> T:
    """What ``work`` gives, within the call's time. Raises ``Stopped`` when the time is over or the call is cancelled; then the
    work was cancelled too and has ended."""
    task = asyncio.ensure_future(work)
    waits: set[asyncio.Future[Any]] = {task}
    stop = asyncio.ensure_future(call.around.cancelled.wait()) if call.around.cancelled is not None else None
    if stop is not None:
        waits.add(stop)
    try:
        await asyncio.wait(waits, timeout=call.timeout_ms / 1000, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
    finally:
        if stop is not None:
            stop.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
    if stop is not None and stop.done() and not stop.cancelled():
        raise Stopped("cancelled", started=True)
    error = failure("TimeoutError", f"no result after {call.timeout_ms} ms", limit="wall")
    raise Stopped("timeout", error, started=True)
