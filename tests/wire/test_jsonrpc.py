"""JSON-RPC messages: whatever bytes come, a value or an error that names itself; whatever value goes, JSON."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.server.wire.jsonrpc import RpcError, decode, encode, encode_error, encode_result, mend_surrogates

TEXT = st.text(st.one_of(st.characters(), st.characters(categories=["Cs"]), st.sampled_from('\\u"d8\ud83d\ude0b')))
VALUES = st.recursive(TEXT | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner))


def paired(text: str) -> str:
    """What a reader of UTF-16 makes of a text: halves that stand together join, others are lost."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@given(TEXT)
def test_lone_surrogates_become_replacement_characters_and_nothing_else_changes(text: str) -> None:
    value, mended = decode(json.dumps(text).encode())
    expected = paired(text)
    assert (value, mended) == (expected, expected.count("\ufffd") > text.count("\ufffd"))


@given(TEXT)
def test_mending_twice_is_mending_once(text: str) -> None:
    once = mend_surrogates(json.dumps(text).encode())
    assert mend_surrogates(once) == once


def test_a_surrogate_is_mended_in_keys_and_in_parts_that_are_left_undecoded() -> None:
    class Shape(msgspec.Struct):
        part: msgspec.Raw

    assert decode(b'{"\\udc00":["\\ud800"]}') == ({"\ufffd": ["\ufffd"]}, True)
    shaped, _ = decode(b'{"part":{"a":"\\ud800"}}', Shape)
    assert decode(bytes(shaped.part))[0] == {"a": "\ufffd"}


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[1", b'{"a":}', b"\xff", b'"\xff"', b"1e999", b"[" * 100_000, b'["\\ud800"', b'"\\ud8"']
)
def test_what_is_not_json_is_a_parse_error(body: bytes) -> None:
    with pytest.raises(RpcError) as caught:
        decode(body)
    assert caught.value.code == -32700


def test_a_wrong_shape_is_told_from_what_is_not_json() -> None:
    with pytest.raises(msgspec.ValidationError):
        decode(b'{"a":1}', list[int])
    with pytest.raises(RpcError):
        decode(b"[1", list[int])


@given(st.binary())
def test_any_bytes_give_a_value_or_a_parse_error(body: bytes) -> None:
    code = -32700
    try:
        decode(body)
    except RpcError as error:
        code = error.code
    assert code == -32700


@pytest.mark.slow
@given(VALUES)
def test_any_value_is_encoded_on_one_line_of_json(value: Any) -> None:
    body = encode({"result": value})
    assert b"\n" not in body
    assert set(json.loads(body.decode("utf-8"))) == {"result"}


def test_an_error_without_data_has_no_member_data() -> None:
    assert json.loads(encode_error(None, RpcError(-32600, "no"))) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32600, "message": "no"},
    }


def test_whatever_is_sent_is_json() -> None:
    for value in ([float("nan"), float("inf")], ["\ud800", float("nan")], {"a": ["\udfff", -float("inf")]}):
        sent = json.loads(encode_result(1, value), parse_constant=pytest.fail)["result"]
        assert "null" in json.dumps(sent)


@pytest.mark.parametrize(
    ("body", "code", "identity"),
    [
        (b'{"id": 7, "method": "tool/execute", "params": {"args": {"x": 1e400}}}', -32602, 7),
        (b'{"params": [-1e999], "id": "a", "method": "m"}', -32602, "a"),
        (b'{"id": 1e400, "method": "m"}', -32700, None),
        (b'{"id": 7, "params": 1e400}', -32700, None),
        (b'[{"id": 7, "method": "m", "params": {"x": 1e400}}]', -32700, None),
    ],
)
def test_a_number_that_no_float_holds_is_a_fault_of_the_params(body: bytes, code: int, identity: object) -> None:
    """R3: `1e400` in arguments: -32602 with its id."""
    with pytest.raises(RpcError) as told:
        decode(body)
    assert (told.value.code, told.value.identity) == (code, identity)
