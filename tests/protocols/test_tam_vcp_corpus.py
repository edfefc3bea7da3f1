"""The TAM and VCP rows of the call corpus, graded by its own scorer."""

from __future__ import annotations

import importlib
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tamis.protocols.model import ReadOptions
from tamis.protocols.reader import read_text
from tests.protocols.corpus_adapter import adapt
from tests.protocols.pair_reading import unsound


@pytest.fixture(scope="module")
def scorer(corpora: Path) -> Any:
    folder = str(corpora / "calls")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module("score")
    finally:
        sys.path.remove(folder)


def _rows(corpora: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (corpora / "calls" / f"{name}.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("name", ["tam", "vcp"])
def test_the_rows_score_at_least_97_percent_with_nothing_harmful(corpora: Path, scorer: Any, name: str) -> None:
    grades: Counter[str] = Counter()
    bad: list[str] = []
    points = 0.0
    rows = [row for row in _rows(corpora, name) if not row["ambiguous"]]
    for row in rows:
        grade = scorer.grade(row, adapt(row))
        grades[grade] += 1
        points += scorer.POINTS[grade]
        if grade in ("harmful", "lost", "silent"):
            bad.append(f"{grade} {row['id']}")
    assert grades["harmful"] == 0, bad
    assert points / len(rows) >= 0.97, bad


@pytest.mark.parametrize("name", ["tam", "vcp"])
# F1
def test_no_prefix_of_a_good_row_runs_what_the_whole_does_not(corpora: Path, scorer: Any, name: str) -> None:
    for row in _rows(corpora, name):
        if row["expect"]["outcome"] != "ok" or row["ambiguous"]:
            continue
        text = row["text"]
        wanted = [row["expect"]["calls"], *(other["calls"] for other in row["accept"])]
        for cut in range(0, len(text), 3):
            calls, _ = scorer.classify(adapt({**row, "text": text[:cut], "finish_reason": "length"}))
            assert any(
                len(calls) <= len(want)
                and all(scorer.same_call(want[i], calls[i], row["ws"]) for i in range(len(calls)))
                for want in wanted
            ), (row["id"], cut)


@pytest.mark.parametrize("name", ["tam", "vcp"])
# P4, P6
def test_safe_edits_of_every_text_give_the_same_calls_and_leave_no_warning(corpora: Path, name: str) -> None:
    for row in _rows(corpora, name):
        options = ReadOptions(complete=row["finish_reason"] != "length")
        problems = unsound(read_text(row["text"], options=options), name, options)
        assert not problems, (row["id"], problems)
