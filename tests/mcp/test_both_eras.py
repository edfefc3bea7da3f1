"""Both eras of MCP on one process: what is answered, to whom, in which form (mcp, Server; interop §2.1)."""

from __future__ import annotations

import pytest

from tests.mcp.raw_client import HANDSHAKE, MODERN, NAMESPACE, RawClient, meta


def test_discover_says_the_modern_revision_without_a_handshake(server: RawClient) -> None:
    result = server.modern("server/discover")["result"]
    assert result["supportedVersions"] == [MODERN]
    assert result["resultType"] == "complete"
    assert result["ttlMs"] >= 0
    assert result["cacheScope"] == "private"
    assert result["_meta"][f"{NAMESPACE}serverInfo"]["name"] == "tamis"
    assert result["capabilities"]["tools"] == {"listChanged": True}


@pytest.mark.parametrize("version", HANDSHAKE)
def test_every_earlier_revision_shakes_hands(server: RawClient, version: str) -> None:
    told = server.shake(version)
    assert told["protocolVersion"] == version
    assert told["serverInfo"]["name"] == "tamis"
    listed = server.ask("tools/list")["result"]
    assert "resultType" not in listed
    assert server.ask("ping")["result"] == {}


@pytest.mark.parametrize("version", ["1900-01-01", MODERN, ""])
def test_an_unknown_revision_of_a_handshake_gets_our_newest(server: RawClient, version: str) -> None:
    assert server.shake(version)["protocolVersion"] == HANDSHAKE[0]


def test_both_eras_live_on_one_connection(server: RawClient) -> None:
    server.shake()
    assert "resultType" not in server.ask("tools/list")["result"]
    assert server.modern("tools/list")["result"]["resultType"] == "complete"
    assert server.ask("tools/call", {"name": "core_echo", "arguments": {"text": "x"}})["result"]["isError"] is False


def test_an_unknown_revision_of_a_request_is_told_which_there_are(server: RawClient) -> None:
    error = server.modern("tools/list", version="2099-01-01")["error"]
    assert error["code"] == -32022
    assert error["data"] == {"supported": [MODERN], "requested": "2099-01-01"}


@pytest.mark.parametrize(
    "told", [{}, {f"{NAMESPACE}protocolVersion": MODERN}, {f"{NAMESPACE}protocolVersion": 7}], ids=str
)
def test_a_request_that_lacks_what_the_revision_requires_is_refused(server: RawClient, told: dict[str, object]) -> None:
    assert server.ask("tools/list", {"_meta": told})["error"]["code"] == -32602


@pytest.mark.parametrize("method", ["ping", "logging/setLevel", "initialized"])
def test_the_modern_revision_has_no_method_of_the_handshake(server: RawClient, method: str) -> None:
    assert server.modern(method, {"level": "info"})["error"]["code"] == -32601


@pytest.mark.parametrize("method", ["server/discover", "subscriptions/listen"])
def test_the_handshake_has_no_method_of_the_modern_revision(server: RawClient, method: str) -> None:
    server.shake()
    assert server.ask(method)["error"]["code"] == -32601


def test_a_ping_is_answered_before_the_handshake(server: RawClient) -> None:
    assert server.ask("ping")["result"] == {}


def test_a_second_handshake_is_refused(server: RawClient) -> None:
    server.shake()
    params = {"protocolVersion": HANDSHAKE[0], "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    assert server.ask("initialize", params)["error"]["code"] == -32600


def test_the_modern_revision_gets_no_request_of_ours(server: RawClient) -> None:
    """interop §2.1: a server must not send requests on modern connections."""
    server.call("core_asks", {"text": "x"}, able={"elicitation": {}})
    assert [one for one in server.seen if "method" in one and "id" in one] == []


def test_a_log_level_that_is_none_is_refused(server: RawClient) -> None:
    assert server.modern("tools/list", logLevel="loud")["error"]["code"] == -32602
    server.shake()
    assert server.ask("logging/setLevel", {"level": "loud"})["error"]["code"] == -32602
    assert server.ask("logging/setLevel", {"level": "debug"})["result"] == {}


def test_the_end_of_input_ends_the_server(server: RawClient) -> None:
    server.modern("tools/list")
    assert server.end() == 0


def test_a_request_that_came_with_the_end_is_answered(server: RawClient) -> None:
    server.send({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta()}})
    assert server.end() == 0
    assert server.until(1)["result"]["supportedVersions"] == [MODERN]
