"""Documents and their changes: positions in every encoding, line ends, ranges that leave the text (ruling 9, S9)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.positions import LineIndex, PositionEncoding
from tamis.server.lsp.documents import Document, choose_encoding, difference, path_of, uri_of
from tamis.server.lsp.structs import ContentChange, Position, Range

ENCODINGS: tuple[PositionEncoding, ...] = ("utf-8", "utf-16", "utf-32")
CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
# Characters of one to four UTF-8 bytes, every line end, and what other tools take for line ends.
TEXT = st.text(st.sampled_from("ab é你好😋𝒳\n\r\t\f\v\u0085\u2028\u2029"), max_size=40)


def apply_in_units(
    text: str, start: tuple[int, int], end: tuple[int, int], new: str, encoding: PositionEncoding
) -> str:
    """The same edit done on the encoded lines: an independent reading of the protocol."""
    codec, width = CODECS[encoding]
    lines: list[str] = []
    rest = text
    while rest:
        cut = len(rest)
        for at, char in enumerate(rest):
            if char == "\r" and rest[at + 1 : at + 2] == "\n":
                cut = at + 2
                break
            if char in "\r\n":
                cut = at + 1
                break
        lines.append(rest[:cut])
        rest = rest[cut:]
    if not lines or lines[-1].endswith(("\r", "\n")):
        lines.append("")

    def offset(place: tuple[int, int]) -> int:
        line, character = place
        body = lines[line].rstrip("\r\n").encode(codec)
        return sum(len(before) for before in lines[:line]) + len(body[: character * width].decode(codec))

    return text[: offset(start)] + new + text[offset(end) :]


@given(TEXT, TEXT, st.data())
def test_incremental_change_is_the_same_edit_in_every_encoding(text: str, new: str, data: st.DataObject) -> None:
    encoding = data.draw(st.sampled_from(ENCODINGS))
    first, second = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    index = LineIndex(text)
    start, end = index.position(first, encoding), index.position(second, encoding)
    # A place between \r and \n is none that an editor has.
    if "\r\n" in (text[first - 1 : first + 1], text[second - 1 : second + 1]):
        return
    document = Document("file:///a.md", "markdown", 1, text, encoding)
    changed = document.changed([ContentChange(new, Range(Position(*start), Position(*end)))], 2)
    assert changed.text == text[:first] + new + text[second:]
    assert changed.text == apply_in_units(text, start, end, new, encoding)
    assert changed.version == 2


@given(TEXT, st.data())
def test_range_of_a_span_leads_back_to_the_span(text: str, data: st.DataObject) -> None:
    encoding = data.draw(st.sampled_from(ENCODINGS))
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    if "\r\n" in (text[start - 1 : start + 1], text[end - 1 : end + 1]):
        return
    document = Document("file:///a.md", "markdown", 1, text, encoding)
    found = document.range((start, end))
    assert (document.offset(found.start), document.offset(found.end)) == (start, end)


def test_changes_of_one_notification_follow_each_other() -> None:
    document = Document("untitled:a", "markdown", 1, "你好 😋\n", "utf-16")
    changed = document.changed(
        [
            ContentChange("x", Range(Position(0, 3), Position(0, 5))),
            ContentChange("!", Range(Position(0, 4), Position(0, 4))),
            ContentChange("", Range(Position(0, 0), Position(0, 1))),
        ],
        2,
    )
    assert changed.text == "好 x!\n"


def test_change_without_a_range_is_the_whole_text() -> None:
    document = Document("untitled:a", "markdown", 1, "old", "utf-16")
    changes = [ContentChange("new\ntext"), ContentChange("X", Range(Position(1, 0), Position(1, 1)))]
    assert document.changed(changes, 2).text == "new\nXext"


def test_range_past_the_end_and_backwards_is_taken_into_the_text() -> None:
    document = Document("untitled:a", "markdown", 1, "ab\ncd", "utf-16")
    assert document.changed([ContentChange("x", Range(Position(9, 9), Position(10, 0)))], 2).text == "ab\ncdx"
    assert document.changed([ContentChange("", Range(Position(1, 1), Position(0, 1)))], 2).text == "ad"


def test_earlier_document_stays_as_it_was() -> None:
    document = Document("untitled:a", "markdown", 1, "a", "utf-16")
    document.changed([ContentChange("b")], 2)
    assert document.text == "a"


@given(TEXT, TEXT)
def test_the_difference_of_two_texts_makes_one_into_the_other(old: str, new: str) -> None:
    start, end, put = difference(old, new)
    assert 0 <= start <= end <= len(old)
    assert old[:start] + put + old[end:] == new
    assert difference(old, old) == (len(old), len(old), "")


JSON_TEXT = st.lists(
    st.sampled_from(
        ['{"a": [1, 2]}', "{", "}", "[", "]", ",", ":", '"', '"a"', "1", "\n", "\r", "// c", "你好", "😋", " "]
    ),
    max_size=12,
).map("".join)


@given(JSON_TEXT, st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6), JSON_TEXT, st.booleans()), max_size=6))
def test_the_tree_and_the_lines_of_a_changed_document_are_those_of_its_text(
    text: str, steps: list[tuple[int, int, str, bool]]
) -> None:
    document = Document("file:///a.tool.json", "json", 1, text, "utf-16")
    document.tree(False)
    for number, (start, width, new, whole) in enumerate(steps):
        places = [min(start, len(document.text)), min(start + width, len(document.text))]
        first, last = (Position(*document.lines.position(place, "utf-16")) for place in places)
        changes = [ContentChange(new, None if whole else Range(first, last)), ContentChange("", Range(first, first))]
        document = document.changed(changes, number)
        fresh = LineIndex(document.text)
        assert document.lines.line_count == fresh.line_count
        for offset in range(len(document.text) + 1):
            assert document.lines.position(offset, "utf-16") == fresh.position(offset, "utf-16")
        # Asked for at some versions only: what happened in between is kept.
        for strict in [False] if number % 2 else []:
            tree = document.tree(strict)
            assert tree.text == document.text
            assert tree.diagnostics == parse_json(document.text, comments=not strict).diagnostics
            assert document.tree(strict) is tree


def test_both_strictnesses_have_a_tree_of_their_own() -> None:
    document = Document("file:///a.tool.json", "json", 1, '{"a": 1,}', "utf-16")
    assert document.tree(False).ok and not document.tree(True).ok
    changed = document.changed([ContentChange("", Range(Position(0, 7), Position(0, 8)))], 2)
    assert changed.tree(False).ok and changed.tree(True).ok and not document.tree(True).ok


def test_an_unchanged_container_is_the_same_object_in_the_next_version_however_the_change_is_sent() -> None:
    document = Document("file:///a.tool.json", "json", 1, '{"a": {"b": 1}, "c": [1]}', "utf-16")
    before = document.tree(False).node_at("/c")
    typed = ContentChange("2", Range(Position(0, 13), Position(0, 13)))
    for change in (typed, ContentChange('{"a": {"b": 12}, "c": [1]}')):
        after = document.changed([change], 2).tree(False).node_at("/c")
        assert before is not None and after is not None
        assert after.to_python() is before.to_python() and after.start == before.start + 1


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (None, "utf-16"),
        ([], "utf-16"),
        (["utf-7"], "utf-16"),
        (["utf-16"], "utf-16"),
        (["utf-8", "utf-16"], "utf-8"),
        (["utf-16", "utf-8", "utf-32"], "utf-32"),
    ],
)
def test_code_points_are_chosen_where_offered(offered: list[str] | None, chosen: str) -> None:
    assert choose_encoding(offered) == chosen


@pytest.mark.parametrize("path", ["/a/b.md", "/工具/回声 😋.tool.json", "/a b/100%#?.md"])
def test_paths_and_uris_lead_to_each_other(path: str) -> None:
    assert path_of(uri_of(path)) == path


def test_only_file_uris_have_a_path() -> None:
    assert path_of("untitled:a.tool.json") is None
    assert path_of("git:/a.md?ref=HEAD") is None


@pytest.mark.parametrize(
    ("uri", "language", "kind"),
    [
        ("file:///a/x.tool.json", "json", "manifest"),
        ("file:///a/x.tool.json", "plaintext", "manifest"),
        ("untitled:x.tool.json", "json", "manifest"),
        ("file:///a/agent_profile.json", "jsonc", "profile"),
        ("file:///a/package.json", "json", "workflow"),
        ("file:///a/tamis.toml", "toml", "settings"),
        ("file:///a/x.node.json", "json", "nodes"),
        ("file:///a/x.yaml", "yaml", "other"),
        ("untitled:Untitled-2", "json", "other"),
        ("file:///a/x.md", "markdown", "text"),
        ("untitled:Untitled-1", "plaintext", "text"),
        ("file:///a/x.tam", "tam", "text"),
    ],
)
def test_kind_of_document(uri: str, language: str, kind: str) -> None:
    assert Document(uri, language, 1, "", "utf-16").kind == kind
