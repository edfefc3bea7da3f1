"""The operator's network settings reach the sandbox, and only they do: `policy.allowCidrs`, `policy.pin` (ruling 38)."""

from __future__ import annotations

import asyncio
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult
from tamis.server.runtime.calls.model import CallRequest
from tamis.server.runtime.doctor import examine
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.runtime import Runtime
from tests.sample_tools import make_tool

FETCH = """
import json, sys, urllib.request
with urllib.request.urlopen(json.load(sys.stdin)["text"]) as answer:
    print(json.dumps(answer.read().decode()))
"""


class _Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *words: Any) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Hello) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def fetch(root: Path, url: str, policy: dict[str, Any], asked: list[str], **context: Any) -> ExecutionResult:
    make_tool(root, "test:fetch", FETCH, securityContext={"networkAccess": {"allowHosts": asked, **context}})

    async def call() -> ExecutionResult:
        around = Runtime(root, {"policy": policy}).call_context()
        return await execute(CallRequest(call_id="c", name="test:fetch", args={"text": url}), around)

    return asyncio.run(call())


def test_a_pinned_name_is_reached_where_the_operator_says_it_is(tmp_path: Path, port: int) -> None:  # D17, ruling 38
    policy = {"allowHosts": ["*:*"], "allowCidrs": ["127.0.0.0/8"], "pin": {"api.test": "127.0.0.1"}}
    result = fetch(tmp_path, f"http://api.test:{port}/", policy, [f"api.test:{port}"])
    assert (result.status, result.output) == ("success", "hello"), result


def test_a_manifest_can_neither_pin_nor_open_a_range(tmp_path: Path, port: int) -> None:  # ruling 38
    result = fetch(
        tmp_path,
        f"http://api.test:{port}/",
        {"allowHosts": ["*:*"]},
        [f"api.test:{port}"],
        allowCidrs=["127.0.0.0/8"],
        pin={"api.test": "127.0.0.1"},
    )
    assert result.status == "error", result


def test_a_pin_that_cannot_be_read_lets_no_tool_out(tmp_path: Path, port: int) -> None:
    policy = {"allowHosts": ["*:*"], "allowCidrs": ["127.0.0.0/8"], "pin": {"api.test": "somewhere"}}
    result = fetch(tmp_path, f"http://api.test:{port}/", policy, [f"api.test:{port}"])
    assert result.status == "error"
    assert "pin 'api.test'" in result.observation and "IP address" in result.observation, result


@pytest.mark.parametrize(
    ("pin", "fault"),
    [
        ({"api.test": "somewhere"}, "not an IP address"),
        ({"api.test": "fe80::1%eth0"}, "not an IP address"),
        ({"http://x": "8.8.8.8"}, "pin 'http://x'"),
        ({"10.0.0.1": "8.8.8.8"}, "pin a name"),
        ({"api.test": "8.8.8.8", "API.test.": "9.9.9.9"}, "two addresses"),
        ({"api.test": "10.0.0.1"}, "allowCidrs"),
        ({"api.test": "169.254.169.254"}, "allowCidrs"),
    ],
)
def test_doctor_names_a_pin_that_opens_nothing(tmp_path: Path, pin: dict[str, str], fault: str) -> None:
    report = examine(Runtime(tmp_path, {"policy": {"pin": pin}}))
    said = [
        check["text"]
        for check in report["checks"]
        if check["text"].startswith("policy.pin: ") and check["state"] != "ok"
    ]
    assert len(said) == 1 and fault in said[0], report["checks"]


def test_doctor_is_content_with_pins_that_open_something(tmp_path: Path) -> None:
    policy = {"pin": {"a.test": "8.8.8.8", "b.test": "10.1.0.7"}, "allowCidrs": ["10.1.0.0/16"]}
    assert not any(
        "policy.pin" in check["text"] and check["state"] != "ok"
        for check in examine(Runtime(tmp_path, {"policy": policy}))["checks"]
    )


def test_a_refused_host_stands_in_the_errors_details(tmp_path: Path, port: int) -> None:  # S6, trap 26
    policy = {"allowHosts": ["*:*"], "allowCidrs": ["127.0.0.0/8"], "pin": {"api.test": "127.0.0.1"}}
    result = fetch(tmp_path, "https://evil.test/", policy, [f"api.test:{port}"])
    assert result.status == "error" and result.error is not UNSET, result
    assert result.error.type == "SecurityError"
    details: Any = result.error.details
    assert details.denied_hosts == ["evil.test:443"]
    assert "host evil.test is not allowed" in result.observation and "ask for 'evil.test'" in result.observation
