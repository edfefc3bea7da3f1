"""Where schemas stand inside a schema, and what the keywords are about. Must not know targets."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Sequence

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
    merge_all_of,
    types_of,
)

MAX_DEPTH = 64
"""Schemas that nest deeper are left open, and said to be."""
ONE = SCHEMAS | {"items"}
MANY = LISTS | {"items"}
NAMED = MAPS | {"dependencies"}

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


def implied_type(keys: Collection[str]) -> TypeName | None:
    """The type that the keywords of a schema speak of which names none."""
    kinds: tuple[TypeName, ...] = ("object", "array", "string", "number")
    for kind in kinds:
        if any(key in ABOUT[kind] and key != "format" for key in keys):
            return kind
    return "string" if "format" in keys else None


def conjunction(parts: Sequence[Json]) -> tuple[dict[str, Json] | bool, bool]:
    """The parts as one schema down to the last part of a value, and whether it is exact (``merge_all_of``)."""
    merged = merge_all_of(parts, lambda one, other: conjunction([one, other]))
    return merged.schema, merged.exact


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
    node: dict[str, Json] = {**schema, "type": kinds if "null" in kinds else [*kinds, "null"]}
    values = schema.get("enum")
    return {**node, "enum": [*values, None]} if is_list(values) and None not in values else node


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


def whole_bounds(node: dict[str, Json], target: dict[str, Json]) -> None:
    """Bounds of a whole number that leave the bound itself out, as bounds that take it in."""
    for key, plain, step in (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)):
        bound = node.get(key)
        if isinstance(bound, bool) or not isinstance(bound, int | float) or not math.isfinite(bound):
            continue
        whole = int(bound // 1) if step > 0 else -int(-bound // 1)
        known = target.get(plain)
        value = whole + step
        if isinstance(known, int | float) and not isinstance(known, bool):
            value = max(known, value) if step > 0 else min(known, value)
        target[plain] = value


def shown(value: Json) -> str:
    """A value as a sentence has it, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:99]}…"
