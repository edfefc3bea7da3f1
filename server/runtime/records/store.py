"""The store: one SQLite file in the state folder for what must outlive a process: results by key, tasks, approvals, counters.

Any number of processes use one file. Whatever is wrong with it never fails a call: then the store goes on in memory, with what
could still be read, and ``Store.problem`` says why. It is opened with the first need. Must not know what the rows mean.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import queue
import sqlite3
import stat
import threading
import time
import weakref
from collections.abc import Callable, Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from tamis.server.runtime.records.folders import make_private, state_folder
from tamis.server.runtime.records.tables import MIGRATIONS

T = TypeVar("T")

FILE_NAME = "tamis.db"
BUSY_S = 5.0
"""How long another process may hold the file before this one goes on in memory."""
MAX_COPIED_BYTES = 64 * 1024 * 1024
"""Up to which size what the file holds is taken along into memory."""
CLOSE_S = 0.2
ATTEMPTS = 4
"""How often a file that turned out damaged or replaced is begun anew before memory is used."""
_APPLICATION = 0x54616D73  # "Tams"
_SIDE_FILES = ("-wal", "-shm", "-journal")

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNUSABLE = {
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOLFS,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_TOOBIG,
}


def _serve(
    work: queue.SimpleQueue[Callable[[], None] | None], former: threading.Thread | None, owner: weakref.ref[Store]
) -> None:
    if former is not None:
        former.join()
    while (job := work.get()) is not None:
        job()
        del job  # it holds the store
    if (store := owner()) is not None:
        store.release()


class Store:
    """One file, one thread of its own that works on it."""

    def __init__(self, folder: Path | None = None, say: Callable[[str], object] = str) -> None:
        """``folder`` None is the state folder. ``say`` is told each new problem once, from the store's thread."""
        self.path = (folder or state_folder()) / FILE_NAME
        self.problem = ""
        """Why what is stored is in memory only, with the remedy; empty when it is in the file."""
        self._say = say
        self._connection: sqlite3.Connection | None = None
        self._identity = (0, 0)
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._former: threading.Thread | None = None
        self._has_turn = False
        self._end: weakref.finalize[..., Store] | None = None

    @property
    def is_open(self) -> bool:
        """Whether anything was asked of it yet."""
        return self._thread is not None

    async def run(self, work: Callable[[sqlite3.Connection], T], *, durable: bool = True) -> T:
        """What ``work`` gives, run in the store's thread as one transaction that holds the only right to write.

        What it wrote survives the end of this process however that comes, and with ``durable`` a power cut too, which costs a write
        to the disk.
        ``work`` is undone when it raises, and its exception is raised here. It may be run a second time when the file turned out
        unusable, so it must do nothing but read and write rows.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def answer(set_it: Callable[[Any], None], value: object) -> None:
            if not future.done():
                set_it(value)

        def job() -> None:
            try:
                result = self._worked(work, durable)
            except BaseException as error:
                told = (answer, future.set_exception, error)
            else:
                told = (answer, future.set_result, result)
            # nobody waits any more when the loop has ended
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(*told)

        self._put(job)
        return await future

    def post(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """Has ``work`` run like ``run`` does (not ``durable``), without waiting for it; what it raises is told to ``say``."""

        def job() -> None:
            try:
                self._worked(work, False)
            except Exception as error:
                self._say(f"the store {self.path} did not take a change: {type(error).__name__}: {error}")

        self._put(job)

    def _put(self, job: Callable[[], None]) -> None:
        if self._thread is None:
            # daemonic: a file that someone holds must not hold back the end of the process
            self._thread = threading.Thread(
                target=_serve, args=(self._work, self._former, weakref.ref(self)), name="tamis-store", daemon=True
            )
            self._thread.start()
            # a store that nobody closed and nobody holds takes its thread and its file with it
            self._end = weakref.finalize(self, self._work.put, None)
            self._end.atexit = False
        self._work.put(job)

    def look(self) -> str:
        """Opens the file as the first need would, in this thread, and closes it; the problem with it, or an empty text. Not for a store that is in use."""
        try:
            self._opened()
            return self.problem
        finally:
            self._disconnect()

    async def close(self) -> None:
        """Ends what was begun, within a moment, and the thread; a later ``run`` opens the file again."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._former = thread
        self._work = queue.SimpleQueue()
        if self._end is not None:
            self._end()
        until = time.monotonic() + CLOSE_S
        while thread.is_alive() and time.monotonic() < until:
            await asyncio.sleep(0.002)

    def release(self) -> None:
        """Closes the file; for the store's own thread when it ends."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def _worked(self, work: Callable[[sqlite3.Connection], T], durable: bool) -> T:
        for _ in range(ATTEMPTS):
            try:
                connection = self._opened()
                connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                return _in_transaction(connection, work)
            except sqlite3.Error as error:
                code = _code(error)
                if self._in_memory or code not in _UNUSABLE | _DAMAGED:
                    raise
                if self._identity != _identity(self.path):
                    # another process has moved it aside meanwhile: the file that is there now is not to blame
                    self._disconnect()
                elif code in _DAMAGED:
                    self._mend("it is damaged")
                else:
                    self._to_memory(_cause(error))
        self._to_memory("it is damaged again and again")
        return _in_transaction(self._opened(), work)

    @property
    def _in_memory(self) -> bool:
        return self._connection is not None and self._identity == (0, 0)

    def _opened(self) -> sqlite3.Connection:
        if self._connection is not None and (self._in_memory or self._identity == _identity(self.path)):
            return self._connection
        self._disconnect()
        try:
            with self._turn():
                return self._opened_in_turn()
        except OSError as error:
            return self._to_memory(_words(error))

    def _opened_in_turn(self) -> sqlite3.Connection:
        for _ in range(ATTEMPTS):
            try:
                return self._open()
            except _NotOurs as error:
                self._mend(str(error))
            except sqlite3.Error as error:
                if _code(error) not in _DAMAGED:
                    return self._to_memory(_cause(error))
                self._mend("it is damaged")
            except _Newer as error:
                return self._to_memory(str(error))
            except (OSError, ValueError) as error:
                return self._to_memory(_words(error))
            if self._connection is not None:
                return self._connection
        return self._to_memory("it is damaged again and again")

    def _mend(self, cause: str) -> None:
        try:
            self._set_aside(cause)
        except OSError as error:
            self._to_memory(f"{cause}, and it cannot be moved aside: {_words(error)}")

    def _open(self) -> sqlite3.Connection:
        make_private(self.path.parent)
        # never through a descriptor: closing one would drop the locks that SQLite has on the file in this process
        with contextlib.suppress(FileExistsError):
            os.mknod(self.path, stat.S_IFREG | 0o600)
        facts = os.stat(self.path, follow_symlinks=False)
        if not stat.S_ISREG(facts.st_mode):
            raise ValueError("it is no plain file")
        if facts.st_uid != os.geteuid():
            raise PermissionError(1, "it belongs to another user")
        if facts.st_mode & 0o077:
            os.chmod(self.path, 0o600)
        self._connection = connection = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None)
        self._identity = (facts.st_dev, facts.st_ino)
        _prepare(connection)
        if self.problem:
            self.problem = ""
        return connection

    def _to_memory(self, cause: str) -> sqlite3.Connection:
        memory = sqlite3.connect(":memory:", isolation_level=None)
        former = self._connection
        if former is not None and not self._in_memory:
            # the file may be full, locked for writing or not writable: then what it holds can still be read
            with contextlib.suppress(sqlite3.Error):
                pages, size = (former.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
                version = former.execute("PRAGMA user_version").fetchone()[0]
                if pages * size <= MAX_COPIED_BYTES and version <= len(MIGRATIONS):
                    former.backup(memory)
        self._disconnect()
        try:
            _migrate(memory)
        except (_NotOurs, _Newer, sqlite3.Error):
            memory.close()
            memory = sqlite3.connect(":memory:", isolation_level=None)
            _migrate(memory)
        self._connection, self._identity = memory, (0, 0)
        self._tell(
            f"the store {self.path} cannot be used: {cause}; what is stored is kept in memory until this process ends"
        )
        return memory

    def _set_aside(self, cause: str) -> None:
        """Moves a file that cannot be read out of the way, with its side files; never deletes it. Raises OSError when it cannot."""
        bad = self._identity
        self._disconnect()
        # of several processes that found it one moves it, and none the new one
        with self._turn():
            if _identity(self.path) != bad:
                return
            dated = f"{self.path}.{datetime.now(UTC):%Y%m%dT%H%M%S}"
            target = next(
                name for n in range(10_000) if not os.path.lexists(name := f"{dated}{f'-{n}' if n else ''}.bad")
            )
            # these first: once the file is gone, they may be those of a new one
            for side in _SIDE_FILES:
                with contextlib.suppress(OSError):
                    os.rename(f"{self.path}{side}", f"{target}{side}")
            os.rename(self.path, target)
        self._say(f"the store {self.path} cannot be read: {cause}; it was moved to {target} and a new one was begun")

    @contextlib.contextmanager
    def _turn(self) -> Generator[None]:
        """The right to open or move the file, which one store of all processes has at a time; one that is kept too long is passed over.

        A file that is moved aside between two steps of opening it makes SQLite fail in many ways.
        """
        if self._has_turn:
            yield
            return
        make_private(self.path.parent)
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        until = time.monotonic() + BUSY_S
        self._has_turn = True
        try:
            while True:
                try:
                    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    if time.monotonic() < until:
                        time.sleep(0.002)
                        continue
                except OSError:
                    pass  # a file system without locks
                break
            yield
        finally:
            self._has_turn = False
            os.close(folder)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        self._identity = (0, 0)
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def _tell(self, problem: str) -> None:
        if problem != self.problem:
            self.problem = problem
            self._say(problem)


class _NotOurs(Exception):  # noqa: N818 (an outcome, not a fault)
    """A database, but not one of ours."""


class _Newer(Exception):  # noqa: N818 (an outcome, not a fault)
    """A database of a newer version."""


def _in_transaction(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
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


def _prepare(connection: sqlite3.Connection) -> None:
    until = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            # the change of mode does not wait for others by itself
            if _code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) or time.monotonic() > until:
                raise
            time.sleep(0.02)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA secure_delete = ON")
    _migrate(connection)


def _migrate(connection: sqlite3.Connection) -> None:
    def apply(db: sqlite3.Connection) -> None:
        (application,), (version,) = (
            db.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
        )
        if application != _APPLICATION and db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            raise _NotOurs("it is not a store of this program")
        if version > len(MIGRATIONS):
            raise _Newer(
                f"it is of a newer version of this program ({version}, this one knows {len(MIGRATIONS)}); update this one"
            )
        if version == len(MIGRATIONS):
            return
        for statements in MIGRATIONS[max(version, 0) :]:
            for statement in statements:
                try:
                    db.execute(statement)
                except sqlite3.OperationalError as error:
                    if _code(error) != sqlite3.SQLITE_ERROR:
                        raise
                    raise _NotOurs(f"its tables are not those of this program ({error})") from None
        db.execute(f"PRAGMA application_id = {_APPLICATION}")
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    _in_transaction(connection, apply)


def _identity(path: Path) -> tuple[int, int]:
    try:
        facts = os.stat(path, follow_symlinks=False)
    except OSError:
        return (-1, -1)
    return facts.st_dev, facts.st_ino


def _code(error: sqlite3.Error) -> int:
    """The primary result code; extended ones carry more in their higher bits."""
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)) & 0xFF


def _words(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def _cause(error: sqlite3.Error) -> str:
    if _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return f"another process has held it for more than {BUSY_S:g} s"
    return str(error)
