"""Which code runs a call: one runner for each type of handler (D60, seed 000 §7.3).

A runner gets a call that was let through, with its arguments checked and its rights granted, and judges what happened into the
result. Runners are loaded with the first call that needs them. Must not decide whether a call may run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from tamis.protocols.contract import ErrorType, ExecutionResult
from tamis.protocols.manifest.reading import ExternalScript, McpTool, OtherHandler, WorkflowHandler
from tamis.server.runtime.calls.parts import Parts
from tamis.server.runtime.registry.registry import Tool
from tamis.server.runtime.scripts.service import ScriptTarget, is_script_service

if TYPE_CHECKING:
    # Lists ask runners too, and start without an event loop.
    from tamis.server.runtime.calls.model import CallRequest, Surroundings
    from tamis.server.runtime.records.trail import Trail
    from tamis.server.runtime.rights.permissions import Grant


class Invocation(msgspec.Struct, kw_only=True):
    """One call that may run. A runner fills ``result``: status, output or error, logs, usage, sandbox."""

    request: CallRequest
    tool: Tool
    args: dict[str, Any]
    target: ScriptTarget | None
    """The script that is run; None where the handler is none of scripts."""
    rights: Grant
    around: Surroundings
    trail: Trail
    result: ExecutionResult

    @property
    def timeout_ms(self) -> int:
        """How long this call may take: the least of what operator, agent, manifest and request say."""
        own = self.tool.manifest.execution.timeout_ms
        asked = (self.around.settings.sandbox.wall_ms, self.around.agent.timeout_ms, own, self.request.timeout_ms)
        return min(ms for ms in asked if ms is not None)


class Runner(Protocol):
    """Runs the calls of one type of handler."""

    @property
    def problem_type(self) -> ErrorType:
        """The error type of a ``problem``."""
        ...

    def problem(self, tool: Tool, parts: Parts) -> str:
        """Why a tool of this type cannot be called now, cause and remedy; empty when it can. Cheap: lists ask it too."""
        ...

    async def run(self, call: Invocation) -> None:
        """Runs the call once. Raises ``Stopped`` for a call that was not started, or that ended by time or a cancel."""
        ...


def runs_script(tool: Tool) -> bool:
    """Whether a tool's calls are runs of a script."""
    return isinstance(tool.manifest.handler, ExternalScript) or is_script_service(tool.manifest)


def runner_of(tool: Tool) -> Runner:
    """The runner of a tool's calls."""
    if runs_script(tool):
        from tamis.server.runtime.scripts.runner import ScriptRunner

        return ScriptRunner()
    handler = tool.manifest.handler
    if isinstance(handler, WorkflowHandler):
        from tamis.server.runtime.workflows.runner import runner_for

        return runner_for(tool, handler)
    if isinstance(handler, McpTool):
        from tamis.server.runtime.mcp.runner import McpRunner

        return McpRunner()
    if isinstance(handler, OtherHandler):
        from tamis.server.runtime.calls.plugins import PluginRunner

        return PluginRunner()
    from tamis.server.runtime.services.runner import ServiceRunner

    return ServiceRunner()
