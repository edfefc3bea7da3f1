"""Strict reading (``options.strict``): what was repaired is an error, and ACTION must be well-formed XML, at the exact place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.catalogue import CATALOGUE, message, severity
from tamis.protocols.model import Diag, Document, ReadOptions
from tamis.protocols.positions import LineIndex
from tamis.protocols.reader import read_text
from tests.protocols.reading import codes, read, runnable

BLOCK = "<ACTION>\n  <T>\n    <a>1</a>\n  </T>\n</ACTION>"


def verdict(text: str) -> Diag:
    found = [diag for diag in read(text, "action", strict=True).diagnostics if diag.code == "AX170"]
    assert len(found) == 1
    return found[0]


def test_a_good_block_runs_in_strict_reading() -> None:
    document = read(BLOCK, strict=True)
    assert runnable(document) == [("T", {"a": "1"})]
    assert codes(document) == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("<ACTION><T><a>1<b>2</b></T></ACTION>", "AX102"),
        ("<ACTION><T><a>R&D</a></T></ACTION>", "AX111"),
        ("<action><T/></action>", "TC004"),
        ("<ACTION><T a='1'/></ACTION>", "AX137"),
        ("<ACTION><T/>", "TC002"),
        ("<ACTION>\n<ACTION><T/></ACTION>", "TC006"),
        ("<|[REQUEST_TOOL]|>\ncommand: x\nq: 1\n<|[END_TOOL]|>", "TM214"),
    ],
)
def test_repairs_that_the_catalogue_marks_are_errors(text: str, code: str) -> None:
    assert CATALOGUE[code].strict
    assert runnable(read(text)) != []
    document = read(text, strict=True)
    assert runnable(document) == []
    assert all(severity(diag) == "error" for diag in document.diagnostics if diag.code == code)
    assert all(diag.code != code for call in document.calls for diag in call.repairs)


def test_other_blocks_stand() -> None:  # ruling 1
    good = "<|[REQUEST_TOOL]|>\ncommand: »»»x«««\n<|[END_TOOL]|>"
    document = read(f"<ACTION><T><a>R&D</a></T></ACTION>\n{good}", strict=True)
    assert runnable(document) == [("x", {})]


def test_a_repair_without_a_mark_stays_a_warning() -> None:
    document = read("<ACTION><T>, <a>1</a></T></ACTION>", strict=True)
    assert runnable(document) == [("T", {"a": "1"})]
    assert [diag.code for diag in document.calls[0].repairs] == ["TC011"]


def test_an_example_is_not_judged() -> None:  # rulings 5 and 7
    document = read("<think><ACTION><T><a>R&D</a></T></ACTION></think>", strict=True)
    assert {severity(diag) for diag in document.diagnostics} <= {"hint", "information"}


@pytest.mark.parametrize(
    ("inside", "line", "column", "reason"),
    [
        ("<T>\n  <a>中🎉 &nope; x</a>\n</T>", 1, 8, "undefined entity"),
        ("<T>\n  <a>中🎉 R&D</a>\n</T>", 1, 11, "not well-formed (invalid token)"),
        ("<T>\n  <a>1</b>\n</T>", 1, 8, "mismatched tag"),
        ("<workflows/skills/x.json/>", 0, 9, "workflows/skills/x.json is not an XML name"),
        ("<3d_print></3d_print>", 0, 9, "3d_print is not an XML name"),
        ("<T><!-- a -- b --></T>", 0, 20, "not well-formed (invalid token)"),
    ],
)
def test_the_verdict_stands_at_the_exact_place(inside: str, line: int, column: int, reason: str) -> None:  # ruling 9
    before = "好的 🎉\n"
    text = f"{before}<ACTION>{inside}</ACTION>"
    diag = verdict(text)
    assert message(diag) == f"Not well-formed XML: {reason}"
    found_line, found_column = LineIndex(text).position(diag.span[0])
    assert (found_line - 1, found_column) == (line, column)
    assert runnable(read(text, strict=True)) == []


@pytest.mark.parametrize("char", ["\x00", "\x08", "\ud800", "\ufffe"])
def test_characters_that_xml_has_not_are_found_and_nothing_raises(char: str) -> None:
    text = f"<ACTION><T><a>中{char}</a></T></ACTION>"
    diag = verdict(text)
    assert text[slice(*diag.span)] == char


def test_names_with_a_colon_are_well_formed() -> None:  # ruling 13
    document = read("<ACTION><core:run><a>1</a></core:run></ACTION>", strict=True)
    assert runnable(document) == [("core:run", {"a": "1"})]


PIECES = [
    "<ACTION>",
    "</ACTION>",
    "<T>",
    "</T>",
    "<a>",
    "</a>",
    "&",
    "<",
    "x",
    "]]>",
    "<![CDATA[",
    "\n",
    "中",
    "<!--",
    "-->",
]


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_strict_and_tolerant_reading_find_the_same(text: str) -> None:
    plain, strict = read(text), read(text, strict=True)
    assert [d.code for d in strict.diagnostics if d.code != "AX170"] == codes(plain)
    assert _shape(plain) == _shape(strict)
    assert [call.executable or not other.executable for call, other in zip(plain.calls, strict.calls, strict=True)] == [
        True
    ] * len(plain.calls)


def _shape(document: Document) -> list[object]:
    return [
        (block.span, [(call.tool_id, call.args(document.text)) for call in block.calls]) for block in document.blocks
    ]


def test_strict_is_off_unless_asked_for() -> None:
    assert not ReadOptions().strict
    assert "AX170" not in codes(read_text("<ACTION><T><a>R&D</a></T></ACTION>"))
