"""One run of a workflow, from its call to the call's result: the payload, the engine, the time, the streams (W16 to W22, A26, A45 to A48).

The result of a call is the bare value of a single output, else an object of them (W18). A failed node is a ``WorkflowError`` that names it (W21).
Must not know how engines work, what led here (``entry.py``) or faces.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec
from msgspec import UNSET

from tamis.protocols.catalogue import CATALOGUE, message
from tamis.protocols.contract import ErrorDetails, ExecutionError, ExecutionResult, FailedNode, Problem
from tamis.protocols.manifest.reading import WorkflowHandler
from tamis.protocols.manifest.workflow import PREFIX
from tamis.protocols.model import Diag, escape_pointer
from tamis.protocols.observation import plain, why_not_run
from tamis.protocols.schema.words import type_of
from tamis.protocols.workflow.graph import called_types
from tamis.protocols.workflow.model import Place, Workflow, held
from tamis.protocols.workflow.payload import Payload, output_mappings
from tamis.server.runtime.calls.model import CallContext, Stopped
from tamis.server.runtime.calls.outputs import NotJsonError, as_json
from tamis.server.runtime.calls.runner import Invocation, failure
from tamis.server.runtime.handlers.workflow.engine import BUILT_IN, Engine, EngineError, NodeFailed
from tamis.server.runtime.handlers.workflow.run import MAX_COLLECTED, MAX_HELD_BYTES, Run
from tamis.server.runtime.handlers.workflow.streams import RunRecord, StreamFull
from tamis.server.runtime.policy.rules import might_ask
from tamis.server.runtime.tools.workflows import WorkflowTool

GRACE_S = 5.0
"""How long an engine that is told to stop may take to end what it runs."""
ABANDON_S = 1.0


class Conduct:
    """One run from its payload to the call's result."""

    def __init__(self, call: Invocation, workflow: Workflow, payload: Payload, engine: Engine, *, nested: bool) -> None:
        self.call = call
        self.workflow = workflow
        self.payload = payload
        self.engine = engine
        self.part = call.services.workflows
        self.run_of = Run(call, workflow.workflow_id, payload)
        self.streamed = [slot.name for slot in workflow.outputs.values() if slot.is_stream]
        self.goes_on = bool(self.streamed) and call.services.stays and not nested and self.part.has_room
        if self.goes_on and call.context.asking.polls and _might_ask(workflow, call.context):
            # behind a handle no call is left that could end with a node's question
            self.goes_on = False
        self.names = list(payload["outputInterfaceMappings"]) if not workflow.outputs else list(workflow.outputs)

    async def run(self) -> None:
        """Puts what came of it into the call's result. Raises ``Stopped``."""
        run, call = self.run_of, self.call
        call.result.output, call.result.error = UNSET, UNSET  # of an attempt before
        timeout = call.timeout_ms / 1000
        if call.context.asking.suspended is not None and call.context.asking.polls:
            call.context.asking.suspended.record = self._record
        for name in self.streamed:
            if self.goes_on:
                try:
                    run.streams[name] = self.part.streams.open(run.stopping.set)
                except StreamFull as full:
                    for stream in run.streams.values():
                        self.part.streams.drop(stream.handle)
                    raise Stopped("error", failure("WorkflowError", str(full))) from None
            else:
                run.collected[name] = []
        if self.goes_on:
            await self._behind(timeout)
            return
        error = await self._supervised(timeout)
        try:
            if error is not None:
                raise error
            self._hold_to_interface()
        finally:
            self._note()
        self._give({**run.outputs, **run.collected})

    async def _behind(self, timeout: float) -> None:
        """Answers when all outputs that are no streams are there; the streams go on behind their handles (W22)."""
        run = self.run_of
        ended: asyncio.Future[Stopped | None] = asyncio.get_running_loop().create_future()
        outcome: asyncio.Future[ExecutionResult] | None = None
        if self.call.request.idempotency_key:
            run.kept = {}
            outcome = self.call.trail.outcome = asyncio.get_running_loop().create_future()

        async def work() -> None:
            stopped: Stopped | None = Stopped("cancelled", started=True)
            try:
                stopped = await self._supervised(timeout)
            finally:
                error = (
                    None
                    if stopped is None
                    else stopped.error or failure("WorkflowError", f"the run was {stopped.status}")
                )
                for stream in run.streams.values():
                    stream.end(error)
                self._note()
                if outcome is not None:
                    outcome.set_result(self._whole(stopped))
                if not ended.done():
                    ended.set_result(stopped)

        self.part.behind(work())
        plain = {name for name in self.names if name not in self.streamed}
        settled = asyncio.ensure_future(run.until_settled(plain))
        try:
            await asyncio.wait({ended, settled}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            settled.cancel()
        stopped = ended.result() if ended.done() else None
        if stopped is not None:
            for stream in run.streams.values():
                self.part.streams.drop(stream.handle)
            raise stopped
        try:
            self._hold_to_interface()
        except Stopped:
            run.stopping.set()
            for stream in run.streams.values():
                self.part.streams.drop(stream.handle)
            raise
        self._note()
        handles = {name: {"handle": stream.handle} for name, stream in run.streams.items()}
        self._give({**run.outputs, **handles})

    def _whole(self, stopped: Stopped | None) -> ExecutionResult:
        """What the run came to with its streams as lists of their items: a handle is read once, and ends with its daemon."""
        run = self.run_of
        result = msgspec.structs.replace(self.call.result, output=UNSET, error=UNSET, status="success")
        if stopped is not None:
            result.status = stopped.status
            result.error = UNSET if stopped.error is None else stopped.error
        elif run.kept is None:
            text = (
                f"the run ended well, but its streams had more than {MAX_COLLECTED} items or {MAX_HELD_BYTES} bytes, too much to be kept; they were"
                " to be read by the handle of the first call; a new key runs it again"
            )
            result.status, result.error = "error", failure("ServiceError", text, code="streamNotKept")
        else:
            lists: dict[str, Any] = {name: run.kept.get(name, []) for name in run.streams}
            self._give({**run.outputs, **lists}, result)
        return result

    async def _supervised(self, timeout: float) -> Stopped | None:
        """Has the engine run the payload; what ended it otherwise than well."""
        run, call = self.run_of, self.call
        task = asyncio.ensure_future(self._outputs())
        cancel = call.context.cancelled
        waits: set[asyncio.Future[Any]] = {task}
        stops = {asyncio.ensure_future(event.wait()) for event in (cancel, run.stopping) if event is not None}
        why, asked = "", False
        try:
            # the run's own stop is a failing node or a stream that nobody reads: the engine ends by itself then
            await asyncio.wait(waits | stops, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                asked = cancel is not None and cancel.is_set()
                why = "cancelled" if asked or run.stopping.is_set() else "timeout"
                failing = run.stopping.is_set()
                run.stopping.set()
                await _end(task)
                if (
                    failing
                    and task.done()
                    and not task.cancelled()
                    and isinstance(task.exception(), NodeFailed | EngineError)
                ):
                    why = ""
        finally:
            for stop in stops:
                stop.cancel()
            if not task.done():
                run.stopping.set()
                task.cancel()
        failed = task.exception() if task.done() and not task.cancelled() else None
        if run.failed is not None and why == "cancelled" and not asked:
            # what its failure cancelled took longer than the grace to end
            why, failed = "", run.failed
        if failed is None and not why:
            run.finish_all()
        run.close_steps()
        if why == "cancelled":
            return Stopped("cancelled", started=True)
        if why == "timeout":
            ms = int(timeout * 1000)
            return Stopped("timeout", failure("TimeoutError", f"no result after {ms} ms", limit="wall"), started=True)
        return self._judged(failed)

    async def _outputs(self) -> None:
        """Has the engine run the payload, and takes what it gives at the end beside what it gave on the way."""
        answer = cast("object", await self.engine.run(self.payload, self.run_of))
        if not isinstance(answer, dict):
            raise EngineError("the engine gave no outputs by name")
        outputs = cast("dict[str, Any]", answer)
        if self.call.context.settings.engine.type != BUILT_IN:
            outputs = _plain(outputs)
            self.run_of.outputs.update(_plain(self.run_of.outputs))
        for name in self.names:
            if name in outputs and not self.run_of.is_stream(name):
                self.run_of.outputs[name] = outputs[name]
            elif name in outputs:
                self.run_of.push_rest(name, outputs[name])

    def _judged(self, failed: BaseException | None) -> Stopped | None:
        if failed is None:
            return None
        if isinstance(failed, NodeFailed):
            if failed.status == "cancelled":
                return Stopped("cancelled", started=True)
            return Stopped("error", node_error(failed), started=True)
        if isinstance(failed, EngineError | StreamFull):
            error = failure("WorkflowError", str(failed))
            if isinstance(failed, EngineError) and failed.node_id:
                # a node that the file does not have: engines may have nodes of their own
                node = FailedNode(node_id=failed.node_id, type=failed.node_type, status="error")
                error.details = ErrorDetails(node=node)
            return Stopped("error", error, started=True)
        if isinstance(failed, Exception):  # an engine of a third party
            text = f"the engine failed: {type(failed).__name__}: {failed}"
            return Stopped("error", failure("WorkflowError", text[:1000]), started=True)
        raise failed

    def _hold_to_interface(self) -> None:
        """Outputs have the types that the interface declares. A number in the place of a text is converted and told; raises ``Stopped`` for what cannot be."""
        run, places = self.run_of, output_mappings(self.workflow)
        types = {str(node.get("id")): str(node.get("fullType")) for node in self.payload["nodes"]}
        for name, slot in self.workflow.outputs.items():
            if slot.is_stream or name not in run.outputs:
                continue
            value = run.outputs[name]
            place = places.get(name, Place("", name))
            whose = (
                f"'{place.slot}' of node '{place.node}' ({types.get(place.node, '')})" if place.node else "the engine"
            )
            received = type_of(value)
            args: dict[str, str | int] = {"p": name, "type": slot.type, "from": whose, "received": received}
            try:
                run.outputs[name], is_other = held(value, slot.type)
            except ValueError:
                text = f"the output '{name}' is {slot.type}, and {whose} gave {received}"
                error = failure("WorkflowError", text)
                if place.node:
                    run.step(place.node, "error", failure("OutputValidationError", text))
                    node = FailedNode(
                        node_id=place.node,
                        type=types.get(place.node, ""),
                        status="error",
                        error=failure("OutputValidationError", text),
                    )
                    error.details = ErrorDetails(node=node)
                raise Stopped("error", error, started=True) from None
            if is_other:
                entry, path, result = Diag("WF925", (0, 0), args), f"/{escape_pointer(name)}", self.call.result
                warnings = (
                    []
                    if result.warnings is UNSET
                    else [warning for warning in result.warnings if warning.path != path or warning.code != entry.code]
                )
                problem = Problem(code=entry.code, slug=CATALOGUE[entry.code].slug, path=path, message=message(entry))
                result.warnings = [*warnings, problem]

    def _give(self, outputs: dict[str, Any], result: ExecutionResult | None = None) -> None:
        result = result or self.call.result
        result.status = "success"
        if len(self.names) == 1:
            result.output = outputs.get(self.names[0])
        else:
            result.output = {name: outputs[name] for name in self.names if name in outputs}

    def _note(self) -> None:
        self.part.note(self.call.request.call_id, self._record())

    def _record(self) -> RunRecord:
        run, settings = self.run_of, self.call.context.settings
        handles = {name: {"handle": stream.handle} for name, stream in run.streams.items()}
        available = {**run.outputs, **run.collected, **handles}
        return RunRecord(
            workflow_id=self.workflow.workflow_id,
            engine=settings.engine.type,
            steps=run.steps(),
            outputs={name: available[name] for name in self.names if name in available},
        )


def _might_ask(workflow: Workflow, context: CallContext) -> bool:
    """Whether a person may be asked about a node, also of the workflows that it calls."""
    seen = set[str]()
    left = [workflow]
    while left:
        for name in called_types(left.pop()):
            tool = context.registry.get(name)
            if tool is None or tool.tool_id in seen:
                continue
            seen.add(tool.tool_id)
            if context.agent.asks or might_ask(context.settings.policy, tool.manifest, context.caller):
                return True
            handler = tool.manifest.handler
            below = context.registry.get(PREFIX + handler.workflow_id) if isinstance(handler, WorkflowHandler) else None
            if isinstance(below, WorkflowTool):
                left.append(below.workflow)
    return False


def _plain(outputs: dict[str, Any]) -> dict[str, Any]:
    """Outputs as JSON has them. Refuses what no result can carry: an engine of a package may give any object."""
    members: dict[str, Any] = {}
    for name, value in outputs.items():
        try:
            members[name], _ = as_json(value)
        except NotJsonError as error:
            raise EngineError(f"the engine's output '{str(name)[:100]}' is no JSON: {error}") from None
    return members


async def _end(task: asyncio.Task[Any]) -> None:
    """Lets an engine end that was told to stop; one that does not is abandoned."""
    await asyncio.wait({task}, timeout=GRACE_S)
    if not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=ABANDON_S)


def node_error(failed: NodeFailed) -> ExecutionError:
    """A failed node as the workflow's error (W21): which node, of which type, and its own error whole."""
    error = failed.error
    at = f" item {failed.item}" if failed.item is not None else ""
    cause = f"{error.type}: {error.message}" if error is not None else why_not_run(failed.status)
    if failed.comment:
        cause = f"{cause}; the user's comment: {plain(failed.comment)}"
    own = error.details if error is not None else UNSET
    node = FailedNode(
        node_id=failed.node_id,
        type=failed.node_type,
        status=failed.status,
        error=UNSET if error is None else error,
        item=UNSET if failed.item is None else failed.item,
    )
    text = own.text if own is not UNSET else UNSET
    return ExecutionError(
        type="WorkflowError",
        message=f"node '{failed.node_id}' ({failed.node_type}){at}: {cause}",
        details=ErrorDetails(node=node, text=text),
    )
