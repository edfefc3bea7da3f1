"""A connection to the store made ready: how it writes, and its tables brought up to date. Must not know files, or what the rows mean."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable
from typing import TypeVar

from tamis.server.runtime.store.tables import MIGRATIONS

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
    """Makes the tables that are missing. Raises ``NotOurs``, ``Newer``, ``sqlite3.Error``."""

    def apply(db: sqlite3.Connection) -> None:
        (application,), (version,) = (
            db.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
        )
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


def is_whole(connection: sqlite3.Connection) -> bool:
    """Whether every table is there with its columns, whatever version the file says that it is of."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as model:
        migrate(model)
        return _columns(model) <= _columns(connection)


def _columns(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    query = "SELECT m.name, c.name FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c WHERE m.type = 'table'"
    return {(str(table), str(column)) for table, column in connection.execute(query)}


def in_transaction(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    """What ``work`` gives; it is undone when it raises."""
    connection.execute("BEGIN IMMEDIATE")
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
