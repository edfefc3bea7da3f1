"""Allowed hosts reach the network through the egress proxy only; without them there is none."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sandbox import support

ASK = """
import socket, sys
s = socket.create_connection(("127.0.0.1", 3128))
s.sendall(f"GET {sys.argv[1]} HTTP/1.1\\r\\nHost: {sys.argv[1].split('/')[2]}\\r\\nConnection: close\\r\\n\\r\\n".encode())
answer = b""
while piece := s.recv(65536):
    answer += piece
print(answer.split(b"\\r\\n")[0].split()[1].decode(), answer.rsplit(b"\\r\\n\\r\\n", 1)[-1].decode())
"""


class _Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_: object) -> None:  # type: ignore[override]
        pass


@pytest.fixture
def port() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Hello) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def test_allowed_host_answers_through_the_proxy(tmp_path: Path, port: int) -> None:
    outcome = support.run_source(
        tmp_path, ASK, args=(f"http://localhost:{port}/",), hosts=(f"localhost:{port}",), allow_cidrs=("127.0.0.0/8",)
    )
    assert (outcome.kind, outcome.stdout) == ("ok", b"200 hello\n"), outcome


def test_other_host_is_refused_and_named(tmp_path: Path, port: int) -> None:
    outcome = support.run_source(
        tmp_path, ASK + "sys.exit(1)", args=(f"http://localhost:{port}/",), hosts=("example.org",)
    )
    assert outcome.stdout.startswith(b"403"), outcome
    assert outcome.denied_hosts == (f"localhost:{port}",)
    assert (outcome.kind, outcome.error_type) == ("error", "SecurityError")


def test_not_public_address_is_refused_without_the_operators_range(tmp_path: Path, port: int) -> None:
    outcome = support.run_source(tmp_path, ASK, args=(f"http://localhost:{port}/",), hosts=(f"localhost:{port}",))
    assert outcome.stdout.startswith(b"403"), outcome


def test_direct_connection_stays_impossible_with_allowed_hosts(tmp_path: Path, port: int) -> None:
    source = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 2)"
    outcome = support.run_source(
        tmp_path, source, args=(str(port),), hosts=(f"localhost:{port}",), allow_cidrs=("127.0.0.0/8",)
    )
    assert outcome.kind == "error" and b"refused" in outcome.stderr.lower(), outcome


def test_bad_rule_is_refused_before_anything_runs(tmp_path: Path) -> None:
    outcome = support.run_source(tmp_path, "print(1)", hosts=("http://x/*",))
    assert (outcome.kind, outcome.stdout) == ("refused", b""), outcome


def test_no_listener_channel_is_left_for_the_script(tmp_path: Path) -> None:
    outcome = support.run_source(
        tmp_path, "import os; print(sorted(os.listdir('/proc/self/fd')))", hosts=("example.org",)
    )
    assert outcome.stdout == b"['0', '1', '2', '3']\n", outcome


def test_without_hosts_nothing_listens(tmp_path: Path) -> None:
    outcome = support.run_source(tmp_path, "import socket; socket.create_connection(('127.0.0.1', 3128), 2)")
    assert outcome.kind == "error", outcome
