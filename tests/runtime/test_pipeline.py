"""The pipeline of a call: how long it may take, and that what is asked ahead passes the same steps as what runs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tamis.server.runtime.calls.model import CallRequest
from tamis.server.runtime.calls.runner import effective_timeout_ms
from tamis.server.runtime.execution.pipeline import execute, question_of
from tamis.server.runtime.runtime import Runtime
from tests.sample_tools import make_tool

WALLS = {"sandbox": {"wallMs": 30_000}, "tasks": {"wallMs": 500_000}, "engine": {"wallMs": 90_000}}


@pytest.mark.parametrize(
    ("fields", "in_task", "asked_ms", "expected"),
    [
        ({}, False, None, 30_000),
        ({}, False, 2_000, 2_000),
        ({}, False, 60_000, 30_000),
        ({"execution": {"timeoutMs": 4_000}}, False, 9_000, 4_000),
        ({"execution": {"limits": {"wallMs": 3_000}}}, False, None, 3_000),
        ({"execution": {"mode": "async"}}, False, None, 500_000),
        ({}, True, None, 500_000),
    ],
)
def test_a_call_may_take_the_least_of_what_is_said(
    tmp_path: Path, fields: dict[str, Any], in_task: bool, asked_ms: int | None, expected: int
) -> None:
    make_tool(tmp_path, "any", **fields)
    context = msgspec.structs.replace(Runtime(tmp_path, WALLS).call_context(), in_task=in_task)
    tool = context.registry.get("any")
    assert tool is not None
    assert effective_timeout_ms(tool, context, asked_ms) == expected


def test_a_workflow_has_the_engines_time(tmp_path: Path) -> None:
    flows = tmp_path / "flows"
    flows.mkdir()
    (flows / "plain.json").write_text('{"nodes": [], "edges": [], "interfaceInputs": {}, "interfaceOutputs": {}}')
    context = Runtime(tmp_path, WALLS | {"workflows": ["flows"]}).call_context()
    tool = context.registry.get("workflow:plain")
    assert tool is not None
    assert effective_timeout_ms(tool, context, None) == 90_000


def test_a_name_that_fits_no_tool_has_the_operators_time(tmp_path: Path) -> None:
    assert effective_timeout_ms(None, Runtime(tmp_path, WALLS).call_context(), None) == 30_000


def test_nobody_is_asked_ahead_about_a_call_that_would_be_refused(tmp_path: Path) -> None:
    make_tool(tmp_path, "any")

    async def run() -> None:
        context = Runtime(tmp_path).call_context()
        request = CallRequest(call_id="c", name="any", ask=True)
        assert await question_of(request, context, anyway=True) is not None
        closed = msgspec.structs.replace(context, closed="the folder's file is not safe")
        assert await question_of(request, closed, anyway=True) is None
        assert (await execute(request, closed)).status == "blocked"

    asyncio.run(run())
