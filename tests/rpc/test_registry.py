"""The registry over a real process: lists, reloads, and what the daemon notices by itself (D53, A44, W20)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tamis.client import Client, RpcFailure
from tests.rpc.inside import InsideClient
from tests.sample_tools import make_tool, vcp
from tests.waiting import until

WAITS = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.02)\nprint('\"old\"')\n"


class Heard:
    """What a daemon told by itself."""

    def __init__(self) -> None:
        self.changes: list[dict[str, Any]] = []

    def __call__(self, method: str, params: Any) -> None:
        if method == "registry/changed":
            self.changes.append(params)

    def until(self, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first change that fits."""
        (change,) = until(lambda: [change for change in list(self.changes) if fits(change)][:1])
        return change


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_tool(tmp_path, "test:echo", aliases=["say"])
    return tmp_path


@pytest.fixture
def client(root: Path, heard: Heard) -> Iterator[Client]:
    with InsideClient(root, on_notification=heard) as started:
        yield started


def ids(client: Client, **params: Any) -> list[str]:
    return [tool["toolId"] for tool in client.request("tool/list", params)["tools"]]


FIELDS = {"added", "removed", "updated", "errors", "conflicts", "etag"}


def test_a_new_manifest_a_changed_one_and_one_that_is_gone_are_told_and_need_no_restart(
    client: Client, root: Path, heard: Heard
) -> None:  # D53
    etag = client.request("tool/list")["etag"]
    folder = make_tool(root, "test:new")
    change = heard.until(lambda one: one["added"] == ["test:new@1.0.0"])
    assert set(change) == FIELDS
    listed = client.request("tool/list")
    assert etag != listed["etag"] == change["etag"]
    assert client.request("tool/execute", {"toolId": "test:new", "args": {"text": "x"}})["status"] == "success"
    other = json.loads((folder / "x.tool.json").read_text()) | {"tags": ["t"]}
    (root / "other").write_text(json.dumps(other))
    os.replace(root / "other", folder / "x.tool.json")
    heard.until(lambda one: one["updated"] == ["test:new@1.0.0"])
    (folder / "x.tool.json").unlink()
    heard.until(lambda one: one["removed"] == ["test:new@1.0.0"])
    assert ids(client) == ["test:echo"]


def test_a_manifest_that_is_broken_and_mended_is_told(client: Client, root: Path, heard: Heard) -> None:  # D48
    assert ids(client) == ["test:echo"]
    (root / "bad.tool.json").write_text('{"toolId": ')
    change = heard.until(lambda one: bool(one["errors"]))
    assert change["errors"][0]["path"] == str(root / "bad.tool.json")
    assert client.request("registry/status", {})["errors"] == change["errors"]
    (root / "bad.tool.json").unlink()
    heard.until(lambda one: not one["errors"])


def test_a_new_workflow_and_a_list_entry_are_enough(client: Client, root: Path, heard: Heard) -> None:  # W20, A44
    (root / "flows").mkdir()
    profile = root / "agent_profile.json"
    profile.write_text(json.dumps({"tool_ids_inventory": ["test:echo"], "toolCallConfig": {"enabled": True}}))
    (root / "tamis.toml").write_text('workflows = ["flows"]\nprofile = "agent_profile.json"\n')
    assert ids(client) == ["test:echo"]
    flow = {
        "name": "Greet",
        "description": "Greets.",
        "interfaceInputs": {},
        "interfaceOutputs": {},
        "nodes": [],
        "edges": [],
    }
    (root / "flows" / "greet.json").write_text(json.dumps(flow))
    heard.until(lambda one: "workflow:greet@0.0.0" in one["added"])
    assert ids(client, filter={"callable": True}) == ["test:echo"]
    count = len(heard.changes)
    profile.write_text(
        json.dumps({"tool_ids_inventory": ["test:echo", "workflow:greet"], "toolCallConfig": {"enabled": True}})
    )
    heard.until(lambda _: len(heard.changes) > count)
    assert ids(client, filter={"callable": True}) == ["test:echo", "workflow:greet"]
    assert "workflow:greet" in client.request("prompt/generate", {"protocol": "tam"})["text"]


def test_a_running_call_keeps_what_it_began_with(root: Path, heard: Heard) -> None:  # D53
    make_tool(root, "test:slow", WAITS)
    with InsideClient(root, on_notification=heard) as client:
        assert len(ids(client)) == 2
        _, running = client.send("tool/execute", {"toolId": "test:slow", "args": {}})
        (root / "test_slow" / "x.tool.json").unlink()
        heard.until(lambda one: one["removed"] == ["test:slow@1.0.0"])
        (root / "test_slow" / "go").touch()
        result = running.result()
        assert (result["status"], result["output"]) == ("success", "old")
        assert client.request("tool/execute", {"toolId": "test:slow"})["error"]["type"] == "UnknownTool"


def test_a_reload_says_what_is_other_than_at_the_last_one_also_what_was_noticed_before(
    client: Client, root: Path, heard: Heard
) -> None:  # D53
    assert ids(client) == ["test:echo"]
    make_tool(root, "test:new")
    heard.until(lambda one: one["added"] == ["test:new@1.0.0"])
    status = client.request("registry/status", {})
    report = client.request("registry/reload", {})
    assert set(status) == set(report) == FIELDS
    assert status["added"] == report["added"] == ["test:new@1.0.0"]
    again = client.request("registry/reload", {})
    assert (again["added"], again["removed"], again["updated"], again["etag"]) == ([], [], [], report["etag"])


def test_nothing_is_told_while_nothing_changes(client: Client, root: Path, heard: Heard) -> None:
    assert ids(client) == ["test:echo"]
    (root / "test_echo" / "notes.txt").write_text("the folder changes, the tool does not")
    os.utime(root / "test_echo" / "x.tool.json")
    make_tool(root, "test:new")
    heard.until(lambda one: one["added"] == ["test:new@1.0.0"])
    assert [change["updated"] for change in heard.changes] == [[]]


def test_conflicts_and_dependencies_are_said(client: Client, root: Path) -> None:  # ruling 35, D91
    make_tool(root / "again", "test:echo")
    make_tool(root, "test:needs", dependencies={"no:such": "^1"})
    report = client.request("registry/reload", {})
    assert report["conflicts"][0]["toolId"] == "test:echo"
    assert "'no:such', which is not registered" in report["errors"][0]["message"]
    (needs,) = (tool for tool in client.request("tool/list")["tools"] if tool["toolId"] == "test:needs")
    assert (needs["available"], "no:such" in needs["reason"]) == (False, True)
    assert client.request("tool/execute", {"toolId": "test:needs"})["error"]["type"] == "DependencyError"


def test_lists_are_searched_and_come_in_pages(client: Client, root: Path) -> None:  # D51, D56
    for name in ("read", "write", "weather"):
        make_tool(root, f"x:{name}", displayName={"weather": "天气查询"}.get(name, name.title()), tags=["x"])
    client.request("registry/reload", {})
    assert ids(client, filter={"query": "天气"}) == ["x:weather"]
    assert ids(client, filter={"query": "wirte", "tags": ["x"]}) == ["x:write"]
    first = client.request("tool/list", {"filter": {"namespace": "x"}, "limit": 2})
    make_tool(root, "x:a")
    client.request("registry/reload", {})
    rest = client.request("tool/list", {"filter": {"namespace": "x"}, "limit": 2, "cursor": first["nextCursor"]})
    assert [tool["toolId"] for tool in (*first["tools"], *rest["tools"])] == ["x:read", "x:weather", "x:write"]
    with pytest.raises(RpcFailure) as refused:
        client.request("tool/list", {"cursor": first["nextCursor"]})
    assert refused.value.code == -32602


def test_a_call_may_pin_a_version_in_every_protocol_and_in_execute(
    client: Client, root: Path
) -> None:  # D90, ruling 35
    for version in ("1.2.0", "2.0.0"):
        script = f"print('\"{version}\"')\n"
        make_tool(root / version, "core:x", script, version=version, properties={})
    client.request("registry/reload", {})
    texts = [
        "<ACTION><core:x@^1></core:x@^1></ACTION>",
        "<ACTION><core:x@1.2.0></core:x@1.2.0></ACTION>",
        "<ACTION><tool_id>core:x@~1.2</tool_id><inputs></inputs></ACTION>",
        "<|[REQUEST_TOOL]|>\ncommand:»»»core:x@<2«««\n<|[END_TOOL]|>",
        vcp("core:x@1 || 3"),
    ]
    got = [client.request("tool/executeText", {"text": text})["results"][0] for text in texts]
    assert [(one["toolId"], one["version"], one["output"]) for one in got] == [("core:x", "1.2.0", "1.2.0")] * 5
    assert client.request("tool/execute", {"toolId": "core:x", "version": "^1"})["output"] == "1.2.0"
    assert client.request("tool/execute", {"toolId": "core:x"})["output"] == "2.0.0"
    missing = client.request("tool/execute", {"toolId": "core:x", "version": "^9"})
    assert missing["error"]["details"]["code"] == "versionUnsatisfied"
    assert "there is 2.0.0, 1.2.0" in missing["error"]["message"]


def test_vcp_names_a_method_by_its_tool_and_command(root: Path) -> None:  # V45, ruling 30
    asked: list[Any] = []

    def answer(method: str, params: Any) -> Any:
        asked.append((method, params["methodName"], params["args"]))
        return {"sum": 3}

    number = {"type": "integer"}
    metadata = {"description": "Adds numbers.", "agentCallable": True}
    schema = {"type": "object", "properties": {"a": number}, "additionalProperties": False}
    with InsideClient(root, on_request=answer) as client:
        client.request(
            "service/register", {"serviceName": "Math", "methods": [{"name": "add", "parameters": schema, **metadata}]}
        )
        for text in (vcp("Math_add", a="1"), vcp("Math", command="add", a="1")):
            (result,) = client.request("tool/executeText", {"text": text})["results"]
            assert (result["status"], result["output"]) == ("success", {"sum": 3}), result
        calls = client.request("tool/parse", {"text": vcp("Math", command="add", a="1")})["calls"]
        checked = client.request("tool/validate", {"calls": calls})
        assert (checked["valid"], checked["coerced"]) == (True, [{"a": 1}])
        (executed,) = [client.request("tool/execute", {"call": call}) for call in calls]
        assert executed["output"] == {"sum": 3}
        (wrong,) = client.request("tool/executeText", {"text": vcp("Math", command="sub", a="1")})["results"]
        assert wrong["error"]["type"] == "UnknownTool"
    assert asked == [("service/invoke", "add", {"a": 1})] * 3
