"""Work within a call's time: the end by the clock and by a cancel, for runners that are no sandboxed scripts.

Must not know what the work is.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Awaitable, Generator
from typing import Any, Literal, TypeVar

from tamis.server.runtime.calls.model import Stopped
from tamis.server.runtime.calls.results import failure
from tamis.server.runtime.calls.runner import Invocation
from tamis.server.runtime.calls.running_calls import told_when_set

T = TypeVar("T")


async def unless_cancelled(cancelled: asyncio.Event | None, work: Awaitable[T]) -> T:
    """What ``work`` gives. Raises ``Stopped("cancelled")`` when the event is set first; then the work was cancelled too."""
    task = asyncio.ensure_future(work)
    if cancelled is None:
        return await task
    stop = asyncio.ensure_future(cancelled.wait())
    try:
        await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
    finally:
        stop.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
    raise Stopped("cancelled", started=True)


async def in_time(call: Invocation, work: Awaitable[T]) -> T:
    """What ``work`` gives, within the call's time. Raises ``Stopped`` when the time is over or the call is cancelled; then the
    work was cancelled too and has ended."""
    steps = work.__await__()
    try:
        waits_for = next(steps)
    except StopIteration as done:
        # much work never waits, and nothing could have ended it
        return done.value
    # As asyncio.timeout does it, in the task that waits: tasks of their own for the work and for who watches it would cost more than
    # most of this work.
    task = asyncio.current_task()
    assert task is not None
    before, ends = task.cancelling(), list[Literal["timeout", "cancelled"]]()

    def end(why: Literal["timeout", "cancelled"]) -> None:
        if not ends:
            task.cancel()
        ends.append(why)

    timer = asyncio.get_running_loop().call_later(call.timeout_ms / 1000, end, "timeout")
    try:
        with told_when_set(call.context.cancelled, lambda: end("cancelled")):
            found = await _rest(steps, waits_for)
    except (Exception, asyncio.CancelledError):
        # what the work makes of its end is nothing; a cancel of the whole task goes on
        if not ends or task.uncancel() > before:
            raise
    else:
        if not ends:
            return found
        task.uncancel()
    finally:
        timer.cancel()
    if ends[0] == "cancelled":
        raise Stopped("cancelled", started=True)
    error = failure("TimeoutError", f"no result after {call.timeout_ms} ms", limit="wall")
    raise Stopped("timeout", error, started=True)


@types.coroutine
def _rest(steps: Generator[Any, Any, T], waits_for: Any) -> Generator[Any, Any, T]:
    """What ``await`` does from where an awaitable has begun and waits."""
    while True:
        try:
            sent = yield waits_for
        except GeneratorExit:
            steps.close()
            raise
        except BaseException as error:
            step, given = steps.throw, error
        else:
            step, given = steps.send, sent
        try:
            waits_for = step(given)
        except StopIteration as done:
            return done.value
