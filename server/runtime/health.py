"""What the daemon says of itself: versions, the sandbox, what runs. Shared by ``doctor``, ``initialize`` and ``server/health``."""

from __future__ import annotations

import time
from typing import Any

from tamis import __version__
from tamis.protocols.contract import RPC_VERSION
from tamis.server.runtime.handlers.script.judge import UNSANDBOXED
from tamis.server.runtime.runtime import MAX_TEXT_CHARS, Runtime
from tamis.server.runtime.settings.config import Settings

NO_SANDBOX_NOTE = "TAMIS_UNSAFE_NO_SANDBOX is set: scripts run with all of this user's rights, and nothing holds them"


def sandbox_state(settings: Settings, *, refresh: bool = False) -> dict[str, Any]:
    """The sandbox probe as data: ``available``, backend, version, and cause and remedy when it is not."""
    from tamis.sandbox.probe import probe

    sandbox = probe(refresh=refresh, backend=settings.sandbox.backend)
    state: dict[str, Any] = {
        "available": sandbox.available,
        "backend": sandbox.backend,
        "version": sandbox.version,
        "network": sandbox.network,
        "memory": sandbox.memory,
        "pids": sandbox.pids,
    }
    if not sandbox.available:
        state |= {"reason": sandbox.reason, "remedy": sandbox.remedy}
    return state


def audit_state(runtime: Runtime, *, look: bool = False) -> dict[str, Any]:
    """Whether the audit log is kept, where, and what keeps it from being written; ``look`` opens it to see."""
    audit = runtime.audit
    if audit is None:
        return {"enabled": False}
    problem = audit.check() if look else audit.problem
    return {"enabled": True, "path": str(audit.path)} | ({"problem": problem} if problem else {})


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


def _trusting(runtime: Runtime) -> tuple[str, ...]:
    """What this process was started with that makes every folder trusted."""
    loaded = runtime.loaded
    if not loaded.asks or loaded.trusted_by not in ("--trust", "TAMIS_TRUST"):
        return ()
    asked = ", ".join(dict.fromkeys(ask.setting for ask in loaded.asks))
    return (f"{loaded.trusted_by} puts in force: {asked}",)


def health(runtime: Runtime) -> dict[str, Any]:
    """``server/health``."""
    registry = runtime.registry
    state = sandbox_state(runtime.settings)
    audit = audit_state(runtime)
    unsafe = state["backend"] == UNSANDBOXED
    store = runtime.parts.store_problem
    lack = _sandbox_problem(state)
    return {
        "status": "ok" if not lack and not unsafe and "problem" not in audit and not store else "degraded",
        "version": __version__,
        "rpc": RPC_VERSION,
        "uptimeMs": round((time.monotonic() - runtime.started) * 1000),
        "root": str(runtime.root),
        "tools": len(registry.tools),
        "manifestErrors": len(registry.errors),
        "conflicts": len(registry.conflicts),
        "running": runtime.running,
        "sandbox": state,
        "warm": runtime.warming.metrics() if runtime.warming is not None else None,
        "audit": audit,
        "problems": [
            *runtime.loaded.problems,
            *(setting.sentence for setting in runtime.loaded.not_in_force),
            *(_trusting(runtime)),
            *([audit["problem"]] if "problem" in audit else ()),
            *([store] if store else ()),
            *([NO_SANDBOX_NOTE] if unsafe else ()),
            *([lack] if lack else ()),
        ],
    }


def _sandbox_problem(state: dict[str, Any]) -> str:
    """Why scripts cannot run now, or could not a moment ago; empty when they can."""
    from tamis.sandbox.probe import lately_lacked

    if not state["available"]:
        return f"no sandbox: {state['reason']}; remedy: {state['remedy']}"
    lacked = lately_lacked()
    return f"a sandbox could not be started a moment ago: {lacked}" if lacked else ""
