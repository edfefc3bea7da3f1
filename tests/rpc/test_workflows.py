"""Workflows over the wire: listed, described, run with their steps, cancelled, drawn, streamed (W13, W18 to W22, A44, A48)."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tamis.client import Client, RpcFailure
from tests.rpc.inside import InsideClient
from tests.rpc.seed_workflow import SEED
from tests.runtime.workflow_world import edge, flow

EXPECTED = """{"name":"workflow:summarize_text","description":"对提供的长文本进行摘要。当需要理解大量文本的核心内容时使用。","parameters":{"type":"object","properties":{"text_to_summarize":{"type":"string","description":"需要进行摘要处理的原始长文本内容。"},"summary_length":{"type":"string","description":"期望的摘要长度。","enum":["简短","中等","详细"]}},"required":["text_to_summarize"]}}"""
PARTS = flow(
    [
        {"id": "in", "type": "input"},
        {"id": "each", "type": "map", "config": {"type": "host:work", "item": "item"}},
        {"id": "note", "type": "template", "config": {"template": "{{n}} items"}},
        {"id": "n", "type": "constant", "config": {"value": 3}},
    ],
    [edge("in.list", "each.items"), edge("n.value", "note.n")],
    {"results": "each.results", "note": "note.text"},
    {"list": "ARRAY"},
    name='Works <on> "lists"',
)
STREAMED = json.loads(json.dumps(PARTS))
STREAMED["interfaceOutputs"]["results"]["isStream"] = True


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TAMIS_STATE_DIR", str(tmp_path / "state"))
    folder = tmp_path / "flows"
    folder.mkdir()
    (tmp_path / "tamis.toml").write_text('workflows = ["flows"]\n')
    (folder / "summarize_text.json").write_text(SEED, encoding="utf-8")
    (folder / "parts.json").write_text(json.dumps(PARTS))
    (folder / "streamed.json").write_text(json.dumps(STREAMED))
    return tmp_path


@pytest.fixture
def told() -> list[tuple[str, Any]]:
    return []


@pytest.fixture
def client(root: Path, told: list[tuple[str, Any]]) -> Iterator[Client]:
    held = threading.Event()

    def invoke(_method: str, params: Any) -> Any:
        item = params["args"]["item"]
        if item == "hold":
            held.wait()
        if item == "bad":
            raise RuntimeError("a bad item")
        return item * 2

    with InsideClient(
        root, on_request=invoke, on_notification=lambda method, params: told.append((method, params))
    ) as started:
        started.initialize()
        work = {
            "name": "work",
            "description": "Doubles an item.",
            "agentCallable": True,
            "parameters": {"type": "object"},
        }
        started.request("service/register", {"serviceName": "host", "methods": [work]})
        yield started
        held.set()


def test_the_worked_example_of_the_seed_comes_out_byte_for_byte(client: Client) -> None:  # W13, W06, W08
    described = client.request("workflow/describe", {"workflowId": "summarize_text"})
    assert json.dumps(described["definition"], ensure_ascii=False, separators=(",", ":")) == EXPECTED
    assert client.request("tool/describe", {"toolId": "workflow:summarize_text"})["definition"] == json.loads(EXPECTED)
    assert described["toolId"] == "workflow:summarize_text"
    assert [problem["path"] for problem in described["problems"]] == ["/nodes"]


def test_workflows_are_listed_with_what_they_take_and_give(client: Client) -> None:
    listed = {one["workflowId"]: one for one in client.request("workflow/list", {})["workflows"]}
    assert sorted(listed) == ["parts", "streamed", "summarize_text"]
    assert (listed["parts"]["inputs"], listed["parts"]["outputs"]) == (["list"], ["results", "note"])
    assert listed["parts"]["available"]
    assert not listed["summarize_text"]["available"]
    tools = {one["toolId"]: one for one in client.request("tool/list", {})["tools"]}
    assert tools["workflow:parts"]["kind"] == "workflow"
    assert tools["workflow:parts"]["namespace"] == "workflow"


def test_a_run_gives_outputs_steps_and_status(client: Client, told: list[tuple[str, Any]]) -> None:  # W18, W19, A48
    result = client.request("workflow/run", {"workflowId": "parts", "inputs": {"list": [1, 2, 3]}})
    assert result["status"] == "success"
    assert result["outputs"] == {"results": [2, 4, 6], "note": "3 items"}
    assert [(step["nodeId"], step["status"]) for step in result["steps"]] == [
        ("in", "success"),
        ("each", "success"),
        ("note", "success"),
        ("n", "success"),
    ]
    changed = [params for method, params in told if method == "workflow/stepChanged"]
    assert {one["callId"] for one in changed} == {result["callId"]}
    assert ("each", "running") in [(one["step"]["nodeId"], one["step"]["status"]) for one in changed]


def test_a_call_of_a_text_runs_a_workflow(client: Client) -> None:  # W14, W15, A26
    text = json.dumps({"toolName": "workflow:parts", "arguments": {"list": [5]}})
    result = client.request("tool/executeText", {"text": text})
    assert result["results"][0]["output"] == {"results": [10], "note": "3 items"}
    action = "<ACTION><parts><list><item>a</item><item>b</item></list></parts></ACTION>"
    result = client.request("tool/executeText", {"text": action})
    assert result["results"][0]["output"]["results"] == ["aa", "bb"]


def test_a_failing_node_is_named(client: Client) -> None:  # W21
    result = client.request("workflow/run", {"workflowId": "parts", "inputs": {"list": [1, "bad", 2]}})
    assert result["status"] == "error"
    assert result["error"]["type"] == "WorkflowError"
    node = result["error"]["details"]["node"]
    assert (node["nodeId"], node["type"], node["item"], node["error"]["type"]) == (
        "each",
        "host:work",
        1,
        "ServiceError",
    )
    steps = {step["nodeId"]: step["status"] for step in result["steps"]}
    assert steps["each"] == "error"
    assert result["outputs"] == {"note": "3 items"}


def test_an_unknown_workflow_is_an_unknown_tool(client: Client) -> None:
    result = client.request("workflow/run", {"workflowId": "prats"})
    assert (result["status"], result["error"]["type"]) == ("error", "UnknownTool")
    for method in ("workflow/describe", "workflow/graph"):
        with pytest.raises(RpcFailure) as failed:
            client.request(method, {"workflowId": "prats"})
        assert failed.value.code == 1001


def test_a_replayed_run_gives_its_outputs_again(client: Client) -> None:
    params = {"workflowId": "parts", "inputs": {"list": [1]}, "idempotencyKey": "k"}
    first, second = client.request("workflow/run", params), client.request("workflow/run", params)
    assert first["outputs"] == second["outputs"] == {"results": [2], "note": "3 items"}
    assert second["steps"] == []


def test_graphs_show_what_the_last_run_took(client: Client) -> None:
    before = client.request("workflow/graph", {"workflowId": "parts"})
    assert (before["format"], before["timed"]) == ("mermaid", False)
    client.request("workflow/run", {"workflowId": "workflow:parts", "inputs": {"list": [1]}})
    after = client.request("workflow/graph", {"workflowId": "parts", "format": "svg"})
    assert after["timed"]
    assert after["text"].startswith("<svg")
    assert " ms</text>" in after["text"]
    assert "Works &lt;on&gt; &quot;lists&quot;" in after["text"]


def test_a_streamed_output_is_read_behind_its_handle(client: Client) -> None:  # W22
    result = client.request("workflow/run", {"workflowId": "streamed", "inputs": {"list": [1, 2, 3]}})
    assert result["status"] == "success"
    handle = result["outputs"]["results"]["handle"]
    items: list[Any] = []
    for _ in range(20):
        read = client.request("stream/read", {"handle": handle, "waitMs": 1000})
        items += read["items"]
        if read["done"]:
            break
    assert items == [2, 4, 6]
    with pytest.raises(RpcFailure, match="no such stream"):
        client.request("stream/read", {"handle": handle})


def test_a_cancelled_run_gives_its_normal_result(
    client: Client, told: list[tuple[str, Any]]
) -> None:  # W19, interface: Notifications
    number, future = client.send("workflow/run", {"workflowId": "parts", "inputs": {"list": ["hold"]}})
    while ("each", "running") not in [
        (params["step"]["nodeId"], params["step"]["status"])
        for method, params in told
        if method == "workflow/stepChanged"
    ]:
        time.sleep(0.01)
    client.cancel(number)
    result = msgspec.to_builtins(future.result())
    assert result["status"] == "cancelled"
    assert {step["nodeId"]: step["status"] for step in result["steps"]}["each"] == "cancelled"
    assert result["outputs"] == {"note": "3 items"}


def test_a_new_workflow_needs_a_reload_and_no_restart(client: Client, root: Path) -> None:  # W20, A44
    (root / "flows" / "new.json").write_text(
        json.dumps(flow([{"id": "c", "type": "constant", "config": {"value": 1}}], outputs={"o": "c.value"}))
    )
    client.request("registry/reload", {})
    assert client.request("workflow/run", {"workflowId": "new"})["outputs"] == {"o": 1}
