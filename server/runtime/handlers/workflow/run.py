"""One run of a workflow as an engine sees it: tools are called through it, nodes tell their states, values and stream items are given.

A node's call is a call like any other: the same approvals, policy, rights, rates and audit. Only the agent's inventory does not bound it: who lists a
workflow lists what it is made of. Must not know engines.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from contextvars import ContextVar
from typing import Any, cast

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import (
    ApprovalNode,
    ExecutionError,
    ExecutionResult,
    StepChanged,
    StepStatus,
    WorkflowStep,
)
from tamis.protocols.workflow.model import Slots
from tamis.server.runtime.calls.model import CallRequest
from tamis.server.runtime.calls.outputs import NotJsonError, as_json
from tamis.server.runtime.calls.runner import Invocation
from tamis.server.runtime.handlers.script.judge import masked
from tamis.server.runtime.handlers.workflow.engine import BUILT_IN, EngineError, NodeFailed
from tamis.server.runtime.handlers.workflow.streams import Stream, StreamFull
from tamis.server.runtime.observe.masking import result_without, secret_texts
from tamis.server.runtime.observe.trail import Trail
from tamis.server.runtime.settings.profile import AgentRules
from tamis.server.runtime.tools.workflows import RegistryTypes

MAX_LOGS = 200
MAX_HELD_BYTES = 64 * 1024 * 1024
"""What the nodes of one run give together; what a map only streams is not kept and not counted."""
_OPEN = ("pending", "running")
_GOES_ON = ("running", "success")
_outer: ContextVar[tuple[Trail, ...]] = ContextVar("outer", default=())
"""The trails of the workflows that the current node's call is in, from the outside."""


class Run:
    """What an engine may use while it runs a payload."""

    def __init__(self, call: Invocation, workflow_id: str, payload: dict[str, Any]) -> None:
        self._call = call
        self.workflow_id = workflow_id
        self.max_parallel = max(1, min(call.context.settings.engine.max_parallel, 64))
        """How many calls may run at once."""
        self.turns = asyncio.Semaphore(self.max_parallel)
        self.stopping = asyncio.Event()
        """Set when the run is to end: cancelled, out of time, or failed elsewhere."""
        self.failed: NodeFailed | None = None
        """The first node that failed; what is cancelled because of it is no failure of its own."""
        self.types = RegistryTypes(call.context.registry)
        self.outputs: dict[str, Any] = {}
        self.settled: set[str] = set()
        """The outputs of which it is known what they are, or that they have no value."""
        self.streams: dict[str, Stream] = {}
        self.collected: dict[str, list[Any]] = {}
        self.kept: dict[str, list[Any]] | None = None
        """The items of streams besides what waits to be read, for whoever asks by the call's key later; None where nobody can."""
        self.kept_too_much = False
        self._pushed: dict[str, tuple[int, hashlib.blake2b]] = {}
        """For each streamed output of another engine how many items were pushed, and their digest."""
        self._kept_bytes = 0
        self._began = time.perf_counter()
        self._steps: dict[str, WorkflowStep] = {
            str(node.get("id", "")): WorkflowStep(
                node_id=str(node.get("id", "")), type=str(node.get("fullType", "")), status="pending"
            )
            for node in payload.get("nodes", ())
        }
        self._agent = inner_rules(call.context.agent)
        self._held = 0
        self._trails = (*_outer.get(), call.trail)
        self._changed = asyncio.Event()

    # what an engine tells

    def step(self, node_id: str, status: StepStatus, error: ExecutionError | None = None) -> None:
        """A node is in another state; the host is told."""
        step = self._steps.get(node_id)
        if step is None or (_has_failed(step) and status not in _GOES_ON and not _explains(step, status, error)):
            return  # items of one node: what is cancelled because of a failure, or fails after it, does not hide it
        now = round((time.perf_counter() - self._began) * 1000, 3)
        step.status = status
        if step.started_ms is UNSET and status != "skipped":
            step.started_ms = now
        if status not in _OPEN and step.started_ms is not UNSET:
            step.duration_ms = round(now - step.started_ms, 3)
        elif status == "running":
            step.duration_ms = UNSET
        if error is not None:
            step.error = error
        elif status in _GOES_ON:
            step.error = UNSET  # an item that is passed over is no failure of its node
        if self._call.services.host is None:
            return
        change = StepChanged(workflow_id=self.workflow_id, call_id=self._call.request.call_id, step=step)
        self._call.services.tell("workflow/stepChanged", msgspec.to_builtins(change))

    def fail(self, failed: NodeFailed) -> None:
        """A node has failed, and the run with it: whatever still runs is to end, and cannot become the run's reason any more."""
        if self.failed is None and failed.status != "cancelled":
            self.failed = failed
        self.stopping.set()

    def give(self, name: str, value: Any) -> None:
        """The value of an output of the interface, as soon as it is known."""
        self.outputs[name] = value
        self.settle(name)

    def settle(self, name: str) -> None:
        """An output is known, or is known to have no value."""
        self.settled.add(name)
        self._changed.set()

    def is_stream(self, name: str) -> bool:
        """Whether the items of an output are pushed one by one."""
        return name in self.streams or name in self.collected

    def push(self, name: str, item: Any) -> None:
        """One more item of a streamed output. Raises ``StreamFull``, and ``EngineError`` for what is no JSON."""
        if self._call.context.settings.engine.type != BUILT_IN:
            try:
                item, _ = as_json(item)
            except NotJsonError as error:
                raise EngineError(f"an item of the engine's output '{name[:100]}' is no JSON: {error}") from None
        if self.is_stream(name) and self._call.context.settings.engine.type != BUILT_IN:
            count, digest = self._pushed.get(name) or (0, hashlib.blake2b())
            digest.update(_spelled(item))
            self._pushed[name] = (count + 1, digest)
        if name in self.streams:
            size = self.streams[name].push(item)
            if self.kept is not None:
                self._keep(self.kept.setdefault(name, []), item, size)
        elif name in self.collected:
            if len(self.collected[name]) >= MAX_COLLECTED:
                raise StreamFull(f"more than {MAX_COLLECTED} items")
            self.collected[name].append(item)

    def push_rest(self, name: str, value: Any) -> None:
        """The items of a streamed output that stand in an engine's final outputs: those that were pushed already, repeated there, are not pushed again.

        Raises what ``push`` raises.
        """
        items = cast("list[Any]", value) if isinstance(value, list) else [value]
        before = self._pushed.get(name)
        if before is not None and len(items) >= before[0]:
            again = hashlib.blake2b()
            for item in items[: before[0]]:
                again.update(_spelled(item))
            items = items[before[0] :] if again.digest() == before[1].digest() else items
        for item in items:
            self.push(name, item)

    def _keep(self, kept: list[Any], item: Any, size: int) -> None:
        self._kept_bytes += size
        if len(kept) >= MAX_COLLECTED or self._kept_bytes > MAX_HELD_BYTES:
            self.kept, self.kept_too_much = None, True
            return
        kept.append(item)

    def hold(self, value: Any) -> str:
        """Counts a value that is kept until the run ends; why that is too much, or an empty text."""
        try:
            self._held += len(value) if isinstance(value, str) else len(msgspec.json.encode(value))
        except (OverflowError, RecursionError, UnicodeEncodeError):
            self._held += 64
        if self._held <= MAX_HELD_BYTES:
            return ""
        return f"the results of all nodes have more than {MAX_HELD_BYTES} bytes together; give less, or make the output a stream"

    def slots(self, node_type: str) -> Slots | None:
        """The slots of a tool, or None where there is no such tool."""
        return self.types.slots(node_type)

    async def call(
        self, node_id: str, node_type: str, args: dict[str, Any], item: int | None = None, *, retry: int = 0
    ) -> ExecutionResult:
        """Has a tool called for a node, up to ``retry`` times more while it fails, and waits for its turn and its end. What happened is in the result's ``status``; never raises for it."""
        outer = self._call
        suffix = node_id if item is None else f"{node_id}[{item}]"
        request = CallRequest(
            call_id=f"{outer.request.call_id}/{suffix}",
            name=node_type,
            args=args,
            wait=True,
            ask=outer.request.ask,
            style=outer.request.style,
            node=ApprovalNode(workflow_id=self.workflow_id, node_id=node_id, item=UNSET if item is None else item),
        )
        context = outer.context.having(
            cancelled=self.stopping,
            agent=self._agent,
            polls=False,
            asked_ahead=None,
            asks_together=False,
            # not every node marks what the workflow was given as a secret
            secrets=outer.trail.secrets,
        )
        async with self.turns:
            token = _outer.set(self._trails)
            try:
                result = await outer.run_call(request, context, 1 + retry)
            finally:
                _outer.reset(token)
        self._account(result, args, node_type)
        return result

    def _account(self, result: ExecutionResult, args: dict[str, Any], node_type: str) -> None:
        usage = self._call.result.usage
        usage.cpu_ms = round(usage.cpu_ms + result.usage.cpu_ms, 3)
        usage.max_rss_bytes = max(usage.max_rss_bytes, result.usage.max_rss_bytes)
        tool = self._call.context.registry.get(node_type)
        secrets = () if tool is None else secret_texts(args, masked(args, tool))
        # what a node is given as a secret is none of the workflow's own arguments, and may be in what it gives
        for trail in self._trails:
            trail.keep_secret(secrets)
        if result.status != "success":
            logs = self._call.result.logs
            # the failing node's words say what the workflow's own result cannot
            self._call.result.logs = [*logs, *result.logs][:MAX_LOGS]
            if result.error is not UNSET:
                result.error = result_without(result, self._call.trail.secrets).error

    # what the runner looks at

    @property
    def elapsed_ms(self) -> float:
        """How long it has run."""
        return round((time.perf_counter() - self._began) * 1000, 3)

    def steps(self) -> list[WorkflowStep]:
        """Every node with its state, in the payload's order."""
        return list(self._steps.values())

    def finish(self, node_id: str) -> None:
        """A node has succeeded, unless something else was told of it: engines elsewhere need not tell every step."""
        step = self._steps.get(node_id)
        if step is not None and step.status in _OPEN:
            self.step(node_id, "success")

    def finish_all(self) -> None:
        """The run has succeeded, so that what no state was told of has too."""
        for node_id in self._steps:
            self.finish(node_id)

    def close_steps(self) -> None:
        """Nodes that were not reached or not finished are cancelled."""
        for step in self._steps.values():
            if step.status in _OPEN:
                self.step(step.node_id, "cancelled")

    async def until_settled(self, names: set[str]) -> None:
        """Waits until all of these outputs are known."""
        while not names <= self.settled:
            self._changed.clear()
            await self._changed.wait()


MAX_COLLECTED = 10_000


def _spelled(item: Any) -> bytes:
    try:
        return msgspec.json.encode(item) + b"\n"
    except (OverflowError, RecursionError, UnicodeEncodeError):  # as JSON has it all the same, by another writer
        return repr(item).encode("utf-8", "backslashreplace") + b"\n"


def _has_failed(step: WorkflowStep) -> bool:
    return step.status not in (*_OPEN, "success", "skipped", "cancelled")


def _explains(step: WorkflowStep, status: StepStatus, error: ExecutionError | None) -> bool:
    """Whether this is the cause of a failure that was told without one."""
    return status == step.status and step.error is UNSET and error is not None


def inner_rules(agent: AgentRules) -> AgentRules:
    """What bounds the nodes of a workflow that an agent calls: all that bounds the agent, without its inventory; a tool that the profile
    switches off by name stays off."""
    profile = agent.profile
    if profile is None:
        return agent
    config = msgspec.structs.replace(profile.config, default_tool_enabled=True)
    return msgspec.structs.replace(agent, profile=msgspec.structs.replace(profile, inventory=None, config=config))
