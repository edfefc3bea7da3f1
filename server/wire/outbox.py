"""Messages on their way out: written at once while the client reads, kept in order while it does not, never without bound.

A small message to a reading client costs one system call and no change of threads. What the pipe does not take is written by a
thread. Must not know what a message says.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Hashable

from tamis.server.wire.stdio import wait_until

MAX_WAITING_BYTES = 64 * 1024 * 1024
MAX_DROPPABLE_BYTES = 4 * 1024 * 1024
# A pipe that says it can be written takes this many bytes without waiting (PIPE_BUF).
_AT_ONCE = 4096


class Outbox:
    """Writes messages in order; any thread may write, messages never mix.

    Nothing that is due is ever lost: beyond ``MAX_WAITING_BYTES`` whoever writes waits for the client to read. A message with a
    ``key`` takes the place of a waiting one with the same key (only the last state of something matters). A ``droppable``
    message is dropped, and counted, while more than ``MAX_DROPPABLE_BYTES`` wait.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._writable = select.poll()
        self._writable.register(descriptor, select.POLLOUT)
        self._changed = threading.Condition()
        self._waiting: dict[Hashable, bytes] = {}
        self._begun = b""
        self._size = 0
        self._number = 0
        self._started = False
        self._closed = False
        self.broken = False
        self.dropped = 0

    def write(self, message: bytes, *, key: Hashable = None, droppable: bool = False) -> bool:
        """Writes or queues one message; False when it was dropped, or the client has gone (then ``broken``)."""
        with self._changed:
            if not self._size:
                rest = self._write_at_once(message)
                if not rest or self.broken:
                    return not self.broken
                self._begun = rest
                self._size = len(rest)
                self._wake()
                return True
            if droppable and self._size > MAX_DROPPABLE_BYTES:
                self.dropped += 1
                return False
            replaced = self._waiting.pop(key, None) if key is not None else None
            if replaced is not None:
                self._size -= len(replaced)
            while self._size > MAX_WAITING_BYTES and not self.broken and not self._closed:
                self._changed.wait()
            if self.broken or self._closed:
                return False
            if key is None:
                self._number += 1
                key = self._number
            self._waiting[key] = message
            self._size += len(message)
            self._wake()
        return True

    def release(self) -> None:
        """Lets everyone go who waits for room: the process is about to end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def close(self, timeout: float) -> None:
        """Waits at most ``timeout`` seconds until the client has taken what is queued."""
        until = time.monotonic() + timeout
        with self._changed:
            while self._size and not self.broken and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)

    def _write_at_once(self, message: bytes) -> bytes:
        data = memoryview(message)
        try:
            while data and self._writable.poll(0):
                data = data[os.write(self._descriptor, data[:_AT_ONCE]) :]
        except BlockingIOError:
            pass
        except OSError:
            self.broken = True
        return bytes(data)

    def _wake(self) -> None:
        if not self._started:
            self._started = True
            threading.Thread(target=self._run, name="tamis-write", daemon=True).start()
        self._changed.notify_all()

    def _run(self) -> None:
        while not self.broken:
            with self._changed:
                while not self._size:
                    self._changed.wait()
                if not self._begun:
                    first = next(iter(self._waiting))
                    self._begun = self._waiting.pop(first)
            self._write_all(self._begun)
            with self._changed:
                self._size -= len(self._begun)
                self._begun = b""
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def _write_all(self, message: bytes) -> None:
        data = memoryview(message)
        while data and not self.broken:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:
                wait_until(self._descriptor, select.POLLOUT)
            except OSError:
                self.broken = True
