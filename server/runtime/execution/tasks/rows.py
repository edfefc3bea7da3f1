"""The rows of tasks in the store: each function is the work of one transaction.

A task that its owner left, because the process ended without a word, becomes ``failed`` whenever anyone looks. Must not know asyncio
nor what runs a task.
"""

from __future__ import annotations

import sqlite3
import time
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from tamis.protocols.contract import ExecutionError, ExecutionResult, Status, Task, TaskProgress
from tamis.protocols.observation import observation
from tamis.server.runtime.calls.runner import empty_result, failure
from tamis.server.runtime.observe.redaction import read_result, stored_result
from tamis.server.runtime.store.owners import is_gone

CRASHED = "the process that ran it was ended from outside or crashed"
ENDED = "the daemon that ran it was ended"
"""Why a task is lost."""
MAX_BYTES = 268_435_456
"""How many bytes of results are kept at most."""
UNFINISHED = ("working", "inputRequired")
_OPEN = "('working', 'inputRequired')"
_COLUMNS = (
    "number, root, task_id, owner, status, call_id, tool_id, version, session_id, created, ended, progress, result"
)


class TaskRow(msgspec.Struct, kw_only=True):
    """A task as it stands in the store; times are seconds since the epoch."""

    number: int = 0
    root: str = ""
    task_id: str
    owner: str
    status: str = "working"
    call_id: str
    tool_id: str
    version: str
    session_id: str
    created: float = msgspec.field(default_factory=time.time)
    ended: float | None = None
    progress: bytes | None = None
    result: bytes | None = None


def insert(db: sqlite3.Connection, root: str, row: TaskRow) -> None:
    """A new task; nothing when it is there."""
    values = (row.task_id, root, row.owner, row.call_id, row.tool_id, row.version, row.session_id, row.created)
    db.execute(
        """INSERT OR IGNORE INTO tasks (task_id, root, owner, status, call_id, tool_id, version, session_id, created)
        VALUES (?, ?, ?, 'working', ?, ?, ?, ?, ?)""",
        values,
    )


def end(db: sqlite3.Connection, root: str, row: TaskRow) -> bool:
    """Writes how a task ended; False when it had ended before. A row that was lost with its file is made again."""
    insert(db, root, row)
    change = (
        "UPDATE tasks SET status = ?, ended = ?, result = ?, progress = coalesce(?, progress)"
        f" WHERE task_id = ? AND status IN {_OPEN}"
    )
    return db.execute(change, (row.status, row.ended, row.result, row.progress, row.task_id)).rowcount == 1


def note_progress(db: sqlite3.Connection, task_id: str, progress: bytes) -> None:
    """How far a task is that has not ended."""
    db.execute(f"UPDATE tasks SET progress = ? WHERE task_id = ? AND status IN {_OPEN}", (progress, task_id))


def note_status(db: sqlite3.Connection, task_id: str, status: str) -> None:
    """Whether a task that has not ended works or waits for a person."""
    db.execute(f"UPDATE tasks SET status = ? WHERE task_id = ? AND status IN {_OPEN}", (status, task_id))


def find(db: sqlite3.Connection, root: str, task_id: str) -> TaskRow | None:
    """One task of a root."""
    row = db.execute(f"SELECT {_COLUMNS} FROM tasks WHERE task_id = ? AND root = ?", (task_id, root)).fetchone()
    return None if row is None else _row(row)


def page(db: sqlite3.Connection, root: str, before: int | None, limit: int) -> list[TaskRow]:
    """The tasks of a root, the newest first, of those before a number, without their results."""
    columns = _COLUMNS.replace(", result", ", CASE WHEN status = 'failed' THEN result END")
    cursor = db.execute(
        f"SELECT {columns} FROM tasks WHERE root = ? AND number < ? ORDER BY number DESC LIMIT ?",
        (root, before if before is not None else 2**62, limit),
    )
    return [_row(item) for item in cursor.fetchall()]


def ask_to_cancel(db: sqlite3.Connection, root: str, task_id: str) -> None:
    """Leaves word for the owner that a task of a root is to be cancelled."""
    db.execute(f"UPDATE tasks SET cancel = 1 WHERE task_id = ? AND root = ? AND status IN {_OPEN}", (task_id, root))


def asked_to_cancel(db: sqlite3.Connection, owner: str) -> list[str]:
    """Which tasks of an owner others want cancelled."""
    cursor = db.execute(f"SELECT task_id FROM tasks WHERE owner = ? AND cancel = 1 AND status IN {_OPEN}", (owner,))
    return [task_id for (task_id,) in cursor.fetchall()]


def unfinished_of_session(db: sqlite3.Connection, root: str, session_id: str) -> list[str]:
    """The tasks of a session that have not ended."""
    cursor = db.execute(
        f"SELECT task_id FROM tasks WHERE root = ? AND session_id = ? AND status IN {_OPEN} ORDER BY number",
        (root, session_id),
    )
    return [task_id for (task_id,) in cursor.fetchall()]


def give_up_lost(db: sqlite3.Connection) -> list[TaskRow]:
    """Ends the tasks whose owners are gone, whatever their root; these tasks."""
    owners = db.execute(f"SELECT DISTINCT owner FROM tasks WHERE status IN {_OPEN}").fetchall()
    return [row for (owner,) in owners if is_gone(db, owner) for row in give_up(db, owner, CRASHED)]


def give_up(db: sqlite3.Connection, owner: str, why: str) -> list[TaskRow]:
    """Ends all unfinished tasks of an owner as ``failed``; these tasks."""
    raw_rows = db.execute(f"SELECT {_COLUMNS} FROM tasks WHERE owner = ? AND status IN {_OPEN}", (owner,)).fetchall()
    rows = [_row(row) for row in raw_rows]
    for row in rows:
        result = _without_outcome(row, "error", lost(why))
        row.status, row.ended, row.result = "failed", time.time(), stored_result(result)
        change = "UPDATE tasks SET status = 'failed', ended = ?, result = ? WHERE task_id = ?"
        db.execute(change, (row.ended, row.result, row.task_id))
    return rows


def lost(why: str) -> ExecutionError:
    """The error of a task that nobody goes on with."""
    return failure("ServiceError", f"the task did not end: {why}; call the tool again", code="taskLost")


def prune(db: sqlite3.Connection, keep: int, keep_seconds: int) -> None:
    """Forgets tasks that ended: those that are too old, and the oldest of too many."""
    now = time.time()
    # what ended in the future, because a clock was set back, would be kept until the clock is there again
    db.execute("UPDATE tasks SET ended = ?1 WHERE ended > ?1", (now,))
    db.execute("DELETE FROM tasks WHERE ended < ?", (now - keep_seconds,))
    db.execute(
        f"""DELETE FROM tasks WHERE number IN
        (SELECT number FROM tasks WHERE status NOT IN {_OPEN} ORDER BY number DESC LIMIT -1 OFFSET ?)""",
        (max(keep, 1),),
    )


def prune_large(db: sqlite3.Connection) -> None:
    """Forgets the oldest tasks that ended, as far as all results together are too large."""
    ended = f"SELECT number, coalesce(length(result), 0) AS size FROM tasks WHERE status NOT IN {_OPEN}"
    newest = f"SELECT number, sum(size) OVER (ORDER BY number DESC) AS held FROM ({ended})"
    db.execute(f"DELETE FROM tasks WHERE number IN (SELECT number FROM ({newest}) WHERE held > ?)", (MAX_BYTES,))


def result_of(row: TaskRow) -> ExecutionResult:
    """The result of a task that has ended; of one that has not, that it was accepted."""
    if row.result is not None:
        return read_result(row.result)
    return _without_outcome(row, "accepted")


def _without_outcome(row: TaskRow, status: Status, error: ExecutionError | UnsetType = UNSET) -> ExecutionResult:
    result = empty_result(row.call_id, row.tool_id, status, version=row.version)
    result.error, result.task_id = error, row.task_id
    result.observation = observation(result, "action")
    return result


def to_task(row: TaskRow) -> Task:
    """A row as hosts see it."""
    result = None if row.result is None else read_result(row.result)
    status: Any = row.status
    return Task(
        task_id=row.task_id,
        status=status,
        created_at=_time(row.created),
        # a clock that was set back meanwhile: no task ends before it is made
        ended_at=UNSET if row.ended is None else _time(max(row.created, row.ended)),
        tool_id=row.tool_id,
        call_id=row.call_id,
        session_id=row.session_id or UNSET,
        progress=UNSET if row.progress is None else msgspec.json.decode(row.progress, type=TaskProgress),
        result=result if result is not None and row.status == "completed" else UNSET,
        error=result.error if result is not None and row.status == "failed" else UNSET,
    )


def _row(columns: tuple[Any, ...]) -> TaskRow:
    return TaskRow(**dict(zip(TaskRow.__struct_fields__, columns, strict=True)))


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
