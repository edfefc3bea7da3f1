"""The entry of ``tamis lsp``: claims standard input and output, runs a session, gives the exit code.

The main thread works off one queue; a daemon thread reads. So the process ends with the session: no thread that still waits
for input can hold it.
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

from tamis.server.lsp.framing import MessageWriter, ProtocolError, claim_stdio, read_messages
from tamis.server.lsp.session import Session, report_failure

PARENT_CHECK_SECONDS = 1.0
SETTLE_SECONDS = 0.02

_Work = list[bytes | ProtocolError] | Callable[[], None] | None


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
    writer = MessageWriter(outgoing)
    root = os.path.abspath(argv_root) if argv_root is not None else None
    session = Session(writer.send, inbox.put, root)

    def read() -> None:
        read_messages(incoming, inbox.put)
        inbox.put(None)

    def terminate(*_: object) -> None:
        session.exit_code = 0
        inbox.put(lambda: None)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, terminate)
    threading.Thread(target=read, name="tamis-read", daemon=True).start()

    parent_seen = False
    while session.exit_code is None and not writer.broken:
        try:
            work = inbox.get(timeout=_patience(session, inbox, incoming))
        except queue.Empty:
            if session.diagnostics.waiting:
                _guarded(session.diagnostics.publish_next)
                continue
            alive = _client_lives(session)
            if parent_seen and not alive:
                return 1
            parent_seen = alive
            continue
        if work is None:
            return session.end_of_input()
        if callable(work):
            _guarded(work)
        else:
            _guarded(functools.partial(session.receive, work))
    return 1 if session.exit_code is None else session.exit_code


def _patience(session: Session, inbox: queue.SimpleQueue[_Work], incoming: int) -> float:
    """How long to wait for input before doing what is owed: not at all when none is on its way."""
    if not session.diagnostics.waiting:
        return PARENT_CHECK_SECONDS
    if inbox.empty() and not select.select([incoming], [], [], 0)[0]:
        return 0.0
    return SETTLE_SECONDS


def _guarded(work: Callable[[], None]) -> None:
    try:
        work()
    except Exception:  # analysis of one document must not end the session
        report_failure("analysis")


def _client_lives(session: Session) -> bool:
    """Whether the process that the client named is seen; a client in another process namespace never is."""
    client = session.initialize.process_id if session.initialize else None
    if not client or client <= 0:
        return False
    try:
        os.kill(client, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


if __name__ == "__main__":
    sys.exit(serve(None))
