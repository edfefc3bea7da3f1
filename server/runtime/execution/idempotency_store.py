"""The store's shelf of results by idempotency key: for every process on the store, and after a restart (ruling 26, T24).

A row without a result is a lease: its owner runs the call. The lease of an owner that is gone can be taken by who may run the call twice,
and is free for all when a result would have been forgotten. Must not know what a call is.
"""

from __future__ import annotations

import hmac
import os
import sqlite3
import time
from collections.abc import Callable

from tamis.server.runtime.execution.idempotency import KeyReused, RunLost, StoreHeld
from tamis.server.runtime.settings.config import IdempotencySettings
from tamis.server.runtime.store.database import Held
from tamis.server.runtime.store.owners import Owner, Sight, is_gone, sight_of
from tamis.server.runtime.store.store import Store

MAX_BYTES = 268_435_456
"""How many bytes of results are kept at most."""


class StoreShelf:
    """The results of one scope (a root): the same key in another scope is another one."""

    def __init__(self, store: Store, owner: Owner, scope: str, bounds: Callable[[], IdempotencySettings]) -> None:
        """``bounds``: how many results are kept at most, and how long; asked anew each time, because settings change."""
        self._store = store
        self._owner = owner
        self._scope = scope.encode("utf-8", "surrogateescape")
        self._bounds = bounds
        self._taken: dict[bytes, bytes] = {}
        self._unprotected: set[bytes] = set()
        """Keys whose run began while others could not see it."""

    async def take(self, key: bytes, content: bytes, *, again: bool) -> bytes | None:
        """See ``Shelf``."""
        # of a power cut nobody is left who runs it
        try:
            record, in_file = await self._store.run_shared(
                lambda db: (self._take(db, key, content, again), _is_file(db)),
            )
        except Held as held:
            raise StoreHeld(str(held)) from None
        if isinstance(record, Exception):
            raise record
        if record is None:
            self._taken[key] = content
            (self._unprotected.discard if in_file else self._unprotected.add)(key)
            self._owner.begin()
        return record

    def protects(self, key: bytes) -> bool:
        """See ``Shelf``."""
        return key not in self._unprotected and not self._store.problem

    async def sight(self, key: bytes) -> tuple[Sight, float] | None:
        """See ``Shelf``."""

        def look(db: sqlite3.Connection) -> tuple[Sight, float] | None:
            query = "SELECT owner, created FROM replays WHERE key = ? AND result IS NULL"
            row = db.execute(query, (_hashed(db, self._scope, key),)).fetchone()
            return None if row is None else (sight_of(db, row[0]), max(0.0, time.time() - row[1]))

        return await self._store.run(look, durable=False)

    async def has(self, key: bytes, *, again: bool) -> bool:
        """See ``Shelf``."""

        def look(db: sqlite3.Connection) -> bool:
            query = "SELECT owner, created, size = 0 FROM replays WHERE key = ?"
            row = db.execute(query, (_hashed(db, self._scope, key),)).fetchone()
            return row is not None and not self._is_free(db, *row, again=again)

        return await self._store.run(look)

    async def put(self, key: bytes, result: bytes) -> None:
        """See ``Shelf``."""
        content = self._taken[key]

        def write(db: sqlite3.Connection) -> None:
            named = _hashed(db, self._scope, key)
            row = (named, _hashed(db, named, content), self._owner.token, time.time(), len(result), result)
            db.execute(
                """INSERT INTO replays (key, content, owner, created, size, result) VALUES (?, ?, ?, ?, ?, ?)
                ON CONFLICT (key) DO UPDATE SET size = excluded.size, result = excluded.result, created = excluded.created
                WHERE owner = excluded.owner AND result IS NULL""",
                row,
            )
            forget_old(db, self._bounds())

        try:
            await self._store.run(write, size=len(result))
        finally:
            self._release(key)

    def free(self, key: bytes) -> None:
        """See ``Shelf``."""
        token = self._owner.token

        def write(db: sqlite3.Connection) -> None:
            named = _hashed(db, self._scope, key)
            db.execute("DELETE FROM replays WHERE key = ? AND owner = ? AND result IS NULL", (named, token))

        self._store.post(write)
        self._release(key)

    def _release(self, key: bytes) -> None:
        if self._taken.pop(key, None) is not None:
            self._unprotected.discard(key)
            self._owner.end()

    def _take(self, db: sqlite3.Connection, key: bytes, text: bytes, again: bool) -> bytes | Exception | None:
        """An exception is given, not raised: what was written down on the way stays."""
        named = _hashed(db, self._scope, key)
        digest = _hashed(db, named, text)
        now = time.time()
        _none_ahead(db, now)
        row = db.execute("SELECT content, owner, created, result FROM replays WHERE key = ?", (named,)).fetchone()
        if row is not None:
            content, owner, created, result = row
            if not self._is_free(db, owner, created, result is None, again=again):
                if not hmac.compare_digest(content, digest):
                    return KeyReused()
                if result is None and is_gone(db, owner):
                    return RunLost()
                return result or b""
        self._owner.mark(db)
        values = (named, digest, self._owner.token, now)
        db.execute("INSERT OR REPLACE INTO replays (key, content, owner, created) VALUES (?, ?, ?, ?)", values)
        return None

    def _is_free(self, db: sqlite3.Connection, owner: str, created: float, runs: bool, *, again: bool) -> bool:
        """Whether a row stands for nothing any more: its time is over, or its run was lost and may be made ``again``."""
        expired = time.time() - created > self._bounds().keep_seconds
        return (expired or again) and is_gone(db, owner) if runs else expired


def forget_old(db: sqlite3.Connection, own: IdempotencySettings) -> None:
    """Forgets results that are too old, and the oldest of too many or too large ones."""
    now = time.time()
    _none_ahead(db, now)
    # every result has a size, and no run has: what a result holds is not read for it
    db.execute("DELETE FROM replays WHERE size > 0 AND created < ?", (now - own.keep_seconds,))
    count, size = db.execute("SELECT count(*), total(size) FROM replays WHERE size > 0").fetchone()
    while count > max(own.keep, 1) or size > MAX_BYTES:
        oldest = "SELECT key, size FROM replays WHERE size > 0 ORDER BY created LIMIT 1"
        row = db.execute(oldest).fetchone()
        if row is None:
            break
        db.execute("DELETE FROM replays WHERE key = ?", (row[0],))
        count, size = count - 1, size - row[1]


def _is_file(db: sqlite3.Connection) -> bool:
    """Whether other processes see what is written."""
    return bool(db.execute("PRAGMA database_list").fetchone()[2])


def _none_ahead(db: sqlite3.Connection, now: float) -> None:
    """What is from the future, because a clock was set back, is from now: else its time would not end before the clock is there again."""
    db.execute("UPDATE replays SET created = ?1 WHERE created > ?1", (now,))


def _hashed(db: sqlite3.Connection, *parts: bytes) -> bytes:
    """A hash under the store's own random key, so that no table of hashes made elsewhere finds what was hashed."""
    row = db.execute("SELECT value FROM secrets WHERE name = 'replays'").fetchone()
    if row is None:
        row = (os.urandom(32),)
        db.execute("INSERT INTO secrets VALUES ('replays', ?)", row)
    return hmac.digest(row[0], b"".join(len(part).to_bytes(8, "big") + part for part in parts), "sha256")
