"""``parse/open``, ``parse/feed`` and ``parse/close`` as a host sees them, over a real process."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tamis.client import Client, RpcFailure
from tamis.server.rpc import streams
from tamis.server.rpc.methods import RpcServer
from tamis.server.rpc.session import Request
from tamis.server.rpc.streams import MAX_STREAMS
from tamis.server.wire.jsonrpc import RpcError
from tests.rpc.inside import InsideClient
from tests.rpc.raw_host import RawHost
from tests.sample_tools import make_tool

TAM = "<|[REQUEST_TOOL]|>\ncommand:»»»x«««\np:»»»中🎉«««\n<|[END_TOOL]|>"
TEXT = f"😀 Text <b\r\n<ACTION>\n<t><a>1 < 2 🎉</a></t></ACTION> {TAM}\n`<ACTION>` é{TAM} end\n"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    make_tool(tmp_path, "test:echo")
    with InsideClient(tmp_path) as started:
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


def seeded_pieces(size: int, seed: int) -> Iterator[str]:
    """Prose with a call here and there, cut anywhere, of at least ``size`` characters."""
    source = random.Random(seed)
    part = "".join(
        f"{'Some words of prose go on here. ' * source.randrange(20, 400)}<ACTION><t:a><x>{number}</x></t:a></ACTION>\n"
        for number in range(100)
    )
    for _ in range(size // 1_000_000 + 1):
        at = source.randrange(len(part))
        yield ((part[at:] + part) * 3)[:1_000_000]


def memory(pid: int) -> int:
    """The most that a process ever held, in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) // 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def test_a_long_text_comes_by_pieces_in_bounded_memory(tmp_path: Path, is_long: bool) -> None:
    """C2: of 210 MB in three streams each takes what is said, and gives the result of it while others are answered."""
    size, most = (70_000_000, 700) if is_long else (6_000_000, 200)
    options = {"allowMultipleBlocks": True}
    with RawHost(tmp_path, process=True) as host:
        number = 0

        def ask(method: str, params: Any) -> dict[str, Any]:
            nonlocal number
            number += 1
            host.send(id=number, method=method, params=params)
            return host.until(id=number)

        ask("task/list", {})
        for seed in range(3 if is_long else 1):
            name = ask("parse/open", {"options": options})["result"]["streamId"]
            taken, calls = 0, 0
            refused: dict[str, Any] = {}
            for piece in seeded_pieces(size, seed):
                answer = ask("parse/feed", {"streamId": name, "chunk": piece})
                taken, refused = (taken + len(piece), refused) if "result" in answer else (taken, answer["error"])
                calls += len(answer.get("result", {"calls": ()})["calls"])
            if is_long:
                assert taken == 67_000_000
                assert refused["data"]["code"] == "textTooLarge"
                assert "parse/close" in refused["data"]["hint"]
            number += 1
            closing = number
            host.send(id=closing, method="parse/close", params={"streamId": name, "summary": True})
            number += 1
            host.send(id=number, method="task/list", params={})
            assert host.next()["id"] == number  # while the whole text is read once more
            result = host.until(id=closing)["result"]
            assert len(result["calls"]) >= calls > 500
            assert result["responseText"] == ""
        assert memory(host.pid) < most


def test_pieces_that_wait_for_one_another_keep_their_order(
    tmp_path: Path,
) -> None:  # C2: a long one is read in a thread
    text = TEXT + "word " * 60_000 + TEXT
    with RawHost(tmp_path) as host:
        host.send(id=1, method="parse/open", params={"options": {"allowMultipleBlocks": True}})
        name = host.until(id=1)["result"]["streamId"]
        cuts = [0, 40, 100_000, 100_010, 250_000, len(text)]
        for number, (start, end) in enumerate(itertools.pairwise(cuts), 2):
            host.send(id=number, method="parse/feed", params={"streamId": name, "chunk": text[start:end]})
        host.send(id=20, method="parse/close", params={"streamId": name})
        host.send(id=21, method="tool/parse", params={"text": text, "options": {"allowMultipleBlocks": True}})
        answers = {}
        while len(answers) < 7:
            answer = host.next()
            answers[answer["id"]] = answer["result"]
        assert {**answers[20], "callId": 0} == {**answers[21], "callId": 0}


def test_a_stream_of_very_many_blocks_takes_no_further_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C2: what the result holds grows with the blocks; that of the blocks so far can be had."""
    monkeypatch.setattr(streams, "MAX_BLOCKS", 20)

    async def run() -> tuple[RpcError, Any]:
        server = RpcServer(tmp_path)

        def ask(method: str, **params: Any) -> Any:
            return server.session.methods[method].handler(Request(server.session, 1, lambda _: None), params)

        name = ask("parse/open", options={"allowMultipleBlocks": True}).stream_id
        for _ in range(2):
            ask("parse/feed", streamId=name, chunk="<ACTION><a/></ACTION>\n" * 10)
        with pytest.raises(RpcError) as refused:
            ask("parse/feed", streamId=name, chunk="more")
        return refused.value, ask("parse/close", streamId=name)

    refused, result = asyncio.run(run())
    assert "20 blocks" in str(refused)
    assert len(result.calls) == 20
