"""The runners of workflows, of nodes that only engines know, and of the reader of streams. Lists ask them too, so a run's own code is loaded with the
first run. Must not know faces.
"""

from __future__ import annotations

from tamis.protocols.contract import ErrorType
from tamis.protocols.manifest.reading import WorkflowHandler
from tamis.server.runtime.calls.runner import HandlerServices, Invocation, Runner
from tamis.server.runtime.handlers.workflow.engine import BUILT_IN
from tamis.server.runtime.handlers.workflow.engines import engine_of
from tamis.server.runtime.tools.builtin import READER
from tamis.server.runtime.tools.registry import Tool
from tamis.server.runtime.tools.workflows import WorkflowTool


def runner_for(tool: Tool, handler: WorkflowHandler) -> Runner:
    """The runner of a workflow, of a node that engines know, or of the reader of streams."""
    if tool.tool_id == READER and handler.workflow_id == READER:
        return ReadRunner()
    return NodeRunner() if tool.origin == "node" and handler.workflow_id == tool.tool_id else WorkflowRunner()


def _engine_fault(services: HandlerServices) -> str:
    return "" if services.settings.engine.type == BUILT_IN else engine_of(services.settings)[1]


class WorkflowRunner:
    """Runs workflows."""

    problem_type: ErrorType = "WorkflowError"

    def problem(self, tool: Tool, services: HandlerServices) -> str:
        """Why the workflow cannot be run: its graph as far as the file tells, or the engine."""
        if services.settings.engine.type == BUILT_IN and isinstance(tool, WorkflowTool):
            return tool.fault
        return _engine_fault(services)

    async def run(self, call: Invocation) -> None:
        """Runs the workflow once."""
        from tamis.server.runtime.handlers.workflow.entry import run_workflow

        await run_workflow(call)


class NodeRunner:
    """Runs a node that only an engine knows."""

    problem_type: ErrorType = "WorkflowError"

    def problem(self, tool: Tool, services: HandlerServices) -> str:
        """Why no engine can run the node."""
        if services.settings.engine.type == BUILT_IN:
            return (
                f"'{tool.tool_id}' is a node that the built-in engine cannot run; let its definition name the tool that does its "
                "work (toolId), or name an engine in engine.type"
            )
        return _engine_fault(services)

    async def run(self, call: Invocation) -> None:
        """Runs the node once, wrapped as a graph of its own."""
        from tamis.server.runtime.handlers.workflow.entry import run_wrapped

        await run_wrapped(call)


class ReadRunner:
    """Reads a stream for an agent (W22)."""

    problem_type: ErrorType = "WorkflowError"

    def problem(self, tool: Tool, services: HandlerServices) -> str:
        """Always there."""
        return ""

    async def run(self, call: Invocation) -> None:
        """Reads once."""
        from tamis.server.runtime.handlers.workflow.entry import read_stream

        await read_stream(call)
