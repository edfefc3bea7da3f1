"""The daemon's standard streams: only protocol on stdout, whatever a library prints.

Descriptor 1 is moved away at start and stderr takes its place (interface, Daemon manners). A reader thread keeps reading
while handlers run, so that a cancellation is seen in time; a writer thread keeps a slow client from stopping the loop.
Must not know messages.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable

MAX_QUEUED_BYTES = 8 * 1024 * 1024
_CHUNK = 1 << 16


def claim_stdout() -> int:
    """Moves descriptor 1 away and returns where it is now; what is printed from here on goes to stderr."""
    out = os.dup(1)
    os.set_inheritable(out, False)
    os.dup2(2, 1)
    return out


def start_reader(fd: int, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> threading.Thread:
    """Reads ``fd`` to its end in a thread of its own; the callbacks run in that thread."""

    def read() -> None:
        while True:
            try:
                data = os.read(fd, _CHUNK)
            except OSError:
                data = b""
            if not data:
                on_end()
                return
            on_data(data)

    thread = threading.Thread(target=read, name="tamis-stdin", daemon=True)
    thread.start()
    return thread


class Writer:
    """Writes messages in order from a thread of its own.

    Replies are never dropped. A droppable message (live output) is dropped and counted when more than
    ``MAX_QUEUED_BYTES`` wait for a client that does not read.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._ready = threading.Condition()
        self._closed = False
        self.dropped = 0
        self._thread = threading.Thread(target=self._run, name="tamis-stdout", daemon=True)
        self._thread.start()

    def write(self, data: bytes, *, droppable: bool = False) -> bool:
        """Queues one message; False when it was dropped."""
        with self._ready:
            if self._closed:
                return False
            if droppable and self._queued > MAX_QUEUED_BYTES:
                self.dropped += 1
                return False
            self._queue.append(data)
            self._queued += len(data)
            self._ready.notify()
        return True

    def close(self, timeout: float) -> None:
        """Writes what is queued, waiting at most ``timeout`` seconds for the client to read it."""
        with self._ready:
            self._closed = True
            self._ready.notify()
        self._thread.join(timeout)

    def _run(self) -> None:
        while True:
            with self._ready:
                while not self._queue and not self._closed:
                    self._ready.wait()
                if not self._queue:
                    return
                data = b"".join(self._queue)
                self._queue.clear()
                self._queued = 0
            view = memoryview(data)
            while view:
                try:
                    view = view[os.write(self._fd, view) :]
                except OSError:
                    # The client is gone; its end of stdin ends the daemon.
                    with self._ready:
                        self._closed = True
                        self._queue.clear()
                    return
