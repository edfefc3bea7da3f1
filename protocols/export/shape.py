"""Where schemas stand inside a schema, and what the keywords are about. Must not know targets."""

from __future__ import annotations

from collections.abc import Callable

from tamis.protocols.model import Json
from tamis.protocols.schema.vocabulary import LISTS, MAPS, OF_LISTS, OF_NUMBERS, OF_OBJECTS, OF_STRINGS, SCHEMAS
from tamis.protocols.schema.words import JSON_TYPES, JsonType, is_list, is_object

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
