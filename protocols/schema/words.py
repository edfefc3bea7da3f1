"""Shared words of schema checking: findings, JSON types and their names, equality, excerpts.

Must not know manifests, calls or documents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeGuard

import msgspec

from tamis.protocols.model import Json, Severity, escape_pointer, unescape_pointer
from tamis.protocols.positions import Span

JsonType = Literal["string", "integer", "number", "boolean", "null", "array", "object"]
JSON_TYPES: tuple[JsonType, ...] = ("string", "integer", "number", "boolean", "null", "array", "object")

_AN: dict[str, str] = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean (true or false)",
    "null": "null",
    "array": "a list",
    "object": "an object",
}
Where = tuple["Where", str | int] | None
"""A place inside arguments as a linked list, from the leaf up; cheap to extend, rendered only for findings."""


class Finding(msgspec.Struct, frozen=True):
    """One problem of arguments.

    ``path`` is a JSON Pointer into the arguments; ``severity`` is ``error`` or ``warning``; ``suggestion`` is the bare
    replacement. ``at`` is the place inside the decoded text of the value at ``path``, where the value is JSON text that cannot
    be read.
    """

    code: str
    path: str
    severity: Severity
    args: dict[str, str | int] = {}
    expected: str | None = None
    received: str | None = None
    suggestion: str | None = None
    at: Span | None = None


class Outcome(msgspec.Struct, frozen=True):
    """The result of checking arguments; ``coerced`` counts only when ``valid``."""

    valid: bool
    coerced: Json
    errors: list[Finding] = []
    warnings: list[Finding] = []


def index_in(items: Sequence[object], token: str) -> int:
    """The place in a list that a token of a JSON Pointer (RFC 6901) names; -1 where the list has none such."""
    is_number = token.isascii() and token.isdigit() and len(token) < 10  # Python refuses numbers of thousands of digits
    return int(token) if is_number and int(token) < len(items) else -1


def resolve(root: Json, ref: str) -> Json:
    """What a reference into the same document (``#`` or ``#/…``, RFC 6901 §6) leads to; raises ``KeyError``."""
    pointer = ref[1:]
    if not ref.startswith("#") or (pointer and pointer[0] != "/"):
        raise KeyError(ref)
    if "%" in pointer:
        from urllib.parse import unquote

        pointer = unquote(pointer)
    node = root
    for raw in pointer.split("/")[1:]:
        token = unescape_pointer(raw)
        if is_object(node):
            node = node[token]
        elif is_list(node) and (index := index_in(node, token)) >= 0:
            node = node[index]
        else:
            raise KeyError(ref)
    return node


def is_object(value: object) -> TypeGuard[dict[str, Json]]:
    """Whether a value is a JSON object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Json]]:
    """Whether a value is a JSON list."""
    return isinstance(value, list)


def type_of(value: object) -> JsonType:
    """The JSON type of Python data; a whole float is a number here."""
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if value is None:
        return "null"
    return "array" if isinstance(value, list) else "object"


def has_type(value: object, name: str) -> bool:
    """Whether a value has a JSON Schema type; ``3.0`` is an integer."""
    kind = type_of(value)
    if kind == name:
        return True
    if name == "number":
        return kind == "integer"
    return name == "integer" and isinstance(value, float) and value.is_integer()


def types_in_words(types: list[str] | tuple[str, ...]) -> str:
    """``an integer or null``."""
    return " or ".join(_AN.get(name, name) for name in types)


def json_equal(one: object, two: object) -> bool:
    """JSON equality: ``1`` equals ``1.0`` and never ``true``."""
    if one is two:
        return True
    if isinstance(one, bool) or isinstance(two, bool):
        return False
    if is_list(one) and is_list(two):
        return len(one) == len(two) and all(json_equal(a, b) for a, b in zip(one, two, strict=True))
    if is_object(one) and is_object(two):
        return len(one) == len(two) and all(key in two and json_equal(value, two[key]) for key, value in one.items())
    return one == two


def enum_has(values: list[Json], value: object) -> bool:
    """Whether a value is among the values of an enum, in JSON's sense of equality."""
    return any(json_equal(value, item) for item in values)


def as_json(value: object) -> str:
    """Compact JSON text of a value."""
    try:
        return msgspec.json.encode(value).decode()
    except (RecursionError, ValueError, TypeError, OverflowError):
        return repr(value)


def excerpt(value: object, limit: int = 60) -> str:
    """A value as it is shown in a message: JSON, cut."""
    if isinstance(value, str) and len(value) > limit:
        value = value[: limit - 1] + "…"
        return as_json(value)
    text = as_json(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def pointer(where: Where) -> str:
    """A place as a JSON Pointer."""
    tokens: list[str] = []
    while where is not None:
        where, token = where
        tokens.append(escape_pointer(token) if isinstance(token, str) else str(token))
    return "".join(f"/{token}" for token in reversed(tokens))


def label(path: str) -> str:
    """A JSON Pointer as people write it: ``ai[1]``, ``o.age``; the empty pointer is ``arguments``."""
    out = ""
    for raw in path.split("/")[1:]:
        token = unescape_pointer(raw)
        if token.isascii() and token.isdigit() and out:
            out += f"[{token}]"
        else:
            out += f".{token}" if out else token
    return out or "arguments"


# The keywords of JSON Schema: which hold schemas, and which say something of the values of one type. The one table of it. Who serves only a part of
# them says what it leaves out.


DRAFT_2020_12 = "https://json-schema.org/draft/2020-12/schema"

SCHEMAS = frozenset(
    (
        *("additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"),
        *("unevaluatedItems", "unevaluatedProperties", "contentSchema", "additionalItems"),
    )
)
"""They hold one schema. ``items`` does too, and before 2020-12 a list of them."""
LISTS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
"""They hold a list of schemas."""
MAPS = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))
"""They hold schemas by name. ``dependencies`` of draft-07 does too, beside lists of names."""

OF_STRINGS = ("minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType", "contentSchema")
OF_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
OF_LISTS = (
    *("items", "prefixItems", "additionalItems", "contains", "minItems", "maxItems", "uniqueItems", "unevaluatedItems"),
    *("minContains", "maxContains"),
)
OF_OBJECTS = (
    *("properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties"),
    *("maxProperties", "dependencies", "dependentRequired", "dependentSchemas", "unevaluatedProperties"),
)


# Several schemas that must all hold (``allOf``) as one. The one place of it; who cannot have all of it says what is lost.


ANNOTATIONS = frozenset(
    ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment")
)
"""Keywords that refuse no value."""
SILENT = frozenset(
    ("$schema", "$id", "$comment", "$anchor", "$dynamicAnchor", "$vocabulary", "$defs", "definitions", "id")
)
"""Keywords that say nothing of values by themselves: what refers to them is resolved before they go."""
_LARGEST = frozenset(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"))
_SMALLEST = frozenset(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"))
_TOGETHER = (
    frozenset(("items", "prefixItems", "additionalItems", "unevaluatedItems")),
    frozenset(("contains", "minContains", "maxContains")),
    frozenset(("if", "then", "else")),
)
"""Keywords that mean something only together."""


class Merged(msgspec.Struct, frozen=True):
    """Schemas as one. Where it is ``exact`` it refuses what one of them refuses and nothing else; else it refuses less, but for keywords that
    mean something only together (``if``, ``contains``, ``unevaluatedProperties``) and stand in several of them."""

    schema: dict[str, Json] | bool
    """``False`` where one of them allows nothing."""
    exact: bool
    left: tuple[tuple[str, Json], ...] = ()
    """Keywords of later schemas that could not be joined with an earlier one's, which stands."""
    empty: bool = False
    """Whether it shows at the root already that no value fits them all."""


Below = Callable[[Json, Json], tuple[Json, bool]]
"""Two schemas of one part of a value as one, and whether that is exact."""


def both_of(one: Json, other: Json) -> tuple[Json, bool]:
    """Two schemas side by side, for who joins a part when it comes to it."""
    return {"allOf": [one, other]}, True


def merge_all_of(parts: Sequence[Json], below: Below = both_of) -> Merged:
    """Schemas that must all hold as one; ``below`` joins those of one property, of items and of further properties."""
    if any(part is False for part in parts):
        return Merged(False, exact=True, empty=True)
    schemas = [part for part in parts if is_object(part)]
    exact = not refusing(schemas) and not any(_entangled(schemas, group) for group in _TOGETHER)
    schema: dict[str, Json] = {}
    left: list[tuple[str, Json]] = []
    empty = False
    for part in schemas:
        for key, value in part.items():
            if key not in schema:
                schema[key] = value
            elif (merged := _merge_keyword(key, schema[key], value, below)) is not None:
                schema[key], sure = merged
                exact = exact and sure
            else:
                left.append((key, value))
                exact = exact and not is_constraint(key)
                empty = empty or key in ("type", "enum")
    return Merged(schema, exact, tuple(left), empty)


def is_constraint(key: str) -> bool:
    """Whether a keyword may refuse a value."""
    return key not in ANNOTATIONS and key not in SILENT and not key.startswith("x-")


def types_of(node: dict[str, Json]) -> tuple[str, ...]:
    """The types that a schema names, of JSON's; empty where it names none."""
    kind = node.get("type")
    named = kind if is_list(kind) else [kind]
    return tuple(dict.fromkeys(name for name in named if isinstance(name, str) and name in JSON_TYPES))


def refusing(parts: Sequence[Json]) -> list[dict[str, Json]]:
    """The parts that refuse, by what they say of undeclared names, a property that another part declares."""
    schemas = [part for part in parts if is_object(part)]
    closing = [
        part
        for part in schemas
        if any(part.get(key, True) is not True for key in ("additionalProperties", "unevaluatedProperties"))
    ]
    if not closing or len(schemas) == 1:
        return []
    declared = set[tuple[str, str]]().union(*map(_declared, schemas))
    return [part for part in closing if "unevaluatedProperties" in part or _declared(part) != declared]


def _declared(part: dict[str, Json]) -> set[tuple[str, str]]:
    return {
        (key, name)
        for key in ("properties", "patternProperties")
        for names in [part.get(key)]
        if is_object(names)
        for name in names
    }


def _entangled(parts: Sequence[dict[str, Json]], group: frozenset[str]) -> bool:
    """Whether keywords that mean something only together stand in several parts; ``items`` alone can be joined."""
    having = [group.intersection(part) for part in parts if not group.isdisjoint(part)]
    return len(having) > 1 and any(names != frozenset(("items",)) for names in having)


def _merge_keyword(key: str, one: Json, other: Json, below: Below) -> tuple[Json, bool] | None:
    """What two values of a keyword say together; None where one value cannot say it, or nothing fits both."""
    if json_equal(one, other):
        return one, True
    if key == "properties" and is_object(one) and is_object(other):
        merged = {name: _merge_below(one[name], other[name], below) for name in one if name in other}
        properties = {**one, **other, **{name: schema for name, (schema, _) in merged.items()}}
        return properties, all(sure for _, sure in merged.values())
    if key in ("items", "additionalProperties") and not is_list(one) and not is_list(other):
        return _merge_below(one, other, below)
    if key == "required" and is_list(one) and is_list(other):
        return list(dict.fromkeys(str(name) for name in (*one, *other))), True
    if key == "type":
        return _merge_types(types_of({"type": one}), types_of({"type": other}))
    if key == "enum" and is_list(one) and is_list(other):
        values = [value for value in one if enum_has(other, value)]
        return (values, True) if values else None
    if isinstance(one, int | float) and isinstance(other, int | float):
        if key in _LARGEST:
            return max(one, other), True
        if key in _SMALLEST:
            return min(one, other), True
    return None


def _merge_below(one: Json, other: Json, below: Below) -> tuple[Json, bool]:
    if isinstance(one, bool) or isinstance(other, bool):
        return (False, True) if one is False or other is False else (other if one is True else one, True)
    return (one, True) if json_equal(one, other) else below(one, other)


def _merge_types(ours: tuple[str, ...], theirs: tuple[str, ...]) -> tuple[Json, bool] | None:
    """The types that both allow; an integer is a number."""
    names = [name for name in ours if name in theirs or (name == "integer" and "number" in theirs)]
    names += [name for name in theirs if name == "integer" and "number" in ours and name not in names]
    if not names:
        return None
    return names[0] if len(names) == 1 else list[Json](names), True
