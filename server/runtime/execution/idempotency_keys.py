"""One execution per idempotency key: the same key with the same content gives the stored result (T24, ruling 26).

Where results are kept is a shelf's: the store's, so that this holds after a restart and between processes, or this process's memory. Of
a key and a content only hashes are kept, of a result what may be shown. Must not know what a call is.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import math
from collections.abc import Sequence
from typing import Protocol

import msgspec

from tamis.protocols.contract import ExecutionResult
from tamis.server.runtime.observe.stored import read_result, stored_result
from tamis.server.runtime.store.owners import Sight

_MAX_PAUSE_S = 0.5


class KeyReused(Exception):  # noqa: N818 (an outcome, not a fault)
    """A key came again with other content."""


class RunLost(Exception):  # noqa: N818 (an outcome, not a fault)
    """Who ran a key's call ended without a word of what came of it."""


class StillRunning(Exception):  # noqa: N818 (an outcome, not a fault)
    """Another run of a key's call goes on, and was waited for long enough. ``sight``: who runs it, and for how many seconds, where known."""

    def __init__(self, sight: tuple[Sight, float] | None) -> None:
        super().__init__()
        self.sight = sight


class StoreHeld(Exception):  # noqa: N818 (an outcome, not a fault)
    """Where keys are kept was another process's for so long that the call could not be protected, so nothing was run."""


class Shelf(Protocol):
    """Where keys and results are kept."""

    async def take(self, key: bytes, content: bytes, *, again: bool) -> bytes | None:
        """None: the key is the caller's now. Else its result, empty while another one runs it; ``KeyReused`` for other content.

        A run that was lost makes the key the caller's with ``again``, else it is ``RunLost``. ``StoreHeld``: not now, ask again.
        """
        ...

    def protects(self, key: bytes) -> bool:
        """Whether a key that was taken holds for every process and after a restart; of another key whether it would now."""
        ...

    async def has(self, key: bytes, *, again: bool) -> bool:
        """Whether ``take`` would not make a key the caller's; takes nothing."""
        ...

    async def sight(self, key: bytes) -> tuple[Sight, float] | None:
        """Who runs a key's call, and for how many seconds; None where nobody does, or it is not known."""
        ...

    async def put(self, key: bytes, result: bytes) -> None:
        """The result of a key that was taken."""
        ...

    def free(self, key: bytes) -> None:
        """Nothing came of a key that was taken, or may have been; does not wait."""
        ...


class MemoryShelf:
    """Results of one text or one process; as many as come."""

    def __init__(self) -> None:
        self._kept: dict[bytes, tuple[bytes, bytes]] = {}

    async def take(self, key: bytes, content: bytes, *, again: bool) -> bytes | None:
        """See ``Shelf``."""
        digest = hashlib.sha256(content).digest()
        known = self._kept.setdefault(key, (digest, b""))
        if known[0] != digest:
            raise KeyReused
        return known[1] or None

    def protects(self, key: bytes) -> bool:
        """See ``Shelf``."""
        return False

    async def has(self, key: bytes, *, again: bool) -> bool:
        """See ``Shelf``."""
        return key in self._kept

    async def sight(self, key: bytes) -> tuple[Sight, float] | None:
        """See ``Shelf``."""
        return None

    async def put(self, key: bytes, result: bytes) -> None:
        """See ``Shelf``."""
        self._kept[key] = (self._kept[key][0], result)

    def free(self, key: bytes) -> None:
        """See ``Shelf``."""
        if key in self._kept and not self._kept[key][1]:
            del self._kept[key]


class IdempotencyKeys:
    """Results by key."""

    def __init__(self, shelf: Shelf | None = None) -> None:
        """``shelf`` None is one in memory that goes with this object."""
        self._shelf = shelf or MemoryShelf()
        self._running: dict[str, tuple[bytes, asyncio.Event]] = {}

    async def has(self, key: str, *, again: bool = True) -> bool:
        """Whether ``stored`` would leave nothing to the caller to run, as things are now; takes nothing and waits for no run."""
        return key in self._running or await self._shelf.has(_named(key), again=again)

    def protects(self, key: str) -> bool:
        """Whether a key that the caller runs or was answered from holds for every process and after a restart."""
        return self._shelf.protects(_named(key))

    async def stored(
        self, key: str, content: object, *, again: bool = True, patience_s: float = math.inf
    ) -> ExecutionResult | None:
        """The result of an earlier run, or None: then the caller runs it, and must ``keep`` or ``drop`` the key.

        Waits up to ``patience_s`` while another run of the key goes on, here or in another process. Raises ``KeyReused`` when the key
        stands for other content, unless ``again`` ``RunLost`` when its run was lost, ``StillRunning``, and ``StoreHeld``.
        """
        text = _encoded(content)
        digest = hashlib.sha256(text).digest()
        pause = 0.01
        clock = asyncio.get_running_loop().time
        until = math.inf
        while True:
            running = self._running.get(key)
            if running is not None:
                if not hmac.compare_digest(running[0], digest):
                    raise KeyReused
                until = min(until, clock() + patience_s)
                if not await _is_set_before(running[1], until - clock()):
                    raise StillRunning(await self._shelf.sight(_named(key)))
                continue
            # before the shelf is asked, so that a second one that comes meanwhile waits here
            self._running[key] = (digest, asyncio.Event())
            try:
                found = await self._shelf.take(_named(key), text, again=again)
            except (KeyReused, RunLost):
                self._ended(key)
                raise
            except StoreHeld:
                self._ended(key)
                until = min(until, clock() + patience_s)
                if clock() >= until:
                    raise
                pause = await _paused(pause, until - clock())
                continue
            except BaseException:
                # it may have been taken all the same
                self.drop(key)
                raise
            if found is None:
                return None
            self._ended(key)
            if found:
                return read_result(found)
            until = min(until, clock() + patience_s)
            left = until - clock()
            if left <= 0:
                raise StillRunning(await self._shelf.sight(_named(key)))
            pause = await _paused(pause, left)

    async def keep(self, key: str, result: ExecutionResult, secrets: Sequence[str] = ()) -> None:
        """Stores the result of the run that ``stored`` left to the caller, with ``secrets`` masked."""
        try:
            await self._shelf.put(_named(key), stored_result(result, secrets))
        finally:
            self._ended(key)

    def drop(self, key: str) -> None:
        """Nothing ran: the key is free again."""
        self._shelf.free(_named(key))
        self._ended(key)

    def _ended(self, key: str) -> None:
        with contextlib.suppress(KeyError):
            self._running.pop(key)[1].set()


async def _paused(pause: float, left: float) -> float:
    """Waits, and gives how long to wait the next time."""
    await asyncio.sleep(min(pause, left))
    return min(pause * 2, _MAX_PAUSE_S)


async def _is_set_before(event: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), None if seconds == math.inf else max(seconds, 0))
    except TimeoutError:
        return event.is_set()
    return True


def _named(key: str) -> bytes:
    return key.encode("utf-8", "surrogatepass")


def _encoded(content: object) -> bytes:
    try:
        return msgspec.json.encode(content, order="sorted")
    except (UnicodeError, ValueError, TypeError, OverflowError):
        # lone surrogates, and numbers beyond 64 bits
        return json.dumps(content, sort_keys=True, default=repr).encode("ascii")
