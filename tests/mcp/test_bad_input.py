"""What a client sends that it should not: each gets one answer, and the server goes on (issue of MCP, Bad input)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.mcp.raw_client import HANDSHAKE, RawClient, fuzzed_messages, meta

PARSE, INVALID = -32700, -32600
DISCOVER = {"jsonrpc": "2.0", "id": 9, "method": "server/discover", "params": {"_meta": meta()}}


def test_headers_are_refused_in_words_and_the_next_line_is_read(server: RawClient) -> None:
    """interop §2.1: newline-delimited JSON, never Content-Length."""
    body = json.dumps(DISCOVER).encode()
    server.send(b"Content-Length: %d\r\n\r\n%b\n" % (len(body), body))
    told = server.next()
    assert told["error"]["code"] == PARSE
    assert "Content-Length" in told["error"]["message"]
    assert server.until(9)["result"]["resultType"] == "complete"


def test_a_batch_is_answered_only_where_the_revision_has_them(server: RawClient) -> None:
    batch = [{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": 2, "method": "ping"}]
    server.shake("2025-03-26")
    server.send(batch)
    line = server.lines.get()
    assert line is not None
    assert {one["id"] for one in json.loads(line)} == {1, 2}


@pytest.mark.parametrize("version", HANDSHAKE[:2])
def test_a_batch_is_refused_where_the_revision_has_none(server: RawClient, version: str) -> None:
    server.shake(version)
    server.send([{"jsonrpc": "2.0", "id": 1, "method": "ping"}])
    assert server.next()["error"]["code"] == INVALID


def test_an_id_that_is_still_answered_is_refused(server: RawClient) -> None:
    server.call("core_echo")
    call = {"name": "core_slow", "arguments": {"seconds": 0}, "_meta": meta()}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode() + b"\n"
    server.send(line + line)  # both are read before a tool has ended
    assert server.until(1)["error"]["code"] == INVALID
    assert server.until(1)["result"]["isError"] is False


@pytest.mark.parametrize("identity", [None, True, [1], {"a": 1}], ids=str)
def test_an_id_that_is_none_is_refused(server: RawClient, identity: object) -> None:
    server.send({"jsonrpc": "2.0", "id": identity, "method": "ping"})
    told = server.next()
    assert told["id"] is None
    assert told["error"]["code"] == INVALID


def test_ten_megabytes_of_arguments_are_a_result(server: RawClient) -> None:
    """The sandbox's own limit answers, in words; the server goes on."""
    result = server.call("core_echo", {"text": "x" * 10_000_000})
    assert result["isError"] is True
    assert len(json.dumps(result)) < 10_000
    assert server.call("core_echo", {"text": "x"})["isError"] is False


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"   \r\n",
        b"nonsense\n",
        b"\xff\xfe\n",
        b'{"jsonrpc": "2.0", "id": 1\n',
        b"[" * 100_000 + b"\n",
        b'{"jsonrpc": "2.0", "id": 1, "method": 7}\n',
        b'{"jsonrpc": "2.0", "id": 1}\n',
        b"[]\n",
        b"7\n",
        b'{"jsonrpc": "2.0", "id": "tamis-1", "result": {}}\n',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": [1]}\n',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": 7}}\n',
        b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}\n',
        b'{"jsonrpc": "2.0", "method": "exit"}\n',
        b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n',
    ],
    ids=lambda line: line[:40].decode("latin-1"),
)
def test_no_line_ends_the_server(server: RawClient, line: bytes) -> None:
    server.send(line)
    server.send(DISCOVER)
    assert server.until(9)["result"]["resultType"] == "complete"


def test_every_fuzzed_message_gets_exactly_one_answer(server: RawClient, is_long: bool) -> None:
    """mcp, Bars: no death, exactly one answer each."""
    server.modern("tools/list")
    answers: dict[int, int] = {}
    asked = fuzzed_messages(7, 10_000 if is_long else 1_000)
    for start in range(0, len(asked), 100):
        part = asked[start : start + 100]
        server.send(b"".join(line for _, line in part))
        for _ in part:
            told = server.next()
            assert ("result" in told) != ("error" in told)
            answers[told["id"]] = answers.get(told["id"], 0) + 1
    assert answers == {number: 1 for number, _ in asked}
    assert server.modern("server/discover")["result"]["resultType"] == "complete"


def test_what_a_library_prints_is_no_part_of_the_protocol(server: RawClient) -> None:
    """Only protocol on standard output: every line so far was one message."""
    server.call("core_fails")
    server.call("core_echo")
    assert all(one["jsonrpc"] == "2.0" for one in server.seen)


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        ("tools/cal", {}, "no method 'tools/cal', did you mean 'tools/call'?"),
        ("tools/call", {"name": "core_ecoh"}, "Unknown tool: core_ecoh, did you mean 'core_echo'?"),
        ("prompts/get", {"name": "tools-acton"}, "Unknown prompt: tools-acton, did you mean 'tools-action'?"),
        ("resources/read", {"uri": "tamis:tool/core_ecoh"}, "Resource not found, did you mean 'tamis:tool/core_echo'?"),
    ],
)
def test_a_name_that_there_is_not_is_told_with_the_one_that_was_meant(
    server: RawClient, method: str, params: dict[str, str], words: str
) -> None:
    """Strangers: did you mean, for methods, tools, prompts and resources."""
    assert server.modern(method, params)["error"]["message"] == words


def test_only_names_that_the_client_may_see_are_meant(root: Path) -> None:
    """Strangers: what the agent's profile keeps from it is not named to it."""
    profile = {"toolCallConfig": {"enabled": True}, "tool_ids_inventory": ["core:slow"]}
    (root / "agent_profile.json").write_text(json.dumps(profile))
    (root / "tamis.toml").write_text('profile = "agent_profile.json"\n')
    with RawClient(root) as server:
        assert server.modern("tools/call", {"name": "core_ecoh"})["error"]["message"] == "Unknown tool: core_ecoh"
        told = server.modern("resources/read", {"uri": "tamis:tool/core_ecoh"})["error"]["message"]
        assert "core_echo" not in told
        assert "did you mean 'core_slow'?" in server.modern("tools/call", {"name": "core_slwo"})["error"]["message"]
