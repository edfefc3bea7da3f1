"""Results of calls, for tests of what a model reads of them."""

from __future__ import annotations

from typing import Any

from tamis.protocols.contract import (
    ExecutionResult,
    Granted,
    Permissions,
    Status,
    Usage,
)


def result(status: Status = "success", tool_id: str = "t", **fields: Any) -> ExecutionResult:
    return ExecutionResult(
        call_id="c1",
        tool_id=tool_id,
        version="1.0.0",
        status=status,
        usage=Usage(cpu_ms=0, max_rss_bytes=0),
        permissions=Permissions(requested={}, granted=Granted(), denied=[]),
        **fields,
    )
