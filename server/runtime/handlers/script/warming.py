"""Warm starts for a daemon: which calls share a waiting sandbox, and when those that wait must go.

The pool itself is `sandbox/warm/pool.py`, loaded with the first call. A command that runs one call and ends has no use for it.
Must not know faces.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from tamis.server.runtime.tools.registry import Tool

if TYPE_CHECKING:
    import asyncio

    from tamis.sandbox.engine import OnOutput
    from tamis.sandbox.model import RunOutcome, RunRequest
    from tamis.sandbox.runner import OnWait
    from tamis.sandbox.warm.pool import Hold, Pool


class Warming:
    """The waiting sandboxes of one daemon; all methods are called on its loop."""

    def __init__(self) -> None:
        self._pool: Pool | None = None
        self._templates = False

    def allow_templates(self, allowed: bool) -> None:
        """Whether a busy Python tool's sandboxes may be forked by a template of it; of what is there, ``reset`` lets go."""
        self._templates = allowed
        if self._pool is not None:
            self._pool.settings = msgspec.structs.replace(self._pool.settings, templates=allowed)

    async def run(
        self,
        request: RunRequest,
        tool: Tool,
        *,
        hold: Hold | None = None,
        on_output: OnOutput | None,
        cancelled: asyncio.Event | None,
        on_wait: OnWait | None = None,
    ) -> RunOutcome:
        """As `sandbox.runner.run`: in a sandbox that waits for just this, or in a new one; `hold` as for the pool."""
        if self._pool is None:
            from tamis.sandbox.warm.pool import Pool, PoolSettings

            self._pool = Pool(PoolSettings(templates=self._templates))
        return await self._pool.run(
            request,
            generation=_generation(tool),
            hold=hold,
            on_output=on_output,
            cancelled=cancelled,
            on_wait=on_wait,
        )

    def reset(self) -> None:
        """Let everything that waits go: the manifests were read again."""
        if self._pool is not None:
            self._pool.reset()

    async def close(self) -> None:
        """Let everything go, for good, and wait for it."""
        if self._pool is not None:
            await self._pool.close()

    def metrics(self) -> dict[str, Any]:
        """What waits and how often that helped, for ``server/health``."""
        from tamis.sandbox.warm.pool import PoolMetrics

        return msgspec.to_builtins(self._pool.metrics() if self._pool is not None else PoolMetrics())


@lru_cache(maxsize=256)
def _generation(tool: Tool) -> str:
    """A manifest as it is now: a sandbox that was started under another one is not used."""
    return hashlib.sha256(msgspec.json.encode(tool.manifest.raw)).hexdigest()
