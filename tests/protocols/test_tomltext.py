"""TOML with places: it accepts what tomllib accepts, gives the same values, and never raises (interface, Configuration; V58)."""

from __future__ import annotations

import random
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.tomltext import MAX_DEPTH, TomlEntry, TomlTree, TomlValue, read_toml
from tests.conftest import ROOT
from tests.growth import growth

PIECES = st.sampled_from(
    [
        *(
            "a",
            "b",
            "c",
            "[",
            "]",
            "[[",
            "]]",
            "=",
            "= 1",
            "{",
            "}",
            ",",
            ".",
            "\n",
            "\n",
            " ",
            "\t",
            "\r\n",
            "\r",
            "\x00",
        ),
        *('"x"', "'y'", '"""l\nm"""', "'''q'''", '"', '"""', "'", "\\", '"\\u00e9"', '"\\q"', '""""z"""""', "''''''"),
        *(
            "true",
            "1.5",
            "1979-05-27",
            "1979-05-27 07:32:00",
            "07:32:00",
            "inf",
            "0x1f",
            "1_000",
            "é",
            "# c",
            "+1",
            "-0",
        ),
        *("[a]\n", "[a.b]\n", "[[a]]\n", "[[a.b]]\n", "[b]\n", "a.b = 1\n", "a = 1\n", "c.a = {}\n", "a.b.c = 2\n"),
        *("a = {b = 1}\n", "b = [1, 2]\n", "b = [{a = 1}]\n", "{a.b = 1, a.c = 2}", "[ 1, [2], ]", "{ }", "{ a = 1, }"),
    ]
)
GOOD = """\
# about
title = "x" # said
a.b = [ 1, 2.5, # in a list
  [true, "q"], { k = 'v', "quoted key".d = 1979-05-27 },
]
long = \"\"\"
  two \\
  lines\"\"\"
[table]
time = 07:32:00
[table."in it"]
[[list]]
n = 1
[[list]]
n = 2
[list.below]
x = 0x1f
"""


def agree(text: str) -> None:
    tree = read_toml(text)
    try:
        expected = tomllib.loads(text)
    except ValueError:
        assert tree.errors, "tomllib refuses it"
        return
    assert tree.errors == []
    assert repr(tree.value) == repr(expected)  # nan is equal to itself only in words


@given(st.lists(PIECES, max_size=14).map("".join))
def test_it_accepts_what_tomllib_accepts_and_gives_the_same_values(text: str) -> None:
    agree(text)


@given(st.integers(0, len(GOOD)), st.integers(0, 12), st.text("[]{}=,.\"'#\n ab1é\r\\", max_size=6))
def test_an_edit_anywhere_is_judged_as_tomllib_does(at: int, cut: int, put: str) -> None:
    agree(GOOD[:at] + put + GOOD[at + cut :])


@given(st.text("[]{}=,.\"'#\n ab1é\r\\\ufeff", max_size=60))
def test_every_place_lies_in_the_text_and_in_what_holds_it(text: str) -> None:
    tree = read_toml(text)
    for start, end in [*tree.comments, *(error.span for error in tree.errors)]:
        assert 0 <= start <= end <= len(text)
    for table in tree.tables:
        for entry in table.entries:
            nested(entry, (0, len(text)))


def nested(entry: TomlEntry, around: tuple[int, int]) -> None:
    start, end = entry.span
    assert around[0] <= start <= end <= around[1]
    for span in entry.spans:
        assert start <= span[0] <= span[1] <= end
    if entry.value is not None:
        within(entry.value, (start, end))


def within(value: TomlValue, around: tuple[int, int]) -> None:
    assert around[0] <= value.span[0] <= value.span[1] <= around[1]
    for item in value.items:
        within(item, value.span)
    for entry in value.entries:
        nested(entry, value.span)


def test_values_stand_where_they_are_said_to() -> None:
    tree = read_toml(GOOD)
    assert tree.errors == []
    for table in tree.tables:
        for entry in table.entries:
            assert entry.value is not None
            for name, (start, end) in zip(entry.names, entry.spans, strict=True):
                assert tomllib.loads(f"{GOOD[start:end]} = 1") == {name: 1}
            assert tomllib.loads(f"k = {GOOD[slice(*entry.value.span)]}") == {"k": entry.value.value}


@pytest.mark.parametrize(
    "path",
    sorted([ROOT / "pyproject.toml", *ROOT.glob("examples/**/*.toml")]),
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_real_files_read_as_tomllib_reads_them(path: Path) -> None:
    agree(path.read_text("utf-8"))


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("a = [\n[policy]\nx = 1\n", "[", "']' is missing"),
        ("a = [1,\nb = 2\n", "[", "']' is missing"),
        ("a = 1\na = 2\n", "a", "'a' is set already, in line 1"),
        ("[a]\nb = 1\n[a]\n", "a", "'a' is set already, in line 1"),
        ('a = "x\n', '"x', "the closing quote is missing"),
        ("a = x y\n", "x", "'x' is no value; texts stand in quotes"),
        ("a = 1 b = 2\n", "b = 2", "a line holds one setting; this stands behind its end"),
        ("a = { b = 1\n", "{", "'}' is missing on the line"),
        ("a = { b = 1, }\n", ",", "no ',' stands before '}'"),
        ("a = [1 2]\n", "", "',' is missing"),
        ("a\n", "a", "'=' and a value are missing"),
        ("a =\n", "a =", "the value is missing"),
        ("[a\n", "[a", "']' is missing"),
        ("[]\n", "[]", "a table's name is missing"),
        ("a. = 1\n", "", "a name is missing behind '.'"),
        ("= 1\n", "= 1", "a name was expected"),
    ],
)
def test_an_error_stands_where_it_is(text: str, place: str, message: str) -> None:
    (first, *_) = read_toml(text).errors
    assert (text[slice(*first.span)], first.message) == (place, message)


def test_a_broken_line_costs_only_itself() -> None:
    tree = read_toml('a = [1,\nb = "x\n[t\nc = 1\n[u]\nd = 2\n')
    assert tree.value == {"a": [1], "t": {"c": 1}, "u": {"d": 2}}
    assert names(tree) == [("a",), ("b",), ("t", "c"), ("u", "d")]


def names(tree: TomlTree) -> list[tuple[str, ...]]:
    return [(*table.names, *entry.names) for table in tree.tables for entry in table.entries]


def test_a_byte_order_mark_is_passed_over() -> None:
    tree = read_toml("\ufeffa = 1\n")
    assert (tree.errors, tree.value, tree.tables[0].entries[0].spans) == ([], {"a": 1}, ((1, 2),))


def test_what_is_nested_too_deep_is_said() -> None:
    deep = "a = " + "[" * (MAX_DEPTH + 1)
    said = [error.message for error in read_toml(deep + "]" * (MAX_DEPTH + 1)).errors]
    assert "this is nested too deep" in said
    assert read_toml("a = " + "[" * MAX_DEPTH + "]" * MAX_DEPTH).errors == []


def test_numbers_of_thousands_of_digits_are_errors() -> None:
    assert read_toml("a = " + "1" * 5000).errors


@pytest.mark.share(8)
@pytest.mark.parametrize(
    "part",
    [
        "a = [\n",
        "[[a]]\n",
        "a = 1\n",
        "{",
        '"""',
        "a.",
        "[a.b]\n",
        "'",
        "a={b=",
        "# c\n",
        "[1,",
        "\r\n",
        "a = [1, # c\n",
    ],
)
def test_time_grows_with_the_text(part: str) -> None:
    assert growth(lambda n: part * n, read_toml, 500) <= 8


def test_random_bytes_never_raise(is_long: bool) -> None:
    source = random.Random(5)
    for _ in range(20_000 if is_long else 500):
        text = "".join(source.choice("[]{}=,.\"'#\n ab1-:TZé\r\\\t") for _ in range(source.randrange(80)))
        agree(text)
