"""The methods of ``tamis rpc``: params in, contract structs out. A thin face of the runtime; holds no rules of its own."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import unquote, urlparse

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from tamis import __version__
from tamis.protocols.contract import RPC_VERSION, ExecutionResult, ParseResult
from tamis.protocols.plugins import known_protocols
from tamis.protocols.positions import PositionEncoding
from tamis.protocols.reader import read_text
from tamis.protocols.wire import parse_result
from tamis.server.rpc import grammars, prompts, repairs, streams, writing
from tamis.server.rpc.aside import aside
from tamis.server.rpc.errors import named_error
from tamis.server.rpc.params import P, Params, ReadingOptions, check_protocol, check_size, given, read_params
from tamis.server.rpc.session import Method, Request, Session
from tamis.server.runtime.calls import Answer, Ask, CallRequest, OnOutput, OnProgress, Question, Surroundings
from tamis.server.runtime.config import find_root
from tamis.server.runtime.execute import execute
from tamis.server.runtime.health import health, limits, sandbox_state
from tamis.server.runtime.runtime import InlineTool, Runtime, ToolFilter
from tamis.server.runtime.text import TextOptions, execute_text
from tamis.server.runtime.trail import Caller
from tamis.server.wire.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, RpcError

LARGE_TEXT = 1 << 18
"""From so many characters on a text is read in a thread, so that other requests are answered meanwhile."""
_ENCODINGS: tuple[PositionEncoding, ...] = ("utf-32", "utf-8", "utf-16")


class _Empty(Params):
    pass


class _List(Params, kw_only=True):
    filter: ToolFilter | None = None
    view: Literal["summary", "full"] = "summary"
    cursor: str | None = None
    limit: int | None = None


class _Describe(Params, kw_only=True):
    tool_id: str
    version: str | None = None
    as_: Literal["native"] = msgspec.field(default="native", name="as")


class _Parse(Params, kw_only=True):
    text: str
    protocol: str = "auto"
    complete: bool = True
    tools: list[InlineTool] = msgspec.field(default_factory=list[InlineTool])
    options: ReadingOptions | None = None


class _Validate(Params, kw_only=True):
    tool_id: str | None = None
    args: dict[str, Any] | None = None
    calls: list[dict[str, Any]] | None = None
    manifest: dict[str, Any] | str | None = None
    tools: list[InlineTool] = msgspec.field(default_factory=list[InlineTool])


class _Context(Params, kw_only=True):
    session_id: str | None = None
    agent_id: str | None = None


class _Running(Params, kw_only=True):
    timeout_ms: int | None = None
    idempotency_key: str = ""
    dry_run: bool = False
    output: Literal["stream", "buffer"] | None = None
    context: _Context | None = None
    work_done_token: str | int | None = None


class _Execute(_Running, kw_only=True):
    tool_id: str | None = None
    version: str | None = None
    args: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    call: dict[str, Any] | None = None


class _ExecuteText(_Running, kw_only=True):
    text: str
    protocol: str = "auto"
    complete: bool = True
    mode: Literal["sequential", "parallel"] = "sequential"
    on_error: Literal["stop", "continue"] | None = None
    options: ReadingOptions | None = None


class RpcServer:
    """The state of one client: its root, what it can do, how it counts positions."""

    def __init__(self, root: Path | None) -> None:
        self._given_root = root
        self._runtime: Runtime | None = None
        self._initialized = False
        self._shut_down = False
        self._trusted = True
        self._encoding: PositionEncoding | None = None
        self._approval = "none"
        self._streams = False
        self._calls = 0
        self.session = Session(
            {
                "initialize": Method(self._initialize),
                "shutdown": Method(self._shutdown),
                "tool/list": self._method(_List, self._list),
                "tool/describe": self._method(_Describe, self._describe),
                "tool/parse": self._method(_Parse, self._parse),
                "tool/validate": self._method(_Validate, self._validate),
                "tool/execute": self._method(_Execute, self._execute, finishes=True),
                "tool/executeText": self._method(_ExecuteText, self._execute_text, finishes=True),
                "registry/reload": self._method(_Empty, self._reload),
                "server/health": self._method(_Empty, self._health),
            }
            | {
                name: self._method(kind, handler)
                for group in (streams, writing, prompts, grammars, repairs)
                for name, (kind, handler) in group.methods(self).items()
            }
        )

    @property
    def encoding(self) -> PositionEncoding | None:
        """The negotiated position encoding; None without ``initialize``."""
        return self._encoding

    @property
    def runtime(self) -> Runtime:
        """The runtime; without ``initialize`` its root is ``--root``, else the folder that the daemon was started in."""
        if self._runtime is None:
            self._runtime = Runtime(self._given_root or find_root(Path.cwd()))
            self._runtime.log_level = self._runtime.settings.log_level
            self._runtime.keep_warm()
        return self._runtime

    async def close(self) -> None:
        """End what the runtime keeps for further calls."""
        if self._runtime is not None:
            await self._runtime.close()

    def _method(self, kind: type[P], handler: Any, *, finishes: bool = False) -> Method:
        def call(request: Request, params: Any) -> Any:
            if self._shut_down:
                raise RpcError(INVALID_REQUEST, "the session was shut down")
            return handler(request, read_params(kind, params))

        return Method(call, finishes=finishes)

    def _initialize(self, _request: Request, params: Any) -> dict[str, Any]:
        if self._initialized:
            raise RpcError(INVALID_REQUEST, "already initialized")
        given = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
        options = _dict(given.get("initializationOptions"))
        client = _dict(_dict(_dict(given.get("capabilities")).get("experimental")).get("tamis"))
        self._approval = str(client.get("approval", "none"))
        self._streams = client.get("output") is True
        self._trusted = options.get("trusted") is not False
        offered = _dict(_dict(given.get("capabilities")).get("general")).get("positionEncodings")
        known = cast("list[object]", offered) if isinstance(offered, list) else []
        self._encoding = _choose_encoding(known)
        root = self._given_root or _root_of(given)
        if self._runtime is not None and self._runtime.warming is not None:
            self._runtime.warming.reset()
        self._runtime = Runtime(find_root(root) if self._given_root is None else root, _dict(options.get("settings")))
        self._runtime.log_level = self._runtime.settings.log_level
        self._runtime.keep_warm()
        process_id = given.get("processId")
        if isinstance(process_id, int) and not isinstance(process_id, bool) and process_id > 0:
            self.session.watch_parent(process_id)
        self._initialized = True
        state = sandbox_state(self._runtime.settings)
        return {
            "capabilities": {
                "positionEncoding": self._encoding,
                "experimental": {
                    "tamis": {
                        "rpc": RPC_VERSION,
                        "methods": {name: "stable" for name in sorted(self.session.methods) if "/" in name},
                        "protocols": sorted({*known_protocols(), *self._runtime.also}),
                        "exports": ["native"],
                        "sandbox": {key: state[key] for key in ("backend", "version", "network", "memory", "pids")}
                        | {"available": state["available"]},
                        "limits": limits(self._runtime),
                    }
                },
            },
            "serverInfo": {"name": "tamis", "version": __version__},
        }

    def _shutdown(self, _request: Request, _params: Any) -> None:
        self._shut_down = True

    def _list(self, _request: Request, params: _List) -> Any:
        if params.cursor is not None and not (params.cursor.isdecimal() and len(params.cursor) < 12):
            raise RpcError(INVALID_PARAMS, "wrong params: not a cursor of an earlier answer - at `$.cursor`")
        if params.limit is not None and params.limit < 1:
            raise RpcError(INVALID_PARAMS, "wrong params: at least 1 - at `$.limit`")
        return self.runtime.list_tools(
            params.filter, full=params.view == "full", cursor=params.cursor, limit=params.limit
        )

    def _describe(self, _request: Request, params: _Describe) -> Any:
        found = self.runtime.describe(params.tool_id, params.version)
        if found is not None:
            return found
        versions = self.runtime.registry.versions(params.tool_id)
        if versions:
            hint = f"there is {', '.join(versions)}"
            raise named_error("versionUnsatisfied", f"no such version of '{params.tool_id}'", hint)
        raise named_error("toolNotFound", f"no tool '{params.tool_id}'", "tool/list gives the registered ids")

    def _parse(self, _request: Request, params: _Parse) -> Any:
        check_size(params.text)
        check_protocol(params.protocol)
        runtime = self.runtime
        encoding = self._encoding
        # The registry is read here: a thread must not be the first to ask for it.
        options = runtime.read_options(complete=params.complete, tools=params.tools, options=given(params.options))

        def parse() -> ParseResult:
            return parse_result(read_text(params.text, params.protocol, options), encoding)

        return parse() if len(params.text) < LARGE_TEXT else aside(parse)

    def _validate(self, _request: Request, params: _Validate) -> Any:
        if params.manifest is not None:
            return self.runtime.validate_manifest(params.manifest)
        if params.calls is not None:
            results = [
                self.runtime.validate_args(
                    str(call.get("toolId", "")), {}, params.tools, call=call, prefix=f"/calls/{index}/args"
                )
                for index, call in enumerate(params.calls)
            ]
            valid = all(result.valid for result in results)
            content: dict[str, Any] = {
                "valid": valid,
                "errors": [problem for result in results for problem in result.errors],
                "warnings": [problem for result in results for problem in result.warnings],
            }
            return content | ({"coerced": [result.coerced for result in results]} if valid else {})
        if params.tool_id is None:
            raise RpcError(INVALID_PARAMS, "give toolId and args, calls, or manifest")
        return self.runtime.validate_args(params.tool_id, params.args or {}, params.tools)

    async def _execute(self, request: Request, params: _Execute) -> ExecutionResult:
        self._check_trust()
        name = params.tool_id if params.call is None else str(params.call.get("toolId", ""))
        if name is None:
            raise RpcError(INVALID_PARAMS, "give toolId and args, or call")
        self._calls += 1
        given_id = params.call.get("callId") if params.call is not None else None
        call_id = given_id if isinstance(given_id, str) else f"call-{self._calls}"
        self.runtime.running += 1
        try:
            return await execute(
                CallRequest(
                    call_id=call_id,
                    name=name,
                    version=params.version,
                    args=params.args,
                    wire_call=params.call,
                    timeout_ms=params.timeout_ms,
                    idempotency_key=params.idempotency_key,
                    dry_run=params.dry_run,
                ),
                self._around(request, params),
            )
        finally:
            self.runtime.running -= 1

    async def _execute_text(self, request: Request, params: _ExecuteText) -> Any:
        self._check_trust()
        check_size(params.text)
        check_protocol(params.protocol)
        document = self.runtime.read(
            params.text, params.protocol, complete=params.complete, options=given(params.options)
        )
        self._calls += 1
        prefix = f"text-{self._calls}"
        around = self._around(request, params)
        if params.options is not None and params.options.stderr_fails is not UNSET:
            own = around.settings
            protocol = replace(own.protocol, stderr_fails=params.options.stderr_fails)
            around = replace(around, settings=replace(own, protocol=protocol))
        self.runtime.running += 1
        try:
            return await execute_text(
                document,
                around,
                TextOptions(
                    mode=params.mode,
                    on_error=params.on_error,
                    timeout_ms=params.timeout_ms,
                    dry_run=params.dry_run,
                    call_prefix=prefix,
                    encoding=self._encoding,
                ),
            )
        finally:
            self.runtime.running -= 1

    def _health(self, _request: Request, _params: _Empty) -> dict[str, Any]:
        return health(self.runtime)

    def _reload(self, _request: Request, _params: _Empty) -> dict[str, Any]:
        before = {(tool.tool_id, tool.manifest.version): tool.manifest.raw for tool in self.runtime.registry.tools}
        registry = self.runtime.reload()
        after = {(tool.tool_id, tool.manifest.version): tool.manifest.raw for tool in registry.tools}
        return {
            "added": sorted("@".join(key) for key in after.keys() - before.keys()),
            "removed": sorted("@".join(key) for key in before.keys() - after.keys()),
            "updated": sorted("@".join(key) for key in after.keys() & before.keys() if after[key] != before[key]),
            "errors": registry.errors,
            "conflicts": registry.conflicts,
            "etag": registry.etag(),
        }

    def _around(self, request: Request, params: _Running) -> Surroundings:
        streams = params.output == "stream" or (params.output is None and self._streams)
        context = params.context or _Context()
        return self.runtime.surroundings(
            ask=self._asker() if self._approval == "request" else None,
            on_output=self._shower() if streams else None,
            on_progress=None if params.work_done_token is None else self._reporter(params.work_done_token),
            cancelled=request.cancelled,
            caller=Caller("rpc", context.session_id or "", context.agent_id or ""),
        )

    def _shower(self) -> OnOutput:
        sequences: dict[str, int] = {}
        lost: set[str] = set()

        def show(call_id: str, stream: str, text: str) -> None:
            number = sequences[call_id] = sequences.get(call_id, 0) + 1
            told = {"callId": call_id, "seq": number, "stream": stream, "text": text, "truncated": call_id in lost}
            if self.session.notify("tool/output", told, droppable=True):
                lost.discard(call_id)
            else:
                lost.add(call_id)

        return show

    def _reporter(self, token: str | int) -> OnProgress:
        def report(call_id: str, text: str) -> None:
            value = {"kind": "report", "callId": call_id, "message": text}
            self.session.notify("$/progress", {"token": token, "value": value}, droppable=True)

        return report

    def _asker(self) -> Ask:
        async def ask(question: Question) -> Answer:
            loop_time = asyncio.get_running_loop().time()
            try:
                reply = await self.session.ask(
                    "tool/requestApproval",
                    {
                        "approvalId": f"approval-{question.call_id}-{loop_time:.6f}",
                        "callId": question.call_id,
                        "tool": question.tool_id,
                        "args": question.args,
                        "argsPreview": _preview(question.args),
                        "risk": "high"
                        if question.permissions.granted.write or question.permissions.granted.hosts
                        else "low",
                        "permissions": question.permissions,
                        "options": [
                            {"optionId": "allow", "label": "Allow once", "kind": "allow_once"},
                            {"optionId": "reject", "label": "Deny", "kind": "reject_once"},
                        ],
                        "expiresAt": _expiry(question.timeout_ms),
                    },
                )
            except RpcError:
                return "unavailable"
            content = _dict(reply)
            if content.get("outcome") != "selected":
                return "cancelled"
            return "allow" if content.get("optionId") == "allow" else "deny"

        return ask

    def _check_trust(self) -> None:
        if not self._trusted:
            hint = "initialize with initializationOptions.trusted: true, or let the user trust the folder"
            raise named_error("notTrusted", "this folder is not trusted; nothing is run in it", hint)


def serve(root: Path | None) -> int:
    """Runs ``tamis rpc`` on this process's stdio; returns the exit code."""
    return asyncio.run(_serve(root))


async def _serve(root: Path | None) -> int:
    server = RpcServer(root)
    try:
        return await server.session.serve()
    finally:
        await server.close()


def _choose_encoding(offered: list[object]) -> PositionEncoding:
    for name in _ENCODINGS:
        if name in offered:
            return name
    return "utf-16"


def _dict(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _root_of(params: dict[str, Any]) -> Path:
    folders = params.get("workspaceFolders")
    uris: list[object] = []
    if isinstance(folders, list):
        uris.extend(_dict(folder).get("uri") for folder in cast("list[object]", folders))
    uris.append(params.get("rootUri"))
    for uri in uris:
        if isinstance(uri, str):
            parsed = urlparse(uri)
            path = unquote(parsed.path)
            if parsed.scheme == "file" and os.path.isdir(path):
                return Path(path)
    path = params.get("rootPath")
    return Path(path) if isinstance(path, str) and os.path.isdir(path) else Path.cwd()


def _preview(args: dict[str, Any]) -> str:
    text = msgspec.json.encode(args).decode("utf-8", "replace")
    return text if len(text) <= 400 else text[:399] + "…"


def _expiry(timeout_ms: int) -> str:
    from datetime import UTC, datetime, timedelta

    return (datetime.now(UTC) + timedelta(milliseconds=timeout_ms)).isoformat()
