"""The ways of a call into an engine: a workflow as it is (path A), a tool alone as a graph of one node (path B), a stream that is read.

What cannot be run is refused here: no engine, a graph with faults, workflows that call each other without end. Must not know how a run
goes on (``run_workflow.py``), or faces.
"""

from __future__ import annotations

from contextvars import ContextVar

import msgspec

from tamis.protocols.manifest.reading import WorkflowHandler
from tamis.protocols.manifest.workflow import PREFIX
from tamis.protocols.workflow.graph import MAX_DEPTH
from tamis.protocols.workflow.model import WHOLE, Workflow, slots_of
from tamis.protocols.workflow.payload import single_node_payload, workflow_payload
from tamis.server.runtime.calls.model import Stopped
from tamis.server.runtime.calls.runner import Invocation, failure
from tamis.server.runtime.calls.running_calls import in_time
from tamis.server.runtime.handlers.workflow.engine import BUILT_IN, Engine
from tamis.server.runtime.handlers.workflow.engines import engine_of
from tamis.server.runtime.handlers.workflow.run_workflow import Conduct
from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.tools.registry import Registry
from tamis.server.runtime.tools.workflows import WorkflowTool, graph_problems

_stack: ContextVar[tuple[str, ...]] = ContextVar("workflows", default=())
"""The workflows that the current call runs in, from the outside."""


async def run_workflow(call: Invocation) -> None:
    """Path A (seed 000 §7.3.1): runs the call's workflow once."""
    tool = _workflow_of(call)
    engine = _engine(call.context.settings)
    stack = _stack.get()
    _check_depth(tool.workflow.workflow_id, stack)
    if call.context.settings.engine.type == BUILT_IN:
        _check_graph(tool, call.context.registry)
    payload = workflow_payload(tool.workflow, call.args)
    token = _stack.set((*stack, tool.workflow.workflow_id))
    try:
        await Conduct(call, tool.workflow, payload, engine, nested=bool(stack)).run()
    finally:
        _stack.reset(token)


async def run_wrapped(call: Invocation) -> None:
    """Path B (seed 000 §7.3.2): has the engine run the call's tool alone, as a graph of one node."""
    tool = call.tool
    engine = _engine(call.context.settings)
    outputs = [name for name in slots_of(tool.manifest.parameters, tool.manifest.output).outputs if name != WHOLE]
    payload = single_node_payload(tool.tool_id, call.args, outputs or [WHOLE])
    await Conduct(call, Workflow(tool.tool_id), payload, engine, nested=True).run()


async def read_stream(call: Invocation) -> None:
    """Reads a stream once, for an agent (W22)."""
    handle, wait_ms = call.args.get("handle"), call.args.get("waitMs", 1000)
    streams = call.services.workflows.streams
    stream_items = await in_time(call, streams.read(str(handle), int(wait_ms)))
    if stream_items is None:
        text = f"there is no stream '{handle}'; it was read to its end, or nobody read it for long"
        raise Stopped("error", failure("WorkflowError", text))
    call.result.status = "success"
    call.result.output = msgspec.to_builtins(stream_items)


def _workflow_of(call: Invocation) -> WorkflowTool:
    """The workflow that a call runs: its tool, or the one that a node's definition names."""
    tool, handler = call.tool, call.tool.manifest.handler
    if not isinstance(tool, WorkflowTool) and isinstance(handler, WorkflowHandler):
        tool = call.context.registry.get(PREFIX + handler.workflow_id) or tool
    if isinstance(tool, WorkflowTool):
        return tool
    raise Stopped("error", failure("WorkflowError", "the workflow's file is not registered any more"))


def _engine(settings: Settings) -> Engine:
    engine, problem = engine_of(settings)
    if engine is None:
        raise Stopped("error", failure("WorkflowError", problem))
    return engine


def _check_depth(workflow_id: str, stack: tuple[str, ...]) -> None:
    if workflow_id in stack:
        way = " → ".join([*stack, workflow_id])
        raise Stopped("error", failure("WorkflowError", f"the workflow calls itself: {way}"))
    if len(stack) >= MAX_DEPTH:
        raise Stopped("error", failure("WorkflowError", f"workflows call each other more than {MAX_DEPTH} deep"))


def _check_graph(tool: WorkflowTool, registry: Registry) -> None:
    """Refuses a graph with faults; looked at once for each registry."""
    problems = graph_problems(tool, registry)
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        error = failure("WorkflowError", f"the workflow cannot be run: {problems[0].message}{more}", errors=problems)
        raise Stopped("error", error)
