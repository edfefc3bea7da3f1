"""Mutated requests to the live proxy: what arrives at the far end is one whole request for the granted host, or nothing."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.sandbox.client_hello import client_hello
from tests.sandbox.proxy_bench import SHORT, Names, bench, run

SEEDS = (
    b"GET http://api.test:PORT/x HTTP/1.1\r\nHost: api.test\r\nAccept: */*\r\n\r\n",
    b"POST http://api.test:PORT/ HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
    b"POST http://api.test:PORT/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"CONNECT api.test:PORT HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost: api.test:PORT\r\n\r\n",
    b"CONNECT api.test:PORT HTTP/1.1\r\n\r\n" + client_hello("api.test"),
    b"CONNECT evil.test:443 HTTP/1.1\r\n\r\n",
)
PIECES = (
    *(
        b"\r\n",
        b"\n",
        b"\r",
        b" ",
        b"\t",
        b"\0",
        b":",
        b"@",
        b"/",
        b"#",
        b"%00",
        b"0",
        b"-1",
        b"evil.test",
        b"127.0.0.1",
    ),
    *(b"\r\nHost: evil.test", b"\r\nContent-Length: 3", b"\r\nTransfer-Encoding: chunked", b"GET / HTTP/1.1\r\n\r\n"),
)


@st.composite
def attacks(draw: st.DrawFn) -> tuple[bytes, ...]:
    """A valid request with up to four changes, in up to four pieces."""
    data = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        to = draw(st.integers(at, min(len(data), at + 8)))
        data = data[:at] + draw(st.sampled_from((b"", *PIECES))) + data[to:]
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=3)))
    return tuple(data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True))


@given(attacks())
def test_what_arrives_is_one_request_for_the_granted_host(pieces: tuple[bytes, ...]) -> None:
    faults: list[Any] = []

    async def test() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
        async with bench("api.test:*", names=Names(api_test=[["127.0.0.1"]]), budgets=SHORT) as at:
            port = b"%d" % at.upstream.port
            reader, writer = await asyncio.open_connection("127.0.0.1", at.port)
            with contextlib.suppress(OSError):
                for piece in pieces:
                    writer.write(piece.replace(b"PORT", port))
                    await asyncio.sleep(0)
                writer.write_eof()
                while await reader.read(65536):
                    pass
            writer.close()
            assert len(at.upstream.received) <= 1
            for seen in filter(None, map(bytes, at.upstream.received)):
                if not seen.startswith(b"\x16"):
                    head = seen.partition(b"\r\n\r\n")[0].split(b"\r\n")
                    hosts = [line for line in head if line.lower().startswith(b"host:")]
                    assert hosts == [b"Host: api.test:" + port], seen
                    assert head[0].endswith((b" HTTP/1.1", b" HTTP/1.0")) and all(b":" in line for line in head[1:]), (
                        seen
                    )
            assert not any("evil.test" in target for target in at.egress.reached)

    run(test())
    # asyncio itself reports the far end's handler that was cancelled when the test ended
    assert [fault for fault in faults if not isinstance(fault.get("exception"), asyncio.CancelledError)] == []
