"""A host in this process for tests of services: what it is asked and told is noted, its methods are functions."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult
from tamis.server.runtime.calls.model import CallRequest
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.observe.trail import Caller
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.tools.host_services import Registration


class FakeHost:
    """Answers ``service/invoke`` with ``answer(service, method, args)``, which may be a coroutine function or raise."""

    def __init__(self, answer: Callable[..., Any] | None = None) -> None:
        self.answer = answer or (lambda *_: None)
        self.asked: list[tuple[str, Any]] = []
        self.told: list[tuple[str, Any]] = []

    async def ask(self, method: str, params: object) -> Any:
        """A request of the runtime."""
        given = msgspec.to_builtins(params)
        self.asked.append((method, given))
        result = self.answer(given["serviceName"], given["methodName"], given["args"])
        return await result if inspect.isawaitable(result) else result

    def tell(self, method: str, params: object) -> None:
        """A notification of the runtime."""
        self.told.append((method, msgspec.to_builtins(params)))

    def said(self, method: str) -> list[Any]:
        """The params of each notification of a name."""
        return [params for name, params in self.told if name == method]


def method(name: str, **fields: Any) -> dict[str, Any]:
    """Metadata of a method that agents may call and that takes one text."""
    parameters = {"type": "object", "properties": {"text": {"type": "string"}}}
    return {"name": name, "description": f"Does {name}.", "agentCallable": True, "parameters": parameters} | fields


class Served:
    """A runtime with a host. ``run`` calls a tool on a loop of its own, ``call`` within one."""

    def __init__(self, root: Path, answer: Callable[..., Any] | None = None, **settings: Any) -> None:
        self.host = FakeHost(answer)
        self.runtime = Runtime(root, settings)
        self.runtime.parts.host = self.host

    def register(self, service: str, *methods: Any) -> Registration:
        """Registers a service as the method of the RPC does."""
        _ = self.runtime.registry
        made = self.runtime.parts.host_services.register(service, methods)
        if made.changed:
            self.runtime.services_changed()
        return made

    async def call(self, tool_id: str, args: dict[str, Any] | None = None, **more: Any) -> ExecutionResult:
        """Calls a tool."""
        agent = more.pop("agent", "")
        context = self.runtime.call_context(
            cancelled=more.pop("cancelled", None), ask=more.pop("ask", None), caller=Caller("rpc", "", agent)
        )
        request: dict[str, Any] = {"call_id": "call-1", "name": tool_id, "args": args or {}, **more}
        return await execute(CallRequest(**request), context)

    def run(self, tool_id: str, args: dict[str, Any] | None = None, **more: Any) -> ExecutionResult:
        """Calls a tool, and closes what the runtime keeps."""

        async def work() -> ExecutionResult:
            try:
                return await self.call(tool_id, args, **more)
            finally:
                await self.runtime.close()

        return asyncio.run(work())


def error_of(result: ExecutionResult) -> dict[str, Any]:
    """The error of a result as plain data."""
    assert result.error is not UNSET, result
    return msgspec.to_builtins(result.error)
