"""Runtimes with an agent profile."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from tamis.protocols.contract import ExecutionResult
from tamis.server.runtime.calls.model import CallRequest
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.runtime import Runtime


def call(root: Path, settings: dict[str, Any], tool_id: str = "test:echo", times: int = 1) -> list[ExecutionResult]:
    runtime = Runtime(root, settings)

    async def run() -> list[ExecutionResult]:
        return [
            await execute(CallRequest(call_id="c", name=tool_id, args={"text": "x"}), runtime.call_context())
            for _ in range(times)
        ]

    return asyncio.run(run())


def with_profile(root: Path, profile: Any) -> ExecutionResult:
    (root / "agent_profile.json").write_text(profile if isinstance(profile, str) else json.dumps(profile))
    return call(root, {"profile": "agent_profile.json"})[0]


ON = {"enabled": True}
