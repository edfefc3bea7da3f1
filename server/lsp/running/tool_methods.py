"""The tool methods of ``tamis rpc`` in an editor's session (interface: ``tamis rpc`` has the same methods without the editor's features).

They are served by the groups of ``server/rpc``, on the framework lane's loop, with the tools as the editor has them: an open manifest counts
as it stands there. The folder is the first that is open. Must not hold rules of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

from tamis.protocols.contract import RegistryChanges
from tamis.protocols.positions import PositionEncoding
from tamis.server.lsp.running.runner import REQUEST_FAILED, Runner
from tamis.server.lsp.workspace.watching import load
from tamis.server.rpc.initializing import FINISHES
from tamis.server.rpc.methods import GROUPS
from tamis.server.rpc.params import Empty, Group, meaning, read_request, with_warnings
from tamis.server.rpc.running import Runs
from tamis.server.rpc.session import Request, SessionHost, no_method
from tamis.server.rpc.session import Session as RpcSession
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.tools.registry import Change, difference
from tamis.server.wire.jsonrpc import REQUEST_CANCELLED, RpcError

if TYPE_CHECKING:
    from tamis.server.lsp.client import Client, Progress
    from tamis.server.lsp.session import Session
    from tamis.server.runtime.tools.registry import Registry


MAX_TITLE = 100
_OF_SERVICES = frozenset({"service/register", "service/unregister"})
"""After these the folder has other tools."""


class _Wire:
    """The editor's session as the groups use theirs: asking and telling the client."""

    def __init__(self, session: Session, client: Client) -> None:
        self._session = session
        self._client = client

    def notify(self, method: str, params: object, *, droppable: bool = False) -> bool:
        """Sends a notification."""
        del droppable  # the editor's own queue decides
        self._session.notify(method, params)
        return True

    async def ask(self, method: str, params: object) -> Any:
        """Sends a request to the client and waits for its result; raises ``RpcError`` for an error reply."""
        return await self._client.ask(method, params)


class ToolMethods:
    """What the groups of methods see of an editor's session (``server/rpc/params.py``, ``Host``)."""

    def __init__(self, session: Session, client: Client, runner: Runner) -> None:
        self._lsp = session
        self._client = client
        self._runner = runner
        self.session = cast("RpcSession", _Wire(session, client))
        self.runs = Runs(self)
        self.declared: Group = {name: entry for group in GROUPS for name, entry in group.methods(self).items()}
        self.declared["registry/reload"] = (Empty, self._reload)
        self._told: tuple[Runtime, Registry] | None = None

    @property
    def runtime(self) -> Runtime:
        """The runtime of the first open folder. Raises ``RpcError`` where none is open, or it is still being read."""
        roots = self._lsp.workspace.roots
        if not roots:
            raise RpcError(
                REQUEST_FAILED, "No folder is open, so there are no tools; open the folder with the manifests"
            )
        runtime = self._runner.runtime(roots[0])
        if runtime.parts.host is None:
            runtime.parts.host = SessionHost(self.session, lambda: self.events)
            runtime.parts.stays = True
        if self._told is None or self._told[0] is not runtime:
            self._told = runtime, runtime.registry
        return runtime

    def tools_changed(self) -> None:
        """The tools may be others now: a client that has used these methods is told, as ``tamis rpc`` tells it, whatever changed them."""
        before = self._told
        if before is None:
            return
        try:
            runtime = self.runtime
        except RpcError:  # the folder was closed, or is read anew
            return
        self._told = runtime, runtime.registry
        change = difference(before[1], runtime.registry) if before[0] is runtime else Change()
        if change.any:
            runtime.parts.tell("registry/changed", runtime.changes(change))

    async def _reload(self, _request: Request, _params: Empty) -> RegistryChanges:
        """As the daemon's, by way of the editor's folders: open files keep counting as they stand there."""
        _ = self.runtime
        read = asyncio.Event()
        loop = asyncio.get_running_loop()

        def is_read() -> None:
            loop.call_soon_threadsafe(read.set)

        def begin() -> None:
            load(self._lsp, self._lsp.workspace.roots)
            # Its turn comes behind the loading.
            self._lsp.scanner.later(is_read)

        self._lsp.post(begin)
        await read.wait()
        self.tools_changed()
        return self.runtime.changes_since_reload(reset=True)

    @property
    def encoding(self) -> PositionEncoding | None:
        """The negotiated position encoding."""
        return self._lsp.encoding

    @property
    def trusted(self) -> bool:
        """Whether anything may be run."""
        return self._lsp.workspace.client.trusted

    @property
    def approval(self) -> str:
        """How the client can be asked."""
        return str(self._lsp.capability("experimental.tamis.approval") or "none")

    @property
    def elicits(self) -> bool:
        """Whether ``tool/requestApproval`` may be a question of an MCP server."""
        return self._lsp.capability("experimental.tamis.elicitation") is True

    @property
    def shows_forms(self) -> bool:
        """Whether such a question may have a form, or an address to open."""
        return self._lsp.capability("experimental.tamis.forms") is True

    @property
    def shows_messages(self) -> bool:
        """Whether the client answers ``window/showMessageRequest``."""
        return self._lsp.can("window.showMessage")

    @property
    def streams(self) -> bool:
        """Whether the client takes output while calls run."""
        return self._lsp.capability("experimental.tamis.output") is True

    @property
    def events(self) -> bool:
        """Whether the client wants to be told the states of calls and workflows."""
        return self._lsp.capability("experimental.tamis.events") is True

    @property
    def client(self) -> str:
        """The client's own name."""
        initialize_params = self._lsp.initialize
        info = None if initialize_params is None else initialize_params.client_info
        return "" if info is None else str(info.name)[:200]

    async def answer(self, identity: object, method: str, params: Any) -> Any:
        """The result of a request. Raises ``RpcError``.

        The task is cancelled for most methods; those that finish give their normal result, with what did not end as ``cancelled``.
        """
        declaration = self.declared.get(method)
        if declaration is None:
            raise no_method(method, self.declared)
        kind, handler = declaration
        request = Request(self.session, identity, lambda _reply: None)
        arguments, unknown = read_request(kind, params)
        finishes = method in FINISHES and isinstance(identity, int | str)
        loop = asyncio.get_running_loop()

        def finish() -> None:
            loop.call_soon_threadsafe(request.cancelled.set)

        progress = self._progress(method, arguments, finish)
        if finishes:
            self._lsp.finishing[cast("int | str", identity)] = finish
        status = "failed"
        try:
            if progress is not None:
                progress.begin()
            with meaning(unknown):
                result: Any = handler(request, arguments)
                answer = await cast("Awaitable[Any]", result) if isinstance(result, Awaitable) else result
            if method in _OF_SERVICES:
                self._runner.services_changed(self._lsp.workspace.roots[0])
                self.tools_changed()
            status = str(getattr(answer, "status", "done"))
            return with_warnings(answer, unknown)
        except asyncio.CancelledError:
            raise RpcError(REQUEST_CANCELLED, "Cancelled") from None
        finally:
            if progress is not None:
                progress.end(status)
            if finishes:
                self._lsp.finishing.pop(cast("int | str", identity), None)

    def _progress(self, method: str, arguments: Any, cancel: Callable[[], None]) -> Progress | None:
        """The work-done progress of a request with a token: LSP's has a beginning and an end, whatever is reported between them."""
        token = getattr(arguments, "work_done_token", None)
        if token is None:
            return None
        from tamis.server.lsp.client import Progress

        call: dict[str, Any] = getattr(arguments, "call", None) or {}
        named: Any = (
            getattr(arguments, "tool_id", None) or getattr(arguments, "workflow_id", None) or call.get("toolId")
        )
        return Progress(self._client, token, f"Running {named or method}"[:MAX_TITLE], cancel)
