"""Framing: both ways, any chunking, any letter case, and nothing that stops the stream for good."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.server.rpc.framing import FrameDecoder, FramingError, encode_frame

BODIES = st.lists(
    st.binary(min_size=1, max_size=60).map(lambda data: b'{"x":"' + data.hex().encode() + b'"}'), max_size=6
)


@given(BODIES, st.sampled_from(["headers", "lines"]), st.integers(1, 17))
def test_messages_come_back_in_any_chunking(bodies: list[bytes], framing: str, size: int) -> None:
    stream = b"".join(encode_frame(body, framing) for body in bodies)  # pyright: ignore[reportArgumentType]
    decoder = FrameDecoder()
    found = [body for at in range(0, len(stream), size) for body in decoder.feed(stream[at : at + size])]
    assert [body.strip() if isinstance(body, bytes) else body for body in found] == bodies


@given(st.lists(st.binary(max_size=50), max_size=10))
def test_any_bytes_are_survived(chunks: list[bytes]) -> None:
    decoder = FrameDecoder()
    for chunk in chunks:
        decoder.feed(chunk)
    decoder.end()


@pytest.mark.parametrize("name", [b"Content-Length", b"content-length", b"CONTENT-LENGTH"])
def test_header_names_are_read_in_any_letter_case(name: bytes) -> None:
    assert FrameDecoder().feed(name + b": 2\r\nContent-Type: x\r\n\r\n{}") == [b"{}"]


def test_blanks_before_the_first_brace_mean_lines() -> None:
    decoder = FrameDecoder()
    assert decoder.feed(b'\n  {"a":1}\n') == [b'  {"a":1}\n']
    assert decoder.framing == "lines"


def test_a_last_line_without_its_newline_counts_at_the_end() -> None:
    decoder = FrameDecoder()
    assert decoder.feed(b'{"a":1}') == []
    assert decoder.end() == [b'{"a":1}']


def test_a_bad_length_is_an_error_and_reading_goes_on() -> None:
    found = FrameDecoder().feed(b"Content-Length: x\r\n\r\nContent-Length: 2\r\n\r\n{}")
    assert isinstance(found[0], FramingError)
    assert found[1:] == [b"{}"]


def test_an_endless_header_is_given_up() -> None:
    decoder = FrameDecoder()
    found = decoder.feed(b"X: " + b"a" * 20_000)
    assert [type(body) for body in found] == [FramingError]
    assert decoder.feed(b"Content-Length: 2\r\n\r\n{}") == [b"{}"]
