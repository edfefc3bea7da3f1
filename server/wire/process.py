"""Watching the process at the other end: a server must not outlive the client that named itself.

Must not know what a client is.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable

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
