"""Services of a host over a real connection: registering, being called back, and hosts that do not keep to anything."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tamis.client import RpcFailure
from tests.rpc.inside import InsideClient
from tests.rpc.raw_host import RawHost, method


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[RawHost]:
    with RawHost(tmp_path) as host:
        yield host


def test_a_service_is_registered_called_back_and_taken_away(tmp_path: Path) -> None:  # A25, V03, V18
    asked: list[Any] = []
    told: list[tuple[str, Any]] = []

    def answer(name: str, params: Any) -> Any:
        asked.append((name, params))
        return {"echo": params["args"]}

    with InsideClient(tmp_path, on_request=answer, on_notification=lambda *one: told.append(one)) as client:
        made = client.request(
            "service/register", {"serviceName": "s", "methods": [method("echo"), method("_x"), {"name": "inner"}, 5]}
        )
        assert made["registered"] == ["echo", "inner"]
        assert made["toolIds"] == {"echo": "s:echo", "inner": "s:inner"}
        assert [one["methodName"] for one in made["rejected"]] == ["_x", ""]
        assert all(one["reason"] for one in made["rejected"])
        assert [params["added"] for name, params in told if name == "registry/changed"] == [
            ["s:echo@1.0.0", "s:inner@1.0.0"]
        ]
        listed = client.request("tool/list")
        assert [(tool["toolId"], tool["kind"], tool["callable"]) for tool in listed["tools"]] == [
            ("s:echo", "service", True),
            ("s:inner", "service", False),
        ]
        result = client.request("tool/execute", {"toolId": "s:echo", "args": {"text": "héllo 😀"}})
        assert (result["status"], result["output"]) == ("success", {"echo": {"text": "héllo 😀"}})
        assert asked == [
            (
                "service/invoke",
                {"serviceName": "s", "methodName": "echo", "args": {"text": "héllo 😀"}, "callId": result["callId"]},
            )
        ]
        assert client.request("service/list") == {"services": [{"serviceName": "s", "methods": ["echo", "inner"]}]}
        assert client.request("service/unregister", {"serviceName": "s"}) == {"removed": ["echo", "inner"]}
        assert client.request("service/unregister", {"serviceName": "s"}) == {"removed": []}
        assert client.request("tool/list")["tools"] == []
        assert client.request("tool/list")["etag"] != listed["etag"]


@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        {"serviceName": "s"},
        {"serviceName": 5, "methods": []},
        {"serviceName": "s", "methods": {}},
        {"serviceName": "", "methods": []},
        {"serviceName": "_s", "methods": []},
        {"serviceName": "File", "methods": []},
    ],
)
def test_a_registration_that_is_none_is_the_requests_fault(tmp_path: Path, params: Any) -> None:
    with InsideClient(tmp_path) as client:
        with pytest.raises(RpcFailure) as failed:
            client.request("service/register", params)
        assert failed.value.code == -32602
        assert client.request("service/list") == {"services": []}


def test_a_host_that_answers_late_twice_and_with_errors_gets_one_result_for_each_call(raw: RawHost) -> None:
    raw.register(method("m", timeoutMs=150))
    raw.send(id=2, method="tool/execute", params={"toolId": "s:m"})
    first = raw.until(method="service/invoke")
    assert raw.until(method="service/cancel")["params"] == {"callId": first["params"]["callId"], "reason": "timeout"}
    assert raw.until(id=2)["result"]["status"] == "timeout"
    raw.send(id=first["id"], result="too late")
    raw.send(id=first["id"], result="and again")
    raw.send(id="tamis-999", result="never asked")
    raw.send(id=first["id"], error={"code": 1, "message": "no"})
    raw.send(id=3, method="tool/execute", params={"toolId": "s:m", "timeoutMs": 600_000})
    second = raw.until(method="service/invoke")
    raw.send(id=second["id"], result="first")
    raw.send(id=second["id"], result="second")
    assert raw.until(id=3)["result"]["output"] == "first"


@pytest.mark.parametrize(
    "error",
    [
        {"code": -32601, "message": "no such method"},
        {"message": "no such method"},
        {"code": "x", "message": "no such method", "data": [1]},
    ],
)
def test_an_error_reply_is_the_tools_failure(raw: RawHost, error: Any) -> None:  # V44
    raw.register(method("m"))
    raw.send(id=2, method="tool/execute", params={"toolId": "s:m"})
    raw.send(id=raw.until(method="service/invoke")["id"], error=error)
    result = raw.until(id=2)["result"]
    assert (result["status"], result["error"]["type"]) == ("error", "ServiceError")
    assert result["error"]["message"] == "s.m failed: no such method"


@pytest.mark.parametrize("error", [5, "no", None, {}, {"message": 5}])
def test_an_error_reply_of_another_shape_is_a_failure_and_null_is_none(raw: RawHost, error: Any) -> None:
    raw.register(method("m"))
    raw.send(id=2, method="tool/execute", params={"toolId": "s:m"})
    raw.send(id=raw.until(method="service/invoke")["id"], error=error)
    result = raw.until(id=2)["result"]
    assert result["status"] == ("success" if error is None else "error")


def test_cancelling_the_request_cancels_the_host_and_gives_the_normal_result(raw: RawHost) -> None:  # V52
    raw.register(method("m"))
    raw.send(id=2, method="tool/execute", params={"toolId": "s:m"})
    invoked = raw.until(method="service/invoke")
    raw.send(method="$/cancelRequest", params={"id": 2})
    assert raw.until(method="service/cancel")["params"]["callId"] == invoked["params"]["callId"]
    assert raw.until(id=2)["result"]["status"] == "cancelled"


def test_a_host_that_dies_leaves_no_daemon(tmp_path: Path) -> None:
    with RawHost(tmp_path, process=True) as host:
        host.register(method("m"))
        host.send(id=2, method="tool/execute", params={"toolId": "s:m"})
        host.until(method="service/invoke")
    # the end of the block waits for the process, for ever if the daemon waited for the host


def test_state_is_shared_with_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAMIS_STATE_DIR", str(tmp_path / "state"))
    told: list[tuple[str, Any]] = []
    with InsideClient(tmp_path, on_notification=lambda *one: told.append(one)) as client:
        assert client.request("state/get") == {"found": True, "value": {}}
        assert client.request("state/set", {"values": {"a.b": 1, "c": [1]}}) == {"removed": []}
        assert client.request("state/set", {"values": {"c.1": 2}, "remove": ["a.b", "x"]}) == {"removed": ["a.b"]}
        assert client.request("state/get", {"path": "c.1"}) == {"found": True, "value": 2}
        assert client.request("state/get", {"path": "a.b"}) == {"found": False, "value": None}
        result = client.request("tool/execute", {"toolId": "ReadWorldStateTool", "args": {"path": "c.0"}})
        assert result["output"] == 1
        client.request("tool/execute", {"toolId": "UpdatePrivateStateTool", "args": {"key": "k", "value": "v"}})
        assert client.request("state/get", {"scope": "private"}) == {"found": True, "value": {"k": "v"}}
        assert [params for name, params in told if name == "state/changed"] == [
            {"scope": "private", "agentId": "", "keys": ["k"]}
        ]
        for params in ({"values": {"a..b": 1}}, {"values": {"": 5}}, {"values": {"c.9": 1}}, {"scope": "other"}):
            with pytest.raises(RpcFailure):
                client.request("state/set", params)
        assert client.request("state/get", {"path": "c"}) == {"found": True, "value": [1, 2]}


def test_an_answer_with_a_number_that_json_does_not_have_ends_the_call(raw: RawHost) -> None:
    raw.send(id=1, method="service/register", params={"serviceName": "s", "methods": [method("m")]})
    raw.until(id=1)
    raw.send(id=2, method="tool/execute", params={"toolId": "s:m", "args": {"text": "x"}})
    asked = raw.until(method="service/invoke")
    raw.send(id=asked["id"], result={"rate": [float("nan")]})
    error = raw.until(id=2)["result"]["error"]
    assert (error["type"], error["message"]) == (
        "OutputFormatError",
        "the result of s.m is no JSON: NaN at /rate/0; give null or a text instead",
    )


def test_an_event_is_told_before_the_response(raw: RawHost) -> None:
    params = {"toolId": "PublishEventTool", "args": {"event_type": "e"}, "context": {"sessionId": "s1"}}
    raw.send(id=2, method="tool/execute", params=params)
    event = raw.until(method="event/published")["params"]
    assert (event["eventType"], event["payload"], event["sessionId"]) == ("e", {}, "s1")
    assert raw.until(id=2)["result"]["output"] == {"eventId": event["eventId"]}


def test_a_no_op_service_keeps_up_with_many_calls(tmp_path: Path) -> None:
    with InsideClient(tmp_path, on_request=lambda *_: None) as client:
        client.request("service/register", {"serviceName": "s", "methods": [method("m")]})
        futures = [client.send("tool/execute", {"toolId": "s:m", "args": {"text": str(n)}})[1] for n in range(64)]
        assert {future.result()["status"] for future in futures} == {"success"}


def test_files_of_a_resource_folder_are_written_over_the_wire(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    folder = json.dumps(os.path.realpath(tmp_path / "data"))
    (tmp_path / "tamis.toml").write_text(f"[resources]\ndata = {folder}\n[policy]\nwriteRoots = [{folder}]\n")
    call = {"toolId": "File.Write", "args": {"content": "x"}, "uris": {"file_path": "fam://data/old.txt"}}
    with InsideClient(tmp_path) as client:
        missing = client.request("tool/execute", {"call": call})
        assert (missing["status"], missing["error"]["type"]) == ("error", "SecurityError")
        (tmp_path / "data/old.txt").write_text("old")
        # a parameter by URI is the path of a file that is there (T17)
        done = client.request("tool/execute", {"call": call})
        assert (done["status"], done["output"]["path"]) == ("success", "fam://data/old.txt")
        for uris in (
            [],
            5,
            "x",
            [1],
            {"file_path": 5},
            {"file_path": "fam://data/../x"},
            {"file_path": "fam://data/%2e%2e/x"},
        ):
            bad = client.request("tool/execute", {"call": {**call, "uris": uris}})
            assert bad["status"] == "error", uris
    assert (tmp_path / "data/old.txt").read_text() == "x"
