"""Did-you-mean: which names are proposed, and what that may cost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.suggest import osa_distance, suggest
from tests.growth import steps


@pytest.mark.parametrize(
    ("written", "known", "first"),
    [
        ("playerId", ["greeting_context", "player_id"], "player_id"),  # seed 000 §5.5
        ("player-id", ["player_id"], "player_id"),
        ("Player ID", ["player_id"], "player_id"),
        ("execute-python-script", ["core:execute-python-script"], "core:execute-python-script"),
        ("core:execute_python_script", ["core:execute-python-script"], "core:execute-python-script"),
        ("readfile", ["write_file", "read_file"], "read_file"),  # F25
        ("pahts", ["path", "paths"], "paths"),
        ("time_limit_msec", ["timeoutMs", "path"], None),
        ("Fast", ["fast", "slow"], "fast"),
        ("x", ["y", "z"], None),
        ("I think fast is best", ["fast", "slow"], None),
    ],
)
def test_equal_but_for_spelling_comes_first_then_a_few_edits(written: str, known: list[str], first: str | None):
    assert (suggest(written, known) or [None])[0] == first


def test_at_most_three_are_proposed_best_first():
    assert suggest("colour", ["colours", "color", "colouring", "colour_", "colou"]) == ["colour_", "colours", "color"]


def test_long_names_get_none_and_cost_nothing():  # F18
    assert suggest("a" * 5_000, ["a" * 60] * 1_000) == []
    assert suggest("a" * 64, ["b" * 5_000] * 1_000) == []
    assert steps(lambda: suggest("a" * 5_000, ["a" * 60] * 1_000)) < 100
    assert steps(lambda: suggest("a" * 64, ["b" * 5_000] * 1_000)) < 100_000


def _plain_distance(a: str, b: str) -> int:
    rows = [[i + j if not i * j else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            rows[i][j] = min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]))
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                rows[i][j] = min(rows[i][j], rows[i - 2][j - 2] + 1)
    return rows[-1][-1]


@given(st.text("abc", max_size=7), st.text("abc", max_size=7), st.integers(1, 4))
def test_the_bounded_distance_is_the_plain_one_up_to_its_bound(a: str, b: str, bound: int):
    assert osa_distance(a, b, bound) == min(_plain_distance(a, b), bound + 1)
