"""One connection to an MCP server over lines of JSON: the handshake, requests, and what the server asks in between.

The handshake of the older revisions is tried first, since every server of today answers it; one that names newer versions instead is
asked again in their way (`server/discover`, the version in each request's `_meta`). Must not know how the server is run.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

import msgspec

from tamis import __version__
from tamis.protocols.jsontext.tree import read_leniently

HANDSHAKE_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
MODERN_VERSIONS = ("2026-07-28",)
META = "io.modelcontextprotocol"
METHOD_NOT_FOUND = -32601
MAX_PAGES = 100
MAX_TOOLS = 2_000
MAX_STRAY_LINES = 50
MAX_PROGRESS_CHARS = 1_000
DISCOVER_S = 2.0
STRANGE_S = 1.0
"""An answer to a request that nobody made: the only request that waits has so long to be answered all the same."""
_ID = re.compile(rb'"id"\s*:\s*"?(\d{1,15})\b')
_HEAD, _TAIL = 4_096, 256
_CLIENT = {"name": "tamis", "version": __version__}
OnProgress = Callable[[str], None]


class McpError(Exception):
    """The server answered with an error, with nonsense, or not at all any more."""

    def __init__(self, message: str, code: int = 0, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class Lines(Protocol):
    """The connection."""

    async def read(self) -> bytes | None:
        """The next line, or None at the end."""
        ...

    async def write(self, line: bytes) -> None:
        """Sends a line; raises when nobody reads."""
        ...


class McpSession:
    """What is said with one server, from the handshake to its end."""

    def __init__(self, lines: Lines, note: Callable[[str], None]) -> None:
        """`note` is told what the server prints that is no message, and what it logs."""
        self._lines = lines
        self._note = note
        self._number = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._progress: dict[int, OnProgress] = {}
        self._reader: asyncio.Task[None] | None = None
        self._modern = ""
        self._stray = 0
        self._tools: dict[str, dict[str, Any]] | None = None
        self.heard = 0
        """How many lines it has said."""
        self.version = ""
        """The protocol's revision that both speak."""
        self.server: dict[str, Any] = {}
        """What the server says of itself: `name`, `version`."""

    async def start(self) -> None:
        """The handshake: the stateless revision first, then ``initialize``, which every older server knows. Raises `McpError`.

        A server that says nothing to ``server/discover`` for `DISCOVER_S` is taken for an older one.
        """
        self._reader = asyncio.get_running_loop().create_task(self._read())
        try:
            async with asyncio.timeout(DISCOVER_S):
                if await self._discovered():
                    return
        except TimeoutError:
            pass
        self._modern = ""
        asked = {"protocolVersion": HANDSHAKE_VERSIONS[0], "capabilities": {}, "clientInfo": _CLIENT}
        told = _object(await self.request("initialize", asked), "initialize")
        version = told.get("protocolVersion")
        if version not in HANDSHAKE_VERSIONS:
            raise McpError(f"it speaks MCP {version!r}; known are {', '.join((*MODERN_VERSIONS, *HANDSHAKE_VERSIONS))}")
        self.version = str(version)
        self.server = _info(told.get("serverInfo"))
        await self._send({"method": "notifications/initialized"})

    async def _discovered(self) -> bool:
        """Whether the server speaks a stateless revision, which is spoken from now on. An error, whatever its code, and an answer in
        another form say that it does not."""
        self._modern = MODERN_VERSIONS[0]
        try:
            told = await self.request("server/discover", {})
        except McpError:
            if self.over:
                raise
            return False
        answer = _info(told)
        names = answer.get("supportedVersions")
        mutual = [version for version in MODERN_VERSIONS if isinstance(names, list) and version in names]
        if not mutual:
            return False
        self._modern = self.version = mutual[0]
        self.server = _info(_info(answer.get("_meta")).get(f"{META}/serverInfo"))
        return True

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        meta: Mapping[str, Any] | None = None,
        on_progress: OnProgress | None = None,
    ) -> Any:
        """Sends a request and waits for its result; cancelling the task tells the server. Raises `McpError`."""
        if self.over:
            raise McpError("the server has ended")  # nobody would hear an answer
        self._number += 1
        number = self._number
        told = dict(meta or {})
        if on_progress is not None:
            told["progressToken"] = number
            self._progress[number] = on_progress
        if self._modern:
            told |= {
                f"{META}/protocolVersion": self._modern,
                f"{META}/clientInfo": _CLIENT,
                f"{META}/clientCapabilities": {},
            }
        content = {**params, **({"_meta": told} if told else {})}
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            await self._send({"id": number, "method": method, "params": content})
            return await answer
        except asyncio.CancelledError:
            if method not in ("initialize", "server/discover"):
                cancel = {"requestId": number, "reason": "the call was cancelled or took too long"}
                asyncio.get_running_loop().create_task(self._told("notifications/cancelled", cancel))
            raise
        finally:
            self._waiting.pop(number, None)
            self._progress.pop(number, None)

    async def tools(self) -> dict[str, dict[str, Any]]:
        """The server's tools by name; asked for again when it says that they changed."""
        if self._tools is None:
            found: dict[str, dict[str, Any]] = {}
            cursor: str | None = None
            for _ in range(MAX_PAGES):
                told = await self.request("tools/list", {} if cursor is None else {"cursor": cursor})
                page = _object(told, "tools/list")
                listed = page.get("tools")
                for one in cast("list[object]", listed) if isinstance(listed, list) else []:
                    tool = _object(one, "a tool")
                    if isinstance(tool.get("name"), str) and len(found) < MAX_TOOLS:
                        found[tool["name"]] = tool
                after = page.get("nextCursor")
                if not isinstance(after, str) or not after or after == cursor:
                    break
                cursor = after
            self._tools = found
        return self._tools

    async def call(
        self, name: str, arguments: Mapping[str, Any], meta: Mapping[str, Any], on_progress: OnProgress | None
    ) -> dict[str, Any]:
        """`tools/call`: the result as the server gave it. Raises `McpError`."""
        params = {"name": name, "arguments": dict(arguments)}
        return _object(await self.request("tools/call", params, meta=meta, on_progress=on_progress), "tools/call")

    async def ping(self) -> None:
        """Waits for a sign of life, an error too; or for the connection's end."""
        with contextlib.suppress(McpError):
            await self.request("ping", {})

    @property
    def over(self) -> bool:
        """Whether the connection has ended."""
        return self._reader is not None and self._reader.done()

    async def close(self) -> None:
        """Stops listening."""
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait({self._reader})

    async def _told(self, method: str, params: Mapping[str, Any]) -> None:
        try:
            await self._send({"method": method, "params": params})
        except McpError:
            return

    async def _send(self, message: Mapping[str, Any]) -> None:
        line = msgspec.json.encode({"jsonrpc": "2.0", **message})
        try:
            await self._lines.write(line)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            raise McpError("the server has ended") from error

    async def _read(self) -> None:
        try:
            while (line := await self._lines.read()) is not None:
                await self._line(line)
        finally:
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(McpError("the server ended before it answered"))
                    answer.exception()  # whoever could not even ask does not look at it

    async def _line(self, line: bytes) -> None:
        self.heard += 1
        if not line.strip():
            return
        try:
            message = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            message = read_leniently(line)
        if message is None:
            broken = self._broken(line)
            if broken is not None:
                self._fail(broken, f"its answer to request {broken} cannot be read: {unreadable(line)}")
                return
            # a server that also prints what is no message: said, not suffered
            self._stray += 1
            if self._stray <= MAX_STRAY_LINES:
                self._note("printed beside its messages: " + line[:300].decode("utf-8", "replace"))
            return
        for one in cast("list[object]", message) if isinstance(message, list) else [cast("object", message)]:
            if isinstance(one, dict):
                await self._message(cast("dict[str, Any]", one))

    async def _message(self, message: dict[str, Any]) -> None:
        method, number = message.get("method"), message.get("id")
        if isinstance(method, str):
            params = message.get("params")
            given = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
            if "id" in message:
                await self._asked(method, number)
            else:
                self._noticed(method, given)
            return
        answer = self._waiting.get(number) if isinstance(number, int) and not isinstance(number, bool) else None
        if answer is None:
            self._strange(message, number)
            return
        if answer.done():
            return
        error = message.get("error")
        if error is None and "result" not in message:
            answer.set_exception(McpError(f"its answer to request {number} has neither a result nor an error"))
        elif error is not None and not isinstance(error, dict):
            answer.set_exception(McpError(f"its answer to request {number} has an error that is no object"))
        elif isinstance(error, dict):
            told = cast("dict[str, Any]", error)
            code = told.get("code")
            answer.set_exception(
                McpError(str(told.get("message", "")), code if isinstance(code, int) else 0, told.get("data"))
            )
        else:
            answer.set_result(message.get("result"))

    def _broken(self, line: bytes) -> int | None:
        """The request that a line answers which is no JSON; None for one that is no message."""
        if not line.lstrip().startswith((b"{", b"[")):
            return None
        for part in (line[:_HEAD], line[-_TAIL:]):
            for match in _ID.finditer(part):
                if int(match[1]) in self._waiting:
                    return int(match[1])
        return self._alone() if b'"jsonrpc"' in line[:_HEAD] else None

    def _alone(self) -> int | None:
        """The request that waits, if it is the only one."""
        return next(iter(self._waiting)) if len(self._waiting) == 1 else None

    def _fail(self, number: int, reason: str) -> None:
        answer = self._waiting.get(number)
        if answer is not None and not answer.done():
            answer.set_exception(McpError(reason))

    def _strange(self, message: dict[str, Any], number: Any) -> None:
        """An answer whose id is that of no request that waits: one that can only be meant for one ends it."""
        if "result" not in message and "error" not in message:
            return
        if isinstance(number, str | float):
            meant = next((one for one in self._waiting if number in (str(one), float(one))), None)
            if meant is not None:
                self._fail(meant, f"its answer to request {meant} has the id {number!r}, which is not the request's")
                return
        alone = self._alone()
        if alone is None or (isinstance(number, int) and not isinstance(number, bool) and 0 < number < alone):
            return  # late, or given twice
        reason = f"it answered with the id {str(number)[:40]!r}, which no request has, and not to request {alone}"
        if number is None:
            error = message.get("error")
            words = cast("dict[str, Any]", error).get("message", "") if isinstance(error, dict) else ""
            self._fail(alone, f"it could not read request {alone}: {str(words)[:1_000]}")
            return
        asyncio.get_running_loop().call_later(STRANGE_S, self._fail, alone, reason)

    async def _asked(self, method: str, number: Any) -> None:
        reply: dict[str, Any]
        if method == "ping":
            reply = {"result": {}}
        elif method == "roots/list":
            reply = {"result": {"roots": []}}
        else:
            reply = {"error": {"code": METHOD_NOT_FOUND, "message": f"{method} is not offered"}}
        try:
            await self._send({"id": number, **reply})
        except McpError:
            return

    def _noticed(self, method: str, params: dict[str, Any]) -> None:
        if method == "notifications/tools/list_changed":
            self._tools = None
        elif method == "notifications/progress":
            token = params.get("progressToken")
            show = self._progress.get(token) if isinstance(token, int) and not isinstance(token, bool) else None
            if show is not None:
                show(progress_words(params))
        elif method == "notifications/message":
            self._note(f"{params.get('level', 'info')}: {_words(params.get('data'))}")


def unreadable(line: bytes) -> str:
    """Why a line is no message: where it stops being UTF-8, or JSON."""
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"it is no UTF-8 at byte {error.start}"
    try:
        msgspec.json.decode(line)
    except RecursionError:
        return "it is nested too deeply"
    except msgspec.DecodeError as error:
        return f"it is no JSON: {error}"
    return "it is no JSON"


def progress_words(params: Mapping[str, Any]) -> str:
    """How far a server says it is, as words of bounded length."""
    done, total, text = params.get("progress"), params.get("total"), params.get("message")
    parts = [text[:MAX_PROGRESS_CHARS]] if isinstance(text, str) and text else []
    if isinstance(done, int | float) and isinstance(total, int | float) and total:
        parts.append(f"{done:g} of {total:g}")
    return ", ".join(parts) or f"{done}"


def _words(value: Any) -> str:
    if isinstance(value, str):
        return value[:1_000]
    return msgspec.json.encode(value)[:1_000].decode("utf-8", "replace")


def _info(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise McpError(f"its answer to {what} is no object")
    return cast("dict[str, Any]", value)
