"""Where schemas stand inside a schema, and what the keywords are about. Must not know targets."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence

from tamis.protocols.model import Json
from tamis.protocols.schema.words import (
    JSON_TYPES,
    LISTS,
    MAPS,
    OF_LISTS,
    OF_NUMBERS,
    OF_OBJECTS,
    OF_STRINGS,
    SCHEMAS,
    JsonType,
    is_list,
    is_object,
)

MAX_DEPTH = 64
"""Schemas that nest deeper are left open, and said to be."""
ONE = SCHEMAS | {"items"}
MANY = LISTS | {"items"}
NAMED = MAPS | {"dependencies"}

ANNOTATIONS = frozenset(
    ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment")
)
"""Keywords that refuse no value."""
SILENT = frozenset(
    ("$schema", "$id", "$comment", "$anchor", "$dynamicAnchor", "$vocabulary", "$defs", "definitions", "id")
)
"""Keywords that say nothing of values by themselves: what refers to them is resolved before they go."""
ABOUT: dict[str, frozenset[str]] = {
    "string": frozenset(OF_STRINGS),
    "number": frozenset((*OF_NUMBERS, "format")),
    "array": frozenset(OF_LISTS),
    "object": frozenset(OF_OBJECTS),
}
"""Which keywords say something of the values of a type."""
ABOUT["integer"] = ABOUT["number"]
OF_ONE_TYPE = frozenset[str]().union(*ABOUT.values())
TypeName = JsonType
TYPES = JSON_TYPES


def map_parts(node: dict[str, Json], change: Callable[[Json, tuple[str | int, ...]], Json]) -> dict[str, Json]:
    """The schema with each schema directly below it as ``change(schema, names)`` gives it; ``names`` lead to it."""
    parts: dict[str, Json] = {}
    for key, value in node.items():
        if key in NAMED and is_object(value):
            parts[key] = {name: change(part, (key, name)) for name, part in value.items()}
        elif key in MANY and is_list(value):
            parts[key] = [change(part, (key, i)) for i, part in enumerate(value)]
        elif key in ONE and (is_object(value) or isinstance(value, bool)):
            parts[key] = change(value, (key,))
        else:
            parts[key] = value
    return parts


def is_constraint(key: str) -> bool:
    """Whether a keyword may refuse a value."""
    return key not in ANNOTATIONS and key not in SILENT and not key.startswith("x-")


def types_of(node: dict[str, Json]) -> tuple[str, ...]:
    """The types that a schema names, of JSON's; empty where it names none."""
    kind = node.get("type")
    named = kind if is_list(kind) else [kind]
    return tuple(dict.fromkeys(name for name in named if isinstance(name, str) and name in TYPES))


def type_name(value: Json) -> str:
    """The JSON type of a value; a whole number is ``integer``."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if is_list(value) else "object"


# Several schemas that must all hold, as one schema; says whether it accepts exactly what all of them accept.


_LARGEST = frozenset(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"))
_SMALLEST = frozenset(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"))
_TOGETHER = (
    frozenset(("items", "prefixItems", "additionalItems", "unevaluatedItems")),
    frozenset(("contains", "minContains", "maxContains")),
    frozenset(("if", "then", "else")),
)
_CLOSING = ("additionalProperties", "patternProperties", "unevaluatedProperties")


def conjunction(parts: Sequence[Json]) -> tuple[dict[str, Json] | bool, bool]:
    """The parts as one schema, and whether it is exact. Where two keywords cannot be joined, the first part's is kept."""
    made: dict[str, Json] = {}
    exact = True
    if any(part is False for part in parts):
        return False, True
    schemas = [part for part in parts if is_object(part)]
    exact = _closes_alike(schemas) and not any(_entangled(schemas, group) for group in _TOGETHER)
    for part in schemas:
        for key, value in part.items():
            if key not in made:
                made[key] = value
                continue
            joined, sure = _joined(key, made[key], value)
            made[key] = joined
            exact = exact and (sure or not is_constraint(key))
    return made, exact


def _entangled(parts: Sequence[dict[str, Json]], group: frozenset[str]) -> bool:
    """Whether keywords that mean something only together stand in several parts; ``items`` alone can be joined."""
    having = [group.intersection(part) for part in parts if not group.isdisjoint(part)]
    return len(having) > 1 and any(names != frozenset(("items",)) for names in having)


def _closes_alike(parts: Sequence[dict[str, Json]]) -> bool:
    """Whether no part refuses, by what it says of undeclared names, a property that another part declares."""
    closing = [part for part in parts if any(part.get(key) not in (None, True) for key in _CLOSING)]
    if not closing:
        return True
    names = [set(_properties(part)) for part in parts]
    return len(parts) == 1 or (len(closing) == len(parts) and all(name == names[0] for name in names))


def _properties(part: dict[str, Json]) -> dict[str, Json]:
    properties = part.get("properties")
    return properties if is_object(properties) else {}


def _joined(key: str, one: Json, other: Json) -> tuple[Json, bool]:
    if json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True):
        return one, True
    join = _JOIN.get(key)
    if join is not None:
        return join(one, other)
    if isinstance(one, int | float) and isinstance(other, int | float):
        if key in _LARGEST:
            return max(one, other), True
        if key in _SMALLEST:
            return min(one, other), True
    return one, False


def _join_type(one: Json, other: Json) -> tuple[Json, bool]:
    ours, theirs = types_of({"type": one}), types_of({"type": other})
    both = [name for name in ours if name in theirs or (name == "integer" and "number" in theirs)]
    both += [name for name in theirs if name == "integer" and "number" in ours and name not in both]
    if not both:
        return one, False
    return both[0] if len(both) == 1 else list[Json](both), True


def _join_properties(one: Json, other: Json) -> tuple[Json, bool]:
    if not is_object(one) or not is_object(other):
        return one, False
    made = dict(one)
    exact = True
    for name, schema in other.items():
        if name in made:
            made[name], sure = conjunction([made[name], schema])
            exact = exact and sure
        else:
            made[name] = schema
    return made, exact


def _join_required(one: Json, other: Json) -> tuple[Json, bool]:
    if not is_list(one) or not is_list(other):
        return one, False
    return list(dict.fromkeys(str(name) for name in (*one, *other))), True


def _join_enum(one: Json, other: Json) -> tuple[Json, bool]:
    if not is_list(one) or not is_list(other):
        return one, False
    theirs = [(type_name(value), value) for value in other]
    both = [value for value in one if (type_name(value), value) in theirs]
    return (both, True) if both else (one, False)


def _join_parts(one: Json, other: Json) -> tuple[Json, bool]:
    if isinstance(one, bool) or isinstance(other, bool):
        return (False, True) if one is False or other is False else (other if one is True else one, True)
    return conjunction([one, other]) if is_object(one) and is_object(other) else (one, False)


_JOIN: dict[str, Callable[[Json, Json], tuple[Json, bool]]] = {
    "type": _join_type,
    "properties": _join_properties,
    "required": _join_required,
    "enum": _join_enum,
    "items": _join_parts,
    "additionalProperties": _join_parts,
}


# What the rewriting of schemas asks about single parts: does one take null, are branches apart, what is shown of a value. Pure functions.


MAX_BRANCHES = 200


def nullable(schema: dict[str, Json]) -> dict[str, Json]:
    """A schema that takes null too, in the strict manner."""
    parts = schema.get("anyOf")
    if is_list(parts):
        return schema if any(_takes_null(part) for part in parts) else {**schema, "anyOf": [*parts, {"type": "null"}]}
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    kinds = list[Json](types_of(schema))
    made: dict[str, Json] = {**schema, "type": kinds if "null" in kinds else [*kinds, "null"]}
    values = schema.get("enum")
    return {**made, "enum": [*values, None]} if is_list(values) and None not in values else made


def _takes_null(part: Json) -> bool:
    return is_object(part) and "null" in types_of(part)


def only_null(branch: Json) -> bool:
    """Whether a branch of a choice takes null and nothing else."""
    return is_object(branch) and (
        types_of(branch) == ("null",) or branch.get("enum") == [None] or branch.get("const", 0) is None
    )


def is_told(value: Json, *, strict: bool) -> bool:
    """Whether a value may stand in a list of allowed values."""
    return not isinstance(value, dict | list) if strict else isinstance(value, str) and value != ""


def disjoint(branches: Sequence[Json]) -> bool:
    """Whether no value can fit two of the branches, as far as their types and listed values show."""
    if len(branches) > MAX_BRANCHES:
        return False
    seen: list[tuple[set[str], set[str] | None]] = []
    for branch in branches:
        if not is_object(branch):
            return False
        values = [branch["const"]] if "const" in branch else branch.get("enum")
        listed = {json.dumps(value, sort_keys=True) for value in values} if is_list(values) else None
        kinds = {type_name(value) for value in values} if is_list(values) else set(types_of(branch)) or set(TYPES)
        kinds |= {"integer"} if "number" in kinds else set[str]()
        for others, known in seen:
            apart = listed is not None and known is not None and listed.isdisjoint(known) and not kinds & {"integer"}
            if not apart and not kinds.isdisjoint(others):
                return False
        seen.append((kinds, listed))
    return True


def whole_bounds(node: dict[str, Json], made: dict[str, Json]) -> None:
    """Bounds of a whole number that leave the bound itself out, as bounds that take it in."""
    for key, plain, step in (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)):
        bound = node.get(key)
        if isinstance(bound, bool) or not isinstance(bound, int | float) or not math.isfinite(bound):
            continue
        whole = int(bound // 1) if step > 0 else -int(-bound // 1)
        known = made.get(plain)
        value = whole + step
        if isinstance(known, int | float) and not isinstance(known, bool):
            value = max(known, value) if step > 0 else min(known, value)
        made[plain] = value


def shown(value: Json) -> str:
    """A value as a sentence has it, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:99]}…"
