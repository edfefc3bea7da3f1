"""Version ranges (D90, ruling 35): ``id@range`` picks what SemVer says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.server.runtime.registry.versions import satisfies, version_key

ROWS = [
    ("1.2.3", "1.2.3", True),
    ("1.2.4", "1.2.3", False),
    ("1.2.3", "=1.2.3", True),
    ("1.2.9", "1.2", True),
    ("1.3.0", "1.2", False),
    ("1.9.0", "1", True),
    ("2.0.0", "1.x", False),
    ("1.4.0", "1.x", True),
    ("1.9.9", "^1.2.3", True),
    ("2.0.0", "^1.2.3", False),
    ("1.2.2", "^1.2.3", False),
    ("0.2.9", "^0.2.3", True),
    ("0.3.0", "^0.2.3", False),
    ("0.0.3", "^0.0.3", True),
    ("0.0.4", "^0.0.3", False),
    ("1.2.9", "~1.2.3", True),
    ("1.3.0", "~1.2.3", False),
    ("1.9.0", "~1", True),
    ("1.5.0", ">=1.0 <2", True),
    ("2.0.0", ">=1.0 <2", False),
    ("2.0.0-rc.1", ">=1.0 <2", False),
    ("1.5.0", ">=1.0, <2", True),
    ("1.0.0", ">1", False),
    ("2.0.0", ">1", True),
    ("1.9.0", "<=1", True),
    ("1.0.0", "*", True),
    ("1.0.0", "latest", True),
    ("1.0.0-beta", "1.0.0-beta", True),
    ("draft", "draft", True),
    ("draft", "^1.0.0", False),
    ("1.0.0", "nonsense!", False),
    ("1.0.0", "^", False),
]


@pytest.mark.parametrize(("version", "wanted", "expected"), ROWS, ids=lambda value: str(value))
def test_a_range_holds_what_semver_says(version: str, wanted: str, expected: bool) -> None:
    assert satisfies(version, wanted) is expected


def test_versions_sort_by_semver_precedence() -> None:
    ordered = ["draft", "0.9.0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-rc.1", "1.0.0", "1.0.10"]
    assert sorted(ordered[3:] + ordered[:3], key=version_key) == ordered


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_two_texts_compare_without_raising(version: str, wanted: str) -> None:
    assert satisfies(version, wanted) in (True, False)
    assert satisfies(version, version) is True
