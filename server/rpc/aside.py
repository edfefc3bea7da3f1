"""Work that takes long and touches nothing of the loop: done in a thread of its own, so that other requests are answered meanwhile.

The thread does not keep the process alive: at the session's end its work is dropped. The garbage collector waits until it is done: a
collection of all that a daemon holds stops every thread, and such work makes much and leaves no circles. Must not know what the work is.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

from tamis.server.runtime.store.collector import uncollected

T = TypeVar("T")


async def aside(work: Callable[[], T]) -> T:
    """The result of ``work``, or what it raised. A cancelled wait drops the result; the work itself ends by itself."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(set_it: Callable[[], None]) -> None:
        if not done.done():
            set_it()

    def run() -> None:
        try:
            with uncollected():
                result = work()
        except BaseException as error:
            base_exception = error
            tell = lambda: done.set_exception(base_exception)  # noqa: E731
        else:
            tell = lambda: done.set_result(result)  # noqa: E731
        # A loop that is closed has nobody who waits.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, tell)

    threading.Thread(target=run, daemon=True).start()
    return await done
