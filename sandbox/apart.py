"""Work on a thread of its own: for what needs an event loop where one may run already, or leaves the thread unfit for more."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def apart(name: str, work: Callable[[], T]) -> T:
    """What `work` returns or raises on a new thread of this name. Raises OSError where no further thread can be started."""
    result: list[T] = []
    failure: list[BaseException] = []

    def target() -> None:
        try:
            result.append(work())
        except BaseException as error:  # handed to the caller's thread
            failure.append(error)

    thread = threading.Thread(target=target, name=name)
    try:
        thread.start()
    except RuntimeError as error:
        raise OSError(errno.EAGAIN, "no further thread could be started") from error
    thread.join()
    if failure:
        raise failure[0]
    return result[0]
