"""Work on blocks of lines in several processes: results in the order of the blocks, memory bounded, a worker that dies replaced.

A worker is a fork of this process and gets blocks through a pipe; it opens no file and starts nothing. Each has one block at a time, so that
neither side ever waits for the other to read. Must not know what the work is.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import stat
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from tamis.server.logs.records import Block, Lines, Problem

Work = Callable[[Block], Any]
"""From a block to a result that pickles. It must not raise."""
Lost = Callable[[Block], Any]
"""The result that stands for a block of one line whose worker died; ``problem`` says so."""
_AHEAD = 4
"""Blocks for each worker that may be done before an earlier one is."""
_HELD_BYTES = 32 * 1024 * 1024
"""Bytes of blocks that are on their way, unless a single block has more."""


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0))


class _Worker:
    """One process and our end of its pipe."""

    def __init__(self, work: Work, others: list[Connection]) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()
        self.block: tuple[int, Block] | None = None
        self.process: BaseProcess = context.Process(
            target=_serve, args=(work, theirs, [self.pipe, *others]), name="tamis-read", daemon=True
        )
        self.process.start()
        theirs.close()

    def end(self) -> str:
        """Ends the process; says how it ended."""
        self.pipe.close()
        self.process.join(0.5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        code = self.process.exitcode or 0
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _serve(work: Work, pipe: Connection, inherited: list[Connection]) -> None:
    # The pipes of others end with their owners only when nobody else holds them.
    for other in inherited:
        other.close()
    # Ctrl-C is the parent's matter: it closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(EOFError, OSError):
        while True:
            pipe.send(work(pipe.recv()))
    os._exit(0)


class Workers:
    """``jobs`` processes that do ``work``; with one job it is done here. Started with the first block that has to wait for another."""

    def __init__(self, work: Work, lost: Lost, jobs: int) -> None:
        self._work = work
        self._lost = lost
        self._jobs = jobs
        self._workers: list[_Worker] = []
        self._given = 0
        self._taken = 0
        self._held = 0
        self._sizes: dict[int, int] = {}
        self._done: dict[int, list[Any]] = {}

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            if worker.block is not None:
                worker.process.kill()
            worker.end()
        self._workers.clear()

    @property
    def pipes(self) -> list[Connection]:
        """What can be read when a worker has a result."""
        return [worker.pipe for worker in self._workers if worker.block is not None]

    @property
    def busy(self) -> bool:
        """Whether a block that is given has no result yet."""
        return self._taken + len(self._done) < self._given

    def give(self, block: Block) -> Iterator[Any]:
        """Has a block worked on; gives the results that are due meanwhile, in order."""
        number, self._given = self._given, self._given + 1
        size = self._sizes[number] = len(block.data)
        self._held += size
        if block.problem is not None:
            self._done[number] = [self._lost(block)]
            yield from self.due()
            return
        if self._jobs == 1:
            self._done[number] = [self._work(block)]
            yield from self.due()
            return
        while (
            number - self._taken > _AHEAD * self._jobs
            or (self._held > _HELD_BYTES and self._held > size)
            or (idle := self._idle()) is None
        ):
            self._wait(None)
            yield from self.due()
        idle.block = number, block
        try:
            idle.pipe.send(block)
        except OSError:
            self._replace(idle)

    def due(self) -> Iterator[Any]:
        """The results that are there and whose turn it is."""
        while self._taken in self._done:
            results = self._done.pop(self._taken)
            self._held -= self._sizes.pop(self._taken)
            self._taken += 1
            yield from results

    def collect(self) -> Iterator[Any]:
        """Takes what workers have ready, without waiting."""
        self._wait(0)
        yield from self.due()

    def rest(self) -> Iterator[Any]:
        """Waits for all that is not done."""
        while self.busy:
            self._wait(None)
            yield from self.due()
        yield from self.due()

    def _idle(self) -> _Worker | None:
        for worker in self._workers:
            if worker.block is None:
                return worker
        if len(self._workers) < self._jobs:
            return self._start()
        return None

    def _start(self) -> _Worker:
        worker = _Worker(self._work, [other.pipe for other in self._workers])
        self._workers.append(worker)
        return worker

    def _wait(self, seconds: float | None) -> None:
        pipes = self.pipes
        if not pipes:
            return
        ready = set(wait(pipes, seconds))
        for worker in list(self._workers):
            if worker.pipe not in ready or worker.block is None:
                continue
            number = worker.block[0]
            try:
                self._done[number] = [worker.pipe.recv()]
                worker.block = None
            except (EOFError, OSError):
                self._replace(worker)

    def _replace(self, dead: _Worker) -> None:
        """A worker died: its lines are read one by one, so that the one that it died of is all that is lost."""
        assert dead.block is not None
        number, block = dead.block
        self._workers.remove(dead)
        how = dead.end()
        parts = block.data.removesuffix(b"\n").split(b"\n")
        if len(parts) == 1:
            self._done[number] = [self._died(block.line, how)]
            return
        results: list[Any] = []
        alone: _Worker | None = None
        for at, part in enumerate(parts):
            if alone is None:
                alone = _Worker(self._work, [other.pipe for other in self._workers])
            try:
                alone.pipe.send(Block(block.line + at, part))
                results.append(alone.pipe.recv())
            except (EOFError, OSError):
                results.append(self._died(block.line + at, alone.end()))
                alone = None
        if alone is not None:
            alone.end()
        self._done[number] = results

    def _died(self, line: int, how: str) -> Any:
        problem = Problem(line, "workerDied", f"the process that read the record ended ({how}); too little memory?")
        return self._lost(Block(line, b"", problem))


# A descriptor read to its end while workers work: whichever has something is served first.


_CHUNK = 1024 * 1024


def results(source: int, lines: Lines, workers: Workers, on_read: Callable[[int], None]) -> Iterator[Any]:
    """The results of all lines of a stream, in order; ``on_read`` is told how many bytes came.

    A file is read up to the size that it has now, and on to the end of that line: one that grows meanwhile does not keep the command from ending.
    Raises ``OSError`` when the stream cannot be read and ``PackedError`` for a packed one.
    """
    left = size_of(source)
    while left is None or left > 0:
        ready = wait([source, *workers.pipes])
        if any(pipe in ready for pipe in workers.pipes):
            yield from workers.collect()
        if source not in ready:
            continue
        try:
            data = os.read(source, _CHUNK if left is None else min(_CHUNK, left))
        except BlockingIOError:
            continue
        if not data:
            break
        if left is not None:
            left -= len(data)
        on_read(len(data))
        for block in lines.feed(data):
            yield from workers.give(block)
    while left == 0 and lines.within:
        data = os.read(source, _CHUNK)
        end = data.find(b"\n") + 1 or len(data)
        if not data:
            break
        on_read(end)
        for block in lines.feed(data[:end]):
            yield from workers.give(block)
    for block in lines.end():
        yield from workers.give(block)
    yield from workers.rest()


def size_of(source: int) -> int | None:
    """The bytes that a file still has; None for what has no size: a pipe, or a file of the kernel."""
    status = os.fstat(source)
    if not stat.S_ISREG(status.st_mode) or not status.st_size:
        return None
    return max(status.st_size - os.lseek(source, 0, os.SEEK_CUR), 0)
