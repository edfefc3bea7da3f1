"""``tools/call``: a call of one client from its params to its result. Loaded with the first call: a client that only lists does not wait for it.

What happened to a call is its result; an error is only a request that is no call. Holds no rules of its own.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ApprovalRequest, ExecutionResult, TaskProgress
from tamis.protocols.export.targets import has_output_schema
from tamis.protocols.observation import observation
from tamis.server.mcp.asking import CHOICES, CHOICES_ONCE, Answered, by_request, input_required
from tamis.server.mcp.content import call_result
from tamis.server.mcp.revisions import LEVELS, Peer, as_object
from tamis.server.rpc.session import Request
from tamis.server.runtime.calls.model import CallContext, CallRequest, OnOutput, OnProgress
from tamis.server.runtime.calls.runner import empty_result
from tamis.server.runtime.execution.approvals.questions import ApprovalUnknown
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.execution.tasks.tasks import ProgressReader
from tamis.server.runtime.observe.tracing import read_trace
from tamis.server.runtime.observe.trail import Caller
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from tamis.server.mcp.server import McpServer
    from tamis.server.mcp.tools import Tools
    from tamis.server.runtime.runtime import Runtime
    from tamis.server.runtime.tools.registry import Tool

MAX_PROGRESS = 1_000
"""So many notifications of progress has a call at most."""
STEP = 0.001
"""By so much words without a number move progress on, which must increase."""
MAX_QUESTIONS = 256
_ASKS_NOBODY: Mapping[str, bool] = {}
_NOTHING = Answered({}, CHOICES, {})
"""Of a call that answers no question."""


class HandedOut(msgspec.Struct, frozen=True):
    """A question that a client took with it."""

    question: ApprovalRequest
    result: dict[str, Any]
    """As it was put: it is put again where its answer is missing."""
    opens: bool
    """Whether the client shows addresses; its run may have one."""
    told: Told
    """Who is told of the call meanwhile, if it is a run that goes on."""


class Calls:
    """The calls of one client."""

    def __init__(self, server: McpServer, tools: Tools) -> None:
        self._server = server
        self._tools = tools
        self._calls = 0
        self._questions = server.kept.questions
        self._last: tuple[Peer, Caller] | None = None

    async def call(self, request: Request, peer: Peer, params: Mapping[str, Any]) -> dict[str, Any]:
        """``tools/call``."""
        runtime, tool = self._tools.find(params.get("name"))
        args, meta = params.get("arguments"), as_object(params.get("_meta"))
        if args is not None and not isinstance(args, dict):
            raise RpcError(INVALID_PARAMS, "wrong params: arguments are an object - at `/arguments`")
        choices = CHOICES if self._server.kept.listed else CHOICES_ONCE
        answered = _NOTHING
        if peer.modern and "requestState" in params:
            answered = Answered(params, choices, self._questions)
            answered.check(peer)
        handed_out = answered.handed_out
        if answered.is_missing:
            if handed_out is not None and runtime.parts.approvals.knows(answered.state):
                return handed_out.result
            raise _unknown_state("it was never given, is used, or has expired")
        told = Told(self._server, request, peer, tool.tool_id, meta.get("progressToken"))
        result = await self._run(request, peer, runtime, tool, cast("dict[str, Any]", args or {}), meta, answered, told)
        if result.status == "inputRequired" and result.approval is not UNSET and peer.elicits:
            asked = msgspec.convert(result.approval, ApprovalRequest)
            input_request = input_required(asked, tool.manifest.display_name, peer, choices)
            first = told if handed_out is None else handed_out.told
            self._questions[str(asked.token)] = HandedOut(asked, input_request, peer.opens, first)
            while len(self._questions) > MAX_QUESTIONS:
                del self._questions[next(iter(self._questions))]
            return input_request
        if result.status == "accepted" and result.task_id is not UNSET:
            return await self._server.tasks.begun(result.task_id)
        kept = self._server.shown.keep(result)
        return call_result(result, peer, has_schema=has_output_schema(tool.manifest), kept=kept)

    async def _run(
        self,
        request: Request,
        peer: Peer,
        runtime: Runtime,
        tool: Tool,
        args: dict[str, Any],
        meta: Mapping[str, Any],
        answered: Answered,
        told: Told,
    ) -> ExecutionResult:
        self._calls += 1
        # where a result may be read by whoever knows its name, nobody can guess the name
        call_id = f"call-{self._calls}" if self._server.kept.listed else f"call-{os.urandom(16).hex()}"
        if answered.closed:
            self._questions.pop(answered.state, None)
            runtime.parts.approvals.close_question(answered.state)
            return _closed(call_id, tool)
        call = CallRequest(
            call_id=call_id,
            name=tool.tool_id,
            args=args,
            wait=not peer.takes_tasks,
            approval=answered.token,
            told_later=True,
        )
        if answered.handed_out is not None:
            answered.handed_out.told.heir = told
        runtime.running += 1
        try:
            return await execute(call, self._context(request, peer, runtime, meta, told))
        except ApprovalUnknown as error:
            raise _unknown_state(str(error)) from None
        finally:
            told.over = True
            runtime.running -= 1
            if answered.state and not runtime.parts.approvals.knows(answered.state):
                self._questions.pop(answered.state, None)

    def _context(
        self, request: Request, peer: Peer, runtime: Runtime, meta: Mapping[str, Any], told: Told
    ) -> CallContext:
        parent, state = meta.get("traceparent"), meta.get("tracestate")
        trace = None
        if isinstance(parent, str):
            trace = read_trace(parent, state if isinstance(state, str) else None)
        ask, asking = None, _ASKS_NOBODY
        if peer.elicits:
            asking = {"polls": peer.modern, "elicits": True, "forms": True, "addresses": peer.opens}
            if not peer.modern:
                ask = by_request(partial(self._server.session.ask, about=request), peer.version)
        return runtime.call_context(
            ask=ask,
            asking=asking,
            on_output=told.on_output,
            on_progress=told.on_progress,
            cancelled=request.cancelled,
            afterwards=request.afterwards,
            caller=self._caller(peer),
            trace=trace,
        )

    def _caller(self, peer: Peer) -> Caller:
        last = self._last
        if last is None or last[0] is not peer:
            last = self._last = (peer, Caller("mcp", self._server.session_id, "", peer.name or UNSET))
        return last[1]


class Told:
    """What a client is told while a call runs: how far it is, and what the tool writes on standard error. Of a run that waits for its client
    it is the request that takes it up again that is told; between the two nobody is."""

    def __init__(self, server: McpServer, request: Request, peer: Peer, tool_id: str, token: object) -> None:
        self._server = server
        self._request = request
        self._tool_id = tool_id
        # a number with a fraction is as little a token as a truth value
        self._token = token if isinstance(token, str | int) and not isinstance(token, bool) else None
        level = peer.log_level or server.log_level
        self._logs = bool(level) and LEVELS.index(level) <= LEVELS.index("info")
        self._reader = ProgressReader(self._progress) if self._token is not None else None
        self._done = 0.0
        self._count = 0
        self.over = False
        """The request was answered."""
        self.heir: Told | None = None
        """The request that took the run up again."""

    @property
    def on_output(self) -> OnOutput | None:
        """Who takes the output of the call; None: nobody wants it."""
        return self._piece if self._token is not None or self._logs else None

    @property
    def on_progress(self) -> OnProgress | None:
        """Who takes words about the call; None: nobody wants them."""
        return self._words if self._token is not None else None

    def _piece(self, call_id: str, stream: str, text: str) -> None:
        if self.heir is not None:
            self.heir._piece(call_id, stream, text)
            return
        if stream != "stderr" or self.over:
            return
        if self._reader is not None:
            self._reader.piece(text)
        if self._logs and not self._request.cancelled.is_set():
            params = {"level": "info", "logger": self._tool_id, "data": text}
            self._server.session.notify("notifications/message", params, droppable=True, about=self._request)

    def _words(self, _call_id: str, text: str) -> None:
        self._progress(TaskProgress(message=text))

    def _progress(self, task_progress: TaskProgress) -> None:
        if self._request.cancelled.is_set() or self._count >= MAX_PROGRESS:
            return
        done = self._done + STEP
        if (
            task_progress.progress is not UNSET
            and math.isfinite(task_progress.progress)
            and task_progress.progress > self._done
        ):
            done = task_progress.progress
        self._done, self._count = done, self._count + 1
        params: dict[str, Any] = {"progressToken": self._token, "progress": done}
        if task_progress.total is not UNSET:
            params["total"] = task_progress.total
        if task_progress.message is not UNSET:
            params["message"] = task_progress.message
        self._server.session.notify("notifications/progress", params, droppable=True, about=self._request)


def _closed(call_id: str, tool: Tool) -> ExecutionResult:
    result = empty_result(call_id, tool.tool_id, "cancelled", version=tool.version)
    result.observation = observation(result, "action")
    return result


def _unknown_state(why: str) -> RpcError:
    return RpcError(INVALID_PARAMS, f"wrong params: this state answers nothing here: {why} - at `/requestState`")
