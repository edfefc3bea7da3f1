"""The runner of ``external-script`` handlers and of the built-in script service. Must not decide whether a call may run."""

from __future__ import annotations

from tamis.protocols.contract import ErrorType
from tamis.server.runtime.calls.dispatch import Invocation
from tamis.server.runtime.calls.parts import Parts
from tamis.server.runtime.registry.registry import Tool
from tamis.server.runtime.scripts.interpreters import missing_runtime


class ScriptRunner:
    """Runs scripts in the sandbox."""

    problem_type: ErrorType = "DependencyError"

    def problem(self, tool: Tool, parts: Parts) -> str:
        """What is missing on this machine."""
        return missing_runtime(tool.manifest, parts.settings)

    async def run(self, call: Invocation) -> None:
        """Runs the script once."""
        from tamis.server.runtime.scripts.running import run_tool

        assert call.target is not None
        await run_tool(call.request, call.tool, call.target, call.rights, call.around, call.trail, call.result)
