"""``tools/list``, ``tools/call`` and ``tasks/…``: the registered tools that can be called now, under names that every client takes.

A name leads back to one tool, for the names of all tools are made together and none twice. What happened to a call is its result; an error is only
a request that is no call. Holds no rules of its own.
"""

from __future__ import annotations

import base64
import binascii
import math
import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ApprovalRequest, ExecutionResult, Task, TaskProgress
from tamis.protocols.export.targets import export_tool, has_output_schema
from tamis.protocols.suggest import best, hint
from tamis.server.mcp.revisions import (
    LEVELS,
    MISSING_CAPABILITY,
    NAMESPACE,
    SERVER,
    TASKS,
    Peer,
    as_object,
    completed,
)
from tamis.server.rpc.session import Request
from tamis.server.runtime.texts.exports import exported_names
from tamis.server.runtime.tools.registry import Registry, Tool
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from tamis.server.mcp import asking
    from tamis.server.mcp.server import McpServer
    from tamis.server.runtime.calls.model import CallContext, OnOutput, OnProgress
    from tamis.server.runtime.handlers.runners import Ready
    from tamis.server.runtime.runtime import Runtime

PAGE = 250
TTL_MS = 5_000
"""For so long a client may keep a list: as long as a changed folder may go unseen by a client that listens to no notifications."""
MAX_CURSOR_CHARS = 8_192
MAX_PROGRESS = 1_000
"""So many notifications of progress has a call at most."""
STEP = 0.001
"""By so much words without a number move progress on, which must increase."""
MAX_QUESTIONS = 256
POLL_MS = 1_000
"""A client is asked to wait so long between two looks at a task."""


class HandedOut(msgspec.Struct, frozen=True):
    """A question that a client took with it."""

    question: ApprovalRequest
    result: dict[str, Any]
    """As it was put: it is put again where its answer is missing."""
    opens: bool
    """Whether the client shows addresses; its run may have one."""
    told: _Told
    """Who is told of the call meanwhile, if it is a run that goes on."""


class Kept:
    """What is kept between the requests of one client; of those who have no session, together for all."""

    def __init__(self, *, listed: bool) -> None:
        self.listed = listed
        """Whether it is one client's: then that one may be shown what there is, and an answer may hold for its session. What is kept for
        several clients is found by a name alone that only the one who was given it knows."""
        self.questions: dict[str, HandedOut] = {}
        """The questions that were handed out, by their state."""
        self.results: OrderedDict[str, bytes] = OrderedDict()
        """The last results, by call."""


class Offered:
    """The tools of a client's folders under their MCP names, newest version each; of two with one name or id that of the first folder."""

    def __init__(self, registries: Sequence[Registry]) -> None:
        self.tools: list[tuple[str, Tool]] = []
        self.by_name: dict[str, Tool] = {}
        self._folders: dict[str, int] = {}
        self._registries = registries
        self._spellings: dict[str, str] | None = None
        self._definitions: dict[str, msgspec.Raw] = {}
        ids: set[str] = set()
        for index, registry in enumerate(registries):
            names = exported_names(registry, "mcp")
            for tool in registry.current():
                name = names[tool.tool_id]
                if name not in self.by_name and tool.tool_id not in ids:
                    self.by_name[name] = tool
                    self.tools.append((name, tool))
                    ids.add(tool.tool_id)
                    if index:
                        self._folders[name] = index
        if self._folders:
            self.tools.sort(key=lambda named: named[1].tool_id)

    def folder(self, name: str) -> int:
        """Which of the folders a tool is from."""
        return self._folders.get(name, 0)

    def name_of(self, spelling: str) -> str:
        """The name that a client means: its own word, or a name that it makes of one that it was told, as Cursor does; empty for neither."""
        if spelling in self.by_name:
            return spelling
        if self._spellings is None:
            ids = {tool.tool_id: name for name, tool in self.tools}
            self._spellings = {
                other: ids[tool_id]
                for registry in reversed(self._registries)
                for tool_id, other in exported_names(registry, "cursor").items()
                if tool_id in ids
            }
        return self._spellings.get(spelling, "")

    def definition(self, name: str) -> msgspec.Raw:
        """A tool as lists show it."""
        encoded = self._definitions.get(name)
        if encoded is None:
            definition = export_tool(self.by_name[name].manifest, "mcp", name).definition
            encoded = self._definitions[name] = msgspec.Raw(msgspec.json.encode(definition))
        return encoded


class OfferedTools:
    """The same of the registries that are still in use, for all clients of one server."""

    def __init__(self) -> None:
        # a registry is replaced as a whole, never changed
        self._known: WeakKeyDictionary[Registry, Offered] = WeakKeyDictionary()
        self._several: tuple[Sequence[Registry], Offered] | None = None

    def of(self, registries: Sequence[Registry]) -> Offered:
        """Those of a client's folders."""
        if len(registries) > 1:
            if self._several is None or self._several[0] != registries:
                self._several = (registries, Offered(registries))
            return self._several[1]
        offered = self._known.get(registries[0])
        if offered is None:
            offered = self._known[registries[0]] = Offered(registries)
        return offered


class Tools:
    """The tools, for one client."""

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._calls = 0
        self._questions = server.kept.questions

    def offered(self) -> Offered:
        """The tools in force."""
        return self._server.offered.of([runtime.registry for runtime in self._server.runtimes])

    def runtime_of(self, name: str) -> Runtime:
        """What is in force where the tool of a name is from."""
        return self._server.runtimes[self.offered().folder(name)]

    @property
    def runtime(self) -> Runtime:
        """What is in force in the client's first folder."""
        return self._server.runtime

    def page(self, cursor: object) -> tuple[list[tuple[str, Tool]], str]:
        """What can be called now, by id: one page, and the cursor of the next one. Raises ``RpcError`` for a cursor that no page gave."""
        offered, runtimes, after = self.offered(), self._server.runtimes, read_cursor(cursor)
        shown: list[tuple[str, Tool]] = []
        ready: list[Ready] = [set() for _ in runtimes]
        for name, tool in offered.tools:
            folder = offered.folder(name)
            runtime = runtimes[folder]
            if tool.tool_id <= after or not runtime.may_call(tool) or runtime.why_not(tool, ready[folder]):
                continue
            if len(shown) == PAGE:
                return shown, write_cursor(shown[-1][1].tool_id)
            shown.append((name, tool))
        return shown, ""

    def list(self, peer: Peer, params: Mapping[str, Any]) -> dict[str, Any]:
        """``tools/list``."""
        page, more = self.page(params.get("cursor"))
        members: dict[str, Any] = {"tools": [self.offered().definition(name) for name, _ in page]}
        if more:
            members["nextCursor"] = more
        return completed(peer, members, ttl_ms=TTL_MS)

    def names(self) -> list[str]:
        """The names of all tools that may be called."""
        return [name for name, tool in self.offered().tools if self.runtime_of(name).may_call(tool)]

    def has_schema(self, tool_id: str) -> bool:
        """Whether a tool is listed with an ``outputSchema``."""
        tools = (runtime.registry.get(tool_id) for runtime in self._server.runtimes)
        tool = next((tool for tool in tools if tool is not None), None)
        return tool is not None and has_output_schema(tool.manifest)

    def find(self, name: object) -> tuple[Runtime, Tool]:
        """The tool of a name that lists may show, and what is in force where it is from. Raises ``RpcError``."""
        if not isinstance(name, str):
            raise RpcError(INVALID_PARAMS, "wrong params: a call needs the text `name` - at `/name`")
        runtimes = self._server.runtimes
        offered = self._server.offered.of([runtime.registry for runtime in runtimes])
        known = name if name in offered.by_name else offered.name_of(name)
        tool, runtime = offered.by_name.get(known), runtimes[offered.folder(known)]
        if tool is None or not runtime.may_call(tool):
            near = hint(best(name, self.names()))
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {name[:200]}{near}")
        return runtime, tool

    async def call(self, request: Request, peer: Peer, params: Mapping[str, Any]) -> dict[str, Any]:
        """``tools/call``."""
        # what runs calls is loaded with the first one: a client that only lists does not wait for it
        from tamis.server.mcp.asking import CHOICES, CHOICES_ONCE, Answered, input_required
        from tamis.server.mcp.content import call_result

        runtime, tool = self.find(params.get("name"))
        if not isinstance(params.get("arguments", {}), dict | None):
            raise RpcError(INVALID_PARAMS, "wrong params: arguments are an object - at `/arguments`")
        choices = CHOICES if self._server.kept.listed else CHOICES_ONCE
        answered = Answered(params if peer.modern else {}, choices, self._questions)
        answered.check(peer)
        handed_out = answered.handed_out
        if answered.is_missing:
            if handed_out is not None and runtime.parts.approvals.knows(answered.state):
                return handed_out.result
            raise _unknown_state("it was never given, is used, or has expired")
        told = _Told(self._server, request, peer, tool.tool_id, as_object(params.get("_meta")).get("progressToken"))
        result = await self._run(request, peer, runtime, tool, params, answered, told)
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
        params: Mapping[str, Any],
        answered: asking.Answered,
        told: _Told,
    ) -> ExecutionResult:
        from tamis.server.runtime.calls.model import CallRequest
        from tamis.server.runtime.execution.approvals.questions import ApprovalUnknown
        from tamis.server.runtime.execution.pipeline import execute

        self._calls += 1
        # where a result may be read by whoever knows its name, nobody can guess the name
        call_id = f"call-{self._calls}" if self._server.kept.listed else f"call-{os.urandom(16).hex()}"
        if answered.closed:
            self._questions.pop(answered.state, None)
            runtime.parts.approvals.close_question(answered.state)
            return _closed(call_id, tool)
        args = as_object(params.get("arguments"))
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
            return await execute(call, self._context(request, peer, runtime, as_object(params.get("_meta")), told))
        except ApprovalUnknown as error:
            raise _unknown_state(str(error)) from None
        finally:
            told.over = True
            runtime.running -= 1
            if not runtime.parts.approvals.knows(answered.state):
                self._questions.pop(answered.state, None)

    def _context(
        self, request: Request, peer: Peer, runtime: Runtime, meta: Mapping[str, Any], told: _Told
    ) -> CallContext:
        from tamis.server.mcp.asking import by_request
        from tamis.server.runtime.observe.tracing import read_trace
        from tamis.server.runtime.observe.trail import Caller

        server = self._server
        parent, state = meta.get("traceparent"), meta.get("tracestate")
        asks = peer.elicits
        return runtime.call_context(
            ask=by_request(partial(server.session.ask, about=request), peer.version)
            if asks and not peer.modern
            else None,
            asking={"polls": peer.modern and asks, "elicits": asks, "forms": asks, "addresses": asks and peer.opens},
            on_output=told.on_output,
            on_progress=told.on_progress,
            cancelled=request.cancelled,
            afterwards=request.afterwards,
            caller=Caller("mcp", server.session_id, "", peer.name or UNSET),
            trace=read_trace(parent if isinstance(parent, str) else None, state if isinstance(state, str) else None),
        )


class _Told:
    """What a client is told while a call runs: how far it is, and what the tool writes on standard error. Of a run that waits for its client
    it is the request that takes it up again that is told; between the two nobody is."""

    def __init__(self, server: McpServer, request: Request, peer: Peer, tool_id: str, token: object) -> None:
        from tamis.server.runtime.execution.tasks.tasks import ProgressReader

        self._server = server
        self._request = request
        self._tool_id = tool_id
        # a number with a fraction is as little a token as a truth value
        self._token = token if isinstance(token, str | int) and not isinstance(token, bool) else None
        level = peer.log_level or server.log_level
        self._logs = bool(level) and LEVELS.index(level) <= LEVELS.index("info")
        self._reader = ProgressReader(self._progress)
        self._done = 0.0
        self._count = 0
        self.over = False
        """The request was answered."""
        self.heir: _Told | None = None
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
        if self._token is not None:
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
    from tamis.protocols.observation import observation
    from tamis.server.runtime.calls.runner import empty_result

    result = empty_result(call_id, tool.tool_id, "cancelled", version=tool.version)
    result.observation = observation(result, "action")
    return result


def _unknown_state(why: str) -> RpcError:
    return RpcError(INVALID_PARAMS, f"wrong params: this state answers nothing here: {why} - at `/requestState`")


def write_cursor(after: str, kind: str = "t") -> str:
    """Where the next page begins: behind this id; ``kind``: of what it is one, in one letter."""
    return base64.urlsafe_b64encode(f"{kind}:{after}".encode()).decode("ascii").rstrip("=")


def read_cursor(cursor: object, kind: str = "t") -> str:
    """The id that a page goes on behind; empty for the first page. Raises ``RpcError``."""
    if cursor is None:
        return ""
    if isinstance(cursor, str) and len(cursor) <= MAX_CURSOR_CHARS:
        try:
            raw = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), b"-_", validate=True)
            if raw.startswith(f"{kind}:".encode()):
                return raw[2:].decode("utf-8")
        except (binascii.Error, ValueError):
            pass
    raise RpcError(INVALID_PARAMS, "wrong params: not a cursor of an earlier answer - at `/cursor`")


# Tasks (the extension `io.modelcontextprotocol/tasks`, of the stateless revision)


class TaskMethods:
    """The tasks, for one client."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    async def begun(self, task_id: str) -> dict[str, Any]:
        """The result of a call that became a task."""
        task = await self._found(task_id)
        return {"resultType": "task", **self._shown(task), "_meta": {f"{NAMESPACE}serverInfo": SERVER}}

    async def get(self, peer: Peer, params: Mapping[str, Any]) -> dict[str, Any]:
        """``tasks/get``: how a task is, with the result of one that has ended. A tool that failed has a result too."""
        from tamis.server.mcp.content import call_result

        task = await self._found(_task_id(peer, params))
        told = self._shown(task)
        if told["status"] == "completed":
            result = await self._tools.runtime.parts.tasks.result(task.task_id)
            if result is None:
                raise _unknown_task(task.task_id)
            told["result"] = call_result(result, peer, has_schema=self._tools.has_schema(task.tool_id))
        return completed(peer, told)

    async def update(self, peer: Peer, params: Mapping[str, Any]) -> dict[str, Any]:
        """``tasks/update``: a task of Tamis asks before it begins, so no answer is waited for."""
        await self._found(_task_id(peer, params))
        return completed(peer, {})

    async def cancel(self, peer: Peer, params: Mapping[str, Any]) -> dict[str, Any]:
        """``tasks/cancel``."""
        task_id = _task_id(peer, params)
        if await self._tools.runtime.parts.tasks.cancel(task_id) is None:
            raise _unknown_task(task_id)
        return completed(peer, {})

    async def _found(self, task_id: str) -> Task:
        task = await self._tools.runtime.parts.tasks.get(task_id)
        if task is None:
            raise _unknown_task(task_id)
        return task

    def _shown(self, task: Task) -> dict[str, Any]:
        kept = self._tools.runtime.settings.tasks.keep_seconds
        told: dict[str, Any] = {
            "taskId": task.task_id,
            # a tool that failed has completed in MCP's sense; ``failed`` there is an error of the request
            "status": {"completed": "completed", "failed": "completed", "cancelled": "cancelled"}.get(
                task.status, "working"
            ),
            "createdAt": task.created_at,
            "lastUpdatedAt": task.created_at if task.ended_at is UNSET else task.ended_at,
            "ttlMs": round(kept * 1000),
            "pollIntervalMs": POLL_MS,
        }
        if task.progress is not UNSET and task.progress.message is not UNSET:
            told["statusMessage"] = task.progress.message
        return told


def _task_id(peer: Peer, params: Mapping[str, Any]) -> str:
    if not peer.takes_tasks:
        needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
        raise RpcError(MISSING_CAPABILITY, "Missing required client capability", needed)
    task_id = params.get("taskId")
    if not isinstance(task_id, str):
        raise RpcError(INVALID_PARAMS, "wrong params: a task has a `taskId` - at `/taskId`")
    return task_id


def _unknown_task(task_id: str) -> RpcError:
    text = f"no task '{task_id[:200]}'; it was never there, or it is forgotten (tasks.keepSeconds, tasks.keep)"
    return RpcError(INVALID_PARAMS, text)
