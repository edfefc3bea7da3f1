"""Asynchronous tools as tasks of the extension (mcp, tools/call; issue of MCP, tasks)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.raw_client import RawClient
from tests.sample_tools import make_tool
from tests.waiting import until

TASKS: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
WAITS = "import json, sys, time\ntime.sleep(json.load(sys.stdin)['seconds'])\nprint('\"late\"')"
SECONDS = {"seconds": {"type": "number"}}


@pytest.fixture
def late(root: Path) -> Iterator[RawClient]:
    make_tool(root, "core:late", WAITS, properties=SECONDS, execution={"mode": "async"})
    make_tool(root, "core:lost", "raise SystemExit(3)", execution={"mode": "async"})
    with RawClient(root) as made:
        yield made


def ended(server: RawClient, task_id: str) -> dict[str, Any]:
    def task() -> dict[str, Any] | None:
        told = server.modern("tasks/get", {"taskId": task_id}, able=TASKS)["result"]
        assert told["resultType"] == "complete"
        return told if told["status"] != "working" else None

    return until(task)


def test_an_asynchronous_tool_is_a_task_that_is_asked_after(late: RawClient) -> None:
    begun = late.call("core_late", {"seconds": 0.2}, able=TASKS)
    assert begun["resultType"] == "task"
    assert begun["status"] == "working"
    task = ended(late, begun["taskId"])
    assert task["status"] == "completed"
    assert task["result"]["content"] == [{"type": "text", "text": "late"}]


def test_a_tool_that_failed_has_completed_with_an_error(late: RawClient) -> None:
    task = ended(late, late.call("core_lost", able=TASKS)["taskId"])
    assert task["status"] == "completed"
    assert task["result"]["isError"] is True


def test_a_task_is_cancelled(late: RawClient) -> None:
    begun = late.call("core_late", {"seconds": 86_400}, able=TASKS)
    params = {"taskId": begun["taskId"]}
    assert (
        late.modern("tasks/update", {**params, "inputResponses": {"x": {}}}, able=TASKS)["result"]["resultType"]
        == "complete"
    )
    assert late.modern("tasks/cancel", params, able=TASKS)["result"]["resultType"] == "complete"
    assert ended(late, begun["taskId"])["status"] == "cancelled"


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_tasks_are_for_those_who_know_them(late: RawClient, method: str) -> None:
    told = late.modern(method, {"taskId": "task-1"})["error"]
    assert told["code"] == -32021
    assert told["data"] == {"requiredCapabilities": TASKS}
    for unknown in ("task-" + "0" * 20, "", 7, None):
        assert late.modern(method, {"taskId": unknown}, able=TASKS)["error"]["code"] == -32602


def test_a_synchronous_tool_is_no_task_for_anybody(late: RawClient) -> None:
    assert late.call("core_echo", {"text": "x"}, able=TASKS)["resultType"] == "complete"
