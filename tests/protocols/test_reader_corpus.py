"""The call corpus: score, harm and truncation safety of the readers (bars in the corpus' own page)."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.protocols.corpus_adapter import adapt

FILES = ["action_tag", "action_inputs", "tam", "vcp", "negatives"]


@pytest.fixture(scope="module")
def score(corpora: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("corpus_score", corpora / "calls" / "score.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = writes
    return module


@pytest.mark.parametrize("name", FILES)
def test_rows_are_read_as_a_careful_reader_would(score: ModuleType, name: str) -> None:
    rows = [row for row in score.load([name]) if not row["ambiguous"]]
    grades = {row["id"]: score.grade(row, adapt(row)) for row in rows}
    assert [row for row, grade in grades.items() if grade in ("harmful", "crash")] == []
    assert sum(score.POINTS[grade] for grade in grades.values()) / len(rows) >= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES[:4])
def test_no_prefix_of_a_good_text_runs_a_changed_call(score: ModuleType, name: str) -> None:  # F1 F2 ruling 1
    for row in score.load([name]):
        text = row["text"]
        if row["expect"]["outcome"] != "ok" or row["ambiguous"] or len(text) > 700:
            continue
        wanted = [row["expect"]["calls"], *(other["calls"] for other in row["accept"])]
        for cut in range(0, len(text), 3):
            calls, _ = score.classify(adapt({**row, "text": text[:cut], "finish_reason": "length"}))
            assert any(
                len(calls) <= len(full)
                and all(score.same_call(full[i], call, row["ws"]) for i, call in enumerate(calls))
                for full in wanted
            ), (row["id"], cut)
