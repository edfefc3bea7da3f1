"""The proxy's wire formats as pure bytes: request heads, chunk sizes, the TLS ClientHello."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.sandbox.network.egress_wire import (
    MAX_HEAD,
    MAX_HELLO,
    RequestError,
    closing,
    find_answer_end,
    find_head_end,
    parse_chunk_size,
    parse_proxy_head,
    parse_tunnelled_head,
    read_client_hello,
)
from tests.sandbox.client_hello import client_hello, hello_with, sni


def records(hello: bytes, size: int) -> bytes:
    message = hello[5:]
    pieces = [message[at : at + size] for at in range(0, len(message), size)]
    return b"".join(b"\x16\x03\x01" + len(piece).to_bytes(2, "big") + piece for piece in pieces)


FORWARDED = [
    (b"GET http://a.b HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a.b\r\n"),
    (b"GET http://A.B./x?y=1 HTTP/1.1\r\n\r\n", b"GET /x?y=1 HTTP/1.1\r\nHost: a.b\r\n"),
    (b"GET HTTP://a.b?q HTTP/1.0\r\n\r\n", b"GET /?q HTTP/1.0\r\nHost: a.b\r\n"),
    (b"GET http://a.b:8080/ HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a.b:8080\r\n"),
    (b"GET http://a.b/?u=http://c.d/ HTTP/1.1\r\n\r\n", b"GET /?u=http://c.d/ HTTP/1.1\r\nHost: a.b\r\n"),
    (b"OPTIONS http://a.b HTTP/1.1\r\n\r\n", b"OPTIONS * HTTP/1.1\r\nHost: a.b\r\n"),
    (b"GET http://a.b/ HTTP/1.1\r\nHost: evil.org\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a.b\r\n"),
    (b"GET http://[2001:DB8::1]/ HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: [2001:db8::1]\r\n"),
    (b"GET http://a.b/ HTTP/1.1\r\nX-A:  1 \r\nX-A: 2\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a.b\r\nX-A: 1\r\nX-A: 2\r\n"),
    (
        b"GET http://a.b/ HTTP/1.1\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nX: 1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a.b\r\nX: 1\r\n",
    ),
    (
        b"GET http://a.b/ HTTP/1.1\r\nProxy-Authorization: Basic eA==\r\nProxy-Connection: x\r\nUpgrade: h2c\r\nX-Keep: 1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a.b\r\nX-Keep: 1\r\n",
    ),
]


@pytest.mark.parametrize(("head", "forwarded"), FORWARDED)
def test_forwarded_head_names_the_vetted_host_and_drops_hop_fields(head: bytes, forwarded: bytes) -> None:
    assert parse_proxy_head(head).head == forwarded + b"Connection: close\r\n\r\n"


def test_connect_names_a_tunnel() -> None:
    request = parse_proxy_head(b"CONNECT API.Example.com.:443 HTTP/1.1\r\nHost: other\r\nContent-Length: 0\r\n\r\n")
    assert (request.tunnel, request.host, request.port, request.head) == (True, "api.example.com", 443, b"")


G = b"GET http://a.b/ HTTP/1.1\r\n"
P = b"POST http://a.b/ HTTP/1.1\r\n"
MALFORMED = [
    b"GET / HTTP/1.1\r\nHost: a.b\r\n\r\n",
    b"GET a.b/ HTTP/1.1\r\n\r\n",
    b"GET //a.b/ HTTP/1.1\r\n\r\n",
    b"GET https://a.b/ HTTP/1.1\r\n\r\n",
    b"GET ftp://a.b/ HTTP/1.1\r\n\r\n",
    b"GET file:///etc/passwd HTTP/1.1\r\n\r\n",
    b"GET http:///x HTTP/1.1\r\n\r\n",
    b"GET http://a.b/#f HTTP/1.1\r\n\r\n",
    b"GET http://u:p@a.b/ HTTP/1.1\r\n\r\n",
    b"GET http://a.b@c.d/ HTTP/1.1\r\n\r\n",
    b"GET http://a.b\\@c.d/ HTTP/1.1\r\n\r\n",
    b"GET http://a.b#@c.d/ HTTP/1.1\r\n\r\n",
    b"GET http://a.b%2ec.d/ HTTP/1.1\r\n\r\n",
    b"GET http://127.1/ HTTP/1.1\r\n\r\n",
    b"GET http://0x7f.1/ HTTP/1.1\r\n\r\n",
    b"GET http://a.b:/ HTTP/1.1\r\n\r\n",
    b"GET http://a.b:0/ HTTP/1.1\r\n\r\n",
    b"GET http://a.b:65536/ HTTP/1.1\r\n\r\n",
    b"GET http://a.b/\xff HTTP/1.1\r\n\r\n",
    b"GET http://a.b/ x HTTP/1.1\r\n\r\n",
    b"GET  http://a.b/ HTTP/1.1\r\n\r\n",
    b"GET\thttp://a.b/ HTTP/1.1\r\n\r\n",
    b"GET http://a.b/ HTTP/2.0\r\n\r\n",
    b"GET http://a.b/ HTTP/1.2\r\n\r\n",
    b"GET http://a.b/ http/1.1\r\n\r\n",
    b"GET http://a.b/\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\n",
    b"\r\n\r\n",
    b"CONNECT a.b HTTP/1.1\r\n\r\n",
    b"CONNECT a.b:0 HTTP/1.1\r\n\r\n",
    b"CONNECT a.b:99999 HTTP/1.1\r\n\r\n",
    b"CONNECT a.b:443/ HTTP/1.1\r\n\r\n",
    b"CONNECT http://a.b:443 HTTP/1.1\r\n\r\n",
    b"CONNECT u@a.b:443 HTTP/1.1\r\n\r\n",
    b"CONNECT ::1:443 HTTP/1.1\r\n\r\n",
    b"CONNECT [fe80::1%25eth0]:443 HTTP/1.1\r\n\r\n",
    b"CONNECT a.b:443 HTTP/1.1\r\nContent-Length: 3\r\n\r\n",
    b"CONNECT a.b:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
    P + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
    P + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
    P + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\n",
    P + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\n",
    P + b"Content-Length: 3, 3\r\n\r\n",
    P + b"Content-Length: +3\r\n\r\n",
    P + b"Content-Length: 0x3\r\n\r\n",
    P + b"Content-Length: -1\r\n\r\n",
    P + b"Content-Length:\r\n\r\n",
    P + b"Content-Length: 99999999999999999999\r\n\r\n",
    P + b"Content-Length : 3\r\n\r\n",
    P + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
    P + b"Transfer-Encoding: xchunked\r\n\r\n",
    P + b"Transfer-Encoding: identity\r\n\r\n",
    P + b"Transfer-Encoding : chunked\r\n\r\n",
    P + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
    b"POST http://a.b/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
    P + b"Connection: Content-Length\r\nContent-Length: 3\r\n\r\n",
    P + b"Connection: close, transfer-encoding\r\nTransfer-Encoding: chunked\r\n\r\n",
    G + b"Host: a.b\r\nHost: c.d\r\n\r\n",
    G + b"X: 1\r\n folded\r\n\r\n",
    G + b" X: 1\r\n\r\n",
    G + b"X\r\n\r\n",
    G + b": 1\r\n\r\n",
    G + b"X Y: 1\r\n\r\n",
    G + b"X\xc3: 1\r\n\r\n",
]


@pytest.mark.parametrize("head", MALFORMED)
def test_head_with_two_readings_is_refused(head: bytes) -> None:
    with pytest.raises(RequestError):
        parse_proxy_head(head)


@pytest.mark.parametrize(
    "data",
    [
        b"GET http://a.b/ HTTP/1.1\n",
        b"GET http://a.b/ HTTP/1.1\n\n",
        b"GET http://a.b/ HTTP/1.1\r\nX: 1\nY: 2\r\n\r\n",
        b"GET http://a.b/ HTTP/1.1\r\nX: 1\rY: 2\r\n\r\n",
        b"GET http://a.b/ HTTP/1.1\r\nX: \x00\r\n\r\n",
        b"\x05\x01\x00",
        b"\x04\x01\x00\x50",
        b"\x16\x03\x01\x02\x00",
        b"X" * (MAX_HEAD + 1),
        b"GET http://a.b/ HTTP/1.1\r\nX: " + b"x" * MAX_HEAD + b"\r\n\r\n",
    ],
)
def test_head_that_cannot_become_valid_is_refused_at_once(data: bytes) -> None:
    with pytest.raises(RequestError):
        find_head_end(data)


def test_head_of_exactly_the_limit_is_read() -> None:
    head = b"GET http://a.b/ HTTP/1.1\r\nX: "
    head += b"x" * (MAX_HEAD - len(head) - 4) + b"\r\n\r\n"
    assert find_head_end(head + b"\n\x00") == MAX_HEAD


@given(st.binary(max_size=40).map(lambda junk: b"GET http://a.b/ HTTP/1.1\r\nX: 1\r\n\r\n" + junk), st.integers(1, 9))
def test_head_end_does_not_depend_on_how_the_bytes_arrive(data: bytes, step: int) -> None:
    seen, found = 0, None
    for length in range(step, len(data) + step, step):
        found = find_head_end(data[:length], seen - 3)
        if found is not None:
            break
        seen = min(length, len(data))
    assert found == find_head_end(data)


TUNNEL_ERRORS = [
    b"GET / HTTP/1.1\r\nHost: evil.org\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a.b:8080\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a.b\r\nHost: a.b\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET http://a.b/ HTTP/1.1\r\nHost: a.b\r\n\r\n",
    b"CONNECT a.b:80 HTTP/1.1\r\nHost: a.b\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\n",
]


@pytest.mark.parametrize("head", TUNNEL_ERRORS)
def test_plain_request_in_a_tunnel_must_name_the_tunnels_host(head: bytes) -> None:
    with pytest.raises(RequestError):
        parse_tunnelled_head(head, "a.b", 80)


def test_plain_request_in_a_tunnel_is_rewritten() -> None:
    request = parse_tunnelled_head(b"GET /x HTTP/1.1\r\nHost: A.b:80\r\nConnection: keep-alive\r\n\r\n", "a.b", 80)
    assert request.head == b"GET /x HTTP/1.1\r\nHost: a.b\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(("line", "size"), [(b"0", 0), (b"a", 10), (b"00F", 15), (b"5;x=y", 5), (b"5 ;x", 5)])
def test_chunk_size_is_hexadecimal(line: bytes, size: int) -> None:
    assert parse_chunk_size(line) == size


@pytest.mark.parametrize(
    "line", [b"", b"-1", b"+1", b"0x5", b"g", b"5 5", b" 5", b"5_0", b"123456789", b"5;\x00", b"5\r"]
)
def test_odd_chunk_size_is_refused(line: bytes) -> None:
    with pytest.raises(RequestError):
        parse_chunk_size(line)


@pytest.mark.parametrize("name", ["api.example.com", None])
def test_server_name_of_a_real_hello_is_read(name: str | None) -> None:
    hello = read_client_hello(client_hello(name))
    assert hello is not None
    assert hello.server_name == name
    assert not hello.encrypted


@pytest.mark.parametrize("size", [40, 100, 1000])
def test_hello_in_several_records_is_read(size: int) -> None:
    hello = read_client_hello(records(hello_with(sni(b"a.b")), size))
    assert hello is not None and hello.server_name == "a.b"


def test_encrypted_hello_is_seen() -> None:
    hello = read_client_hello(hello_with(sni(b"a.b") + b"\xfe\x0d\x00\x01\x00"))
    assert hello is not None and hello.encrypted


def shorten(hello: bytes) -> bytes:
    return hello[:8] + bytes([hello[8] - 1]) + hello[9:]


MALFORMED_HELLOS: list[tuple[str, Callable[[], bytes]]] = [
    ("two names", lambda: hello_with(sni(b"a.b", b"c.d"))),
    ("two extensions", lambda: hello_with(sni(b"a.b") + sni(b"c.d"))),
    ("empty list", lambda: hello_with(sni())),
    ("not ascii", lambda: hello_with(sni("ü.b".encode()))),
    ("overlong extension", lambda: hello_with(b"\x00\x00\x00\xff\x00")),
    ("one-byte records", lambda: records(hello_with(sni(b"a.b")), 1)),
    ("empty record", lambda: b"\x16\x03\x01\x00\x00" + hello_with(sni(b"a.b"))),
    ("shorter than its record", lambda: shorten(hello_with(sni(b"a.b")))),
    ("server hello", lambda: b"\x16\x03\x01\x00\x04\x02\x00\x00\x00"),
    ("application data", lambda: b"\x17\x03\x03\x00\x01\x00"),
    ("SSL 2", lambda: b"\x80\x2e\x01\x03\x01"),
    ("too large", lambda: b"\x16\x03\x01\xff\xff"),
    ("too large message", lambda: b"\x16\x03\x01\x00\x04\x01\xff\xff\xff"),
]


@pytest.mark.parametrize("make", [make for _, make in MALFORMED_HELLOS], ids=[name for name, _ in MALFORMED_HELLOS])
def test_malformed_hello_is_refused(make: Callable[[], bytes]) -> None:
    with pytest.raises(RequestError):
        read_client_hello(make())


def test_every_prefix_of_a_hello_is_incomplete() -> None:
    hello = client_hello("api.example.com")
    assert all(read_client_hello(hello[:length]) is None for length in range(len(hello)))


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_a_hello_or_incomplete_or_refused(junk: bytes, framed: bool) -> None:
    data = hello_with(junk) if framed else b"\x16\x03" + junk
    try:
        hello = read_client_hello(data)
    except RequestError:
        return
    assert hello is None or hello.server_name is None or hello.server_name.isascii()
    assert hello is not None or len(data) < MAX_HELLO


@given(st.binary(max_size=200), st.booleans())
def test_any_head_is_read_or_refused(junk: bytes, framed: bool) -> None:
    head = (G + junk if framed else junk) + b"\r\n\r\n"
    try:
        if find_head_end(head) == len(head):
            request = parse_proxy_head(head)
            assert request.head.count(b"\r\nHost: ") == 1 and b"\n" not in request.head.replace(b"\r\n", b"")
    except RequestError:
        pass


FIELDS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "Host",
                "host",
                "Content-Length",
                "content-length ",
                "Transfer-Encoding",
                "TE",
                "Connection",
                "X",
                " X",
                "Proxy-Connection",
                "",
            ]
        ),
        st.sampled_from(
            [
                "a.b",
                "evil.org",
                "0",
                "5",
                "5, 5",
                "+5",
                "chunked",
                "Chunked ",
                "gzip, chunked",
                "close, X",
                "content-length",
                "\x0bchunked",
                "\t5",
            ]
        ),
    ),
    max_size=5,
)


@given(FIELDS, st.sampled_from(["HTTP/1.1", "HTTP/1.0"]))
def test_what_is_forwarded_has_one_host_and_one_length(fields: list[tuple[str, str]], version: str) -> None:
    lines = "".join(f"{name}:{value}\r\n" for name, value in fields)
    head = f"POST http://a.b/x {version}\r\n{lines}\r\n".encode("latin-1")
    try:
        if find_head_end(head) != len(head):
            return
        request = parse_proxy_head(head)
    except RequestError:
        return
    line, *rest = request.head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    assert line == b"POST /x " + version.encode()
    sent = [(name.lower(), value.strip()) for name, _, value in (text.partition(b":") for text in rest)]
    assert [value for name, value in sent if name == b"host"] == [b"a.b"]
    assert [value for name, value in sent if name == b"connection"] == [b"close"]
    lengths = [(name, value) for name, value in sent if name in (b"content-length", b"transfer-encoding")]
    if request.body == "chunked":
        assert [(name, value.lower()) for name, value in lengths] == [(b"transfer-encoding", b"chunked")]
    else:
        assert lengths in ([], [(b"content-length", str(request.body).encode())])


@given(st.binary(max_size=60), st.sampled_from([b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 100 x\r\n\r\n"]))
def test_any_answer_is_passed_on_with_at_most_a_closing_word(junk: bytes, start: bytes) -> None:
    data = start + junk
    end = find_answer_end(data)
    if end:
        told = closing(data[:end])
        assert told.endswith(b"\r\nConnection: close\r\n\r\n")
        assert told.split(b"\r\n")[0] == data.split(b"\r\n")[0]
    for cut in range(len(data)):
        assert find_answer_end(data[:cut]) in (None, end), (cut, end)
