"""The example workflow is clean, runs as its words say, and can be drawn (W13, W18)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tamis.server.cli.main import main
from tamis.server.runtime.calls.model import CallRequest
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.runtime import Runtime

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"


def test_the_example_workflow_has_no_findings() -> None:
    assert main(["check", "--strict", str(EXAMPLES / "workflows")]) == 0


def test_the_example_workflow_takes_either_branch() -> None:
    texts = ["one two three", "工具很好用。 more words here"]

    async def run(seconds: float) -> object:
        runtime = Runtime(EXAMPLES)
        args = {"texts": texts, "seconds": seconds}
        result = await execute(
            CallRequest(call_id="c", name="workflow:reading_list", args=args), runtime.call_context()
        )
        await runtime.close()
        assert result.status == "success", result.error
        return result.output

    assert asyncio.run(run(600)) == {"verdict": "There is time: 3 of 600 seconds.", "each": [1, 2]}
    assert asyncio.run(run(1)) == {"verdict": "Too much to read: 3 seconds, and there are 1.", "each": [1, 2]}
