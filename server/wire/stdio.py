"""A server's standard streams: only protocol on stdout, whatever a library prints, and reading that never waits for an answer.

Must not know messages.
"""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable

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


# A pipe that says it can be written takes this many bytes without waiting (PIPE_BUF).
_AT_ONCE = 4096


class QueuedWriter:
    """Writes messages in order: a small one to a client that reads at once, else from a thread of its own, so that a slow client does not
    stop who writes.

    Replies are never dropped. A droppable message (live output) is dropped and counted when more than
    ``MAX_QUEUED_BYTES`` wait for a client that does not read.
    """

    def __init__(self, descriptor: int) -> None:
        self._writer = Writer(descriptor)
        self._descriptor = descriptor
        self._writable = select.poll()
        self._writable.register(descriptor, select.POLLOUT)
        self._busy = False
        """Whether the thread has taken messages that it has not written yet."""
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
            if not self._queued and not self._busy and len(message) <= _AT_ONCE:
                message = self._rest(message)
                if not message:
                    return True
            self._queue.append(message)
            self._queued += len(message)
            self._ready.notify()
        return True

    def _rest(self, message: bytes) -> bytes:
        """What is left of a message when as much as can be was written without waiting."""
        try:
            events = self._writable.poll(0)
            if events and events[0][1] & select.POLLOUT:
                return message[os.write(self._descriptor, message) :]
        except OSError:
            pass  # the thread finds out
        return message

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
                self._queued, self._busy = 0, True
            self._writer.write(waiting)
            with self._ready:
                self._busy = False


# Messages on their way out: written at once while the client reads, kept in order while it does not, never without bound. A small message to a
# reading client costs one system call and no change of threads. What the pipe does not take is written by a thread.


MAX_WAITING_BYTES = 64 * 1024 * 1024
MAX_DROPPABLE_BYTES = 4 * 1024 * 1024


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


# Watching the process at the other end: a server must not outlive the client that named itself.


_POLL_SECONDS = 1.0


def watch_process(process_id: int, on_end: Callable[[], None]) -> bool:
    """Calls ``on_end`` once, in a thread of its own, when that process ends.

    False, and nothing is watched, when no such process is seen: it has ended already or is in another process namespace.
    """
    try:
        descriptor = os.pidfd_open(process_id)
    except (ProcessLookupError, OverflowError):
        return False
    except (OSError, AttributeError):
        # Kernels before 5.3, some containers and other systems have no pidfds.
        if not _lives(process_id):
            return False
        descriptor = None

    def wait() -> None:
        if descriptor is None:
            while _lives(process_id):
                time.sleep(_POLL_SECONDS)
        else:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            poll.poll()
            os.close(descriptor)
        on_end()

    threading.Thread(target=wait, name="tamis-watch", daemon=True).start()
    return True


def _lives(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
