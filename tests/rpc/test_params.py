"""Params that are wrong: the error names the place, what may stand there, and the nearest of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.server.rpc.params import MAX_UNREAD, Params, ReadingOptions, read_params, read_request, unread, with_warnings
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
        ({"target": "openai-strict"}, "none of 'openai', 'openaiStrict', did you mean 'openaiStrict'? - at `/target`"),
        ({"innerPart": {"form": "png"}}, "none of 'mermaid', 'svg' - at `/innerPart/form`"),
        ({"items": [{}, {"form": "mermaids"}]}, "'svg', did you mean 'mermaid'? - at `/items/1/form`"),
        ({"byName": {"x": "a", "y/z": "c"}}, "'c' is none of 'a', 'b' - at `/byName/y~1z`"),
        ({"target": "a' - at `$.size`"}, "'openaiStrict' - at `/target`"),
    ],
)
def test_a_value_that_is_none_of_several_is_told_with_these_and_the_nearest(params: Any, text: str) -> None:
    with pytest.raises(RpcError) as caught:
        read_params(Asked, params)
    assert text in str(caught.value)


class Bounded(Params):
    """Whatever msgspec can find wrong."""

    count: Annotated[int, msgspec.Meta(ge=1)] = 1
    name: Annotated[str, msgspec.Meta(min_length=2, max_length=3, pattern="^a")] = "aa"
    rows: dict[str, list[Annotated[float, msgspec.Meta(le=9)]]] = msgspec.field(default_factory=dict[str, list[float]])
    either: int | str | None = None
    is_on: bool = False
    options: ReadingOptions | None = None
    inner: list[Needed] = msgspec.field(default_factory=list[Needed])


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"count": "a"}, "must be a whole number, not a text - at `/count`"),
        ({"count": 1.5}, "must be a whole number, not a number - at `/count`"),
        ({"count": 0}, "must be a whole number of at least 1 - at `/count`"),
        ({"name": "a"}, "must be a text no shorter than 2 - at `/name`"),
        ({"name": "aaaa"}, "must be a text no longer than 3 - at `/name`"),
        ({"name": "ba"}, "must be a text that fits '^a' - at `/name`"),
        ({"rows": {"a": [1], "b~c": [2, True]}}, "must be a number, not true or false - at `/rows/b~0c/1`"),
        ({"rows": {"a": [10]}}, "must be a number of at most 9.0 - at `/rows/a/0`"),
        ({"either": []}, "must be a whole number or a text or null, not a list - at `/either`"),
        ({"isOn": 1}, "must be true or false, not a whole number - at `/isOn`"),
        (
            {"options": {"reasoningCall": "run"}},
            "there is no 'reasoningCall' here, did you mean 'reasoningCalls'? - at `/options`",
        ),
        ({"inner": [{"text": "x"}, {}]}, "'text' is missing - at `/inner/1`"),
        ({"options": {"x - at `$.a[...]": 1}}, "there is no 'x - at `$.a[...]' here - at `/options`"),
        (3, "must be an object, not a whole number"),
    ],
)
def test_what_is_wrong_is_told_in_words_with_its_place(params: Any, text: str) -> None:
    """Strangers: no message of a library reaches the host; the place is a JSON Pointer."""
    with pytest.raises(RpcError) as caught:
        read_params(Bounded, params)
    assert caught.value.code == INVALID_PARAMS and str(caught.value) == f"wrong params: {text}"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["text", "asked", "rows", "options", "inner", "items", "byName", "a/b", "count"])
                | st.text(),
                inner,
            )
        ),
    )
)
def test_no_params_are_told_in_the_words_of_a_library(params: Any) -> None:
    """Strangers: whatever comes, the place leads to a value that is there, or misses one."""
    for kind in (Bounded, Needed, Asked):
        error = fault(kind, params)
        assert "Expected `" not in error and "Object " not in error and "`$" not in error.rpartition(" - at ")[2]
        pointer = error.rpartition(" - at `")[2].rstrip("`") if " - at `/" in error else ""
        value = params
        for step in pointer.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            value = value[int(name)] if isinstance(value, list) else value[name]


def fault(kind: type[Params], params: Any) -> str:
    try:
        read_params(kind, params)
    except RpcError as error:
        return str(error)
    return ""


def test_a_null_is_a_param_that_was_left_out() -> None:  # hosts that write every field that they have
    nulls = {"target": None, "innerPart": None, "items": [{"form": None}], "byName": None, "size": None}
    plain = read_params(Needed, {"text": "x", "asked": {"items": [{}]}})
    assert read_params(Needed, {"text": "x", "asked": nulls | {"unknown": None}}) == plain
    assert read_params(Needed, {"text": "x", "asked": None}) == read_params(Needed, {"text": "x"})
    assert read_params(Needed, {"text": "x", "value": None, "asked": None}).value is None


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"text": None, "asked": None}, "must be a text, not null - at `/text`"),
        ({"text": "x", "asked": {"items": [None]}}, "must be an object, not null - at `/asked/items/0`"),
        ({"text": "x", "asked": {"byName": {"x": None}}}, "not null - at `/asked/byName/x`"),
        ({"text": "x", "asked": {"size": None, "items": [{"form": "png"}]}}, "none of 'mermaid', 'svg'"),
        ([None], "must be an object, not a list"),
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


class Executes(Params):
    """As ``tool/execute`` is."""

    tool_id: str
    args: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    timeout_ms: int = 0


@pytest.mark.parametrize(
    ("params", "near"),
    [
        ({"toolId": "t", "arguments": {}}, "args"),
        ({"toolId": "t", "timeout": 5}, "timeoutMs"),
        ({"toolId": "t", "args": {}, "arguments": {}}, None),
        ({"toolId": "t", "area": 1}, None),
    ],
)
def test_a_longer_or_shorter_name_of_a_member_that_was_not_given_is_asked_for(params: Any, near: str | None) -> None:
    ((_, (told,)),) = (read_request(Executes, params),)
    assert told.suggestion == (msgspec.UNSET if near is None else near)


def test_a_missing_member_is_told_with_the_one_that_may_be_meant() -> None:
    with pytest.raises(RpcError, match=r"'toolId' is missing; unknown member 'tool', did you mean 'toolId'\?$"):
        read_request(Executes, {"tool": "t"})


def test_members_of_objects_in_params_are_told_where_they_resemble_one() -> None:
    given = {"text": "x", "asked": {"innerPart": {"from": "svg", "zzz": 1}, "items": [{}, {"forms": "svg"}]}}
    _, told = read_request(Needed, given)
    assert [(one.path, one.suggestion) for one in told] == [
        ("/asked/innerPart/from", "form"),
        ("/asked/items/1/forms", "form"),
    ]


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
