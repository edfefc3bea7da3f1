"""When the garbage collector waits: while much is made that forms no circles, a collection of all there is takes longer than making it."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Generator


class _Collector:
    lock = threading.Lock()
    waits = 0
    """How many works it waits for."""


@contextlib.contextmanager
def uncollected() -> Generator[None]:
    """Lets the collector of this process wait until the work is done, in any thread."""
    with _Collector.lock:
        if _Collector.waits or gc.isenabled():
            _Collector.waits += 1
            gc.disable()
            counts = True
        else:
            counts = False  # somebody else switched it off
    try:
        yield
    finally:
        with _Collector.lock:
            _Collector.waits -= counts
            if counts and not _Collector.waits:
                gc.enable()
