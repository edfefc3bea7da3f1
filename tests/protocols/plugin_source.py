"""The protocol plug-in of ``docs/protocols.md``, as source and at work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tamis.protocols.contract import ExecutionResult, Granted, Permissions, Usage
from tamis.protocols.model import Json

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "protocols.md"


def example_source() -> str:
    """The plug-in of the documentation."""
    return PAGE.read_text("utf-8").split("```python\n", 1)[1].split("```", 1)[0]


INVOKE = '<invoke name="core:echo"><parameter name="text">a < b</parameter></invoke>'


def result(status: Any = "success", output: Json = None) -> ExecutionResult:
    return ExecutionResult(
        call_id="call-1",
        tool_id="core:echo",
        version="1.0.0",
        status=status,
        output=output,
        usage=Usage(cpu_ms=0.0, max_rss_bytes=0),
        permissions=Permissions(requested={}, granted=Granted(), denied=[]),
    )
