"""Streamable HTTP: both eras on one endpoint, who is let in, and that no client reaches what is another's (mcp, Server)."""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the extra `http` is not installed")

from tamis.server.cli.main import main
from tests.mcp.conftest import FAILS, SLOW
from tests.mcp.http_client import TOKEN, HttpServer
from tests.mcp.raw_client import FORMS, HANDSHAKE, MODERN, NAMESPACE
from tests.rpc.inside import PATIENT
from tests.sample_tools import make_tool
from tests.waiting import until

ASKED: dict[str, Any] = {"name": "core_asks", "arguments": {"text": "x"}}
SLOWLY: dict[str, Any] = {"name": "core_slow", "arguments": {"seconds": 0.3}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("http")
    (root / "tamis.toml").write_text(PATIENT)
    make_tool(root, "core:echo")
    make_tool(root, "core:fails", FAILS)
    make_tool(root, "core:slow", SLOW, properties={"seconds": {"type": "number"}}, required=["seconds"])
    make_tool(root, "core:asks", execution={"requireConfirmation": True})
    make_tool(root, "core:late", SLOW, properties={"seconds": {"type": "number"}}, execution={"mode": "async"})
    make_tool(root, "core:region", properties={"region": {"type": "string", "x-mcp-header": "Region"}})
    return root


@pytest.fixture(scope="module")
def http(folder: Path) -> Iterator[HttpServer]:
    with HttpServer(folder, env={"TAMIS_MCP_TOKEN": TOKEN}) as made:
        yield made


# Who is let in


@pytest.mark.parametrize("value", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x"])
def test_who_does_not_show_the_token_is_refused(http: HttpServer, value: str) -> None:
    answer = http.send({}, {"Authorization": value})
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "localhost.evil.example", "10.0.0.1", "a b", "[::2]"]
)
def test_another_host_name_is_refused(http: HttpServer, host: str) -> None:
    """DNS rebinding: a page's own name leads to this address."""
    assert http.send({}, {"Host": host}).status == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:1", "file://", "https://127.0.0.1"]
)
def test_a_page_of_another_origin_is_refused(http: HttpServer, origin: str) -> None:
    assert http.send({}, {"Origin": origin}).status == 403


def test_a_page_of_its_own_origin_is_answered(http: HttpServer) -> None:
    for name in ("localhost", "127.0.0.1", "[::1]"):
        place = f"{name}:{http.port}"
        assert http.modern("tools/list", headers={"Host": place, "Origin": f"http://{place}"}).status == 200


def test_a_token_that_is_made_is_shown_once(folder: Path) -> None:
    with HttpServer(folder, env={}) as server:
        shown = until(lambda: [line for line in server.errors if "Bearer " in line])
        value = shown[0].split("Bearer ")[1].strip()
        assert len(value) >= 40
        assert server.modern("tools/list").status == 401
        assert server.modern("tools/list", headers={"Authorization": f"Bearer {value}"}).status == 200
    assert "".join(server.errors).count(value) == 1


def test_a_token_is_nowhere_in_the_log(http: HttpServer) -> None:
    http.send({}, {"Authorization": f"Bearer {TOKEN}x"})
    http.call("core_echo", {"text": "x"})
    assert TOKEN not in "".join(http.errors)


def refused(captured: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["mcp", *words]) == 2
    said = captured.readouterr()
    assert said.out == ""
    return said.err


@pytest.mark.parametrize("place", ["0.0.0.0:0", "192.0.2.1:0", ":0", "[::]:0", "example.com:0"])
def test_an_address_for_other_machines_needs_a_word(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--bind-any" in refused(capsys, "--http", place)


def test_other_machines_never_go_without_a_token(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--no-token" in refused(capsys, "--http", "0.0.0.0:0", "--bind-any", "--no-token")


@pytest.mark.parametrize("place", ["127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "http://127.0.0.1:1", "::1:80"])
def test_what_is_no_place_is_refused(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "HOST:PORT" in refused(capsys, "--http", place)


@pytest.mark.parametrize("token", ["short", "with a blank in the middle", "ünïcode-ünïcode-ünïcode"])
def test_a_weak_token_is_refused(token: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "token").write_text(token)
    assert "--token-file" in refused(capsys, "--http", "127.0.0.1:0", "--token-file", str(tmp_path / "token"))


def test_without_the_extra_the_remedy_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tamis.server.cli.mcp_http import serve_http

    def find(_name: str) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", find)
    assert serve_http(argparse.Namespace(), None) == 2
    assert "tamis[http]" in capsys.readouterr().err


# The stateless revision


def test_a_request_of_the_stateless_revision_stands_alone(http: HttpServer) -> None:
    answer = http.modern("server/discover")
    assert answer.status == 200
    assert "mcp-session-id" not in answer.headers
    assert answer.last()["result"]["supportedVersions"] == [MODERN]


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Mcp-Method": ""}, 400, -32020),
        ({"Mcp-Method": "prompts/list"}, 400, -32020),
        ({"Mcp-Method": "TOOLS/CALL"}, 400, -32020),
        ({"Mcp-Name": ""}, 400, -32020),
        ({"Mcp-Name": "core_fails"}, 400, -32020),
        ({"Mcp-Name": "=?base64?!!!?="}, 400, -32020),
        ({"Mcp-Name": "=?base64?Y29yZV9lY2hv?="}, 200, None),
        ({"MCP-Protocol-Version": ""}, 400, -32020),
        ({"MCP-Protocol-Version": HANDSHAKE[0]}, 400, -32020),
    ],
    ids=str,
)
def test_headers_say_what_the_body_says(
    http: HttpServer, headers: dict[str, str], status: int, code: int | None
) -> None:
    answer = http.modern("tools/call", {"name": "core_echo", "arguments": {"text": "x"}}, headers)
    assert (answer.status, answer.last().get("error", {}).get("code")) == (status, code)


@pytest.mark.parametrize(
    ("region", "header", "status"),
    [("eu", "eu", 200), ("eu", "us", 400), ("eu", "", 400), (None, "", 200), ("ü", "=?base64?w7w=?=", 200)],
    ids=str,
)
def test_a_parameter_that_clients_mirror_is_compared(
    http: HttpServer, region: str | None, header: str, status: int
) -> None:
    arguments = {} if region is None else {"region": region}
    params = {"name": "core_region", "arguments": arguments}
    assert http.modern("tools/call", params, {"Mcp-Param-Region": header}).status == status


def test_an_error_has_its_status(http: HttpServer) -> None:
    assert http.modern("no/such").status == 404
    assert http.modern("initialize").status == 404
    unknown = http.modern("tools/list", headers={"MCP-Protocol-Version": "2099-01-01"}, version="2099-01-01")
    assert (unknown.status, unknown.last()["error"]["code"]) == (400, -32022)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    bare = http.send(message, {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"})
    assert (bare.status, bare.last()["error"]["code"]) == (400, -32602)


def test_progress_comes_as_events_before_the_answer(http: HttpServer) -> None:
    answer = http.modern("tools/call", SLOWLY, progressToken=7)
    assert answer.is_stream
    *told, last = answer.messages()
    assert [one["params"]["progress"] for one in told] == [1, 2, 3]
    assert last["result"]["isError"] is False
    assert answer.ids == []


def test_closing_the_stream_takes_the_call_back(folder: Path) -> None:
    with HttpServer(folder) as server:
        answer = server.modern("tools/call", {"name": "core_slow", "arguments": {"seconds": 86_400}}, progressToken=1)
        next(answer.events())
        answer.close()
        until(lambda: "status=cancelled" in "".join(server.errors))


def test_a_person_answers_by_the_repeated_call(http: HttpServer) -> None:
    first = http.modern("tools/call", ASKED, able=FORMS).last()["result"]
    form = first["inputRequests"]["approval"]["params"]["requestedSchema"]["properties"]["decision"]
    # nobody's session: there is nothing that an answer could hold for
    assert [one["const"] for one in form["oneOf"]] == ["allow_once", "deny"]
    state = first["requestState"]
    said = {"requestState": state, "inputResponses": {"approval": {"action": "accept", "content": {}}}}
    said["inputResponses"]["approval"]["content"]["decision"] = "allow_session"
    again = http.modern("tools/call", {**ASKED, **said}, able=FORMS).last()["result"]
    assert again["resultType"] == "input_required"
    said["inputResponses"]["approval"]["content"]["decision"] = "allow_once"
    assert http.modern("tools/call", {**ASKED, **said}, able=FORMS).last()["result"]["isError"] is False
    assert http.modern("tools/call", ASKED, able=FORMS).last()["result"]["resultType"] == "input_required"


def test_a_task_is_found_by_another_request(http: HttpServer) -> None:
    able = {"extensions": {f"{NAMESPACE}tasks": {}}}
    task = http.call("core_late", {"seconds": 0}, able=able)["taskId"]

    def status() -> dict[str, Any]:
        return http.modern("tasks/get", {"taskId": task}, able=able).last()["result"]

    until(lambda: status()["status"] == "completed")
    told = status()
    assert told["result"]["isError"] is False


# Earlier revisions


@pytest.mark.parametrize("version", HANDSHAKE)
def test_a_session_lives_from_initialize_to_delete(http: HttpServer, version: str) -> None:
    client = http.session(version)
    assert client.result["protocolVersion"] == version
    assert len(client.name) >= 32
    assert "resultType" not in client.ask("tools/list").last()["result"]
    assert (
        client.ask("tools/call", {"name": "core_echo", "arguments": {"text": "x"}}).last()["result"]["isError"] is False
    )
    assert client.send(method="DELETE").status == 204
    assert client.ask("ping").status == 404


def test_without_a_session_nothing_is_answered(http: HttpServer) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert http.send(message).status == 400
    assert http.send(message, {"Mcp-Session-Id": "mcp-0"}).status == 404
    assert http.send(None, method="GET").status == 405
    assert http.send(message, {"MCP-Protocol-Version": "1999-01-01", "Mcp-Session-Id": "x"}).status == 400


def test_a_stream_is_resumed_behind_what_came(http: HttpServer) -> None:
    client = http.session()
    params = {**SLOWLY, "_meta": {"progressToken": 1}}
    answer = client.ask("tools/call", params)
    first = next(answer.events())
    assert first["params"]["progress"] == 1
    answer.close()
    # going away is no cancel; what was missed comes, and only that
    resumed = client.send(method="GET", Last_Event_ID=answer.ids[-1])
    messages = []
    for message in resumed.events():
        messages.append(message)
        if "result" in message:
            break
    assert [one["params"]["progress"] for one in messages[:-1]] == [2, 3]
    assert messages[-1]["result"]["isError"] is False
    assert len(set(resumed.ids)) == len(resumed.ids)


@pytest.mark.parametrize("last", ["9999-0", "x", "-1", "1-", "0-99999999999999"])
def test_an_event_of_no_stream_is_refused(http: HttpServer, last: str) -> None:
    assert http.session().send(method="GET", Last_Event_ID=last).status == 400


def test_a_change_is_told_on_the_session_s_own_stream(folder: Path) -> None:
    with HttpServer(folder) as server:
        client = server.session()
        client.ask("tools/list").last()
        stream = client.send(method="GET")
        assert stream.is_stream
        make_tool(folder, "core:new")
        assert next(stream.events())["method"] == "notifications/tools/list_changed"


def test_a_person_is_asked_on_the_stream_of_the_call(http: HttpServer) -> None:
    client = http.session(able=FORMS)
    answer = client.ask("tools/call", ASKED)
    events = answer.events()
    question = next(events)
    assert question["method"] == "elicitation/create"
    reply = {"action": "accept", "content": {"decision": "allow_once"}}
    assert client.send({"jsonrpc": "2.0", "id": question["id"], "result": reply}).status == 202
    assert next(events)["result"]["isError"] is False


def test_a_batch_is_answered_as_one_where_the_revision_has_it(http: HttpServer) -> None:
    batch = [{"jsonrpc": "2.0", "id": one, "method": "ping"} for one in (1, 2)]
    told: Any = http.session("2025-03-26").send(batch).last()
    assert [one["id"] for one in told] == [1, 2]
    assert http.session().send(batch).last()["error"]["code"] == -32600


# One client and another


def test_no_client_cancels_another_s_request(http: HttpServer) -> None:
    mine, other = http.session(), http.session()
    answer = mine.ask("tools/call", {**SLOWLY, "_meta": {"progressToken": 1}}, identity=77)
    events = answer.events()
    next(events)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}}
    assert other.send(cancel).status == 202
    http.send({**cancel, "params": {**cancel["params"], "_meta": {}}}, {"MCP-Protocol-Version": MODERN})
    assert list(events)[-1]["result"]["isError"] is False


def test_no_client_approves_another_s_call(http: HttpServer) -> None:
    mine, other = http.session(able=FORMS), http.session(able=FORMS)
    events = mine.ask("tools/call", ASKED).events()
    question = next(events)
    allow = {"action": "accept", "content": {"decision": "allow_once"}}
    other.send({"jsonrpc": "2.0", "id": question["id"], "result": allow})
    mine.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
    assert next(events)["result"]["_meta"]["dev.tamis/status"] == "denied"


def test_an_answer_for_a_session_holds_for_no_other(http: HttpServer) -> None:
    mine, other = http.session(able=FORMS), http.session(able=FORMS)
    events = mine.ask("tools/call", ASKED).events()
    allow = {"action": "accept", "content": {"decision": "allow_session"}}
    mine.send({"jsonrpc": "2.0", "id": next(events)["id"], "result": allow})
    assert next(events)["result"]["isError"] is False
    assert next(other.ask("tools/call", ASKED).events())["method"] == "elicitation/create"
    assert http.modern("tools/call", ASKED, able=FORMS).last()["result"]["resultType"] == "input_required"


def test_no_client_reads_another_s_results(http: HttpServer) -> None:
    mine, other = http.session(), http.session()
    kept = mine.ask("tools/call", {"name": "core_echo", "arguments": {"text": "secret"}}).last()["result"]["_meta"]
    uri = kept["dev.tamis/result"]
    assert "secret" in json.dumps(mine.ask("resources/read", {"uri": uri}).last()["result"])
    assert "error" in other.ask("resources/read", {"uri": uri}).last()
    stateless = http.call("core_echo", {"text": "hidden"})["_meta"]["dev.tamis/result"]
    assert len(stateless) > 40
    listed = json.dumps(http.modern("resources/list").last()["result"])
    assert "tamis-result:" not in listed
    assert "hidden" in json.dumps(http.modern("resources/read", {"uri": stateless}).last()["result"])


def test_no_client_is_shown_another_s_progress(http: HttpServer) -> None:
    mine, other = http.session(), http.session()
    stream = other.send(method="GET")
    both = [one.ask("tools/call", {**SLOWLY, "_meta": {"progressToken": 5}}) for one in (mine, other)]
    for answer in both:
        assert [one.get("method") for one in answer.messages()].count("notifications/progress") == 3
    stream.connection.sock and stream.connection.sock.settimeout(0.3)
    with pytest.raises(TimeoutError):
        next(stream.events())


def test_the_same_ids_of_several_clients_are_several_requests(http: HttpServer) -> None:
    answers = [http.modern("tools/call", {"name": "core_echo", "arguments": {"text": str(n)}}) for n in range(5)]
    assert [one.last()["result"]["structuredContent"]["text"] for one in answers] == list("01234")


# Bounds and bad input


def test_arguments_of_ten_megabytes_work(http: HttpServer) -> None:
    result = http.call("core_echo", {"text": "x" * 10_000_000})
    assert "content" in result


def test_a_body_that_is_too_large_is_refused_with_words(http: HttpServer) -> None:
    answer = http.send(None, {"Content-Length": "99999999999"})
    assert answer.status == 413
    assert "bytes" in answer.last()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", {}, 400),
        (b"\xff", {}, 400),
        (b"", {}, 400),
        (b"[" * 100_000, {}, 400),
        (b"[]", {"MCP-Protocol-Version": MODERN}, 400),
        (b"7", {"MCP-Protocol-Version": MODERN}, 400),
        (b"{}", {"MCP-Protocol-Version": MODERN}, 400),
        (b"{}", {"Content-Type": "text/plain"}, 415),
        (b"{}", {"Accept": "text/html"}, 406),
        (b"{}", {}, 400),
    ],
    ids=str,
)
def test_what_is_no_message_is_refused(http: HttpServer, body: bytes, headers: dict[str, str], status: int) -> None:
    assert http.send(body, headers).status == status
    assert http.modern("tools/list").status == 200


@pytest.mark.parametrize("method", ["PUT", "OPTIONS", "HEAD", "PATCH"])
def test_other_methods_are_refused(http: HttpServer, method: str) -> None:
    assert http.send(None, method=method).status == 405


def test_other_paths_are_none(http: HttpServer) -> None:
    assert http.send({}, path="/").status == 404
    assert http.send({}, path="/mcp/").status == 404


def test_sessions_are_bounded(folder: Path) -> None:
    with HttpServer(folder) as server:
        for _ in range(32):
            last = server.session()
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": HANDSHAKE[0]}}
        answer = server.send(hello)
        assert answer.status == 503
        assert "sessions" in answer.last()["error"]["message"]
        assert server.modern("tools/list").status == 200
        last.send(method="DELETE")
        assert server.send(hello).status == 200


def test_a_session_that_nobody_uses_ends(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tamis.server.mcp import http as module
    from tamis.server.mcp.http_access import Access
    from tamis.server.mcp.server import Shared

    monkeypatch.setattr(module, "SWEEP_S", 0.01)
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": HANDSHAKE[0]}}

    async def work() -> None:
        shared = Shared(folder)
        http = module.HttpServer(shared, Access())
        app = http.app()

        async def post(message: Any, session: str = "") -> tuple[int, dict[bytes, bytes]]:
            given = {"host": "localhost", "content-type": "application/json", "mcp-session-id": session}
            headers = [(key.encode(), value.encode()) for key, value in given.items() if value]
            scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers, "query_string": b""}
            come = [{"type": "http.request", "body": json.dumps(message).encode(), "more_body": False}]
            sent: list[Any] = []

            async def receive() -> Any:
                return come.pop() if come else await asyncio.Event().wait()

            async def send(message: Any) -> None:
                sent.append(message)

            await app(scope, receive, send)
            return sent[0]["status"], dict(sent[0]["headers"])

        status, headers = await post(hello)
        assert status == 200
        name = headers[b"mcp-session-id"].decode()
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert (await post(ping, name))[0] == 200
        sweeping = asyncio.ensure_future(http.sweep())
        await asyncio.sleep(0.05)
        assert (await post(ping, name))[0] == 200
        monkeypatch.setattr(module, "IDLE_S", 0.0)
        while (await post(ping, name))[0] != 404:
            await asyncio.sleep(0.05)
        sweeping.cancel()
        await shared.close()

    asyncio.run(work())


def test_a_handshake_that_fails_leaves_no_session(folder: Path) -> None:
    with HttpServer(folder) as server:
        for _ in range(40):
            hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}
            assert "error" in server.send(hello).last()
        assert server.session().ask("ping").status == 200


def test_a_signal_ends_all_that_runs(folder: Path) -> None:
    server = HttpServer(folder, env={"TAMIS_MCP_TOKEN": TOKEN})
    client = server.session()
    stream = client.send(method="GET")
    events = client.ask(
        "tools/call", {**SLOWLY, "arguments": {"seconds": 86_400}, "_meta": {"progressToken": 1}}
    ).events()
    next(events)
    assert server.end() == 0
    assert list(stream.events()) == []
    assert "status=cancelled" in "".join(server.errors)
    assert server.process.stdout.read() == ""
