"""Every finding that an ACTION block can give: the text that gives it, its place and sentence, and the fix that the table of
``parsing.md`` names (``s`` safe, ``u`` unsafe, ``-`` none).

AX162 alone departs from that table: splitting a block is no safe edit, because of two blocks only the first runs (ruling 14).
"""

from __future__ import annotations

import pytest

from tamis.protocols.catalogue import CATALOGUE, message, severity
from tamis.protocols.model import Diag, Document, ReadOptions
from tamis.protocols.reader import read_text
from tamis.protocols.repair import apply_edits
from tests.protocols.reader_helpers import tool


def _inputs(body: str, head: str = "<tool_id>T</tool_id>") -> str:
    return f"<ACTION>{head}<inputs>{body}</inputs></ACTION>"


def _tool(body: str) -> str:
    return f"<ACTION><T>{body}</T></ACTION>"


# code, text, severity, what the span shows, sentence, fix, the text after the fix ("" where there is none)
Row = tuple[str, str, str, str, str, str, str]
W, E, INFO, H = "warning", "error", "information", "hint"
ROWS: list[Row] = [
    ("AX101", "<ACTION><!-- x --></ACTION>", E, "<ACTION>", "ACTION block has no tool element", "-", ""),
    ("AX102", _tool("<a>1<b>2</b>"), W, "<a>", "<a> is never closed; value ends at <b>", "s", _tool("<a>1</a><b>2</b>")),
    ("AX103", "<ACTION><T><a>1</a></ACTION>", W, "<T>", "<T> is never closed", "s", _tool("<a>1</a>")),
    ("AX104", _tool("<a>1</aa>"), W, "</aa>", "</aa> closes <a>", "s", _tool("<a>1</a>")),
    ("AX105", _tool("<a>1</a></a>"), W, "</a>", "</a> closes nothing", "s", _tool("<a>1</a>")),
    ("AX106", "<ACTION><T><a>1</T></a></ACTION>", W, "</T></a>", "</T> and </a> are in the wrong order", "s", _tool("<a>1</a>")),
    ("AX107", _tool("<a>1</A>"), W, "</A>", "</A> differs from <a> only in case", "s", _tool("<a>1</a>")),
    ("AX110", _tool("<a>x < y</a>"), W, "<", "Unescaped < in the value of a; read as text", "s", _tool("<a><![CDATA[x < y]]></a>")),
    ("AX111", _tool("<a>R&D</a>"), W, "&", "Unescaped & in the value of a; read as text", "s", _tool("<a>R&amp;D</a>")),
    ("AX112", _tool("<a>to </a> it</a>"), W, "</a>", "</a> inside the value of a; extended to the last one", "s", _tool("<a><![CDATA[to </a> it]]></a>")),
    ("AX113", _tool("<a>x&copy;y</a>"), W, "&copy;", "&copy; is not an XML entity; kept as written", "u", _tool("<a>x©y</a>")),
    ("AX114", _tool("<a>x <b>y</b></a>"), W, "x <b>y</b>", "Text and elements mixed in a; kept as text", "s", _tool("<a><![CDATA[x <b>y</b>]]></a>")),
    ("AX115", "<ACTION><S><a><b>y</b></a></S></ACTION>", INFO, "<b>y</b>", "a is a string; its markup is kept as text", "s", "<ACTION><S><a><![CDATA[<b>y</b>]]></a></S></ACTION>"),
    ("AX120", _tool("<a><![CDATA[x</a>"), W, "<![CDATA[", "CDATA section in a is never closed", "s", _tool("<a><![CDATA[x]]></a>")),
    ("AX121", _tool("<a><![CDATA[x]]>y]]></a>"), W, "<![CDATA[", "]]> inside the section; extended to the last one", "s", _tool("<a><![CDATA[x]]]]><![CDATA[>y]]></a>")),
    ("AX122", _tool("<a><![cdata[x]]></a>"), W, "<![cdata[", "Read <![cdata[ as <![CDATA[", "s", _tool("<a><![CDATA[x]]></a>")),
    ("AX123", "<ACTION><T><a>1</a><!-- x</T></ACTION>", E, "<!--", "Comment is never closed", "u", "<ACTION><T><a>1</a><!----> x</T></ACTION>"),
    ("AX124", _tool("<a>1</a><!-- x -- y -->"), INFO, "--", "-- inside a comment", "-", ""),
    ("AX125", "<ACTION><?xml version='1.0'?><T/></ACTION>", W, "<?xml version='1.0'?>", "Processing instruction ignored", "s", "<ACTION><T/></ACTION>"),
    ("AX126", "<ACTION><!DOCTYPE a><T/></ACTION>", E, "<!DOCTYPE a>", "DTDs and entity declarations are not allowed", "u", "<ACTION><T/></ACTION>"),
    ("AX127", "<ACTION><T><p><!-- c --><k>1</k></p></T></ACTION>", W, "<!-- c -->", "Comment inside p is left out", "u", "<ACTION><T><p><k>1</k></p></T></ACTION>"),
    ("AX128", "<ACTION><T><p><p></p></p></T></ACTION>", E, "<p><p></p></p>", "<p> holds nothing but an empty <p>; what its value was is unclear", "-", ""),
    ("AX130", _tool("<a 1</a>"), W, "<a", "Tag <a lacks '>'", "s", _tool("<a>1</a>")),
    ("AX131", _tool("< a>1</a>"), W, "< a>", "Space after '<' in < a>", "s", _tool("<a>1</a>")),
    ("AX132", _tool("<a>1<a>"), W, "<a>", "<a> read as </a>", "s", _tool("<a>1</a>")),
    ("AX133", "<ACTION><3d/></ACTION>", H, "3d", "3d is not an XML name; accepted", "-", ""),
    ("AX134", _tool("<my a>1</my a>"), W, "my a", "Tag name with a space: my a", "u", _tool("<my_a>1</my_a>")),
    ("AX135", "<ACTION><T/><U/></ACTION>", H, "<U", "2 calls in one ACTION block", "-", ""),
    ("AX136", "<ACTION><T x='1'><a>1</a></T></ACTION>", W, "x='1'", "Attribute x on <T> is not used", "s", "<ACTION><T ><a>1</a></T></ACTION>"),
    ("AX137", "<ACTION><T a='1'/></ACTION>", W, "a='1'", "Parameters of T given as attributes", "s", _tool("<a>1</a>")),
    ("AX138", _tool("<a value='1'/>"), W, "value='1'", "Value of a given as attribute", "s", _tool("<a ><![CDATA[1]]></a>")),
    ("AX150", "<ACTION><inputs><input name='a'>1</input></inputs></ACTION>", E, "<inputs>", "No <tool_id>", "-", ""),
    ("AX151", _inputs("", "<tool_id> </tool_id>"), E, "<tool_id> </tool_id>", "<tool_id> is empty", "-", ""),
    ("AX152", "<ACTION><tool_id>a</tool_id><tool_id>b</tool_id></ACTION>", E, "<tool_id>b</tool_id>", "Two different tool ids: a, b", "-", ""),
    ("AX153", _inputs("", "<tool_id>`T`</tool_id>"), W, "`T`", "Quotes or backticks around the tool id", "s", _inputs("")),
    ("AX154", _inputs("", "<toolId>T</toolId>"), W, "toolId", "<toolId> read as <tool_id>", "s", _inputs("")),
    ("AX155", "<ACTION><tool_id>T</tool_id><input name='a'>1</input></ACTION>", W, "<input name='a'>", "<input> outside <inputs>", "s", _inputs("<input name='a'>1</input>")),
    ("AX156", "<ACTION><tool_id>T</tool_id><inputs><input name='a'>1</input></ACTION>", W, "<inputs>", "<inputs> is never closed", "s", _inputs("<input name='a'>1</input>")),
    ("AX157", _inputs("<input>1</input>"), E, "<input>", "<input> has no name", "-", ""),
    ("AX158", _inputs('<input key="a">1</input>'), W, 'key="a"', "key= read as name=", "s", _inputs('<input name="a">1</input>')),
    ("AX159", _inputs("<input name=a>1</input>"), W, "name=a", "Attribute value a is not in straight quotes", "s", _inputs('<input name="a">1</input>')),
    ("AX160", _inputs("<a>1</a>"), W, "<a>", "<a> inside <inputs> read as an input", "s", _inputs('<input name="a">1</input>')),
    ("AX161", _inputs('{"a": "1"}'), W, '{"a": "1"}', "JSON object read as inputs", "s", _inputs('<input name="a">1</input>')),
    ("AX162", _inputs("")[:-9] + _inputs("")[8:], W, "<tool_id>T", "2 calls in one block", "u", _inputs("") + "\n" + _inputs("")),
    ("AX163", _inputs("")[:-9] + "<context>1</context></ACTION>", W, "<context>", "<context> beside <inputs> is no input; it is kept with the call and not given to the tool", "-", ""),
    ("TC001", "<ACTION><T><a>1", E, "<ACTION>", "ACTION block is cut off inside <a>; not executed", "-", ""),
    ("TC002", "<ACTION><T/>", W, "<ACTION>", "No </ACTION> for the block opened here; it ends at the end of the text", "s", "<ACTION><T/></ACTION>"),
    ("TC003", "x\n</ACTION>\ny", W, "</ACTION>", "</ACTION> without an opening marker", "u", "x\n\ny"),
    ("TC004", "<action><T/></ACTION>", W, "<action>", "Read <action> as <ACTION>", "s", "<ACTION><T/></ACTION>"),
    ("TC005", "<ACTION><T/><|[END_TOOL]|>", W, "<|[END_TOOL]|>", "Block opened as <ACTION> is closed as <|[END_TOOL]|>", "s", "<ACTION><T/></ACTION>"),
    ("TC006", "<ACTION>\n<ACTION><T/></ACTION>", W, "<ACTION>", "Block opened inside another; inner one taken", "s", "\n<ACTION><T/></ACTION>"),
    ("TC007", "<ACTION><T/></ACTION> <ACTION><U/></ACTION>", W, "<ACTION>", "Only the first ACTION block is used; this one is ignored", "u", "<ACTION><T/></ACTION> "),
    ("TC009", "say <ACTION> now", H, "<ACTION>", "Looks like a mention of <ACTION>, not a call", "-", ""),
    ("TC011", _tool("<a>1</a>, <b>2</b>"), W, ",", "Text , between parameters is ignored", "s", _tool("<a>1</a> <b>2</b>")),
    ("TC012", "<ACTION> </ACTION>", E, "<ACTION>", "Block holds no call", "-", ""),
    ("TC013", _tool("\u200b<a>1</a>"), W, "\u200b", "Invisible character U+200B in the layout", "s", _tool("<a>1</a>")),
    ("TC014", _tool("<a>x\x08y</a>"), W, "\x08", "Control character U+0008 in the value of a", "u", _tool("<a>xy</a>")),
    ("TC015", "\ufeff<ACTION><T/></ACTION>", INFO, "\ufeff", "Byte order mark ignored", "s", "<ACTION><T/></ACTION>"),
    ("TC016", _tool("<p\u0430th>1</p\u0430th>"), W, "p\u0430th", "Name p\u0430th has Cyrillic or Greek look-alikes or bidi controls", "-", ""),
    ("TC017", "<think><ACTION><T/></ACTION></think>", H, "<ACTION>", "Block inside reasoning is not executed", "-", ""),
    ("TC018", "> <ACTION><T/></ACTION>", H, "<ACTION>", "Block inside a block quote is shown, not executed; a call stands outside of it", "-", ""),
    ("TC020", _tool("<a>" * 70 + "x" + "</a>" * 70), E, "<a>", "More than 64 levels of nesting; block rejected", "-", ""),
    ("TC022", f"<ACTION><{'T' * 300}/></ACTION>", E, "T" * 300, "More than 256 characters in a name; block rejected", "-", ""),
    ("TC023", _tool("x<a>1</a>" * 300), E, "x", "More than 200 problems; block rejected", "-", ""),
    ("TC060", _inputs('<input name="a">1</input><input name="a">2</input>'), W, "a", "a given 2 times; all values are kept as a list", "u", _inputs('<input name="a">1</input>')),
    ("TC061", _tool("<``>1</``>"), E, "``", "Parameter without a name is ignored", "-", ""),
    ("TC062", _tool("<a>1</a=>"), E, "</a=>", "</a=> at the value of a is nearly </a>; write it so", "u", _tool("<a>1</a>")),
    ("TC063", _tool("<a></a>1"), E, "1", "a is empty while '1' stands beside its marks: write the value between them", "-", ""),
]  # fmt: skip
KINDS = {"s": "safe", "u": "unsafe", "-": None}


def _read(text: str) -> Document:
    options = ReadOptions(tools=tool("S", a={"type": "string"}))
    return read_text(text, "action", options)


def _found(code: str, text: str) -> Diag:
    return next(diag for diag in _read(text).diagnostics if diag.code == code)


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_finding_has_its_place_sentence_and_severity(row: Row) -> None:
    code, text, level, place, sentence, _, _ = row
    diag = _found(code, text)
    assert severity(diag) == level
    assert text[slice(*diag.span)] == place
    assert message(diag) == sentence


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_finding_has_the_fix_that_the_table_names(row: Row) -> None:
    code, text, _, _, _, kind, after = row
    fix = _found(code, text).fix
    assert (fix.applicability if fix is not None else None) == KINDS[kind]
    if fix is not None:
        assert fix.title
        assert apply_edits(text, fix.edits) == after


def test_every_action_code_of_the_catalogue_is_given_by_a_row() -> None:
    wanted = {code for code in CATALOGUE if code.startswith("AX")} - {"AX170"}
    assert wanted - {row[0] for row in ROWS} == set()


def test_what_a_row_gives_besides_is_in_the_catalogue_and_in_order() -> None:
    for row in ROWS:
        found = _read(row[1]).diagnostics
        assert all(diag.code in CATALOGUE for diag in found)
        assert [diag.span for diag in found] == sorted(diag.span for diag in found)


@pytest.mark.parametrize("code", ["AX102", "AX103", "AX104", "AX105", "AX110", "AX112", "AX120"])
def test_where_a_reading_is_in_doubt_the_fix_is_for_a_person(code: str) -> None:  # ruling 1 P4
    texts = {
        "AX102": _tool("<a>Hello <b>you</b> there"),
        "AX103": "<ACTION><T><T><a>1</a></T></ACTION>",
        "AX104": _tool("<a1</b>"),
        "AX105": _tool("<a>1</a>two</b>"),
        "AX110": _tool("\n  <a>1\n  <b>2</a>\n"),
        "AX112": _inputs('<input name="a">1</input>\n2</input>'),
        "AX120": _tool("<a><![CDATA[x]] >y</a>"),
    }
    document = _read(texts[code])
    assert not any(call.executable for call in document.calls)
    found = [diag for diag in document.diagnostics if diag.code == code]
    assert severity(found[0]) == "error"
    assert all(diag.fix is None or diag.fix.applicability == "unsafe" for diag in found)
