"""The lines of a stream that may have no end: blocks of whole lines, with the number of the first, in bounded memory.

Must not know what stands in a line.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import msgspec

from tamis.protocols.model import unescape_pointer

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


# The text of a record: JSON on one line, of which only what leads to a field is looked at. What a record holds besides is passed over and not kept.


Path = tuple[str, ...]
USUAL: tuple[Path, ...] = (("text",), ("content",))
"""Where the text is looked for when no field is named, after the record itself."""
_INDEX = re.compile(r"-?(?:0|[1-9][0-9]{0,9})")
_PARTS = frozenset({"text", "output_text", "input_text"})
_BETWEEN = "\n\n"
"""Between the parts of one message, so that no two of them make a call together that neither has."""
_MISSING: Any = object()
_SHOWN = 80


class Found(NamedTuple):
    """The text of a record and the other field that was asked for, a text too, or empty."""

    text: str
    label: str = ""
    problem: Problem | None = None


class RecordError(Exception):
    """Why a record gave no text."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def path_of(field: str) -> Path:
    """A field as it is named on a command line: ``message.content``, ``messages.-1.content``, or a JSON Pointer, ``/message/content``.

    Raises ``ValueError`` for an empty one.
    """
    if field.startswith("/"):
        return tuple(unescape_pointer(part) for part in field[1:].split("/"))
    parts = tuple(field.split("."))
    if not all(parts):
        raise ValueError(f"'{field}' is no field: names with dots between them, or a JSON Pointer")
    return parts


class Texts:
    """What is taken of each record: the text at the first of ``paths`` that it has, and the label at ``label``."""

    def __init__(self, paths: tuple[Path, ...] = (), label: Path = ()) -> None:
        self.paths = paths or USUAL
        self._may_be_text = not paths
        self.label = label

    def of(self, record: bytes, line: int) -> Found:
        """The text of one record. Raises ``RecordError``."""
        try:
            return Found(*self._look(msgspec.Raw(record)))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self._tolerant(record, line)

    def _look(self, value: Any) -> tuple[str, str]:
        if self._may_be_text and _is_text(value):
            return _text_of(value, ()), ""
        members = _opened(value)
        for path in self.paths:
            member = _walk(members, path)
            if member is not _MISSING:
                break
        else:
            raise RecordError("noField", f"the record has no field {' or '.join(map(_named, self.paths))}")
        label = _walk(members, self.label) if self.label else _MISSING
        if label is not _MISSING:
            label = _value(label)
        return _text_of(member, path), label if isinstance(label, str) else ""

    def _tolerant(self, record: bytes, line: int) -> Found:
        """What a stricter look refuses: bytes that are no UTF-8, lone surrogates, ``NaN``."""
        problem = None
        try:
            text = record.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            text = record.decode("utf-8-sig", "replace")
            words = f"the record is not UTF-8 at byte {error.start}; such bytes are read as U+FFFD"
            problem = Problem(line, "notUtf8", words, lost=False)
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            raise RecordError("notJson", f"the record is not JSON: {error.msg} at character {error.pos}") from None
        except RecursionError:
            raise RecordError("notJson", "the record is nested too deeply") from None
        except ValueError as error:
            raise RecordError("notJson", f"the record is not JSON: {error}") from None
        return Found(*self._look(value), problem)


def _opened(value: Any) -> Any:
    """A level of JSON: members and items stay as they are written."""
    if not isinstance(value, msgspec.Raw):
        return value
    data = memoryview(value)
    at = 0
    while at < len(data) and data[at] in b" \t\r\n":
        at += 1
    begin = bytes(data[at : at + 1])
    if begin == b"{":
        return msgspec.json.decode(value, type=dict[str, msgspec.Raw])
    return msgspec.json.decode(value, type=list[msgspec.Raw] if begin == b"[" else Any)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, msgspec.Raw) and bytes(memoryview(value)[:1]) == b'"')


def _value(value: Any) -> Any:
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value


def _walk(value: Any, path: Path) -> Any:
    for name in path:
        value = _opened(value)
        if isinstance(value, dict):
            value = cast("dict[str, Any]", value).get(name, _MISSING)
        elif isinstance(value, list) and _INDEX.fullmatch(name):
            items, index = cast("list[Any]", value), int(name)
            value = items[index] if -len(items) <= index < len(items) else _MISSING
        else:
            return _MISSING
        if value is _MISSING:
            return value
    return value


def _text_of(value: Any, path: Path) -> str:
    """A text; a list of parts of one message, of which those that are no text are left out; ``null`` is no text."""
    value = _value(value)
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list):
        texts: list[str] = []
        for part in cast("list[Any]", value):
            if isinstance(part, str):
                texts.append(part)
                continue
            kind = cast("dict[str, Any]", part).get("type") if isinstance(part, dict) else None
            if not isinstance(kind, str):
                first = f"{_named((*path, '0', 'content'))}" if path else "FIELD"
                raise RecordError("notText", f"{_named(path)} is a list, and not one of texts; name an item: {first}")
            text = cast("dict[str, Any]", part).get("text")
            if kind in _PARTS and isinstance(text, str):
                texts.append(text)
        return _BETWEEN.join(texts)
    kind = "an object" if isinstance(value, dict) else "a boolean" if isinstance(value, bool) else "a number"
    raise RecordError("notText", f"{_named(path)} is {kind}, not a text")


def _named(path: Path) -> str:
    name = ".".join(path) if path else "the record"
    return f"'{name[:_SHOWN]}'" if path else name


# Parquet files as lines of JSON, a few rows at a time: only the columns that hold what is asked for. Needs pyarrow (the extra ``parquet``).


MAGIC = b"PAR1"
_ROWS = 256
_BUFFER = 1024 * 1024


class ParquetError(Exception):
    """Why a file cannot be read as Parquet; the message is a sentence."""


def is_parquet(name: str) -> bool:
    """Whether a file is one, by how it begins. Raises ``OSError``."""
    with open(name, "rb") as stream:
        return stream.read(len(MAGIC)) == MAGIC


def blocks(name: str, texts: Texts) -> Iterator[Block]:
    """The rows of a file as blocks of JSON lines, the first of which is line 1. Raises ``ParquetError``."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ParquetError("Parquet needs pyarrow: `pip install 'tamis[parquet]'`") from None
    library: Any = parquet
    failures = (cast("type[Exception]", cast("Any", pyarrow).ArrowException), OSError, ValueError)
    try:
        file = library.ParquetFile(name, buffer_size=_BUFFER, pre_buffer=False)
        known = cast("list[str]", file.schema_arrow.names)
        wanted = {path[0] for path in (*texts.paths, texts.label) if path}
        columns = [column for column in known if column in wanted]
        if not any(path[0] in known for path in texts.paths):
            named = " or ".join(f"'{path[0]}'" for path in texts.paths)
            raise ParquetError(f"there is no column {named}; there are: {', '.join(known[:20])}")
        line = 1
        data = bytearray()
        first = line
        for rows in file.iter_batches(batch_size=_ROWS, columns=columns, use_threads=False):
            for row in cast("list[dict[str, Any]]", rows.to_pylist()):
                data += msgspec.json.encode(_plain(row), enc_hook=str) + b"\n"
                line += 1
                if len(data) >= BLOCK_BYTES:
                    yield Block(first, bytes(data))
                    data.clear()
                    first = line
        if data:
            yield Block(first, bytes(data))
    except failures as error:
        raise ParquetError(f"it cannot be read as Parquet: {str(error).splitlines()[0][:200]}") from None


def _plain(value: Any) -> Any:
    """Binary columns are texts here; what is no UTF-8 in them is U+FFFD."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_plain(part) for part in cast("list[Any]", value)]
    return value
