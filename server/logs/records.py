"""The lines of a stream that may have no end: blocks of whole lines, with the number of the first, in bounded memory.

Must not know what stands in a line.
"""

from __future__ import annotations

import codecs
from typing import NamedTuple

MAX_RECORD_BYTES = 256 * 1024 * 1024
BLOCK_BYTES = 512 * 1024
"""A block is closed when it has so many bytes; a longer line is a block of its own."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LONGEST_MARK = 4
PACKED = ((b"\x1f\x8b", "gzip", "zcat"), (b"\x28\xb5\x2f\xfd", "zstd", "zstdcat"), (b"\xfd7zXZ", "xz", "xzcat"))
"""How packed files begin, their name, and what unpacks them."""


class PackedError(Exception):
    """The stream is packed: ``form``, and the ``program`` that unpacks it."""

    def __init__(self, form: str, program: str) -> None:
        super().__init__(form)
        self.form = form
        self.program = program


class Problem(NamedTuple):
    """A record that could not be read, or (``lost`` false) that was read otherwise than it was written."""

    line: int
    """From one."""
    code: str
    message: str
    lost: bool = True


class Block(NamedTuple):
    """Whole lines, the first of which has the number ``line``; with ``problem`` it stands for one line that is not there."""

    line: int
    data: bytes
    problem: Problem | None = None


class Lines:
    """Cuts a stream into blocks of whole lines. Holds at most one line, of at most ``limit`` bytes, and the last piece."""

    def __init__(self, limit: int = MAX_RECORD_BYTES) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._searched = 0
        self._line = 1
        self._skipped = 0
        """Bytes of a line over the limit that were let go."""
        self._head: bytes | None = b""
        self._decoder: codecs.IncrementalDecoder | None = None

    @property
    def within(self) -> bool:
        """Whether the stream so far ends inside a line."""
        return bool(self._buffer) or self._skipped > 0

    def feed(self, data: bytes) -> list[Block]:
        """Takes the next piece; the blocks that it completes. Raises ``PackedError`` at the beginning of a packed stream."""
        if self._head is not None:
            self._head += data
            if len(self._head) < _LONGEST_MARK + 1:
                return []
            data, self._head = self._begin(self._head), None
        return self._take(self._decoded(data, final=False))

    def end(self) -> list[Block]:
        """The last line, where it has no line end."""
        data = b""
        if self._head is not None:
            data, self._head = self._begin(self._head), None
        blocks = self._take(self._decoded(data, final=True))
        if self._skipped:
            blocks.append(self._too_large())
        elif self._buffer:
            blocks.append(Block(self._line, bytes(self._buffer)))
        self._buffer.clear()
        return blocks

    def _begin(self, head: bytes) -> bytes:
        for magic, form, program in PACKED:
            if head.startswith(magic):
                raise PackedError(form, program)
        for mark, encoding in _MARKS:
            if head.startswith(mark):
                if encoding != "utf-8":
                    self._decoder = codecs.getincrementaldecoder(encoding)("replace")
                return head[len(mark) :]
        return head

    def _decoded(self, data: bytes, *, final: bool) -> bytes:
        return data if self._decoder is None else self._decoder.decode(data, final).encode("utf-8", "replace")

    def _take(self, data: bytes) -> list[Block]:
        blocks: list[Block] = []
        self._buffer += data
        while True:
            if self._skipped:
                end = self._buffer.find(b"\n")
                self._skipped += len(self._buffer) if end < 0 else end
                del self._buffer[: len(self._buffer) if end < 0 else end + 1]
                if end < 0:
                    return blocks
                blocks.append(self._too_large())
                continue
            end = self._buffer.rfind(b"\n", self._searched) + 1
            if not end:
                self._searched = len(self._buffer)
                if self._searched > self._limit:
                    self._skipped = self._searched
                    self._buffer.clear()
                    self._searched = 0
                return blocks
            self._cut(end, blocks)

    def _cut(self, end: int, blocks: list[Block]) -> None:
        """Takes the lines before ``end`` as blocks."""
        at = 0
        while at < end:
            stop = end
            if end - at > 2 * BLOCK_BYTES:
                stop = self._buffer.find(b"\n", at + BLOCK_BYTES) + 1
            data = bytes(memoryview(self._buffer)[at:stop])
            count = data.count(b"\n")
            if len(data) > self._limit and count == 1:
                self._skipped = len(data) - 1
                blocks.append(self._too_large())
            else:
                blocks.append(Block(self._line, data))
                self._line += count
            at = stop
        del self._buffer[:end]
        self._searched = 0

    def _too_large(self) -> Block:
        size, line = self._skipped, self._line
        self._skipped = 0
        self._line += 1
        return Block(line, b"", Problem(line, "tooLarge", f"the record has {size} bytes, more than {self._limit}"))
