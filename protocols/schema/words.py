"""Shared words of schema checking: findings, JSON types and their names, equality, excerpts.

Must not know manifests, calls or documents.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    found = type_of(value)
    if found == name:
        return True
    if name == "number":
        return found == "integer"
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
