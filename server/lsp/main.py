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
import select
import signal
import sys
import threading
from collections.abc import Callable

from tamis.server.lsp.session import Session, report_failure
from tamis.server.wire.framing import FrameDecoder, encode_frame
from tamis.server.wire.jsonrpc import RpcError
from tamis.server.wire.process import watch_process
from tamis.server.wire.stdio import Writer, claim_stdio, start_reader

IDLE_CHECK_SECONDS = 1.0
SETTLE_SECONDS = 0.02

_Work = list[bytes | RpcError] | Callable[[], None] | None


def serve(argv_root: str | None) -> int:
    """Serves one client on stdin and stdout until ``exit``, the end of input, SIGTERM or the client's death.

    Returns 0 after ``shutdown`` (or SIGTERM), 1 when the client left without it.
    """
    code = _serve(argv_root)
    # The interpreter's last collection walks every type of lsprotocol for 100 ms; clients wait for the process to end.
    gc.freeze()
    return code


def _serve(argv_root: str | None) -> int:
    incoming, outgoing = claim_stdio()
    inbox: queue.SimpleQueue[_Work] = queue.SimpleQueue()
    writer = Writer(outgoing)
    decoder = FrameDecoder("headers")
    root = os.path.abspath(argv_root) if argv_root is not None else None
    session = Session(lambda body: writer.write(encode_frame(body, "headers")), inbox.put, root)

    def read(data: bytes) -> None:
        # Delivering together what arrived together is what lets a burst of keystrokes be answered once.
        if bodies := decoder.feed(data):
            inbox.put(bodies)

    def end(code: int) -> None:
        if session.exit_code is None:
            session.exit_code = code
        inbox.put(lambda: None)

    def terminate(*_: object) -> None:
        end(0)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, terminate)
    start_reader(incoming, read, lambda: inbox.put(None))

    watching = False
    while session.exit_code is None and not writer.broken:
        try:
            work = inbox.get(timeout=_patience(session, inbox, incoming))
        except queue.Empty:
            if session.diagnostics.waiting:
                _guarded(session.diagnostics.publish_next)
            continue
        if work is None:
            return session.end_of_input()
        if callable(work):
            _guarded(work)
        else:
            _guarded(functools.partial(session.receive, work))
            if not watching and session.initialize is not None:
                watching = True
                client = session.initialize.process_id
                # A client in another process namespace is not seen, and not taken for dead.
                if client is not None and client > 0:
                    watch_process(client, lambda: end(1))
    return 1 if session.exit_code is None else session.exit_code


def _patience(session: Session, inbox: queue.SimpleQueue[_Work], incoming: int) -> float:
    """How long to wait for input before doing what is owed: not at all when none is on its way."""
    if not session.diagnostics.waiting:
        return IDLE_CHECK_SECONDS
    if inbox.empty() and not select.select([incoming], [], [], 0)[0]:
        return 0.0
    return SETTLE_SECONDS


def _guarded(work: Callable[[], None]) -> None:
    try:
        work()
    except Exception:  # analysis of one document must not end the session
        report_failure("analysis")


if __name__ == "__main__":
    sys.exit(serve(None))
