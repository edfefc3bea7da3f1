"""The store's file: opened when it is needed, mended when it is damaged, memory in its place while it cannot be had.

A file that is not ours or cannot be read is moved aside, never deleted; one of a newer version is left alone. What was written in memory
is done once more in the file when it can be had again. Belongs to one thread at a time. Must not know who asks, or what the rows mean.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import random
import sqlite3
import stat
import time
from collections import deque
from collections.abc import Callable, Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from tamis.server.runtime.store.folders import make_private
from tamis.server.runtime.store.upgrading import (
    MIGRATIONS,
    Newer,
    NotOurs,
    begin,
    code_of,
    in_transaction,
    is_whole,
    migrate,
    prepare,
)

T = TypeVar("T")

BUSY_S = 5.0
"""How long another process may hold the file before this one goes on in memory for the time being."""
TURNS_S = 60.0
"""How long it is waited for instead while others write in turn: that is a crowd, and everybody's turn comes."""
LOOKS = 10
"""How often within ``BUSY_S`` it is looked whether others write."""
BACK_S = 0.25
"""How long a file that memory stands in for is waited for when it is tried again."""
RETRY_S, MOST_RETRY_S = 1.0, 30.0
"""After how long it is tried again; twice as long each time that it still cannot be had."""
MAX_KEPT, MAX_KEPT_BYTES = 4096, 64 * 1024 * 1024
"""How many changes, and bytes of them, wait for the file at most; then the oldest of them are left out of it."""
CHANGE_BYTES = 1024
"""What a change counts as that does not say how large it is."""
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


class Held(Exception):  # noqa: N818 (an outcome, not a fault)
    """Another process holds the file: work that must be seen by all cannot be done now."""


class _Change(msgspec.Struct, frozen=True):
    """Work that wrote in memory, to be done once more in the file."""

    work: Callable[[sqlite3.Connection], object]
    size: int


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
        self._memory: sqlite3.Connection | None = None
        """In the file's place, while it cannot be had."""
        self._is_held = False
        """Whether it cannot be had because others use it."""
        self._changes: deque[_Change] = deque()
        self._left_out = 0
        self._retry_at, self._pause_s = 0.0, RETRY_S
        self._has_turn = False

    def run(
        self, work: Callable[[sqlite3.Connection], T], durable: bool, size: int = CHANGE_BYTES, *, shared: bool = False
    ) -> T:
        """What ``work`` gives, run as one transaction that holds the only right to write; see ``Store.run`` and ``run_shared``."""
        if shared and self._is_held:
            self._retry_at = 0.0
        for _ in range(ATTEMPTS):
            try:
                connection = self._opened()
                if shared and self._in_memory and self._is_held:
                    raise Held(self.problem)
                connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                return self._run_in(connection, work, size, shared=shared)
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
                    self._to_memory(_cause(error), held=_is_held(error))
                else:
                    self._mend(f"its tables are not those of this program ({error})")
        return self._run_in(self._to_memory("it is damaged again and again"), work, size)

    def _run_in(
        self,
        connection: sqlite3.Connection,
        work: Callable[[sqlite3.Connection], T],
        size: int,
        *,
        shared: bool = False,
    ) -> T:
        before = connection.total_changes
        result = in_transaction(connection, work, functools.partial(_begin_among, shared=shared))
        if connection is self._memory and connection.total_changes != before:
            self._changes.append(_Change(work, size))
            while len(self._changes) > MAX_KEPT or sum(change.size for change in self._changes) > MAX_KEPT_BYTES:
                self._changes.popleft()
                self._left_out += 1
        return result

    def due_s(self) -> float | None:
        """In how many seconds ``retry`` should be called when nothing else is asked meanwhile; None: never."""
        return None if self._memory is None else max(0.0, self._retry_at - time.monotonic())

    def retry(self) -> None:
        """Goes back to the file, if memory stands in for it and it can be had again. Raises nothing."""
        if self._memory is not None:
            self._opened()

    def look(self) -> str:
        """Opens the file as the first need would, in this thread, and closes it; the problem with it, or an empty text. Not for a store that is in use."""
        try:
            self.run(_nothing, False)
            return self.problem
        finally:
            self._disconnect()

    def close(self) -> None:
        """Closes the file; the next ``run`` opens it again. What is in memory is brought to it, if it can be had, and is gone otherwise."""
        self._retry_at = 0.0
        if self._changes:
            self.retry()
        self._disconnect()
        self._forget_memory()

    @property
    def _in_memory(self) -> bool:
        return self._connection is not None and self._connection is self._memory

    def _is_whole(self) -> bool:
        """Whether a failure is the fault of who asked: nothing is wrong with the tables."""
        try:
            return self._connection is None or is_whole(self._connection)
        except sqlite3.Error:
            return True

    def _opened(self) -> sqlite3.Connection:
        if self._in_memory:
            if time.monotonic() < self._retry_at:
                assert self._connection is not None
                return self._connection
        elif self._connection is not None and self._identity == _identity(self.path):
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
                    return self._to_memory(_cause(error), held=_is_held(error))
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
        wait_s = BUSY_S if self._memory is None else BACK_S
        self._connection = connection = sqlite3.connect(self.path, timeout=wait_s, isolation_level=None)
        self._identity = (facts.st_dev, facts.st_ino)
        prepare(connection, wait_s)
        if self._memory is not None:
            self._bring_back(connection)
        connection.execute(f"PRAGMA busy_timeout = {BUSY_S / LOOKS * 1000:.0f}")
        self.problem = ""
        return connection

    def _bring_back(self, connection: sqlite3.Connection) -> None:
        """Does in the file what was done in memory, all or nothing, and gives the memory up. Raises ``sqlite3.Error`` of the file."""
        faults: list[str] = []

        def work(db: sqlite3.Connection) -> None:
            for change in self._changes:
                db.execute("SAVEPOINT change")
                try:
                    change.work(db)
                except Exception as error:
                    if isinstance(error, sqlite3.Error) and code_of(error) in _UNUSABLE | _DAMAGED:
                        raise
                    # what the file holds meanwhile leaves no place for it
                    db.execute("ROLLBACK TO change")
                    faults.append(f"{type(error).__name__}: {error}")
                db.execute("RELEASE change")

        # also without a change: a disk that is full still, or a file that is held, is seen by writing
        connection.execute("PRAGMA synchronous = FULL")
        in_transaction(connection, work)
        text = f"the store {self.path} can be used again; {len(self._changes) - len(faults)} changes were brought to it from memory"
        if faults or self._left_out:
            text += f", {len(faults) + self._left_out} were not"
            text += f" ({faults[0]})" if faults else f" (more than {MAX_KEPT} were made)"
        self._forget_memory()
        self._say(text)

    def _forget_memory(self) -> None:
        memory, self._memory = self._memory, None
        self._changes.clear()
        self._left_out, self._retry_at, self._pause_s, self._is_held = 0, 0.0, RETRY_S, False
        if memory is not None:
            memory.close()

    def _to_memory(self, cause: str, *, held: bool = False) -> sqlite3.Connection:
        memory = self._memory
        if memory is None:
            memory = self._new_memory()
        else:
            self._pause_s = min(self._pause_s * 2, MOST_RETRY_S)
        self._disconnect()
        self._memory = self._connection = memory
        self._is_held, self._retry_at = held, time.monotonic() + self._pause_s
        self._tell(
            f"the store {self.path} cannot be used: {cause}; what is stored is kept in memory until it can be used again"
        )
        return memory

    def _new_memory(self) -> sqlite3.Connection:
        """A store in memory, with what the file holds as far as it can be read."""
        memory = sqlite3.connect(":memory:", isolation_level=None)
        former = self._connection
        if former is not None:
            # the file may be full, locked for writing or not writable: then what it holds can still be read
            with contextlib.suppress(sqlite3.Error):
                pages, size = (former.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
                version = former.execute("PRAGMA user_version").fetchone()[0]
                if pages * size <= MAX_COPIED_BYTES and version <= len(MIGRATIONS):
                    former.backup(memory)
        try:
            migrate(memory)
            if not is_whole(memory):
                raise NotOurs
        except (NotOurs, Newer, sqlite3.Error):
            memory.close()
            memory = sqlite3.connect(":memory:", isolation_level=None)
            migrate(memory)
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
        until = time.monotonic() + (BUSY_S if self._memory is None else BACK_S)
        self._has_turn = True
        pause_s = 0.002
        try:
            while True:
                try:
                    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    if time.monotonic() < until:
                        # many who look again at one pace leave the one who has it no processor
                        time.sleep(pause_s * random.uniform(0.5, 1.0))
                        pause_s = min(pause_s * 1.5, 0.05)
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
        if connection is not None and connection is not self._memory:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def _tell(self, problem: str) -> None:
        if problem != self.problem:
            self.problem = problem
            self._say(problem)


def _begin_among(connection: sqlite3.Connection, *, shared: bool) -> None:
    """Takes the only right to write. Whoever keeps it for ``BUSY_S`` is not waited for, and others that write in turn for ``TURNS_S``; work
    that must be ``shared`` is ``Held`` then after ``BUSY_S``, so that who asked can give up.
    """
    began = since = time.monotonic()
    seen: int | None = None
    is_crowd = False
    while True:
        try:
            return begin(connection)
        except sqlite3.OperationalError as error:
            if not _is_held(error):
                raise
            now = time.monotonic()
            version = connection.execute("PRAGMA data_version").fetchone()[0]
            if version != seen:
                is_crowd, seen, since = is_crowd or seen is not None, version, now if seen is not None else began
            if shared and is_crowd and now - began >= BUSY_S:
                raise Held(f"other processes have used it for more than {BUSY_S:g} s") from None
            if now - since >= BUSY_S or now - began >= TURNS_S:
                raise
            # where SQLite itself does not wait, this does; and no two at one pace
            time.sleep(random.uniform(0.001, 0.01))


def _nothing(_: sqlite3.Connection) -> None:
    """Work that only needs the right to write."""


def _identity(path: Path) -> tuple[int, int]:
    try:
        facts = os.stat(path, follow_symlinks=False)
    except OSError:
        return (-1, -1)
    return facts.st_dev, facts.st_ino


def _words(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def _is_held(error: sqlite3.Error) -> bool:
    return code_of(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _cause(error: sqlite3.Error) -> str:
    if _is_held(error):
        return f"another process has held it for more than {BUSY_S:g} s"
    return str(error)
