"""Hostile and broken ACTION input: a finding or a result in linear time, never an exception, never a changed value (ruling 10)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tamis.protocols.catalogue import severity
from tamis.protocols.model import Document, ReadOptions
from tamis.protocols.reader import read_text
from tests.growth import growth, loops
from tests.protocols.reader_helpers import codes, read, runnable

BOMB = (
    '<!DOCTYPE lolz [<!ENTITY lol "lol">'
    + "".join(f'<!ENTITY lol{i} "{f"&lol{i - 1 or str()};" * 10}">' for i in range(1, 10))
    + "]>"
)


def block(inside: str) -> str:
    return f"<ACTION><T><a>{inside}</a></T></ACTION>"


def strict(text: str) -> Document:
    return read_text(text, "action", ReadOptions(strict=True))


def test_an_entity_bomb_is_refused_and_never_expanded() -> None:
    for text in (f"<ACTION>{BOMB}<T><a>&lol9;</a></T></ACTION>", f"{BOMB}<ACTION><T><a>&lol9;</a></T></ACTION>"):
        document = read(text)
        assert document.calls[0].args(text) == {"a": "&lol9;"}
        assert len(document.diagnostics) < 50
    assert not any(call.executable for call in read(f"<ACTION>{BOMB}<T/></ACTION>").calls)


def test_the_verdict_of_strict_reading_expands_nothing() -> None:
    text = f"<ACTION>{BOMB}<T><a>&lol9;</a></T></ACTION>"
    document = strict(text)
    assert {"AX126", "AX170"} <= set(codes(document))
    assert loops(lambda: strict(text)) < 200


@pytest.mark.parametrize(
    "declaration",
    [
        '<!DOCTYPE a SYSTEM "http://127.0.0.1:9/x.dtd">',
        '<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]>',
        '<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;',
        "<!ELEMENT a ANY>",
        "<!doctype html>",
    ],
)
def test_declarations_are_refused(declaration: str) -> None:
    text = f"<ACTION>{declaration}<T><a>&e;</a></T></ACTION>"
    document = read(text)
    assert runnable(document) == []
    assert "AX126" in codes(document)
    assert all(call.args(text) == {"a": "&e;"} for call in document.calls)


@pytest.mark.parametrize(
    "name", ["&#0;", "&#x0;", "&#xD800;", "&#x110000;", "&#99999999999;", "&;", "&#;", "&#x;", "&a b;"]
)
def test_references_to_no_character_are_kept_as_written(name: str) -> None:
    text = block(f"x{name}y")
    document = read(text)
    assert document.calls[0].args(text) == {"a": f"x{name}y"}
    assert any(severity(diag) == "warning" for diag in document.diagnostics)


KEPT = {
    "bidi": "a\u202eb\u2066c\u2069",
    "zero width": "a\u200bb\u200dc\ufeffd",
    "lone high surrogate": "a\ud800b",
    "lone low surrogate": "a\udfffb",
    "surrogates in a row": "\udfff\ud800",
    "astral": "👩\u200d💻𝒳",
    "noncharacter": "a\ufffeb\uffff",
    "private use": "\ue000\U00100000",
    "bell and delete": "a\x07b\x7f",
    "form feed": "a\x0cb",
    "separators": "a\u2028b\u2029c\x85d",
    "carriage return": "a\rb\r\nc",
    "combining": "e\u0301" * 50,
}


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("form", ["{}", "<![CDATA[{}]]>"])
def test_odd_characters_in_a_value_are_kept(name: str, form: str) -> None:
    text = block(form.format(KEPT[name]))
    assert runnable(read(text)) == [("T", {"a": KEPT[name]})]
    strict(text)


def test_nul_is_an_error_and_the_value_is_shown_as_it_is() -> None:  # TC014
    text = block("a\x00b")
    document = read(text)
    assert runnable(document) == []
    assert document.calls[0].args(text) == {"a": "a\x00b"}
    assert [severity(diag) for diag in document.diagnostics if diag.code == "TC014"] == ["error"]


def test_bidi_controls_in_a_name_are_dropped_with_a_warning() -> None:  # ruling 13 TC013
    document = read("<ACTION><T><pa\u202eth>1</pa\u202eth></T></ACTION>")
    assert runnable(document) == [("T", {"path": "1"})]
    assert "TC013" in codes(document)


@pytest.mark.slow
def test_ten_megabytes_in_one_value_come_back_whole() -> None:
    value = "0123456789abcdef & <b>" * (10 * 1024 * 1024 // 22)
    text = block(f"<![CDATA[{value}]]>")
    assert runnable(read(text)) == [("T", {"a": value})]
    marked = text.replace("<ACTION>", "<action>")  # the tolerant path
    document = read(marked)
    assert runnable(document) == [("T", {"a": value})]


def test_more_than_the_limit_is_refused_with_a_finding() -> None:  # TC021
    document = read(block("x" * (16 * 1024 * 1024)))
    assert runnable(document) == []
    assert "TC021" in codes(document)


HOSTILE: dict[str, Callable[[int], str]] = {
    "nested tags": lambda n: block("<a>" * n + "x" + "</a>" * n),
    "nested tags never closed": lambda n: "<ACTION><T>" + "<a>" * n,
    "nested tags closed in the wrong order": lambda n: block(
        "".join(f"<a{i}>" for i in range(n)) + "".join(f"</a{i}>" for i in range(n))
    ),
    "openers": lambda n: "<ACTION>" * n,
    "openers and tools": lambda n: "<ACTION><T>" * n,
    "entities": lambda n: block("&lol9;" * n),
    "good entities": lambda n: block("&lt;" * n),
    "declarations": lambda n: "<ACTION>" + '<!ENTITY e "x">' * n + "<T/></ACTION>",
    "spoilt closers": lambda n: "<ACTION><T>" + "<a>1/a>\n" * n + "</T></ACTION>",
    "wide closers": lambda n: "<ACTION><T>" + "<a>1＜/a＞\n" * n + "</T></ACTION>",
    "glued names": lambda n: "<ACTION><T>" + "<pathx</path>\n" * n + "</T></ACTION>",
    "glued names in a value": lambda n: block("<ax" * n),
    "misspelled sections": lambda n: "<ACTION><T>" + "<a><![cdata[x]] ></a>" * n + "</T></ACTION>",
    "misspelled sections in a value": lambda n: block("<! [CDATA[" * n),
    "sections outside": lambda n: "<a><![CDATA[ <ACTION> " * n,
    "noise": lambda n: "<ACTION><T>" + "a> " * n + "<a>1</a></T></ACTION>",
    "noise and strays": lambda n: "<ACTION><T>" + "x</b>" * n + "</T></ACTION>",
    "comment dashes": lambda n: "<ACTION><T>" + "<!-- - - -->" * n + "</T></ACTION>",
    "dashes": lambda n: f"<ACTION><T><!-- {'-' * n} --></T></ACTION>",
    "open inputs": lambda n: "<ACTION><tool_id>T</tool_id><inputs>" + '<input name="a">' * n + "</ACTION>",
    "own closers on lines": lambda n: block("x</a>\n" * n),
    "quotes": lambda n: "<ACTION><T " + "'\"" * n + "><a>1</a></T></ACTION>",
    "tools of one name": lambda n: "<ACTION>" + "<T><T>1</T></T>" * n + "<U></ACTION>",
    "bidi": lambda n: block("\u202e" * n),
}


@pytest.mark.share(8)
@pytest.mark.parametrize("name", HOSTILE)
def test_time_grows_with_the_hostile_text(name: str) -> None:
    assert growth(HOSTILE[name], read_text, 250) <= 8


@pytest.mark.share(8)
@pytest.mark.parametrize("name", ["nested tags", "comment dashes"])
def test_strict_reading_is_linear_too(name: str) -> None:
    assert growth(HOSTILE[name], strict, 250) <= 8


@pytest.mark.slow
def test_a_hundred_thousand_nested_tags_are_said_to_be_too_deep() -> None:  # TC020
    document = read(HOSTILE["nested tags"](100_000))
    assert runnable(document) == []
    assert "TC020" in codes(document)


def test_openers_of_180_kilobytes_are_no_call() -> None:
    document = read("<ACTION>" * (180 * 1024 // 8))
    assert runnable(document) == []
