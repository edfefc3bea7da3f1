"""How many sandboxes of one loop run at once; further runs wait their turn, first come first served.

Without a bound, many calls at the same time would run this process out of descriptors, and each would take longer to be set
up than a sandbox may. Time spent here is not a script's: its clock starts when it does.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
from collections.abc import AsyncGenerator
from weakref import WeakKeyDictionary

MOST = 64
_DESCRIPTORS_EACH = 16
_DESCRIPTORS_LEFT = 128
_gates: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


def at_once() -> int:
    """How many may run at once: what this process's limit of descriptors allows, at most `MOST`."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if allowed == resource.RLIM_INFINITY:
        return MOST
    return max(1, min(MOST, (allowed - _DESCRIPTORS_LEFT) // _DESCRIPTORS_EACH))


@contextlib.asynccontextmanager
async def turn(cancelled: asyncio.Event | None) -> AsyncGenerator[bool]:
    """Wait for a turn and hold it; False, at once, when `cancelled` was set while waiting."""
    gate = _gate()
    if not await _passed(gate, cancelled):
        yield False
        return
    try:
        yield True
    finally:
        gate.release()


def _gate() -> asyncio.Semaphore:
    loop = asyncio.get_running_loop()
    gate = _gates.get(loop)
    if gate is None:
        gate = _gates[loop] = asyncio.Semaphore(at_once())
    return gate


async def _passed(gate: asyncio.Semaphore, cancelled: asyncio.Event | None) -> bool:
    if cancelled is None or not gate.locked():
        await gate.acquire()
        return True
    passing = asyncio.ensure_future(gate.acquire())
    stopping = asyncio.ensure_future(cancelled.wait())
    passed = False
    try:
        await asyncio.wait({passing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        passed = passing.done() and not cancelled.is_set()
        return passed
    finally:
        stopping.cancel()
        if not passed:
            if passing.done() and not passing.cancelled():
                gate.release()
            passing.cancel()
