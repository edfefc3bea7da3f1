"""Strict reading (``options.strict``): what was repaired is an error, and ACTION must be well-formed XML, at the exact place."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from tamis.protocols.catalogue import CATALOGUE, message, severity
from tamis.protocols.model import Diag, Document, ReadOptions
from tamis.protocols.positions import LineIndex
from tamis.protocols.reader import read_text
from tests.growth import loops
from tests.protocols.reader_helpers import codes, read, runnable

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
        ("<T>\n  <a>中🎉 &nope; x</a>\n</T>", 1, 8, "Entity 'nope' not defined"),
        ("<T>\n  <a>中🎉 R&D</a>\n</T>", 1, 9, "EntityRef: expecting ';'"),
        ("<T>\n  <a>中🎉 R & D</a>\n</T>", 1, 10, "xmlParseEntityRef: no name"),
        ("<T>\n  <a>1</b>\n</T>", 1, 6, "Opening and ending tag mismatch: a and b"),
        ("<workflows/skills/x.json/>", 0, 9, "workflows/skills/x.json is not an XML name"),
        ("<3d_print></3d_print>", 0, 9, "3d_print is not an XML name"),
        ("<T><!-- a -- b --></T>", 0, 18, "Double hyphen within comment: <!-- a"),
        ("<T>\r\n<a>中]]></a></T>", 1, 4, "Sequence ']]>' not allowed in content"),
        ("<T><a x='1' x='2'>1</a></T>", 0, 25, "Attribute x redefined"),
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


def test_names_with_a_colon_are_well_formed() -> None:  # ruling 13: XML decides, not its namespaces
    document = read("<ACTION><core:run><a>1</a></core:run></ACTION>", strict=True)
    assert runnable(document) == [("core:run", {"a": "1"})]


def test_names_with_a_colon_hide_no_fault_behind_them() -> (
    None
):  # F12: libxml2 reports only so many undeclared prefixes
    text = "<ACTION>" + "<core:run><a>1</a></core:run>" * 200 + "<core:run><a>x & y</a></core:run></ACTION>"
    assert text[slice(*verdict(text).span)] == "&"


def test_the_verdict_stands_on_what_it_is_about() -> None:  # F12
    for inside, about in (("1</b>", "</b>"), ("&nope; x", "&nope;"), ("R&D", "&D"), ("x & y", "&")):
        text = f"<ACTION><T><a>{inside}</a></T></ACTION>"
        assert text[slice(*verdict(text).span)] == about


def test_the_words_of_the_verdict_are_bounded() -> None:
    name = "n" * 5_000
    text = f"<ACTION><T><{name}>1</m{name}></T></ACTION>"
    assert len(message(verdict(text))) < 400


def deep(levels: int) -> str:
    return "<ACTION>" + "<a>" * levels + "</a>" * levels + "</ACTION>"


@pytest.mark.parametrize(
    "text",
    [
        deep(20_000),
        f"<ACTION><T><a>{'x' * 2_000_000}</a></T></ACTION>",
        f"<ACTION><T><a><![CDATA[{'x' * 2_000_000}]]></a></T></ACTION>",
        f"<ACTION><T>{'<a/>' * 10_000}</T></ACTION>",
        f"<ACTION><T>{'<a:b/>' * 10_000}</T></ACTION>",
        f"<ACTION><T>{'&x;' * 20_000}</T></ACTION>",
    ],
    ids=["deep", "text", "section", "elements", "prefixes", "entities"],
)
def test_large_blocks_are_judged_in_bounded_time(text: str) -> None:  # ruling 10
    before = loops(lambda: read(text, "action"))
    assert loops(lambda: read(text, "action", strict=True)) < before * 3 + 100


def test_lxml_is_imported_only_for_the_verdict() -> None:  # F12
    code = (
        "import sys; from tamis.protocols.reader import read_text; from tamis.protocols.model import ReadOptions\n"
        "block = '<ACTION><T><a>R&amp;D</a></T></ACTION>'\n"
        "read_text(block, 'action', ReadOptions()); assert 'lxml' not in sys.modules\n"
        "read_text('<action><T/></action> <<<', 'action', ReadOptions()); assert 'lxml' not in sys.modules\n"
        "read_text(block, 'action', ReadOptions(strict=True)); assert 'lxml.etree' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


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


XML_PIECES = [
    *PIECES,
    "<T a='1'>",
    "<a b='1' b='2'>",
    "<a b=1>",
    "<a b='&lt;<'>",
    "<x我 ü='中'/>",
    "<a/>",
    "</a >",
    "&amp;",
    "&#65;",
    "&#0;",
    "&#xD800;",
    "&nope;",
    "<?pi x?>",
    "<?xml version='1.0'?>",
    "<!DOCTYPE a>",
    "--",
    "\r",
    "\x01",
    "\ufffe",
    "\ud800",
    "<3>",
    "]]",
]


def refused_by_lxml(block: str) -> bool:
    try:
        etree.fromstring(block.encode("utf-8", "surrogatepass"))
    except etree.XMLSyntaxError:
        return True
    return False


WHOLE = st.recursive(
    st.sampled_from(
        ["x", "中", "&amp;", "&", "<a/>", "]]>", "<!-- n -->", "<!-- -- -->", "&nope;", "<![CDATA[<&]]>", "\x01"]
    ),
    lambda inner: st.tuples(st.sampled_from(["a", "T", "x我", "item"]), st.lists(inner, max_size=3)).map(
        lambda parts: f"<{parts[0]}>{''.join(parts[1])}</{parts[0]}>"
    ),
    max_leaves=6,
).map(lambda inside: f"<ACTION><T>{inside}</T></ACTION>")


@settings(max_examples=settings().max_examples * 2)
@given(
    st.lists(st.sampled_from(XML_PIECES), max_size=16).map(lambda parts: f"<ACTION><T>{''.join(parts)}</T></ACTION>")
    | WHOLE
)
def test_the_verdict_is_the_one_of_lxml(text: str) -> None:  # F12
    document = read(text, "action", strict=True)
    for block in document.blocks:
        if block.protocol == "action" and block.close is not None and not block.aside:
            found = [diag for diag in block.diagnostics if diag.code == "AX170"]
            assert bool(found) == refused_by_lxml(text[slice(*block.span)])
            assert all(block.span[0] <= d.span[0] < d.span[1] <= block.span[1] for d in found)


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
