"""An engine behind a URL under load and faults: many runs at once, answers that are slow, cut, endless or nonsense, ends of all kinds (W17, W19)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tamis.client import Client
from tamis.protocols.contract import ExecutionResult
from tamis.server.runtime.handlers.workflow import http_engine
from tamis.server.runtime.handlers.workflow.engine import EngineError
from tamis.server.runtime.settings.config import Policy
from tests.runtime.service_world import error_of
from tests.runtime.workflow_world import World, statuses
from tests.waiting import arrives, until

RUNS = 32
LINES = b"Content-Type: application/x-ndjson\r\n"
FLOW: dict[str, Any] = {
    "interfaceInputs": {"x": {"dataFlowType": "WILDCARD", "required": True}},
    "interfaceOutputs": {"y": {"dataFlowType": "WILDCARD"}},
    "nodes": [{"id": "n", "type": "any:thing"}],
    "interfaceInputMappings": {"x": {"nodeId": "n", "slotKey": "x"}},
    "outputInterfaceMappings": {"y": {"sourceNodeId": "n", "sourceSlotKey": "y"}},
}
STREAM = FLOW | {"interfaceOutputs": {"y": {"dataFlowType": "WILDCARD", "isStream": True}}}
Answer = Callable[["Engine", socket.socket, Any], None]


class Engine:
    """A loopback listener; ``answer`` gets each connection with what was posted on it."""

    def __init__(self, answer: Answer, *, reads: bool = True) -> None:
        self.answer = answer
        self.reads = reads
        self.asked: list[Any] = []
        self.left = 0
        """How many of those that were asked have gone away."""
        self.go = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/run"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            given = posted(connection) if self.reads else None
            self.asked.append(given)
            self.answer(self, connection, given)

    def close(self) -> None:
        """Lets go of everybody."""
        self.go.set()
        self._listening.close()


def posted(connection: socket.socket) -> Any:
    stream = connection.makefile("rb")
    length = 0
    while (line := stream.readline()).strip():
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return json.loads(stream.read(length))


def says(body: bytes, head: bytes = b"", *, length: int | None = None) -> Answer:
    size = b"Content-Length: %d\r\n" % (len(body) if length is None else length)
    return lambda _engine, connection, _given: connection.sendall(b"HTTP/1.1 200 OK\r\n" + head + size + b"\r\n" + body)


def raw(data: bytes) -> Answer:
    return lambda _engine, connection, _given: connection.sendall(data)


def waits(engine: Engine, connection: socket.socket, _given: Any) -> None:
    """Answers nothing until whoever asked has gone."""
    with contextlib.suppress(OSError):
        connection.recv(1)
    engine.left += 1


def resets(engine: Engine, connection: socket.socket, _given: Any) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@contextlib.contextmanager
def engine(answer: Answer, **more: Any) -> Iterator[Engine]:
    made = Engine(answer, **more)
    try:
        yield made
    finally:
        made.close()


def world(root: Path, made: Engine, content: dict[str, Any] = FLOW, **settings: Any) -> World:
    return World(root, {"w": content}, engine={"type": "http", "url": made.url}, **settings)


def threads() -> int:
    """The threads that speak with engines."""
    return sum(thread.name == http_engine.THREAD for thread in threading.enumerate())


def test_many_runs_at_once_each_get_their_own_outputs(tmp_path: Path) -> None:  # W17
    def together(engine: Engine, connection: socket.socket, given: Any) -> None:
        # nobody is answered before all have asked
        if len(engine.asked) == RUNS:
            engine.go.set()
        engine.go.wait()
        x = given["inputs"]["x"]
        lines = [{"step": {"nodeId": "n", "status": "running"}}, {"outputs": {"y": x * 2}}]
        body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        says(body, LINES)(engine, connection, given)

    async def work() -> list[ExecutionResult]:
        calls = (made.call("workflow:w", {"x": x}, call_id=f"c-{x}") for x in range(RUNS))
        try:
            return await asyncio.gather(*calls)
        finally:
            await made.runtime.close()

    with engine(together) as server:
        made = world(tmp_path, server)
        results = asyncio.run(work())
    assert [result.output for result in results] == [x * 2 for x in range(RUNS)]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(says(b'{"outputs": {"y"', length=100), "broke off: 84 bytes are missing", id="half an object"),
        pytest.param(says(b'{"outputs": {"y": 1}}', length=100), "bytes are missing", id="whole, but less than it said"),
        pytest.param(says(b'{"step": {"nodeId": "n", "status": "running"}}\n', LINES), "ended without", id="no last line"),
        pytest.param(says(b'{"step": {}}\n{"outputs": {"y"', LINES), "broke off", id="half a line"),
        pytest.param(raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n{"), "broke off: Incomplete", id="half a chunk"),
        pytest.param(raw(b""), "broke off: RemoteDisconnected", id="nothing"),
        pytest.param(resets, "broke off: ConnectionResetError", id="a reset"),
        pytest.param(raw(b"\x00\xff nonsense\r\n\r\n"), "broke off: BadStatusLine", id="no HTTP"),
        pytest.param(raw(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 500 + b"\r\n"), "broke off: HTTPException", id="headers"),
        pytest.param(raw(b"HTTP/1.1 500 " + b"x" * 60_000 + b"\r\n\r\n"), "answered 500 xxx", id="a long reason"),
        pytest.param(says(b'[1]\n{"outputs": {"y": 1}}\n', LINES), "no JSON object", id="a list"),
        pytest.param(says(b'{"outputs": []}'), "neither 'outputs' nor 'error'", id="a list of outputs"),
        pytest.param(says(b'{"error": {"message": ["%s"], "nodeId": "%s"}}' % (b"m" * 10**6, b"i" * 10**6)), "failed at 'iii", id="a long error"),
        pytest.param(says(b'{"error": {"nodeId": "n", "type": "%s"}}' % (b"t" * 10**6)), "node 'n' (ttt", id="a long type"),
        pytest.param(says(b'{"outputs": {"y": "\xff"}}'), "no JSON", id="no UTF-8"),
    ],
)  # fmt: skip
def test_what_is_cut_or_nonsense_is_the_workflows_error_in_few_words(
    tmp_path: Path, answer: Answer, said: str
) -> None:  # W17, W21
    with engine(answer) as server:
        result = world(tmp_path, server).run("workflow:w", {"x": 1})
    assert result.status == "error"
    error = error_of(result)
    assert error["type"] == "WorkflowError"
    assert said in error["message"]
    assert len(error["message"]) < 1_500


def test_nonsense_between_good_lines_is_passed_over(tmp_path: Path) -> None:
    lines = [
        {"step": {"nodeId": "other", "status": "success"}},
        {"step": {"nodeId": ["n"], "status": {"a": 1}}},
        {"step": {"nodeId": "n", "status": "dancing"}},
        {"output": "nobody's", "item": 1},
        {"output": 7, "step": 9},
        {},
        {"outputs": {"y": [1, None], "nobody's": 2}, "error": None},
    ]
    body = b"".join(json.dumps(line).encode() + b"\r\n\n" for line in lines)
    with engine(says(body, LINES)) as server:
        result, steps = world(tmp_path, server).run_traced("workflow:w", {"x": 1})
    assert (result.status, result.output) == ("success", [1, None])
    assert statuses(steps) == {"n": "success"}


def test_whatever_is_json_reaches_the_engine(tmp_path: Path) -> None:
    def echoes(engine: Engine, connection: socket.socket, given: Any) -> None:
        says(json.dumps({"outputs": {"y": ascii(given["inputs"]["x"])[:20]}}).encode())(engine, connection, given)

    with engine(echoes) as server:
        assert world(tmp_path, server).run("workflow:w", {"x": 10**30}).output == str(10**30)[:20]
        assert world(tmp_path, server).run("workflow:w", {"x": "a\ud800"}).output == ascii("a\ud800")


def test_a_cancel_ends_all_runs_and_all_that_they_hold(tmp_path: Path) -> None:  # W19, V52
    async def work() -> list[ExecutionResult]:
        cancelled = asyncio.Event()
        calls = [
            asyncio.ensure_future(made.call("workflow:w", {"x": x}, call_id=f"c-{x}", cancelled=cancelled))
            for x in range(RUNS)
        ]
        await arrives(lambda: len(server.asked) == RUNS)
        assert threads() == RUNS
        cancelled.set()
        results = await asyncio.gather(*calls)
        await arrives(lambda: not threads() and server.left == RUNS)
        await made.runtime.close()
        return results

    with engine(waits) as server:
        made = world(tmp_path, server)
        assert {result.status for result in asyncio.run(work())} == {"cancelled"}


@pytest.mark.parametrize("reads", [True, False], ids=["silent", "deaf"])
def test_an_engine_that_does_not_answer_or_read_ends_by_the_time_of_the_run(tmp_path: Path, reads: bool) -> None:
    async def work() -> ExecutionResult:
        try:
            return await made.call("workflow:w", {"x": "x" * 8_000_000}, timeout_ms=300)
        finally:
            await arrives(lambda: not threads())
            await made.runtime.close()

    with engine(lambda server, _connection, _given: bool(server.go.wait()), reads=reads) as server:
        made = world(tmp_path, server)
        assert asyncio.run(work()).status == "timeout"


def test_a_drip_of_bytes_ends_by_the_time_of_the_run(tmp_path: Path) -> None:
    def drips(engine: Engine, connection: socket.socket, _given: Any) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + LINES + b"\r\n")
        while not engine.go.wait(0.02):
            connection.sendall(b" ")

    with engine(drips) as server:
        assert (
            world(tmp_path, server, FLOW | {"execution": {"timeoutMs": 300}}).run("workflow:w", {"x": 1}).status
            == "timeout"
        )


def test_a_flood_of_lines_waits_for_the_loop_instead_of_filling_it(tmp_path: Path) -> None:
    step = b'{"step": {"nodeId": "n", "status": "running"}}\n'
    sent = threading.Event()

    def floods(engine: Engine, connection: socket.socket, _given: Any) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + LINES + b"\r\n")
        for _ in range(200):
            connection.sendall(step * 500)
        connection.sendall(b'{"outputs": {"y": 1}}\n')
        sent.set()

    async def work() -> tuple[int, ExecutionResult]:
        task = asyncio.ensure_future(made.call("workflow:w", {"x": 1}))
        await arrives(lambda: server.asked)
        # the loop does something else meanwhile
        sent.wait(1)
        waiting = len(asyncio.get_running_loop()._ready)  # type: ignore[attr-defined]
        try:
            return waiting, await task
        finally:
            await made.runtime.close()

    with engine(floods) as server:
        made = world(tmp_path, server)
        waiting, result = asyncio.run(work())
    assert (result.status, result.output) == ("success", 1)
    assert waiting <= http_engine.MAX_UNTOLD + 20


def test_a_daemon_with_many_runs_goes_on_and_ends_while_its_engine_is_silent(tmp_path: Path) -> None:  # W17, V53
    with engine(waits) as server:
        world(tmp_path, server)
        (tmp_path / "tamis.toml").write_text(f'workflows = ["flows"]\n[engine]\ntype = "http"\nurl = "{server.url}"\n')
        with Client(tmp_path) as client:
            client.request("initialize", {"processId": None, "capabilities": {}})
            sent = [client.send("workflow/run", {"workflowId": "w", "inputs": {"x": x}}) for x in range(RUNS)]
            until(lambda: len(server.asked) == RUNS)
            assert client.request("server/health")["status"] == "ok"
            client.notify("$/cancelRequest", {"id": sent[0][0]})
            assert sent[0][1].result()["status"] == "cancelled"
            assert client.close(600) == 0
        until(lambda: server.left == RUNS)


# Trust 4: the engine's name is looked up once, judged, and what was judged is dialled


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "10.0.0.1", "::1", "fe80::1", "0.0.0.0"])
def test_a_name_that_leads_inside_is_not_dialled(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def look_up(host: str, _port: int) -> list[str]:
        asked.append(host)
        return [address]

    monkeypatch.setattr("tamis.sandbox.network.egress_hosts._look_up", look_up)
    engine = http_engine.HttpEngine("http://engine.example/run?key=K", Policy(allow_hosts=("engine.example",)))
    with pytest.raises(EngineError, match="allowCidrs") as refused:
        asyncio.run(engine._addresses("http://engine.example/run"))
    assert asked == ["engine.example"]
    assert "K" not in str(refused.value).split("engine.example/run", 1)[1].split(" ")[0]


def test_a_range_that_the_operator_opened_is_dialled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.sandbox.network.egress_hosts._look_up", lambda *_: ["10.1.2.3", "192.168.0.1"])
    engine = http_engine.HttpEngine("http://engine.example/run", Policy(allow_cidrs=("10.1.0.0/16",)))
    assert asyncio.run(engine._addresses("here")) == ["10.1.2.3"]


def test_the_word_localhost_leads_to_this_machine_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: pytest.fail("a name was looked up"))
    assert asyncio.run(http_engine.HttpEngine("http://localhost:1/")._addresses("here")) == ["127.0.0.1", "::1"]
    assert asyncio.run(http_engine.HttpEngine("http://127.0.0.1:1/")._addresses("here")) == ["127.0.0.1"]


@pytest.mark.parametrize(
    ("lines", "items"),
    [
        ([{"output": "y", "item": 1}, {"output": "y", "item": {"a": [2]}}, {"outputs": {"y": [1, {"a": [2]}]}}], [1, {"a": [2]}]),
        ([{"output": "y", "item": 1}, {"outputs": {"y": [1, 2, 3]}}], [1, 2, 3]),
        ([{"output": "y", "item": 1}, {"outputs": {"y": [2, 3]}}], [1, 2, 3]),
        ([{"output": "y", "item": 1}, {"output": "y", "item": 1}, {"outputs": {"y": [1]}}], [1, 1, 1]),
        ([{"outputs": {"y": [1, 2]}}], [1, 2]),
        ([{"output": "y", "item": 1}, {"outputs": {}}], [1]),
    ],
    ids=["repeated", "repeated and more", "the rest", "fewer", "at the end alone", "by lines alone"],
)  # fmt: skip
def test_items_that_the_final_outputs_repeat_come_once(tmp_path: Path, lines: list[Any], items: list[Any]) -> None:
    """T9."""
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    with engine(says(body, LINES)) as server:
        result = world(tmp_path, server, STREAM).run("workflow:w", {"x": 1})
    assert (result.status, result.output) == ("success", items)


@pytest.mark.parametrize(("node_id", "shown"), [("n", ("n", "any:thing")), ("inside-7", ("inside-7", "k:x"))])
def test_the_node_that_the_engine_names_is_in_the_details(tmp_path: Path, node_id: str, shown: tuple[str, str]) -> None:
    """T9: also one that the file does not have."""
    error: dict[str, Any] = {"message": "it broke", "nodeId": node_id} | ({"type": "k:x"} if node_id != "n" else {})
    with engine(says(json.dumps({"error": error}).encode())) as server:
        result = world(tmp_path, server).run("workflow:w", {"x": 1})
    found = error_of(result)["details"]["node"]
    assert (found["nodeId"], found["type"], found["status"]) == (*shown, "error")
    assert "it broke" in error_of(result)["message"]
