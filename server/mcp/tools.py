"""``tools/list``, ``tools/call`` and ``tasks/…``: the registered tools that can be called now, under names that every client takes.

A name leads back to one tool, for the names of all tools are made together and none twice. What happened to a call is its result; an error is only
a request that is no call. Holds no rules of its own.
"""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from collections.abc import Awaitable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import Task
from tamis.protocols.export.targets import export_tool, has_output_schema
from tamis.protocols.suggest import best, hint
from tamis.server.mcp.revisions import (
    MISSING_CAPABILITY,
    NAMESPACE,
    SERVER,
    TASKS,
    Peer,
    completed,
)
from tamis.server.rpc.session import Request
from tamis.server.runtime.texts.exports import exported_names
from tamis.server.runtime.tools.registry import Registry, Tool
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from tamis.server.mcp.calling import Calls, HandedOut
    from tamis.server.mcp.server import McpServer
    from tamis.server.runtime.handlers.runners import Ready
    from tamis.server.runtime.runtime import Runtime

PAGE = 250
TTL_MS = 5_000
"""For so long a client may keep a list: as long as a changed folder may go unseen by a client that listens to no notifications."""
MAX_CURSOR_CHARS = 8_192
POLL_MS = 1_000
"""A client is asked to wait so long between two looks at a task."""


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
        self.result_bytes = 0
        """Their size together."""


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
        self._last: tuple[Registry, Offered] | None = None
        self._several: tuple[Sequence[Registry], Offered] | None = None

    def of(self, registries: Sequence[Registry]) -> Offered:
        """Those of a client's folders."""
        if len(registries) > 1:
            if self._several is None or self._several[0] != registries:
                self._several = (registries, Offered(registries))
            return self._several[1]
        registry, last = registries[0], self._last
        if last is not None and last[0] is registry:
            return last[1]
        offered = self._known.get(registry)
        if offered is None:
            offered = self._known[registry] = Offered(registries)
        self._last = (registry, offered)
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
        tool, runtime = offered.by_name.get(known), runtimes[offered.folder(known) if len(runtimes) > 1 else 0]
        if tool is None or not runtime.may_call(tool):
            near = hint(best(name, self.names()))
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {name[:200]}{near}")
        return runtime, tool

    @cached_property
    def calls(self) -> Calls:
        """What runs calls; loaded with the first one."""
        from tamis.server.mcp.calling import Calls

        return Calls(self._server, self)

    def call(self, request: Request, peer: Peer, params: Mapping[str, Any]) -> Awaitable[dict[str, Any]]:
        """``tools/call``."""
        return self.calls.call(request, peer, params)


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
