"""A proxy between a test and a server on this machine's loopback: what each said, and which names were asked for."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any

from tamis.sandbox.network.egress import Budgets, Egress

OPEN = ("127.0.0.0/8",)
SHORT = Budgets(head_seconds=1.0, connect_seconds=1.0, idle_seconds=0.3)
LONG = Budgets(head_seconds=3600.0, connect_seconds=3600.0, idle_seconds=3600.0)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
CONNECTED = b"HTTP/1.1 200 Connection established\r\n\r\n"


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)


class Upstream:
    """A server that records what each connection sent and answers with `reply` after the first bytes, then closes."""

    def __init__(self, reply: bytes = OK, echo: bool = False, silent: bool = False) -> None:
        self.reply = reply
        self.silent = silent
        self.echo = echo
        self.port = 0
        self.received: list[bytearray] = []

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen = bytearray()
        self.received.append(seen)
        with contextlib.suppress(OSError):
            while piece := await reader.read(65536):
                seen += piece
                if self.echo:
                    writer.write(piece)
                elif b"\r\n\r\n" in seen and not self.silent:
                    await asyncio.sleep(0.05)  # whatever else was let through has arrived by then
                    seen += await reader.read(65536) if reader._buffer else b""  # type: ignore[attr-defined]
                    writer.write(self.reply)
                    break
        writer.close()


class Names:
    """A resolver with fixed answers that counts look-ups; a list of lists answers one after the other."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self.answers = {name.replace("_", "."): list(found) for name, found in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        found = self.answers.get(host)
        if found is None:
            raise OSError(f"unknown name {host}")
        return found.pop(0) if len(found) > 1 else found[0]


def listening() -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    return listener


class Bench:
    def __init__(self, egress: Egress, port: int, upstream: Upstream, names: Names) -> None:
        self.egress = egress
        self.port = port
        self.upstream = upstream
        self.names = names

    async def say(self, *pieces: bytes, gap: float = 0.0, ends: bool = False) -> bytes:
        """Sends the pieces, reads until the proxy ends the connection, be it with a reset: what came before that counts.

        `ends`: nothing more comes from this side, which ends a tunnel to a server that echoes.
        """
        transport, heard = await asyncio.get_running_loop().create_connection(Heard, "127.0.0.1", self.port)
        for piece in pieces:
            transport.write(piece)
            await asyncio.sleep(gap)
        if ends:
            transport.write_eof()
        await heard.ended
        return bytes(heard.answer)


class Heard(asyncio.Protocol):
    """What comes on a connection. A stream reader that meets a reset gives nothing of what came before."""

    def __init__(self) -> None:
        self.answer = bytearray()
        self.ended = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self.answer += data

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set_result(None)


@contextlib.asynccontextmanager
async def bench(
    *hosts: str,
    upstream: Upstream | None = None,
    names: Names | None = None,
    allow_cidrs: Sequence[str] = OPEN,
    budgets: Budgets = LONG,
    pins: Sequence[tuple[str, str]] = (),
) -> AsyncIterator[Bench]:
    upstream = upstream or Upstream()
    server = await asyncio.start_server(upstream.handle, "127.0.0.1", 0)
    upstream.port = server.sockets[0].getsockname()[1]
    names = names or Names(a_b=[["127.0.0.1"]])
    egress = Egress(hosts or ("a.b:*",), allow_cidrs, resolver=names, budgets=budgets, pins=pins)
    listener = listening()
    port = listener.getsockname()[1]
    await egress.serve(listener)
    try:
        yield Bench(egress, port, upstream, names)
    finally:
        await egress.close()
        server.close()
