"""`tamis mcp` as a host meets it: from the start to the first list of tools, a list of a thousand, a call, on stdio and over HTTP; beside a FastMCP server."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.lsp import anchor_command
from bench.measure import EFFORT, Sample, in_turn, table
from tests.sample_tools import make_tool

SHAKE: list[dict[str, Any]] = [
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
]
MODERN, PREFIX = "2026-07-28", "io.modelcontextprotocol/"
LIST: dict[str, Any] = {"id": 2, "method": "tools/list"}
FASTMCP = "fastmcp==4.1.2"
PEER = """
import sys
from fastmcp import FastMCP
server = FastMCP("bench")
@server.tool(name="bench_echo")
def echo(text: str) -> dict[str, str]:
    "Gives its text back."
    return {"text": text}
server.run("stdio", show_banner=False)
"""
ECHO = """
import asyncio, sys
from pathlib import Path
from tamis.server.mcp.server import Kept, McpServer, Method, begin

async def serve():
    server = McpServer(begin(Path(sys.argv[1])), Kept(listed=True))
    server.session.methods["bench/echo"] = Method(lambda request, params: params)
    return await server.session.serve()

asyncio.run(serve())
"""
BARE = "import asyncio, msgspec, sys\nfor line in sys.stdin:\n    if '\"id\"' in line:\n        print(line, end='', flush=True)"


def peer_command() -> list[str]:
    """A FastMCP server with one tool, installed once into the user's cache folder; needs the package index the first time.

    It is compiled, as ours is, also where ``PYTHONDONTWRITEBYTECODE`` kept pip from it: else each of its starts would be six times as long.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tamis-bench" / FASTMCP
    python = cache / "bin" / "python"
    if not (cache / "compiled").exists():
        shutil.rmtree(cache, ignore_errors=True)
        venv.create(cache, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", FASTMCP], check=True)
        subprocess.run([python, "-m", "compileall", "-q", cache / "lib"], stdout=subprocess.DEVNULL, check=False)
        (cache / "compiled").touch()
    return [str(python), "-c", PEER]


class Server:
    """A server that is asked one thing after another."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._number = 100
        self.send(*SHAKE)

    def send(self, *messages: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        lines = [json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n" for one in messages]
        self.process.stdin.write(b"".join(lines))
        self.process.stdin.flush()

    def until(self, identity: int) -> dict[str, Any]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == identity:
                return message
        raise AssertionError("the server has ended")

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        self.send({"id": self._number, "method": method, "params": params})
        return self.until(self._number)

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()


def connect(command: list[str]) -> Callable[[], None]:
    """From the start of the process to the first list of tools."""

    def run() -> None:
        server = Server(command)
        server.send(LIST)
        server.until(2)
        server.end()

    return run


def language_server(command: list[str]) -> Callable[[], None]:
    """From the start of a language server to its answer to ``initialize``."""

    def run() -> None:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert process.stdin is not None
        assert process.stdout is not None
        params = {"processId": None, "rootUri": None, "capabilities": {}}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode()
        process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        process.stdin.flush()
        size = 0
        while (line := process.stdout.readline().lower()).strip():
            size = int(line.removeprefix(b"content-length:")) if line.startswith(b"content-length:") else size
        process.stdout.read(size)
        process.kill()
        process.wait()

    return run


class Endpoint:
    """A server over HTTP: each request on a connection of its own, as clients of the stateless revision send them."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        line = next(line for line in self.process.stderr if "http://127.0.0.1:" in line)
        self.port = int(line.partition("http://127.0.0.1:")[2].partition("/")[0])
        # what it logs is read: a full pipe would hold it up
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        told = {f"{PREFIX}protocolVersion": MODERN, f"{PREFIX}clientCapabilities": {}}
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": told}}
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": method,
        }
        if "name" in params:
            headers["Mcp-Name"] = params["name"]
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("POST", "/mcp", json.dumps(message), headers)
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer

    def end(self) -> None:
        self.process.terminate()
        self.process.wait()


def paged(server: Server | Endpoint) -> Callable[[], None]:
    """All pages of a list."""

    def run() -> None:
        cursor: dict[str, Any] | None = {}
        while cursor is not None:
            page = server.ask("tools/list", cursor)["result"]
            cursor = {"cursor": page["nextCursor"]} if "nextCursor" in page else None

    return run


def bench_mcp(*, peers: bool = True) -> str:
    """Connecting, listing and calling. ``peers``: beside the others' servers, which have to be installed; else beside a bare one."""
    rows: list[tuple[str, Sample, Sample, str]] = []
    with tempfile.TemporaryDirectory() as name:
        folder, many = Path(name, "one"), Path(name, "many")
        make_tool(folder, "bench:echo")
        for number in range(EFFORT.size(1_000)):
            make_tool(many, f"bench:t{number:04}")
        (folder / "tamis.toml").write_text('builtin = ["system:get_current_time"]\n')
        (many / "tamis.toml").write_text("")
        ours = [str(Path(sys.executable).parent / "tamis"), "mcp", "--root"]
        bare = [sys.executable, "-c", BARE]
        peer = peer_command() if peers else bare
        editor = language_server(anchor_command()) if peers else connect(bare)
        found = in_turn(
            {
                "ours": connect([*ours, str(folder)]),
                "FastMCP": connect(peer),
                "VS Code's JSON server": editor,
                "bare": connect(bare),
            },
            rounds=15,
            at_least=0,
        )
        rows.append(("connect: start, handshake, first `tools/list`", found["ours"], found["FastMCP"], "≤ 0.1"))
        rows.append(("the same beside `initialize`", found["ours"], found["VS Code's JSON server"], "≤ 1"))
        rows.append(("the same beside Python that imports asyncio and msgspec", found["ours"], found["bare"], ""))
        listing, calling, other = Server([*ours, str(many)]), Server([*ours, str(folder)]), Server(peer)
        served = Server([sys.executable, "-c", ECHO, str(folder)])
        many_http, one_http = (Endpoint([*ours, str(root), "--http", "0", "--no-token"]) for root in (many, folder))
        call = {"name": "bench_echo", "arguments": {"text": "x"}}
        clock = {"name": "system_get_current_time", "arguments": {}}
        found = in_turn(
            {
                "pages": paged(listing),
                "pages over HTTP": paged(many_http),
                "script": lambda: calling.ask("tools/call", call),
                "script over HTTP": lambda: one_http.ask("tools/call", call),
                "service": lambda: served.ask("tools/call", clock),
                "service over HTTP": lambda: one_http.ask("tools/call", clock),
                "echo": lambda: served.ask("bench/echo", clock),
                "list over HTTP": lambda: one_http.ask("tools/list", {}),
                "FastMCP": lambda: other.ask("tools/call", call),
                "FastMCP's list": lambda: other.ask("tools/list", {}),
            },
            rounds=15,
            at_least=0.02,
        )
        rows.append(("1,000 tools in pages (bar: 50 ms)", found["pages"], found["FastMCP's list"], ""))
        rows.append(("the same over HTTP", found["pages over HTTP"], found["FastMCP's list"], ""))
        rows.append(("a call of a script in its sandbox (bar: 5 ms)", found["script"], found["FastMCP"], ""))
        rows.append(("the same over HTTP", found["script over HTTP"], found["list over HTTP"], ""))
        rows.append(("a call of a service that does next to nothing", found["service"], found["echo"], "≤ 2"))
        rows.append(("the same over HTTP", found["service over HTTP"], found["list over HTTP"], ""))
        for server in (listing, calling, other, served, many_http, one_http):
            server.end()
    text = table("MCP (beside a FastMCP server with the same tool, which runs it in its own process)", rows)
    return f"{text.rstrip()}\n\nLoad of the machine meanwhile (1, 5 minutes): {' and '.join(f'{load:.1f}' for load in os.getloadavg()[:2])}.\n"
