"""Framing: both ways, any chunking, any letter case, and nothing that stops the stream for good."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.server.wire.framing import MAX_HEADER_BYTES, FrameDecoder, Framing, encode_frame
from tamis.server.wire.jsonrpc import RpcError

BODIES = st.lists(
    st.binary(min_size=1, max_size=60).map(lambda data: b'{"x":"' + data.hex().encode() + b'"}'), max_size=6
)
FRAMINGS = st.sampled_from(["headers", "lines"])


def feed(decoder: FrameDecoder, stream: bytes, size: int) -> list[bytes | int]:
    """What comes of a stream fed in pieces: bodies, and the codes of errors."""
    found = [body for at in range(0, len(stream), size) for body in decoder.feed(stream[at : at + size])]
    return [body.code if isinstance(body, RpcError) else body.strip() for body in found]


@given(BODIES, FRAMINGS, st.integers(1, 17), st.booleans())
def test_messages_come_back_in_any_chunking(bodies: list[bytes], framing: Framing, size: int, given: bool) -> None:
    stream = b"".join(encode_frame(body, framing) for body in bodies)
    assert feed(FrameDecoder(framing if given else None), stream, size) == bodies


@given(st.lists(st.binary(max_size=50), max_size=10), st.sampled_from([None, "headers", "lines"]))
def test_any_bytes_are_survived(chunks: list[bytes], framing: Framing | None) -> None:
    decoder = FrameDecoder(framing)
    for chunk in chunks:
        decoder.feed(chunk)
    decoder.end()


@pytest.mark.parametrize("name", [b"Content-Length", b"content-length", b"CONTENT-LENGTH", b"  Content-length  "])
@pytest.mark.parametrize("end", [b"\r\n", b"\n"])
def test_headers_are_read_in_any_letter_case_and_line_end(name: bytes, end: bytes) -> None:
    for head in (name + b":2" + end + b"Content-Type: x", b"Content-Type: x" + end + name + b":   2  "):
        assert FrameDecoder().feed(head + end + end + b"{}") == [b"{}"]


def test_blanks_before_the_first_brace_mean_lines() -> None:
    decoder = FrameDecoder()
    assert decoder.feed(b'\n  {"a":1}\n') == [b'{"a":1}\n']
    assert decoder.framing == "lines"


def test_a_given_framing_is_not_decided_by_the_first_byte() -> None:
    decoder = FrameDecoder("headers")
    assert decoder.feed(b'{"a":1}\n') == []
    assert decoder.framing == "headers"


def test_a_last_line_without_its_newline_counts_at_the_end() -> None:
    decoder = FrameDecoder()
    assert decoder.feed(b'{"a":1}') == []
    assert decoder.end() == [b'{"a":1}']


def test_an_empty_framed_body_is_given_and_a_blank_line_is_not() -> None:
    assert FrameDecoder().feed(b"Content-Length: 0\r\n\r\n\r\nContent-Length: 2\r\n\r\n{}") == [b"", b"{}"]
    assert FrameDecoder("lines").feed(b"\n \r\n{}\n") == [b"{}\n"]


@pytest.mark.parametrize(
    "head", [b"Content-Length: x", b"Content-Length: -2", b"Content-Length:", b"Content-Type: x", b"noise"]
)
def test_a_bad_length_is_an_error_and_reading_goes_on(head: bytes) -> None:
    assert feed(FrameDecoder(), head + b"\r\n\r\nContent-Length: 2\r\n\r\n{}", 7) == [-32700, b"{}"]


@pytest.mark.parametrize("size", [1000, 1_000_000])
@pytest.mark.parametrize("noise", [MAX_HEADER_BYTES - 10, MAX_HEADER_BYTES + 10, MAX_HEADER_BYTES + 5000])
def test_an_endless_header_is_given_up(noise: int, size: int) -> None:
    decoder = FrameDecoder()
    stream = b"X: " + b"a" * noise + b"\r\nContent-Length: 2\r\n\r\n{}"
    assert feed(decoder, stream, size) == [-32700, b"{}"]
    assert decoder.feed(b"Content-Length: 2\r\n\r\n[]") == [b"[]"]


@given(FRAMINGS, st.integers(1, 40), st.integers(101, 400))
def test_a_message_over_the_limit_is_an_error_and_the_next_one_is_read(framing: Framing, size: int, over: int) -> None:
    bodies = [b"{" + b"a" * (length - 2) + b"}" for length in (100, over, 100)]
    stream = b"".join(encode_frame(body, framing) for body in bodies)
    assert feed(FrameDecoder(limit=100), stream, size) == [bodies[0], -32600, bodies[2]]


def test_a_message_over_the_limit_is_not_kept() -> None:
    decoder = FrameDecoder("lines", limit=100)
    assert feed(decoder, b"a" * 1_000_000, 1000) == [-32600]
    assert decoder.end() == []


@pytest.mark.parametrize(
    "unit", [b"Content-Length:", b"Content-Length: x\r\n\r\n", b"\r\n", b" ", b"a", b"a\n", b"{}\n", b"\r\n\t{"]
)
@pytest.mark.parametrize("framing", ["headers", "lines"])
def test_cost_is_linear_in_the_bytes(unit: bytes, framing: Framing) -> None:
    stream = unit * (2_000_000 // len(unit))
    started = time.process_time()
    feed(FrameDecoder(framing), stream, 3000)
    assert time.process_time() - started < 5
