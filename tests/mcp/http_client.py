"""`tamis mcp --http`, and raw requests to it."""

from __future__ import annotations

import http.client
import io
import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.mcp.raw_client import HANDSHAKE, MODERN, meta
from tests.rpc.inside import Inside

TOKEN = "a-token-of-the-tests-0123456789"
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def _process(
    root: Path, words: Sequence[str], env: dict[str, str], errors: list[str]
) -> tuple[subprocess.Popen[str], int]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tamis.server.cli.main", "mcp", "--root", str(root), "--http", "127.0.0.1:0", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | env,
    )
    assert process.stderr is not None
    for line in process.stderr:
        errors.append(line)
        found = re.search(r"http://127\.0\.0\.1:(\d+)/mcp", line)
        if found is not None:
            return process, int(found[1])
    raise AssertionError("".join(errors))


def _inside(root: Path) -> tuple[Inside, int]:
    from tamis.server.mcp import http
    from tamis.server.mcp.http_access import Access

    place = socket.create_server(("127.0.0.1", 0))
    ready = threading.Event()
    access = Access(token=TOKEN.encode(), names=frozenset(), is_local=True)
    port: int = place.getsockname()[1]
    server = Inside(lambda: http._serve(root, place, access, ready.set))  # pyright: ignore[reportPrivateUsage]
    ready.wait()
    return server, port


class Answer:
    """Status, headers and messages of one answer; events are read as they come."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self.connection = connection
        self.response = connection.getresponse()
        self.status = self.response.status
        self.headers = {name.lower(): value for name, value in self.response.getheaders()}
        self.is_stream = self.headers.get("content-type") == "text/event-stream"
        self.ids: list[str] = []

    def events(self) -> Iterator[dict[str, Any]]:
        for line in self.response:
            if line.startswith(b"id: "):
                self.ids.append(line[4:].strip().decode())
            elif line.startswith(b"data: ") and line[6:].strip():
                yield json.loads(line[6:])

    def messages(self) -> list[dict[str, Any]]:
        if self.is_stream:
            return list(self.events())
        body = self.response.read()
        return [json.loads(body)] if body else []

    def last(self) -> dict[str, Any]:
        return self.messages()[-1]

    def close(self) -> None:
        self.response.close()
        self.connection.close()


class HttpServer:
    """One server: a process where it gets words of the command line or an environment, else a thread of this process."""

    def __init__(self, root: Path, *words: str, env: dict[str, str] | None = None) -> None:
        self.errors: list[str] = []
        self.process: subprocess.Popen[str] | Inside
        if words or env is not None:
            self.process, self.port = _process(
                root, words, {"TAMIS_MCP_TOKEN": TOKEN} if env is None else env, self.errors
            )
            errors = self.process.stderr
        else:
            self.process, self.port = _inside(root)
            errors = io.TextIOWrapper(self.process.stderr, "utf-8")
        self._listening = threading.Thread(target=lambda: self.errors.extend(errors or ()), daemon=True)
        self._listening.start()

    def __enter__(self) -> HttpServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> int:
        """Ends it as a service manager would; its exit code."""
        self.process.terminate()
        code = self.process.wait()
        self._listening.join()
        return code

    def send(
        self, body: object = None, headers: dict[str, str] | None = None, method: str = "POST", path: str = "/mcp"
    ) -> Answer:
        """One request; a header that is empty is left out."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        given = {**JSON, "Authorization": f"Bearer {TOKEN}", **(headers or {})}
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection.request(method, path, data, {name: value for name, value in given.items() if value})
        return Answer(connection)

    def modern(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        identity: object = 1,
        **told: Any,
    ) -> Answer:
        """A request of the stateless revision."""
        asked = {**(params or {}), "_meta": meta(**told)}
        given = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        if method in NAMED:
            given["Mcp-Name"] = str(asked[NAMED[method]])
        message = {"jsonrpc": "2.0", "id": identity, "method": method, "params": asked}
        return self.send(message, {**given, **(headers or {})})

    def call(self, tool: str, arguments: dict[str, Any] | None = None, **told: Any) -> dict[str, Any]:
        """The result of a call of the stateless revision."""
        return self.modern("tools/call", {"name": tool, "arguments": arguments or {}}, **told).last()["result"]

    def session(self, version: str = HANDSHAKE[0], able: dict[str, Any] | None = None) -> HttpSession:
        """A session of an earlier revision."""
        return HttpSession(self, version, able)


class HttpSession:
    """A client of an earlier revision."""

    def __init__(self, server: HttpServer, version: str, able: dict[str, Any] | None) -> None:
        self.server = server
        told = {"protocolVersion": version, "capabilities": able or {}, "clientInfo": {"name": "raw", "version": "1"}}
        answer = server.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": told})
        self.name = answer.headers["mcp-session-id"]
        self.result = answer.last()["result"]
        self.headers = {"Mcp-Session-Id": self.name, "MCP-Protocol-Version": version}
        assert self.send({"jsonrpc": "2.0", "method": "notifications/initialized"}).status == 202

    def send(self, message: object = None, method: str = "POST", **headers: str) -> Answer:
        return self.server.send(
            message, {**self.headers, **{k.replace("_", "-"): v for k, v in headers.items()}}, method
        )

    def ask(self, method: str, params: dict[str, Any] | None = None, identity: object = 1) -> Answer:
        return self.send({"jsonrpc": "2.0", "id": identity, "method": method, "params": params or {}})
