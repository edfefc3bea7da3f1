"""Calls of asynchronous tools as tasks: they are durable before their id is given out, and go on after their request (D92, T14 to T16).

A task is run by the process that took it and by no other; every process on the store can see it, wait for it and ask for its cancel. What
a lost process leaves is ``failed``, never ``working`` for ever. Must not know what a call does.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sqlite3
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ApprovalRequest, ExecutionResult, Task, TaskList, TaskProgress
from tamis.protocols.observation import readable
from tamis.server.runtime.calls.model import Ask, CallContext, Question, Reply, Stopped, TokenAnswer
from tamis.server.runtime.calls.runner import Invocation, failure
from tamis.server.runtime.calls.running_calls import unless_cancelled
from tamis.server.runtime.execution.approvals.questions import ApprovalUnknown
from tamis.server.runtime.execution.tasks import rows
from tamis.server.runtime.execution.tasks.rows import TaskRow
from tamis.server.runtime.observe.masking import without
from tamis.server.runtime.observe.redaction import storable, stored_result
from tamis.server.runtime.observe.trail import Log, Trail

if TYPE_CHECKING:
    from tamis.server.runtime.calls.running_calls import RunningCalls
    from tamis.server.runtime.execution.approvals.questions import Approvals
    from tamis.server.runtime.observe.audit import AuditLog
    from tamis.server.runtime.settings.config import Settings
    from tamis.server.runtime.store.owners import Owner
    from tamis.server.runtime.store.store import Store


# How a tool says how far it is: lines on standard error that begin with ``[progress]``. ``[progress] 40% reading``, ``[progress] 3/10 files``,
# ``[progress] almost there``. Any other line is only a log.


MAX_LINE_CHARS = 1_000
_LINE = re.compile(
    r"\[progress\](?: +([0-9]{1,15}(?:\.[0-9]{1,6})?)(?:(%)|/([0-9]{1,15}(?:\.[0-9]{1,6})?)))?(?: +(.*))?"
)


def read_progress(line: str) -> TaskProgress | None:
    """What a line says; None for one that says nothing of progress."""
    if not line.startswith("[progress]"):
        return None
    match = _LINE.fullmatch(readable(line.rstrip()))
    if match is None:
        return None
    done, percent, total, words = match.groups()
    return TaskProgress(
        progress=UNSET if done is None else float(done),
        total=100.0 if percent else UNSET if total is None else float(total),
        message=words or UNSET,
    )


class ProgressReader:
    """Reads the standard error of a run while it arrives."""

    def __init__(self, tell: Callable[[TaskProgress], None]) -> None:
        self._tell = tell
        self._line = ""
        self._long = False

    def piece(self, text: str) -> None:
        """More of it."""
        *lines, rest = (self._line + text).split("\n")
        for line in lines:
            # the beginning of a line that was too long is gone, and its end says nothing
            if not self._long and (progress := read_progress(line[:MAX_LINE_CHARS])) is not None:
                self._tell(progress)
            self._long = False
        self._long = self._long or len(rest) > MAX_LINE_CHARS
        self._line = "" if self._long else rest


MAX_UNFINISHED = 1_000
"""Tasks of one process that have not ended; a call that would be one more is refused."""
AT_ONCE = 16
"""Tasks of one process that run at the same time; the others wait. Fewer than sandboxes, so that other calls find room."""
MAX_WAIT_MS = 3_600_000
PAGE = 100
PROGRESS_S = 0.25
"""Progress is told and stored at most so often."""
_LOOK_S = 0.5
_CLOSE_S = 0.1

_ID = re.compile(r"task-[0-9a-f]{20}")

T = TypeVar("T")
Run = Callable[[Invocation], Awaitable[ExecutionResult]]


class TaskServices(Protocol):
    """What tasks need of the runtime that they are of."""

    @property
    def settings(self) -> Settings:
        """Those in force."""
        ...

    @property
    def store(self) -> Store:
        """Where tasks stand."""
        ...

    @property
    def owner(self) -> Owner:
        """Who works on them here."""
        ...

    @property
    def approvals(self) -> Approvals:
        """The questions about them."""
        ...

    @property
    def running_calls(self) -> RunningCalls:
        """The calls that run, for a cancel by the call's id."""
        ...

    @property
    def audit(self) -> Callable[[], AuditLog | None]:
        """Where call-backs are written down."""
        ...

    def tell(self, method: str, params: object) -> None:
        """Tells the host, if there is one."""
        ...


class _Running:
    """A task of this process that has not ended."""

    def __init__(self, row: TaskRow) -> None:
        self.row = row
        self.cancelled = asyncio.Event()
        self.ended = asyncio.Event()
        self.work: asyncio.Task[None] | None = None
        self.progress: TaskProgress | None = None
        self.telling: asyncio.TimerHandle | None = None
        self.asking = 0
        """How many questions are open about what it does."""
        self.handed_out: dict[str, tuple[Question, ApprovalRequest]] = {}
        """Those that a host who polls may answer, by their tokens."""


class Tasks:
    """The tasks of one root."""

    def __init__(self, root: Path, services: TaskServices) -> None:
        self._services = services
        self._root = str(root)
        self._running: dict[str, _Running] = {}
        self._gate: asyncio.Semaphore | None = None
        self._looking: asyncio.Task[None] | None = None
        self._closing = False
        self._calling: set[asyncio.Task[None]] = set()
        """The call-backs that have not ended."""
        self._lines = asyncio.Semaphore(AT_ONCE)

    async def start(self, call: Invocation, run: Run) -> None:
        """Makes a call a task, and its result ``accepted``; ``run`` takes a copy of the call with a result of its own.

        Raises ``Stopped`` when there are too many tasks.
        """
        if len(self._running) >= MAX_UNFINISHED or self._closing:
            text = (
                f"{MAX_UNFINISHED} tasks have not ended; wait for one of them"
                if not self._closing
                else "the daemon ends"
            )
            raise Stopped("error", failure("RateLimited", text))
        row = TaskRow(
            task_id=f"task-{os.urandom(10).hex()}",
            owner=self._services.owner.token,
            call_id=storable(call.request.call_id),
            tool_id=call.tool.tool_id,
            version=call.tool.manifest.version,
            session_id=storable(call.context.caller.session_id),
        )
        running = _Running(row)

        def write(db: sqlite3.Connection) -> None:
            self._services.owner.mark(db)
            own = self._services.settings.tasks
            rows.prune(db, own.keep, own.keep_seconds)
            rows.insert(db, self._root, row)

        # from here on it counts, so that many calls at once do not pass the bound together
        self._running[row.task_id] = running
        try:
            await self._services.store.run(write)
        except BaseException:
            del self._running[row.task_id]
            row.status, row.ended = "cancelled", time.time()
            self._services.store.post(lambda db: rows.end(db, self._root, row))
            raise
        if self._closing:
            # ``close`` has given up the row, or will
            del self._running[row.task_id]
            raise Stopped("cancelled")
        self._services.owner.begin()
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look())
        own = self._own(call, running)
        call.trail.note("task.started", "info", taskId=row.task_id)
        running.work = asyncio.get_running_loop().create_task(self._work(running, own, run))
        call.result.status, call.result.task_id = "accepted", row.task_id
        self._services.tell("task/changed", rows.to_task(row))

    def judge(self, result: ExecutionResult) -> None:
        """Makes the outcome of a task that the end of this process cancelled what the store says of it: it is lost."""
        if self._closing and result.status == "cancelled":
            result.status, result.error = "error", rows.lost(rows.ENDED)

    def __len__(self) -> int:
        """How many run here."""
        return len(self._running)

    async def get(self, task_id: str) -> Task | None:
        """A task of this root; None when there is none, or none any more."""
        row = await self._find(task_id)
        return None if row is None else rows.to_task(row)

    async def status(self, task_id: str) -> Task | None:
        """``get``, for the tool that a model asks."""
        return await self.get(task_id)

    def asked(self, task_id: str) -> list[ApprovalRequest]:
        """The questions about a task of this process that its host may answer; their tokens are no model's business."""
        running = self._running.get(task_id)
        return [] if running is None else [request for _, request in running.handed_out.values()]

    def answer(self, task_id: str, token_answer: TokenAnswer) -> None:
        """A person's answer to one of these questions. Raises ``ApprovalUnknown``."""
        running = self._running.get(task_id)
        question, _ = running.handed_out.get(token_answer.token, (None, None)) if running is not None else (None, None)
        if question is None:
            raise ApprovalUnknown(
                "no question of this task has this token: it is answered, its time is over, or another daemon asked"
            )
        self._services.approvals.answer(token_answer, question.binding)

    async def page(self, cursor: str | None = None, limit: int | None = None) -> TaskList:
        """One page of the tasks of this root, the newest first."""
        before = int(cursor) if cursor is not None and cursor.isdecimal() and len(cursor) < 19 else None
        size = max(1, min(limit or PAGE, PAGE))
        own = self._services.settings.tasks

        def read(db: sqlite3.Connection) -> list[TaskRow]:
            rows.prune(db, own.keep, own.keep_seconds)
            return rows.page(db, self._root, before, size + 1)

        task_rows = await self._read(read)
        tasks = [rows.to_task(row) for row in task_rows[:size]]
        return TaskList(tasks=tasks, next_cursor=str(task_rows[size - 1].number) if len(task_rows) > size else UNSET)

    async def result(self, task_id: str, wait_ms: int = 0) -> ExecutionResult | None:
        """The result of a task, after waiting for its end for at most that long; ``accepted`` while it has none. None: no such task."""
        until = time.monotonic() + min(max(wait_ms, 0), MAX_WAIT_MS) / 1000
        while True:
            row = await self._find(task_id)
            left = until - time.monotonic()
            if row is None or row.status not in rows.UNFINISHED or left <= 0:
                return None if row is None else rows.result_of(row)
            running = self._running.get(task_id)
            if running is None:
                await asyncio.sleep(min(left, _LOOK_S))
            else:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(running.ended.wait(), left)

    async def cancel(self, task_id: str) -> Task | None:
        """Cancels a task, wherever it runs, and waits a moment for its end; the task as it is then. None: no such task."""
        running = self._running.get(task_id)
        if running is not None:
            running.cancelled.set()
        elif _ID.fullmatch(task_id):
            await self._services.store.run(lambda db: rows.ask_to_cancel(db, self._root, task_id))
        if await self.result(task_id, round(4 * _LOOK_S * 1000)) is None:
            return None
        return await self.get(task_id)

    async def cancel_session(self, session_id: str) -> list[str]:
        """Cancels the unfinished tasks of a session, without waiting; their ids."""
        task_ids = await self._read(lambda db: rows.unfinished_of_session(db, self._root, storable(session_id)))
        for task_id in task_ids:
            if task_id in self._running:
                self._running[task_id].cancelled.set()
        others = [task_id for task_id in task_ids if task_id not in self._running]
        if others:
            await self._services.store.run(
                lambda db: [rows.ask_to_cancel(db, self._root, task_id) for task_id in others]
            )
        return task_ids

    async def close(self) -> None:
        """Ends what runs; what has not ended by itself within a moment is ``failed``, because nobody will go on with it."""
        self._closing = True
        works = [running.work for running in self._running.values() if running.work is not None]
        for running in self._running.values():
            running.cancelled.set()
        if works:
            _, late = await asyncio.wait(works, timeout=_CLOSE_S)
            for work in late:
                work.cancel()
        if self._calling:
            for calling in self._calling:
                calling.cancel()
            await asyncio.wait(self._calling, timeout=_CLOSE_S)
        if self._looking is not None:
            self._looking.cancel()
        if works:
            token = self._services.owner.token
            self._services.store.post(lambda db: rows.give_up(db, token, rows.ENDED))

    def _own(self, call: Invocation, running: _Running) -> Invocation:
        """The call with a result, a cancel and listeners of its own: those of its request end with it."""
        reader = ProgressReader(lambda task_progress: self._progress(running, task_progress))

        def on_output(_call_id: str, stream: str, text: str) -> None:
            if stream == "stderr":
                reader.piece(text)

        def on_progress(_call_id: str, text: str) -> None:
            self._progress(running, TaskProgress(message=without(text, call.trail.secrets)))

        context = call.context.having(
            cancelled=running.cancelled,
            on_output=on_output,
            on_cut=None,
            on_progress=on_progress,
            ask=self._asker(running, call.context),
            polls=False,
        )
        permissions = msgspec.structs.replace(call.result.permissions, denied=[*call.result.permissions.denied])
        result = msgspec.structs.replace(call.result, task_id=running.row.task_id, permissions=permissions, logs=[])
        return msgspec.structs.replace(call, context=context, result=result)

    def _asker(self, running: _Running, context: CallContext) -> Ask | None:
        """How a person is asked about what the task does; None where nobody can be when the request has ended."""
        how, ask = context.asking, context.asking.ask
        if not how.asks_later or (ask is None and not how.polls):
            return None

        async def asked(question: Question) -> Reply:
            running.asking += 1
            self._waits(running)
            try:
                if ask is None and running.ended.is_set():
                    return Reply(answer="unavailable")  # a stream that goes on behind the task's end
                if ask is None:
                    return await self._polled(running, question)
                answer = await ask(question)
                return answer if isinstance(answer, Reply) else Reply(answer=answer)
            finally:
                running.asking -= 1
                self._waits(running)

        return asked

    async def _polled(self, running: _Running, question: Question) -> Reply:
        settled: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        approvals = self._services.approvals
        # ``Approvals.ask`` lists the question and tells of its end; here it only gets the token that answers it
        request = approvals.hand_out(
            question, None, lambda reply: None if settled.done() else settled.set_result(reply)
        )
        token = str(request.token)
        approvals.withdraw(token)
        running.handed_out[token] = question, request
        try:
            return await settled
        finally:
            del running.handed_out[token]
            approvals.close_question(token)

    def _waits(self, running: _Running) -> None:
        """Notes and tells whether a task waits for a person."""
        row, status = running.row, "inputRequired" if running.asking else "working"
        if running.ended.is_set() or row.status == status:
            return
        row.status = status
        self._services.store.post(lambda db: rows.note_status(db, row.task_id, status))
        self._services.tell("task/changed", rows.to_task(row))

    async def _work(self, running: _Running, call: Invocation, run: Run) -> None:
        row = running.row
        if self._gate is None:
            self._gate = asyncio.Semaphore(AT_ONCE)
        try:
            with self._services.running_calls.entered(row.call_id, row.session_id, running.cancelled):
                try:
                    await unless_cancelled(running.cancelled, self._gate.acquire())
                    has_room = True
                except Stopped:
                    has_room = False  # it was cancelled, so it runs no further than to say so
                try:
                    result = await run(call)
                finally:
                    if has_room:
                        self._gate.release()
            if self._closing and result.error is not UNSET and result.error == rows.lost(rows.ENDED):
                return  # ``close`` writes it
            await self._ended(running, result, call.trail.secrets)
            if row.status != "cancelled" and self._services.settings.tasks.callback_url:
                self._call_back_soon(row.task_id, call.trail)
        except BaseException as error:
            why = rows.ENDED if isinstance(error, asyncio.CancelledError) else f"{type(error).__name__}: {error}"
            if not running.ended.is_set():
                row.ended, row.status = time.time(), "failed"
                text = f"the task was ended by {type(error).__name__}: {error}"
                call.result.status, call.result.error = "error", failure("ServiceError", text, code="taskLost")
                row.result = stored_result(call.result, call.trail.secrets)
                self._services.store.post(lambda db: rows.end(db, self._root, row))
            call.trail.note("task.lost", "error", taskId=row.task_id, message=why)
            if not isinstance(error, Exception):
                raise
        finally:
            del self._running[row.task_id]
            running.ended.set()
            for token in list(running.handed_out):
                self._services.approvals.close_question(token)  # nobody finds it any more
            self._services.owner.end()
            if not self._running and self._looking is not None:
                self._looking.cancel()
                self._looking = None

    async def _ended(self, running: _Running, result: ExecutionResult, secrets: tuple[str, ...]) -> None:
        row = running.row
        if running.telling is not None:
            running.telling.cancel()
        row.ended = time.time()
        row.result = stored_result(result, secrets)
        row.status = {"success": "completed", "cancelled": "cancelled"}.get(result.status, "failed")
        row.progress = None if running.progress is None else msgspec.json.encode(running.progress)
        # as long as none has more than its share, all of them fit
        large = len(row.result) * self._services.settings.tasks.keep > rows.MAX_BYTES

        def write(db: sqlite3.Connection) -> None:
            rows.end(db, self._root, row)
            if large:
                rows.prune_large(db)

        await self._services.store.run(write)
        running.ended.set()
        self._services.tell("task/changed", rows.to_task(row))

    def _call_back_soon(self, task_id: str, trail: Trail) -> None:
        """Tells the URL of a task's end, apart from it: who is slow to take it keeps no task from beginning."""
        if len(self._calling) >= MAX_UNFINISHED:
            trail.note("task.calledBack", "warning", taskId=task_id, problem=f"{MAX_UNFINISHED} call-backs wait")
            return
        calling = asyncio.get_running_loop().create_task(self._call_back(task_id, trail))
        self._calling.add(calling)
        calling.add_done_callback(self._calling.discard)

    async def _call_back(self, task_id: str, trail: Trail) -> None:
        from tamis.server.runtime.execution.tasks.callback import call_back

        text = rows.ENDED
        try:
            async with self._lines:
                # read again, since results may be large and many may wait
                task, settings = await self.get(task_id), self._services.settings
                text = "" if task is None else await call_back(settings.tasks.callback_url, task, settings.policy)
        except (sqlite3.Error, OSError) as error:
            text = f"{type(error).__name__}: {error}"
        finally:
            trail.note("task.calledBack", "warning" if text else "debug", taskId=task_id, problem=text)

    def _progress(self, running: _Running, task_progress: TaskProgress) -> None:
        running.progress = task_progress
        if running.telling is None and not running.ended.is_set():
            running.telling = asyncio.get_running_loop().call_later(PROGRESS_S, self._tell_progress, running)

    def _tell_progress(self, running: _Running) -> None:
        running.telling = None
        row = running.row
        row.progress = progress = msgspec.json.encode(running.progress)
        self._services.store.post(lambda db: rows.note_progress(db, row.task_id, progress))
        self._services.tell("task/changed", rows.to_task(row))

    async def _find(self, task_id: str) -> TaskRow | None:
        if not _ID.fullmatch(task_id):
            return None
        return await self._read(lambda db: rows.find(db, self._root, task_id))

    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """What ``work`` finds once the tasks of lost processes have been ended; they are written down."""
        lost, answer = await self._services.store.run(lambda db: (rows.give_up_lost(db), work(db)), durable=False)
        for row in lost:
            trail = Trail(
                self._services.audit(), Log("warning", self._services.settings.log_format), row.root, row.call_id
            )
            trail.of_tool(row.tool_id, row.version)
            trail.note("task.lost", "warning", taskId=row.task_id, message=rows.CRASHED)
        return answer

    async def _look(self) -> None:
        """Looks for cancels that other processes ask for, while tasks run here."""
        token = self._services.owner.token
        while True:
            await asyncio.sleep(_LOOK_S)
            with contextlib.suppress(sqlite3.Error):
                for task_id in await self._services.store.run(
                    lambda db: rows.asked_to_cancel(db, token), durable=False
                ):
                    if task_id in self._running:
                        self._running[task_id].cancelled.set()
