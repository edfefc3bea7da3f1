"""The runner of ``external-script`` handlers and of the built-in script service. Must not decide whether a call may run."""

from __future__ import annotations

from tamis.protocols.contract import ErrorType
from tamis.server.runtime.calls.runner import HandlerServices, Invocation
from tamis.server.runtime.handlers.script.interpreters import missing_runtime
from tamis.server.runtime.tools.tool import Tool


class ScriptRunner:
    """Runs scripts in the sandbox."""

    problem_type: ErrorType = "DependencyError"

    def problem(self, tool: Tool, services: HandlerServices) -> str:
        """What is missing on this machine."""
        return missing_runtime(tool.manifest, services.settings)

    async def run(self, call: Invocation) -> None:
        """Runs the script once."""
        from tamis.server.runtime.handlers.script.running import run_script

        await run_script(call)
