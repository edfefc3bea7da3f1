"""Standard output to a value: one JSON document or an error that shows what came (ruling 37, F29, D20)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.server.runtime.output import OutputError, read_output

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON, st.booleans())
def test_every_json_document_is_read_back(value: object, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert read_output(text.encode("utf-8", "replace")) == json.loads(text.encode("utf-8", "replace"))


@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_an_output_error(data: bytes) -> None:
    try:
        value = read_output(data)
    except OutputError:
        return
    json.dumps(value)


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"", "printed nothing"),
        (b" \n", "printed nothing"),
        (b"Loading\n{}", "not JSON"),
        (b'{"ok": true}\ndone', "more than one JSON document"),
        (b"{}{}", "more than one JSON document"),
        (b"[NaN]", "NaN"),
        (b"1e999", "1e999"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[" * 101 + b"]" * 101, "deeper than 100"),
        (b"[" * 1_000_000, "deeper than 100"),
        (b"1" * 4301, "4300 digits"),
        (b'{"a": 1', "not JSON"),
        (b"{'a': 1}", "not JSON"),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_what_is_no_json_document_says_so(data: bytes, cause: str) -> None:
    with pytest.raises(OutputError) as caught:
        read_output(data)
    assert cause in caught.value.text


def test_the_excerpt_shows_how_the_output_began() -> None:  # F29
    with pytest.raises(OutputError) as caught:
        read_output("Loading…\n{}".encode())
    assert caught.value.excerpt == "Loading…\n{}"


def test_brackets_in_strings_are_no_depth() -> None:
    assert read_output(json.dumps("[" * 5000).encode()) == "[" * 5000


def test_a_byte_order_mark_is_ignored() -> None:
    assert read_output(b"\xef\xbb\xbf[1]") == [1]


def test_a_lone_surrogate_becomes_the_replacement_character() -> None:
    assert read_output(b'{"a": "\\ud800x"}') == {"a": "\ufffdx"}


def test_integers_keep_every_digit() -> None:  # ruling 2
    assert read_output(b"123456789012345678901234567890") == 123456789012345678901234567890
