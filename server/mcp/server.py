"""The MCP server: its methods in both eras for one client, what it tells by itself, what all clients share. Holds no rules of its own."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

from tamis.server.mcp.revisions import (
    BATCHES,
    MODERN,
    NAMESPACE,
    SERVER,
    TASKS,
    Peer,
    as_object,
    completed,
    folders_of,
    log_level,
    peer_of,
    require,
    shaken,
)
from tamis.server.mcp.showing import MAX_FOLLOWED, Following, Shown, not_found, uri_of
from tamis.server.mcp.tools import Kept, OfferedTools, TaskMethods, Tools
from tamis.server.rpc.aside import aside
from tamis.server.rpc.session import Answer, Method, Request, Session
from tamis.server.rpc.stray import catch_stray_text
from tamis.server.rpc.watching import Watching
from tamis.server.runtime.observe.trail import Log
from tamis.server.runtime.runtime import Runtime, early_log
from tamis.server.runtime.settings.files import find_root
from tamis.server.runtime.settings.loading import trust_notice, word_of_start
from tamis.server.wire.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, RpcError, encode_error

# MCP's manners, on top of the JSON-RPC session: a message a line, no word after a cancel, batches only where a revision has them.


_HEADER = re.compile(rb"(?i)[ \t]*content-(?:length|type)[ \t]*:")
_KEPT = frozenset({"initialize"})
"""Requests that a client may not take back."""


class McpSession(Session):
    """The connection to one MCP client."""

    def __init__(self, methods: dict[str, Method]) -> None:
        super().__init__(methods, {"notifications/cancelled": self._cancelled}, framing="lines")
        self.takes_batches = True
        """Whether the revision that was agreed on has batches."""
        self._told_framing = False

    def _body(self, body: bytes | RpcError) -> None:
        if isinstance(body, bytes) and _HEADER.match(body):
            text = "a message stands alone on its line, without headers: MCP on stdio has no Content-Length"
            if not self._told_framing:
                self._told_framing = True
                self.log().warn(text)
            body = RpcError(PARSE_ERROR, text)
        super()._body(body)

    def _batch(self, items: list[object]) -> None:
        if self.takes_batches:
            super()._batch(items)
            return
        text = "the revision of MCP that is spoken here has no batches; send each message on its own line"
        self._way()(encode_error(None, RpcError(INVALID_REQUEST, text)))

    def _notification(self, method: str, params: object) -> None:
        if method in self.on_notification:
            self.on_notification[method](params)

    def _cancelled(self, params: object) -> None:
        identity = cast("dict[str, Any]", params).get("requestId") if isinstance(params, dict) else None
        entry = self.pending.get(identity) if isinstance(identity, str | int | float) else None
        if entry is None:
            return
        self.take_back(entry[0])

    def take_back(self, request: Request) -> None:
        """Cancels a request that its client does not wait for any more."""
        if request.method in _KEPT:
            return
        # nothing more is said of a cancelled request, however it ends
        request.answer = partial(_say_nothing, request.answer)
        request.cancelled.set()

    def _withdraw(self, identity: str, about: Request | None) -> None:
        self.notify("notifications/cancelled", {"requestId": identity, "reason": "the call has ended"}, about=about)


def _say_nothing(answer: Answer, _reply: bytes | None) -> None:
    answer(None)


DISCOVER_TTL_MS = 3_600_000
MAX_SUBSCRIPTIONS = 100
MAX_FOLDERS = 64
"""So many folders may clients name while the server runs."""
ROOTS_S = 3.0
"""So long a client may take to name its folders; what it asks meanwhile waits."""
INSTRUCTIONS = (
    "Each tool runs in a sandbox: without network, and with no files but its own, unless its operator granted them. "
    "A result with isError says what was wrong with the call, and what to write instead."
)
Answering = Callable[[Request, Peer, dict[str, Any]], Awaitable[object] | object]


class Shared:
    """What all clients of one server share: the runtime, who looks for changes, the log."""

    def __init__(self, root: Path | None) -> None:
        self._given_root = root
        self._runtime: Runtime | None = None
        self._early_log: Log | None = None
        self._watching = Watching(self)
        self.clients: set[McpServer] = set()
        """Who is told of changes."""
        self.offered = OfferedTools()
        self.follows_roots = False
        """Whether the folders that a client names count: on this process's own streams, where nobody said with the start which folder is meant."""
        self._folders: dict[Path, Folder] = {}

    def folder(self, root: Path) -> Folder | None:
        """What is in force in a folder that a client named; None where there were too many."""
        folder = self._folders.get(root)
        if folder is None and len(self._folders) < MAX_FOLDERS:
            folder = self._folders[root] = Folder(root, self)
        return folder

    @property
    def runtime(self) -> Runtime:
        """The runtime; its root is ``--root``, else the folder that the server was started in."""
        if self._runtime is None:
            self._runtime = Runtime(self._given_root or find_root(Path.cwd()))
            self._runtime.parts.host = self
            self._runtime.log_level = self._runtime.settings.log_level
            self._runtime.keep_warm()
            self._runtime.parts.stays = True
            self._runtime.tell_settings()
            self._watching.start()
        return self._runtime

    async def close(self) -> None:
        """Ends what the runtime keeps for further calls."""
        await self._watching.close()
        for folder in self._folders.values():
            await folder.close()
        if self._runtime is not None:
            await self._runtime.close()

    def log(self) -> Log:
        """Where the server says what is wrong; before there is a runtime in the form that its settings would have."""
        if self._runtime is not None:
            return self._runtime.parts.log
        if self._early_log is None:
            self._early_log = early_log(self._given_root)
        return self._early_log

    def count(self, method: str, seconds: float, failed: bool) -> None:
        """A request was answered."""
        if self._runtime is not None:
            self._runtime.parts.metrics.answered(method, seconds, failed=failed)

    # The host, as calls see it

    async def ask(self, method: str, params: object) -> Any:
        """An MCP client has no services of its own. Raises ``HostError``."""
        from tamis.server.runtime.calls.model import HostError

        raise HostError(f"an MCP client has no '{method}'")

    def tell(self, method: str, params: object) -> None:
        """What has changed, in MCP's words."""
        if method == "registry/changed":
            for client in self.clients:
                for kind in CHANGING:
                    client.changed(kind)


class Folder:
    """A folder that a client named: what is in force there, by the user's own record of trust alone."""

    def __init__(self, root: Path, shared: Shared) -> None:
        self._shared = shared
        self.runtime = Runtime(root)
        self.runtime.parts.host = shared
        self.runtime.log_level = self.runtime.settings.log_level
        self.runtime.parts.stays = True
        self.runtime.tell_settings()
        self._watching = Watching(self)
        self._watching.start()

    def log(self) -> Log:
        """Where the server says what is wrong."""
        return self._shared.log()

    async def close(self) -> None:
        """Ends what is kept for further calls."""
        await self._watching.close()
        await self.runtime.close()


class McpServer:
    """The state of one client."""

    def __init__(
        self, shared: Shared, kept: Kept, session_id: str = "", session: Callable[..., McpSession] = McpSession
    ) -> None:
        """``kept``: what is kept between requests; ``session``: makes the connection of its methods."""
        self._shared = shared
        self._shaken: Peer | None = None
        self._ready = False
        self._folders: list[Folder] = []
        """The folders that the client named, where they count."""
        self._asking_roots: asyncio.Task[None] | None = None
        self._roots_changed = False
        self._listening: dict[object, tuple[Request, frozenset[str], frozenset[str]]] = {}
        """The open subscriptions: the request of each, the lists and the resources that it follows."""
        self._followed: set[str] = set()
        """The resources that a client of the handshake follows."""
        self.log_level = ""
        """The least level of log messages that a client of the handshake asked for; empty: none."""
        self.session_id = session_id or new_session_id()
        """What answers "for this session" hold for: on stdio this process, which its host started."""
        self.kept = kept
        self.offered = shared.offered
        self.tools = Tools(self)
        self.tasks = TaskMethods(self.tools)
        self.shown = Shown(self.tools, kept)
        self._following = Following(self.shown, self._updated)
        self.session = session({"initialize": Method(self._initialize, finishes=True)} | self._methods())
        self.session.on_notification["notifications/initialized"] = self._initialized
        self.session.on_notification["notifications/roots/list_changed"] = self._ask_roots
        self.session.log = shared.log
        self.session.on_answered = shared.count
        shared.clients.add(self)

    def gone(self) -> None:
        """The client has left."""
        self._following.close()
        self._shared.clients.discard(self)

    def _methods(self) -> dict[str, Method]:
        either: dict[str, Answering] = {
            "tools/list": _plain(self.tools.list),
            "tools/call": self.tools.call,
            "prompts/list": _plain(self.shown.prompts),
            "prompts/get": _plain(self.shown.prompt),
            "resources/list": _plain(self.shown.resources),
            "resources/templates/list": _plain(self.shown.templates),
            "resources/read": _plain(self.shown.resource),
            "completion/complete": _plain(self.shown.complete),
        }
        modern: dict[str, Answering] = {
            "server/discover": self._discover,
            "subscriptions/listen": self._listen,
            "tasks/get": _plain(self.tasks.get),
            "tasks/update": _plain(self.tasks.update),
            "tasks/cancel": _plain(self.tasks.cancel),
        }
        earlier: dict[str, Answering] = {
            "ping": lambda _request, _peer, _params: {},
            "logging/setLevel": self._set_level,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
        }
        methods = {name: self._method(name, answer, None) for name, answer in either.items()}
        methods |= {name: self._method(name, answer, True) for name, answer in modern.items()}
        return methods | {name: self._method(name, answer, False) for name, answer in earlier.items()}

    def _method(self, name: str, answer: Answering, modern: bool | None) -> Method:
        """``modern``: the era that has the method; None: both."""

        def call(request: Request, raw_params: Any) -> Any:
            params = _params(raw_params)
            if name == "ping" and self._shaken is None and "_meta" not in params:
                return {}  # the only thing that may be asked before the handshake
            peer = peer_of(params, self._shaken)
            if modern is not None:
                require(peer, name, modern=modern)
            asking = self._asking_roots
            if modern is None and asking is not None and not asking.done():
                return self._after_roots(asking, lambda: answer(request, peer, params))
            return answer(request, peer, params)

        # a cancelled request is not answered, so its end is its handler's own
        return Method(call, finishes=True)

    @property
    def runtime(self) -> Runtime:
        """What is in force in the first folder."""
        return self._folders[0].runtime if self._folders else self._shared.runtime

    @property
    def runtimes(self) -> list[Runtime]:
        """What is in force in each folder of this client: those that it named, else the one of the start."""
        return [folder.runtime for folder in self._folders] if self._folders else [self._shared.runtime]

    @property
    def version(self) -> str:
        """The revision of the handshake; empty before it."""
        return "" if self._shaken is None else self._shaken.version

    def changed(self, kind: str) -> None:
        """Tells that a list changed."""
        method = f"notifications/{kind}/list_changed"
        if self._ready:
            self.session.notify(method, {})
        for identity, (request, lists, _) in self._listening.items():
            if f"{kind}ListChanged" in lists:
                told = {"_meta": {f"{NAMESPACE}subscriptionId": identity}}
                self.session.notify(method, told, droppable=True, about=request)

    def _updated(self, uri: str) -> None:
        """Tells that a resource changed, those who follow it."""
        method = "notifications/resources/updated"
        if uri in self._followed:
            self.session.notify(method, {"uri": uri})
        for identity, (request, _, uris) in self._listening.items():
            if uri in uris:
                told = {"uri": uri, "_meta": {f"{NAMESPACE}subscriptionId": identity}}
                self.session.notify(method, told, droppable=True, about=request)

    # Beginning

    def _initialize(self, _request: Request, raw_params: Any) -> dict[str, Any]:
        if self._shaken is not None:
            raise RpcError(INVALID_REQUEST, "already initialized")
        peer = self._shaken = shaken(_params(raw_params))
        self.session.takes_batches = peer.version in BATCHES
        return {
            "protocolVersion": peer.version,
            "capabilities": CAPABILITIES,
            "serverInfo": SERVER,
            "instructions": INSTRUCTIONS,
        }

    def _initialized(self, _params: object) -> None:
        self._ready = self._shaken is not None
        self._ask_roots(None)

    def _ask_roots(self, _params: object) -> None:
        peer = self._shaken
        if peer is None or not self._ready or not peer.has_roots or not self._shared.follows_roots:
            return
        self._roots_changed = True
        if self._asking_roots is None or self._asking_roots.done():
            self._asking_roots = asyncio.get_running_loop().create_task(self._take_roots())

    async def _take_roots(self) -> None:
        """Asks the client for its folders; without an answer those stay that there are."""
        while self._roots_changed:
            self._roots_changed = False
            try:
                async with asyncio.timeout(ROOTS_S):
                    paths, refused = folders_of(await self.session.ask("roots/list", {}))
            except (RpcError, TimeoutError) as error:
                self._shared.log().warn(f"the client names no folders: {str(error) or 'it does not answer'}")
                continue
            roots, missing = await aside(partial(_roots_at, paths))
            folders = [self._shared.folder(root) for root in roots]
            for text in (*refused, *missing, *(["too many folders were named"] if None in folders else [])):
                self._shared.log().warn(text)
            before, self._folders = self._folders, [folder for folder in folders if folder is not None]
            if before != self._folders:
                for kind in CHANGING:
                    self.changed(kind)

    async def _after_roots(
        self, asking: asyncio.Task[None], answer: Callable[[], Awaitable[object] | object]
    ) -> object:
        await asyncio.wait({asking}, timeout=ROOTS_S)
        result = answer()
        return await cast("Awaitable[object]", result) if isinstance(result, Awaitable) else result

    def _discover(self, _request: Request, peer: Peer, _params: dict[str, Any]) -> dict[str, Any]:
        told: dict[str, Any] = {
            "supportedVersions": list(MODERN),
            "capabilities": {**CAPABILITIES, "extensions": {TASKS: {}}},
            "instructions": INSTRUCTIONS,
        }
        return completed(peer, told, ttl_ms=DISCOVER_TTL_MS)

    def _set_level(self, _request: Request, _peer: Peer, params: dict[str, Any]) -> dict[str, Any]:
        self.log_level = log_level(params.get("level"))
        return {}

    async def _subscribe(self, _request: Request, peer: Peer, params: dict[str, Any]) -> dict[str, Any]:
        """``resources/subscribe``, of the earlier revisions. Raises ``RpcError``."""
        uri = uri_of(params)
        if uri not in self._followed:
            if not await self._following.begin((uri,)):
                raise not_found(peer, uri)
            if uri in self._followed:  # asked for twice at once
                self._following.end((uri,))
            self._followed.add(uri)
        return {}

    def _unsubscribe(self, _request: Request, _peer: Peer, params: dict[str, Any]) -> dict[str, Any]:
        """``resources/unsubscribe``. Raises ``RpcError``."""
        uri = uri_of(params)
        if uri in self._followed:
            self._followed.discard(uri)
            self._following.end((uri,))
        return {}

    async def _listen(self, request: Request, peer: Peer, params: dict[str, Any]) -> dict[str, Any]:
        """An open stream of notifications; it ends with the client's cancel, or this process."""
        wanted = as_object(params.get("notifications"))
        if len(self._listening) >= MAX_SUBSCRIPTIONS:
            raise RpcError(INVALID_REQUEST, f"at most {MAX_SUBSCRIPTIONS} subscriptions are open at once")
        names = [f"{kind}ListChanged" for kind in CHANGING]
        lists = frozenset(name for name in names if wanted.get(name) is True)
        agreed: dict[str, Any] = dict.fromkeys(sorted(lists), True)
        uris = await self._following.begin(_uris(wanted.get("resourceSubscriptions")))
        if uris:
            agreed["resourceSubscriptions"] = uris
        tag = {f"{NAMESPACE}subscriptionId": request.identity}
        told = {"_meta": tag, "notifications": agreed}
        if agreed:
            _ = self.runtime  # whoever wants to hear of changes wants them looked for
        self.session.notify("notifications/subscriptions/acknowledged", told, about=request)
        self._listening[request.identity] = (request, lists, frozenset(uris))
        try:
            await request.cancelled.wait()
        finally:
            del self._listening[request.identity]
            self._following.end(uris)
        return completed(peer, {"_meta": tag})


CHANGING = ("tools", "resources")
"""The lists that change while the server runs: with the tools change the resources, which are their definitions."""
CAPABILITIES: dict[str, dict[str, Any]] = {
    "tools": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "prompts": {},
    "completions": {},
    "logging": {},
}


def _uris(asked: object) -> tuple[str, ...]:
    """The resources that a subscription names, each once."""
    listed = cast("list[object]", asked) if isinstance(asked, list) else []
    return tuple(dict.fromkeys(uri for uri in listed[: MAX_FOLLOWED + 1] if isinstance(uri, str)))


def _roots_at(paths: Sequence[str]) -> tuple[list[Path], list[str]]:
    """The roots of the folders that stand at paths, and why the others are none."""
    roots: dict[Path, None] = {}
    missing: list[str] = []
    for path in paths:
        if os.path.isdir(path):
            roots[find_root(Path(path))] = None
        else:
            missing.append(f"the root {path!r} is {'a file, no folder' if os.path.exists(path) else 'not there'}")
    return list(roots), missing


def _plain(answer: Callable[[Peer, dict[str, Any]], object]) -> Answering:
    """A method that needs no more of its request than who asks."""
    return lambda _request, peer, params: answer(peer, params)


def serve(root: Path | None, run: Callable[[Coroutine[Any, Any, int]], int] = asyncio.run) -> int:
    """Runs ``tamis mcp`` on this process's stdio; returns the exit code. ``run`` is what runs the loop to its end."""
    return run(_serve(root))


async def _serve(root: Path | None) -> int:
    shared = begin(root)
    shared.follows_roots = root is None and not word_of_start()
    try:
        return await McpServer(shared, Kept(listed=True)).session.serve()
    finally:
        await shared.close()


def begin(root: Path | None) -> Shared:
    """The server of a process, whose standard error is its log from here on."""
    shared = Shared(root)
    catch_stray_text(shared.log)
    if notice := trust_notice():
        shared.log().write("warning", notice)
    return shared


def new_session_id() -> str:
    """A name that nobody can guess."""
    return f"mcp-{os.urandom(16).hex()}"


def _params(raw_params: Any) -> dict[str, Any]:
    if raw_params is None:
        return {}
    if not isinstance(raw_params, dict):
        raise RpcError(INVALID_PARAMS, "wrong params: params are an object")
    return cast("dict[str, Any]", raw_params)
