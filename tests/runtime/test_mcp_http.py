"""MCP servers over HTTP: reached from the sandbox, so that the policy decides; the token goes to the host that was named (mcp, Client)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.contract import ExecutionResult
from tamis.server.runtime.calls.model import Question, Reply
from tamis.server.runtime.execution.approvals.replies import chosen
from tamis.server.runtime.handlers.mcp import servers
from tamis.server.runtime.handlers.mcp.over_http.bridge import Place
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.settings.mcp_servers import BRIDGE
from tests.runtime import mcp_calls
from tests.waiting import arrives, until

NAMESPACE = "io.modelcontextprotocol/"
ECHO = {"name": "echo", "description": "Gives back.", "inputSchema": {"type": "object"}}


class Remote:
    """A server whose answers to `tools/call` a test chooses; it keeps what it was asked."""

    def __init__(self, modern: bool) -> None:
        self.modern = modern
        self.told = Queue[dict[str, Any]]()
        self.asked: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.answer: Callable[[BaseHTTPRequestHandler, Any, dict[str, Any]], bool] = lambda *_: False
        self.stream: Callable[[Any], None] = lambda at: at.say(405, b"")
        self.tools = [ECHO]
        self.tells = False
        """Whether it tells that its tools changed."""
        remote = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def say(self, status: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                self.wfile.write(body)

            def events(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                self.close_connection = True

            def event(self, message: dict[str, Any]) -> None:
                self.wfile.write(b"data: " + json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n\n")

            def do_GET(self) -> None:
                remote.asked.append(("GET", {k.lower(): v for k, v in self.headers.items()}, {}))
                remote.stream(self)

            def do_DELETE(self) -> None:
                remote.asked.append(("DELETE", {k.lower(): v for k, v in self.headers.items()}, {}))
                self.say(200, b"")

            def do_POST(self) -> None:
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                remote.asked.append(("POST", {k.lower(): v for k, v in self.headers.items()}, message))
                remote.reply(self, message)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/mcp"
        self.far = self.url.replace("127.0.0.1", "far.test")
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def reply(self, at: Any, message: dict[str, Any]) -> None:
        if "method" not in message:
            self.told.put(message)
            at.say(202, b"")
            return
        method, params = message["method"], message.get("params", {})
        if "id" not in message:
            at.say(202, b"")
        elif method == "tools/call" and self.answer(at, message["id"], params):
            return
        elif method == "server/discover":
            if not self.modern:
                at.say(400, b"no", "text/plain")
                return
            able = {"tools": {"listChanged": self.tells}}
            told = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": able}
            at.say(200, self.result(message, told))
        elif method == "initialize":
            told = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "r", "version": "1"}}
            at.say(200, self.result(message, told), Mcp_Session_Id="session-1")
        elif method == "subscriptions/listen":
            self.stream(at)
        elif method == "tools/list":
            at.say(200, self.result(message, {"tools": self.tools}))
        else:
            content = [{"type": "text", "text": json.dumps(params.get("arguments"))}]
            body = b": hi\n\ndata: " + self.result(message, {"content": content}) + b"\n\n"
            at.say(200, body, "text/event-stream")

    def result(self, message: dict[str, Any], result: dict[str, Any]) -> bytes:
        return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()

    def seen(self, method: str) -> list[dict[str, str]]:
        return [headers for _, headers, message in self.asked if message.get("method") == method]


@pytest.fixture(params=[True, False], ids=["modern", "legacy"])
def remote(request: pytest.FixtureRequest) -> Iterator[Remote]:
    made = Remote(bool(request.param))
    yield made
    made.server.shutdown()


def made(root: Path, url: str, *, allow: bool = True, more: str = "", policy: str = "") -> Runtime:
    """A runtime whose tool `mcp:echo` is that of the server at an address."""
    cidrs = (
        'allowCidrs = ["127.0.0.0/8"]\nallowHosts = ["far.test:*"]\npin = { "far.test" = "127.0.0.1" }\n'
        if allow
        else ""
    )
    (root / "tamis.toml").write_text(
        f"[sandbox]\nwallMs = 600000\n[policy]\n{cidrs}{policy}\n"
        f'[mcpServers.far]\nurl = "{url}"\nstartMs = 600000\n{more}\n'
    )
    manifest = {
        "toolId": "mcp:echo",
        "displayName": "echo",
        "description": "Gives back what it was given, by a server that is far away.",
        "version": "1.0.0",
        "handler": {"type": "mcp", "server": "far", "tool": "echo"},
    }
    (root / "echo.tool.json").write_text(json.dumps(manifest))
    return Runtime(root)


def run(
    root: Path, url: str, *, times: int = 1, ask: Any = None, progress: list[str] | None = None, **more: Any
) -> list[ExecutionResult]:
    async def work(around: Any) -> list[ExecutionResult]:
        asking = around.having(elicits=ask is not None)
        return [await mcp_calls.call(asking, "echo", text="x") for _ in range(times)]

    told = None if progress is None else (lambda _call, text: progress.append(text))
    return mcp_calls.run(made(root, url, **more), work, ask=ask, on_progress=told)


async def given_up(around: Any, is_there: Callable[[], Any]) -> ExecutionResult:
    """A call that is cancelled when it has come to its server."""
    call = asyncio.ensure_future(mcp_calls.call(around, "echo", text="x"))
    await arrives(is_there)
    around.services.running_calls.cancel(call_id="c-echo")
    return await call


def after_one_given_up(is_there: Callable[[], Any]) -> Callable[[Any], Awaitable[list[ExecutionResult]]]:
    """Such a call, and one after it."""

    async def work(around: Any) -> list[ExecutionResult]:
        return [await given_up(around, is_there), await mcp_calls.call(around, "echo", text="x")]

    return work


def test_a_call_goes_to_the_server_and_back(remote: Remote, tmp_path: Path) -> None:
    results = run(tmp_path, remote.far, times=2)
    assert [(one.status, one.output) for one in results] == [("success", '{"text": "x"}')] * 2
    headers = remote.seen("tools/call")[0]
    if remote.modern:
        assert (headers["mcp-method"], headers["mcp-name"], headers["mcp-protocol-version"]) == (
            "tools/call",
            "echo",
            "2026-07-28",
        )
    else:
        assert (headers["mcp-session-id"], headers["mcp-protocol-version"]) == ("session-1", "2025-11-25")


def test_a_private_address_is_refused_unless_it_is_granted(tmp_path: Path) -> None:
    remote = Remote(True)
    result = run(tmp_path, remote.far, allow=False)[0]
    assert result.status == "error"
    assert remote.asked == []


def test_the_token_goes_to_the_server_that_was_named_and_to_no_other(tmp_path: Path) -> None:
    remote, other = Remote(True), Remote(True)
    remote.answer = lambda at, _number, _params: at.say(307, b"", Location=other.url) or True
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}}
    lines = [json.dumps({**asked, "method": "tools/list"}), json.dumps({**asked, "id": 2})]
    with subprocess.Popen(
        [sys.executable, str(BRIDGE), remote.url, "65536", "KEY"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"KEY": "key-of-the-far-server"},
    ) as bridge:
        assert bridge.stdin is not None
        assert bridge.stdout is not None
        bridge.stdin.write("".join(f"{line}\n" for line in lines))
        bridge.stdin.flush()
        told = bridge.stdout.readline() + bridge.stdout.readline()
        bridge.stdin.close()
    assert {headers["authorization"] for _, headers, _ in remote.asked} == {"Bearer key-of-the-far-server"}
    assert other.asked == []
    assert len(remote.asked) == 2
    assert "redirect" in told
    assert "key-of" not in told


def test_a_question_of_a_server_over_http_is_answered(tmp_path: Path) -> None:
    remote = Remote(False)
    form = {"message": "Go on?", "requestedSchema": {"type": "object", "properties": {}}}
    asked = {"jsonrpc": "2.0", "id": 3, "method": "elicitation/create", "params": form}

    def answer(at: Any, number: Any, _params: Any) -> bool:
        at.send_response(200)
        at.send_header("Content-Type", "text/event-stream")
        at.send_header("Connection", "close")
        at.end_headers()
        at.wfile.write(b"data: " + json.dumps(asked).encode() + b"\n\n")
        content = [{"type": "text", "text": json.dumps(remote.told.get()["result"])}]
        at.wfile.write(b"data: " + remote.result({"id": number}, {"content": content}) + b"\n\n")
        return True

    async def accept(question: Question) -> Reply:
        return chosen("accept", question.options)

    remote.answer = answer
    (result,) = run(tmp_path, remote.far, ask=accept)
    assert json.loads(result.output) == {"action": "accept", "content": {}}


def test_an_answer_to_the_server_that_fails_is_none_to_a_request_of_the_same_id() -> None:
    answer, request = {"jsonrpc": "2.0", "id": 1, "result": {}}, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    closed = "http://127.0.0.1:1/mcp"
    with subprocess.Popen(
        [sys.executable, str(BRIDGE), closed, "65536"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as bridge:
        assert bridge.stdin is not None
        assert bridge.stdout is not None
        bridge.stdin.write(f"{json.dumps(answer)}\n{json.dumps(request)}\n")
        bridge.stdin.flush()
        assert json.loads(bridge.stdout.readline())["id"] == 2
        bridge.stdin.close()


def test_a_server_tells_that_its_tools_changed_while_nobody_calls_it(
    remote: Remote, tmp_path: Path
) -> None:  # issue 18
    heard, changed, over = threading.Event(), threading.Event(), threading.Event()
    remote.tells = True

    def stream(at: Any) -> None:
        at.events()
        heard.set()
        changed.wait()
        at.event({"method": "notifications/tools/list_changed"})
        over.wait()

    def answer(_at: Any, _number: Any, _params: Any) -> bool:
        heard.wait()
        remote.tools = [{**ECHO, "name": "other"}]
        return False

    async def work(around: Any) -> list[ExecutionResult]:
        first = await mcp_calls.call(around, "echo", text="x")
        changed.set()
        (running,) = around.services.handlers.mcp._running.values()
        await arrives(lambda: running.session.tools_changed)
        return [first, await mcp_calls.call(around, "echo", text="x")]

    remote.stream, remote.answer = stream, answer
    first, second = mcp_calls.run(made(tmp_path, remote.far), work)
    over.set()
    assert first.status == "success"
    assert "has no tool 'echo'" in str(second.error)
    # mcp 3: a manifest is its author's and what approvals are bound to; nothing writes it anew by itself
    assert [any("said that its tools changed" in line for line in one.logs) for one in (first, second)] == [False, True]


@pytest.mark.parametrize("how", ["another version", "slow", "no versions"])
def test_a_server_of_the_stateless_revision_is_spoken_to_in_its_way(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # what a server on standard streams has for this answer; over HTTP it is waited for
    monkeypatch.setattr(servers, "DISCOVER_S", 0.1)
    remote = Remote(True)
    reply, asked = remote.reply, Queue[int]()

    def odd(at: Any, message: dict[str, Any]) -> None:
        if message.get("method") != "server/discover" or (how == "another version" and asked.qsize()):
            reply(at, message)
            return
        asked.put(1)
        if how == "slow":
            time.sleep(0.5)
            reply(at, message)
        elif how == "no versions":
            at.say(200, remote.result(message, {"resultType": "complete"}))
        else:
            error = {"code": -32022, "message": "no", "data": {"supported": ["2099-01-01", "2026-07-28"]}}
            at.say(400, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode())

    remote.reply = odd  # type: ignore[method-assign]
    (result,) = run(tmp_path, remote.far)
    assert result.status == "success"
    assert remote.seen("initialize") == []


def as_task(remote: Remote, states: list[dict[str, Any]], result: Any) -> list[tuple[str, Any]]:
    """From now on calls become tasks that go through these states; what was said of them."""
    said: list[tuple[str, Any]] = []
    reply = remote.reply
    remote.tools = [{**ECHO, "execution": {"taskSupport": "required"}}]

    def of_tasks(at: Any, message: dict[str, Any]) -> None:
        method, params = message.get("method", ""), message.get("params", {})
        if method.startswith("tasks/") or method == "tools/call":
            said.append((method, params))
        state = {"taskId": "t-1", "pollIntervalMs": 1, "pollInterval": 1, **states[0]}
        if method == "tools/call":
            at.say(200, remote.result(message, {"resultType": "task", **state} if remote.modern else {"task": state}))
        elif method == "tasks/get":
            del states[: len(states) > 1]
            more = {"result": result} if states[0]["status"] == "completed" and remote.modern else {}
            state = {"taskId": "t-1", "pollIntervalMs": 1, "pollInterval": 1, **states[0], **more}
            at.say(200, remote.result(message, {"resultType": "complete", **state}))
        elif method == "tasks/result":
            at.say(200, remote.result(message, result))
        elif method.startswith("tasks/"):
            at.say(200, remote.result(message, {"resultType": "complete"}))
        elif method == "initialize":
            able = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
            info = {"name": "r", "version": "1"}
            told = {"protocolVersion": "2025-11-25", "capabilities": able, "serverInfo": info}
            at.say(200, remote.result(message, told), Mcp_Session_Id="session-1")
        else:
            reply(at, message)

    remote.reply = of_tasks  # type: ignore[method-assign]
    return said


DONE = {"content": [{"type": "text", "text": "done"}]}


def test_a_call_that_becomes_a_task_is_asked_after_until_it_ends(remote: Remote, tmp_path: Path) -> None:  # issue 18
    said = as_task(
        remote, [{"status": "working"}, {"status": "working", "statusMessage": "half"}, {"status": "completed"}], DONE
    )
    told: list[str] = []
    (result,) = run(tmp_path, remote.far, progress=told)
    assert (result.status, result.output, told) == ("success", "done", ["half"])
    wanted = ["tools/call", "tasks/get", "tasks/get", *([] if remote.modern else ["tasks/result"])]
    assert [method for method, _ in said] == wanted
    if remote.modern:
        able = said[0][1]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
        assert able["extensions"] == {"io.modelcontextprotocol/tasks": {}}
    else:
        assert said[0][1]["task"]["ttl"] > 0


def test_a_task_whose_call_is_given_up_is_cancelled(remote: Remote, tmp_path: Path) -> None:
    said = as_task(remote, [{"status": "working"}], DONE)
    result = mcp_calls.run(
        made(tmp_path, remote.far), lambda around: given_up(around, lambda: "tasks/get" in dict(said))
    )
    assert result.status == "cancelled"
    assert ("tasks/cancel", "t-1") in [(method, params["taskId"]) for method, params in said if "taskId" in params]


def test_what_a_task_asks_for_is_asked_of_a_person_once(tmp_path: Path) -> None:
    remote = Remote(True)
    form = {"message": "Go on?", "requestedSchema": {"type": "object", "properties": {}}}
    asks = {"status": "input_required", "inputRequests": {"q": {"method": "elicitation/create", "params": form}}}
    said = as_task(remote, [{"status": "working"}, asks, asks, {"status": "completed"}], DONE)
    questions: list[Question] = []

    async def accept(question: Question) -> Reply:
        questions.append(question)
        return chosen("accept", question.options)

    (result,) = run(tmp_path, remote.far, ask=accept)
    assert (result.status, result.output) == ("success", "done")
    assert len(questions) == 1
    (update,) = [params for method, params in said if method == "tasks/update"]
    assert update["inputResponses"] == {"q": {"action": "accept", "content": {}}}


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ({"status": "cancelled"}, "cancelled"),
        ({"status": "failed", "error": {"code": -32603, "message": "no disk"}}, "no disk"),
        ({"status": "asleep"}, "which is none"),
        ({"status": 7}, "which is none"),
        ({"status": "input_required"}, "nobody can be asked"),
        ({"status": "completed", "result": []}, "no object"),
    ],
    ids=str,
)
def test_a_task_that_gives_nothing_ends_its_call(tmp_path: Path, state: dict[str, Any], why: str) -> None:
    remote = Remote(True)
    as_task(remote, [{"status": "working"}, state], state.get("result", DONE))
    (result,) = run(tmp_path, remote.far)
    assert result.status == "error"
    assert why in str(result.error)


def test_a_parameter_that_a_tool_wants_in_a_header_stands_there_too(remote: Remote, tmp_path: Path) -> None:  # SEP-2243
    text = {"type": "string", "x-mcp-header": "Text"}
    remote.tools = [{**ECHO, "inputSchema": {"type": "object", "properties": {"text": text}}}]
    (result,) = run(tmp_path, remote.far)
    assert result.status == "success"
    assert remote.seen("tools/call")[0].get("mcp-param-text") == ("x" if remote.modern else None)


@pytest.mark.parametrize("name", ["", "a b", "x\r\nX-Evil: 1", "é", 5])
def test_a_tool_that_wants_what_no_header_can_be_is_left_out(tmp_path: Path, name: Any) -> None:
    remote = Remote(True)
    text = {"type": "string", "x-mcp-header": name}
    remote.tools = [{**ECHO, "inputSchema": {"type": "object", "properties": {"text": text}}}]
    (result,) = run(tmp_path, remote.far)
    assert "has no tool 'echo'" in str(result.error)
    assert remote.seen("tools/call") == []


def test_progress_comes_by_the_stream_of_a_session_too(tmp_path: Path) -> None:
    remote = Remote(False)
    token, told, over = Queue[Any](), list[str](), threading.Event()

    def stream(at: Any) -> None:
        at.events()
        at.event({"method": "notifications/progress", "params": {"progressToken": token.get(), "progress": 1}})
        over.wait()

    def answer(_at: Any, _number: Any, params: Any) -> bool:
        token.put(params["_meta"]["progressToken"])
        until(lambda: told)
        return False

    remote.stream, remote.answer = stream, answer
    (result,) = run(tmp_path, remote.far, progress=told)
    over.set()
    assert (result.status, told) == ("success", ["1"])


def test_a_stream_that_broke_off_is_taken_up_behind_its_last_event(tmp_path: Path) -> None:  # issue 18, SEP-1699
    remote = Remote(False)
    asked: list[tuple[Any, float]] = []

    def answer(at: Any, number: Any, _params: Any) -> bool:
        at.events()
        asked.append((number, time.monotonic()))
        at.wfile.write(b"id: e-1\nretry: 400\ndata: \n\n")
        return True

    def stream(at: Any) -> None:
        if at.headers["Last-Event-ID"] is None:
            at.say(405, b"")
            return
        asked.append((at.headers["Last-Event-ID"], time.monotonic()))
        at.events()
        if len(asked) == 2:
            at.wfile.write(b"id: e-2\ndata: \n\n")
        else:
            at.event({"id": asked[0][0], "result": {"content": [{"type": "text", "text": "late"}]}})

    remote.stream, remote.answer = stream, answer
    (result,) = run(tmp_path, remote.far)
    assert (result.status, result.output) == ("success", "late")
    assert [what for what, _ in asked[1:]] == ["e-1", "e-2"]
    assert asked[1][1] - asked[0][1] >= 0.4
    assert len(remote.seen("tools/call")) == 1, "a call is not made twice"


@given(st.lists(st.tuples(st.sampled_from([b"id", b"retry", b"event", b""]), st.binary(max_size=2_000))))
def test_what_a_server_says_of_its_stream_is_a_header_and_a_bounded_time(fields: list[tuple[bytes, bytes]]) -> None:
    place = Place()
    for name, value in fields:
        place.field(name, value)
    assert place.last.isascii()
    assert not place.last or place.last.isprintable()
    assert len(place.last) <= 1_024
    assert 0.1 <= place.pause <= 60


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_a_private_address_reaches_nobody(tmp_path: Path, status: int) -> None:
    """mcp, egress: also where the policy opens that range, for the settings name another place."""
    remote, private = Remote(True), Remote(True)

    def answer(at: Any, _number: Any, _params: Any) -> bool:
        at.say(status, b"", Location=private.far.replace("far.test", "127.0.0.1"))
        return True

    remote.answer = answer
    result = run(tmp_path, remote.far)[0]
    assert result.status == "error"
    assert "redirects to 'http://127.0.0.1" in str(result.error)
    assert private.asked == []


def test_no_redirect_is_followed(remote: Remote, tmp_path: Path) -> None:
    other = Remote(True)

    def answer(at: Any, _number: Any, _params: Any) -> bool:
        at.say(307, b"", Location=other.far)
        return True

    remote.answer = answer
    result = run(tmp_path, remote.far)[0]
    assert result.status == "error"
    assert "redirect" in str(result.error)
    assert other.asked == []


@pytest.mark.parametrize(
    ("body", "kind"),
    [(b"{", "application/json"), (b"<html>", "text/html"), (b"[" * 100_000, "application/json"), (b"", "text/event-stream"),
     (b"\xff", "application/json"), (b'data: {"a"\n\n', "text/event-stream")],
    ids=str,
)  # fmt: skip
def test_a_bad_answer_ends_its_call_at_once(tmp_path: Path, body: bytes, kind: str) -> None:
    remote = Remote(True)

    def answer(at: Any, _number: Any, _params: Any) -> bool:
        at.say(200, body, kind)
        return True

    remote.answer = answer
    result = run(tmp_path, remote.far)[0]
    assert (result.status, result.error.type if result.error else "") == ("error", "ServiceError")


@pytest.mark.parametrize("lie", [-5, 5, 10**12])
def test_an_answer_of_another_length_than_it_says_ends_its_call_at_once(tmp_path: Path, lie: int) -> None:  # issue 18
    remote = Remote(True)
    calls: list[int] = []

    def answer(at: Any, number: Any, _params: Any) -> bool:
        calls.append(1)
        if len(calls) > 1:
            return False
        body = remote.result({"id": number}, DONE)
        at.send_response(200)
        at.send_header("Content-Type", "application/json")
        at.send_header("Content-Length", str(len(body) + lie))
        at.end_headers()
        at.wfile.write(body)
        at.close_connection = True
        return True

    remote.answer = answer
    first, second = run(tmp_path, remote.far, times=2)
    assert (first.status, second.status) == ("error", "success")


def test_an_answer_that_comes_twice_or_to_another_id_is_passed_over(remote: Remote, tmp_path: Path) -> None:
    def answer(at: Any, number: Any, _params: Any) -> bool:
        at.events()
        at.event({"id": 0, "result": {"content": [{"type": "text", "text": "of another"}]}})
        at.event({"id": number, "result": DONE})
        at.event({"id": number, "result": {"content": [{"type": "text", "text": "again"}]}})
        return True

    remote.answer = answer
    results = run(tmp_path, remote.far, times=2)
    assert [(one.status, one.output) for one in results] == [("success", "done")] * 2


def test_an_answer_after_the_call_was_given_up_reaches_nobody(remote: Remote, tmp_path: Path) -> None:
    calls: list[int] = []
    over, answered = threading.Event(), threading.Event()

    def answer(at: Any, number: Any, _params: Any) -> bool:
        calls.append(1)
        if len(calls) > 1:
            over.set()
            answered.wait()
            return False
        at.events()
        over.wait()
        with contextlib.suppress(OSError):
            at.event({"id": number, "result": DONE})
        answered.set()
        return True

    remote.answer = answer
    first, second = mcp_calls.run(made(tmp_path, remote.far), after_one_given_up(lambda: calls))
    assert first.status == "cancelled"
    assert (second.status, second.output) == ("success", '{"text": "x"}')


def test_a_call_that_hangs_costs_the_next_one_nothing(tmp_path: Path) -> None:
    remote = Remote(True)
    hung: list[Any] = []
    over = threading.Event()

    def answer(_at: Any, number: Any, _params: Any) -> bool:
        if hung:
            return False
        hung.append(number)
        over.wait()
        return True

    remote.answer = answer
    first, second = mcp_calls.run(made(tmp_path, remote.far), after_one_given_up(lambda: hung))
    over.set()
    assert (first.status, second.status) == ("cancelled", "success")


@pytest.mark.parametrize(
    ("url", "more", "why"),
    [
        ("ftp://example.com/", "", "address of HTTP"),
        ("example.com/mcp", "", "address of HTTP"),
        ("https://", "", "address of HTTP"),
        ("https://[::1/mcp", "", "address of HTTP"),
        ("https://example.com:99999/", "", "address of HTTP"),
        ("https://me:secret@example.com/", "", "more than a place"),
        ("https://example.com/#x", "", "more than a place"),
        ("https://example.com/", 'script = "server.py"', "not both"),
        *(
            (f"http://{host}/", 'secrets = ["KEY"]', "without encryption; use https (http is for")
            for host in (
                "example.com",
                "localhost.example.com",
                "127.0.0.1.example.com",
                "me.localhost",
                "0.0.0.0",
                "10.0.0.1",
                "128.0.0.1",
                "[::]",
                "[::ffff:127.0.0.1]",
                "[fe80::1]",
            )
        ),
        ("http://localhost@example.com/", 'secrets = ["KEY"]', "more than a place"),
        ("https://example.com/", 'secrets = ["KEY", "OTHER"]', "one secret"),
        ("http://2130706433/", "", "url"),
    ],
)
def test_an_address_that_cannot_be_used_is_said_without_a_try(tmp_path: Path, url: str, more: str, why: str) -> None:
    result = run(tmp_path, url, more=more)[0]
    assert result.status == "error"
    assert why in str(result.error)


def near(root: Path, url: str, policy: str) -> ExecutionResult:
    return run(root, url, allow=False, policy=policy)[0]


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_a_server_of_this_machine_is_reached_where_the_operator_opens_it(tmp_path: Path, name: str) -> None:
    """trust: whoever may write the operator's settings may name what runs on the machine; the policy still has to open it."""
    remote = Remote(True)
    url = remote.far.replace("far.test", name)
    port = urlsplit(url).port
    hosts, ranges = f'allowHosts = ["{name}:{port}"]\n', 'allowCidrs = ["127.0.0.1/32"]\n'
    closed = near(tmp_path, url, "")
    assert (closed.status, remote.asked) == ("error", [])
    assert "policy.allowHosts" in closed.permissions.denied[0].reason
    assert (near(tmp_path, url, hosts).status, remote.asked) == ("error", [])
    assert near(tmp_path, url, hosts + ranges).status == "success"


KEY = '[secrets]\nKEY = { file = "key" }\n[policy.secrets]\n"mcp-server:far" = ["KEY"]\n'


def keyed(root: Path, url: str, policy: str) -> ExecutionResult:
    """A call of a server that gets a token."""
    (root / "key").write_text("key-of-this-machine")
    (root / "key").chmod(0o600)
    place = urlsplit(url)
    hosts = f'allowHosts = ["{place.hostname}:{place.port}"]\nallowCidrs = ["127.0.0.1/32"]\n'
    return run(root, url, allow=False, policy=hosts + policy + KEY, more='secrets = ["KEY"]')[0]


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_a_token_goes_to_a_server_of_this_machine_without_encryption(remote: Remote, tmp_path: Path, name: str) -> None:
    """issue 18: as RFC 8252 has it, loopback alone needs no TLS; a redirect is not followed there either."""
    others = [Remote(True), Remote(True)]
    url = remote.far.replace("far.test", name)
    assert keyed(tmp_path, url, "").status == "success"
    assert {headers["authorization"] for _, headers, _ in remote.asked} == {"Bearer key-of-this-machine"}
    places = [others[0].url, others[1].far, url.replace("http:", "https:")]  # another port, host, scheme
    for place in places:
        remote.answer = lambda at, _number, _params, to=place: at.say(307, b"", Location=to) or True
        told = keyed(tmp_path, url, 'pin = { "far.test" = "127.0.0.1" }\n')
        assert f"redirects to '{place}'" in str(told.error)
    assert [other.asked for other in others] == [[], []]


def test_a_name_for_this_machine_that_leads_elsewhere_gets_no_token(tmp_path: Path) -> None:
    """issue 18: whatever a resolver, or a pin, says of `localhost`, what is sent there without encryption stays here."""
    remote = Remote(True)
    url = remote.far.replace("far.test", "localhost")
    told = keyed(tmp_path, url, 'pin = { "localhost" = "192.0.2.7" }\n')
    assert told.status == "error"
    assert "leads away from this machine" in str(told.error)
    assert remote.asked == []


def test_a_folder_nobody_trusted_names_no_server_of_this_machine(tmp_path: Path, untrusted: None) -> None:
    """trust: servers and what the policy opens are the operator's; a folder's own are not in force."""
    remote = Remote(True)
    url = remote.far.replace("far.test", "localhost")
    policy = f'allowHosts = ["localhost:{urlsplit(url).port}"]\nallowCidrs = ["127.0.0.1/32"]'
    assert near(tmp_path, url, policy).status != "success"
    assert remote.asked == []


def test_a_tool_that_names_loopback_is_told_that_it_is_its_own(tmp_path: Path) -> None:
    """What another server asks for by allowHosts stays the sandbox's own."""
    remote = Remote(True)
    port = urlsplit(remote.far).port
    denied = run(tmp_path, remote.far, more=f'allowHosts = ["localhost:{port}"]')[0].permissions.denied
    assert "the sandbox itself" in denied[0].reason
