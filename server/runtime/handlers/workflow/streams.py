"""Streamed outputs: items that wait behind a handle until they are read (seed 004 §4, W22). Must not know workflows."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ExecutionError, StreamItems, WorkflowStep
from tamis.protocols.workflow.model import MAX_WAIT_MS

MAX_STREAMS = 64
MAX_BYTES = 64 * 1024 * 1024
"""How much one stream holds that was not read."""
IDLE_S = 600.0
"""After so long without a reader a stream is dropped, and what fills it is ended."""
MAX_READ = 1_000
"""How many items one reading gives at most."""


class StreamFull(Exception):  # noqa: N818 (a limit, not a fault)
    """No room for another stream or item; the text says which limit."""


class Stream:
    """One output's items, in order."""

    def __init__(self, on_idle: Callable[[], None] | None = None) -> None:
        self.handle = f"stream-{secrets.token_urlsafe(12)}"
        self._items: deque[tuple[Any, int]] = deque()
        self._size = 0
        self._ended = False
        self._error: ExecutionError | None = None
        self._changed = asyncio.Event()
        self.on_idle = on_idle

    def push(self, item: Any) -> int:
        """One more item; about how many bytes it has. Raises ``StreamFull``."""
        if self._ended:
            return 0
        try:
            size = len(msgspec.json.encode(item)) + 64
        except (OverflowError, RecursionError):
            size = 64
        if self._size + size > MAX_BYTES:
            raise StreamFull(f"more than {MAX_BYTES} bytes wait to be read")
        self._items.append((item, size))
        self._size += size
        self._changed.set()
        return size

    def end(self, error: ExecutionError | None = None) -> None:
        """Nothing more comes."""
        if not self._ended:
            self._ended, self._error = True, error
            self._changed.set()

    async def read(self, wait_ms: int) -> StreamItems:
        """What has come, waiting up to ``wait_ms`` for the first of it."""
        if not self._items and not self._ended and wait_ms > 0:
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), min(wait_ms, MAX_WAIT_MS) / 1000)
        items: list[Any] = []
        while self._items and len(items) < MAX_READ:
            item, size = self._items.popleft()
            self._size -= size
            items.append(item)
        done = self._ended and not self._items
        return StreamItems(items=items, done=done, error=self._error if done and self._error else UNSET)


class Streams:
    """The open streams of a runtime. An ended one that was read to its end is forgotten."""

    def __init__(self, idle_s: float = IDLE_S) -> None:
        self._open: dict[str, Stream] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._idle_s = idle_s

    def open(self, on_idle: Callable[[], None] | None = None) -> Stream:
        """A new stream. Raises ``StreamFull``."""
        if len(self._open) >= MAX_STREAMS:
            raise StreamFull(f"{MAX_STREAMS} streams are open; read one to its end")
        stream = Stream(on_idle)
        self._open[stream.handle] = stream
        self._wind(stream)
        return stream

    def get(self, handle: str) -> Stream | None:
        """The stream of a handle."""
        return self._open.get(handle)

    async def read(self, handle: str, wait_ms: int) -> StreamItems | None:
        """What has come in a stream; None when there is none of that handle (any more)."""
        stream = self._open.get(handle)
        if stream is None:
            return None
        self._unwind(handle)
        try:
            stream_items = await stream.read(wait_ms)
        finally:
            if handle in self._open:
                self._wind(stream)
        if stream_items.done:
            self._unwind(handle)
            self._open.pop(handle, None)
        return stream_items

    def drop(self, handle: str) -> None:
        """Forgets a stream that nobody reads; what fills it is ended."""
        self._unwind(handle)
        stream = self._open.pop(handle, None)
        if stream is not None and stream.on_idle is not None:
            stream.on_idle()

    def close(self) -> None:
        """Forgets all streams."""
        for handle in list(self._open):
            self.drop(handle)

    def _wind(self, stream: Stream) -> None:
        self._unwind(stream.handle)
        loop = asyncio.get_running_loop()
        self._timers[stream.handle] = loop.call_later(self._idle_s, self.drop, stream.handle)

    def _unwind(self, handle: str) -> None:
        timer = self._timers.pop(handle, None)
        if timer is not None:
            timer.cancel()


# What a runtime keeps of its workflows: steps of runs for whoever asked for them, the last run's times, streams, runs that go on behind a handle.


MAX_LAST = 256
MAX_BEHIND = 32
"""How many runs may go on after their calls were answered."""
CLOSE_S = 2.0


class RunRecord(msgspec.Struct, kw_only=True):
    """What is known of one run."""

    workflow_id: str
    engine: str = ""
    steps: list[WorkflowStep] = []
    outputs: dict[str, Any] = {}


class Workflows:
    """The workflows' part of a runtime."""

    def __init__(self) -> None:
        self.streams = Streams()
        self._wanted: dict[str, RunRecord | None] = {}
        self._last: dict[str, RunRecord] = {}
        self._behind: set[asyncio.Task[None]] = set()
        self._keeping: set[asyncio.Task[None]] = set()
        """What is to be written down of those runs at their ends."""

    def expect(self, call_id: str) -> None:
        """The record of this call's run will be taken."""
        self._wanted[call_id] = None

    def take(self, call_id: str) -> RunRecord | None:
        """The record of a run that was expected; None when the call did not come to run anything."""
        return self._wanted.pop(call_id, None)

    def give(self, call_id: str, record: RunRecord) -> None:
        """What is known of the run that a call waits for, if it is expected."""
        if call_id in self._wanted:
            self._wanted[call_id] = record

    def note(self, call_id: str, record: RunRecord) -> None:
        """A run has ended, or its call is answered."""
        self.give(call_id, record)
        self._last.pop(record.workflow_id, None)
        # outputs may be large, and only the times are asked for later
        self._last[record.workflow_id] = msgspec.structs.replace(record, outputs={})
        while len(self._last) > MAX_LAST:
            del self._last[next(iter(self._last))]

    def last(self, workflow_id: str) -> RunRecord | None:
        """The last run of a workflow."""
        return self._last.get(workflow_id)

    @property
    def has_room(self) -> bool:
        """Whether another run may go on behind its call."""
        return len(self._behind) < MAX_BEHIND

    def behind(self, work: Coroutine[Any, Any, None]) -> None:
        """Lets a run go on after its call was answered, until it ends or the runtime closes."""
        _held(work, self._behind)

    def at_end(self, work: Coroutine[Any, Any, None]) -> None:
        """Has something done that waits for the end of such a run."""
        _held(work, self._keeping)

    async def close(self) -> None:
        """Ends the runs that go on, and forgets the streams."""
        self.streams.close()
        tasks = self._behind | self._keeping
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_S)


def _held(work: Coroutine[Any, Any, None], tasks: set[asyncio.Task[None]]) -> None:
    task = asyncio.get_running_loop().create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
