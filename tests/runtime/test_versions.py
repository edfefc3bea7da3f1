"""Version ranges (D90, ruling 35): ``id@range`` picks what SemVer says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.manifest.reading import is_version_range
from tamis.server.runtime.tools.versions import is_range, pick, satisfies, version_key

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


# The rules as properties

NUMBERS = st.integers(0, 4)
RELEASES = st.tuples(NUMBERS, NUMBERS, NUMBERS)
PRE = st.lists(st.sampled_from(["alpha", "beta", "rc", "0", "1", "11", "x-y"]), min_size=1, max_size=3).map(".".join)
PARTIAL = st.one_of(
    RELEASES.map(lambda parts: ".".join(map(str, parts))),
    st.tuples(NUMBERS, NUMBERS).map(lambda parts: f"{parts[0]}.{parts[1]}"),
    NUMBERS.map(str),
    NUMBERS.map(lambda number: f"{number}.x"),
)
COMPARATOR = st.builds(
    lambda sign, part: sign + part, st.sampled_from(["", "=", "^", "~", ">", ">=", "<", "<="]), PARTIAL
)
RANGE = st.lists(st.lists(COMPARATOR, min_size=1, max_size=3).map(" ".join), min_size=1, max_size=3).map(" || ".join)


def text(release: tuple[int, int, int], pre: str = "") -> str:
    return ".".join(map(str, release)) + (f"-{pre}" if pre else "")


@given(RELEASES, RELEASES)
def test_caret_keeps_the_leftmost_number_that_is_not_zero(
    low: tuple[int, int, int], found: tuple[int, int, int]
) -> None:
    fixed = next((place for place, number in enumerate(low) if number), 2)
    assert satisfies(text(found), f"^{text(low)}") is (found >= low and found[: fixed + 1] == low[: fixed + 1])


@given(RELEASES, RELEASES)
def test_tilde_keeps_the_minor_number(low: tuple[int, int, int], found: tuple[int, int, int]) -> None:
    assert satisfies(text(found), f"~{text(low)}") is (found >= low and found[:2] == low[:2])


@given(RELEASES, RELEASES, RELEASES)
def test_comparators_and_hyphens_compare(
    low: tuple[int, int, int], high: tuple[int, int, int], found: tuple[int, int, int]
) -> None:
    version, one, two = text(found), text(low), text(high)
    assert satisfies(version, f">={one} <{two}") is (low <= found < high)
    assert satisfies(version, f">{one},<={two}") is (low < found <= high)
    assert satisfies(version, f"{one} - {two}") is (low <= found <= high)


@given(RELEASES, RANGE, RANGE)
def test_alternatives_are_a_union_and_blanks_a_cut(found: tuple[int, int, int], one: str, two: str) -> None:
    version = text(found)
    assert satisfies(version, f"{one} || {two}") is (satisfies(version, one) or satisfies(version, two))
    if "||" not in one + two:
        assert satisfies(version, f"{one} {two}") is (satisfies(version, one) and satisfies(version, two))


@given(RELEASES, PRE, RELEASES, PRE)
def test_a_range_holds_a_pre_release_only_where_it_names_one_of_that_release(
    found: tuple[int, int, int], pre: str, low: tuple[int, int, int], low_pre: str
) -> None:
    version = text(found, pre)
    assert not satisfies(version, f">={text((0, 0, 0))}")
    inside = found == low and version_key(version) >= version_key(text(low, low_pre))
    assert satisfies(version, f">={text(low, low_pre)}") is inside
    assert satisfies(version, f"^{text(low, low_pre)}") is inside
    assert satisfies(text(low), f"^{text(low, low_pre)}"), "the release is above its pre-releases"


@given(st.lists(st.tuples(RELEASES, st.one_of(st.just(""), PRE)), min_size=1, max_size=8), RANGE)
def test_what_is_picked_is_in_the_range_and_nothing_in_it_is_newer(
    found: list[tuple[tuple[int, int, int], str]], wanted: str
) -> None:
    versions = [text(release, pre) for release, pre in found]
    got = pick(versions, wanted)
    fitting = [version for version in versions if satisfies(version, wanted)]
    assert (got is None) is (not fitting)
    if got is not None:
        assert got in fitting
        assert all(version_key(version) <= version_key(got) for version in fitting)
    assert pick(versions[::-1], wanted) == got, "no order of files decides"


@given(RANGE)
def test_a_range_that_a_manifest_may_hold_can_be_read(wanted: str) -> None:
    assert is_version_range(wanted)
    assert is_range(wanted)


def test_a_long_range_holds_nothing() -> None:
    assert not satisfies("1.0.0", " ".join(["^1"] * 200))
    assert not satisfies("1.0.0", "1" * 300)
    assert version_key("9" * 200) > version_key("8" * 200)


def test_build_data_counts_for_nothing() -> None:  # SemVer §10
    assert satisfies("1.2.0+build.7", "1.2.0")
    assert version_key("1.2.0+a") == version_key("1.2.0+b")
