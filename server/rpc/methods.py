"""The methods of ``tamis rpc``: params in, contract structs out. A thin face of the runtime; holds no rules of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlparse

from tamis import __version__
from tamis.protocols.contract import RPC_VERSION, Problem
from tamis.protocols.plugins import known_protocols
from tamis.protocols.positions import PositionEncoding
from tamis.server.rpc import (
    agents,
    approvals,
    daemon,
    prompts,
    running,
    services,
    streams,
    tasks,
    texts,
    tools,
    watching,
    workflows,
)
from tamis.server.rpc.initializing import FINISHES, stability
from tamis.server.rpc.params import Group, P, meaning, read_request, with_warnings
from tamis.server.rpc.session import Method, Request, Session, SessionHost
from tamis.server.rpc.stray import catch_stray_text
from tamis.server.runtime.health import limits, sandbox_state
from tamis.server.runtime.observe.trail import Log
from tamis.server.runtime.runtime import Runtime, early_log
from tamis.server.runtime.settings.files import find_root
from tamis.server.runtime.settings.loading import trust_notice
from tamis.server.runtime.texts.exports import FORMS
from tamis.server.wire.jsonrpc import INVALID_REQUEST, RpcError

_ENCODINGS: tuple[PositionEncoding, ...] = ("utf-32", "utf-8", "utf-16")
RETIRE_S = 0.05
"""How often is looked whether a runtime that another one took the place of has nothing left to answer."""


GROUPS = (
    tools,
    running,
    streams,
    texts,
    prompts,
    daemon,
    agents,
    approvals,
    tasks,
    services,
    workflows,
)
"""The modules that bring methods: ``methods(host)`` gives each by name."""


class RpcServer:
    """The state of one client: its root, what it can do, how it counts positions."""

    def __init__(self, root: Path | None) -> None:
        self._given_root = root
        self._runtime: Runtime | None = None
        self._initialized = False
        self._shut_down = False
        self.trusted = True
        self.approval = "none"
        self.elicits = False
        self.shows_forms = False
        self.shows_messages = False
        self.client = ""
        self.streams = False
        self.events = False
        self._encoding: PositionEncoding | None = None
        self.runs = running.Runs(self)
        self.declared: Group = {name: entry for group in GROUPS for name, entry in group.methods(self).items()}
        self.session = Session(
            {"initialize": Method(self._initialize), "shutdown": Method(self._shutdown)}
            | {
                name: self._method(kind, handler, finishes=name in FINISHES)
                for name, (kind, handler) in self.declared.items()
            }
        )

        self.session.log = self.log
        self._early_log: Log | None = None
        self.session.on_answered = self._count
        self._watching = watching.Watching(self)
        self._former: tuple[Runtime, asyncio.Task[None]] | None = None

    def log(self) -> Log:
        """Where the daemon says what is wrong; before there is a runtime in the form of the settings that it would have without
        ``initialize``."""
        if self._runtime is not None:
            return self._runtime.parts.log
        if self._early_log is None:
            self._early_log = early_log(self._given_root)
        return self._early_log

    def _count(self, method: str, seconds: float, failed: bool) -> None:
        # a request that was answered without the runtime does not make one
        if self._runtime is not None:
            self._runtime.parts.metrics.answered(method, seconds, failed=failed)

    @property
    def encoding(self) -> PositionEncoding | None:
        """The negotiated position encoding; None without ``initialize``."""
        return self._encoding

    @property
    def runtime(self) -> Runtime:
        """The runtime; without ``initialize`` its root is ``--root``, else the folder that the daemon was started in."""
        if self._runtime is None:
            self._runtime = Runtime(self._given_root or find_root(Path.cwd()))
            self._runtime.parts.host = SessionHost(self.session, lambda: self.events)
            self._runtime.log_level = self._runtime.settings.log_level
            self._runtime.keep_warm()
            self._runtime.parts.stays = True
            self._runtime.tell_settings()
            self._watching.start()
        return self._runtime

    async def close(self) -> None:
        """End what the runtime keeps for further calls."""
        await self._watching.close()
        if self._former is not None:
            runtime, retiring = self._former
            retiring.cancel()
            await asyncio.wait({retiring})
            await runtime.close()
        if self._runtime is not None:
            await self._runtime.close()

    async def _retire(self, runtime: Runtime) -> None:
        """Ends the runtime of the time before ``initialize`` when what it was asked to run has ended, its tasks too."""
        while runtime.running or runtime.parts.has_tasks:
            await asyncio.sleep(RETIRE_S)
        await runtime.close()

    def _method(self, kind: type[P], handler: Any, *, finishes: bool = False) -> Method:
        def call(request: Request, params: Any) -> Any:
            if self._shut_down:
                raise RpcError(INVALID_REQUEST, "the session was shut down")
            arguments, problems = read_request(kind, params)
            with meaning(problems):
                result = handler(request, arguments)
            if not problems:
                return result
            if isinstance(result, Awaitable):
                return _warned(cast("Awaitable[Any]", result), problems)
            return with_warnings(result, problems)

        return Method(call, finishes=finishes)

    def _initialize(self, _request: Request, params: Any) -> dict[str, Any]:
        if self._initialized:
            raise RpcError(INVALID_REQUEST, "already initialized")
        members = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
        options = _dict(members.get("initializationOptions"))
        client = _dict(_dict(_dict(members.get("capabilities")).get("experimental")).get("tamis"))
        self.approval = str(client.get("approval", "none"))
        self.elicits = client.get("elicitation") is True
        self.shows_forms = client.get("forms") is True
        window = _dict(_dict(members.get("capabilities")).get("window"))
        self.shows_messages = window.get("showMessage") not in (None, False)
        self.client = str(_dict(members.get("clientInfo")).get("name") or "")[:200]
        self.streams = client.get("output") is True
        self.events = client.get("events") is True
        # missing leaves it to the user's record, and tools run; what is neither yes nor no is no
        word = options.get("trusted")
        self.trusted = word is None or word is True
        offered = _dict(_dict(members.get("capabilities")).get("general")).get("positionEncodings")
        known = cast("list[object]", offered) if isinstance(offered, list) else []
        self._encoding = _choose_encoding(known)
        root = self._given_root or _root_of(members)
        former = self._runtime
        self._runtime = Runtime(
            find_root(root) if self._given_root is None else root,
            _dict(options.get("settings")),
            trusted=None if word is None else self.trusted,
        )
        if former is not None:
            self._runtime.parts.take_services(former.parts)
            self._former = (former, asyncio.get_running_loop().create_task(self._retire(former)))
        self._runtime.parts.host = SessionHost(self.session, lambda: self.events)
        self._runtime.log_level = self._runtime.settings.log_level
        self._runtime.keep_warm()
        self._runtime.parts.stays = True
        self._runtime.tell_settings()
        self._watching.start()
        process_id = members.get("processId")
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
                        "methods": {name: stability(name) for name in sorted(self.declared)},
                        "protocols": sorted({*known_protocols(), *self._runtime.also}),
                        "exports": list(FORMS),
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


def serve(root: Path | None, run: Callable[[Coroutine[Any, Any, int]], int] = asyncio.run) -> int:
    """Runs ``tamis rpc`` on this process's stdio; returns the exit code. ``run`` is what runs the loop to its end."""
    return run(_serve(root))


async def _serve(root: Path | None) -> int:
    server = RpcServer(root)
    catch_stray_text(server.log)
    if notice := trust_notice():
        server.log().write("warning", notice)
    try:
        return await server.session.serve()
    finally:
        await server.close()


async def _warned(result: Awaitable[Any], problems: list[Problem]) -> Any:
    with meaning(problems):
        return with_warnings(await result, problems)


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
