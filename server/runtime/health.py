"""What the daemon says of itself: versions, the sandbox, what runs. Shared by ``doctor``, ``initialize`` and ``server/health``."""

from __future__ import annotations

import time
from typing import Any

from tamis import __version__
from tamis.protocols.contract import RPC_VERSION
from tamis.server.runtime.runtime import MAX_TEXT_CHARS, Runtime


def sandbox_state(*, refresh: bool = False) -> dict[str, Any]:
    """The sandbox probe as data: ``available``, backend, version, and cause and remedy when it is not."""
    from tamis.sandbox.probe import probe

    found = probe(refresh=refresh)
    state: dict[str, Any] = {
        "available": found.available,
        "backend": found.backend,
        "version": found.version,
        "network": found.network,
        "memory": found.memory,
        "pids": found.pids,
    }
    if not found.available:
        state |= {"reason": found.reason, "remedy": found.remedy}
    return state


def limits(runtime: Runtime) -> dict[str, int]:
    """The limits that a client should know."""
    own = runtime.settings.sandbox
    return {
        "textChars": MAX_TEXT_CHARS,
        "wallMs": own.wall_ms,
        "stdinBytes": own.stdin_bytes,
        "stdoutBytes": own.stdout_bytes,
        "memoryBytes": own.memory_bytes,
    }


def health(runtime: Runtime) -> dict[str, Any]:
    """``server/health``."""
    registry = runtime.registry
    state = sandbox_state()
    return {
        "status": "ok" if state["available"] else "degraded",
        "version": __version__,
        "rpc": RPC_VERSION,
        "uptimeMs": round((time.monotonic() - runtime.started) * 1000),
        "root": str(runtime.root),
        "tools": len(registry.tools),
        "manifestErrors": len(registry.errors),
        "conflicts": len(registry.conflicts),
        "running": runtime.running,
        "sandbox": state,
        "problems": list(runtime.loaded.problems),
    }
