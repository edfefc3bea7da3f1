"""Parquet files as lines of JSON, a few rows at a time: only the columns that hold what is asked for. Needs pyarrow (the extra ``parquet``).

Must not know what is done with the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from tamis.server.logs.records import BLOCK_BYTES, Block
from tamis.server.logs.texts import Texts

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
