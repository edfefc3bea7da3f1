"""Which calls run now, and how each is cancelled: by its own id, or with all that runs for a session (V52, ``tool/cancel``).

``execute`` enters each call; what runs many calls (a text, an agent's step) enters itself without an id, so that the calls that it
has not begun end too. Must not know what a call does.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

import msgspec

from tamis.server.runtime.calls.model import Stopped
from tamis.server.runtime.calls.runner import Invocation, failure


class RunningCall(msgspec.Struct, frozen=True):
    """One entry; ``call_id`` is empty for what only holds calls."""

    call_id: str
    session_id: str
    cancelled: asyncio.Event


class RunningCalls:
    """The calls of one runtime that have begun and not ended. Ids are the hosts' and may repeat: each entry is its own."""

    def __init__(self) -> None:
        self._entries: dict[int, RunningCall] = {}
        self._number = 0

    def add(self, call_id: str, session_id: str, cancelled: asyncio.Event) -> int:
        """Enters a call; the number that is given back ends its entry (``remove``)."""
        self._number += 1
        self._entries[self._number] = RunningCall(call_id, session_id, cancelled)
        return self._number

    def remove(self, number: int) -> None:
        """The call has ended."""
        self._entries.pop(number, None)

    @contextmanager
    def entered(self, call_id: str, session_id: str, cancelled: asyncio.Event) -> Generator[None]:
        """``add`` and ``remove`` around what runs."""
        number = self.add(call_id, session_id, cancelled)
        try:
            yield
        finally:
            self.remove(number)

    def cancel(self, *, call_id: str | None = None, session_id: str | None = None) -> list[str]:
        """Cancels the calls with that id, or of that session, or both where both are given; the ids that were found, each once, in the order they began.

        What runs calls and has none just now is cancelled too and has no id to give (``has_session`` tells of it).

        They end soon, not at once: whoever runs them gives their results.
        """
        call_ids: dict[str, None] = {}
        if not call_id and not session_id:
            return []
        for entry in self._entries.values():
            if (call_id and entry.call_id != call_id) or (session_id and entry.session_id != session_id):
                continue
            entry.cancelled.set()
            if entry.call_id:
                call_ids[entry.call_id] = None
        return list(call_ids)

    def has_session(self, session_id: str) -> bool:
        """Whether anything runs for a session, be it between two calls."""
        return any(entry.session_id == session_id for entry in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)


@contextmanager
def own_cancel(parent: asyncio.Event | None) -> Generator[asyncio.Event]:
    """An event that is set with ``parent`` and can be set alone: for one call among several of a request."""
    own = asyncio.Event()
    if parent is None:
        yield own
        return
    if parent.is_set():
        own.set()
    with told_when_set(parent, own.set):
        yield own


@contextmanager
def told_when_set(event: asyncio.Event | None, tell: Callable[[], object]) -> Generator[None]:
    """Meanwhile ``tell`` is called once, from the loop, when the event is set, also when it is set already."""
    if event is None:
        yield
        return
    over = False

    def told(_: object = None) -> None:
        if not over:
            tell()

    # `wait` by hand, as far as the future that it waits for: a task for it would cost two turns of the loop
    waiting = event.wait().__await__()
    try:
        next(waiting).add_done_callback(told)
    except StopIteration:
        asyncio.get_running_loop().call_soon(told)
    try:
        yield
    finally:
        over = True
        waiting.close()


# Work within a call's time: the end by the clock and by a cancel, for runners that are no sandboxed scripts.


T = TypeVar("T")
LOOK_S = 0.05


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


class TimeHeld:
    """The time of a call that does not count, for a person is asked meanwhile."""

    def __init__(self) -> None:
        self._before = 0.0
        self._since: float | None = None

    @contextmanager
    def held(self) -> Generator[None]:
        """Not within itself."""
        loop = asyncio.get_running_loop()
        self._since = loop.time()
        try:
            yield
        finally:
            self._before += loop.time() - self._since
            self._since = None

    @property
    def seconds(self) -> float:
        """How much it is until now."""
        return self._before + (0.0 if self._since is None else asyncio.get_running_loop().time() - self._since)


async def in_time(call: Invocation, work: Awaitable[T], time_held: TimeHeld | None = None) -> T:
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

    loop = asyncio.get_running_loop()
    until = loop.time() + call.timeout_ms / 1000

    def late() -> None:
        nonlocal timer
        left = 0.0 if time_held is None else until + time_held.seconds - loop.time()
        if left > 0:
            timer = loop.call_later(max(left, LOOK_S), late)
        else:
            end("timeout")

    timer = loop.call_later(call.timeout_ms / 1000, late)
    try:
        with told_when_set(call.context.cancelled, lambda: end("cancelled")):
            outcome = await _rest(steps, waits_for)
    except (Exception, asyncio.CancelledError):
        # what the work makes of its end is nothing; a cancel of the whole task goes on
        if not ends or task.uncancel() > before:
            raise
    else:
        if not ends:
            return outcome
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
            step, payload = steps.throw, error
        else:
            step, payload = steps.send, sent
        try:
            waits_for = step(payload)
        except StopIteration as done:
            return done.value
