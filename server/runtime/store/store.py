"""The store: one SQLite file in the state folder for what must outlive a process: results by key, tasks, approvals, counters.

Any number of processes use one file. Whatever is wrong with it never fails a call: then the store goes on in memory, with what
could still be read, and ``Store.problem`` says why, until the file can be had again and what was written meanwhile is in it. It is opened
with the first need (``database.py``). Must not know what the rows mean.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tamis.server.runtime.store.database import CHANGE_BYTES, Database
from tamis.server.runtime.store.folders import state_folder

T = TypeVar("T")

FILE_NAME = "tamis.db"
CLOSE_S = 0.2


def _serve(
    work: queue.SimpleQueue[Callable[[], None] | None], former: threading.Thread | None, database: Database
) -> None:
    if former is not None:
        former.join()
    while True:
        try:
            job = work.get(timeout=database.due_s())
        except queue.Empty:
            database.retry()
            continue
        if job is None:
            break
        job()
        del job  # it holds the store
    database.close()


class Store:
    """One file, one thread of its own that works on it."""

    def __init__(self, folder: Path | None = None, say: Callable[[str], object] = str) -> None:
        """``folder`` None is the state folder. ``say`` is told each new problem once, from the store's thread."""
        self.path = (folder or state_folder()) / FILE_NAME
        self._database = Database(self.path, say)
        self._say = say
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._former: threading.Thread | None = None
        self._end: weakref.finalize[..., Store] | None = None

    @property
    def problem(self) -> str:
        """Why what is stored is in memory only, with the remedy; empty when it is in the file."""
        return self._database.problem

    @property
    def is_open(self) -> bool:
        """Whether anything was asked of it yet."""
        return self._thread is not None

    async def run(
        self, work: Callable[[sqlite3.Connection], T], *, durable: bool = True, size: int = CHANGE_BYTES
    ) -> T:
        """What ``work`` gives, run in the store's thread as one transaction that holds the only right to write.

        What it wrote survives the end of this process however that comes, and with ``durable`` a power cut too, which costs a write
        to the disk.
        ``work`` is undone when it raises, and its exception is raised here. It may be run a second time when the file turned out
        unusable, and once more when it can be used again, so it must do nothing but read and write rows. ``size``: bytes that it keeps.
        """
        return await self._asked(lambda: self._database.run(work, durable, size))

    async def run_shared(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """As ``run``, not ``durable``, of what every process must see: while another holds the file, which passes, it raises ``Held``
        instead of going on in memory."""
        return await self._asked(lambda: self._database.run(work, False, shared=True))

    async def _asked(self, ask: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def answer(set_it: Callable[[Any], None], value: object) -> None:
            if not future.done():
                set_it(value)

        def job() -> None:
            try:
                result = ask()
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
                self._database.run(work, False)
            except Exception as error:
                self._say(f"the store {self.path} did not take a change: {type(error).__name__}: {error}")

        self._put(job)

    def _put(self, job: Callable[[], None]) -> None:
        if self._thread is None:
            # daemonic: a file that someone holds must not hold back the end of the process
            self._thread = threading.Thread(
                target=_serve, args=(self._work, self._former, self._database), name="tamis-store", daemon=True
            )
            self._thread.start()
            # a store that nobody closed and nobody holds takes its thread and its file with it
            self._end = weakref.finalize(self, self._work.put, None)
            self._end.atexit = False
        self._work.put(job)

    def look(self) -> str:
        """Opens the file as the first need would, in this thread, and closes it; the problem with it, or an empty text. Not for a store
        that is in use."""
        return self._database.look()

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
