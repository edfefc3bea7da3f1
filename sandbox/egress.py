"""The egress proxy: the only way out of a sandbox that was granted hosts.

One `Egress` serves one run on a listening socket that was made inside the sandbox's network namespace. It lets through
CONNECT and plain HTTP to the granted hosts, resolves each name once, dials only addresses that passed the policy, and
refuses everything else with a 403 that says why. Knows nothing of tools, manifests or how the sandbox is made; the wire
formats live in `egress_wire`, the rules in `hosts`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from ipaddress import ip_address
from typing import Final, Literal

import msgspec

from tamis.sandbox.egress_wire import (
    MAX_CHUNK_LINE,
    Request,
    RequestError,
    check_request_line,
    find_head_end,
    parse_chunk_size,
    parse_proxy_head,
    parse_tunnelled_head,
    read_client_hello,
)
from tamis.sandbox.hosts import Rules, address_allowed, canonical_host, host_address, parse_cidr

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Looks a name up: (host, port) to IP addresses as text. OSError when the name has none."""

_READ: Final = 64 * 1024
_MAX_EVENTS: Final = 512
_MAX_ADDRESSES: Final = 16
_LINGER_BYTES: Final = 256 * 1024
_LINGER_SECONDS: Final = 0.5
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


class _Refusal(Exception):  # noqa: N818 - an answer, not an error
    def __init__(self, status: int, reason: str, address: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.address = address


class _Spent(Exception):  # noqa: N818 - the byte budget ended a connection
    pass


class _Gone(Exception):  # noqa: N818 - the client left within its request
    pass


async def resolve_with_system(host: str, port: int) -> Sequence[str]:
    """Looks a name up with the system's resolver, in a thread."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


class Egress:
    """The proxy of one run.

    `hosts` are rules as `hosts.parse_rule` reads them, `allow_cidrs` ranges beside the public ones that the operator
    opened, `pins` (operator only) names to the one address that is dialled for them without a look-up. Raises ValueError
    naming a bad rule, range or pin.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        allow_cidrs: Sequence[str] = (),
        *,
        resolver: Resolver | None = None,
        budgets: Budgets = Budgets(),  # noqa: B008 - frozen
        pins: Mapping[str, str] | None = None,
    ) -> None:
        self.rules = Rules.parse(hosts)
        self.budgets = budgets
        self.denied: list[str] = []
        """``host:port`` of what the policy refused, each once, at most 512."""
        self.events: list[EgressEvent] = []
        """The first 512 decisions; `events_dropped` counts the others."""
        self.events_dropped = 0
        self.bytes_used = 0
        self._networks = tuple(parse_cidr(text) for text in allow_cidrs)
        self._pins = {canonical_host(name): _pinned(name, address) for name, address in (pins or {}).items()}
        self._resolve = resolver or resolve_with_system
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def serve(self, listener: socket.socket) -> None:
        """Starts to serve on a listening TCP socket of 127.0.0.1 and returns; the socket is then the proxy's to close.

        Raises ValueError if it is any other socket: it arrives as a file descriptor from inside the sandbox.
        """
        _check_listener(listener)
        if self._server is not None or self._closed:
            raise RuntimeError("this proxy serves or has served; make one per run")
        listener.setblocking(False)
        self._server = await asyncio.start_server(self._accepted, sock=listener)

    async def close(self) -> None:
        """Ends every connection and waits until none is left. May be called twice."""
        self._closed = True
        if self._server is not None:
            self._server.close()
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Refused connections are answered too, but a flood of them must not cost the daemon its descriptors.
        if self._closed or len(self._tasks) >= 2 * self.budgets.connections:
            writer.transport.abort()
            return
        client = _Peer(reader, writer)
        task = asyncio.get_running_loop().create_task(self._converse(client, len(self._tasks)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _converse(self, client: _Peer, open_before: int) -> None:
        request: Request | None = None
        try:
            if open_before >= self.budgets.connections:
                raise _Refusal(429, f"{self.budgets.connections} connections are open; close one first")
            request = parse_proxy_head(await self._head(client))
            await self._forward(client, request)
        except _Refusal as refusal:
            self._note(_ACTIONS[refusal.status], request, refusal.reason, refusal.address)
            await self._refuse(client, refusal.status, request, refusal.reason)
        except RequestError as error:
            self._note("deny", request, str(error))
            await self._refuse(client, 400, request, str(error))
        except _Spent:
            self._note("limit", request, self._spent_reason())
        except (OSError, _Gone):  # either side went away, or nothing moved for too long: there is nobody to tell
            pass
        finally:
            client.writer.transport.abort()

    async def _head(self, client: _Peer) -> bytes:
        seconds = self.budgets.head_seconds
        try:
            async with asyncio.timeout(seconds):
                return await client.read_head()
        except TimeoutError:
            raise RequestError(f"no complete request head within {seconds:g} seconds") from None

    async def _forward(self, client: _Peer, request: Request) -> None:
        if self.bytes_used >= self.budgets.bytes:
            raise _Refusal(429, self._spent_reason())
        decision = self.rules.decide(request.host, request.port)
        if not decision.allowed:
            raise _Refusal(403, decision.reason)
        try:
            async with asyncio.timeout(self.budgets.connect_seconds):
                addresses = await self._vetted(request.host, request.port)
                server, address = await self._dial(addresses, request)
        except TimeoutError:
            raise _Refusal(
                504, f"{_target(request)} was not reached in {self.budgets.connect_seconds:g} seconds"
            ) from None
        try:
            if not request.tunnel:
                self._note("allow", request, decision.reason, address)
                await self._exchange(client, server, request)
            elif await self._opens_honestly(client, server, request, decision.reason, address):
                await self._relay(client, server)
        finally:
            server.writer.transport.abort()

    async def _vetted(self, host: str, port: int) -> list[str]:
        """The addresses of a host that may be dialled, after exactly one look-up."""
        if host in self._pins:
            return [self._pins[host]]
        literal = host_address(host)
        if literal is not None:
            found: list[str] = [str(literal)]
        else:
            try:
                found = list(await self._resolve(host, port))
            except TimeoutError:
                raise
            except (OSError, ValueError):
                raise _Refusal(502, f"the name {host} was not found") from None
        allowed = [address for address in dict.fromkeys(found) if address_allowed(address, self._networks)]
        if not found:
            raise _Refusal(502, f"the name {host} has no address")
        if not allowed:
            reason = f"{host} leads only to addresses that are not public; an operator can open a range with allowCidrs"
            raise _Refusal(403, reason, found[0])
        return allowed[:_MAX_ADDRESSES]

    async def _dial(self, addresses: Sequence[str], request: Request) -> tuple[_Peer, str]:
        loop = asyncio.get_running_loop()
        end = loop.time() + self.budgets.connect_seconds
        for number, address in enumerate(addresses):
            # An address that does not answer must leave time for the ones after it.
            share = max(end - loop.time(), 0.0) / (len(addresses) - number)
            with contextlib.suppress(OSError):
                async with asyncio.timeout(share):
                    return _Peer(*await asyncio.open_connection(address, request.port)), address
        raise _Refusal(502, f"{_target(request)} does not accept a connection", addresses[0])

    async def _exchange(self, client: _Peer, server: _Peer, request: Request) -> None:
        """Sends one plain request and relays one answer; nothing that follows the request's body leaves the sandbox."""
        async with self._idle_timeout() as idle:
            await self._send(server, request.head, idle)
            upload = asyncio.ensure_future(self._send_body(client, server, request, idle))
            answer = asyncio.ensure_future(self._pump(server, client, idle))
            try:
                await asyncio.wait((upload, answer), return_when=asyncio.FIRST_COMPLETED)
                if upload.done() and not isinstance(upload.exception(), OSError):
                    upload.result()  # after an OSError the server may have answered early, say with 413
                await answer
            finally:
                await _end(upload, answer)
        await client.linger()

    async def _send_body(self, client: _Peer, server: _Peer, request: Request, idle: asyncio.Timeout) -> None:
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

    async def _send_exactly(self, client: _Peer, server: _Peer, size: int, idle: asyncio.Timeout) -> None:
        while size:
            piece = await client.read(min(size, _READ))
            if not piece:
                raise _Gone
            size -= len(piece)
            await self._send(server, piece, idle)

    async def _opens_honestly(self, client: _Peer, server: _Peer, request: Request, reason: str, address: str) -> bool:
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
        if inner is not None:
            await self._exchange(client, server, inner)
        return inner is None

    async def _check_hello(self, client: _Peer, host: str) -> None:
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

    async def _relay(self, client: _Peer, server: _Peer) -> None:
        async with self._idle_timeout() as idle:
            pumps = [asyncio.ensure_future(self._pump(*ends, idle)) for ends in ((client, server), (server, client))]
            try:
                await asyncio.gather(*pumps)
            finally:
                await _end(*pumps)

    async def _pump(self, source: _Peer, sink: _Peer, idle: asyncio.Timeout) -> None:
        while piece := await source.read(_READ):
            sink.answered = True
            await self._send(sink, piece, idle)
        with contextlib.suppress(OSError):
            sink.writer.write_eof()

    async def _send(self, peer: _Peer, data: bytes, idle: asyncio.Timeout) -> None:
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
        if action == "deny" and request is not None:
            target = _target(request)
            if target not in self.denied and len(self.denied) < _MAX_EVENTS:
                self.denied.append(target)
        if len(self.events) < _MAX_EVENTS:
            self.events.append(EgressEvent(action, host, port, reason, address, time.time()))
        else:
            self.events_dropped += 1

    async def _refuse(self, client: _Peer, status: int, request: Request | None, reason: str) -> None:
        if client.answered:
            return
        where = f"{_target(request)}: " if request is not None else ""
        text = f"{where}{reason}".encode("ascii", "backslashreplace")
        body = b"Refused by the sandbox: " + text + b"\n"
        # Clients show nothing but the status line of a failed CONNECT, so the reason stands there as well.
        head = b"HTTP/1.1 %d %b\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        client.writer.write(head % (status, text[:300], len(body)) + body)
        await client.linger()


class _Peer:
    """One end of a conversation, with what was read of it but not yet used."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.buffer = bytearray()
        self.answered = False
        """Whether bytes of another peer were relayed to this one, so that no answer of our own fits any more."""
        # drain() then waits for the kernel to hold everything, and an abort() after it loses nothing.
        writer.transport.set_write_buffer_limits(high=0)

    async def more(self) -> bool:
        piece = await self.reader.read(_READ)
        self.buffer += piece
        return bool(piece)

    async def read(self, size: int) -> bytes:
        if not self.buffer:
            return await self.reader.read(size)
        piece = bytes(self.buffer[:size])
        del self.buffer[:size]
        return piece

    async def peek(self) -> bytes:
        if not self.buffer and not await self.more():
            raise ConnectionResetError
        return bytes(self.buffer[:1])

    async def read_head(self) -> bytes:
        seen, line_seen = 0, False
        while (end := find_head_end(self.buffer, seen - 3)) is None:
            line_end = -1 if line_seen else self.buffer.find(b"\r\n")
            if line_end >= 0:  # HTTP/0.9 and the like never send an empty line, so do not wait for it
                check_request_line(bytes(self.buffer[:line_end]))
                line_seen = True
            seen = len(self.buffer)
            if not await self.more():
                if not self.buffer:
                    raise ConnectionResetError
                raise RequestError("the connection ended within the request head")
        return await self.read(end)

    async def read_line(self, limit: int) -> bytes:
        """A line without its CR LF."""
        while (end := self.buffer.find(b"\n")) < 0:
            if len(self.buffer) > limit or not await self.more():
                raise RequestError("a line of the body is too long or has no end")
        if end > limit or not self.buffer.endswith(b"\r", 0, end):
            raise RequestError("a line of the body does not end in CR LF or is too long")
        return (await self.read(end + 1))[:-2]

    async def linger(self) -> None:
        """Ends our side and reads the rest of theirs for a moment: closing over unread bytes would reset the answer."""
        with contextlib.suppress(OSError):
            async with asyncio.timeout(_LINGER_SECONDS):
                await self.writer.drain()
                if self.writer.can_write_eof():
                    self.writer.write_eof()
                left = _LINGER_BYTES
                while left > 0 and (piece := await self.reader.read(_READ)):
                    left -= len(piece)


async def _end(*tasks: asyncio.Future[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _target(request: Request) -> str:
    return f"{request.host}:{request.port}"


def _pinned(name: str, address: str) -> str:
    try:
        return str(ip_address(address))
    except ValueError:
        raise ValueError(f"pin of {name!r}: {address!r} is not an IP address; write '192.0.2.7'") from None


def _check_listener(listener: socket.socket) -> None:
    # Asked of the kernel: the attributes of a Python socket are what its maker claimed.
    facts = {
        "an IPv4 socket": listener.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN) == socket.AF_INET,
        "a TCP socket": listener.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL) == socket.IPPROTO_TCP,
        "listening": bool(listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)),
    }
    for fact, holds in facts.items():
        if not holds:
            raise ValueError(f"the proxy's listener is not {fact}")
    if listener.getsockname()[0] != "127.0.0.1":
        raise ValueError("the proxy's listener is not bound to 127.0.0.1")
