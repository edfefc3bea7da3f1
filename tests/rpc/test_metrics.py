"""``server/metrics``, traces (D94) and variables of a host (T36) over the wire."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tamis.client import RpcFailure
from tests.rpc.inside import InsideClient
from tests.sample_tools import make_tool

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
SCRIPT = "import json, os; print(json.dumps(os.environ.get('TRACEPARENT')))"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("metrics")
    make_tool(folder, "test:trace", SCRIPT)
    return folder


def test_the_daemon_tells_what_it_counted(root: Path) -> None:
    with InsideClient(root) as client:
        client.request("tool/execute", {"toolId": "test:trace"})
        client.request("tool/execute", {"toolId": "made:up"})
        with pytest.raises(RpcFailure):
            client.request("tool/describe", {"toolId": "made:up"})
        told = client.request("server/metrics")
        text = client.request("server/metrics", {"format": "prometheus"})
    assert (told["calls"], told["byStatus"]) == (2, {"error": 1, "success": 1})
    assert [(tool["toolId"], tool["calls"]) for tool in told["tools"]] == [("other", 1), ("test:trace", 1)]
    assert told["byErrorType"] == {"UnknownTool": 1}
    methods = {row["method"]: (row["requests"], row["errors"]) for row in told["methods"]}
    assert (methods["tool/execute"], methods["tool/describe"]) == ((2, 0), (1, 1))
    assert text["contentType"].startswith("text/plain; version=0.0.4")
    families = {family.name for family in text_string_to_metric_families(text["text"])}
    assert {"tamis_calls", "tamis_call_duration_seconds", "process_open_fds"} <= families


def test_a_host_finds_its_trace_in_what_a_call_starts(root: Path) -> None:
    with InsideClient(root) as client:
        for parent, told in ((PARENT, PARENT), ("nonsense", None)):
            result = client.request("tool/execute", {"toolId": "test:trace", "context": {"traceparent": parent}})
            assert (result["status"], result["output"]) == ("success", told)


def test_a_host_gives_what_stands_for_its_variables(tmp_path: Path) -> None:  # T36
    make_tool(tmp_path, "test:echo", properties={"texts": {"type": "array"}})
    asked = {"toolId": "test:echo", "args": {"texts": ["@{dir}/a", {"@{dir}": "@{other}"}]}}
    with InsideClient(tmp_path) as client:
        result = client.request("tool/execute", {**asked, "context": {"variables": {"dir": "fam://data"}}})
        assert result["output"] == {"texts": ["fam://data/a", {"@{dir}": "@{other}"}]}
        with pytest.raises(RpcFailure, match="names 65; at most 64 fit") as error:
            client.request("tool/execute", {**asked, "context": {"variables": {f"v{n}": "" for n in range(65)}}})
        assert error.value.code == -32602
