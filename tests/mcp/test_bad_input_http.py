"""The bad input of the issue of MCP over HTTP (`test_bad_input.py` has it on stdio): each gets one answer, and the server goes on."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the extra `http` is not installed")

from tests.mcp.http_client import TOKEN, HttpServer
from tests.mcp.raw_client import FORMS, HANDSHAKE, MODERN, RawClient, fuzzed_messages, meta
from tests.rpc.inside import PATIENT
from tests.sample_tools import make_tool

HEAD = (
    "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nConnection: close\r\n"
    "Accept: application/json, text/event-stream\r\nAuthorization: Bearer " + TOKEN + "\r\n"
)
ODD_SCHEMAS: dict[str, Any] = {
    "odd:choice": {"oneOf": [{"type": "object", "required": ["a"]}, {"type": "object", "required": ["b"]}]},
    "odd:free": {},
    "odd:open": {"type": "object", "additionalProperties": True},
    "odd:itself": {"type": "object", "properties": {"next": {"$ref": "#"}}},
    "odd:never": {"type": "object", "properties": {"a": False}},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("bad")
    (root / "tamis.toml").write_text(PATIENT)
    make_tool(root, "core:echo")
    make_tool(root, "core:asks", execution={"requireConfirmation": True})
    for number, tool_id in enumerate(("a:b", "a.b", "a_b")):
        made = make_tool(root / f"f{number}", tool_id)
        (made / "tool.py").write_text(f"import json\nprint(json.dumps({tool_id!r}))\n", encoding="utf-8")
    for tool_id, schema in ODD_SCHEMAS.items():
        make_tool(root, tool_id, parameters=schema)
    return root


@pytest.fixture(scope="module")
def http(folder: Path) -> Iterator[HttpServer]:
    with HttpServer(folder) as made:
        yield made


def raw(http: HttpServer, lines: str, body: bytes) -> bytes:
    """The answer to bytes of a client that need not keep to HTTP."""
    with socket.create_connection(("127.0.0.1", http.port)) as connection:
        connection.sendall((HEAD.format(port=http.port) + lines + "\r\n").encode() + body)
        connection.shutdown(socket.SHUT_WR)
        pieces: list[bytes] = []
        while piece := connection.recv(65_536):
            pieces.append(piece)
    return b"".join(pieces)


def lives(http: HttpServer) -> bool:
    return http.modern("server/discover").last()["result"]["resultType"] == "complete"


def test_the_framing_of_stdio_in_a_body_is_refused(http: HttpServer) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 9, "method": "server/discover", "params": {"_meta": meta()}}).encode()
    answer = http.send(b"Content-Length: %d\r\n\r\n%b" % (len(body), body), {"MCP-Protocol-Version": MODERN})
    assert answer.status == 400
    assert answer.last()["error"]["code"] == -32700


def test_a_client_that_lies_about_its_length_runs_nothing(http: HttpServer) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 9, "method": "ping"}).encode()
    short = raw(http, f"Content-Length: {len(body) - 5}\r\n", body)
    assert short.startswith(b"HTTP/1.1 400")
    assert b'"result"' not in raw(http, f"Content-Length: {len(body) + 50}\r\n", body)
    assert b'"result"' not in raw(http, "Content-Length: -1\r\n", body)
    assert b'"result"' not in raw(http, f"Content-Length: 7\r\nContent-Length: {len(body)}\r\n", body)
    assert lives(http)


@pytest.mark.parametrize("version", ["1900-01-01", "9999-01-01", "x" * 1_000])
def test_an_unknown_revision_of_a_request_is_told_which_there_are(http: HttpServer, version: str) -> None:
    answer = http.modern("tools/list", headers={"MCP-Protocol-Version": version}, version=version)
    assert answer.status == 400
    error = answer.last()["error"]
    assert error["code"] == -32022
    assert error["data"]["supported"] == [MODERN]
    assert len(error["data"]["requested"]) <= 200


def test_an_unknown_revision_of_a_handshake_gets_our_newest(http: HttpServer) -> None:
    told = {"protocolVersion": "1900-01-01", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    answer = http.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": told})
    assert answer.last()["result"]["protocolVersion"] == HANDSHAKE[0]


def test_an_id_that_is_still_answered_is_refused(http: HttpServer) -> None:
    client = http.session(able=FORMS)
    waiting = client.ask("tools/call", {"name": "core_asks", "arguments": {}}, identity=1)
    events = waiting.events()
    question = next(events)
    assert client.ask("ping", identity=1).last()["error"]["code"] == -32600
    client.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
    assert next(events)["result"]["_meta"]["dev.tamis/status"] == "denied"


def test_a_cancel_after_the_answer_or_of_nothing_changes_nothing(http: HttpServer) -> None:
    client = http.session()
    echoed = {"name": "core_echo", "arguments": {"text": "x"}}
    assert client.ask("tools/call", echoed, identity=5).last()["result"]["isError"] is False
    for identity in (5, 99, "5", None, [1], {}):
        params = {"requestId": identity}
        assert client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).status == 202
    assert client.ask("tools/call", echoed, identity=5).last()["result"]["isError"] is False


def test_names_that_fall_together_stay_apart_and_lead_back(http: HttpServer) -> None:
    tools = http.modern("tools/list").last()["result"]["tools"]
    ids = {tool["name"]: tool["_meta"]["dev.tamis/toolId"] for tool in tools}
    assert len(set(ids)) == len(tools) == len(set(ids.values()))
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in ids)
    alike = {name: tool_id for name, tool_id in ids.items() if tool_id in ("a:b", "a.b", "a_b")}
    assert {name: http.call(name)["content"][0]["text"] for name in alike} == alike


def is_right(tools: list[dict[str, Any]]) -> bool:
    odd = [tool["inputSchema"] for tool in tools if tool["_meta"]["dev.tamis/toolId"] in ODD_SCHEMAS]
    return len(odd) == len(ODD_SCHEMAS) and all(schema["type"] == "object" for schema in odd)


def test_a_schema_that_hosts_cannot_take_is_listed_as_one_that_they_can(http: HttpServer, folder: Path) -> None:
    """interop §2.1: the root is an object; §2.3: one such tool must not cost the whole list."""
    assert is_right(http.modern("tools/list").last()["result"]["tools"])
    with RawClient(folder) as server:
        assert is_right(server.modern("tools/list")["result"]["tools"])


def test_a_tampered_state_runs_nothing(http: HttpServer) -> None:
    def asks(**more: Any) -> dict[str, Any]:
        params = {"name": "core_asks", "arguments": {"text": "x"}, **more}
        return http.modern("tools/call", params, able=FORMS).last()

    state = asks()["result"]["requestState"]
    allow = {"approval": {"action": "accept", "content": {"decision": "allow_once"}}}
    flipped = ("0" if state[0] != "0" else "1") + state[1:]
    for wrong in (flipped, state[:-1], state + "0", "x" * 100_000, 7, {}):
        told = asks(requestState=wrong, inputResponses=allow)
        assert told["error"]["code"] == -32602, wrong
    assert asks(requestState=state, inputResponses=allow)["result"]["structuredContent"] == {"text": "x"}


def test_every_fuzzed_message_gets_exactly_one_answer(http: HttpServer, is_long: bool) -> None:
    """mcp, Bars: no death, exactly one answer each."""
    for number, line in fuzzed_messages(11, 2_000 if is_long else 150):
        told = http.send(line, {"MCP-Protocol-Version": MODERN}).messages()
        assert len(told) == 1
        assert ("result" in told[0]) != ("error" in told[0])
        assert told[0]["id"] in (number, None)
    assert lives(http)
