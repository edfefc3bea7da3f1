"""A host for tests of agents: its tools are Python functions in this process, and its model reads from a script."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tamis.protocols.contract import SessionView, StepResult
from tamis.server.runtime.agents.step import StepRequest, step
from tamis.server.runtime.calls.model import Ask, CallContext, HostError, State
from tamis.server.runtime.runtime import Runtime

SERVICE = "TestWorld"
Function = Callable[..., Any]
TEXT = {"type": "string"}


class World:
    """A runtime whose tools are functions; what each was called with is noted. ``events`` are the states that were told."""

    def __init__(self, root: Path, settings: dict[str, Any] | None = None) -> None:
        self.root = root
        self.settings = settings
        self.functions: dict[str, Function] = {}
        self.called: list[tuple[str, dict[str, Any]]] = []
        self.events: list[tuple[str, State]] = []
        self.told: list[tuple[str, Any]] = []
        self.ask: Ask | None = None
        self.asks_together = False
        self._runtime: Runtime | None = None

    def tool(
        self,
        tool_id: str,
        function: Function,
        properties: dict[str, Any] | None = None,
        required: list[str] | None = None,
        **fields: Any,
    ) -> None:
        """Adds a tool: a function that takes the arguments by name and gives the output, or raises ``HostError``."""
        self.functions[tool_id] = function
        parameters = {
            "type": "object",
            "properties": {"text": TEXT} if properties is None else properties,
            "required": required or [],
            "additionalProperties": False,
        }
        manifest = {
            "toolId": tool_id,
            "displayName": tool_id,
            "description": f"Test tool {tool_id}: does what its name says, for the tests of this project.",
            "version": "1.0.0",
            "handler": {"type": "service-method", "serviceName": SERVICE, "methodName": tool_id},
            "parameters": parameters,
            **fields,
        }
        (self.root / f"{tool_id}.tool.json").write_text(json.dumps(manifest), encoding="utf-8")

    @property
    def runtime(self) -> Runtime:
        """The runtime, with the host's service registered."""
        if self._runtime is None:
            self._runtime = Runtime(self.root, self.settings)
            self._runtime.parts.host = _Host(self)
            metadata = [
                {"name": name, "description": name, "parameters": self.parameters(name), "agentCallable": True}
                for name in self.functions
            ]
            assert not self._runtime.parts.host_services.register(SERVICE, metadata).rejected
        return self._runtime

    def parameters(self, name: str) -> Any:
        """The schema of a tool's arguments."""
        return json.loads((self.root / f"{name}.tool.json").read_text())["parameters"]

    # what the runtime asks of a host

    def asks(self, method: str, params: Any) -> Awaitable[Any]:
        """A request of the runtime."""
        assert method == "service/invoke", method
        return self._call(params.method_name, dict(params.args))

    async def _call(self, name: str, args: dict[str, Any]) -> Any:
        self.called.append((name, args))
        result = self.functions[name](**args)
        return await result if inspect.isawaitable(result) else result

    def tell(self, method: str, params: object) -> None:
        """A notification of the runtime."""
        self.told.append((method, params))

    # what the host asks of the runtime

    async def step(
        self,
        text: str,
        session_id: str = "s",
        *,
        cancelled: asyncio.Event | None = None,
        new_turn: bool = False,
        **config: Any,
    ) -> StepResult:
        """One round, with calls on unless ``enabled`` says otherwise."""
        return await step(
            StepRequest(text=text, session_id=session_id, config={"enabled": True} | config, new_turn=new_turn),
            self._around(cancelled),
            self.runtime.parts.sessions,
            self.runtime.read,
        )

    def _around(self, cancelled: asyncio.Event | None) -> CallContext:
        context = self.runtime.call_context(
            ask=self.ask, cancelled=cancelled, on_event=lambda call_id, state: self.events.append((call_id, state))
        )
        return context.having(asks_together=self.asks_together)

    def session(self, session_id: str = "s", cursor: str | None = None, limit: int | None = None) -> SessionView:
        """What is kept of a session."""
        return self.runtime.parts.sessions.view(session_id, cursor, limit)

    def states(self, call_id: str) -> list[State]:
        """The states that were told of a call."""
        return [state for named, state in self.events if named == call_id]


# ``ask`` is the person who is asked before calls; a host's own ``ask`` answers the runtime's requests.
class _Host:
    def __init__(self, world: World) -> None:
        self._world = world

    async def ask(self, method: str, params: object) -> Any:
        return await self._world.asks(method, params)

    def tell(self, method: str, params: object) -> None:
        self._world.tell(method, params)


def fails(**_args: Any) -> Any:
    """A tool that fails."""
    raise HostError("the pump is dry")


async def hangs(**_args: Any) -> Any:
    """A tool that never answers."""
    await asyncio.Event().wait()


def echo(**args: Any) -> Any:
    """A tool that gives back its arguments."""
    return args
