"""``parse/open``, ``parse/feed`` and ``parse/close`` as a host sees them, over a real process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tamis.client import Client, RpcFailure
from tamis.server.rpc.streams import MAX_STREAMS
from tests.sample_tools import make_tool

TAM = "<|[REQUEST_TOOL]|>\ncommand:»»»x«««\np:»»»中🎉«««\n<|[END_TOOL]|>"
TEXT = f"😀 Text <b\r\n<ACTION>\n<t><a>1 < 2 🎉</a></t></ACTION> {TAM}\n`<ACTION>` é{TAM} end\n"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    make_tool(tmp_path, "test:echo")
    with Client(tmp_path) as started:
        yield started


def stream(client: Client, text: str, size: int, **opening: Any) -> tuple[str, list[dict[str, Any]], str]:
    name = client.request("parse/open", opening)["streamId"]
    shown: list[str] = []
    calls: list[dict[str, Any]] = []
    for at in range(0, len(text), size):
        fed = client.request("parse/feed", {"streamId": name, "chunk": text[at : at + size]})
        shown.append(fed["text"])
        calls += fed["calls"]
    return "".join(shown), calls, name


def failure(client: Client, method: str, params: Any) -> RpcFailure:
    with pytest.raises(RpcFailure) as caught:
        client.request(method, params)
    return caught.value


@pytest.mark.parametrize("encoding", [None, "utf-8", "utf-16", "utf-32"])
def test_a_stream_gives_what_tool_parse_gives(client: Client, encoding: str | None) -> None:  # ruling 11, ruling 9
    if encoding is not None:
        client.request("initialize", {"capabilities": {"general": {"positionEncodings": [encoding]}}})
    whole = client.request("tool/parse", {"text": TEXT})
    for size in (1, 7, len(TEXT)):
        _, calls, name = stream(client, TEXT, size)
        closed = client.request("parse/close", {"streamId": name})
        assert closed == whole
        assert calls == whole["calls"][: len(calls)]


def test_calls_come_while_the_text_is_still_coming(client: Client) -> None:
    shown, calls, _ = stream(client, f"a {TAM} b {TAM} c", 1)
    assert shown == "a  b  c"
    assert [(call["callId"], call["toolId"], call["args"]) for call in calls] == [
        ("call-1", "x", {"p": "中🎉"}),
        ("call-2", "x", {"p": "中🎉"}),
    ]


def test_the_call_that_is_being_written_is_shown(client: Client) -> None:
    name = client.request("parse/open")["streamId"]
    first = client.request("parse/feed", {"streamId": name, "chunk": "Hi <ACTION><w><p>a</p><c>so"})
    assert first["text"] == "Hi "
    assert first["partial"] == {
        "protocol": "action",
        "toolId": "w",
        "done": ["p"],
        "argument": "c",
        "new": [{"argument": "p", "text": "a", "length": 1}, {"argument": "c", "text": "so", "length": 2}],
    }
    second = client.request("parse/feed", {"streamId": name, "chunk": "me"})
    assert second["partial"]["new"] == [{"argument": "c", "text": "me", "length": 4}]


@pytest.mark.parametrize("text", ["<ACTION><t><a>1</a></t>", "<ACTION><t><a>1</a></t></ACTION", TAM[:-1]])
def test_a_text_that_was_cut_off_runs_nothing(client: Client, text: str) -> None:  # F1
    _, calls, name = stream(client, text, 3)
    closed = client.request("parse/close", {"streamId": name, "complete": False})
    assert closed == client.request("tool/parse", {"text": text, "complete": False})
    assert not any(call["executable"] for call in [*calls, *closed["calls"]])


def test_protocol_tools_and_options_are_those_of_tool_parse(client: Client) -> None:
    opening: dict[str, Any] = {
        "protocol": "action",
        "tools": [{"toolId": "t", "parameters": {"type": "object", "properties": {"html": {"type": "string"}}}}],
        "options": {"allowMultipleBlocks": True},
    }
    text = f"{TAM}<ACTION><t><html><b>x</b></html></t></ACTION>" * 2
    _, calls, name = stream(client, text, 5, **opening)
    closed = client.request("parse/close", {"streamId": name})
    assert closed == client.request("tool/parse", {"text": text, **opening})
    assert [call["args"] for call in closed["calls"]] == [{"html": "<b>x</b>"}] * 2
    # The last block was repaired: it comes with the next marker, or with the end.
    assert calls == closed["calls"][:1]


def test_streams_do_not_know_each_other(client: Client) -> None:
    one, two = (client.request("parse/open")["streamId"] for _ in range(2))
    for char in TAM:
        fed = [client.request("parse/feed", {"streamId": name, "chunk": char}) for name in (one, two)]
        assert fed[0] == fed[1]
    assert client.request("parse/close", {"streamId": one}) == client.request("parse/close", {"streamId": two})


def test_an_unknown_stream_is_named_with_a_remedy(client: Client) -> None:
    name = client.request("parse/open")["streamId"]
    client.request("parse/close", {"streamId": name})
    for method, params in (("parse/feed", {"chunk": "x"}), ("parse/close", {})):
        error = failure(client, method, {"streamId": name, **params})
        assert error.code == -32602
        assert f"no open stream '{name}'" in str(error)
        assert "parse/open gives one" in str(error)


def test_an_unknown_protocol_is_refused(client: Client) -> None:
    assert failure(client, "parse/open", {"protocol": "x"}).code == -32602


def test_open_streams_are_limited(client: Client) -> None:
    names = [client.request("parse/open")["streamId"] for _ in range(MAX_STREAMS)]
    error = failure(client, "parse/open", {})
    assert (error.code, error.data["code"], error.data["hint"]) == (1201, "overloaded", "end one with parse/close")
    client.request("parse/close", {"streamId": names[0]})
    assert client.request("parse/open")["streamId"] not in names


def test_a_text_above_the_limit_is_refused_and_the_stream_stays(client: Client) -> None:
    name = client.request("parse/open")["streamId"]
    piece = "x" * (32 * 1024 * 1024)
    for _ in range(2):
        client.request("parse/feed", {"streamId": name, "chunk": piece})
    error = failure(client, "parse/feed", {"streamId": name, "chunk": "y"})
    assert (error.code, error.data["code"]) == (1202, "textTooLarge")
    assert len(client.request("parse/close", {"streamId": name})["responseText"]) == 2 * len(piece)


def test_a_summary_leaves_out_what_was_fed(client: Client) -> None:
    """C2: blocks, calls and findings stay as they are in the whole result."""
    text = TEXT + "x" * 100_000
    whole = client.request("parse/close", {"streamId": stream(client, text, 1_000)[2]})
    short = client.request("parse/close", {"streamId": stream(client, text, 1_000)[2], "summary": True})
    for one in ("blocks", "diagnostics", "reasoning"):
        assert short.get(one) == whole.get(one)
    assert [call["callId"] for call in short["calls"]] == [call["callId"] for call in whole["calls"]]
    assert whole["calls"] and all(call["args"] == {} for call in short["calls"])
    assert (short["responseText"], short["trailingText"], short["comments"]) == ("", "", [])
    assert len(str(short)) < 10_000 < len(str(whole))
