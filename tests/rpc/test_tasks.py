"""Tasks and cancelling as a host has them: over restarts, after a killed daemon, beside a second one (A52, D92, T15, V52, V53)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tamis.client import Client, RpcFailure
from tamis.server.runtime.store.folders import state_folder
from tests.rpc.inside import PATIENT, InsideClient
from tests.sample_tools import make_tool, vcp
from tests.waiting import until

ASYNC = {"mode": "async"}
HANG = "import time\ntime.sleep(86400)"
EVENTS: list[dict[str, Any]] = []
"""What the one daemon told of its calls."""


def tools(root: Path) -> Path:
    make_tool(root, "late", execution=ASYNC)
    make_tool(root, "hang", HANG, execution=ASYNC)
    make_tool(root, "sleeper", HANG)
    make_tool(root, "echo")
    (root / "tamis.toml").write_text(PATIENT)
    return root


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root and a store of one test's own."""
    monkeypatch.setenv("TAMIS_STATE_DIR", str(tmp_path / "state"))
    return tools(tmp_path)


def note(method: str, params: Any) -> None:
    if method == "tool/event":
        EVENTS.append(params)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """One daemon for all tests that need no more."""
    folder = tmp_path_factory.mktemp("tasks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAMIS_STATE_DIR", str(folder / "state"))
        started = Client(tools(folder), on_notification=note)
    with started:
        # without it nothing is told of single calls
        started.request(
            "initialize", {"processId": None, "capabilities": {"experimental": {"tamis": {"events": True}}}}
        )
        yield started


def start(client: Client, tool: str, **more: Any) -> str:
    accepted = client.request("tool/execute", {"toolId": tool, "args": {}, **more})
    assert accepted["status"] == "accepted"
    return accepted["taskId"]


def failure(client: Client, method: str, params: Any) -> RpcFailure:
    with pytest.raises(RpcFailure) as caught:
        client.request(method, params)
    return caught.value


def test_a_task_from_its_start_to_its_result(root: Path) -> None:
    told: list[dict[str, Any]] = []

    def note(method: str, params: Any) -> None:
        if method == "task/changed":
            told.append(params)

    with InsideClient(root, on_notification=note) as client:
        accepted = client.request("tool/execute", {"toolId": "late", "args": {"text": "x"}})
        task_id = accepted["taskId"]
        result = client.request("task/result", {"taskId": task_id, "waitMs": 600_000})
        assert (result["status"], result["output"], result["taskId"]) == ("success", {"text": "x"}, task_id)
        task = client.request("task/get", {"taskId": task_id})
        assert (task["status"], task["result"]) == ("completed", result)
        assert client.request("task/cancel", {"taskId": task_id}) == task
        (listed,) = client.request("task/list")["tasks"]
        assert listed == {name: value for name, value in task.items() if name != "result"}
    assert [(one["taskId"], one["status"]) for one in told] == [(task_id, "working"), (task_id, "completed")]


def test_results_and_keys_are_known_after_a_restart(root: Path) -> None:  # D92: durable; T24, ruling 26
    params = {"toolId": "echo", "args": {"text": "x"}, "idempotencyKey": "k"}
    with Client(root) as client:
        task_id = start(client, "late")
        before = client.request("task/result", {"taskId": task_id, "waitMs": 600_000})
        assert client.request("tool/execute", params)["replayed"] is False
    with Client(root) as client:
        assert client.request("task/result", {"taskId": task_id}) == before
        again = client.request("tool/execute", params)
        assert (again["replayed"], again["output"]) == (True, {"text": "x"})
        other = client.request("tool/execute", {**params, "args": {"text": "y"}})
        assert other["error"]["details"]["code"] == "idempotencyMismatch"


def test_the_tasks_of_a_killed_daemon_become_failed(root: Path) -> None:  # never stuck on working
    client = Client(root)
    try:
        task_id = start(client, "hang")
        os.kill(client.process.pid, signal.SIGKILL)
        client.process.wait()
        with Client(root) as next_one:
            task = next_one.request("task/get", {"taskId": task_id})
            assert (task["status"], task["error"]["type"]) == ("failed", "ServiceError")
            assert task["error"]["details"]["code"] == "taskLost"
            assert "ended from outside or crashed" in task["error"]["message"]
            assert next_one.request("task/result", {"taskId": task_id, "waitMs": 600_000})["status"] == "error"
            events = [json.loads(line) for line in (state_folder() / "audit.jsonl").read_text().splitlines()]
            # Whoever notices writes it down, once (D27).
            lost = [one for one in events if one["event"] == "task.lost"]
            assert [(one["taskId"], one["tool"], one["root"]) for one in lost] == [(task_id, "hang", str(root))]
            assert {one["callId"] for one in events if one.get("taskId") == task_id} == {lost[0]["callId"]}
    finally:
        with contextlib.suppress(Exception):
            client.close()


def test_a_second_daemon_sees_the_tasks_of_the_first_and_does_not_take_them(root: Path) -> None:
    with Client(root) as first:
        own, other = start(first, "hang"), start(first, "hang")
        with Client(root) as second:
            assert [task["status"] for task in second.request("task/list")["tasks"]] == ["working", "working"]
            waited = second.request("task/result", {"taskId": own, "waitMs": 10})
            assert (waited["status"], waited["taskId"]) == ("accepted", own)
            assert second.request("task/cancel", {"taskId": own})["taskId"] == own
            assert second.request("task/result", {"taskId": own, "waitMs": 600_000})["status"] == "cancelled"
        assert first.request("task/get", {"taskId": own})["status"] == "cancelled"
        assert first.request("task/get", {"taskId": other})["status"] == "working"


def called_as(root: Path, client_name: str, **params: Any) -> Any:
    """A call by a host of that name, in a daemon of its own."""
    with InsideClient(root) as client:
        client.request("initialize", {"processId": None, "capabilities": {}, "clientInfo": {"name": client_name}})
        return client.request("tool/execute", {"toolId": "once", "args": {}, "idempotencyKey": "k", **params})


def test_a_key_is_its_callers_and_a_rule_stands_before_it(root: Path) -> None:
    """trust 6: two clients, two sessions, and a deny rule for one of them."""
    make_tool(root, "once", "import json, time\nprint(json.dumps(time.time_ns()))")
    (root / "tamis.toml").write_text('[[policy.rules]]\nsession = "guest"\nverdict = "deny"\n')
    first = called_as(root, "one", context={"sessionId": "a"})
    again = called_as(root, "one", context={"sessionId": "a"})
    assert (again["output"], again["replayed"]) == (first["output"], True)
    other = called_as(root, "two", context={"sessionId": "a"})
    session = called_as(root, "one", context={"sessionId": "b"})
    assert len({first["output"], other["output"], session["output"]}) == 3
    refused = called_as(root, "one", context={"sessionId": "guest"})
    assert (refused["status"], "output" in refused, refused["replayed"]) == ("blocked", False, False)
    (root / "tamis.toml").write_text('[policy.tools]\nonce = "deny"\n')
    refused = called_as(root, "one", context={"sessionId": "a"})
    assert (refused["status"], "output" in refused, refused["replayed"]) == ("blocked", False, False)


def test_two_daemons_with_one_key_run_it_once(root: Path) -> None:
    make_tool(root, "slow", "import json, os, time\ntime.sleep(0.5)\nprint(json.dumps(time.time_ns()))")
    params = {"toolId": "slow", "args": {}, "idempotencyKey": "k"}
    with Client(root) as first, Client(root) as second:
        results = [sent.result() for _, sent in [one.send("tool/execute", params) for one in (first, second)]]
    assert results[0]["output"] == results[1]["output"]
    assert sorted(result["replayed"] for result in results) == [False, True]


def test_an_unknown_task_is_an_error(client: Client) -> None:  # interface: 1301
    for method in ("task/get", "task/result", "task/cancel"):
        error = failure(client, method, {"taskId": "nope"})
        assert (error.code, error.data["code"], error.data["retryable"]) == (1301, "taskNotFound", False)
        assert failure(client, method, {}).code == -32602


def test_a_wait_for_a_result_can_be_cancelled(client: Client) -> None:
    task_id = start(client, "hang")
    number, waiting = client.send("task/result", {"taskId": task_id, "waitMs": 600_000})
    client.cancel(number)
    with pytest.raises(RpcFailure) as caught:
        waiting.result()
    assert caught.value.code == -32800
    assert client.request("task/get", {"taskId": task_id})["status"] == "working"


def test_a_request_that_is_cancelled_later_does_not_end_its_task(client: Client) -> None:
    number, sent = client.send("tool/execute", {"toolId": "hang", "args": {}})
    task_id = sent.result()["taskId"]
    client.cancel(number)
    assert client.request("task/result", {"taskId": task_id, "waitMs": 50})["status"] == "accepted"


def executing(call_id: str) -> None:
    """Waits until a call with that end of its id is run."""
    until(lambda: any(one["callId"].endswith(call_id) and one["state"] == "executing" for one in list(EVENTS)))
    EVENTS.clear()


def test_a_running_call_is_cancelled_by_its_id(client: Client) -> None:  # V52
    call = {"callId": "mine", "toolId": "sleeper", "args": {}}
    _, sent = client.send("tool/execute", {"call": call})
    executing("mine")
    assert client.request("tool/cancel", {"callId": "mine"}) == {"cancelled": ["mine"], "notFound": []}
    assert sent.result()["status"] == "cancelled"
    assert client.request("tool/cancel", {"callId": "mine"}) == {"cancelled": [], "notFound": ["mine"]}


def test_cancelling_keeps_what_has_ended_and_marks_the_rest(client: Client) -> None:  # V52, V53, V54
    text = "\n".join((vcp("echo", text="a"), vcp("sleeper"), vcp("echo", text="b")))
    context = {"sessionId": "s"}
    EVENTS.clear()
    _, sent = client.send("tool/executeText", {"text": text, "context": context})
    executing("-2")
    cancelled = client.request("tool/cancel", {"sessionId": "s"})
    assert (len(cancelled["cancelled"]), cancelled["notFound"]) == (1, [])
    result = sent.result()
    assert [one["status"] for one in result["results"]] == ["success", "cancelled", "cancelled"]
    assert result["results"][0]["output"] == {"text": "a"}
    assert all(one["observation"] for one in result["results"])


def test_cancelling_a_session_ends_its_tasks_too(client: Client) -> None:
    own = start(client, "hang", context={"sessionId": "s"})
    other = start(client, "hang", context={"sessionId": "t"})
    cancelled = client.request("tool/cancel", {"sessionId": "s"})
    assert own in cancelled["cancelled"]
    assert client.request("task/result", {"taskId": own, "waitMs": 600_000})["status"] == "cancelled"
    assert client.request("task/get", {"taskId": other})["status"] == "working"
    assert client.request("tool/cancel", {"taskId": other})["cancelled"] == [other]


def test_what_cannot_be_cancelled_is_said(client: Client) -> None:
    assert client.request("tool/cancel", {"callId": "x", "taskId": "y"}) == {"cancelled": [], "notFound": ["x", "y"]}
    assert client.request("tool/cancel", {"sessionId": "s"}) == {"cancelled": [], "notFound": ["s"]}
    task_id = start(client, "late")
    client.request("task/result", {"taskId": task_id, "waitMs": 600_000})
    assert client.request("tool/cancel", {"taskId": task_id}) == {"cancelled": [], "notFound": [task_id]}
    for params in ({}, {"callId": ""}, {"callId": 7}):
        assert failure(client, "tool/cancel", params).code == -32602
