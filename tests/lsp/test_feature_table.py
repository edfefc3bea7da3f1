"""The table of features: every request that the server answers has a row, and what a row names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tamis.server.lsp.features.tool_methods import NAMES
from tamis.server.lsp.table import REQUESTS

ASKED = REQUESTS.keys() - set(NAMES)
ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "editors" / "features.md").read_text("utf-8")
ROWS = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| `")]


def test_every_request_has_a_row() -> None:
    named = {name for row in ROWS for name in re.findall(r"`([^`]+)`", row[0])}
    assert ASKED - named - {"initialize", "shutdown"} == set()


def test_no_row_names_a_request_that_is_not_answered() -> None:
    named = {name for row in ROWS for name in re.findall(r"`([^`]+)`", row[0])}
    assert named - ASKED == {"publishDiagnostics"}


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_what_shows_a_feature_is_there(row: list[str]) -> None:
    paths = re.findall(r"`(tests/[^`]+)`", row[3])
    assert paths
    for path in paths:
        assert (ROOT / path).exists(), path
        if (ROOT / path).is_dir():
            assert any((ROOT / path).glob("*.txt")), path


def test_every_test_that_the_page_names_is_there() -> None:
    for path in re.findall(r"`(tests/[\w/]+\.\w+)`", PAGE):
        assert (ROOT / path).exists(), path
