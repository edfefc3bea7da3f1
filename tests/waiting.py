"""Waiting for a condition, on a machine of any speed.

Nothing here has a deadline of its own: a test that waits in vain is ended by the timeout of pytest (``pyproject.toml``), which prints
where it waited. That timeout is for hangs alone and is far longer than any test takes on a busy machine.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
PAUSE = 0.02


def until(condition: Callable[[], T]) -> T:
    """Returns the first true value of `condition`, asked every 20 ms."""
    while not (value := condition()):
        time.sleep(PAUSE)
    return value


async def arrives(condition: Callable[[], T]) -> T:
    """Returns the first true value of `condition`, as `until` does, and lets the event loop run meanwhile."""
    while not (value := condition()):
        await asyncio.sleep(PAUSE)
    return value
