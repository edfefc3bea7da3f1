"""`tamis mcp --http` as a process, and raw requests to it."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.mcp.raw_client import HANDSHAKE, MODERN, meta

TOKEN = "a-token-of-the-tests-0123456789"
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


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
    """One process."""

    def __init__(self, root: Path, *words: str, env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tamis.server.cli.main",
                "mcp",
                "--root",
                str(root),
                "--http",
                "127.0.0.1:0",
                *words,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | ({"TAMIS_MCP_TOKEN": TOKEN} if env is None else env),
        )
        self.errors: list[str] = []
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.errors.append(line)
            found = re.search(r"http://127\.0\.0\.1:(\d+)/mcp", line)
            if found is not None:
                self.port = int(found[1])
                break
        else:
            raise AssertionError("".join(self.errors))
        threading.Thread(target=lambda: self.errors.extend(self.process.stderr or ()), daemon=True).start()

    def __enter__(self) -> HttpServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> int:
        """Ends it as a service manager would; its exit code."""
        self.process.terminate()
        try:
            return self.process.wait(20)
        finally:
            self.process.kill()

    def send(
        self, body: object = None, headers: dict[str, str] | None = None, method: str = "POST", path: str = "/mcp"
    ) -> Answer:
        """One request; a header that is empty is left out."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
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
