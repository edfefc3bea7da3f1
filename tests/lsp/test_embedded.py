"""The way between JSON inside a value and its source: every offset there and back, edits that read back as meant (issue 5 item 3, ruling 9)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.action.decode import as_cdata
from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.model import Call, Piece, ReadOptions
from tamis.protocols.reader import read_text
from tamis.server.analysis.completion.json_calls import string_in
from tamis.server.analysis.embedded import Embedded, of_value, texts_of
from tamis.server.runtime.settings.protocols import load_also

CONTAINERS = ("tam", "vcp", "vcp-escape", "cdata", "text", "attribute", "hermes")
_VALUES = st.text(
    st.one_of(st.sampled_from(list("{}[]\",:<>&'\\$] \n🚲说«»「」")), st.characters(blacklist_categories=["Cs", "Cc"])),
    min_size=1,
    max_size=40,
)


def escaped(text: str) -> str:
    return (
        text.replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace('"', "&quot;")
        .replace("'", "&#39;")
    )


def wrap(container: str, text: str) -> str:
    """A call whose argument ``p`` is the text."""
    if container == "tam":
        return f"前🚲\n<|[REQUEST_TOOL]|>\ncommand:»»»x:y«««\np:»»»{text}«««\n<|[END_TOOL]|>\n"
    if container.startswith("vcp"):
        mark = "ESCAPE" if container == "vcp-escape" else ""
        value = f"「始{mark}」{text}「末{mark}」"
        return f"前🚲\n<<<[TOOL_REQUEST]>>>\ntool_name:「始」x:y「末」,\np:{value}\n<<<[END_TOOL_REQUEST]>>>\n"
    if container == "hermes":
        inner = json.dumps(text, ensure_ascii=False)
        return f'前🚲\n<tool_call>\n{{"name": "x:y", "arguments": {{"p": {inner}}}}}\n</tool_call>\n'
    if container == "attribute":
        return f'前🚲\n<ACTION><tool a="1" p="{escaped(text)}"/></ACTION>\n'
    body = as_cdata(text) if container == "cdata" else escaped(text)
    return f"前🚲\n<ACTION><tool><p>{body}</p></tool></ACTION>\n"


def only_call(source: str) -> Call:
    return read_text(source, options=ReadOptions(also=load_also(["hermes"])[0])).calls[0]


def value_in(source: str) -> Embedded | None:
    """The text of ``p`` in a call."""
    for pointer, value in texts_of(only_call(source)):
        if pointer == "/p":
            return of_value(only_call(source), value, source)
    return None


@pytest.mark.parametrize("container", CONTAINERS)
@given(text=_VALUES)
def test_every_offset_leads_to_its_source_and_back(container: str, text: str) -> None:
    source = wrap(container, text)
    inside = value_in(source)
    if inside is None:
        return
    for at, char in enumerate(inside.text):
        start, end = inside.source_span((at, at + 1))
        assert start == inside.to_source(at)
        assert inside.to_text(start) == at
        written = source[start:end]
        assert written == char or written[0] in "&\\", (at, written)
    start, end = inside.span
    assert all(0 <= inside.to_text(offset) <= len(inside.text) for offset in range(start, end + 1))


@pytest.mark.parametrize("container", CONTAINERS)
@given(value=st.dictionaries(_VALUES, _VALUES, max_size=4), data=st.data())
def test_an_edit_mapped_back_reads_as_meant(container: str, value: dict[str, str], data: st.DataObject) -> None:
    before = json.dumps({"k": "v", **value}, ensure_ascii=False)
    source = wrap(container, before)
    inside = value_in(source)
    if inside is None or inside.text != before:
        return  # the container cannot hold this text at all
    new = json.dumps(data.draw(_VALUES), ensure_ascii=False)
    start = data.draw(st.integers(0, len(before)))
    end = data.draw(st.integers(start, min(len(before), start + 6)))
    edit = inside.edit((start, end), new)
    if edit is None:
        return
    after = source[: edit.start] + edit.new_text + source[edit.end :]
    again = value_in(after)
    meant = before[:start] + new + before[end:]
    assert again is not None
    assert again.text == meant or again.text.strip() == meant.strip()


@given(text=_VALUES)
def test_a_json_string_is_mapped_through_its_escapes(text: str) -> None:
    written = json.dumps(text)
    source = f'{{"arguments": {written}}}'
    node = parse_json(source).node_at("/arguments")
    assert node is not None
    inside = string_in(source, 0, node)
    assert inside.text == text
    for at in range(len(text)):
        assert inside.to_text(inside.to_source(at)) == at


def test_a_section_in_two_parts_has_no_gap() -> None:
    source = "<![CDATA[ab]]]]><![CDATA[>cd]]>"
    inside = Embedded(source, [Piece(9, 13), Piece(25, 28)], "cdata")
    assert inside.text == "ab]]>cd"
    assert [source[inside.to_source(at)] for at in range(7)] == list("ab]]>cd")
    assert inside.source_span((3, 5)) == (12, 26)


def test_what_a_container_cannot_hold_is_no_edit() -> None:
    source = "{}"
    for container, text in (("tam", "a««« b"), ("vcp", "「末」"), ("vcp-escape", "「末ESCAPE」")):
        kind: Any = container
        assert Embedded(source, [Piece(0, 2)], kind).edit((1, 1), text) is None


def test_a_new_bracket_never_ends_the_section() -> None:
    inside = Embedded("a]>b", [Piece(0, 4)], "cdata")
    assert inside.edit((1, 1), "]") is None
    assert inside.edit((0, 0), "]]>") is not None


def test_tab_stops_survive_every_container() -> None:
    snippet = '"a": "${1:b}\\$ \\}"'
    for container in CONTAINERS:
        kind: Any = "json" if container == "hermes" else container
        written = Embedded("", [], kind).escape_stops(snippet)
        assert written is not None
        assert "${1:b}" in written
        assert "\\$ \\}" in written
