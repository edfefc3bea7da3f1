"""What models get wrong in ACTION blocks: one reading and a finding with its fix, or no executable call."""

from __future__ import annotations

import pytest

from tamis.protocols.catalogue import severity
from tamis.protocols.model import Json
from tamis.protocols.repair import apply_edits, safe_edits
from tests.protocols.reader_helpers import codes, read, runnable, tool

ONE = {"a": "1"}
TWO = {"a": "1", "b": "2"}


def _note(value: str) -> str:
    return f"<ACTION>\n  <Note>\n    <content>{value}</content>\n  </Note>\n</ACTION>"


# text inside <T>…</T> with </ACTION>, the arguments, the codes
REPAIRED: list[tuple[str, dict[str, Json], list[str]]] = [
    ("<ACTION><T><a>1</a><b>2</T></ACTION>", dict(TWO), ["AX102"]),  # ruling 18
    ("<ACTION><T><a>1<b>2</b></T></ACTION>", dict(TWO), ["AX102"]),
    ("<ACTION><T><a>1</a><b>2</b></ACTION>", dict(TWO), ["AX103"]),
    ("<ACTION><T><a>1</a><b>2</b></T>", dict(TWO), ["TC002"]),  # F10
    ("<ACTION><T><a>1</a><b>2</b></T>\n\nDone, <b>see</b>.", dict(TWO), ["TC002"]),
    ("<ACTION><T><a>1</a><b>2</b></read_file></ACTION>", dict(TWO), ["AX104"]),  # F7
    ("<ACTION><T><a>1</aa><b>2</b></T></ACTION>", dict(TWO), ["AX104"]),
    ("<ACTION><T><a>1</b><b>2</a></T></ACTION>", dict(TWO), ["AX104", "AX104"]),
    ("<ACTION><T><a>1</a></a><b>2</b></T></ACTION>", dict(TWO), ["AX105"]),  # F8
    ("<ACTION><T><a>1</a><b>2</b></T></T></ACTION>", dict(TWO), ["AX105"]),
    ("<ACTION><T><a>1</T></a></ACTION>", dict(ONE), ["AX106"]),
    ("<ACTION><T><a>1</A><b>2</b></t></ACTION>", dict(TWO), ["AX107", "AX107"]),
    ("<ACTION><T><a 1</a><b>2</b></T></ACTION>", dict(TWO), ["AX130"]),
    ("<ACTION><T\n<a>1</a></T></ACTION>", dict(ONE), ["AX130"]),
    ("<ACTION><T>< a>1</ a></T></ACTION>", dict(ONE), ["AX131", "AX131"]),
    ("<ACTION><T><a>1<a><b>2</b></T></ACTION>", dict(TWO), ["AX132"]),
    ("<ACTION><T><my file>1</my file></T></ACTION>", {"my file": "1"}, ["AX134"]),
    ('<ACTION><T a="1"/></ACTION>', dict(ONE), ["AX137"]),
    ('<ACTION><T><a value="1"/></T></ACTION>', dict(ONE), ["AX138"]),
    ('<ACTION><T x="y"><a>1</a></T></ACTION>', dict(ONE), ["AX136"]),
    ("<ACTION>>\n<T><a>1</a></T></ACTION>", dict(ONE), ["TC011"]),
    ("<ACTION><T><a>1</a>, <b>2</b></T></ACTION>", dict(TWO), ["TC011"]),
    ("<ACTION><T><![CDATA[x]]><a>1</a></T></ACTION>", dict(ONE), ["TC011"]),
    ("<ACTION><T>\u200b<a>1</a></T></ACTION>", dict(ONE), ["TC013"]),
    ("<ACTION><T><a\u200b>1</a\u200b></T></ACTION>", dict(ONE), ["TC013"]),
    ("<action><T><a>1</a></T></Action>", dict(ONE), ["TC004", "TC004"]),
    ("＜ACTION＞<T><a>1</a></T>＜/ACTION＞", dict(ONE), ["TC004", "TC004"]),
    ('<ACTION><?xml version="1.0"?><T><a>1</a></T></ACTION>', dict(ONE), ["AX125"]),
    ('<ACTION><T>{"a": "1", "b": 2}</T></ACTION>', dict(TWO), ["AX161"]),
    ('<ACTION><invoke name="T"><parameter name="a">1</parameter></invoke></ACTION>', dict(ONE), ["AX154", "AX154"]),
    ("<ACTION><T><a><![CDATA[1</a><b><![CDATA[2]]></b></T></ACTION>", dict(TWO), ["AX120"]),
    ("<ACTION><T><a><![CDATA[1]]</a><b>2</b></T></ACTION>", dict(TWO), ["AX120"]),
    ("<ACTION><T><a><![cdata[1]]></a></T></ACTION>", dict(ONE), ["AX122"]),
]


@pytest.mark.parametrize(("text", "args", "found"), REPAIRED)
def test_one_reading_stays_executable_and_is_reported(text: str, args: dict[str, Json], found: list[str]) -> None:
    document = read(text)  # ruling 1
    assert runnable(document) == [("T", args)]
    assert codes(document) == found
    assert all(severity(diag) == "warning" for diag in document.diagnostics)
    assert {diag.code for diag in document.calls[0].repairs} <= set(found)


@pytest.mark.parametrize("text", [row[0] for row in REPAIRED])
def test_safe_fixes_give_a_text_that_reads_the_same_without_them(text: str) -> None:
    document = read(text)
    repaired = apply_edits(text, safe_edits(document.diagnostics))
    again = read(repaired)
    assert runnable(again) == runnable(document)
    assert [d.code for d in again.diagnostics if d.fix is not None and d.fix.applicability == "safe"] == []


RAW = [
    "if (a < b && c > d) return;",
    "std::cout << x << endl;",
    "<<<<<<< SEARCH\n-a\n=======\n+b\n>>>>>>> REPLACE",
    "line1<br>line2<hr>",
    "List<int> a; Map<String, List<int>> m;",
    "<me@x.org>",
    "i < n && p->x",
    "text </div> more",
    "Hello <b>you</b> there",
    '<a href="x">link</a>',
    "<?php echo 1; ?>",
    "<!DOCTYPE html><html><body>x</body></html>",
    "AT&T and R&D",
    "use </Note> now",
    "use </ACTION> now",
    "say <ACTION> now",
    "A block ends with </content> here.",
    "echo '<read_file><path>a</path></read_file>'",
]


@pytest.mark.parametrize("value", RAW)
def test_markup_in_a_value_is_text_with_a_warning(value: str) -> None:  # F5 F16 F4
    document = read(_note(value))
    assert runnable(document) == [("Note", {"content": value})]
    assert any(severity(diag) == "warning" for diag in document.diagnostics)
    assert document.calls[0].repairs
    repaired = read(apply_edits(document.text, safe_edits(document.diagnostics)))
    assert runnable(repaired) == [("Note", {"content": value})]
    assert codes(repaired) == []


REFUSED = [
    "<ACTION><T><path>x</path><content>Hello <b>you</b> there</T></ACTION>",
    "<ACTION>\n  <A>\n    <p>1</p>\n  <B>\n    <p>2</p>\n  </B>\n</ACTION>",
    "<ACTION><T><args><file><name>x</file></args></T></ACTION>",
    "<ACTION><T><content>ends with </content></T></ACTION> y</content></T></ACTION>",
    "<ACTION><T><content>one </content> two <x>3</x> four </content></T></ACTION>",
    "<ACTION><T>just text</T></ACTION>",
    "<ACTION>\n&& broken <<\n</ACTION>",
    "<ACTION>\n\n</ACTION>",
    "<ACTION><T><a>\x00</a></T></ACTION>",
    '<ACTION name="T"><a>1</a></ACTION>',
    "<ACTION><T><a>1</a><!-- never closed <b>2</b></T></ACTION>",
    "<ACTION><T><a>1</a>",
    "<ACTION><T><a>1</a><b>tw",
]


@pytest.mark.parametrize("text", REFUSED)
def test_more_than_one_reading_is_an_error_and_not_executable(text: str) -> None:  # F4 ruling 1
    document = read(text)
    assert runnable(document) == []
    assert any(severity(diag) == "error" for diag in document.diagnostics)


def test_own_closing_tags_in_a_row_are_never_a_silent_cut() -> None:  # F4
    document = read(_note("x</content> y </content> z"))
    assert runnable(document) == [("Note", {"content": "x</content> y </content> z"})]
    assert codes(document) == ["AX112"]


def test_wrong_closing_tag_never_swallows_the_next_parameters() -> None:  # F7
    text = '<ACTION><T><parameter name="content">x</content><parameter name="reason">y</parameter></T></ACTION>'
    assert runnable(read(text)) == [("T", {"content": "x", "reason": "y"})]


def test_closing_tags_on_one_line_give_both_calls() -> None:  # F9
    text = "<ACTION><A><p>\na</p></A><B><p>b</p></B></ACTION>"
    assert runnable(read(text)) == [("A", {"p": "a"}), ("B", {"p": "b"})]


def test_entities_are_decoded_once_in_text_and_never_in_cdata() -> None:  # F6 ruling 16
    text = "<ACTION><T><a>&lt;b&gt; &amp;amp; &#65;&#x4e2d;</a><b><![CDATA[&lt;b&gt;]]></b></T></ACTION>"
    assert runnable(read(text)) == [("T", {"a": "<b> &amp; A中", "b": "&lt;b&gt;"})]


def test_unknown_entities_are_kept_as_written() -> None:
    document = read(_note("Tom&nbsp;&copy; &#0; Co"))
    assert runnable(document) == [("Note", {"content": "Tom&nbsp;&copy; &#0; Co"})]
    assert set(codes(document)) == {"AX113"}


@pytest.mark.parametrize(
    ("inside", "value"),
    [
        ("<![CDATA[\n  a\n    ]]>", "  a"),
        ("\n  <![CDATA[30000]]>\n", "30000"),
        ("<![CDATA[a]]]]><![CDATA[>b]]>", "a]]>b"),
        ("pre <![CDATA[<mid>]]> post", "pre <mid> post"),
        ("<![CDATA[a ]]> b ]]>", "a ]]> b "),
        ("<![CDATA[</content></Note>]]>", "</content></Note>"),
        ("<![CDATA[]]>", ""),
        ("<![CDATA[\r\nx\r\n\t]]>", "x"),
    ],
)
def test_cdata_rule(inside: str, value: str) -> None:  # ruling 16
    assert runnable(read(_note(inside))) == [("Note", {"content": value})]


@pytest.mark.parametrize(
    ("inside", "value"),
    [
        ("   ", ""),
        ("\n      one line\n    ", "one line"),
        ("\n      first\n        second\n    ", "      first\n        second"),
        ("  blanks  ", "  blanks  "),
        ("x <!-- c -->", "x <!-- c -->"),
        ("a<!-- c -->b", "a<!-- c -->b"),
    ],
)
def test_layout_of_text_values(inside: str, value: str) -> None:  # A07 ruling 17
    assert runnable(read(_note(inside))) == [("Note", {"content": value})]


def test_doctype_in_a_block_is_refused_and_nothing_is_expanded() -> None:  # ruling 10
    text = '<ACTION><!DOCTYPE A [<!ENTITY e SYSTEM "file:///etc/passwd">]><T><a>&e;</a></T></ACTION>'
    document = read(text)
    assert runnable(document) == []
    assert "AX126" in codes(document)
    assert document.calls[0].args(text)["a"] == "&e;"


def test_schema_keeps_markup_of_a_text_parameter() -> None:  # ruling 15
    text = _note("<p>Hello <b>you</b></p>")
    document = read(text, tools=tool("Note", content={"type": "string"}))
    assert runnable(document) == [("Note", {"content": "<p>Hello <b>you</b></p>"})]
    assert codes(document) == ["AX115"]


def test_schema_makes_a_list_of_one_element() -> None:  # F23 ruling 2
    file: Json = {"type": "object", "properties": {"path": {"type": "string"}}}
    args: Json = {"type": "object", "properties": {"file": {"type": "array", "items": file}}}
    text = "<ACTION><read><args><file><path>a</path></file></args></read></ACTION>"
    assert runnable(read(text, tools=tool("read", args=args))) == [("read", {"args": {"file": [{"path": "a"}]}})]
    assert runnable(read(text)) == [("read", {"args": {"file": {"path": "a"}}})]


def test_missing_argument_is_not_an_empty_one() -> None:  # F3
    assert runnable(read("<ACTION><T><a/></T></ACTION>")) == [("T", {"a": ""})]
    assert runnable(read("<ACTION><T></T></ACTION>")) == [("T", {})]


@pytest.mark.parametrize("indent", ["", "    ", "\t", "　　"])
def test_indented_tags_are_read(indent: str) -> None:  # F27
    text = f"{indent}<ACTION>\n{indent}<T>\n{indent}{indent}<a>1</a>\n{indent}</T>\n{indent}</ACTION>"
    document = read(text)
    assert runnable(document) == [("T", {"a": "1"})]
    assert codes(document) == []


def test_an_opener_inside_an_unfinished_value_is_text_and_nothing_runs() -> None:  # ruling 50
    document = read("<ACTION><T><a>1\n<ACTION><T><a>2</a></T></ACTION>")
    assert runnable(document) == []
    assert codes(document) == ["TC001"]


def test_blocks_quoted_in_an_open_value_do_not_end_it() -> None:  # rulings 18 and 50
    quoted = "<ACTION><U><x>1</x></U></ACTION> or <ACTION><V/></ACTION>"
    document = read(f"<ACTION><T><a>use {quoted}\n<b>2</b></T></ACTION>")
    assert runnable(document) == [("T", {"a": f"use {quoted}", "b": "2"})]
    assert codes(document) == ["AX102", "AX114"]


def test_limits_are_said_as_errors() -> None:  # ruling 10
    deep = "<ACTION><T><p>" + "<a>" * 200 + "x" + "</a>" * 200 + "</p></T></ACTION>"
    assert "TC020" in codes(read(deep))
    many = "<ACTION><T>" + "x<p>1</p>" * 300 + "</T></ACTION>"
    assert "TC023" in codes(read(many))
    named = f"<ACTION><{'T' * 300}/></ACTION>"
    assert "TC022" in codes(read(named))
    for text in (deep, many, named):
        assert runnable(read(text)) == []
