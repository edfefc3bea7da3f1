"""A runtime with an MCP server, and calls of its tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tamis.protocols.contract import ExecutionResult
from tamis.server.runtime.calls.model import CallContext, CallRequest
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.runtime import Runtime

SERVER = Path(__file__).with_name("mcp_server.py")


TOOLS = (
    "echo",
    "add",
    "fail",
    "picture",
    "album",
    "slow",
    "exit",
    "env",
    "write",
    "count",
    "long",
    "ask",
    "wait",
    "nan",
    "question",
    "gone",
)


def make(root: Path, how: str = "", *, settings: str = "", more: str = "") -> Runtime:
    folder = root / "servers"
    folder.mkdir()
    (folder / "server.py").write_text(SERVER.read_text("utf-8"), "utf-8")
    words = json.dumps([how]) if how else "[]"
    if "startMs" not in more:
        more += "\nstartMs = 600000"
    (root / "tamis.toml").write_text(
        f'{settings}\n[mcpServers.test]\nfolder = "servers"\nscript = "server.py"\nargs = {words}\n{more}\n', "utf-8"
    )
    for name in TOOLS:
        manifest = {
            "toolId": f"mcp:{name}",
            "displayName": name,
            "description": f"The tool {name} of a small server, for tests of MCP.",
            "version": "1.0.0",
            "handler": {"type": "mcp", "server": "test", "tool": name},
        }
        (root / f"{name}.tool.json").write_text(json.dumps(manifest), "utf-8")
    return Runtime(root)


async def call(around: CallContext, name: str, **args: Any) -> ExecutionResult:
    timeout = args.pop("timeout_ms", None)
    return await execute(CallRequest(call_id=f"c-{name}", name=f"mcp:{name}", args=args, timeout_ms=timeout), around)


def run(runtime: Runtime, work: Callable[[CallContext], Awaitable[Any]], **around: Any) -> Any:
    async def all_of_it() -> Any:
        try:
            return await work(runtime.call_context(**around))
        finally:
            await runtime.close()

    return asyncio.run(all_of_it())
