"""The entry of ``tamis lsp``: claims standard input and output, runs a session, gives the exit code.

The main thread works off one queue; a daemon thread reads. So the process ends with the session: no thread that still waits
for input can hold it. Reads through ``server/wire`` and not through pygls 2.1, whose reader takes three thread hops a message,
drops a header in lower case, and keeps the process alive.
"""

from __future__ import annotations

import functools
import gc
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Hashable

from tamis.server.lsp.input import Input
from tamis.server.lsp.session import Session
from tamis.server.lsp.trace import report_failure
from tamis.server.wire.framing import encode_frame
from tamis.server.wire.stdio import Outbox, claim_stdio, watch_output, watch_process

IDLE_CHECK_SECONDS = 1.0
PAUSE_SECONDS = 0.15
COLLECT_OBJECTS = 10_000
"""So many new objects are worth a collection when nothing else is to be done."""
SETTLE_SECONDS = 0.02
BURST_SECONDS = 0.3
"""Findings are published this often at least while input does not cease."""
FLUSH_SECONDS = 0.3
SWITCH_SECONDS = 0.001


def serve(argv_root: str | None) -> int:
    """Serves one client on stdin and stdout until ``exit``, the end of input, SIGTERM or the client's death.

    Returns 0 after ``shutdown`` (or SIGTERM), 1 when the client left without it.
    """
    # Beside a thread that computes, the one that answers keystrokes gets its turn after this long (CPython's own 5 ms are felt).
    sys.setswitchinterval(SWITCH_SECONDS)
    _rarely_collect()
    code = serve_streams(*claim_stdio(), argv_root)
    # The interpreter's last collection walks every type of lsprotocol for 100 ms; clients wait for the process to end.
    gc.freeze()
    return code


def _rarely_collect() -> None:
    """What one keystroke leaves is freed by counting; a collection that walks a large document belongs into a pause."""
    gc.set_threshold(50_000, 50, 1_000)


def serve_streams(incoming: int, outgoing: int, argv_root: str | None = None) -> int:
    """As ``serve``, on two descriptors; in any thread."""
    outbox = Outbox(outgoing)
    root = os.path.abspath(argv_root) if argv_root is not None else None

    def send(body: bytes, *, key: Hashable = None, droppable: bool = False) -> bool:
        return outbox.write(encode_frame(body, "headers"), key=key, droppable=droppable)

    inbox = Input(incoming, lambda bodies: session.foresee(bodies))
    session = Session(send, inbox.post, root, busy=lambda: not inbox.empty() or session.diagnostics.waiting)

    def end(code: int) -> None:
        if session.exit_code is None:
            session.exit_code = code
        inbox.post(lambda: None)
        outbox.release()

    unwatched = watch_output(outgoing, lambda: end(1))

    def terminate(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_DFL)  # a second one ends the process at once
        end(128 + number if number == signal.SIGINT else 0)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, terminate)
        signal.signal(signal.SIGINT, terminate)
    watching = False
    idleness = Idleness(session, inbox)
    while session.exit_code is None and not outbox.broken:
        try:
            work = inbox.get(idleness.patience())
        except queue.Empty:
            _guarded(session.wake)
            if not session.diagnostics.waiting and not idleness.rested() and gc.get_count()[0] > COLLECT_OBJECTS:
                gc.collect()
            if session.diagnostics.waiting:
                _guarded(session.diagnostics.publish_next)
                idleness.published()
            continue
        if work is None:
            session.exit_code = session.end_of_input()
        elif callable(work):
            _guarded(work)
        else:
            _guarded(functools.partial(session.receive, work))
            if not watching and session.initialize is not None:
                watching = True
                client = session.initialize.process_id
                # A client in another process namespace is not seen, and not taken for dead.
                if client is not None and client > 0:
                    watch_process(client, lambda: end(1))
    unwatched()
    _guarded(session.close)
    outbox.close(FLUSH_SECONDS)
    inbox.close()
    return 1 if session.exit_code is None else session.exit_code


class Idleness:
    """When the input is idle: then what is owed is done.

    A single keystroke is answered at once. Where more had arrived before an answer was written, somebody pastes or
    replays: from then on the input must have been silent for ``SETTLE_SECONDS``, but for no longer than ``BURST_SECONDS``.
    """

    def __init__(self, session: Session, inbox: Input) -> None:
        self._session = session
        self._inbox = inbox
        self._burst = False
        session.diagnostics.arrived = inbox.more
        self._owing_since = 0.0
        self._rested = True

    def patience(self) -> float:
        """How long to wait for input before doing what is owed: not at all when none is on its way."""
        if not self._session.diagnostics.waiting:
            self._owing_since = 0.0
            due = self._session.due
            longest = IDLE_CHECK_SECONDS if self._rested else PAUSE_SECONDS
            return longest if due is None else max(0.0, min(longest, due - time.monotonic()))
        if not self._session.diagnostics.urgent:
            # What an edit means elsewhere can wait for a pause in the typing.
            return PAUSE_SECONDS
        now = time.monotonic()
        if not self._owing_since:
            self._owing_since = now
        if now - self._owing_since > BURST_SECONDS and not self._inbox.empty():
            # Input never ceases: say what holds now, between two messages.
            _guarded(self._session.diagnostics.publish_next)
            self._owing_since = now
        if self._burst or self._inbox.more():
            return SETTLE_SECONDS
        return 0.0

    def published(self) -> None:
        """Something owed was done; whether more input came meanwhile tells what kind of input it is."""
        self._burst = self._session.diagnostics.overtaken
        self._owing_since = 0.0
        self._rested = False

    def rested(self) -> bool:
        """Prepares the next keystroke, once in each pause; whether there was anything to prepare."""
        if self._rested:
            return False
        self._rested = True
        _guarded(self._session.rest)
        return True


def _guarded(work: Callable[[], None]) -> None:
    try:
        work()
    except Exception:  # analysis of one document must not end the session
        report_failure("analysis")


if __name__ == "__main__":
    sys.exit(serve(None))
