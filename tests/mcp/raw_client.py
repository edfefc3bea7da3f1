"""A client of `tamis mcp` that sends what it is told, and keeps every message that came: by id, and in order."""

from __future__ import annotations

import json
import os
import queue
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tests.rpc.inside import mcp_server

MODERN = "2026-07-28"
NAMESPACE = "io.modelcontextprotocol/"
HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
FORMS = {"elicitation": {}}


def meta(version: str = MODERN, able: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """The `_meta` of a modern request."""
    told = {f"{NAMESPACE}protocolVersion": version, f"{NAMESPACE}clientCapabilities": able or {}}
    return told | {name if name == "progressToken" else f"{NAMESPACE}{name}": value for name, value in more.items()}


def started(root: Path | None, *words: str, cwd: Path | None = None) -> subprocess.Popen[bytes]:
    """`tamis mcp` as a process."""
    given = () if root is None else ("--root", str(root))
    return subprocess.Popen(
        [sys.executable, "-m", "tamis.server.cli.main", "mcp", *given, *words],
        cwd=cwd,
        env={name: value for name, value in os.environ.items() if root is not None or name != "TAMIS_TRUST"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


class RawClient:
    """One server and all that it said."""

    def __init__(self, root: Path | None, process: subprocess.Popen[bytes] | None = None) -> None:
        """``process``: a server that was started as one; else it runs in this process."""
        self.process = process or mcp_server(root)
        self.seen: list[dict[str, Any]] = []
        self.lines: queue.Queue[bytes | None] = queue.Queue()
        self.errors: list[str] = []
        self._number = 0
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._listen, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.errors.append(line.decode("utf-8", "replace"))

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> int:
        """Closes the server's input; its exit code."""
        assert self.process.stdin is not None
        if not self.process.stdin.closed:
            self.process.stdin.close()
        return self.process.wait()

    def send(self, message: object) -> None:
        """Sends bytes as they are, anything else as a line of JSON."""
        assert self.process.stdin is not None
        self.process.stdin.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def next(self) -> dict[str, Any]:
        """The next message of the server."""
        line = self.lines.get()
        assert line is not None, f"the server has ended: {''.join(self.errors)}"
        message = json.loads(line)
        self.seen.append(message)
        return message

    def until(self, identity: object) -> dict[str, Any]:
        """The answer to a request; what else comes meanwhile is in `seen`."""
        while True:
            message = self.next()
            if message.get("id") == identity and "method" not in message:
                return message

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The answer to a request."""
        self._number += 1
        self.send({"jsonrpc": "2.0", "id": f"r{self._number}", "method": method, "params": params or {}})
        return self.until(f"r{self._number}")

    def modern(self, method: str, params: dict[str, Any] | None = None, **told: Any) -> dict[str, Any]:
        """The answer to a request of the stateless revision; `told` is for `meta`."""
        return self.ask(method, {**(params or {}), "_meta": meta(**told)})

    def call(self, tool: str, arguments: dict[str, Any] | None = None, **told: Any) -> dict[str, Any]:
        """The result of a call of the stateless revision."""
        return self.modern("tools/call", {"name": tool, "arguments": arguments or {}}, **told)["result"]

    def shake(self, version: str = HANDSHAKE[0], able: dict[str, Any] | None = None) -> dict[str, Any]:
        """The result of the handshake of an earlier revision."""
        told = {"protocolVersion": version, "capabilities": able or {}, "clientInfo": {"name": "raw", "version": "1"}}
        result = self.ask("initialize", told)["result"]
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    def later(self, method: str) -> list[dict[str, Any]]:
        """The params of all notifications of that method so far."""
        return [one["params"] for one in self.seen if one.get("method") == method]


def fuzzed_messages(seed: int, count: int) -> list[tuple[int, bytes]]:
    """Requests with ids of their own that are wrong in many ways, none of which runs a script."""
    rng = random.Random(seed)
    junk: list[Any] = [None, True, 7, 1.5, "x", [], {}, [1], {"a": []}, "\ud800", "x" * 300, -1]
    methods = ["tools/list", "tools/call", "server/discover", "ping", "initialize", "logging/setLevel", "no/such", ""]
    keys = ["name", "arguments", "cursor", "requestState", "inputResponses", "level", "protocolVersion", "_meta"]
    found: list[tuple[int, bytes]] = []
    for number in range(count):
        params: Any = {key: rng.choice(junk) for key in rng.sample(keys, rng.randrange(5))}
        if rng.random() < 0.5:
            told: dict[str, Any] = meta()
            if rng.random() < 0.3:
                told[rng.choice(list(told))] = rng.choice(junk)
            params["_meta"] = told
        if rng.random() < 0.1:
            params = rng.choice(junk)
        message = {"jsonrpc": "2.0", "id": number, "method": rng.choice(methods), "params": params}
        found.append((number, json.dumps(message).encode() + b"\n"))
    return found
