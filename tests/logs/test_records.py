"""Lines of a stream: whole, numbered, bounded, whatever comes (C1)."""

from __future__ import annotations

import io
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.server.logs import records
from tamis.server.logs.records import Lines, PackedError
from tamis.server.logs.workers import size_of

PIECES = st.lists(st.sampled_from([b"\n", b"{}\n", b"abc", b"\r\n", b"x" * 70, b"\xff", b'"\n"', b" "]), max_size=30)


def cut(stream: bytes, size: int, limit: int = 10_000) -> list[tuple[int, bytes]]:
    """Every line of a stream that is fed in pieces, with its number; one that is passed over is ``!``."""
    lines = Lines(limit)
    blocks = [block for at in range(0, len(stream), size) for block in lines.feed(stream[at : at + size])]
    found: list[tuple[int, bytes]] = []
    for block in [*blocks, *lines.end()]:
        if block.problem is not None:
            assert block.problem.line == block.line
            found.append((block.line, b"!"))
            continue
        parts = block.data.removesuffix(b"\n").split(b"\n")
        found.extend((block.line + at, part) for at, part in enumerate(parts))
    return found


@given(PIECES.map(b"".join), st.integers(1, 80))
def test_every_line_comes_once_with_its_number(stream: bytes, size: int) -> None:
    """C1: in any pieces, the lines are those of the stream."""
    wanted = stream.split(b"\n")
    if not wanted[-1]:
        wanted.pop()
    assert cut(stream, size) == list(enumerate(wanted, 1))


@given(PIECES.map(b"".join), st.integers(1, 80), st.integers(40, 160))
def test_a_line_over_the_limit_costs_itself_alone(stream: bytes, size: int, limit: int) -> None:
    """C1: all others come, with their numbers; a line within the limit is never passed over."""
    wanted = stream.split(b"\n")
    if not wanted[-1]:
        wanted.pop()
    found = cut(stream, size, limit)
    assert [number for number, _ in found] == list(range(1, len(wanted) + 1))
    for (_, line), whole in zip(found, wanted, strict=True):
        assert line == whole or (line == b"!" and len(whole) >= limit)
        assert len(line) <= limit


def test_a_line_over_the_limit_is_not_held() -> None:
    """C1: bounded memory: 200 MB without a line end."""
    lines = Lines(limit=1_000_000)
    tracemalloc.start()
    for _ in range(200):
        assert lines.feed(b"x" * 1_000_000) == []
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000
    (block,) = lines.feed(b"\n")
    assert block.problem is not None and block.problem.code == "tooLarge" and "200000000 bytes" in block.problem.message


def test_blocks_are_of_bounded_size() -> None:
    """C1: a piece of any size becomes blocks that several workers share."""
    line = b'{"text": "' + b"a" * 1000 + b'"}\n'
    blocks = Lines().feed(line * 20_000)
    assert max(len(block.data) for block in blocks) <= 2 * records.BLOCK_BYTES
    assert b"".join(block.data for block in blocks) == line * 20_000
    assert [block.line for block in blocks] == [
        1 + sum(b.data.count(b"\n") for b in blocks[:n]) for n in range(len(blocks))
    ]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_mark_at_the_beginning_tells_the_encoding(encoding: str, size: int) -> None:
    """C1: mixed encodings: files of other programs."""
    text = '{"text": "né 说 🎉"}\n{"text": "b"}\n'
    stream = (("\ufeff" if encoding.endswith("e") else "") + text).encode(encoding)
    assert cut(stream, size) == list(enumerate(text.encode().splitlines(), 1))


@pytest.mark.parametrize(("magic", "form", "program"), records.PACKED)
def test_a_packed_stream_is_told(magic: bytes, form: str, program: str) -> None:
    """C1: no cascade of broken records for a file that is only packed."""
    with pytest.raises(PackedError) as told:
        Lines().feed(magic + b"\x00" * 10)
    assert (told.value.form, told.value.program) == (form, program)


def test_short_streams_come_at_their_end() -> None:
    """C1: fewer bytes than a mark has."""
    for stream in (b"", b"1", b"1\n", b"\n", b"{}\n", b"\xef\xbb\xbf"):
        assert cut(stream, 1) == [(1, line) for line in stream.removeprefix(b"\xef\xbb\xbf").splitlines()]


def test_the_size_of_a_file_is_what_is_left_of_it(tmp_path: Path) -> None:
    """C1: a file that grows is read up to the size that it had; a pipe has none."""
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    with path.open("rb", buffering=0) as stream:
        assert isinstance(stream, io.FileIO) and stream.read(2) == b"12"
        assert size_of(stream.fileno()) == 3
    ours, theirs = os.pipe()
    assert size_of(ours) is None
    os.close(ours)
    os.close(theirs)
