"""MCP servers over HTTP: reached from the sandbox, so that the policy decides; the token goes to the host that was named (mcp, Client)."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from tamis.protocols.contract import ExecutionResult
from tamis.server.runtime.calls.model import Question, Reply
from tamis.server.runtime.execution.approvals.replies import chosen
from tamis.server.runtime.settings.mcp_servers import BRIDGE
from tests.runtime import mcp_calls

NAMESPACE = "io.modelcontextprotocol/"
ECHO = {"name": "echo", "description": "Gives back.", "inputSchema": {"type": "object"}}


class Remote:
    """A server whose answers to `tools/call` a test chooses; it keeps what it was asked."""

    def __init__(self, modern: bool) -> None:
        self.modern = modern
        self.told = Queue[dict[str, Any]]()
        self.asked: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.answer: Callable[[BaseHTTPRequestHandler, Any, dict[str, Any]], bool] = lambda *_: False
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
            at.say(200, self.result(message, {"resultType": "complete", "supportedVersions": ["2026-07-28"]}))
        elif method == "initialize":
            told = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "r", "version": "1"}}
            at.say(200, self.result(message, told), Mcp_Session_Id="session-1")
        elif method == "tools/list":
            at.say(200, self.result(message, {"tools": [ECHO]}))
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


def run(
    root: Path,
    url: str,
    *,
    allow: bool = True,
    more: str = "",
    tops: str = "",
    times: int = 1,
    timeout_ms: int = 20_000,
    ask: Any = None,
) -> list[ExecutionResult]:
    cidrs = (
        'allowCidrs = ["127.0.0.0/8"]\nallowHosts = ["far.test:*"]\npin = { "far.test" = "127.0.0.1" }\n'
        if allow
        else ""
    )
    (root / "tamis.toml").write_text(f'[policy]\n{cidrs}\n[mcpServers.far]\nurl = "{url}"\n{more}\n')
    manifest = {
        "toolId": "mcp:echo",
        "displayName": "echo",
        "description": "Gives back what it was given, by a server that is far away.",
        "version": "1.0.0",
        "handler": {"type": "mcp", "server": "far", "tool": "echo"},
    }
    (root / "echo.tool.json").write_text(json.dumps(manifest))
    from tamis.server.runtime.runtime import Runtime

    runtime = Runtime(root)

    async def work(around: Any) -> list[ExecutionResult]:
        asking = around.having(elicits=ask is not None)
        return [await mcp_calls.call(asking, "echo", text="x", timeout_ms=timeout_ms) for _ in range(times)]

    return mcp_calls.run(runtime, work, ask=ask)


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
        content = [{"type": "text", "text": json.dumps(remote.told.get(timeout=10)["result"])}]
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
    began = time.monotonic()
    result = run(tmp_path, remote.far, timeout_ms=60_000)[0]
    assert (result.status, result.error.type if result.error else "") == ("error", "ServiceError")
    assert time.monotonic() - began < 30


def test_a_call_that_hangs_costs_the_next_one_nothing(tmp_path: Path) -> None:
    remote = Remote(True)
    hung: list[Any] = []

    def answer(_at: Any, number: Any, _params: Any) -> bool:
        if hung:
            return False
        hung.append(number)
        time.sleep(20)
        return True

    remote.answer = answer
    first, second = run(tmp_path, remote.far, times=2, timeout_ms=3_000)
    assert (first.status, second.status) == ("timeout", "success")


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
        ("http://example.com/", 'secrets = ["KEY"]', "without encryption"),
        ("https://example.com/", 'secrets = ["KEY", "OTHER"]', "one secret"),
        ("http://127.0.0.1:1/", "", "the sandbox itself"),
        ("http://localhost/", "", "the sandbox itself"),
        ("http://2130706433/", "", "url"),
    ],
)
def test_an_address_that_cannot_be_used_is_said_without_a_try(tmp_path: Path, url: str, more: str, why: str) -> None:
    result = run(tmp_path, url, more=more)[0]
    assert result.status == "error"
    assert why in str(result.error)
