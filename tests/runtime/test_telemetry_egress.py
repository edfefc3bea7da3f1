"""Telemetry goes where the operator's policy lets it, and nowhere else (trust 4)."""

from __future__ import annotations

import http.server
import threading
from pathlib import Path

import pytest

from tamis.server.runtime.observe import tracing
from tamis.server.runtime.runtime import Runtime


@pytest.mark.parametrize(
    "endpoint", ["http://10.0.0.1:4318", "http://169.254.169.254", "ftp://x", "http://collector.example"]
)
def test_a_collector_that_the_policy_does_not_open_is_sent_nothing(
    tmp_path: Path, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "open_telemetry", lambda *_: pytest.fail("it was opened"))
    runtime = Runtime(tmp_path, {"telemetry": {"traces": "otlp", "endpoint": endpoint}})
    said: list[str] = []
    monkeypatch.setattr(runtime.parts.log, "warn", said.append)
    assert runtime.parts.telemetry is None
    assert said
    assert said[0].startswith("telemetry.endpoint ")


def test_a_collector_cannot_send_the_spans_elsewhere() -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra otel is not installed")
    paths: list[str] = []

    class Redirecting(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            paths.append(self.path)
            self.send_response(307)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Redirecting) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        answer = tracing._straight_session().post(f"http://127.0.0.1:{server.server_port}/v1/traces", data=b"x")
        server.shutdown()
    assert (answer.status_code, paths) == (307, ["/v1/traces"])
