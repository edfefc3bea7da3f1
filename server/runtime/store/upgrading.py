"""A connection to the store made ready: how it writes, and its tables brought up to date. Must not know files, or what the rows mean."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable
from typing import TypeVar

# The tables of the store, one entry for each part that keeps something, in the order in which they came. An entry that a release has had never
# changes and never moves: a file says only how many of them it has (``user_version``). A change of a table is a further entry. Statements may meet
# what is there already.


MIGRATIONS: tuple[tuple[str, ...], ...] = (
    # who works on what: a row that names an owner who is gone is nobody's
    ("CREATE TABLE IF NOT EXISTS owners (owner TEXT PRIMARY KEY, beat REAL NOT NULL) WITHOUT ROWID",),
    # results by idempotency key (ruling 26): a row without a result is a run that its owner has not ended yet
    (
        """CREATE TABLE IF NOT EXISTS replays (
            key BLOB PRIMARY KEY, content BLOB NOT NULL, owner TEXT NOT NULL,
            created REAL NOT NULL, size INTEGER NOT NULL DEFAULT 0, result BLOB
        ) WITHOUT ROWID""",
        "CREATE INDEX IF NOT EXISTS replays_kept ON replays (created, size) WHERE result IS NOT NULL",
        # random numbers of this store: what is hashed with them cannot be guessed from the hash
        "CREATE TABLE IF NOT EXISTS secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
    ),
    # calls that outlive their request (D92)
    (
        """CREATE TABLE IF NOT EXISTS tasks (
            number INTEGER PRIMARY KEY, task_id TEXT NOT NULL UNIQUE, root TEXT NOT NULL, owner TEXT NOT NULL,
            status TEXT NOT NULL, call_id TEXT NOT NULL, tool_id TEXT NOT NULL, version TEXT NOT NULL, session_id TEXT NOT NULL,
            created REAL NOT NULL, ended REAL, progress BLOB, result BLOB, cancel INTEGER NOT NULL DEFAULT 0
        )""",
        "CREATE INDEX IF NOT EXISTS tasks_root ON tasks (root, number)",
        "CREATE INDEX IF NOT EXISTS tasks_owner ON tasks (status, owner)",
    ),
    # how often each tool was called (D87)
    (
        """CREATE TABLE IF NOT EXISTS usage (
            root TEXT NOT NULL, tool_id TEXT NOT NULL, calls INTEGER NOT NULL, failures INTEGER NOT NULL, last_used REAL NOT NULL,
            PRIMARY KEY (root, tool_id)
        ) WITHOUT ROWID""",
    ),
    # answers that hold for later calls (ruling 40): what a digest binds, never arguments
    (
        """CREATE TABLE IF NOT EXISTS approvals (
            approval_id TEXT PRIMARY KEY, root TEXT NOT NULL, binding TEXT NOT NULL, kind TEXT NOT NULL, tool_id TEXT NOT NULL,
            version TEXT NOT NULL, agent_id TEXT NOT NULL, permissions BLOB NOT NULL, created REAL NOT NULL, UNIQUE (root, binding)
        ) WITHOUT ROWID""",
    ),
    # the world's state and each agent's private one, as JSON (seed 000 §4.2)
    (
        """CREATE TABLE IF NOT EXISTS states (
            root TEXT NOT NULL, holder TEXT NOT NULL, value BLOB NOT NULL, changed REAL NOT NULL, PRIMARY KEY (root, holder)
        ) WITHOUT ROWID""",
    ),
    # results are counted without being read: an index that names the result reads each one
    (
        "DROP INDEX IF EXISTS replays_kept",
        "CREATE INDEX IF NOT EXISTS replays_sizes ON replays (created, size)",
    ),
)


T = TypeVar("T")

_APPLICATION = 0x54616D73  # "Tams"


class NotOurs(Exception):  # noqa: N818 (an outcome, not a fault)
    """A database, but not one of ours."""


class Newer(Exception):  # noqa: N818 (an outcome, not a fault)
    """A database of a newer version."""


def prepare(connection: sqlite3.Connection, wait_s: float) -> None:
    """Sets how the file is written, and migrates it. Raises ``NotOurs``, ``Newer``, ``sqlite3.Error``."""
    until = time.monotonic() + wait_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            # the change of mode does not wait for others by itself
            if code_of(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) or time.monotonic() > until:
                raise
            time.sleep(0.02)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA secure_delete = ON")
    migrate(connection)


def migrate(connection: sqlite3.Connection) -> None:
    """Makes the tables that are missing, and takes no right to write when none is. Raises ``NotOurs``, ``Newer``, ``sqlite3.Error``."""
    if _marks(connection) == (_APPLICATION, len(MIGRATIONS)):
        return

    def apply(db: sqlite3.Connection) -> None:
        application, version = _marks(db)
        if application != _APPLICATION and db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            raise NotOurs("it is not a store of this program")
        if version > len(MIGRATIONS):
            raise Newer(
                f"it is of a newer version of this program ({version}, this one knows {len(MIGRATIONS)}); update this one"
            )
        if version == len(MIGRATIONS):
            return
        for statements in MIGRATIONS[max(version, 0) :]:
            for statement in statements:
                try:
                    db.execute(statement)
                except sqlite3.OperationalError as error:
                    if code_of(error) != sqlite3.SQLITE_ERROR:
                        raise
                    raise NotOurs(f"its tables are not those of this program ({error})") from None
        db.execute(f"PRAGMA application_id = {_APPLICATION}")
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    in_transaction(connection, apply)


def _marks(connection: sqlite3.Connection) -> tuple[int, int]:
    """Whose file it is, and of which version."""
    (application,), (version,) = (
        connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
    )
    return application, version


def is_whole(connection: sqlite3.Connection) -> bool:
    """Whether every table is there with its columns, whatever version the file says that it is of."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as model:
        migrate(model)
        return _columns(model) <= _columns(connection)


def _columns(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    query = "SELECT m.name, c.name FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c WHERE m.type = 'table'"
    return {(str(table), str(column)) for table, column in connection.execute(query)}


def begin(connection: sqlite3.Connection) -> None:
    """Takes the only right to write."""
    connection.execute("BEGIN IMMEDIATE")


def in_transaction(
    connection: sqlite3.Connection,
    work: Callable[[sqlite3.Connection], T],
    start: Callable[[sqlite3.Connection], None] = begin,
) -> T:
    """What ``work`` gives; it is undone when it raises. ``start`` begins the transaction."""
    start(connection)
    try:
        result = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        raise
    return result


def code_of(error: sqlite3.Error) -> int:
    """The primary result code; extended ones carry more in their higher bits."""
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)) & 0xFF
