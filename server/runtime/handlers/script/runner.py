"""The runner of ``external-script`` handlers and of the built-in script service. Must not decide whether a call may run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.protocols.contract import ErrorType
from tamis.server.runtime.calls.runner import Invocation
from tamis.server.runtime.handlers.script.interpreters import missing_runtime
from tamis.server.runtime.tools.registry import Tool

if TYPE_CHECKING:
    from tamis.server.runtime.services import Parts


class ScriptRunner:
    """Runs scripts in the sandbox."""

    problem_type: ErrorType = "DependencyError"

    def problem(self, tool: Tool, parts: Parts) -> str:
        """What is missing on this machine."""
        return missing_runtime(tool.manifest, parts.settings)

    async def run(self, call: Invocation) -> None:
        """Runs the script once."""
        from tamis.server.runtime.handlers.script.running import run_script

        await run_script(call)
