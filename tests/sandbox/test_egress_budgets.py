"""The egress proxy's budgets: time, bytes, connections; what is large arrives whole, and nothing is left open."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

import pytest

from tamis.sandbox.network.egress import Budgets, Egress
from tests.sandbox.client_hello import client_hello
from tests.sandbox.proxy_bench import CONNECTED, LONG, OK, SHORT, Bench, Heard, Names, Upstream, bench, listening, run
from tests.waiting import arrives

IMPATIENT = Budgets(head_seconds=0.3, connect_seconds=3600.0, idle_seconds=3600.0)
SHORT_IDLE = Budgets(head_seconds=3600.0, connect_seconds=3600.0, idle_seconds=0.3)


def test_half_a_request_then_silence_is_closed() -> None:
    async def test() -> None:
        async with bench(budgets=IMPATIENT) as at:
            began = asyncio.get_running_loop().time()
            answer = await at.say(b"GET http://a.b/ HT")
            assert answer.startswith(b"HTTP/1.1 400 ") and b"within 0.3 seconds" in answer
            assert asyncio.get_running_loop().time() - began > 0.25

    run(test())


def test_slow_head_is_closed_at_the_deadline_however_it_trickles() -> None:
    async def test() -> None:
        async with bench(budgets=IMPATIENT) as at:
            transport, heard = await asyncio.get_running_loop().create_connection(Heard, "127.0.0.1", at.port)
            while not heard.ended.done():  # it would trickle for ever
                transport.write(b"X")
                await asyncio.sleep(0.05)
            assert heard.answer == b"" or heard.answer.startswith(b"HTTP/1.1 400 ")
            assert "within 0.3 seconds" in at.egress.events[0].reason

    run(test())


def test_look_up_that_hangs_ends_at_the_connect_deadline() -> None:
    async def hang(host: str, port: int) -> Sequence[str]:
        await asyncio.sleep(3600)
        return []

    async def test() -> None:
        egress = Egress(["a.b"], resolver=hang, budgets=SHORT)
        listener = listening()
        port = listener.getsockname()[1]
        await egress.serve(listener)
        answer = await Bench(egress, port, Upstream(), Names()).say(b"CONNECT a.b:443 HTTP/1.1\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 504 ")
        await egress.close()

    run(test())


def test_byte_budget_ends_the_connection_and_refuses_the_next() -> None:
    async def test() -> None:
        reply = b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 200_000
        budgets = Budgets(bytes=100_000, head_seconds=3600, connect_seconds=3600, idle_seconds=3600)
        async with bench(upstream=Upstream(reply=reply), budgets=budgets) as at:
            request = b"GET http://a.b:%d/ HTTP/1.1\r\n\r\n" % at.upstream.port
            assert len(await at.say(request)) <= 100_000
            answer = await at.say(request)
            assert answer.startswith(b"HTTP/1.1 429 ") and b"used up" in answer
            assert at.egress.bytes_used == 100_000
            assert {event.action for event in at.egress.events} == {"allow", "limit"} and at.egress.denied == []
            assert len(at.upstream.received) == 1

    run(test())


def test_connection_above_the_budget_is_refused_until_one_ends() -> None:
    async def test() -> None:
        budgets = Budgets(connections=2, head_seconds=3600, connect_seconds=3600, idle_seconds=3600)
        async with bench(budgets=budgets) as at:
            idle = [await asyncio.open_connection("127.0.0.1", at.port) for _ in range(2)]
            request = b"GET http://a.b:%d/ HTTP/1.1\r\n\r\n" % at.upstream.port
            await arrives(lambda: len(at.egress._tasks) == 2)
            assert (await at.say(request)).startswith(b"HTTP/1.1 429 ")
            for _, writer in idle:
                writer.close()
            await arrives(lambda: len(at.egress._tasks) == 0)
            assert await at.say(request) == OK

    run(test())


def test_flood_of_connections_is_dropped_without_an_answer() -> None:
    async def test() -> None:
        async with bench(budgets=Budgets(connections=2, head_seconds=3600)) as at:
            ends = [await asyncio.open_connection("127.0.0.1", at.port) for _ in range(20)]
            await arrives(lambda: sum(reader.at_eof() or reader.exception() is not None for reader, _ in ends) >= 16)
            for _, writer in ends:
                writer.close()

    run(test())


def test_idle_tunnel_is_closed() -> None:
    async def test() -> None:
        async with bench(upstream=Upstream(echo=True), budgets=SHORT_IDLE) as at:
            began = asyncio.get_running_loop().time()
            reader, writer = await asyncio.open_connection("127.0.0.1", at.port)
            writer.write(b"CONNECT a.b:%d HTTP/1.1\r\n\r\n" % at.upstream.port + client_hello("a.b"))
            with contextlib.suppress(OSError):
                while await reader.read(65536):
                    pass
            assert asyncio.get_running_loop().time() - began > 0.25
            writer.close()

    run(test())


def test_download_that_keeps_moving_outlives_the_idle_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each piece moves the end of the idle time."""
    turn, timeouts = asyncio.Semaphore(1), list[asyncio.Timeout]()

    def idle_timeout(_: Egress) -> asyncio.Timeout:
        timeouts.append(asyncio.timeout(3600))
        return timeouts[-1]

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)
        for _ in range(4):
            await turn.acquire()
            writer.write(b"x")
        await turn.acquire()
        writer.close()

    async def test() -> None:
        async with bench() as at:
            server = await asyncio.start_server(drip, "127.0.0.1", 0)
            reader, writer = await asyncio.open_connection("127.0.0.1", at.port)
            writer.write(b"GET http://a.b:%d/ HTTP/1.1\r\n\r\n" % server.sockets[0].getsockname()[1])
            ends: list[float | None] = []
            for _ in range(4):
                assert await reader.readexactly(1) == b"x"
                ends.append(timeouts[-1].when())
                turn.release()
            assert None not in ends and ends == sorted(set(ends)) and len(ends) == 4
            assert await reader.read() == b""
            writer.close()
            server.close()

    monkeypatch.setattr(Egress, "_idle_timeout", idle_timeout)

    run(test())


def test_large_answer_arrives_whole_at_a_slow_reader() -> None:
    async def test() -> None:
        reply = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + bytes(range(256)) * 8192
        async with bench(upstream=Upstream(reply=reply), budgets=LONG) as at:
            reader, writer = await asyncio.open_connection("127.0.0.1", at.port, limit=4096)
            writer.write(b"GET http://a.b:%d/ HTTP/1.1\r\n\r\n" % at.upstream.port)
            answer = bytearray()
            while data := await reader.read(32768):
                answer += data
                await asyncio.sleep(0.002)
            assert answer == reply
            writer.close()

    run(test())


def test_large_upload_arrives_whole() -> None:
    async def test() -> None:
        total = 0

        async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal total
            await reader.readuntil(b"\r\n\r\n")
            while total < 2_000_000 and (piece := await reader.read(65536)):
                total += len(piece)
            writer.write(OK)
            writer.close()

        async with bench(budgets=LONG) as at:
            server = await asyncio.start_server(swallow, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            head = b"PUT http://a.b:%d/ HTTP/1.1\r\nContent-Length: 2000000\r\n\r\n" % port
            assert await at.say(head, b"x" * 2_000_000) == OK
            assert total == 2_000_000
            server.close()

    run(test())


def test_close_ends_every_connection_and_leaves_no_task() -> None:
    async def test() -> None:
        async with bench(upstream=Upstream(echo=True), budgets=LONG) as at:
            reader, writer = await asyncio.open_connection("127.0.0.1", at.port)
            writer.write(b"CONNECT a.b:%d HTTP/1.1\r\n\r\n" % at.upstream.port + client_hello("a.b"))
            assert await reader.readexactly(len(CONNECTED)) == CONNECTED
            await reader.read(100)
            _, silent = await asyncio.open_connection("127.0.0.1", at.port)
            await asyncio.sleep(0.05)
            await at.egress.close()
            with contextlib.suppress(OSError):
                while await reader.read(65536):
                    pass
            with pytest.raises(OSError, match=r"."):
                await asyncio.open_connection("127.0.0.1", at.port)
            await at.egress.close()
            writer.close()
            silent.close()
            await asyncio.sleep(0.05)
            running = [task.get_name() for task in asyncio.all_tasks() if "_converse" in repr(task.get_coro())]
            assert running == []

    run(test())


def test_records_of_decisions_are_bounded() -> None:
    async def test() -> None:
        async with bench(budgets=LONG) as at:
            for number in range(520):
                reader, writer = await asyncio.open_connection("127.0.0.1", at.port)
                writer.write(b"CONNECT h%d.evil:443 HTTP/1.1\r\n\r\n" % number)
                writer.write_eof()
                await reader.read(65536)
                writer.close()
            assert len(at.egress.denied) == 512 and len(at.egress.events) == 512
            assert at.egress.events_dropped == 8

    run(test())


def test_budgets_are_the_stated_ones() -> None:
    assert Budgets() == Budgets(
        connections=32, bytes=67_108_864, head_seconds=10.0, connect_seconds=10.0, idle_seconds=120.0
    )
