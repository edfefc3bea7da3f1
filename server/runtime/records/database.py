"""The store's file: opened when it is needed, mended when it is damaged, memory in its place when it cannot be had.

A file that is not ours or cannot be read is moved aside, never deleted; one of a newer version is left alone. Belongs to one thread at a
time. Must not know who asks, or what the rows mean.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from tamis.server.runtime.records.folders import make_private
from tamis.server.runtime.records.tables import MIGRATIONS
from tamis.server.runtime.records.upgrading import Newer, NotOurs, code_of, in_transaction, is_whole, migrate, prepare

T = TypeVar("T")

BUSY_S = 5.0
"""How long another process may hold the file before this one goes on in memory."""
MAX_COPIED_BYTES = 64 * 1024 * 1024
"""Up to which size what the file holds is taken along into memory."""
ATTEMPTS = 4
"""How often a file that turned out damaged or replaced is begun anew before memory is used."""
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


class Database:
    """One file, or memory in its place."""

    def __init__(self, path: Path, say: Callable[[str], object]) -> None:
        """``say`` is told each new problem once."""
        self.path = path
        self.problem = ""
        """Why what is stored is in memory only, with the remedy; empty when it is in the file."""
        self._say = say
        self._connection: sqlite3.Connection | None = None
        self._identity = (0, 0)
        self._has_turn = False

    def run(self, work: Callable[[sqlite3.Connection], T], durable: bool) -> T:
        """What ``work`` gives, run as one transaction that holds the only right to write; see ``Store.run``."""
        for _ in range(ATTEMPTS):
            try:
                connection = self._opened()
                connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                return in_transaction(connection, work)
            except sqlite3.Error as error:
                code = code_of(error)
                if self._in_memory or (code not in _UNUSABLE | _DAMAGED and self._is_whole()):
                    raise
                if self._identity != _identity(self.path):
                    # another process has moved it aside meanwhile: the file that is there now is not to blame
                    self._disconnect()
                elif code in _DAMAGED:
                    self._mend("it is damaged")
                elif code in _UNUSABLE:
                    self._to_memory(_cause(error))
                else:
                    self._mend(f"its tables are not those of this program ({error})")
        self._to_memory("it is damaged again and again")
        return in_transaction(self._opened(), work)

    def look(self) -> str:
        """Opens the file as the first need would, in this thread, and closes it; the problem with it, or an empty text. Not for a store that is in use."""
        try:
            self._opened()
            return self.problem
        finally:
            self._disconnect()

    def close(self) -> None:
        """Closes the file; the next ``run`` opens it again."""
        self._disconnect()

    @property
    def _in_memory(self) -> bool:
        return self._connection is not None and self._identity == (0, 0)

    def _is_whole(self) -> bool:
        """Whether a failure is the fault of who asked: nothing is wrong with the tables."""
        try:
            return self._connection is None or is_whole(self._connection)
        except sqlite3.Error:
            return True

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
            except NotOurs as error:
                self._mend(str(error))
            except sqlite3.Error as error:
                if code_of(error) not in _DAMAGED:
                    return self._to_memory(_cause(error))
                self._mend("it is damaged")
            except Newer as error:
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
        prepare(connection, BUSY_S)
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
            migrate(memory)
            if not is_whole(memory):
                raise NotOurs
        except (NotOurs, Newer, sqlite3.Error):
            memory.close()
            memory = sqlite3.connect(":memory:", isolation_level=None)
            migrate(memory)
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


def _identity(path: Path) -> tuple[int, int]:
    try:
        facts = os.stat(path, follow_symlinks=False)
    except OSError:
        return (-1, -1)
    return facts.st_dev, facts.st_ino


def _words(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def _cause(error: sqlite3.Error) -> str:
    if code_of(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return f"another process has held it for more than {BUSY_S:g} s"
    return str(error)
