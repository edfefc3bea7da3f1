"""Which text a record holds (C1)."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.server.logs.records import RecordError, Texts, path_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["text", "content", "a", "b"]), inner, max_size=4)
    ),
    max_leaves=12,
)


def text(record: Any, *fields: str) -> str:
    return Texts(tuple(map(path_of, fields))).of(json.dumps(record).encode(), 1).text


def code(record: bytes, *fields: str) -> str:
    with pytest.raises(RecordError) as told:
        Texts(tuple(map(path_of, fields))).of(record, 1)
    return told.value.code


def test_the_usual_places() -> None:
    """C1: without a named field: the record itself, `text`, `content`."""
    assert text("a") == "a"
    assert text({"content": "c", "text": "t"}) == "t"
    assert text({"role": "assistant", "content": "c"}) == "c"


@pytest.mark.parametrize("field", ["message.content", "/message/content"])
def test_a_field_is_named_by_dots_or_by_a_pointer(field: str) -> None:
    """C1: `--field`."""
    assert text({"message": {"content": "x", "role": 1}}, field) == "x"


def test_items_are_named_by_their_place() -> None:
    """C1: a negative place counts from the end, names with dots and slashes are named by a pointer."""
    record = {"messages": [{"content": "a"}, {"content": "b"}], "a.b": {"c/d": "x", "0": "zero"}}
    assert text(record, "messages.0.content") == "a"
    assert text(record, "messages.-1.content") == "b"
    assert text(record, "/a.b/c~1d") == "x"
    assert text(record, "/a.b/0") == "zero"


def test_parts_of_one_message_stand_apart() -> None:
    """C1: a list of texts is one message; what is no text is left out, and no call is made of two halves."""
    parts = [
        {"type": "text", "text": "<ACT"},
        {"type": "image", "url": "x"},
        {"type": "output_text", "text": "ION>"},
        "s",
    ]
    assert text({"content": parts}) == "<ACT\n\nION>\n\ns"
    assert text({"content": []}) == ""


def test_null_is_no_text() -> None:
    """C1: what an assistant's message with native calls has."""
    assert text({"content": None}) == ""


@pytest.mark.parametrize(
    ("record", "fields", "wanted"),
    [
        (b'{"a": 1}', (), "noField"),
        (b"5", (), "noField"),
        (b"[]", (), "noField"),
        (b'{"text": {}}', (), "notText"),
        (b'{"text": 5}', (), "notText"),
        (b'{"text": true}', (), "notText"),
        (b'{"text": [{"role": "user", "content": "x"}]}', (), "notText"),
        (b'{"text": ["a", 5]}', (), "notText"),
        (b'{"text": "a"}', ("content",), "noField"),
        (b'"a"', ("text",), "noField"),
        (b'{"a": [1]}', ("a.1",), "noField"),
        (b'{"a": [1]}', ("a.x",), "noField"),
        (b'{"a": "x"}', ("a.b",), "noField"),
        (b'{"text": "a"', (), "notJson"),
        (b'{"text": "a"} x', (), "notJson"),
        (b'{"text": "a"}{"text": "b"}', (), "notJson"),
        (b"plain words", (), "notJson"),
        (b"\x00", (), "notJson"),
        (b'{"text": 1' + b"0" * 5000 + b', "d": NaN}', (), "notJson"),
        (b"[" * 200_000, (), "notJson"),
        (b'{"text":' * 50_000, ("text.text",), "notJson"),
    ],
)
def test_what_gives_no_text_is_told(record: bytes, fields: tuple[str, ...], wanted: str) -> None:
    """C1: a field that is missing, a list or something else, and broken records, each by its code."""
    assert code(record, *fields) == wanted


def test_the_hint_for_a_list_names_an_item() -> None:
    """C1: what to write instead."""
    with pytest.raises(RecordError) as told:
        text({"messages": [{"role": "user", "content": "x"}]}, "messages")
    assert "name an item: 'messages.0.content'" in told.value.message


def test_bytes_that_are_no_utf8_are_read_and_told() -> None:
    """C1: mixed encodings within one file: only where they are in the text, or break the JSON."""
    found = Texts().of('{"text": "né"}'.encode("latin-1"), 7)
    assert found.text == "n\ufffd" and found.problem is not None
    assert (found.problem.line, found.problem.code, found.problem.lost) == (7, "notUtf8", False)
    beside = Texts().of(b'{"name": "\xe9", "text": "a"}', 1)
    assert beside.text == "a"


@pytest.mark.parametrize("record", [b'{"text": "a\\ud800b", "x": 1}', b'{"x": "\\ud800", "text": "a\\ud800b"}'])
def test_a_lone_surrogate_is_a_text(record: bytes) -> None:
    """C1: legal JSON."""
    assert Texts().of(record, 1).text == "a\ud800b"


@pytest.mark.parametrize(
    "rest", [b'"n": NaN', b'"n": 1e400', b'"n": -Infinity', b'"n": 123456789012345678901234567890']
)
def test_numbers_of_other_fields_do_not_matter(rest: bytes) -> None:
    """C1: what other programs write beside the text."""
    assert Texts().of(b'{"text": "a", ' + rest + b"}", 1).text == "a"


def test_the_label_is_a_text_or_nothing() -> None:
    """C3: the model's name."""
    texts = Texts((), path_of("model"))
    assert texts.of(b'{"text": "a", "model": "m"}', 1).label == "m"
    for record in (b'{"text": "a"}', b'{"text": "a", "model": 5}', b'{"text": "a", "model": null}', b'"a"'):
        assert texts.of(record, 1).label == ""


@pytest.mark.parametrize("field", ["", ".", "a.", ".a", "a..b"])
def test_a_field_has_a_name(field: str) -> None:
    """C1: wrong usage."""
    with pytest.raises(ValueError, match="is no field"):
        path_of(field)


@given(JSON)
def test_a_record_of_json_gives_what_a_plain_reading_gives(record: Any) -> None:
    """C1: looking only at what leads to the field comes to the same as reading all of the record."""
    texts = Texts()
    try:
        found: object = texts.of(json.dumps(record).encode(), 1).text
    except RecordError as error:
        found = error.code
    try:
        plain: object = texts._look(record)[0]
    except RecordError as error:
        plain = error.code
    assert found == plain


@given(st.binary(max_size=60))
def test_any_bytes_give_a_text_or_a_reason(record: bytes) -> None:
    """C1: nothing else."""
    with contextlib.suppress(RecordError):
        assert isinstance(Texts().of(record.strip(), 1).text, str)
