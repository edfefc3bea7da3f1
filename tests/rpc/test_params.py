"""Params that are wrong: the error names the place, what may stand there, and the nearest of it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import pytest

from tamis.server.rpc.params import MAX_UNREAD, Params, read_params, unread, with_warnings
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError


class Inner(Params):
    """A part."""

    form: Literal["mermaid", "svg"] = "svg"


class Asked(Params):
    """Every place where one of several texts may stand."""

    target: Literal["openai", "openaiStrict"] | None = None
    inner_part: Inner | msgspec.UnsetType = msgspec.UNSET
    items: list[Inner] = msgspec.field(default_factory=list[Inner])
    by_name: dict[str, Literal["a", "b"]] = msgspec.field(default_factory=dict[str, Literal["a", "b"]])
    size: int = 0


class Needed(Params):
    """A param that must be there, and one that may be anything."""

    text: str
    value: Any = 1
    asked: Asked = msgspec.field(default_factory=Asked)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"target": "openai-strict"}, "none of 'openai', 'openaiStrict', did you mean 'openaiStrict'? - at `$.target`"),
        ({"innerPart": {"form": "png"}}, "none of 'mermaid', 'svg' - at `$.innerPart.form`"),
        ({"items": [{}, {"form": "mermaids"}]}, "'svg', did you mean 'mermaid'? - at `$.items[1].form`"),
        ({"byName": {"x": "c"}}, "none of 'a', 'b'"),
        ({"size": "a"}, "Expected `int`, got `str` - at `$.size`"),
        ({"target": "a' - at `$.size`"}, "'openaiStrict' - at `$.target`"),
    ],
)
def test_a_value_that_is_none_of_several_is_told_with_these_and_the_nearest(params: Any, text: str) -> None:
    with pytest.raises(RpcError) as caught:
        read_params(Asked, params)
    assert text in str(caught.value)


def test_a_null_is_a_param_that_was_left_out() -> None:  # hosts that write every field that they have
    nulls = {"target": None, "innerPart": None, "items": [{"form": None}], "byName": None, "size": None}
    plain = read_params(Needed, {"text": "x", "asked": {"items": [{}]}})
    assert read_params(Needed, {"text": "x", "asked": nulls | {"unknown": None}}) == plain
    assert read_params(Needed, {"text": "x", "asked": None}) == read_params(Needed, {"text": "x"})
    assert read_params(Needed, {"text": "x", "value": None, "asked": None}).value is None


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"text": None, "asked": None}, "Expected `str`, got `null` - at `$.text`"),
        ({"text": "x", "asked": {"items": [None]}}, "got `null` - at `$.asked.items[0]`"),
        ({"text": "x", "asked": {"byName": {"x": None}}}, "got `null`"),
        ({"text": "x", "asked": {"size": None, "items": [{"form": "png"}]}}, "none of 'mermaid', 'svg'"),
        ([None], "Expected `object`, got `array`"),
    ],
)
def test_a_null_where_something_must_stand_is_wrong(params: Any, text: str) -> None:
    with pytest.raises(RpcError) as caught:
        read_params(Needed, params)
    assert text in str(caught.value)


# Members that a method does not read (T17)


def test_a_member_that_the_method_does_not_read_is_told_with_the_nearest() -> None:  # T17
    (one, other) = unread(Asked, {"size": 1, "targit": "openai", "frobnicate": 1, "gone": None, "workDoneToken": 3})
    assert (one.code, one.path, one.suggestion) == ("VA441", "/targit", "target")
    assert (other.path, other.suggestion) == ("/frobnicate", msgspec.UNSET)


@pytest.mark.parametrize("params", [None, [], {}, {"size": 1}, {"options": {}}])
def test_what_a_method_reads_or_has_nothing_in_it_refuses_nothing(params: Any) -> None:  # T17
    assert [one.path for one in unread(Asked, params)] == (["/options"] if params == {"options": {}} else [])


def test_options_of_a_method_that_takes_none_are_refused() -> None:  # T17: a time in there would not be kept
    with pytest.raises(RpcError, match="'size' stands beside 'options', not in it") as caught:
        unread(Asked, {"options": {"size": 5}})
    assert caught.value.code == INVALID_PARAMS


def test_a_result_tells_beside_its_own_warnings() -> None:  # T17
    found = unread(Asked, {"x": 1})
    assert with_warnings({"a": 1}, found) == {"a": 1, "warnings": found}
    assert with_warnings({"warnings": [1]}, found) == {"warnings": [1, *found]}
    assert with_warnings(None, found) is None
    assert with_warnings({"a": 1}, []) == {"a": 1}


def test_more_members_than_anybody_reads_are_bounded() -> None:
    assert len(unread(Asked, {f"m{i}": 1 for i in range(1000)})) == MAX_UNREAD
