"""Logs in Parquet files (C1)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tamis.server.logs.records import ParquetError, Texts, blocks, is_parquet, path_of
from tests.cli.in_process import Tamis

pyarrow: Any = pytest.importorskip("pyarrow", reason="Parquet files need pyarrow (the extra `parquet`)")
ACTION = "<ACTION><t:a><x>1</x></t:a></ACTION>"


@pytest.fixture
def tamis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tamis:
    return Tamis(tmp_path, monkeypatch, capsys)


def write(path: Path, rows: list[dict[str, Any]], **options: Any) -> None:
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pylist(rows), path, **options)


@pytest.mark.slow
def test_rows_give_what_the_same_json_lines_give(tamis: Tamis) -> None:
    """C1: nested fields, lists of parts, nulls and binary columns too."""
    rows = [
        {"id": n, "text": f"{n} {ACTION}", "message": {"content": f"m{n}"}, "raw": b"a\xff", "parts": [{"type": "text", "text": "p"}]}
        for n in range(700)
    ]  # fmt: skip
    rows[5]["text"] = None
    write(tamis.folder / "log.parquet", rows, row_group_size=100)
    lines = [json.dumps({**row, "raw": "a\ufffd"}) for row in rows]
    (tamis.folder / "log.jsonl").write_text("\n".join(lines))
    for field in ([], ["--field", "message.content"], ["--field", "raw"], ["--field", "parts"]):
        done = tamis("parse", "--jsonl", "log.parquet", *field)
        assert done.code == 0 and done.out.count("\n") == 700
        assert done.out == tamis("parse", "--jsonl", "log.jsonl", *field).out


def test_only_the_columns_that_are_asked_for_are_read(tmp_path: Path) -> None:
    """C1: bounded memory: what else a row holds is not looked at."""
    write(tmp_path / "a", [{"text": "a", "model": "m", "image": b"x" * 1000}])
    (block,) = blocks(str(tmp_path / "a"), Texts((), path_of("model")))
    assert json.loads(block.data) == {"text": "a", "model": "m"}


def test_blocks_are_bounded_and_numbered(tmp_path: Path) -> None:
    """C1: rows count from one."""
    write(tmp_path / "a", [{"text": "x" * 1000} for _ in range(5000)])
    found = list(blocks(str(tmp_path / "a"), Texts()))
    assert len(found) > 5 and max(len(block.data) for block in found) < 600_000
    at = 1
    for block in found:
        assert block.line == at
        at += block.data.count(b"\n")
    assert at == 5001


@pytest.mark.parametrize("keep", [8, 100, -20])
def test_a_broken_file_is_told(tamis: Tamis, keep: int) -> None:
    """C1: cut off, or no Parquet behind its first bytes."""
    write(tamis.folder / "log.parquet", [{"text": "a" * 100} for _ in range(100)])
    data = (tamis.folder / "log.parquet").read_bytes()
    (tamis.folder / "log.parquet").write_bytes(data[:keep])
    done = tamis("parse", "--jsonl", "log.parquet")
    assert done.code == 2 and "cannot be read as Parquet" in done.err and done.err.count("\n") == 1


@pytest.mark.slow
def test_a_missing_column_is_told_with_those_that_are_there(tamis: Tamis) -> None:
    """C1: a field that is missing costs the file, once."""
    write(tamis.folder / "log.parquet", [{"prompt": "a", "answer": "b"}])
    done = tamis("parse", "--jsonl", "log.parquet")
    assert done.code == 2 and "there is no column 'text' or 'content'; there are: prompt, answer" in done.err
    assert tamis("parse", "--jsonl", "log.parquet", "--field", "answer").code == 0


def test_without_pyarrow_the_remedy_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C1: an extra."""
    write(tmp_path / "a", [{"text": "a"}])
    assert is_parquet(str(tmp_path / "a"))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ParquetError, match=r"pip install 'tamis\[parquet\]'"):
        next(blocks(str(tmp_path / "a"), Texts()))
