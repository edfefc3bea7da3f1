"""Framing: both ways, any chunking, any letter case, and nothing that stops the stream for good."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.server.wire.framing import MAX_HEADER_BYTES, FrameDecoder, Framing, encode_frame
from tamis.server.wire.jsonrpc import RpcError
from tests.growth import growth

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
@pytest.mark.share(4)
def test_cost_is_linear_in_the_bytes(unit: bytes, framing: Framing) -> None:
    def read(text: str) -> None:
        feed(FrameDecoder(framing), text.encode(), 200)

    assert growth(lambda n: unit.decode() * (n // len(unit)), read, 20_000) <= 8


# --- what stands between messages ------------------------------------------------------------------------------------

JUNK = st.lists(
    st.one_of(
        st.sampled_from(
            [
                *(b"\x00", b"\xef\xbb\xbf", b"\xff\xfe", b"\r\n", b"\n", b" ", b"\t", b"\r\n\r\n", b"garbage", b"X: y\r\n", b"{", b"}", b"[]", b'{"a":1}'),
                *(b"Content-Length", b"Content-Length:", b"Content-Length: 7", b"Content-Length: 7\r\n", b"Content-Length: x\r\n\r\n"),
                *(b"Content-Length: 3\r\n\r\n", b"Content-Length: 0\r\n\r\n", b"Content-Length: 40\r\n\r\n", b"content-type: a\r\n\r\n"),
            ]
        ),
        st.binary(max_size=6),
    ),
    max_size=6,
).map(b"".join)  # fmt: skip
FRAME_BODIES = [
    b'{"jsonrpc":"2.0","id":%d,"method":"server/health","params":{"text":"Content-Length: 9"}}' % n for n in range(7)
]


def frames(pieces: list[bytes | None]) -> tuple[bytes, list[bytes]]:
    """Right frames, one for each None, with junk between."""
    bodies = iter(FRAME_BODIES)
    sent: list[bytes] = []
    stream = b""
    for piece in pieces:
        if piece is None:
            sent.append(next(bodies))
            stream += encode_frame(sent[-1], "headers")
        else:
            stream += piece
    return stream, sent


@given(st.lists(JUNK, min_size=1, max_size=3), st.sampled_from([None, "headers"]), st.integers(1, 60))
def test_junk_costs_at_most_the_frame_that_it_touches(junk: list[bytes], framing: Framing | None, size: int) -> None:
    """R3: between right frames, before the first, in any pieces; the rpc's decoder finds its framing, the lsp's has it."""
    pieces: list[bytes | None] = [None] if framing is None else []
    for piece in junk:
        pieces += [piece, None, None]
    stream, sent = frames(pieces)
    got = feed(FrameDecoder(framing), stream, size)
    missing = [body for body in sent if body not in got]
    touched = [sent[at] for at in range(len(sent)) if at in ([1, 3, 5] if framing is None else [0, 2, 4])]
    assert set(missing) <= set(touched)
    assert [body for body in got if body in sent] == [body for body in sent if body not in missing]


@pytest.mark.parametrize("junk", [b"\x00", b"\xef\xbb\xbf", b"\x00\x00\r\n", b"\xef\xbb\xbf\x00 "])
@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("framing", [None, "headers"])
def test_nuls_and_marks_before_a_message_cost_nothing(junk: bytes, size: int, framing: Framing | None) -> None:
    """R3: one NUL or a BOM silenced the daemon for good."""
    stream, sent = frames([junk, None, None, junk, None])
    assert feed(FrameDecoder(framing), stream, size) == sent


@pytest.mark.parametrize("off", [-3, -1, 1, 2, 17, 30])
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_a_wrong_length_costs_that_frame_and_no_other(off: int, size: int) -> None:
    """R3: 0 of 20 were answered behind a length that was one too large."""
    stream, sent = frames([None] * 6)
    wrong = encode_frame(sent[2], "headers")
    stream = stream.replace(wrong, wrong.replace(b": %d" % len(sent[2]), b": %d" % (len(sent[2]) + off), 1))
    got = feed(FrameDecoder("headers"), stream, size)
    assert [body for body in got if body in sent] == [*sent[:2], *sent[3:]]
    assert len(got) <= 7


def test_every_length_one_too_large_is_told_each_time() -> None:
    """R3: a host that counts wrongly learns it from every message."""
    stream = b"".join(b"Content-Length: %d\r\n\r\n%b" % (len(body) + 1, body) for body in FRAME_BODIES)
    got = feed(FrameDecoder(), stream + b" ", 50)
    assert got == [*(body + b"C" for body in FRAME_BODIES[:-1]), FRAME_BODIES[-1]]


def test_what_a_body_holds_is_never_taken_for_a_message() -> None:
    """R3: a careless host that writes a model's text into JSON without escaping its line ends gives one broken message."""
    smuggled = b'Content-Length: 40\r\n\r\n{"jsonrpc":"2.0","id":1,"method":"tool/execute"}'
    for body in (
        b'{"text":"' + smuggled + b'"}',
        b'{"text":"' + smuggled + b"x" * 300 + b'"',
        b"[" + smuggled * 5 + b"]",
    ):
        stream = encode_frame(body, "headers") + encode_frame(b"{}", "headers")
        for size in (1, 40, 10_000):
            assert feed(FrameDecoder("headers"), stream, size) == [body, b"{}"]


@pytest.mark.parametrize("junk", [b"\xef\xbb\xbf", b"\x00", b"\x00\xef\xbb\xbf \n"])
@pytest.mark.parametrize("size", [1, 2, 1000])
def test_a_mark_before_the_first_json_line_is_passed_over(junk: bytes, size: int) -> None:
    """R3: a BOM before the first JSON line: silence."""
    decoder = FrameDecoder()
    assert feed(decoder, junk + b'{"a":1}\n{"b":2}\n', size) == [b'{"a":1}', b'{"b":2}']
    assert decoder.framing == "lines"


@pytest.mark.parametrize("junk", [b"hello\n", b"# log line\r\n\r\n", b"\xff\n"])
def test_junk_before_the_first_json_line_is_told_and_left_out(junk: bytes) -> None:
    """R3: a shell's greeting before a host's first line."""
    decoder = FrameDecoder()
    assert feed(decoder, junk + b'{"a":1}\n{"b":2}\n', 3) == [-32700, b'{"a":1}', b'{"b":2}']
    assert decoder.framing == "lines"
