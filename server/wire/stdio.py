"""A server's standard streams: only protocol on stdout, whatever a library prints, and reading that never waits for an answer.

Must not know messages.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from collections import deque
from collections.abc import Callable

MAX_QUEUED_BYTES = 8 * 1024 * 1024
_CHUNK = 64 * 1024


def claim_stdio() -> tuple[int, int]:
    """Takes stdin and stdout for the protocol alone and gives their private descriptors.

    Afterwards file descriptor 1 is standard error and 0 is empty: a library or child process that prints or reads
    cannot break the stream (interface, Daemon manners).
    """
    sys.stdout.flush()
    incoming = os.dup(0)
    outgoing = os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return incoming, outgoing


def wait_until(descriptor: int, event: int) -> None:
    """Waits until a descriptor that does not block can be read (``select.POLLIN``) or written (``POLLOUT``), or has lost its other end.

    ``select.select`` would refuse a descriptor above 1,023, which a daemon with many open files has.
    """
    waiting = select.poll()
    waiting.register(descriptor, event)
    waiting.poll()


def start_reader(descriptor: int, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
    """Reads to the end of the stream in a thread of its own, in which the callbacks run.

    So a cancellation is seen while handlers run; being a daemon thread, it never holds a process that ends.
    """

    def read() -> None:
        while True:
            try:
                data = os.read(descriptor, _CHUNK)
            except BlockingIOError:
                wait_until(descriptor, select.POLLIN)
                continue
            except OSError:
                data = b""
            if not data:
                on_end()
                return
            on_data(data)

    threading.Thread(target=read, name="tamis-read", daemon=True).start()


def watch_output(descriptor: int, on_gone: Callable[[], None]) -> Callable[[], None]:
    """Calls ``on_gone`` once, in a thread of its own, when nobody can read any more what is written there. A file is never left.

    What it gives ends the watching; it must be called before the descriptor is closed, which is open for as long as it is watched.
    """
    ended, ending = os.pipe()

    def wait() -> None:
        waiting = select.poll()
        waiting.register(descriptor, 0)  # the loss of the other end is told unasked
        waiting.register(ended, select.POLLIN)
        if dict(waiting.poll()).get(descriptor, select.POLLNVAL) & (select.POLLERR | select.POLLHUP):
            on_gone()

    watching = threading.Thread(target=wait, name="tamis-watch-output", daemon=True)
    watching.start()

    def stop() -> None:
        os.close(ending)
        watching.join()
        os.close(ended)

    return stop


class Writer:
    """Writes messages at once; any thread may write, messages never mix. A gone reader is not an error."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self.broken = False

    def write(self, message: bytes) -> None:
        """Returns when the pipe has taken all of the message, or silently when the client has gone (then ``broken``)."""
        data = memoryview(message)
        with self._lock:
            while data and not self.broken:
                try:
                    data = data[os.write(self._descriptor, data) :]
                except BlockingIOError:
                    wait_until(self._descriptor, select.POLLOUT)
                except OSError:
                    self.broken = True


class QueuedWriter:
    """Writes messages in order from a thread of its own, so that a slow client does not stop who writes.

    Replies are never dropped. A droppable message (live output) is dropped and counted when more than
    ``MAX_QUEUED_BYTES`` wait for a client that does not read.
    """

    def __init__(self, descriptor: int) -> None:
        self._writer = Writer(descriptor)
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._ready = threading.Condition()
        self._closed = False
        self.dropped = 0
        self._thread = threading.Thread(target=self._run, name="tamis-write", daemon=True)
        self._thread.start()

    def write(self, message: bytes, *, droppable: bool = False) -> bool:
        """Queues one message; False when it was dropped."""
        with self._ready:
            if self._closed or self._writer.broken:
                return False
            if droppable and self._queued > MAX_QUEUED_BYTES:
                self.dropped += 1
                return False
            self._queue.append(message)
            self._queued += len(message)
            self._ready.notify()
        return True

    def close(self, timeout: float) -> None:
        """Writes what is queued, waiting at most ``timeout`` seconds for the client to read it."""
        with self._ready:
            self._closed = True
            self._ready.notify()
        self._thread.join(timeout)

    def _run(self) -> None:
        while not self._writer.broken:
            with self._ready:
                while not self._queue and not self._closed:
                    self._ready.wait()
                if not self._queue:
                    return
                waiting = b"".join(self._queue)
                self._queue.clear()
                self._queued = 0
            self._writer.write(waiting)
