"""A descriptor read to its end while workers work: whichever has something is served first. Must not know what the work is."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from multiprocessing.connection import wait
from typing import Any

from tamis.server.logs.records import Lines
from tamis.server.logs.workers import Workers

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
