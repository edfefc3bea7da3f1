"""web:fetch behind a proxy that reached nothing: the message tells what failed, and not that the network is closed."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples.support import refusal, run, tool


class Failing(http.server.BaseHTTPRequestHandler):
    def refuse(self) -> None:
        status = 403 if "forbidden" in self.path else 502
        self.send_response_only(status, "the name was not found" if status == 502 else "not allowed")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_CONNECT = refuse  # noqa: N815 - names of the base class


@pytest.fixture
def failing_proxy() -> Iterator[dict[str, str]]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Failing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    with contextlib.closing(server.socket):
        yield {"http_proxy": address, "https_proxy": address}
        server.shutdown()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_failure_behind_an_open_host_is_not_called_a_closed_network(
    failing_proxy: dict[str, str], tmp_path: Path, scheme: str
) -> None:
    request = json.dumps({"url": f"{scheme}://example.com/"})
    said = refusal(run(tool("web-fetch"), tmp_path, request, failing_proxy))
    assert "502 the name was not found" in said
    assert "network is closed" not in said
    assert "check the host's name" in said


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_refusal_of_the_proxy_says_how_the_host_is_opened(
    failing_proxy: dict[str, str], tmp_path: Path, scheme: str
) -> None:
    request = json.dumps({"url": f"{scheme}://forbidden.example/"})
    assert "[policy] allowHosts in tamis.toml" in refusal(run(tool("web-fetch"), tmp_path, request, failing_proxy))
