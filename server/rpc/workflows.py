"""Workflows for a host (``workflow/list``, ``workflow/describe``, ``workflow/run``, ``workflow/graph``, ``stream/read``). Holds no rules of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import (
    ExecutionResult,
    StreamItems,
    WorkflowDescription,
    WorkflowGraph,
    WorkflowList,
    WorkflowRunResult,
    WorkflowSummary,
)
from tamis.protocols.manifest.workflow import PREFIX
from tamis.protocols.suggest import best, hint
from tamis.protocols.workflow.model import MAX_WAIT_MS, Workflow
from tamis.server.rpc.approvals import check_token, token_answer, unknown
from tamis.server.rpc.params import Group, Host, Params
from tamis.server.rpc.running import Running
from tamis.server.rpc.session import Request, named_error
from tamis.server.runtime.execution.approvals.questions import ApprovalUnknown
from tamis.server.runtime.handlers.workflow.streams import RunRecord
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.tools.workflows import WorkflowTool
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from tamis.protocols.workflow.drawing import Timing


class ListWorkflows(Params, kw_only=True):
    """Params of ``workflow/list``."""


class Describe(Params, kw_only=True):
    """Params of ``workflow/describe``."""

    workflow_id: str
    """The file's name without extension; with ``workflow:`` before it, the file's own ``id`` and its path are taken too."""


class Run(Running, kw_only=True):
    """Params of ``workflow/run``."""

    workflow_id: str
    inputs: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    """The values of the interface's inputs; those with a default may be missing."""


class Graph(Params, kw_only=True):
    """Params of ``workflow/graph``."""

    workflow_id: str
    format: Literal["mermaid", "svg"] = "mermaid"


class Read(Params, kw_only=True):
    """Params of ``stream/read``."""

    handle: str
    wait_ms: Annotated[int, msgspec.Meta(ge=0, le=MAX_WAIT_MS)] = 0
    """Milliseconds to wait for the first new item."""


class _Methods:
    """The methods, for one client."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def list(self, _request: Request, _params: ListWorkflows) -> WorkflowList:
        """Lists the workflows with what they take and give."""
        return listed(self._host.runtime)

    def describe(self, _request: Request, params: Describe) -> WorkflowDescription:
        """The tool that a workflow is to agents, its file as it stands, and what keeps its graph from being run."""
        from tamis.server.runtime.handlers.workflow.engine import BUILT_IN
        from tamis.server.runtime.tools.workflows import graph_problems

        runtime = self._host.runtime
        tool = self._known(params.workflow_id)
        built_in = runtime.settings.engine.type == BUILT_IN
        return WorkflowDescription(
            workflow_id=tool.workflow.workflow_id,
            tool_id=tool.tool_id,
            version=tool.manifest.version,
            definition=dict(tool.manifest.raw),
            workflow=dict(tool.workflow.raw),
            problems=graph_problems(tool, runtime.registry) if built_in else [],
            source=tool.path,
        )

    async def run(self, request: Request, params: Run) -> WorkflowRunResult:
        """Runs a workflow as a call of its tool; every node is in ``steps``, also those that were not reached."""
        from tamis.server.runtime.calls.model import CallRequest
        from tamis.server.runtime.execution.pipeline import execute

        runs = self._host.runs
        runs.check_trust()
        check_token(self._host, params.approval)
        tool = find(params.workflow_id, self._host.runtime)
        call = CallRequest(
            call_id=f"workflow-{runs.number()}",
            # an unknown workflow is an unknown tool: a result, like that of any call
            name=tool.tool_id if tool is not None else _full_id(params.workflow_id),
            args=params.inputs,
            timeout_ms=params.timeout_ms,
            idempotency_key=params.idempotency_key,
            dry_run=params.dry_run,
            approval=token_answer(params.approval),
            wait=True,
        )
        part = self._host.runtime.parts.workflows
        part.expect(call.call_id)
        try:
            with runs.counted():
                result = await execute(call, runs.call_context(request, params))
        except ApprovalUnknown as error:
            raise unknown(error) from None
        finally:
            record = part.take(call.call_id)
        if record is None and tool is not None and result.status == "success":
            # a stored result, or a dry run: nothing ran now
            record = RunRecord(workflow_id=tool.workflow.workflow_id, outputs=_by_name(tool, result))
        return _run_result(result, record.steps if record else [], record.outputs if record else {}, self._host)

    def graph(self, _request: Request, params: Graph) -> WorkflowGraph:
        """Draws a workflow, with what its last run took where it ran."""
        from tamis.protocols.workflow.drawing import Timing

        tool = self._known(params.workflow_id)
        last = self._host.runtime.parts.workflows.last(tool.workflow.workflow_id)
        timings = {
            step.node_id: Timing(step.status, None if step.duration_ms is UNSET else step.duration_ms)
            for step in (last.steps if last is not None else ())
        }
        return WorkflowGraph(
            format=params.format, text=drawn(tool.workflow, params.format, timings), timed=bool(timings)
        )

    async def read(self, _request: Request, params: Read) -> StreamItems:
        """Gives what has come in a streamed output since the last reading, waiting for it as long as asked."""
        stream_items = await self._host.runtime.parts.workflows.streams.read(params.handle, params.wait_ms)
        if stream_items is None:
            text = "no such stream; it was read to its end, or nobody read it for long"
            raise RpcError(INVALID_PARAMS, f"wrong params: {text} - at `/handle`")
        return stream_items

    def _known(self, workflow_id: str) -> WorkflowTool:
        tool = find(workflow_id, self._host.runtime)
        if tool is None:
            known = [
                tool.workflow.workflow_id
                for tool in self._host.runtime.registry.tools
                if isinstance(tool, WorkflowTool)
            ]
            near = hint(best(workflow_id, known))
            raise named_error("toolNotFound", f"no workflow '{workflow_id[:200]}'{near}", "workflow/list gives the ids")
        return tool


def _full_id(workflow_id: str) -> str:
    return workflow_id if workflow_id.startswith(PREFIX) else PREFIX + workflow_id


def listed(runtime: Runtime) -> WorkflowList:
    """The workflows with what they take and give."""
    workflow_tools = [tool for tool in runtime.registry.tools if isinstance(tool, WorkflowTool)]
    return WorkflowList(workflows=[_summary(tool, runtime) for tool in workflow_tools])


def drawn(workflow: Workflow, form: str, timings: Mapping[str, Timing] | None = None) -> str:
    """A drawing of a workflow, ``mermaid`` or ``svg``."""
    from tamis.protocols.workflow.drawing import drawing_of

    drawing = drawing_of(workflow, timings or {})
    if form == "svg":
        from tamis.protocols.workflow.drawing import svg

        return svg(drawing)
    from tamis.protocols.workflow.drawing import mermaid

    return mermaid(drawing)


def find(workflow_id: str, runtime: Runtime) -> WorkflowTool | None:
    """The workflow of an id, with or without ``workflow:``, or of another of its names."""
    for name in (_full_id(workflow_id), workflow_id):
        tool = runtime.registry.get(name)
        if isinstance(tool, WorkflowTool):
            return tool
    return None


def _summary(tool: WorkflowTool, runtime: Runtime) -> WorkflowSummary:
    workflow = tool.workflow
    reason = runtime.why_not(tool)
    return WorkflowSummary(
        workflow_id=workflow.workflow_id,
        tool_id=tool.tool_id,
        name=tool.manifest.display_name,
        description=workflow.description,
        inputs=list(workflow.inputs),
        outputs=list(workflow.outputs),
        available=tool.available and not reason,
        reason=reason or UNSET,
        source=tool.path,
    )


def _by_name(tool: WorkflowTool, result: ExecutionResult) -> dict[str, Any]:
    """The outputs of a result by name: a single one stands there bare (W18)."""
    names = list(tool.workflow.outputs)
    if not result.replayed:
        return {}
    if len(names) == 1:
        return {names[0]: result.output}
    return {name: result.output[name] for name in names if name in result.output}


def _run_result(result: ExecutionResult, steps: list[Any], outputs: dict[str, Any], host: Host) -> WorkflowRunResult:
    return WorkflowRunResult(
        outputs=outputs,
        steps=steps,
        status=result.status,
        call_id=result.call_id,
        engine=host.runtime.settings.engine.type,
        duration_ms=result.duration_ms,
        error=result.error,
        replayed=result.replayed,
        approval=result.approval,
        observation=result.observation,
    )


def methods(host: Host) -> Group:
    """The methods of this group."""
    group = _Methods(host)
    return {
        "workflow/list": (ListWorkflows, group.list),
        "workflow/describe": (Describe, group.describe),
        "workflow/run": (Run, group.run),
        "workflow/graph": (Graph, group.graph),
        "stream/read": (Read, group.read),
    }
