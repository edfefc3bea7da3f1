"""The MCP servers of the settings (``[mcpServers.NAME]``): started in the sandbox with the first call, kept, ended when idle.

A server has rights of its own, which its settings ask for and the policy bounds as it bounds a manifest's; all tools of a server
share them. One that ends is started again by the next call. Must not know the protocol (``session.py``).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import deque
from collections.abc import AsyncGenerator, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tamis.protocols.manifest.reading import (
    ExternalScript,
    FileAccess,
    Manifest,
    McpTool,
    NetworkAccess,
    SecurityContext,
)
from tamis.protocols.observation import plain
from tamis.protocols.suggest import best, hint
from tamis.sandbox.model import SecretValue
from tamis.server.runtime.calls.model import Stopped
from tamis.server.runtime.calls.outputs import told_apart
from tamis.server.runtime.calls.runner import failure
from tamis.server.runtime.handlers.mcp.session import DISCOVER_S, McpError, is_refusal
from tamis.server.runtime.handlers.secrets import NOTHING, Given
from tamis.server.runtime.settings.config import McpServer, Settings
from tamis.server.runtime.settings.mcp_servers import ACCESS_TOKEN, as_run, folder_of, host_of, problem
from tamis.server.runtime.tools.registry import Tool

if TYPE_CHECKING:
    from tamis.protocols.contract import ExecutionError
    from tamis.sandbox.model import RunOutcome
    from tamis.sandbox.talk import Talk
    from tamis.server.runtime.calls.runner import Invocation
    from tamis.server.runtime.handlers.mcp.logins import AccessTokens
    from tamis.server.runtime.handlers.mcp.oauth import Challenge
    from tamis.server.runtime.handlers.mcp.session import McpSession

LIFE_MS = 7 * 24 * 3_600_000
"""A server that was never idle is ended after a week: memory that it leaks is not kept for ever."""
END_SECONDS = 1.0
SILENT_S = 1.0
"""A server that let a call's time go by and then says nothing for so long, not even to a ping, hangs: the next call starts it anew."""
LOOK_S = 0.02
MAX_LOCKS = 1_000
MAX_SESSIONS = 16
"""So many processes one server has at most, where each session has its own (``isolate = "session"``)."""
MAX_NOTES = 40
MAX_NOTE_CHARS = 1_000


Whose = tuple[str, ...]
"""For whom a server runs: nobody in particular, or an agent and its session."""


class Running:
    """One server that runs."""

    def __init__(self, name: str, whose: Whose = ()) -> None:
        self.name = name
        self.whose = whose
        self.contents = ""
        """What its folder held when it was started."""
        self.session: McpSession | None = None
        self.given: Given = NOTHING
        """The secrets that it was started with."""
        self.stop = asyncio.Event()
        self.task: asyncio.Task[RunOutcome] | None = None
        self.notes: deque[str] = deque(maxlen=MAX_NOTES)
        self._begun = bytearray()
        self.listeners: list[list[str]] = []
        self.calls = 0
        self.used = 0.0
        self.idle: asyncio.TimerHandle | None = None
        self._doubt: tuple[int, float] | None = None
        self._ping: asyncio.Task[None] | None = None

    def doubt(self) -> None:
        """A call was given up: it is asked for a sign of life, which nobody waits for."""
        session = self.session
        if session is None or self.silent:
            return
        self._doubt = (session.heard, time.monotonic())
        self._ping = asyncio.get_running_loop().create_task(session.ping())

    @property
    def silent(self) -> bool:
        """Whether it has said nothing since a call was given up."""
        return self._doubt is not None and self.session is not None and self._doubt[0] == self.session.heard

    @property
    def hangs(self) -> bool:
        """Whether it has been silent for long."""
        return self._doubt is not None and self.silent and time.monotonic() - self._doubt[1] >= SILENT_S

    async def sign(self) -> None:
        """Waits for a sign of life, until it hangs."""
        while self.silent and not self.hangs and self.session is not None and not self.session.over:
            await asyncio.sleep(LOOK_S)

    def hear(self, piece: bytes) -> None:
        """A piece of its standard error, which ends anywhere; it is noted line by line."""
        lines, feed, rest = piece.rpartition(b"\n")
        if feed or len(self._begun) > MAX_NOTE_CHARS:
            whole = bytes(self._begun) + lines
            self._begun.clear()
            self.note(whole.decode("utf-8", "replace"))
        self._begun += rest

    def end_line(self) -> None:
        """Notes what was begun and will not be ended."""
        self.hear(b"\n")

    def note(self, text: str) -> None:
        """What the server says on standard error, or beside its messages; the calls that run now have it in their logs."""
        for line in filter(str.strip, text.splitlines()):
            shown = told_apart(plain(line[:MAX_NOTE_CHARS]))
            self.notes.append(shown)
            for lines in self.listeners:
                if len(lines) < MAX_NOTES:
                    lines.append(f"stderr: {shown}")

    @property
    def usable(self) -> bool:
        """Whether calls can go to it."""
        if self.session is None or self.session.over or self.task is None or self.task.done():
            return False
        return not self.hangs


class McpServers:
    """The servers of one runtime; all methods are called on its loop."""

    def __init__(self, root: Path, settings: Settings) -> None:
        self._root = root
        self._settings = settings
        self._tokens: AccessTokens | None = None
        self._running: dict[tuple[str, Whose], Running] = {}
        self._locks: dict[tuple[str, Whose], asyncio.Lock] = {}
        self._left: set[Running] = set()
        """Those that hang, while calls wait for them still."""
        self._ending: set[asyncio.Task[None]] = set()

    def problem(self, name: str) -> str:
        """Why no tool of a server can be called; empty when they can, as far as is known without starting it."""
        declared = self._settings.mcp_servers.get(name)
        if declared is None:
            known = ", ".join(sorted(self._settings.mcp_servers)) or "none"
            near = hint(best(name, self._settings.mcp_servers))
            return f"no MCP server '{plain(name)}' is configured{near}; [mcpServers] in tamis.toml has {known}"
        if reason := problem(self._root, name, declared):
            return reason
        from tamis.server.runtime.handlers.script.interpreters import missing_for

        declared = self._as_run(declared)
        return missing_for(ExternalScript(declared.script, declared.language), self._settings)

    @property
    def names(self) -> list[str]:
        """The servers that run."""
        return sorted({name for name, _ in self._running})

    @property
    def doubted(self) -> list[str]:
        """Those of them that gave no sign of life since a call was given up."""
        return sorted({running.name for running in self._running.values() if running.silent})

    def _as_run(self, declared: McpServer) -> McpServer:
        return as_run(declared, max(self._settings.sandbox.stdout_bytes, 65_536))

    def folder(self, declared: McpServer) -> str:
        """The server's folder."""
        return folder_of(self._root, declared)

    def stand_in(self, name: str) -> Tool | None:
        """The server as a tool of its own: its script, its folder, and the rights that it asks for."""
        declared = self._settings.mcp_servers.get(name)
        if declared is None or (declared.url and problem(self._root, name, declared)):
            return None
        declared = self._as_run(declared)
        manifest = Manifest(
            tool_id=f"mcp-server:{name}",
            display_name=name,
            description="",
            version="0.0.0",
            handler=ExternalScript(declared.script, declared.language),
            security_context=SecurityContext(
                FileAccess(declared.allow_read, declared.allow_write),
                NetworkAccess(declared.allow_hosts, host_of(declared)),
                secrets=declared.secrets,
            ),
        )
        return Tool(manifest, os.path.join(self.folder(declared), "tamis.toml"))

    async def server(self, call: Invocation, credentials: Given) -> tuple[Running, bool]:
        """The server of a call's tool, started if it does not run with just these secrets, and whether it did. Raises ``Stopped`` when
        it cannot be started."""
        try:
            return await self._server(call, await self._with_token(call, credentials))
        except McpError as refused:
            if not await self.has_another_token(call, refused):
                raise Stopped("error", _refusal(call, refused)) from None
        try:
            return await self._server(call, await self._with_token(call, credentials))
        except McpError as refused:
            raise Stopped("error", _refusal(call, refused)) from None

    async def has_another_token(self, call: Invocation, refused: McpError) -> bool:
        """Whether a server that refused a request is to be asked again, with a token that is new since. Raises ``Stopped`` with what a
        person can do."""
        name = _name_of(call)
        declared = self._settings.mcp_servers.get(name)
        if declared is None or not _takes_tokens(declared):
            return False
        from tamis.server.runtime.handlers.mcp.logins import challenge_of

        challenge, before = challenge_of(refused), self.token_at_hand(name)
        if challenge is None:
            return False
        return await self._token(name, declared, call, challenge, before) not in ("", before)

    async def _with_token(self, call: Invocation, given: Given) -> Given:
        name = _name_of(call)
        declared = self._settings.mcp_servers.get(name)
        if declared is None or not _takes_tokens(declared):
            return given
        token = await self._token(name, declared, call)
        return msgspec.structs.replace(given, secrets=(SecretValue(ACCESS_TOKEN, token),)) if token else given

    async def _token(
        self, name: str, declared: McpServer, call: Invocation, challenge: Challenge | None = None, stale: str = ""
    ) -> str:
        if self._tokens is None:
            from tamis.server.runtime.handlers.mcp.logins import AccessTokens

            self._tokens = AccessTokens(self._settings.policy)
        return await self._tokens.token(name, declared, call, challenge, stale)

    def token_at_hand(self, name: str) -> str:
        """The access token of a server as its last call had it; empty for none."""
        declared = self._settings.mcp_servers.get(name)
        return "" if declared is None or self._tokens is None else self._tokens.at_hand(name, declared)

    async def _server(self, call: Invocation, given: Given) -> tuple[Running, bool]:
        handler = call.tool.manifest.handler
        assert isinstance(handler, McpTool)
        declared, caller = self._settings.mcp_servers.get(handler.server), call.context.caller
        own = declared is not None and declared.isolate == "session"
        whose = (caller.face, caller.agent_id, caller.session_id) if own else ()
        if len(self._locks) > MAX_LOCKS:
            self._locks = {
                place: lock for place, lock in self._locks.items() if lock.locked() or place in self._running
            }
        async with self._locks.setdefault((handler.server, whose), asyncio.Lock()):
            running = self._running.get((handler.server, whose))
            if running is not None:
                await running.sign()
            changed = running is not None and (running.given != given or call.contents not in ("", running.contents))
            if running is not None and running.usable and not changed:
                return running, True
            if running is not None and running.calls:
                # those that wait for it keep it; it ends with the last of them
                self._left.add(running)
            elif running is not None:
                await self._end(running)
            if own:
                await self._make_room(handler.server)
            running = self._running[handler.server, whose] = Running(handler.server, whose)
            running.given = given
            try:
                await self._start(running, call)
            except BaseException:
                await self._end(running)
                raise
            return running, False

    async def _make_room(self, name: str) -> None:
        """Ends the process of the session that called least recently, where there are too many. Raises ``Stopped`` when all are in use."""

        there = [running for running in self._running.values() if running.name == name]
        if len(there) < MAX_SESSIONS:
            return
        idle = min(
            (running_call for running_call in there if running_call.calls == 0 and running_call.session is not None),
            key=_used,
            default=None,
        )
        if idle is None:
            text = f"the MCP server '{name}' runs for {MAX_SESSIONS} sessions, and all of them use it; try again later"
            raise Stopped("error", failure("ServiceError", text))
        await self._end(idle)

    @contextlib.asynccontextmanager
    async def using(self, running: Running, lines: list[str]) -> AsyncGenerator[None]:
        """While a call uses a server it is not idle, and what it says goes to the call's logs too."""

        running.calls += 1
        running.used = time.monotonic()
        running.listeners.append(lines)
        if running.idle is not None:
            running.idle.cancel()
            running.idle = None
        try:
            yield
        except Stopped:
            # its time was over, or it was cancelled
            running.doubt()
            raise
        finally:
            running.calls -= 1
            running.listeners.remove(lines)
            declared = self._settings.mcp_servers.get(running.name)
            if running.calls == 0 and running in self._left:
                self._end_soon(running)
            elif running.calls == 0 and declared is not None:
                loop = asyncio.get_running_loop()
                running.idle = loop.call_later(declared.idle_ms / 1000, self._when_idle, running)

    def _when_idle(self, running: Running) -> None:
        if running.calls == 0:
            # at once, so that no call takes it between here and its end
            self._end_soon(running)

    def _end_soon(self, running: Running) -> None:
        self._forget(running)
        task = asyncio.get_running_loop().create_task(self._end(running))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _forget(self, running: Running) -> None:
        place = (running.name, running.whose)
        if self._running.get(place) is running:
            del self._running[place]
        self._left.discard(running)

    async def _start(self, running: Running, call: Invocation) -> None:
        from tamis.sandbox.talk import Talk
        from tamis.server.runtime.handlers.mcp.elicitation import modes_of
        from tamis.server.runtime.handlers.mcp.session import McpSession

        declared = self._as_run(self._settings.mcp_servers[running.name])
        talk = Talk(max_line_bytes=max(self._settings.sandbox.stdout_bytes, 65_536) * 2)
        running.task = asyncio.get_running_loop().create_task(await self._run_of(running, declared, call, talk))
        running.session = McpSession(talk, running.note)
        # over HTTP each request is answered, if slowly
        discover_s = declared.start_ms / 2_000 if declared.url else DISCOVER_S
        shaking = asyncio.ensure_future(running.session.start(elicits=modes_of(call), discover_s=discover_s))
        try:
            async with asyncio.timeout(declared.start_ms / 1000):
                await asyncio.wait({shaking, running.task}, return_when=asyncio.FIRST_COMPLETED)
                if running.task.done() and not shaking.done():
                    # what it printed last may still be read
                    await asyncio.wait({shaking}, timeout=END_SECONDS)
                if not shaking.done():
                    raise McpError("it ended")
                shaking.result()
        except TimeoutError:
            text = f"the MCP server '{running.name}' did not answer within {declared.start_ms} ms (mcpServers.{running.name}.startMs)"
            raise Stopped("error", failure("ServiceError", text, text="\n".join(running.notes))) from None
        except McpError as error:
            if _takes_tokens(declared) and is_refusal(error):
                raise  # it may be one that can be used with another token
            raise Stopped("error", _start_failure(running, error)) from None
        finally:
            shaking.cancel()
        call.trail.note("mcp.started", server=running.name, protocol=running.session.version)

    async def _run_of(
        self, running: Running, declared: McpServer, call: Invocation, talk: Talk
    ) -> Coroutine[None, None, RunOutcome]:
        from tamis.sandbox import model as sandbox
        from tamis.sandbox.runner import run
        from tamis.server.runtime.handlers.script.dependencies import prepared
        from tamis.server.runtime.handlers.script.interpreters import built_in, interpreters_of
        from tamis.server.runtime.handlers.script.running import limits_of, writable_folders
        from tamis.server.runtime.policy.contents import contents_digest
        from tamis.server.runtime.tools.builtin import ScriptTarget

        tool = self.stand_in(running.name)
        assert tool is not None
        handler = tool.manifest.handler
        assert isinstance(handler, ExternalScript)
        target = ScriptTarget(tool.folder, handler, {})
        dependencies = await prepared(call.request, tool, target, call.context, call.trail)
        limits = limits_of(self._settings, tool.manifest, LIFE_MS)
        rights = call.rights
        running.contents = contents_digest(
            tool.folder, handler, (), [folder.path for folder in (*rights.write, *rights.own_write)]
        )
        if call.contents not in ("", running.contents):
            text = f"the files of the MCP server '{running.name}' changed after the call was allowed; nothing was run, call it again"
            raise Stopped("error", failure("SecurityError", text, code="filesChanged"))
        request = sandbox.RunRequest(
            folder=tool.folder,
            script=handler.script_path,
            language=built_in(handler.language),
            project=str(self._root),
            args=declared.args,
            env=dict(declared.env),
            secrets=running.given.secrets,
            headers=running.given.headers,
            limits=limits,
            read=tuple(sandbox.Mount(path) for path in rights.read),
            write=tuple(sandbox.Mount(path) for path in writable_folders(rights, tool, target)),
            hosts=rights.hosts,
            allow_cidrs=self._settings.policy.allow_cidrs,
            pin=tuple(self._settings.policy.pin.items()),
            interpreters=interpreters_of(self._settings),
            backend=self._settings.sandbox.backend,
            environment=dependencies.environment,
        )

        def show(_stream: str, piece: bytes) -> None:
            running.hear(piece)

        async def serve() -> sandbox.RunOutcome:
            with dependencies:
                outcome = await run(request, on_output=show, cancelled=running.stop, talk=talk)
            running.end_line()
            return outcome

        return serve()

    async def _end(self, running: Running) -> None:
        self._forget(running)
        if running.idle is not None:
            running.idle.cancel()
        if running.session is not None:
            await running.session.close()
        running.stop.set()
        if running.task is not None:
            await asyncio.wait({running.task}, timeout=END_SECONDS)

    async def ending(self, running: Running) -> str:
        """How a server ended while it was used, as the end of a sentence; empty for one that goes on, or of which nothing more is known."""
        task = running.task
        if task is None or running.session is None or not running.session.over:
            return ""
        await asyncio.wait({task}, timeout=END_SECONDS)
        return _ending(task.result()) if task.done() and not task.cancelled() and task.exception() is None else ""

    async def close(self) -> None:
        """Ends every server."""
        ends = [self._end(running) for running in (*self._running.values(), *self._left)]
        await asyncio.gather(*ends, *self._ending)


def _name_of(call: Invocation) -> str:
    handler = call.tool.manifest.handler
    assert isinstance(handler, McpTool)
    return handler.server


def _takes_tokens(declared: McpServer) -> bool:
    """Whether a person may log in to a server: its token is no secret of the settings."""
    return bool(declared.url) and not declared.secrets


def _refusal(call: Invocation, refused: McpError) -> ExecutionError:
    return failure("ServiceError", f"the MCP server '{_name_of(call)}' cannot be used: {plain(str(refused))[:1_000]}")


def _used(running: Running) -> float:
    return running.used


def _ending(outcome: RunOutcome) -> str:
    if outcome.limit is not None:
        return f"; it reached the limit '{outcome.limit}': {plain(outcome.message)}"
    if outcome.signal is not None:
        return f"; it was ended by {outcome.signal}"
    return "" if outcome.exit_code is None else f"; it ended with exit code {outcome.exit_code}"


def _start_failure(running: Running, error: Exception) -> ExecutionError:
    outcome = running.task.result() if running.task is not None and running.task.done() else None
    if outcome is not None and outcome.kind in ("unavailable", "refused"):
        kind = "SandboxUnavailable" if outcome.kind == "unavailable" else "SecurityError"
        fix = f"; fix: {outcome.remedy}" if outcome.remedy else ""
        return failure(kind, f"the MCP server '{running.name}' was not started: {outcome.message}{fix}")
    ended = "" if outcome is None else _ending(outcome)
    text = f"the MCP server '{running.name}' cannot be used: {plain(str(error))[:1_000]}{ended}"
    return failure("ServiceError", text, text="\n".join(running.notes))
