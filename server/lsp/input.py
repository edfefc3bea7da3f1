"""Where the session's work comes from: messages of the client, and what other threads post.

While the session is idle its own thread waits for the client, so that a keystroke wakes one thread and not two, which is most of what
a keystroke in a small file costs. While it works for longer, a second thread reads: a cancellation behind a long request is seen, and the
client is not held up. Who reads holds a lock, so that messages keep their order. Must not know what a message says.
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import threading
import time
from collections.abc import Callable

from tamis.server.wire.framing import FrameDecoder
from tamis.server.wire.jsonrpc import RpcError

MAX_INPUT_BYTES = 64 * 1024 * 1024
TAKE_OVER_SECONDS = 0.01
"""For so long the session may work before the second thread reads for it."""
_CHUNK = 64 * 1024

Bodies = list[bytes | RpcError]
Work = Bodies | Callable[[], None] | None
"""Messages that arrived together, something to run, or None for the end of input."""


def _handed_over() -> None:
    """The second thread reads no more; nothing to be done."""


class Input:
    """What is to be done, in order. ``get``, ``more`` and ``close`` are for one thread, ``post`` and ``empty`` for any.

    Nothing is read while more than ``MAX_INPUT_BYTES`` wait to be handled: the pipe then holds the client back.
    """

    def __init__(self, descriptor: int, arrived: Callable[[Bodies], None]) -> None:
        """``arrived`` is told of messages before they are handled, by whichever thread reads."""
        self._descriptor = descriptor
        self._arrived = arrived
        self._decoder = FrameDecoder("headers")
        self._queue: queue.SimpleQueue[tuple[Work, int]] = queue.SimpleQueue()
        self._room = threading.Condition()
        self._size = 0
        self._reading = threading.Lock()
        self._ended = False
        self._closed = False
        self._wake_out, self._wake_in = os.pipe()
        for end in (self._wake_out, self._wake_in):
            os.set_blocking(end, False)
        # a poll object is for one thread
        self._arriving = _poll(descriptor)
        self._either = _poll(descriptor, self._wake_out)
        self._polling = False
        self._idle = False
        """Whether the session waits for work."""
        self._turn = 0
        self._turned = threading.Lock()
        """Free when the session has begun to work since the second thread looked."""
        self._turned.acquire()
        threading.Thread(target=self._stand_in, name="tamis-read", daemon=True).start()

    def post(self, work: Callable[[], None] | None) -> None:
        """Something to run; never waits."""
        self._queue.put((work, 0))
        if self._polling:
            self._wake()

    def empty(self) -> bool:
        """Whether nothing waits that was read or posted."""
        return self._queue.empty()

    def more(self) -> bool:
        """Whether anything of the client waits, also what was not read yet; what other threads post is nobody's typing."""
        return self._size > 0 or (not self._ended and bool(self._arriving.poll(0)))

    def get(self, timeout: float) -> Work:
        """The next; raises ``queue.Empty`` after ``timeout`` seconds."""
        until = time.monotonic() + timeout
        self._idle = True
        try:
            while True:
                if not self._queue.empty():  # nobody else takes from it
                    entry = self._queue.get_nowait()
                    if entry[0] is _handed_over:
                        continue
                    return self._taken(entry)
                if not self._ended and self._reading.acquire(blocking=False):
                    try:
                        return self._read_until(until)
                    finally:
                        self._reading.release()
                # the second thread waits for the client, and hands over what it reads
                entry = self._queue.get(timeout=max(0.0, until - time.monotonic()))
                if entry[0] is not _handed_over:
                    return self._taken(entry)
        finally:
            self._idle = False
            self._turn += 1
            if self._turned.locked():
                self._turned.release()

    def close(self) -> None:
        """Nothing more is read, and nothing is left open."""
        self._closed = True
        self._wake()
        with self._room:
            self._room.notify_all()
        if self._turned.locked():
            self._turned.release()
        with self._reading:
            for end in (self._wake_out, self._wake_in):
                os.close(end)

    def _taken(self, entry: tuple[Work, int]) -> Work:
        work, size = entry
        if size:
            with self._room:
                self._size -= size
                self._room.notify()
        return work

    def _read_until(self, until: float) -> Work:
        """Waits for the client and for what is posted, whichever comes first. Holds the right to read."""
        while True:
            self._polling = True
            try:
                # what was posted before ``_polling`` could be seen wakes nobody
                if self._queue.empty():
                    events = self._either.poll(max(0.0, until - time.monotonic()) * 1000)
                else:
                    events = [(self._wake_out, select.POLLIN)]
            finally:
                self._polling = False
            if not events:
                raise queue.Empty
            for descriptor, _ in reversed(events):
                if descriptor == self._descriptor:
                    bodies = self._read()
                    if bodies is None or bodies:
                        return bodies
                else:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._wake_out, _CHUNK)
                    with contextlib.suppress(queue.Empty):
                        posted = self._queue.get_nowait()
                        if posted[0] is not _handed_over:
                            return self._taken(posted)

    def _read(self) -> Bodies | None:
        """What has arrived, as far as it is whole; None at the end of input. Holds the right to read."""
        try:
            data = os.read(self._descriptor, _CHUNK)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self._ended = True
            return None
        # Delivering together what arrived together is what lets a burst of keystrokes be answered once.
        bodies = self._decoder.feed(data)
        if bodies:
            self._arrived(bodies)
        return bodies

    def _stand_in(self) -> None:
        """Reads while the session works; the second thread."""
        while not self._ended and not self._closed:
            self._turned.acquire()
            turn = self._turn
            time.sleep(TAKE_OVER_SECONDS)
            if self._idle or self._turn != turn or not self._reading.acquire(blocking=False):
                continue
            try:
                self._read_for_the_session()
            finally:
                self._reading.release()
                if not self._ended:
                    self._queue.put((_handed_over, 0))

    def _read_for_the_session(self) -> None:
        waiting = _poll(self._descriptor, self._wake_out)
        while True:
            ready = waiting.poll()
            if self._closed:
                return
            if all(descriptor != self._descriptor for descriptor, _ in ready):
                time.sleep(TAKE_OVER_SECONDS)  # a word for the session, which it has not taken yet
                continue
            bodies = self._read()
            if bodies is None:
                self._queue.put((None, 0))
                return
            if bodies:
                was_idle = self._idle
                size = sum(len(body) for body in bodies if isinstance(body, bytes))
                with self._room:
                    while self._size > MAX_INPUT_BYTES and not self._closed:
                        self._room.wait()
                    self._size += size
                self._queue.put((bodies, size))
                if was_idle:
                    return  # it had nothing to do but to wait for this: from now on it waits for the client itself

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # full, which wakes as well
            os.write(self._wake_in, b"\0")


def _poll(*descriptors: int) -> select.poll:
    poller = select.poll()
    for descriptor in descriptors:
        poller.register(descriptor, select.POLLIN)
    return poller
