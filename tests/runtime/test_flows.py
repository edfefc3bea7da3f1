"""The seeds' sequences from end to end: loading a tool (D54), running one (D68, A48), and what a result shows to a person (V59)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tamis.protocols.catalogue import CATALOGUE
from tamis.protocols.contract import ExecutionResult
from tamis.server.runtime.calls.model import CallRequest
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.runtime import Runtime
from tests.sample_tools import make_tool


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "tamis.toml").write_text('tools = ["a", "b"]\n[audit]\npath = "audit.jsonl"\n', "utf-8")
    make_tool(tmp_path / "a", "test:echo")
    make_tool(tmp_path / "b", "test:net", securityContext={"networkAccess": {"allowHosts": ["example.com"]}})
    (tmp_path / "b" / "broken.tool.json").write_text('{"toolId": "test:broken"', "utf-8")
    return tmp_path


def call(runtime: Runtime, name: str, **args: Any) -> ExecutionResult:
    return asyncio.run(execute(CallRequest(call_id="c-1", name=name, args=args), runtime.call_context()))


def events(root: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (root / "audit.jsonl").read_text("utf-8").splitlines()]


def test_tools_are_loaded_in_the_eight_steps_of_the_seed(root: Path) -> None:  # D54, D49, D48
    runtime = Runtime(root)
    # the folders that are configured are searched, each file is read, parsed and checked on its own, and what reads clean is registered
    assert {tool.tool_id for tool in runtime.registry.tools if tool.origin == "manifest"} == {"test:echo", "test:net"}
    (error,) = runtime.registry.errors
    assert error.path.endswith("broken.tool.json")
    assert error.line == 1
    # … listed with what a caller needs, and callable
    listed = {tool.tool_id: tool for tool in runtime.list_tools(full=True).tools}
    assert listed["test:echo"].callable
    assert listed["test:echo"].available
    assert call(runtime, "test:echo", text="x").status == "success"


def test_schemas_are_compiled_once(root: Path) -> None:  # D55
    runtime = Runtime(root)
    tool = runtime.registry.get("test:echo")
    assert tool is not None
    before = tool.plan
    call(runtime, "test:echo", text="x")
    assert tool.plan is before


def test_a_run_goes_through_its_steps_in_order(root: Path) -> None:  # D68, A48, D63, D25
    assert call(Runtime(root), "test:net", text="x").status == "success"
    told = [event["event"] for event in events(root)]
    # the security context is looked at before anything runs, and what it was refused is written down
    assert told == ["call.received", "rights.granted", "rights.denied", "run.started", "run.ended", "call.ended"]


def test_a_call_that_does_not_fit_never_comes_to_its_rights(root: Path) -> None:  # D63, A28
    result = call(Runtime(root), "test:net", txet="x")
    assert (result.status, result.attempts) == ("error", 0)
    assert [event["event"] for event in events(root)] == ["call.received", "call.ended"]


def test_a_result_has_everything_that_a_tool_node_shows(root: Path) -> None:  # V59
    result = call(Runtime(root), "test:echo", text="工具")
    assert (result.tool_id, result.status, result.output) == ("test:echo", "success", {"text": "工具"})
    assert result.duration_ms > 0
    assert "工具" in result.observation


def test_every_error_has_a_stable_code_and_a_name() -> None:  # A50
    assert all(entry.slug and entry.slug == entry.slug.lower() for entry in CATALOGUE.values())
    assert len({entry.slug for entry in CATALOGUE.values()}) > 100
