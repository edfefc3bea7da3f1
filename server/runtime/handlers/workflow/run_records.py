"""What a runtime keeps of its workflows: steps of runs for whoever asked for them, the last run's times, streams, runs that go on behind a
handle. Must not know how a workflow runs."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import msgspec

from tamis.protocols.contract import WorkflowStep
from tamis.server.runtime.handlers.workflow.streams import Streams

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
