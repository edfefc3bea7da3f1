"""The MCP server over Streamable HTTP: one endpoint, ``/mcp``, for both eras.

A request of the stateless revision is a POST of its own, with a connection of its own; closing it takes the request back. A client of an earlier
revision has a session, whose streams it can resume. What is done with a message is the same as on stdio. Holds no rules of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import time
from collections.abc import Callable, Coroutine, Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from tamis.server.mcp.http_access import Access, Refused, check_headers, check_version, is_modern
from tamis.server.mcp.http_streams import HttpSession, Stream
from tamis.server.mcp.revisions import HANDSHAKE, as_object
from tamis.server.mcp.server import McpServer, Shared, begin, new_session_id
from tamis.server.mcp.tools import Kept
from tamis.server.wire.jsonrpc import INVALID_REQUEST, METHOD_NOT_FOUND, RpcError, decode, encode_error

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

PATH = "/mcp"
MAX_BODY_BYTES = 32 * 1024 * 1024
BODY_S = 60.0
"""So long the body of a request may take to arrive."""
MAX_SESSIONS = 32
SPARE_S = 60.0
"""A session that was not used for so long makes room for a new one where there are too many."""
IDLE_S = 1_800.0
SWEEP_S = 30.0
MAX_POSTS = 256
"""So many requests are answered at once."""
MAX_CONNECTIONS = 512
STREAM_AFTER_S = 5.0
"""What is not answered within so long is answered by a stream, so that nobody on the way takes the connection for dead."""
ALIVE_S = 15.0
RETRY_MS = 1_000
END_S = 2.0
"""So long what runs may take to end, and then the connections."""
PRIMED_SINCE = HANDSHAKE[0]
_STATUS = {METHOD_NOT_FOUND: 404, -32603: 200, -32800: 200}
_SSE = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_JSON = {"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class _Error(msgspec.Struct):
    code: int = 0


class _Answer(msgspec.Struct):
    error: _Error | None = None


class _Client:
    """A client of an earlier revision, from ``initialize`` to its end."""

    def __init__(self, server: McpServer, session: HttpSession) -> None:
        self.server = server
        self.session = session
        self.used = time.monotonic()

    @property
    def is_busy(self) -> bool:
        return bool(self.session.pending) or any(stream.is_read for stream in self.session.streams.values())


class HttpServer:
    """All clients of one server."""

    def __init__(self, shared: Shared, access: Access) -> None:
        self._shared = shared
        self._access = access
        self._kept = Kept(listed=False)
        self._stateless = new_session_id()
        """The session of all who have none: no answer is kept for it."""
        self._clients: dict[str, _Client] = {}
        self._passing: set[HttpSession] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._posts = 0
        self._is_over = False

    def app(self) -> ASGIApp:
        """The application that a server of HTTP runs."""
        from starlette.applications import Starlette
        from starlette.routing import Route

        async def mcp(scope: Scope, receive: Receive, send: Send) -> None:
            from starlette.requests import Request

            request = Request(scope, receive)
            try:
                answer = await self._answer(request)
            except Refused as refused:
                answer = _plain(refused.status, RpcError(INVALID_REQUEST, refused.text), refused.headers)
            await answer(scope, receive, send)

        application = Starlette(routes=[Route(PATH, _Endpoint(mcp))])
        application.router.redirect_slashes = False
        return application

    async def _answer(self, request: Request) -> ASGIApp:
        headers = _headers(request)
        self._access.check(headers)
        if self._is_over:
            raise Refused(503, "the server is ending")
        if request.method == "POST":
            return await self._post(request, headers)
        if request.method not in ("GET", "DELETE") or "mcp-session-id" not in headers:
            raise Refused(405, "send messages with POST", {"Allow": "POST, GET, DELETE"})
        check_version(headers)
        client = self._client(headers)
        if request.method == "DELETE":
            await self._end(headers["mcp-session-id"])
            return _empty(204)
        return self._opened(client, headers)

    # Messages

    async def _post(self, request: Request, headers: Mapping[str, str]) -> ASGIApp:
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise Refused(415, "a message is JSON: send the header Content-Type: application/json")
        accepted = headers.get("accept", "*/*").lower()
        if "*/*" not in accepted and not ("application/json" in accepted and "text/event-stream" in accepted):
            raise Refused(406, "an answer is JSON or a stream: send Accept: application/json, text/event-stream")
        if self._posts >= MAX_POSTS:
            raise Refused(503, f"at most {MAX_POSTS} requests are answered at once; try again", {"Retry-After": "1"})
        self._posts += 1
        try:
            body = await _body(request, headers)
            try:
                message: Any = decode(body)[0]
            except RpcError as error:
                return self._counted(_plain(400, error))
            members = as_object(message)
            if is_modern(headers, members):
                return self._counted(self._modern(headers, members, message))
            check_version(headers)
            return self._counted(self._earlier(headers, members, message))
        finally:
            self._posts -= 1

    def _counted(self, answer: ASGIApp) -> ASGIApp:
        async def count(scope: Scope, receive: Receive, send: Send) -> None:
            self._posts += 1
            try:
                await answer(scope, receive, send)
            finally:
                self._posts -= 1

        return count

    def _modern(self, headers: Mapping[str, str], members: dict[str, Any], message: object) -> ASGIApp:
        """A message of the stateless revision: a connection for it alone."""
        if len(self._passing) >= MAX_POSTS:
            raise Refused(503, f"at most {MAX_POSTS} requests are answered at once; try again", {"Retry-After": "1"})
        if not members:
            return _plain(400, RpcError(INVALID_REQUEST, "a POST holds one request, which is an object"))
        server = McpServer(self._shared, self._kept, self._stateless, HttpSession)
        session = cast("HttpSession", server.session)
        del session.methods["initialize"]
        try:
            check_headers(headers, members, self._schema(server, members))
        except RpcError as error:
            server.gone()
            error.identity = members["id"] if isinstance(members.get("id"), str | int) else None
            return _plain(400, error)
        stream = Stream()
        self._passing.add(session)
        session.arrived(message, stream)

        def gone() -> None:
            session.left(stream)

        def done() -> None:
            session.left(stream)
            server.gone()
            self._passing.discard(session)

        return _answered(stream, gone, done, status=_status_of)

    def _schema(self, server: McpServer, members: dict[str, Any]) -> dict[str, Any] | None:
        if members.get("method") != "tools/call":
            return None
        try:
            _, tool = server.tools.find(as_object(members.get("params")).get("name"))
        except RpcError:
            return None
        return as_object(tool.manifest.raw.get("parameters"))

    def _earlier(self, headers: Mapping[str, str], members: dict[str, Any], message: object) -> ASGIApp:
        """A message of a session, or the one that begins it."""
        added: dict[str, str] = {}
        if "mcp-session-id" in headers:
            client = self._client(headers)
        elif members.get("method") == "initialize" and "id" in members:
            client = self._new_client(added)
        else:
            text = "send initialize first, or name the revision 2026-07-28 in the request and its headers"
            raise Refused(400, text)
        client.used = time.monotonic()
        stream = client.session.new_stream()
        client.session.arrived(message, stream)

        def done() -> None:
            client.used = time.monotonic()
            begun = added.get("Mcp-Session-Id", "")
            if not client.server.version and begun in self._clients:
                self._end_soon(begun)  # its handshake failed

        primed = client.server.version >= PRIMED_SINCE
        return _answered(stream, _nothing, done, added=added, primed=primed)

    # Sessions

    def _client(self, headers: Mapping[str, str]) -> _Client:
        client = self._clients.get(headers["mcp-session-id"])
        if client is None:
            raise Refused(404, "there is no such session, or it has ended; send initialize again")
        client.used = time.monotonic()
        return client

    def _new_client(self, added: dict[str, str]) -> _Client:
        if len(self._clients) >= MAX_SESSIONS:
            now = time.monotonic()
            spare = [(client.used, name) for name, client in self._clients.items() if not client.is_busy]
            if not spare or now - min(spare)[0] < SPARE_S:
                text = f"at most {MAX_SESSIONS} sessions are open at once; end one with DELETE, or try again later"
                raise Refused(503, text, {"Retry-After": "60"})
            self._end_soon(min(spare)[1])
        name = new_session_id()
        server = McpServer(self._shared, Kept(listed=True), name, HttpSession)
        client = self._clients[name] = _Client(server, cast("HttpSession", server.session))
        added["Mcp-Session-Id"] = name
        return client

    def _opened(self, client: _Client, headers: Mapping[str, str]) -> ASGIApp:
        """The stream of a session, or one that is resumed behind the last event that came."""
        if "text/event-stream" not in headers.get("accept", ""):
            raise Refused(406, "a stream is asked for with Accept: text/event-stream")
        stream, after = client.session.standing, None
        last = headers.get("last-event-id")
        if last is not None:
            name, _, number = last.rpartition("-")
            existing = client.session.streams.get(name)
            if existing is None or not number.isdecimal() or len(number) > 12:
                raise Refused(400, "that event is of no stream that can be resumed")
            stream, after = existing, int(number)
        primed = client.server.version >= PRIMED_SINCE

        def done() -> None:
            client.used = time.monotonic()

        return _answered(stream, _nothing, done, primed=primed, after=after, streams=True)

    def _end_soon(self, name: str) -> None:
        client = self._clients.pop(name)
        task = asyncio.get_running_loop().create_task(self._close(name, client))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _end(self, name: str) -> None:
        client = self._clients.pop(name, None)
        if client is not None:
            await self._close(name, client)

    async def _close(self, name: str, client: _Client) -> None:
        client.server.gone()
        await client.session.end_requests(END_S)
        for stream in client.session.streams.values():
            stream.end()
        self._shared.runtime.parts.approvals.standing.forget_session(name)

    async def sweep(self) -> None:
        """Ends the sessions that nobody uses any more, for ever."""
        while True:
            await asyncio.sleep(SWEEP_S)
            until = time.monotonic() - IDLE_S
            for name in [name for name, client in self._clients.items() if client.used < until and not client.is_busy]:
                try:
                    await self._end(name)
                except Exception as error:  # one session that does not end well is no end of the server
                    self._shared.log().failure("a session did not end well", error)

    async def close(self) -> None:
        """Ends all that runs: each request is answered, each stream ends."""
        self._is_over = True
        ends = [self._end(name) for name in list(self._clients)]
        await asyncio.gather(*ends, *(session.end_requests(END_S) for session in list(self._passing)), *self._ending)


class _Endpoint:
    """An application as an endpoint for every method: a function would be one for GET."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


def _nothing() -> None:
    """A client of an earlier revision may come back for its answer."""


def _headers(request: Request) -> dict[str, str]:
    """The headers by their names in lower case. Raises ``Refused`` for one that counts and stands there twice."""
    headers: dict[str, str] = {}
    for key, value in request.headers.items():
        if key in headers and key in _ONCE:
            raise Refused(400, f"the header {key} stands there twice")
        headers[key] = value
    return headers


_ONCE = frozenset(
    {"host", "origin", "authorization", "mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name"}
)


async def _body(request: Request, headers: Mapping[str, str]) -> bytes:
    """The body. Raises ``Refused`` for one that is too large, or takes too long."""
    from starlette.requests import ClientDisconnect

    large = Refused(413, f"a message has at most {MAX_BODY_BYTES} bytes", {"Connection": "close"})
    length = headers.get("content-length", "")
    if length.isdecimal() and (len(length) > 12 or int(length) > MAX_BODY_BYTES):
        raise large
    held = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for piece in request.stream():
                held += piece
                if len(held) > MAX_BODY_BYTES:
                    raise large
    except TimeoutError:
        text = f"the body did not arrive within {BODY_S:g} s"
        raise Refused(408, text, {"Connection": "close"}) from None
    except ClientDisconnect:
        raise Refused(400, "the body ended early") from None
    return bytes(held)


def _status_of(answer: bytes) -> int:
    """The status of an answer of the stateless revision."""
    try:
        error = msgspec.json.decode(answer, type=_Answer).error
    except msgspec.DecodeError:
        return 200
    return 200 if error is None else _STATUS.get(error.code, 400 if -32_700 <= error.code <= -32_000 else 200)


def _ok(_answer: bytes) -> int:
    return 200


def _plain(status: int, error: RpcError, headers: Mapping[str, str] | None = None) -> ASGIApp:
    from starlette.responses import Response

    body = encode_error(error.identity, error)
    return Response(body, status, {**_JSON, **(headers or {})})


def _empty(status: int, headers: Mapping[str, str] | None = None) -> ASGIApp:
    from starlette.responses import Response

    return Response(None, status, dict(headers or {}))


def _answered(
    stream: Stream,
    gone: Callable[[], None],
    done: Callable[[], None],
    *,
    status: Callable[[bytes], int] = _ok,
    added: Mapping[str, str] | None = None,
    primed: bool = False,
    after: int | None = None,
    streams: bool = False,
) -> ASGIApp:
    """A stream as an answer: one JSON text where it is one and comes soon, else events. ``gone`` is told when the client closes it before its end,
    ``done`` in any case. ``after``: it is resumed behind that event; ``streams``: it is events in any case."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        reader = stream.take()
        leaving = asyncio.ensure_future(_disconnected(receive))
        serving = asyncio.ensure_future(serve(scope, receive, send, reader))
        try:
            await asyncio.wait({leaving, serving}, return_when=asyncio.FIRST_COMPLETED)
            if not serving.done():
                gone()
                serving.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError):
                await serving
        finally:
            leaving.cancel()
            serving.cancel()
            stream.leave(reader)
            done()

    async def serve(scope: Scope, receive: Receive, send: Send, reader: int) -> None:
        if not streams:
            until = time.monotonic() + STREAM_AFTER_S
            while stream.is_empty and not stream.ended and (left := until - time.monotonic()) > 0:
                await stream.wait(left)
            # the answer follows what was said in the same moment
            if not stream.ended and not stream.is_empty:
                await asyncio.sleep(0)
            alone = stream.alone
            if alone is not None:
                await _json(alone, status(alone), added or {})(scope, receive, send)
                stream.was_sent(1)
                return
            if stream.ended and stream.is_empty:
                await _empty(202, added)(scope, receive, send)
                return
        await _events(stream, reader, send, {**_SSE, **(added or {})}, primed=primed, after=after)

    return app


def _json(body: bytes, status: int, added: Mapping[str, str]) -> ASGIApp:
    from starlette.responses import Response

    return Response(body, status, {**_JSON, **added})


async def _events(
    stream: Stream, reader: int, send: Send, headers: Mapping[str, str], *, primed: bool, after: int | None
) -> None:
    raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": 200, "headers": raw})
    at = stream.first if after is None else after
    if primed and stream.name:
        await _piece(send, b"id: %b-%d\nretry: %d\ndata: \n\n" % (stream.name.encode(), at, RETRY_MS))
    while reader == stream.reader:
        waiting = stream.behind(at)
        for number, body in waiting:
            tag = b"id: %b-%d\n" % (stream.name.encode(), number) if stream.name else b""
            await _piece(send, tag + b"event: message\ndata: " + body + b"\n\n")
            at = number
            stream.was_sent(number)
        if waiting:
            continue
        if stream.ended:
            break
        if not await stream.wait(ALIVE_S):
            await _piece(send, b": alive\n\n")
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _piece(send: Send, piece: bytes) -> None:
    await send({"type": "http.response.body", "body": piece, "more_body": True})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


# The process


def serve(
    root: Path | None,
    place: socket.socket,
    access: Access,
    announce: Callable[[], None],
    run: Callable[[Coroutine[Any, Any, int]], int] = asyncio.run,
) -> int:
    """Serves on a bound socket until SIGTERM or SIGINT; returns the exit code. ``announce`` is called when clients can come."""
    return run(_serve(root, place, access, announce))


async def _serve(root: Path | None, place: socket.socket, access: Access, announce: Callable[[], None]) -> int:
    import uvicorn

    class Server(uvicorn.Server):
        """One that leaves the signals to its process."""

        @contextlib.contextmanager
        def capture_signals(self) -> Generator[None]:
            yield

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            announce()

    shared = begin(root)
    _ = shared.runtime
    http = HttpServer(shared, access)
    config = uvicorn.Config(
        http.app(),
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=round(END_S),
    )
    server = Server(config)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    codes: list[int] = []

    def end(code: int) -> None:
        codes.append(code)
        ended.set()

    loop.add_signal_handler(signal.SIGTERM, end, 0)
    loop.add_signal_handler(signal.SIGINT, end, 128 + signal.SIGINT)
    serving = asyncio.ensure_future(server.serve([place]))
    sweeping = asyncio.ensure_future(http.sweep())
    waiting = asyncio.ensure_future(ended.wait())
    try:
        await asyncio.wait({serving, waiting, sweeping}, return_when=asyncio.FIRST_COMPLETED)
        await http.close()
        server.should_exit = True
        await asyncio.wait({serving}, timeout=2 * END_S)
    finally:
        for task in (sweeping, waiting, serving):
            task.cancel()
        place.close()
        await shared.close()
    return codes[0] if codes else 0
