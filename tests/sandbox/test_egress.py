"""The egress proxy over loopback: what passes, what is refused, and that refused bytes reach nobody.

Traffic goes only to listeners on 127.0.0.1 that the test makes; names come from a fake resolver.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence

import pytest

from tamis.sandbox.network.egress import Egress
from tests.sandbox.client_hello import client_hello, hello_with, sni
from tests.sandbox.proxy_bench import CONNECTED, LONG, OK, SHORT, Bench, Names, Upstream, bench, run
from tests.waiting import arrives


def test_absolute_http_request_is_forwarded_with_the_vetted_host() -> None:
    # D17
    async def test() -> None:
        async with bench() as at:
            target = f"a.b:{at.upstream.port}".encode()
            answer = await at.say(
                b"GET http://" + target + b"/x HTTP/1.1\r\nHost: evil.org\r\nProxy-Connection: x\r\n\r\n"
            )
            assert answer == OK
            assert at.upstream.received == [b"GET /x HTTP/1.1\r\nHost: " + target + b"\r\nConnection: close\r\n\r\n"]
            assert at.names.asked == ["a.b"]
            assert at.egress.denied == []
            assert [(event.action, event.host, event.address) for event in at.egress.events] == [
                ("allow", "a.b", "127.0.0.1")
            ]

    run(test())


ANSWERS = [
    (b"HTTP/1.1 204 No\r\n\r\n", b"HTTP/1.1 204 No\r\nConnection: close\r\n\r\n"),
    (
        b"HTTP/1.1 200 OK\r\nconnection: Keep-Alive\r\nKeep-Alive: 5\r\nContent-Length: 1\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx",
    ),
    (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.0 200 OK\r\nA: 1\r\n\r\nx",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.0 200 OK\r\nA: 1\r\nConnection: close\r\n\r\nx",
    ),
    (b"HTTP/1.1 200 OK\nA: 1\n\nx", b"HTTP/1.1 200 OK\nA: 1\n\nx"),
    (b"SSH-2.0-x\r\n\r\n", b"SSH-2.0-x\r\n\r\n"),
    (b"HTTP/1.1 200 OK\r\nA: 1", b"HTTP/1.1 200 OK\r\nA: 1"),
    (b"HTTP/1.1 200 OK\r\n" + b"A: 1\r\n" * 20_000, b"HTTP/1.1 200 OK\r\n" + b"A: 1\r\n" * 20_000),
    (b"", b""),
]


@pytest.mark.parametrize(("reply", "told"), ANSWERS)
def test_answer_says_that_its_connection_ends(reply: bytes, told: bytes) -> None:
    # a client that kept the connection would send its next request into its end
    async def test() -> None:
        async with bench(upstream=Upstream(reply=reply)) as at:
            assert await at.say(b"GET http://a.b:%d/ HTTP/1.1\r\n\r\n" % at.upstream.port) == told

    run(test())


def test_request_that_arrives_byte_by_byte_is_forwarded() -> None:
    async def test() -> None:
        async with bench() as at:
            text = b"GET http://a.b:%d/ HTTP/1.1\r\n\r\n" % at.upstream.port
            assert await at.say(*(bytes([byte]) for byte in text)) == OK

    run(test())


def test_denied_host_gets_a_403_that_says_what_to_do_and_nothing_is_looked_up() -> None:
    # D17, ruling 38
    async def test() -> None:
        async with bench("a.b:*") as at:
            for request in (b"GET http://evil.org/ HTTP/1.1\r\n\r\n", b"CONNECT evil.org:443 HTTP/1.1\r\n\r\n"):
                answer = await at.say(request)
                status = answer.split(b"\r\n")[0]
                assert status.startswith(b"HTTP/1.1 403 evil.org:")
                assert b"allowHosts has 'a.b:*'; ask for 'evil.org' there" in status
                assert answer.endswith(status.removeprefix(b"HTTP/1.1 403 ") + b"\n")
            assert at.egress.denied == ["evil.org:80", "evil.org:443"]
            assert [event.action for event in at.egress.events] == ["deny", "deny"]
            assert at.names.asked == [] and at.upstream.received == []

    run(test())


RAW_ATTACKS = [
    b"GET / HTTP/1.1\r\nHost: a.b\r\n\r\n",
    b"GET https://a.b:{port}/ HTTP/1.1\r\n\r\n",
    b"GET ftp://a.b:{port}/ HTTP/1.1\r\n\r\n",
    b"GET http://a.b:{port}/\r\n",
    b"GET http://a.b:{port}/ HTTP/0.9\r\n",
    b"GET http://a.b:{port}/ HTTP/1.1\n\n",
    b"GET http://a.b:{port}/ HTTP/1.1\r\nX: 1\n\r\n",
    b"GET http://a.b:{port}/ HTTP/1.1\r\nX: 1\r\n folded\r\n\r\n",
    b"GET http://x@a.b:{port}/ HTTP/1.1\r\n\r\n",
    b"GET http://127.1:{port}/ HTTP/1.1\r\n\r\n",
    b"GET http://2130706433:{port}/ HTTP/1.1\r\n\r\n",
    b"GET http://0x7f.1:{port}/ HTTP/1.1\r\n\r\n",
    b"POST http://a.b:{port}/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST http://a.b:{port}/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 9\r\n\r\nx",
    b"POST http://a.b:{port}/ HTTP/1.1\r\nConnection: content-length\r\nContent-Length: 9\r\n\r\nx",
    b"POST http://a.b:{port}/ HTTP/1.1\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    b"CONNECT a.b:{port} HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
    b"CONNECT a.b HTTP/1.1\r\n\r\n",
    b"CONNECT / HTTP/1.1\r\n\r\n",
    b"GET http://a.b:{port}/ HTTP/1.1\r\nX: " + b"x" * 16400 + b"\r\n\r\n",
    b"A" * 20000,
    b"\x05\x01\x00",
    b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00",
    b"\r\n\r\n",
    b"\x00" * 100,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
]


@pytest.mark.parametrize("attack", [*RAW_ATTACKS, client_hello("a.b")])
def test_malformed_request_is_answered_400_and_reaches_nobody(attack: bytes) -> None:
    async def test() -> None:
        async with bench() as at:
            answer = await at.say(attack.replace(b"{port}", str(at.upstream.port).encode()))
            assert answer.startswith(b"HTTP/1.1 400 ")
            assert at.upstream.received == [] and at.names.asked == []
            assert [event.action for event in at.egress.events] == ["deny"]

    run(test())


def test_pipelined_request_never_leaves_the_sandbox() -> None:
    async def test() -> None:
        async with bench() as at:
            first = b"POST http://a.b:%d/1 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc" % at.upstream.port
            answer = await at.say(first + b"GET /2 HTTP/1.1\r\nHost: evil.org\r\n\r\n")
            assert answer == OK
            assert at.upstream.received[0].endswith(b"\r\n\r\nabc")
            assert len(at.upstream.received) == 1

    run(test())


def test_chunked_body_is_checked_and_written_anew() -> None:
    async def test() -> None:
        async with bench() as at:
            body = b"3;x=1\r\nabc\r\n0A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nGET /2 HTTP/1.1\r\n\r\n"
            head = b"POST http://a.b:%d/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" % at.upstream.port
            assert await at.say(head + body) == OK
            assert at.upstream.received[0].endswith(b"\r\n\r\n3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n")

    run(test())


@pytest.mark.parametrize("body", [b"zz\r\n", b"3\nabc\r\n0\r\n\r\n", b"3\r\nabcX\r\n0\r\n\r\n", b"9" * 5000, b"-1\r\n"])
def test_malformed_chunk_ends_the_request(body: bytes) -> None:
    async def test() -> None:
        async with bench(upstream=Upstream(silent=True)) as at:
            head = b"POST http://a.b:%d/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" % at.upstream.port
            answer = await at.say(head + body)
            assert answer.startswith(b"HTTP/1.1 400 ")
            assert not at.upstream.received[0].endswith(b"0\r\n\r\n")

    run(test())


def test_client_that_leaves_within_its_body_is_no_denial() -> None:
    async def test() -> None:
        async with bench(upstream=Upstream(silent=True)) as at:
            _, writer = await asyncio.open_connection("127.0.0.1", at.port)
            writer.write(b"POST http://a.b:%d/ HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc" % at.upstream.port)
            await arrives(lambda: at.upstream.received and at.upstream.received[0].endswith(b"abc"))
            writer.close()
            await arrives(lambda: not at.egress._tasks)
            assert [event.action for event in at.egress.events] == ["allow"] and at.egress.denied == []

    run(test())


REBINDING = [
    ([["127.0.0.1"]], b" 403 "),
    ([["169.254.169.254"]], b" 403 "),
    ([["10.0.0.1", "192.168.0.1", "::1"]], b" 403 "),
    ([["::ffff:127.0.0.1"]], b" 403 "),
    ([["64:ff9b::7f00:1"]], b" 403 "),
    ([["0.0.0.0"]], b" 403 "),
    ([["not an address"]], b" 403 "),
    ([[]], b" 502 "),
]


@pytest.mark.parametrize(("answers", "status"), REBINDING)
def test_name_that_leads_inside_is_refused(answers: list[list[str]], status: bytes) -> None:
    async def test() -> None:
        async with bench(names=Names(a_b=answers), allow_cidrs=()) as at:
            answer = await at.say(b"CONNECT a.b:%d HTTP/1.1\r\n\r\n" % at.upstream.port)
            assert status in answer.split(b"\r\n")[0]
            assert b"127.0.0.1" not in answer and b"10.0.0.1" not in answer  # inside addresses are not told
            assert at.upstream.received == []

    run(test())


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254", "localhost"])
def test_inside_address_is_refused_even_if_a_rule_names_it(host: str) -> None:
    async def test() -> None:
        async with bench(f"{host}:*", names=Names(localhost=[["127.0.0.1", "::1"]]), allow_cidrs=()) as at:
            answer = await at.say(b"CONNECT %b:%d HTTP/1.1\r\n\r\n" % (host.encode(), at.upstream.port))
            assert answer.startswith(b"HTTP/1.1 403 ")
            assert at.upstream.received == []

    run(test())


@pytest.mark.parametrize("host", ["localhost", "me.localhost"])
@pytest.mark.parametrize("address", ["93.184.216.34", "10.0.0.1", "2606:2800:220:1::1", "::ffff:127.0.0.1"])
def test_localhost_is_this_machine_whatever_a_resolver_says(host: str, address: str) -> None:
    """RFC 6761 §6.3: what is sent there without encryption stays here."""

    async def test() -> None:
        names = Names(**{host.replace(".", "_"): [[address]]})
        async with bench(f"{host}:*", names=names, allow_cidrs=("0.0.0.0/0", "::/0")) as at:
            answer = await at.say(b"GET http://%b:%d/ HTTP/1.1\r\n\r\n" % (host.encode(), at.upstream.port))
            assert answer.startswith(b"HTTP/1.1 403 ")
            assert b"leads away from this machine" in answer and address.encode() not in answer
            names.answers[host] = [[address, "127.0.0.1"]]
            assert await at.say(b"GET http://%b:%d/ HTTP/1.1\r\n\r\n" % (host.encode(), at.upstream.port)) == OK

    run(test())


def test_mixed_answer_dials_only_the_permitted_address() -> None:
    async def test() -> None:
        names = Names(a_b=[["10.255.255.1", "::1", "127.0.0.1", "169.254.169.254"]])
        async with bench(names=names) as at:
            assert await at.say(b"GET http://a.b:%d/ HTTP/1.1\r\n\r\n" % at.upstream.port) == OK
            assert at.egress.events[0].address == "127.0.0.1"

    run(test())


def test_name_that_flips_is_judged_by_the_one_answer_that_is_dialled() -> None:
    async def test() -> None:
        names = Names(a_b=[["127.0.0.1"], ["10.0.0.1"]])
        async with bench(names=names) as at:
            request = b"GET http://a.b:%d/ HTTP/1.1\r\n\r\n" % at.upstream.port
            assert await at.say(request) == OK
            assert names.asked == ["a.b"]
            assert (await at.say(request)).startswith(b"HTTP/1.1 403 ")
            assert names.asked == ["a.b", "a.b"]

    run(test())


def test_address_is_dialled_without_a_look_up() -> None:
    async def test() -> None:
        async with bench("127.0.0.1:*") as at:
            assert await at.say(b"GET http://127.0.0.1:%d/ HTTP/1.1\r\n\r\n" % at.upstream.port) == OK
            assert at.names.asked == []

    run(test())


def test_unknown_name_is_a_502_and_no_denial() -> None:
    async def test() -> None:
        async with bench("no.such:*") as at:
            assert (await at.say(b"CONNECT no.such:443 HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 502 ")
            assert at.egress.denied == [] and at.egress.events[0].action == "fail"

    run(test())


def test_target_that_does_not_listen_is_a_502() -> None:
    async def test() -> None:
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            async with bench() as at:
                answer = await at.say(b"CONNECT a.b:%d HTTP/1.1\r\n\r\n" % bound.getsockname()[1])
                assert answer.startswith(b"HTTP/1.1 502 ") and b"does not accept" in answer

    run(test())


async def tunnel(at: Bench, *first: bytes, ends: bool = False) -> bytes:
    answer = await at.say(b"CONNECT a.b:%d HTTP/1.1\r\n\r\n" % at.upstream.port, *first, gap=0.05, ends=ends)
    assert answer.startswith(CONNECTED)
    return answer.removeprefix(CONNECTED)


def test_tls_whose_server_name_is_the_tunnels_host_is_relayed_both_ways() -> None:
    async def test() -> None:
        async with bench(upstream=Upstream(echo=True)) as at:
            hello = client_hello("A.B")
            assert await tunnel(at, hello[:7], hello[7:], b"more", ends=True) == hello + b"more"
            assert at.egress.events[-1].action == "allow"

    run(test())


def test_hello_sent_together_with_connect_is_relayed() -> None:
    async def test() -> None:
        async with bench(upstream=Upstream(echo=True)) as at:
            hello = client_hello("a.b")
            request = b"CONNECT a.b:%d HTTP/1.1\r\n\r\n" % at.upstream.port
            assert await at.say(request + hello, ends=True) == CONNECTED + hello

    run(test())


BAD_HELLOS = {
    "other name": client_hello("evil.org"),
    "sub-domain": client_hello("x.a.b"),
    "no name": client_hello(None),
    "two names": hello_with(sni(b"a.b", b"evil.org")),
    "two extensions": hello_with(sni(b"a.b") + sni(b"evil.org")),
    "encrypted": hello_with(sni(b"a.b") + b"\xfe\x0d\x00\x01\x00"),
    "NUL": hello_with(sni(b"a.b\x00.evil.org")),
    "address": hello_with(sni(b"127.0.0.1")),
    "malformed": b"\x16\x03\x01\x00\x04\x01\xff\xff\xff",
}


@pytest.mark.parametrize("hello", BAD_HELLOS.values(), ids=BAD_HELLOS.keys())
def test_tls_for_another_server_name_is_ended_with_an_alert_and_reaches_nobody(hello: bytes) -> None:
    async def test() -> None:
        async with bench(upstream=Upstream(echo=True)) as at:
            assert await tunnel(at, hello) == b"\x15\x03\x01\x00\x02\x02\x31"
            assert not any(at.upstream.received)
            assert at.egress.denied == [f"a.b:{at.upstream.port}"]
            assert at.egress.events[-1].action == "deny"

    run(test())


def test_tls_to_an_address_needs_no_server_name() -> None:
    async def test() -> None:
        async with bench("127.0.0.1:*", upstream=Upstream(echo=True)) as at:
            hello = client_hello(None)
            request = b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % at.upstream.port
            assert await at.say(request + hello, ends=True) == CONNECTED + hello
            assert await at.say(request + client_hello("a.b")) == CONNECTED + b"\x15\x03\x01\x00\x02\x02\x31"

    run(test())


def test_plain_http_in_a_tunnel_is_held_to_the_tunnels_host() -> None:
    async def test() -> None:
        async with bench() as at:
            host = f"a.b:{at.upstream.port}".encode()
            assert await tunnel(at, b"GET /1 HTTP/1.1\r\nHost: " + host + b"\r\n\r\nGET /2 HTTP/1.1\r\n\r\n") == OK
            assert at.upstream.received == [b"GET /1 HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n"]
            assert (await tunnel(at, b"GET /1 HTTP/1.1\r\nHost: evil.org\r\n\r\n")).startswith(b"HTTP/1.1 403 ")
            assert not at.upstream.received[1]

    run(test())


@pytest.mark.parametrize("first", [b"SSH-2.0-x\r\n", b"\x00\x00\x00\x08\x04\xd2\x16\x2f", b"EHLO x\r\n", b""])
def test_other_protocol_in_a_tunnel_is_refused(first: bytes) -> None:
    async def test() -> None:
        # silence is no protocol either, and ends with the time for a head
        async with bench(upstream=Upstream(echo=True), budgets=LONG if first else SHORT) as at:
            answer = await tunnel(at, first)
            assert answer.startswith(b"HTTP/1.1 403 ") or (answer == b"" and not first)
            assert not any(at.upstream.received)
            assert at.egress.denied == [f"a.b:{at.upstream.port}"]

    run(test())


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Egress(["a.b", "*.com"]), r"\*\.com"),
        (lambda: Egress(["*"]), r"'\*'"),
        (lambda: Egress(["a.b"], ["10.0.0.1/8"]), "10.0.0.1/8"),
        (lambda: Egress(["a.b"], pins=[("a.b", "nowhere")]), "nowhere"),
    ],
)
def test_bad_rule_is_named_before_anything_runs(make: Callable[[], Egress], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        make()


def test_resolver_is_any_awaitable_callable() -> None:
    def resolve(host: str, port: int) -> Awaitable[Sequence[str]]:
        return Names(a_b=[["127.0.0.1"]])(host, port)

    assert Egress(["a.b"], resolver=resolve).denied == []
