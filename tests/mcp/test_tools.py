"""``tools/list`` and ``tools/call``: names, annotations, pages, results, progress, cancel (mcp, Server; interop §2.2)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.raw_client import MODERN, NAMESPACE, RawClient, meta
from tests.sample_tools import make_tool

PICTURE = "iVBORw0KGgo="
OUTPUT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def listed(server: RawClient) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    cursor: dict[str, Any] = {}
    while True:
        page = server.modern("tools/list", cursor)["result"]
        found |= {tool["name"]: tool for tool in page["tools"]}
        if "nextCursor" not in page:
            return found
        cursor = {"cursor": page["nextCursor"]}


def test_a_tool_is_listed_with_what_a_client_needs(root: Path) -> None:
    make_tool(
        root,
        "core:full",
        properties={"n": {"type": "integer", "exclusiveMinimum": 0, "x-note": 1}},
        output=OUTPUT,
        execution={"idempotent": True},
        securityContext={
            "fileAccess": {"allowRead": [], "allowWrite": ["out"]},
            "networkAccess": {"allowHosts": ["a.b"]},
        },
    )
    with RawClient(root) as server:
        tools = listed(server)
    assert tools["core_full"]["outputSchema"] == OUTPUT
    assert tools["core_full"]["annotations"] == {
        "title": "core:full",
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": True,
        "openWorldHint": True,
    }
    assert tools["core_full"]["inputSchema"]["type"] == "object"
    assert tools["core_full"]["inputSchema"]["properties"]["n"]["exclusiveMinimum"] == 0
    assert tools["core_full"]["_meta"]["dev.tamis/toolId"] == "core:full"
    assert tools["core_echo"]["annotations"]["readOnlyHint"] is True
    assert "outputSchema" not in tools["core_echo"]


def test_names_that_fall_together_stay_apart_and_lead_back(root: Path) -> None:
    """R-names: `a:b`, `a.b` and `a_b` are three tools, each called by the name that the list gives it."""
    for tool_id in ("a:b", "a.b", "a_b", "中文:工具", "x" * 90):
        folder = make_tool(
            root / f"f{len(tool_id)}{tool_id[1:2]}".replace(":", "c"),
            tool_id,
            f"print({tool_id!r}.__repr__())".replace(".__repr__()", ""),
        )
        (folder / "tool.py").write_text(f"import json\nprint(json.dumps({tool_id!r}))\n", encoding="utf-8")
    with RawClient(root) as server:
        tools = listed(server)
        ids = {name: tool["_meta"]["dev.tamis/toolId"] for name, tool in tools.items()}
        assert len(set(ids.values())) == len(ids)
        assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in ids)
        assert ids["a_b"] == "a_b"
        for name, tool_id in ids.items():
            if not tool_id.startswith("core:"):
                assert server.call(name)["content"][0]["text"] == tool_id


def test_a_thousand_tools_come_in_pages_in_one_order(root: Path) -> None:
    for number in range(600):
        make_tool(root / "many", f"many:t{number:03}")
    with RawClient(root) as server:
        names = list(listed(server))
        assert len(names) == 604
        assert names == sorted(names) == list(listed(server))
        first = server.modern("tools/list")["result"]
        assert len(first["tools"]) < 604
        for cursor in ("x", "", "****", first["nextCursor"] + "!", 7):
            assert server.modern("tools/list", {"cursor": cursor})["error"]["code"] == -32602


def test_a_tool_that_cannot_run_is_not_listed(root: Path) -> None:
    """mcp, tools/list: what cannot be called now is left out; a call by its name says why."""
    folder = make_tool(root, "core:gone")
    (folder / "tool.py").unlink()
    make_tool(root, "core:hidden", agentCallable=False)
    with RawClient(root) as server:
        assert {"core_gone", "core_hidden"} & listed(server).keys() == set()
        assert server.call("core_gone")["isError"] is True
        hidden = server.modern("tools/call", {"name": "core_hidden"})
        assert hidden["error"]["code"] == -32602


def test_a_new_tool_is_told_of(root: Path) -> None:
    with RawClient(root) as server:
        server.shake()
        server.ask("tools/list")
        server.send(
            {
                "jsonrpc": "2.0",
                "id": "s",
                "method": "subscriptions/listen",
                "params": {"_meta": meta(), "notifications": {"toolsListChanged": True, "other": True}},
            }
        )
        told = server.next()
        assert told["method"] == "notifications/subscriptions/acknowledged"
        assert told["params"] == {
            "_meta": {f"{NAMESPACE}subscriptionId": "s"},
            "notifications": {"toolsListChanged": True},
        }
        make_tool(root, "core:new")
        of_both = [server.next() for _ in range(3)]
        assert [one["params"] for one in of_both] == [{}, {"_meta": {f"{NAMESPACE}subscriptionId": "s"}}, {}]
        assert of_both[2]["method"] == "notifications/resources/list_changed"
        assert "core_new" in listed(server)
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "s"}})
        make_tool(root, "core:newer")
        assert server.next()["params"] == {}
        assert server.ask("ping")["result"] == {}
        assert not [one for one in server.seen if one.get("id") == "s"]


def test_an_open_subscription_ends_with_an_answer_when_the_server_does(server: RawClient) -> None:
    server.send(
        {"jsonrpc": "2.0", "id": 5, "method": "subscriptions/listen", "params": {"_meta": meta(), "notifications": {}}}
    )
    assert server.next()["method"] == "notifications/subscriptions/acknowledged"
    assert server.end() == 0
    assert server.until(5)["result"]["_meta"][f"{NAMESPACE}subscriptionId"] == 5


# Calls


def test_a_result_is_text_and_structured_content(server: RawClient) -> None:
    result = server.call("core_echo", {"text": "é<ACTION>"})
    assert result["isError"] is False
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"] == {"text": "é<ACTION>"}


def test_a_wrong_argument_is_a_result_that_a_model_can_act_on(server: RawClient) -> None:
    result = server.call("core_echo", {"txt": 1})
    assert result["isError"] is True
    assert "did you mean 'text'" in result["content"][0]["text"]
    assert "structuredContent" not in result


def test_a_failed_script_is_a_result(server: RawClient) -> None:
    result = server.call("core_fails")
    assert result["isError"] is True
    assert "what went wrong" in result["content"][0]["text"]
    assert result["_meta"]["dev.tamis/errorType"] == "ScriptError"


@pytest.mark.parametrize(
    "params",
    [
        {"name": "core_nothing"},
        {"name": "core:echo"},
        {"name": None},
        {"name": ["core_echo"]},
        {},
        {"name": "core_echo", "arguments": [1]},
        {"name": "core_echo", "arguments": "x"},
    ],
    ids=str,
)
def test_what_is_no_call_is_an_error_of_the_request(server: RawClient, params: dict[str, Any]) -> None:
    """interop §2.1: an unknown tool is -32602."""
    assert server.modern("tools/call", params)["error"]["code"] == -32602


def test_an_image_and_a_resource_come_as_parts(root: Path) -> None:
    image = {"$part": "image", "data": PICTURE, "mimeType": "image/png"}
    held = {"$part": "resource", "uri": "tamis:x", "mimeType": "text/plain", "text": "t"}
    make_tool(root, "core:draws", f"import json\nprint(json.dumps({{'title': 'a', 'shown': [{image}, {held}]}}))")
    make_tool(root, "core:draw", f"import json\nprint(json.dumps({image}))")
    with RawClient(root) as server:
        whole = server.call("core_draw")
        assert whole["content"] == [{"type": "image", "data": PICTURE, "mimeType": "image/png"}]
        mixed = server.call("core_draws")
    assert [part["type"] for part in mixed["content"]] == ["text", "image", "resource"]
    assert json.loads(mixed["content"][0]["text"])["title"] == "a"
    assert PICTURE not in mixed["content"][0]["text"]


def test_structured_content_fits_the_schema_that_was_listed(root: Path) -> None:
    make_tool(root, "core:typed", output=OUTPUT, required=["text"])
    make_tool(root, "core:wrong", "print('{}')", output=OUTPUT)
    with RawClient(root) as server:
        assert server.call("core_typed", {"text": "x"})["structuredContent"] == {"text": "x"}
        assert server.call("core_wrong")["isError"] is True


def test_progress_rises_and_comes_before_the_answer(server: RawClient) -> None:
    result = server.call("core_slow", {"seconds": 0}, progressToken="p")
    assert result["content"][0]["text"] == "done"
    told = server.later("notifications/progress")
    assert [one["progress"] for one in told] == [1, 2, 3]
    assert told[0] == {"progressToken": "p", "progress": 1, "total": 3, "message": "one"}
    server.call("core_slow", {"seconds": 0})
    assert len(server.later("notifications/progress")) == 3


def test_standard_error_goes_to_a_client_that_wants_the_log(server: RawClient) -> None:
    server.call("core_fails")
    assert server.later("notifications/message") == []
    server.call("core_fails", logLevel="error")
    assert server.later("notifications/message") == []
    server.call("core_fails", logLevel="info")
    assert server.later("notifications/message")[0]["logger"] == "core:fails"


def test_a_cancelled_call_ends_and_nothing_more_is_said_of_it(server: RawClient) -> None:
    """interop §2.1: after `notifications/cancelled` no further message for that id."""
    server.call("core_echo")
    params = {"_meta": meta(progressToken=1), "name": "core_slow", "arguments": {"seconds": 86_400}}
    server.send({"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": params})
    server.next()
    server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}})
    server.call("core_echo")
    seen = len(server.seen)
    assert server.end() == 0
    while (line := server.lines.get()) is not None:
        server.seen.append(json.loads(line))
    assert not [one for one in server.seen if one.get("id") == 77]
    assert not [one for one in server.seen[seen:] if one.get("method") == "notifications/progress"]


def test_a_cancel_after_the_answer_or_of_nothing_changes_nothing(server: RawClient) -> None:
    server.send({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"_meta": meta()}})
    server.until(3)
    for identity in (3, 4, None, [], {}, "3", True):
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": identity}})
    server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": 7})
    assert server.call("core_echo")["isError"] is False


def test_an_asynchronous_tool_is_waited_for_where_tasks_are_unknown(root: Path) -> None:
    make_tool(root, "core:late", execution={"mode": "async"})
    with RawClient(root) as server:
        assert server.call("core_late", {"text": "x"})["structuredContent"] == {"text": "x"}


def test_a_trace_reaches_the_script(root: Path) -> None:
    make_tool(root, "core:traced", "import json, os\nprint(json.dumps(os.environ.get('TRACEPARENT', '')))")
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with RawClient(root) as server:
        told = {**meta(), "traceparent": trace}
        result = server.ask("tools/call", {"name": "core_traced", "_meta": told})["result"]
    assert trace.split("-")[1] in result["content"][0]["text"]


def test_only_objects_are_structured_content_before_the_stateless_revision(root: Path) -> None:
    make_tool(root, "core:list", "print('[1, 2]')")
    with RawClient(root) as server:
        server.shake()
        assert "structuredContent" not in server.ask("tools/call", {"name": "core_list"})["result"]
        assert server.call("core_list", version=MODERN)["structuredContent"] == [1, 2]


def test_a_client_that_only_lists_does_not_wait_for_what_runs_calls(root: Path) -> None:
    """mcp, Bars: from the start to the first list."""
    lines = [
        {"id": 1, "method": "server/discover", "params": {"_meta": meta()}},
        {"id": 2, "method": "tools/list", "params": {"_meta": meta()}},
    ]
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "tamis.server.cli.main", "mcp", "--root", str(root)],
        input="".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines),
        capture_output=True,
        text=True,
        check=False,
    )
    assert [len(json.loads(line)["result"].get("tools", [])) for line in done.stdout.splitlines()] == [0, 4]
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    late = {
        *("tamis.server.runtime.calls.model", "tamis.server.runtime.execution.pipeline", "tamis.server.mcp.content"),
        *("tamis.protocols.reader", "tamis.protocols.export.vcp", "tamis.protocols.prompt.guard", "shutil", "html"),
    }
    assert "tamis.server.mcp.tools" in loaded
    assert loaded & late == set()


def test_a_name_that_cursor_made_of_ours_reaches_the_tool(root: Path) -> None:
    """interop §2.3: Cursor writes `_` for `-` in a call; of two tools that differ in nothing else each keeps its name."""
    make_tool(root, "net:get-rows", "print('\"dash\"')")
    make_tool(root, "net:put-rows", "print('\"dash\"')")
    make_tool(root, "net:put_rows", "print('\"line\"')")
    with RawClient(root) as server:
        assert server.call("net_get_rows")["content"][0]["text"] == "dash"
        assert server.call("net_put_rows")["content"][0]["text"] == "line"
        assert server.modern("tools/call", {"name": "net-get-rows"})["error"]["code"] == -32602
