"""One call of a small tool through a runtime."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult
from tamis.server.runtime.calls.model import CallRequest
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.runtime import Runtime


def run_tool(
    root: Path,
    tool_id: str,
    args: dict[str, Any] | None = None,
    *,
    settings: dict[str, Any] | None = None,
    **request: Any,
) -> ExecutionResult:
    async def run() -> ExecutionResult:
        around = Runtime(root, settings).call_context(ask=request.pop("asker", None))
        return await execute(CallRequest(call_id="call-1", name=tool_id, args=args or {}, **request), around)

    return asyncio.run(run())


def error_of(result: ExecutionResult) -> dict[str, Any]:
    assert result.error is not UNSET, result
    return msgspec.to_builtins(result.error)
