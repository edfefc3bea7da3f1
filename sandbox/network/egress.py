"""The egress proxy: the only way out of a sandbox that was granted hosts.

One `Egress` serves one run on a listening socket that was made inside the sandbox's network namespace. It lets through
CONNECT and plain HTTP to the granted hosts, resolves each name once, dials only addresses that passed the policy, and
refuses everything else with a 403 that says why. Knows nothing of tools, manifests or how the sandbox is made; the wire
formats live in `egress_wire`, names and addresses in `egress_addresses`, the rules in `hosts`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, Literal

import msgspec

from tamis.sandbox.model import AddedHeader
from tamis.sandbox.network.egress_hosts import Added, Addresses, Refused, Resolver, upstream_port, with_headers
from tamis.sandbox.network.egress_wire import (
    MAX_CHUNK_LINE,
    READ,
    Peer,
    Request,
    RequestError,
    closing,
    is_interim,
    parse_chunk_size,
    parse_proxy_head,
    parse_tunnelled_head,
    read_client_hello,
)
from tamis.sandbox.network.hosts import Rules, canonical_host, host_address

_MAX_EVENTS: Final = 512
_WAITING: Final = 256  # what does not fit is tried again by the client after a second
_BREATH_SECONDS: Final = 0.001
_TLS_ACCESS_DENIED: Final = b"\x15\x03\x01\x00\x02\x02\x31"  # fatal alert 49, so that the client can name the cause


class Budgets(msgspec.Struct, frozen=True):
    """What one run may use: open connections, bytes in both directions, and seconds."""

    connections: int = 32
    bytes: int = 64 * 1024 * 1024
    head_seconds: float = 10.0
    """For a whole request head, and again for the first message in a tunnel."""
    connect_seconds: float = 10.0
    """For looking the name up and reaching one of its addresses."""
    idle_seconds: float = 120.0


Action = Literal["allow", "deny", "limit", "fail"]


class EgressEvent(msgspec.Struct, frozen=True):
    """One decision, for the audit log. `host` is empty and `port` 0 when the request did not get as far as naming them.

    ``deny`` is the policy's no, ``limit`` a budget's; ``fail`` is a permitted target that was not found or did not answer.
    """

    action: Action
    host: str
    port: int
    reason: str
    address: str = ""
    """The vetted address that was dialled, or one that was refused. Not told to the run."""
    at: float = 0.0
    """Seconds since the epoch."""


_ACTIONS: Final[Mapping[int, Action]] = {403: "deny", 429: "limit", 502: "fail", 504: "fail"}


class _Spent(Exception):  # noqa: N818 - the byte budget ended a connection
    pass


class _Gone(Exception):  # noqa: N818 - the client left within its request
    pass


@cache
def _tls() -> ssl.SSLContext:
    """TLS as a client that trusts this machine's authorities and checks the server's name."""
    return ssl.create_default_context()


class Egress:
    """The proxy of one run.

    `hosts` are rules as `hosts.parse_rule` reads them, `allow_cidrs` ranges beside the public ones that the operator
    opened, `pins` (name, address) of names that are not looked up: the operator says where they are, and the address is
    judged like any other. `headers` are added to the plain requests to their hosts. Raises ValueError naming a bad rule, range or pin.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        allow_cidrs: Sequence[str] = (),
        *,
        resolver: Resolver | None = None,
        budgets: Budgets = Budgets(),  # noqa: B008 - frozen
        pins: Sequence[tuple[str, str]] = (),
        headers: Sequence[AddedHeader] = (),
    ) -> None:
        self.rules = Rules.parse(hosts)
        self.budgets = budgets
        self.denials: dict[str, str] = {}
        """Reason by ``host:port`` of what the policy refused, at most 512; the first reason of each."""
        self.reached: dict[str, None] = {}
        """``host:port`` of what was let through, at most 512."""
        self.events: list[EgressEvent] = []
        """The first 512 decisions; `events_dropped` counts the others."""
        self.events_dropped = 0
        self.bytes_used = 0
        self._addresses = Addresses(allow_cidrs, pins, resolver)
        self._added = Added.parse(headers)
        self._accepting: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def denied(self) -> list[str]:
        """``host:port`` of what the policy refused."""
        return list(self.denials)

    async def serve(self, listener: socket.socket) -> None:
        """Starts to serve on a listening TCP socket and returns; the socket is then the proxy's to close."""
        if self._accepting is not None or self._closed:
            raise RuntimeError("this proxy serves or has served; make one per run")
        listener.setblocking(False)
        listener.listen(_WAITING)
        self._accepting = asyncio.get_running_loop().create_task(self._accept(listener))

    async def close(self) -> None:
        """Ends every connection and waits until none is left. May be called twice."""
        self._closed = True
        self._addresses.close()
        if self._accepting is not None:
            await _end(self._accepting)
        while self._tasks:
            await _end(*self._tasks)

    async def _accept(self, listener: socket.socket) -> None:
        """Takes one connection in each turn of the loop, so that a flood of them holds up nothing else."""
        loop = asyncio.get_running_loop()
        with listener:
            while True:
                try:
                    end, _ = await loop.sock_accept(listener)
                except OSError:  # this process is out of descriptors
                    await asyncio.sleep(_BREATH_SECONDS)
                    continue
                # Refused connections are answered too, but a flood of them must not cost the daemon its descriptors.
                if len(self._tasks) >= 2 * self.budgets.connections:
                    end.close()
                    await asyncio.sleep(_BREATH_SECONDS)
                    continue
                task = loop.create_task(self._converse(end, len(self._tasks)))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                await asyncio.sleep(0)  # a connection that is waiting already is taken without one

    async def _converse(self, end: socket.socket, open_before: int) -> None:
        client = Peer(*await asyncio.open_connection(sock=end))
        request: Request | None = None
        try:
            if open_before >= self.budgets.connections:
                raise Refused(429, f"{self.budgets.connections} connections are open; close one first")
            request = parse_proxy_head(await self._head(client))
            await self._forward(client, request)
        except Refused as refusal:
            self._note(_ACTIONS[refusal.status], request, refusal.reason, refusal.address)
            await self._refuse(client, refusal.status, request, refusal.told)
        except RequestError as error:
            self._note("deny", request, str(error))
            await self._refuse(client, 400, request, str(error))
        except _Spent:
            self._note("limit", request, self._spent_reason())
        except (OSError, _Gone):  # either side went away, or nothing moved for too long: there is nobody to tell
            pass
        finally:
            client.writer.transport.abort()

    async def _head(self, client: Peer) -> bytes:
        seconds = self.budgets.head_seconds
        try:
            async with asyncio.timeout(seconds):
                return await client.read_head()
        except TimeoutError:
            raise RequestError(f"no complete request head within {seconds:g} seconds") from None

    async def _forward(self, client: Peer, request: Request) -> None:
        if self.bytes_used >= self.budgets.bytes:
            raise Refused(429, self._spent_reason())
        decision = self.rules.decide(request.host, request.port)
        if not decision.allowed:
            raise Refused(403, decision.reason)
        server, address = await self._reach(request, secure=not request.tunnel and self._is_secure(request))
        try:
            if not request.tunnel:
                self._note("allow", request, decision.reason, address)
                await self._exchange(client, server, self._with_headers(request))
            elif await self._opens_honestly(client, server, request, decision.reason, address):
                await self._relay(client, server)
        finally:
            server.writer.transport.abort()

    def _is_secure(self, request: Request) -> bool:
        """Whether a plain request goes on by TLS, as the operator wants it of what is added to it."""
        return any(header.https for header in self._added.of(request.host, request.port))

    def _with_headers(self, request: Request) -> Request:
        """A plain request with what the operator has the proxy add to it."""
        headers = self._added.of(request.host, request.port)
        if not headers:
            return request
        if request.head.startswith(b"TRACE "):
            raise RequestError(
                "TRACE has a server send back what it got, and the operator adds headers that are not to be seen"
            )
        return msgspec.structs.replace(request, head=with_headers(request.head, headers))

    async def _reach(self, request: Request, *, secure: bool) -> tuple[Peer, str]:
        """A connection to a request's host and its address; ``secure``: by TLS, on the port that is usual for it."""
        port = upstream_port(request.port) if secure else request.port
        if secure and not (decision := self.rules.decide(request.host, port)).allowed:
            raise Refused(403, decision.reason)
        try:
            async with asyncio.timeout(self.budgets.connect_seconds):
                addresses = await self._addresses.vetted(request.host, port)
                return await self._dial(addresses, request.host, port, secure=secure)
        except TimeoutError:
            raise Refused(504, f"the server was not reached in {self.budgets.connect_seconds:g} seconds") from None

    async def _dial(self, addresses: Sequence[str], host: str, port: int, *, secure: bool) -> tuple[Peer, str]:
        tls = _tls() if secure else None
        named = host.strip("[]") if secure else None
        loop = asyncio.get_running_loop()
        end = loop.time() + self.budgets.connect_seconds
        for number, address in enumerate(addresses):
            # An address that does not answer must leave time for the ones after it.
            share = max(end - loop.time(), 0.0) / (len(addresses) - number)
            try:
                async with asyncio.timeout(share):
                    return Peer(*await asyncio.open_connection(address, port, ssl=tls, server_hostname=named)), address
            except ssl.SSLError as error:
                raise Refused(502, f"the server cannot be trusted: {error.reason or 'no TLS'}", address) from None
            except OSError:
                continue
        raise Refused(502, "the server does not accept a connection", addresses[0])

    async def _exchange(self, client: Peer, server: Peer, request: Request) -> None:
        """Sends one plain request and relays one answer; nothing that follows the request's body leaves the sandbox."""
        async with self._idle_timeout() as idle:
            await self._send(server, request.head, idle)
            upload = asyncio.ensure_future(self._send_body(client, server, request, idle))
            answer = asyncio.ensure_future(self._answer(server, client, idle))
            try:
                await asyncio.wait((upload, answer), return_when=asyncio.FIRST_COMPLETED)
                if upload.done() and not isinstance(upload.exception(), OSError):
                    upload.result()  # after an OSError the server may have answered early, say with 413
                await answer
            finally:
                await _end(upload, answer)
        await client.linger()

    async def _answer(self, server: Peer, client: Peer, idle: asyncio.Timeout) -> None:
        interim = True
        while interim and (head := await server.read_answer_head()):
            interim = is_interim(head)
            client.answered = True
            await self._send(client, head if interim else closing(head), idle)
        await self._pump(server, client, idle)

    async def _send_body(self, client: Peer, server: Peer, request: Request, idle: asyncio.Timeout) -> None:
        if request.body == "chunked":
            while size := parse_chunk_size(await client.read_line(MAX_CHUNK_LINE)):
                await self._send(server, b"%x\r\n" % size, idle)
                await self._send_exactly(client, server, size, idle)
                if await client.read_line(2):
                    raise RequestError("a chunk of the body is longer than its size")
                await self._send(server, b"\r\n", idle)
            await self._send(server, b"0\r\n\r\n", idle)  # trailers, if any, stay behind
        else:
            await self._send_exactly(client, server, request.body, idle)

    async def _send_exactly(self, client: Peer, server: Peer, size: int, idle: asyncio.Timeout) -> None:
        while size:
            piece = await client.read(min(size, READ))
            if not piece:
                raise _Gone
            size -= len(piece)
            await self._send(server, piece, idle)

    async def _opens_honestly(self, client: Peer, server: Peer, request: Request, reason: str, address: str) -> bool:
        """Accepts a tunnel and checks its first message. True: a ClientHello for this host, still to be relayed."""
        client.writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        seconds = self.budgets.head_seconds
        try:
            async with asyncio.timeout(seconds):
                if await client.peek() != b"\x16":
                    inner = parse_tunnelled_head(await client.read_head(), request.host, request.port)
                else:
                    inner = None
                    await self._check_hello(client, request.host)
        except TimeoutError:
            self._note("deny", request, f"no complete TLS or HTTP greeting in the tunnel within {seconds:g} seconds")
            return False
        except RequestError as error:
            self._note("deny", request, str(error), address)
            if client.buffer.startswith(b"\x16"):
                client.writer.write(_TLS_ACCESS_DENIED)
                await client.linger()
            else:
                await self._refuse(client, 403, request, str(error))
            return False
        self._note("allow", request, reason, address)
        if inner is not None and self._is_secure(inner):
            # what is added is only for a connection by TLS
            other, _ = await self._reach(inner, secure=True)
            try:
                await self._exchange(client, other, self._with_headers(inner))
            finally:
                other.writer.transport.abort()
        elif inner is not None:
            await self._exchange(client, server, self._with_headers(inner))
        return inner is None

    async def _check_hello(self, client: Peer, host: str) -> None:
        while (hello := read_client_hello(client.buffer)) is None:
            if not await client.more():
                raise RequestError("the tunnel ended within the TLS ClientHello")
        if hello.encrypted:
            raise RequestError("the TLS ClientHello is encrypted (ECH), so its server name cannot be checked")
        if hello.server_name is None:
            if host_address(host) is None:
                raise RequestError(f"the TLS ClientHello names no server; it must name {host}")
            return
        try:
            named = canonical_host(f"[{hello.server_name}]" if ":" in hello.server_name else hello.server_name)
        except ValueError as error:
            raise RequestError(f"the TLS server name is not valid: {error}") from None
        if named != host:
            raise RequestError(f"the TLS server name {named} is not the tunnel's host {host}")

    async def _relay(self, client: Peer, server: Peer) -> None:
        async with self._idle_timeout() as idle:
            pumps = [asyncio.ensure_future(self._pump(*ends, idle)) for ends in ((client, server), (server, client))]
            try:
                await asyncio.gather(*pumps)
            finally:
                await _end(*pumps)

    async def _pump(self, source: Peer, sink: Peer, idle: asyncio.Timeout) -> None:
        while piece := await source.read(READ):
            sink.answered = True
            await self._send(sink, piece, idle)
        with contextlib.suppress(OSError):
            sink.writer.write_eof()

    async def _send(self, peer: Peer, data: bytes, idle: asyncio.Timeout) -> None:
        if self.bytes_used + len(data) > self.budgets.bytes:
            self.bytes_used = self.budgets.bytes
            raise _Spent
        self.bytes_used += len(data)
        peer.writer.write(data)
        await peer.writer.drain()
        if not idle.expired():
            idle.reschedule(asyncio.get_running_loop().time() + self.budgets.idle_seconds)

    def _idle_timeout(self) -> asyncio.Timeout:
        return asyncio.timeout(self.budgets.idle_seconds)

    def _spent_reason(self) -> str:
        return f"the {self.budgets.bytes} bytes of network traffic of this run are used up"

    def _note(self, action: Action, request: Request | None, reason: str, address: str = "") -> None:
        host, port = (request.host, request.port) if request is not None else ("", 0)
        if request is not None:
            target = _target(request)
            if action == "deny" and len(self.denials) < _MAX_EVENTS:
                self.denials.setdefault(target, reason)
            elif action == "allow" and len(self.reached) < _MAX_EVENTS:
                self.reached[target] = None
        if len(self.events) < _MAX_EVENTS:
            self.events.append(EgressEvent(action, host, port, reason, address, time.time()))
        else:
            self.events_dropped += 1

    async def _refuse(self, client: Peer, status: int, request: Request | None, reason: str) -> None:
        if client.answered:
            return
        where = f"{_target(request)}: " if request is not None else ""
        text = f"{where}{reason}".encode("ascii", "backslashreplace")
        # what was allowed and did not answer was refused by nobody
        body = (b"Not reached: " if _ACTIONS.get(status) == "fail" else b"Refused by the sandbox: ") + text + b"\n"
        # Clients show nothing but the status line of a failed CONNECT, so the reason stands there as well.
        head = b"HTTP/1.1 %d %b\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        client.writer.write(head % (status, text[:300], len(body)) + body)
        await client.linger()


async def _end(*tasks: asyncio.Future[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _target(request: Request) -> str:
    return f"{request.host}:{request.port}"
