"""Schemas that are looked at again after an edit: what is carried over changes no finding and no verdict (language server, bars)."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.protocols.model import Json
from tamis.protocols.schema.check import check_schema
from tamis.protocols.schema.facts import Checked, Facts, check_shared
from tamis.protocols.schema.held import Held, changed_since, hold
from tamis.protocols.schema.plan import compile_plan

_NAMES = ("a", "b", "c", "d", "description", "$id", "not", "x/y")
_SCALARS: tuple[Json, ...] = (0, 1, 1.0, True, False, None, "", "a", "string", 2.5, -1)
_REFS = (
    "#",
    "#/$defs/a",
    "#/properties/a",
    "#/properties/b/items",
    "#/nowhere",
    "other.json",
    "#/properties/description",
)
_DEEP = 3


def _value(r: random.Random, depth: int = 2) -> Json:
    if depth and r.random() < 0.3:
        if r.random() < 0.5:
            return [_value(r, depth - 1) for _ in range(r.randint(0, 3))]
        return {r.choice(_NAMES): _value(r, depth - 1) for _ in range(r.randint(0, 3))}
    return r.choice(_SCALARS)


def _schema(r: random.Random, depth: int, *, odd: bool) -> Json:
    if r.random() < 0.04:
        return r.choice((True, False))
    schema: dict[str, Json] = {}
    for _ in range(r.randint(0, 4)):
        key, value = _keyword(r, depth, odd=odd)
        schema[key] = value
    return schema


def _keyword(r: random.Random, depth: int, *, odd: bool) -> tuple[str, Json]:
    deep = depth > 0
    roll = r.randint(0, 21 if deep else 11)
    if odd and r.random() < 0.05:
        return r.choice(("$id", "$anchor", "$schema", "$dynamicRef", "$ref")), r.choice(_REFS)
    if odd and r.random() < 0.05:
        return r.choice(("propertees", "nullable", "requird", "type", "minimum")), _value(r)
    match roll:
        case 0 | 1 | 2:
            return "type", r.choice(("string", "integer", "number", "object", "array", "boolean", "null", "strin"))
        case 3:
            return "description", r.choice(("one", "two", "three"))
        case 4:
            return "title", r.choice(("One", "Two"))
        case 5:
            return "enum", [r.choice(_SCALARS) for _ in range(r.randint(1, 3))]
        case 6:
            return "const", _value(r)
        case 7:
            return r.choice(("minimum", "maxLength", "minItems", "multipleOf")), r.choice((1, 2, 1.0, 2.5))
        case 8:
            return "default", _value(r)
        case 9:
            return "examples", [_value(r)]
        case 10:
            return "pattern", r.choice(("^a", "[", "b+"))
        case 11:
            return "required", r.sample(_NAMES, r.randint(0, 2))
        case 12 | 13 | 14 | 15:
            return "properties", _map(r, depth, odd=odd)
        case 16:
            return "items", _schema(r, depth - 1, odd=odd)
        case 17:
            return r.choice(("anyOf", "oneOf", "allOf")), [
                _schema(r, depth - 1, odd=odd) for _ in range(r.randint(1, 2))
            ]
        case 18:
            return "additionalProperties", r.choice((True, False, _schema(r, depth - 1, odd=odd)))
        case 19:
            return r.choice(("$defs", "patternProperties", "dependentSchemas", "dependencies")), _map(r, depth, odd=odd)
        case 20:
            return r.choice(("not", "if", "then", "propertyNames", "contains")), _schema(r, depth - 1, odd=odd)
        case _:
            return "$ref", r.choice(_REFS)


def _map(r: random.Random, depth: int, *, odd: bool) -> dict[str, Json]:
    size = 40 if r.random() < 0.1 else r.randint(0, 4)
    if size == 40:
        return {f"p{i}": _schema(r, 0, odd=odd) for i in range(size)}
    return {r.choice(_NAMES): _schema(r, depth - 1, odd=odd) for _ in range(size)}


def _edited(r: random.Random, value: Json, depth: int, *, odd: bool) -> Json:
    """A version of a value in which one place is another, and everything beside the way to it is the same object."""
    if isinstance(value, dict) and value and r.random() < 0.85:
        name = r.choice(list(value))
        roll = r.random()
        if roll < 0.6:
            return {**value, name: _edited(r, value[name], depth - 1, odd=odd)}
        if roll < 0.75:
            return {(r.choice(_NAMES) if key == name else key): part for key, part in value.items()}
        if roll < 0.85:
            return {key: part for key, part in value.items() if key != name}
        key, made = _keyword(r, max(depth, 0), odd=odd)
        return {**value, key: made}
    if isinstance(value, list) and value and r.random() < 0.8:
        i = r.randrange(len(value))
        return [*value[:i], _edited(r, value[i], depth - 1, odd=odd), *value[i + 1 :]]
    return r.choice((r.choice(_SCALARS), _schema(r, max(depth, 0), odd=odd), _value(r)))


def _versions(r: random.Random, count: int, *, odd: bool) -> list[Json]:
    root: dict[str, Json] = {"type": "object", "properties": _map(r, _DEEP, odd=odd)}
    if r.random() < 0.4:
        extra = _schema(r, 2, odd=odd)
        root = {**root, **extra} if isinstance(extra, dict) else root
    versions: list[Json] = [root]
    for _ in range(count):
        versions.append(r.choice(versions[-2:]) if r.random() < 0.15 else _edited(r, versions[-1], _DEEP, odd=odd))
    return versions


def _key(issue: Any) -> tuple[str, str, str]:
    return issue.path, issue.code, str(issue.args)


@settings(max_examples=max(1, settings().max_examples // 2))
@given(st.randoms(use_true_random=False))
def test_a_schema_checked_from_its_last_version_has_the_faults_of_one_checked_anew(r: random.Random) -> None:
    before: Checked | None = None
    leaves: dict[object, Facts] = {}
    for schema in _versions(r, 12, odd=True):
        checked = check_shared(schema, before, leaves)
        anew = check_shared(schema, None, {})
        assert sorted(checked.issues, key=_key) == sorted(check_schema(schema), key=_key)
        assert checked.issues == anew.issues
        assert checked.defaults == anew.defaults
        known, fresh = checked.root, anew.root
        assert (known.count, known.height, known.odd, known.broken) == (
            fresh.count,
            fresh.height,
            fresh.odd,
            fresh.broken,
        )
        assert known.refs == fresh.refs
        before = checked


@settings(max_examples=max(1, settings().max_examples // 2))
@given(st.randoms(use_true_random=False))
def test_a_plan_that_is_kept_says_what_a_new_one_says(r: random.Random) -> None:
    before: Checked | None = None
    held: Held | None = None
    leaves: dict[object, Facts] = {}
    for schema in _versions(r, 8, odd=r.random() < 0.3):
        before = check_shared(schema, before, leaves)
        if not before.usable:
            continue
        last, held = held, hold(before, held)
        plan = compile_plan(schema)
        changed = None if last is None else changed_since(last, held)
        for _ in range(6):
            args: dict[str, Json] = {r.choice((*_NAMES, "p1", "p7")): _value(r) for _ in range(r.randint(0, 3))}
            outcome = plan.check(args, "typed")
            if held.fits(args, "arguments"):
                assert not outcome.errors
            assert held.errors(args, "arguments") == tuple(outcome.errors)
            if held.fits(args, "value"):
                assert plan.is_valid(args)
            if last is not None and changed is not None and changed.isdisjoint(args):
                assert last.fits(args, "arguments") == held.fits(args, "arguments")


def test_a_description_changes_no_plan_and_a_type_only_its_property() -> None:
    wide: dict[str, Json] = {f"p{i}": {"type": "string", "description": f"no. {i}"} for i in range(100)}
    first = check_shared({"type": "object", "properties": wide}, None, {})
    held = hold(first, None)
    said = {"type": "object", "properties": {**wide, "p7": {"type": "string", "description": "new"}}}
    second = check_shared(said, first, {})
    assert hold(second, held) is held
    typed = {"type": "object", "properties": {**wide, "p7": {"type": "integer"}}}
    third = check_shared(typed, second, {})
    now = hold(third, held)
    assert changed_since(held, now) == {"p7"}
    assert held.fits({"p7": "x"}, "arguments")
    assert not now.fits({"p7": "x"}, "arguments")
    assert [finding.code for finding in now.errors({"p7": "x"}, "arguments")] == ["VA410"]


@pytest.mark.parametrize("where", ["anyOf", "oneOf"])
def test_the_title_of_an_alternative_is_part_of_what_a_plan_says(where: str) -> None:
    def of(title: str) -> Json:
        return {"properties": {"a": {where: [{"type": "string", "title": title}, {"type": "null"}]}}}

    first = check_shared(of("Name"), None, {})
    held = hold(first, None)
    now = hold(check_shared(of("Word"), first, {}), held)
    assert "Name" in str(held.errors({"a": 1}, "arguments"))
    assert "Word" in str(now.errors({"a": 1}, "arguments"))


def test_a_large_schema_explains_a_value_without_being_compiled_whole() -> None:
    wide: dict[str, Json] = {f"p{i}": {"type": "string"} for i in range(500)}
    schema: Json = {"type": "object", "properties": wide, "required": ["p3"]}
    held = hold(check_shared(schema, None, {}), None)
    value: Json = {"p7": 1, "pp8": "x"}
    assert held.errors(value, "arguments") == tuple(compile_plan(schema).check(value, "typed").errors)
