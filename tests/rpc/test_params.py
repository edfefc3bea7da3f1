"""Params that are wrong: the error names the place, what may stand there, and the nearest of it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import pytest

from tamis.server.rpc.params import Params, read_params
from tamis.server.wire.jsonrpc import RpcError


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
