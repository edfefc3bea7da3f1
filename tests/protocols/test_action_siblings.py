"""Spellings of ACTION that are near one another, each with the one reading that a careful person has, or refused (ruling 1)."""

from __future__ import annotations

import pytest

from tamis.protocols.catalogue import severity
from tamis.protocols.model import Json
from tamis.protocols.repair import apply_edits, safe_edits
from tests.protocols.reader_helpers import read, runnable

ONE: dict[str, Json] = {"a": "1"}
Q: dict[str, Json] = {"q": "hello"}


def _tool(inside: str) -> str:
    return f"<ACTION><T>{inside}</T></ACTION>"


def _inputs(body: str, head: str = "<tool_id>T</tool_id>") -> str:
    return f"<ACTION>\n{head}\n<inputs>\n{body}\n</inputs>\n</ACTION>"


INPUT = '<input name="q">hello</input>'
# text, arguments of the call of T, the codes of its warnings
READ: list[tuple[str, dict[str, Json], set[str]]] = [
    # closing tags that lost or changed a character
    (_tool("<a>1/a>"), ONE, {"TC004"}),
    (_tool("<a>1＜/a＞"), ONE, {"TC004"}),
    (_tool("<a>1<\\/a>"), ONE, {"TC004"}),
    (_tool("<a>1<\\a>"), ONE, {"TC004"}),
    (_tool("<a>1<//a>"), ONE, {"TC004"}),
    (_tool("<a>1&lt;/a&gt;"), ONE, {"TC004"}),
    (_tool("<a>1<a/>"), ONE, {"AX132"}),
    (_tool("<a>1</a/>"), ONE, {"AX104"}),
    ("<ACTION><T><a>1</a>&lt;/T&gt;</ACTION>", ONE, {"TC004"}),
    ("<ACTION><T><a>1</a><T/></ACTION>", ONE, {"AX132"}),
    ("<ACTION><T><a>1</a></T><ACTION/>", ONE, {"TC004"}),
    ("<ACTION><T></Ts></ACTION>", {}, {"AX104"}),
    (_tool("<path>src/path<b>2</b>"), {"path": "src/path", "b": "2"}, {"AX102"}),
    # opening tags
    (_tool("<path/tmp/x</path>"), {"path": "/tmp/x"}, {"AX130"}),
    (_tool("<a＞1</a>"), ONE, {"AX130"}),
    ("<ACTION＞<T><a>1</a></T></ACTION>", ONE, {"TC004"}),
    # closing tags twice, in a list too (F8)
    (_tool("<l><item>1</item></item><item>2</item></l>"), {"l": ["1", "2"]}, {"AX105"}),
    (_inputs(INPUT + "</input>"), Q, {"AX105"}),
    # sections
    (_tool("<a><[CDATA[1]] ></a>"), ONE, {"AX120", "AX122"}),
    (_tool("<a><!CDATA[1]></a>"), ONE, {"AX120", "AX122"}),
    (_tool("<a>![CDATA[1 < 2]]></a>"), {"a": "1 < 2"}, {"AX122"}),
    (_tool("<a><![CDATA(1)]></a>"), ONE, {"AX122"}),
    (_tool("<a><![CDATA[1] ]></a>"), ONE, {"AX120"}),
    # the name of an input
    (_inputs("<input name=＂q＂>hello</input>"), Q, {"AX159", "AX153"}),
    (_inputs('<input name＝"q">hello</input>'), Q, {"AX159"}),
    (_inputs('<input name:"q">hello</input>'), Q, {"AX159"}),
    (_inputs('<input name="`q`">hello</input>'), Q, {"AX153"}),
    (_inputs('<input name=\\"q\\">hello</input>'), Q, {"AX159", "AX153"}),
    (_inputs('<input title="q">hello</input>'), Q, {"AX158"}),
    (_inputs('<input name="q\u200b">hello</input>'), Q, {"TC013"}),
    (_inputs("<input><name>q</name><value>hello</value></input>"), Q, {"AX154"}),
    # the id of the tool
    (_inputs(INPUT, '<tool_id name="T"/>'), Q, {"AX138"}),
    (_inputs(INPUT, "<name>T</name>"), Q, {"AX154"}),
    (_inputs(INPUT, "<tool_id>**T**</tool_id>"), Q, {"AX153"}),
    (_inputs(INPUT, "<tool_id>T<tool_id>"), Q, {"AX132"}),
    (f"<ACTION><call><inputs>{INPUT}</inputs><tool_id>T</tool_id></call></ACTION>", Q, {"AX154"}),
    (
        f"<ACTION><tool_call><call><tool_id>T</tool_id><inputs>{INPUT}</inputs></call></tool_call></ACTION>",
        Q,
        {"AX154"},
    ),
    (f"<ACTION><T><inputs>{INPUT}</inputs></T></ACTION>", Q, {"AX154"}),
]


@pytest.mark.parametrize(("text", "args", "found"), READ, ids=[row[0] for row in READ])
def test_a_misspelling_with_one_reading_is_read_and_repaired(text: str, args: dict[str, Json], found: set[str]) -> None:
    document = read(text)
    assert runnable(document) == [("T", args)]
    assert {diag.code for diag in document.diagnostics if severity(diag) == "warning"} == found
    for _ in range(3):
        document = read(apply_edits(document.text, safe_edits(document.diagnostics)))
    assert runnable(document) == [("T", args)]
    assert not any(severity(diag) == "warning" for diag in document.diagnostics)


REFUSED = [
    # what an element held must not be lost with its opening tag
    _tool("<b>1</b>two</a>"),
    _tool("a>1</a>"),
    _tool("＜a＞1</a>"),
    _tool("&lt;a&gt;1</a>"),
    _tool("default>007\n<a>1</a>"),
    _tool("<b>1</b><![CDATA[x]]></a>"),
    _inputs("<x>1</x></input>"),
    "<ACTION>\n  T>\n  </T>\n  <U/>\n</ACTION>",
    "<ACTION><a>1</a></T></ACTION>",
    # a tool or a parameter?
    "<ACTION><T><T></T></ACTION>",
    "<ACTION><T><a>1</a><kb:Query></kb:Query></ACTION>",
    "<ACTION>\n  <T>\n    <a>1</a>\n  <U>\n  </U>\n</ACTION>",
    # a structure or parameters beside it?
    _tool("<a><b>1</b>"),
    _tool("<a><a>1</a>"),
    # where does the value end?
    _inputs('<input name="q">1</input>\n2</input>'),
    _inputs('<input name="q">1</input>input name="r">2</input>'),
    _tool("<a><![CDATA[x]] ></a>\n</T><T><a><![CDATA[y]]></a>"),
    _tool("<a>use <![CDATA[ here</a>"),
    _tool("\n  <a>1\n  <b>2</a>\n"),
    _tool("<a>x</k><k><c>1</c><k>2</k></a>"),
    _tool('"<a>"1</a>'),
    # the text ends inside a tag (ruling 18)
    "<ACTION><T><a>1</a></T><Oth",
    "<ACTION><T><a>1</a></T></ACT",
]


@pytest.mark.parametrize("text", REFUSED)
def test_more_than_one_reading_is_refused_and_no_safe_fix_decides_it(text: str) -> None:
    document = read(text)
    assert runnable(document) == []
    assert any(severity(diag) == "error" for diag in document.diagnostics)
    assert runnable(read(apply_edits(text, safe_edits(document.diagnostics)))) == []


def test_a_block_in_the_section_of_a_block_that_was_not_found_is_no_call() -> None:  # F16
    text = "ACTION>\n<T><a><![CDATA[<ACTION><rm><p>1</p></rm></ACTION>]]></a></T>\n</ACTION>"
    assert runnable(read(text)) == []
    assert runnable(read("As <![CDATA[ says:\n<ACTION><T><a>1</a></T></ACTION>")) == [("T", {"a": "1"})]


def test_a_tool_name_with_a_space_is_read_whole() -> None:  # AX134
    document = read("<ACTION><read file><a>1</a></read file></ACTION>")
    assert runnable(document) == [("read file", {"a": "1"})]
