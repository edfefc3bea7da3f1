"""The runner of ``service-method`` handlers. Must not know how a host is reached."""

from __future__ import annotations

from tamis.protocols.contract import ErrorType
from tamis.protocols.manifest.reading import ServiceMethod
from tamis.server.runtime.calls.dispatch import Invocation
from tamis.server.runtime.calls.failures import failure
from tamis.server.runtime.calls.parts import Parts
from tamis.server.runtime.registry.registry import Tool


class ServiceRunner:
    """Runs methods of services."""

    problem_type: ErrorType = "ServiceError"

    def problem(self, tool: Tool, parts: Parts) -> str:
        """Why the service cannot be called."""
        handler = tool.manifest.handler
        name = handler.service_name if isinstance(handler, ServiceMethod) else ""
        return f"no service '{name}' is registered"

    async def run(self, call: Invocation) -> None:
        """Runs the method once."""
        from tamis.server.runtime.calls.model import Stopped

        raise Stopped("error", failure("ServiceError", self.problem(call.tool, call.around.parts)))
