"""One execution per idempotency key: the same key with the same content gives the stored result (T24, ruling 26).

Kept in memory, bounded; a second request that comes while the first still runs waits for it. Must not know what a call is.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict

import msgspec

from tamis.protocols.contract import ExecutionResult

MAX_KEPT = 1_000


class KeyReused(Exception):  # noqa: N818 (an outcome, not a fault)
    """A key came again with other content."""


class Replays:
    """Results by key."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[str, asyncio.Future[ExecutionResult | None]]] = OrderedDict()

    async def stored(self, key: str, content: object) -> ExecutionResult | None:
        """The result of an earlier run, or None: then the caller runs it, and must ``keep`` or ``drop`` the key.

        Raises ``KeyReused`` when the key stands for other content.
        """
        digest = hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()
        while True:
            known = self._kept.get(key)
            if known is None:
                self._kept[key] = (digest, asyncio.get_running_loop().create_future())
                while len(self._kept) > MAX_KEPT:
                    self._kept.popitem(last=False)
                return None
            if known[0] != digest:
                raise KeyReused
            result = await asyncio.shield(known[1])
            if result is not None:
                return result

    def keep(self, key: str, result: ExecutionResult) -> None:
        """Stores the result of the run that ``stored`` left to the caller."""
        known = self._kept.get(key)
        if known is not None and not known[1].done():
            known[1].set_result(result)

    def drop(self, key: str) -> None:
        """Nothing ran: the key is free again."""
        known = self._kept.pop(key, None)
        if known is not None and not known[1].done():
            known[1].set_result(None)
