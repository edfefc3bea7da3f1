"""The tool methods of ``tamis rpc`` in an editor's session (interface: `tamis rpc` has the same methods without the editor's features)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tamis.server.rpc.methods import RpcServer
from tests.lsp.lsp_client import Client
from tests.sample_tools import make_tool, vcp

SLEEP = "import time\ntime.sleep(86_400)\nprint(1)\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_tool(tmp_path, "test:echo")
    make_tool(tmp_path, "test:sleep", SLEEP, properties={})
    return tmp_path


@pytest.fixture
def client(root: Path) -> Iterator[Client]:
    with Client(inside=True) as started:
        started.start(root, {"general": {"positionEncodings": ["utf-16"]}}, {"trusted": True})
        yield started


def test_tools_are_listed_described_and_run(client: Client) -> None:
    listed = client.call("tool/list")
    assert {tool["toolId"] for tool in listed["tools"]} >= {"test:echo", "test:sleep"}
    assert client.call("tool/describe", {"toolId": "test:echo"})["definition"]["toolId"] == "test:echo"
    result = client.call("tool/execute", {"toolId": "test:echo", "args": {"text": "你好 😋"}})
    assert (result["status"], result["output"]) == ("success", {"text": "你好 😋"})
    text = client.call("tool/executeText", {"text": vcp("test:echo", text="x")})
    assert text["results"][0]["output"] == {"text": "x"}


def test_positions_are_in_the_sessions_encoding(client: Client) -> None:  # ruling 9
    text = "😋😋 " + vcp("test:echo", text="x")
    assert client.call("tool/parse", {"text": text})["blocks"][0]["range"]["start"]["character"] == 5


def test_an_open_manifest_counts_as_it_stands_there(client: Client, root: Path) -> None:
    path = root / "test_echo" / "x.tool.json"
    edited = path.read_text("utf-8").replace('"displayName": "test:echo"', '"displayName": "Edited"')
    client.open(path.as_uri(), edited, "json")
    client.published(path.as_uri())
    named = {tool["toolId"]: tool["displayName"] for tool in client.call("tool/list")["tools"]}
    assert named["test:echo"] == "Edited"


def test_a_cancelled_run_gives_its_normal_result(client: Client) -> None:  # V52
    number = client.request("tool/execute", {"toolId": "test:sleep"})
    while client.next().get("params", {}).get("state") != "executing":
        pass
    client.notify("$/cancelRequest", {"id": number})
    assert client.answer(number)["result"]["status"] == "cancelled"


def told(client: Client, number: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The values of the progress that came before the answer, and the answer."""
    values: list[dict[str, Any]] = []
    while True:
        message = client.next()
        if message.get("method") == "$/progress":
            assert message["params"]["token"] == "w"
            values.append(message["params"]["value"])
        elif message.get("id") == number:
            return values, message


@pytest.mark.parametrize(
    ("method", "params", "title", "end"),
    [
        ("tool/execute", {"toolId": "test:echo", "args": {"text": "x"}}, "test:echo", "success"),
        ("tool/execute", {"toolId": "test:echo", "args": {"text": [1]}}, "test:echo", "error"),
        ("tool/execute", {"call": {"toolId": "test:echo", "args": {}}}, "test:echo", "success"),
        ("tool/executeText", {"text": "nothing"}, "tool/executeText", "done"),
        ("workflow/run", {"workflowId": "none"}, "none", "error"),
        ("tool/executeText", {"text": "x", "protocol": "none"}, "tool/executeText", "failed"),
    ],
)
def test_a_work_done_token_has_a_begin_and_an_end(
    client: Client, method: str, params: dict[str, Any], title: str, end: str
) -> None:
    values, _ = told(client, client.request(method, {**params, "workDoneToken": "w"}))
    assert values == [
        {"kind": "begin", "title": f"Running {title}", "cancellable": True},
        {"kind": "end", "message": end},
    ]


def test_a_progress_that_is_cancelled_cancels_the_run(client: Client) -> None:  # V52
    number = client.request("tool/execute", {"toolId": "test:sleep", "workDoneToken": "w"})
    while client.next().get("params", {}).get("state") != "executing":
        pass
    client.notify("window/workDoneProgress/cancel", {"token": "w"})
    values, answer = told(client, number)
    assert (values, answer["result"]["status"]) == ([{"kind": "end", "message": "cancelled"}], "cancelled")


def test_errors_are_those_of_the_daemon(client: Client) -> None:
    for method, params, code in (
        ("tool/describe", {"toolId": "no:such"}, 1001),
        ("tool/nothing", {}, -32601),
        ("tool/parse", {"text": 1}, -32602),
    ):
        assert client.fails(method, params)["code"] == code


def test_in_an_untrusted_folder_nothing_runs(root: Path) -> None:
    with Client(inside=True) as client:
        client.start(root, {}, {"trusted": False})
        assert client.call("tool/list")["tools"]
        failure: Any = client.fails("tool/execute", {"toolId": "test:echo"})
        assert failure["code"] == 1901


def test_initialize_names_the_methods_that_the_daemon_has(client: Client, root: Path) -> None:
    with Client(inside=True) as other:
        told = other.start(root, {}, {})["capabilities"]["experimental"]["tamis"]
    assert told["rpc"] == 1
    assert set(told["methods"]) == set(RpcServer(root).declared)


def test_the_methods_are_described_as_the_daemon_does(client: Client) -> None:  # rpc.discover
    described = {method["name"] for method in client.call("rpc.discover")["methods"]}
    assert described >= {"tool/execute", "registry/reload", "workflow/run"}


SERVICE = {
    "serviceName": "Shop",
    "methods": [
        {
            "name": "buy",
            "description": "Buys one thing.",
            "agentCallable": True,
            "parameters": {"type": "object", "properties": {"thing": {"type": "string"}}, "required": ["thing"]},
        }
    ],
}


def changes(client: Client, since: int = 0) -> list[dict[str, Any]]:
    """What the client was told of the registry, in short."""
    fields = ("added", "removed", "updated")
    told = [one["params"] for one in client.messages[since:] if one.get("method") == "registry/changed"]
    return [{name: params[name] for name in fields if params[name]} for params in told]


def shows(client: Client, uri: str, code: str) -> None:
    """Waits until an error is what the client was told last of a document."""
    while True:
        told = [one["params"] for one in client.messages if one.get("method") == "textDocument/publishDiagnostics"]
        last = next((params["diagnostics"] for params in reversed(told) if params["uri"] == uri), [])
        if [item["code"] for item in last if item["severity"] == 1] == [code]:
            return
        client.next()


def test_services_of_the_host_are_told_and_known_at_once(client: Client, root: Path) -> None:
    """interface: `registry/changed`; diagnostics and completion of call blocks that are open follow."""
    uri = (root / "a.md").as_uri()
    text = "<ACTION><Shop:buy></Shop:buy></ACTION>\n<ACTION><"
    client.open(uri, text)
    shows(client, uri, "VA401")

    def proposed() -> list[str]:
        at = {"textDocument": {"uri": uri}, "position": {"line": 1, "character": len("<ACTION><")}}
        found = client.call("textDocument/completion", at)
        return [item["label"] for item in (found["items"] if isinstance(found, dict) else found)]

    assert "Shop:buy" not in proposed()
    assert client.call("service/register", SERVICE)["registered"] == ["buy"]
    # Like the daemon's: before the response, and once.
    assert changes(client) == [{"added": ["Shop:buy@1.0.0"]}]
    assert "Shop:buy" in proposed()
    shows(client, uri, "VA404")
    since = len(client.messages)
    client.call("service/register", SERVICE)
    assert changes(client, since) == []
    assert client.call("registry/status")["added"] == ["Shop:buy@1.0.0"]
    client.call("service/unregister", {"serviceName": "Shop"})
    assert changes(client, since) == [{"removed": ["Shop:buy@1.0.0"]}]
    assert "Shop:buy" not in proposed()
    shows(client, uri, "VA401")


def test_tools_that_change_in_the_editor_are_told_to_who_uses_the_tool_methods(client: Client, root: Path) -> None:
    path = root / "test_echo" / "x.tool.json"
    text = path.read_text("utf-8")
    client.open(path.as_uri(), text, "json")
    client.published(path.as_uri())
    client.call("tool/list")
    client.change(path.as_uri(), {"text": text.replace("test:echo", "test:other")})
    while not changes(client):
        client.next()
    assert changes(client) == [{"added": ["test:other@1.0.0"], "removed": ["test:echo@1.0.0"]}]


def test_a_reload_leaves_open_manifests_as_they_stand_there(client: Client, root: Path) -> None:
    path = root / "test_echo" / "x.tool.json"
    text = path.read_text("utf-8")
    client.open(path.as_uri(), text.replace('"displayName": "test:echo"', '"displayName": "Edited"'), "json")
    client.published(path.as_uri())
    client.call("tool/list")
    make_tool(root, "test:new")
    assert client.call("registry/reload")["added"] == ["test:new@1.0.0"]
    assert changes(client) == [{"added": ["test:new@1.0.0"]}]
    named = {tool["toolId"]: tool["displayName"] for tool in client.call("tool/list")["tools"]}
    assert (named["test:echo"], named["test:new"]) == ("Edited", "test:new")
    assert client.call("registry/reload")["added"] == []
