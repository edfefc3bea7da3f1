"""The one place that joins an ``allOf``, held against jsonschema's verdict (house, second form)."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tamis.protocols.export.shape import conjunction
from tamis.protocols.model import Json
from tamis.protocols.schema.words import is_object, merge_all_of

NAMES = st.sampled_from(("a", "b", "ab"))
TYPES = st.sampled_from(("string", "integer", "number", "boolean", "null", "array", "object"))
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-2, 4), st.sampled_from((0.5, 1.0, "", "a", "abc")))
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6
)
BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")


def _keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "title": st.just("T"),
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
            "enum": st.lists(VALUES, min_size=1, max_size=3),
            "const": SCALARS,
            "required": st.lists(NAMES, max_size=2, unique=True),
            "properties": st.dictionaries(NAMES, inner, max_size=2),
            "patternProperties": st.dictionaries(st.just("^a"), inner, max_size=1),
            "additionalProperties": inner,
            "unevaluatedProperties": st.booleans(),
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "contains": inner,
            "minContains": st.integers(0, 2),
            "if": inner,
            "then": inner,
            "else": inner,
            "not": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "pattern": st.sampled_from(("a", "^b")),
            **{key: st.integers(-1, 3) for key in BOUNDS},
            **{key: st.integers(0, 3) for key in COUNTS},
        },
    ).filter(lambda schema: len(schema) <= 4)


SCHEMAS: st.SearchStrategy[Any] = st.recursive(st.booleans(), _keywords, max_leaves=4)


def holds(schema: Json, value: Json) -> bool:
    """jsonschema's verdict."""
    return Draft202012Validator(schema).is_valid(value)


@settings(max_examples=settings().max_examples * 3)
@given(st.lists(SCHEMAS, min_size=1, max_size=3), st.lists(VALUES, min_size=1, max_size=8))
def test_a_schema_that_is_joined_exactly_takes_what_all_take_and_nothing_else(
    parts: list[Json], values: list[Json]
) -> None:
    merged = merge_all_of(parts)
    deep, exact = conjunction(parts)
    for value in values:
        verdict = all(holds(part, value) for part in parts)
        if merged.exact:
            assert holds(merged.schema, value) == verdict
        if exact:
            assert holds(deep, value) == verdict
        if merged.empty:
            assert not verdict


OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "properties": st.dictionaries(NAMES, st.sampled_from((True, {"type": "integer"}, {"minimum": 1})), max_size=2),
        "patternProperties": st.dictionaries(st.sampled_from(("^a", "b$")), st.just({"maximum": 2}), max_size=2),
        "additionalProperties": st.sampled_from((True, False, {"type": "integer"})),
        "unevaluatedProperties": st.booleans(),
        "required": st.lists(NAMES, max_size=1),
    },
)


@settings(max_examples=settings().max_examples * 3)
@given(st.lists(OBJECTS, min_size=2, max_size=3), st.lists(st.dictionaries(NAMES, st.integers(0, 3)), min_size=4))
def test_names_that_one_schema_closes_and_another_declares(parts: list[Json], values: list[Json]) -> None:
    merged = merge_all_of(parts)
    for value in values:
        verdict = all(holds(part, value) for part in parts)
        if merged.exact:
            assert holds(merged.schema, value) == verdict
        elif not any("unevaluatedProperties" in part for part in parts if is_object(part)):
            assert holds(merged.schema, value) or not verdict


_KEPT_APART = frozenset(("if", "then", "else", "contains", "minContains", "unevaluatedProperties"))


@settings(max_examples=settings().max_examples * 2)
@given(st.lists(SCHEMAS, min_size=1, max_size=3), st.lists(VALUES, min_size=1, max_size=8))
def test_what_all_take_is_never_refused(parts: list[Json], values: list[Json]) -> None:
    """Also where the joined schema takes more; but for keywords that mean something only together, and stand in several parts."""
    if any(_KEPT_APART & part.keys() for part in parts if is_object(part)):
        return
    merged = merge_all_of(parts)
    for value in values:
        assert holds(merged.schema, value) or not all(holds(part, value) for part in parts)


def test_what_cannot_be_joined_is_left_and_named() -> None:
    merged = merge_all_of([{"pattern": "a", "title": "one"}, {"pattern": "b", "title": "two"}])
    assert merged.schema == {"pattern": "a", "title": "one"}
    assert (merged.exact, merged.left, merged.empty) == (False, (("pattern", "b"), ("title", "two")), False)


def test_types_and_listed_values_without_one_in_common_fit_nothing() -> None:
    assert merge_all_of([{"type": "string"}, {"type": "null"}]).empty
    assert merge_all_of([{"enum": [1]}, {"enum": [True]}]).empty
    assert merge_all_of([{}, False]).schema is False


def test_both_bounds_hold() -> None:
    assert merge_all_of([{"minimum": 1, "maxItems": 3}, {"minimum": 2, "maxItems": 2}]).schema == {
        "minimum": 2,
        "maxItems": 2,
    }
