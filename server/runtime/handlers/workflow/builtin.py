"""The built-in engine: runs a payload's nodes as soon as what they wait for is there, independent ones at the same time (W18, W19).

A node that lies behind a branch which was not taken is skipped, not failed. The first node that fails ends the run. Linear in the graph; what is
run at once is bounded by the run's turns. Must not know the registry or how tools run.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Any, cast

import msgspec
from msgspec import UNSET

from tamis.protocols.model import Json
from tamis.protocols.observation import refusal_comment, why_not_run
from tamis.protocols.schema.words import is_list, is_object
from tamis.protocols.workflow.kinds import (
    MAX_ITEMS,
    NodeError,
    compute,
    config_fault,
    inner_node,
    item_slot,
    kind_of_node,
    kind_slots,
)
from tamis.protocols.workflow.model import ERROR, MAX_EDGES, MAX_NODES, STOP, WHOLE, Node, Slots, converted
from tamis.protocols.workflow.payload import Payload
from tamis.server.runtime.calls.runner import failure
from tamis.server.runtime.handlers.workflow.engine import EngineError, NodeFailed
from tamis.server.runtime.handlers.workflow.run import Run
from tamis.server.runtime.handlers.workflow.streams import StreamFull
from tamis.server.runtime.tools.workflows import outputs_of

FAILURE = "\0failure"
"""The slot of a node's failure, which no name of a slot is."""
BREATH = 256
"""After so many nodes that compute by themselves the loop gets a turn."""


class BuiltInEngine:
    """Runs payloads in this process."""

    async def run(self, payload: Payload, run: Run) -> dict[str, Any]:
        """The values of the outputs by name."""
        return await _Execution(_Graph(payload), run).run()


class _In(msgspec.Struct, frozen=True, gc=False):
    """What an edge brings: the source's number and slot, and the slot that it goes into."""

    source: int
    slot: str
    into: str


class _Graph:
    """A payload's graph by numbers."""

    def __init__(self, payload: Payload) -> None:
        raw_nodes, raw_edges = payload.get("nodes"), payload.get("edges")
        if not isinstance(raw_nodes, list) or not isinstance(raw_edges, list):
            raise EngineError("the payload has no lists of nodes and edges")
        nodes, edges = cast("list[Payload]", raw_nodes), cast("list[Payload]", raw_edges)
        if len(nodes) > MAX_NODES or len(edges) > MAX_EDGES:
            raise EngineError(f"more than {MAX_NODES} nodes or {MAX_EDGES} edges")
        self.nodes = [
            Node(
                str(node.get("id")),
                str(node.get("fullType")),
                node.get("inputs") or {},
                node.get("configValues") or {},
                on_error=node.get("onError", STOP),
                retry=node.get("retry", 0),
            )
            for node in nodes
        ]
        number = {node.id: index for index, node in enumerate(self.nodes)}
        if len(number) < len(self.nodes):
            raise EngineError("two nodes have the same id")
        self.into: list[list[_In]] = [[] for _ in self.nodes]
        self.after: list[list[int]] = [[] for _ in self.nodes]
        for edge in edges:
            source, target = number.get(str(edge.get("sourceNodeId"))), number.get(str(edge.get("targetNodeId")))
            if source is None or target is None:
                raise EngineError("an edge leads from or to a node that is not there")
            self.into[target].append(_In(source, str(edge.get("sourceHandle")), str(edge.get("targetHandle"))))
            self.after[source].append(target)
        for source, node in enumerate(self.nodes):
            if node.handler:
                target = number.get(node.handler)
                if target is None:
                    raise EngineError(f"a failure of '{node.id}' leads to a node that is not there")
                self.into[target].append(_In(source, FAILURE, ERROR))
                self.after[source].append(target)
        self.outputs: dict[int, list[tuple[str, str]]] = {}
        """For each node that gives outputs of the interface: their names, and the slots that give them."""
        mappings = cast("dict[str, Payload]", payload.get("outputInterfaceMappings") or {})
        for name, place in mappings.items():
            index = number.get(str(place.get("sourceNodeId")))
            if index is None:
                raise EngineError(f"the output '{name}' comes from a node that is not there")
            self.outputs.setdefault(index, []).append((name, str(place.get("sourceSlotKey"))))


class _Execution:
    """One run of a graph."""

    def __init__(self, graph: _Graph, run: Run) -> None:
        self.graph = graph
        self.host = run
        self.waits = [len(edges) for edges in graph.into]
        self.ready: deque[int] = deque(index for index, count in enumerate(self.waits) if not count)
        self.given: list[dict[str, Json] | None] = [None] * len(graph.nodes)
        """The outputs of each finished node; empty for one that was skipped."""
        self.failures: dict[int, dict[str, Json]] = {}
        """What went wrong at the nodes whose failure does not end the run."""
        self.left = len(graph.nodes)

    async def run(self) -> dict[str, Any]:
        running: dict[asyncio.Task[dict[str, Json]], int] = {}
        computed = 0
        try:
            while self.left:
                while self.ready and len(running) < self.host.max_parallel and not self.host.stopping.is_set():
                    index = self.ready.popleft()
                    inputs = self._inputs(index)
                    if inputs is None:
                        self._skip(index)
                        continue
                    node = self.graph.nodes[index]
                    kind = kind_of_node(node.type)
                    if kind and kind != "map":
                        self._compute_one(index, node, kind, inputs)
                        computed += 1
                        if computed % BREATH == 0:
                            await asyncio.sleep(0)
                        continue
                    self.host.step(node.id, "running")
                    running[asyncio.ensure_future(self._work(index, node, kind, inputs))] = index
                if not running:
                    break
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                # several may be done at once: the order of the nodes decides, so that the same run fails alike
                for task in sorted(done, key=lambda task: running[task]):
                    index = running.pop(task)
                    try:
                        outputs = task.result()
                    except NodeFailed as failed:
                        self._recover(index, failed)
                    else:
                        self._finish(index, outputs)
        except asyncio.CancelledError:
            # nothing is waited for any more: whoever cancels gave the calls their time to end
            for task in running:
                task.cancel()
            raise
        except NodeFailed as failed:
            self.host.fail(failed)
            await self._end(running)
            # a node that was cancelled because a map's item failed may have ended before the map
            raise self.host.failed or failed from None
        except BaseException:
            self.host.stopping.set()
            await self._end(running)
            raise
        if self.left and not self.host.stopping.is_set():
            raise EngineError("the nodes that are left wait for each other")
        return self.host.outputs

    async def _end(self, running: dict[asyncio.Task[dict[str, Json]], int]) -> None:
        """Waits for what still runs; each is told by ``stopping``, and judged for its step only."""
        if not running:
            return
        await asyncio.wait(running)
        for task, index in running.items():
            if not task.cancelled() and task.exception() is None:
                self.host.step(self.graph.nodes[index].id, "success")

    def _inputs(self, index: int) -> dict[str, Json] | None:
        """The values of a node's slots; None where one of them lies on a branch that was not taken."""
        node = self.graph.nodes[index]
        edges = self.graph.into[index]
        inputs: dict[str, Json] = dict(node.inputs)
        if not edges:
            return inputs
        merges = kind_of_node(node.type) == "merge"
        led = [edge.source for edge in edges if edge.slot == FAILURE]
        if led and not merges and not any(source in self.failures for source in led):
            return None
        slots = self._slots(node)
        for edge in edges:
            if edge.slot == FAILURE:
                if edge.source in self.failures and self._takes_error(node):
                    inputs[ERROR] = dict(self.failures[edge.source])
                continue
            outputs = self.given[edge.source] or {}
            if edge.slot not in outputs:
                # an input that the call left out is just not given, as a parameter would be
                if merges or kind_of_node(self.graph.nodes[edge.source].type) == "input":
                    continue
                if not self._owed(edge.source, edge.slot):
                    return None
                source = self.graph.nodes[edge.source]
                error = failure("WorkflowError", f"it gave no '{edge.slot}'")
                self.host.step(source.id, "error", error)
                raise NodeFailed(source.id, source.type, "error", error)
            slot = slots.inputs.get(edge.into) if slots is not None else None
            value = outputs[edge.slot]
            inputs[edge.into] = value if slot is None else converted(value, slot.type)
        return inputs if not merges or inputs else None

    def _takes_error(self, node: Node) -> bool:
        """Whether a node that a failure leads to takes what went wrong: a tool that has no such parameter does not."""
        slots = self._slots(node)
        return kind_of_node(node.type) != "map" and (slots is None or slots.open_inputs or ERROR in slots.inputs)

    def _owed(self, index: int, slot: str) -> bool:
        """Whether a node that was run should have given a slot: one of which no schema says that it may be missing."""
        if not self.given[index]:
            return False
        node = self.graph.nodes[index]
        slots = None if kind_of_node(node.type) else self.host.slots(node.type)
        return slots is not None and slot not in slots.outputs

    def _slots(self, node: Node) -> Slots | None:
        return None if kind_of_node(node.type) else self.host.slots(node.type)

    def _compute_one(self, index: int, node: Node, kind: str, inputs: dict[str, Json]) -> None:
        try:
            outputs = self._compute(node, kind, inputs)
        except NodeFailed as failed:
            self._recover(index, failed)
        else:
            self._finish(index, outputs)

    def _recover(self, index: int, failed: NodeFailed) -> None:
        """Goes on after a failure as the node says; raises it where it says nothing, or where the run is ending."""
        node = self.graph.nodes[index]
        if node.on_error == STOP or failed.status == "cancelled" or self.host.stopping.is_set():
            raise failed
        error = failed.error
        self.failures[index] = {
            "type": error.type if error is not None else failed.status,
            "message": error.message if error is not None else why_not_run(failed.status),
            "nodeId": node.id,
        }
        if not is_object(node.on_error) or "value" not in node.on_error:
            self._settle(index, {})
            return
        value = node.on_error["value"]
        kind = kind_of_node(node.type)
        self._settle(
            index,
            dict.fromkeys(kind_slots(kind, node).outputs, value)
            if kind
            else outputs_of(value, self.host.slots(node.type)),
        )

    def _compute(self, node: Node, kind: str, inputs: dict[str, Json]) -> dict[str, Json]:
        try:
            fault = config_fault(kind, node)
            if fault:
                raise NodeError(fault)
            return compute(kind, node.config, inputs)
        except NodeError as reason:
            raise self._failed(node, str(reason)) from None

    def _failed(self, node: Node, reason: str, item: int | None = None) -> NodeFailed:
        error = failure("WorkflowError", reason)
        self.host.step(node.id, "error", error)
        return NodeFailed(node.id, node.type, "error", error, item)

    async def _work(self, index: int, node: Node, kind: str, inputs: dict[str, Json]) -> dict[str, Json]:
        if kind == "map":
            return await _Map(self, index, node, inputs).run()
        return await self.called(node, node.type, inputs)

    async def called(
        self, node: Node, node_type: str, inputs: dict[str, Json], item: int | None = None
    ) -> dict[str, Json]:
        """The outputs of a tool that a node has called."""
        result = await self.host.call(node.id, node_type, inputs, item, retry=node.retry)
        if result.status != "success":
            error = None if result.error is UNSET else result.error
            self.host.step(node.id, _step_status(result.status), error)
            raise NodeFailed(node.id, node_type, result.status, error, item, refusal_comment(result))
        value: Json = None if result.output is UNSET else result.output
        return outputs_of(value, self.host.slots(node_type))

    def keep(self, node: Node, value: Json, item: int | None = None) -> None:
        """A value that stays until the run ends."""
        full = self.host.hold(value)
        if full:
            raise self._failed(node, full, item)

    def _skip(self, index: int) -> None:
        self.host.step(self.graph.nodes[index].id, "skipped")
        self._settle(index, {})

    def _finish(self, index: int, outputs: dict[str, Json]) -> None:
        node = self.graph.nodes[index]
        # the others give what is there already; a map counts item by item
        if kind_of_node(node.type) in ("", "template"):
            self.keep(node, outputs.get(WHOLE, outputs))
        self.host.step(self.graph.nodes[index].id, "success")
        self._settle(index, outputs)

    def _settle(self, index: int, outputs: dict[str, Json]) -> None:
        self.given[index] = outputs
        self.left -= 1
        for name, slot in self.graph.outputs.get(index, ()):
            if slot in outputs and self.host.is_stream(name):
                if not self.streamed(index, slot):
                    value = outputs[slot]
                    self.push(index, name, value if is_list(value) else [value])
                self.host.settle(name)
            elif slot in outputs:
                self.host.give(name, outputs[slot])
            elif self._owed(index, slot):
                raise self._failed(self.graph.nodes[index], f"it gave no '{slot}'")
            else:
                self.host.settle(name)
        for target in self.graph.after[index]:
            self.waits[target] -= 1
            if not self.waits[target]:
                self.ready.append(target)

    def streamed(self, index: int, slot: str) -> bool:
        """Whether a node's slot was pushed item by item while it ran."""
        return kind_of_node(self.graph.nodes[index].type) == "map" and slot == "results"

    def push(self, index: int, name: str, items: list[Json]) -> None:
        """Items of a streamed output."""
        try:
            for item in items:
                self.host.push(name, item)
        except StreamFull as full:
            raise self._failed(self.graph.nodes[index], f"the stream '{name}': {full}") from None


class _Map:
    """A node that runs another one over each item of a list; the results are in the list's order."""

    def __init__(self, execution: _Execution, index: int, node: Node, inputs: dict[str, Json]) -> None:
        self.execution = execution
        self.index = index
        self.node = node
        self.inputs = inputs
        self.inner = inner_node(node)
        self.kind = kind_of_node(self.inner.type)
        host = execution.host
        self.slots = (kind_slots(self.kind, self.inner) if self.kind else host.slots(self.inner.type)) or Slots()
        self.into = item_slot(node, self.slots)
        self.results: dict[int, Json] = {}
        self.told = 0
        self.failed = False
        names = [name for name, slot in execution.graph.outputs.get(index, ()) if slot == "results"]
        self.names = [name for name in names if host.is_stream(name)]
        self.keeps = bool(execution.graph.after[index]) or not names or any(name not in host.streams for name in names)
        """Whether anything but a handle is given the results."""

    async def run(self) -> dict[str, Json]:
        node, host = self.node, self.execution.host
        fault = config_fault("map", node) or (config_fault(self.kind, self.inner) if self.kind else "")
        items = self.inputs.pop("items", None)
        if fault:
            raise self._refused(fault)
        if not is_list(items):
            raise self._refused("'items' is no list")
        if len(items) > MAX_ITEMS:
            raise self._refused(f"'items' has {len(items)} items; at most {MAX_ITEMS} are taken")
        left = iter(enumerate(items))
        workers = [asyncio.ensure_future(self._worker(left)) for _ in range(min(host.max_parallel, len(items)))]
        try:
            await asyncio.gather(*workers)
        except asyncio.CancelledError:
            for worker in workers:
                worker.cancel()
            raise
        except NodeFailed as failed:
            if node.on_error == STOP or failed.status == "cancelled":
                host.fail(failed)
            # what runs may end; no further item is begun
            self.failed = True
            await asyncio.wait(workers)
            raise
        except BaseException:
            host.stopping.set()
            await asyncio.wait(workers)
            raise
        if len(self.results) < len(items):
            # the run is ending: what was not begun is not judged
            raise NodeFailed(node.id, node.type, "cancelled", None)
        return {"results": [self.results[number] for number in range(len(items))]}

    def _refused(self, reason: str) -> NodeFailed:
        error = failure("WorkflowError", reason)
        self.execution.host.step(self.node.id, "error", error)
        return NodeFailed(self.node.id, self.node.type, "error", error)

    async def _worker(self, left: Iterator[tuple[int, Json]]) -> None:
        host = self.execution.host
        for number, item in left:
            if host.stopping.is_set() or self.failed:
                return
            try:
                self.results[number] = await self._one(number, item)
            except NodeFailed as failed:
                if self.node.config.get("onError") != "skip" or failed.status == "cancelled":
                    raise
                host.step(self.node.id, "running")
                self.results[number] = None
            if self.keeps:
                self.execution.keep(self.node, self.results[number], number)
            self._tell()
            if self.kind and number % BREATH == 0:
                await asyncio.sleep(0)

    async def _one(self, number: int, item: Json) -> Json:
        slot = self.slots.inputs.get(self.into)
        inputs = {
            **self.inner.inputs,
            **self.inputs,
            self.into: converted(item, slot.type) if slot is not None else item,
        }
        if self.kind:
            try:
                outputs = compute(self.kind, self.inner.config, inputs)
            except NodeError as reason:
                error = failure("WorkflowError", str(reason))
                self.execution.host.step(self.node.id, "error", error)
                raise NodeFailed(self.node.id, self.inner.type, "error", error, number) from None
            default = next(iter(outputs.values()), None)
        else:
            outputs = await self.execution.called(self.node, self.inner.type, inputs, number)
            default = outputs.get(WHOLE)
        wanted = self.node.config.get("output")
        return outputs.get(wanted) if isinstance(wanted, str) else default

    def _tell(self) -> None:
        """Streams the results that are there, in order."""
        while self.names and self.told in self.results:
            for name in self.names:
                self.execution.push(self.index, name, [self.results[self.told]])
            if not self.keeps:
                self.results[self.told] = None
            self.told += 1


def _step_status(status: str) -> Any:
    return status if status not in ("accepted", "inputRequired") else "error"
