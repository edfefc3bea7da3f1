"""A tool calls an HTTP service with a key that stands in no argument, log, audit line, transcript, store file or debug log, and one whose
key only the proxy knows (ruling 60)."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import ssl
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tamis.protocols.contract import ExecutionResult
from tamis.sandbox.model import AddedHeader, Refusal
from tamis.sandbox.network import egress
from tamis.sandbox.network.egress_hosts import Added, check_header, with_headers
from tests.daemon import answers_of
from tests.runtime.run_tool import error_of, run_tool
from tests.sample_tools import action, make_tool
from tests.sandbox.network_servers import certificate

KEY = "wk-3f9a+77/Zq=sunny"


class _Weather(http.server.BaseHTTPRequestHandler):
    """Answers with the key that it was asked with, which no service should do."""

    def do_GET(self) -> None:
        server: Any = self.server
        server.seen.append([(name.lower(), value) for name, value in self.headers.items()])
        key = self.headers.get("X-Api-Key", "")
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", f"http://other.test:{server.server_port}/")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = json.dumps({"sun": key == KEY, "youSent": key}).encode()
        self.send_response(200 if key == KEY else 401)
        self.send_header("X-Echo", key)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: Any) -> None:
        pass


@contextlib.contextmanager
def weather(certificate_file: Path | None = None) -> Iterator[tuple[int, list[Any]]]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Weather) as server:
        server.seen = []  # type: ignore[attr-defined]
        if certificate_file is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate_file)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        try:
            yield server.server_port, server.seen  # type: ignore[attr-defined]
        finally:
            server.shutdown()


def settings_of(port: int, **policy: Any) -> dict[str, Any]:
    return {
        "secrets": {"WEATHER_KEY": {"env": "OPERATORS_WEATHER"}},
        "policy": {
            "allowHosts": ["api.test:*", "other.test:*"],
            "allowCidrs": ["127.0.0.0/8"],
            "pin": {"api.test": "127.0.0.1", "other.test": "127.0.0.1"},
            "secrets": {"weather:*": ["WEATHER_KEY"]},
            **policy,
        },
    }


def tool(root: Path, port: int, *, path: str = "/", secrets: bool = True, **fields: Any) -> None:
    script = (
        "import json, os, sys, urllib.request, urllib.error\n"
        "key = os.environ.get('WEATHER_KEY', 'forged')\n"
        f"request = urllib.request.Request('http://api.test:{port}{path}', headers={{'x-api-key': key}})\n"
        "try:\n    answer = urllib.request.urlopen(request)\nexcept urllib.error.HTTPError as error:\n    answer = error\n"
        "body = answer.read().decode()\nprint('asked with', key, 'and got', body, file=sys.stderr)\n"
        "print(json.dumps({'status': answer.status, 'body': body, 'known': 'WEATHER_KEY' in os.environ}))"
    )
    context: dict[str, Any] = {"networkAccess": {"allowHosts": [f"api.test:{port}", f"other.test:{port}"]}}
    make_tool(
        root,
        "weather:now",
        script,
        securityContext=context | ({"secrets": ["WEATHER_KEY"]} if secrets else {}),
        **fields,
    )


def hosts_of(port: int, **more: Any) -> dict[str, Any]:
    return {f"api.test:{port}": {"header": "X-Api-Key", "secret": "WEATHER_KEY", **more}}


def files_of(folder: Path) -> Iterator[tuple[Path, bytes]]:
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            yield path, path.read_bytes()


def test_a_key_stands_nowhere_but_in_the_request(tmp_path: Path) -> None:
    root, state = tmp_path / "root", tmp_path / "state"
    root.mkdir()
    with weather() as (port, seen):
        tool(root, port)
        tool_id, text = "weather:now", action("weather:now")
        options = {"settings": {**settings_of(port), "logLevel": "debug"}, "trusted": True}
        capabilities = {"experimental": {"tamis": {"output": True, "events": True}}}
        requests = [
            {"method": "initialize", "params": {"capabilities": capabilities, "initializationOptions": options}},
            {
                "method": "tool/execute",
                "params": {"toolId": tool_id, "args": {}, "idempotencyKey": "k1", "output": "stream"},
            },
            {"method": "tool/executeText", "params": {"text": text, "context": {"sessionId": "s"}}},
            {
                "method": "agent/step",
                "params": {"text": action(tool_id), "sessionId": "s", "config": {"enabled": True}},
            },
            {"method": "server/metrics", "params": {}},
            {"method": "server/health", "params": {}},
        ]
        numbered = [{"jsonrpc": "2.0", "id": number, **one} for number, one in enumerate(requests)]
        env = {**os.environ, "TAMIS_STATE_DIR": str(state), "OPERATORS_WEATHER": KEY}
        command = [str(Path(sys.executable).with_name("tamis")), "rpc", "--root", str(root)]
        answers, said = answers_of(command, numbered, env)
    output = answers[1]["result"]["output"]
    assert (output["status"], output["known"]) == (200, True), answers[1]
    assert json.loads(output["body"])["sun"] is True
    assert [dict(one)["x-api-key"] for one in seen] == [KEY] * 3, json.dumps(answers[3])
    assert answers[2]["result"]["results"][0]["status"] == "success"
    # everything that left: answers, the debug log, the audit log, the store and whatever else stands in the state folder
    assert "step 4" in said
    told = [("answers", json.dumps(answers, ensure_ascii=False).encode()), ("log", said.encode())]
    kept = list(files_of(state))
    assert any(path.name == "audit.jsonl" for path, _ in kept)
    for place, data in (*told, *kept, *files_of(root)):
        for form in (KEY, KEY.upper(), "wk-3f9a%2B77", KEY.encode().hex()):
            assert form.encode() not in data, place


def test_the_proxy_adds_a_key_that_the_script_never_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPERATORS_WEATHER", KEY)
    with weather() as (port, seen):
        for secrets in (True, False):
            tool(tmp_path, port, secrets=secrets)
            result = run_tool(tmp_path, "weather:now", {}, settings=settings_of(port, hosts=hosts_of(port)))
            assert result.status == "success", result
            assert (result.output["status"], result.output["known"]) == (200, False)
            assert KEY not in json.dumps([result.output, result.logs]) + result.observation
            assert result.permissions.granted.secrets == ["WEATHER_KEY"]
    # in the place of the script's own header, and once
    assert [[value for name, value in one if name == "x-api-key"] for one in seen] == [[KEY], [KEY]]


def test_a_header_is_not_added_for_another_tool_host_or_redirect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPERATORS_WEATHER", KEY)
    with weather() as (port, seen):
        tool(tmp_path, port, path="/moved", secrets=False)
        moved = run_tool(tmp_path, "weather:now", {}, settings=settings_of(port, hosts=hosts_of(port)))
        assert moved.output["status"] == 401
        assert [("x-api-key", KEY) in one for one in seen] == [True, False]
        tool(tmp_path, port, secrets=False)
        for policy in ({"hosts": hosts_of(port), "secrets": {}}, {"hosts": hosts_of(port, tools=["other:*"])}):
            refused = run_tool(tmp_path, "weather:now", {}, settings=settings_of(port, **policy))
            assert refused.output["status"] == 401
        assert not any(("x-api-key", KEY) in one for one in seen[2:])


def test_the_proxy_speaks_tls_to_the_host_where_the_operator_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPERATORS_WEATHER", KEY)
    authority, leaf = certificate(tmp_path)
    settings: Any = None
    with weather(leaf) as (port, seen):
        tool(tmp_path, port)
        settings = settings_of(port, hosts=hosts_of(port, scheme="https"))
        results: list[ExecutionResult] = []
        for trusted in (True, False):
            if trusted:
                monkeypatch.setenv("SSL_CERT_FILE", str(authority))
            else:
                monkeypatch.delenv("SSL_CERT_FILE")
            egress._tls.cache_clear()  # pyright: ignore[reportPrivateUsage]
            results.append(run_tool(tmp_path, "weather:now", {}, settings=settings))
    egress._tls.cache_clear()  # pyright: ignore[reportPrivateUsage]
    assert results[0].output["status"] == 200, results[0]
    # a certificate that nobody vouches for gets no key
    assert results[1].output["status"] == 502
    assert len(seen) == 1


def test_a_key_with_a_line_break_makes_no_second_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPERATORS_WEATHER", "key\r\nX-Evil: 1")
    with weather() as (port, seen):
        tool(tmp_path, port, secrets=False)
        result = run_tool(tmp_path, "weather:now", {}, settings=settings_of(port, hosts=hosts_of(port)))
    assert result.status == "error"
    assert "line break" in error_of(result)["message"]
    assert seen == []


@pytest.mark.parametrize("tunnel", [False, True])
def test_no_method_has_the_header_sent_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tunnel: bool) -> None:
    monkeypatch.setenv("OPERATORS_WEATHER", KEY)
    with weather() as (port, seen):
        target = "/" if tunnel else f"http://api.test:{port}/"
        words = [f"CONNECT api.test:{port} HTTP/1.1\r\n\r\n"] if tunnel else []
        words.append(f"TRACE {target} HTTP/1.1\r\nHost: api.test:{port}\r\n\r\n")
        script = (
            "import json, socket\nend = socket.create_connection(('127.0.0.1', 3128))\n"
            f"for word in {words!r}:\n    end.sendall(word.encode())\n    answer = end.recv(1000).decode()\n"
            "print(json.dumps(answer.split('\\r\\n')[0]))"
        )
        context = {"networkAccess": {"allowHosts": [f"api.test:{port}"]}}
        make_tool(tmp_path, "weather:now", script, securityContext=context)
        result = run_tool(tmp_path, "weather:now", {}, settings=settings_of(port, hosts=hosts_of(port)))
    assert "TRACE has a server send back" in repr(result), result
    assert seen == []


@pytest.mark.parametrize(
    "header",
    [
        AddedHeader("api.test", "Host", "x"),
        AddedHeader("api.test", "Content-Length", "1"),
        AddedHeader("api.test", "X Y", "1"),
        AddedHeader("api.test", "", "1"),
        AddedHeader("*", "X", "1"),
        AddedHeader("http://api.test", "X", "1"),
        AddedHeader("api.test", "X", "a\nb"),
        AddedHeader("api.test", "X", "a\0b"),
    ],
)
def test_headers_that_frame_a_request_or_break_it_are_refused(header: AddedHeader) -> None:
    with pytest.raises(Refusal) as refused:
        check_header(header)
    assert header.value not in refused.value.message or len(header.value) < 3


def test_every_spelling_of_the_scripts_own_header_is_replaced() -> None:
    head = b"GET / HTTP/1.1\r\nHost: api.test\r\nx-API-key: a\r\nX_Api_Key: b\r\nOther: c\r\nConnection: close\r\n\r\n"
    made = with_headers(head, [AddedHeader("api.test", "X-Api-Key", KEY)])
    assert made == (
        b"GET / HTTP/1.1\r\nHost: api.test\r\nX-Api-Key: " + KEY.encode() + b"\r\nOther: c\r\nConnection: close\r\n\r\n"
    )


def test_a_host_with_a_port_is_that_port_alone() -> None:
    added = Added.parse([AddedHeader("api.test:8080", "A", "1"), AddedHeader("*.api.test", "B", "2")])
    assert [one.name for one in added.of("api.test", 8080)] == ["A"]
    assert [one.name for one in added.of("api.test", 80)] == []
    assert [one.name for one in added.of("v1.api.test", 9000)] == ["B"]
    assert added.of("other.example", 80) == []


def test_nothing_that_holds_a_value_shows_it() -> None:
    from tamis.sandbox.model import SecretValue
    from tamis.server.runtime.policy.secret_values import Value

    held = [SecretValue("A", KEY), AddedHeader("h", "n", KEY), Value(KEY, (KEY,))]
    assert KEY not in repr(held) + str(held)
