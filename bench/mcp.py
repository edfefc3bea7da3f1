"""`tamis mcp` as a host meets it: from the start to the first list of tools, a list of a thousand, a call; beside a server of the official SDK."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
LIST: dict[str, Any] = {"id": 2, "method": "tools/list"}
SDK = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("bench")
@server.tool(name="bench_echo")
def echo(text: str) -> dict[str, str]:
    "Gives its text back."
    return {"text": text}
server.run("stdio")
"""
BARE = "import asyncio, msgspec, sys\nfor line in sys.stdin:\n    if '\"id\"' in line:\n        print(line, end='', flush=True)"


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


def bench_mcp() -> str:
    """Connecting, listing and calling."""
    rows: list[tuple[str, Sample, Sample, str]] = []
    with tempfile.TemporaryDirectory() as name:
        folder, many = Path(name, "one"), Path(name, "many")
        make_tool(folder, "bench:echo")
        for number in range(EFFORT.size(1_000)):
            make_tool(many, f"bench:t{number:04}")
        for root in (folder, many):
            (root / "tamis.toml").write_text("")
        ours = [str(Path(sys.executable).parent / "tamis"), "mcp", "--root"]
        found = in_turn(
            {
                "ours": connect([*ours, str(folder)]),
                "SDK": connect([sys.executable, "-c", SDK]),
                "bare": connect([sys.executable, "-c", BARE]),
            },
            rounds=9,
            at_least=0,
        )
        rows.append(("connect: start, handshake, first `tools/list`", found["ours"], found["SDK"], "≤ 0.1"))
        rows.append(("the same beside Python that imports asyncio and msgspec", found["ours"], found["bare"], ""))
        listing, calling, other = (
            Server([*ours, str(many)]),
            Server([*ours, str(folder)]),
            Server([sys.executable, "-c", SDK]),
        )
        call = {"name": "bench_echo", "arguments": {"text": "x"}}

        def pages() -> None:
            cursor: dict[str, Any] = {}
            while cursor is not None:
                page = listing.ask("tools/list", cursor)["result"]
                cursor = {"cursor": page["nextCursor"]} if "nextCursor" in page else None  # type: ignore[assignment]

        found = in_turn(
            {
                "pages": pages,
                "script": lambda: calling.ask("tools/call", call),
                "ping": lambda: calling.ask("ping", {}),
                "SDK": lambda: other.ask("tools/call", call),
                "SDK list": lambda: other.ask("tools/list", {}),
            },
            rounds=9,
            at_least=0.02,
        )
        rows.append(("1,000 tools in pages (bar: 50 ms)", found["pages"], found["SDK list"], ""))
        rows.append(("a call of a script in its sandbox", found["script"], found["SDK"], ""))
        rows.append(("`ping`", found["ping"], found["SDK"], ""))
        for server in (listing, calling, other):
            server.end()
    return table("MCP (beside a server of the official SDK with the same tool, which runs it in its own process)", rows)
