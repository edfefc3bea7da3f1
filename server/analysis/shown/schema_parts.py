"""Small questions to a parameter's schema: which types it allows, what its parts are. Must not judge values."""

from __future__ import annotations

from typing import Any, cast

from tamis.protocols.model import Json
from tamis.protocols.schema.words import index_in, is_list, is_object, resolve

Schema = dict[str, Any]
_MAX_STEPS = 16


def resolved(schema: object, root: object) -> Schema:
    """A schema with its reference into the same file followed; empty where there is none."""
    here: Any = schema
    for _ in range(_MAX_STEPS):
        if not is_object(here):
            return {}
        ref = here.get("$ref")
        if not (isinstance(ref, str) and ref.startswith("#/")):
            return cast("Schema", here)
        try:
            target = resolve(cast("Json", root), ref)
        except KeyError:
            return {}
        here = (
            {**cast("Schema", target), **{key: value for key, value in here.items() if key != "$ref"}}
            if is_object(target)
            else {}
        )
    return {}


def types_of(schema: Schema) -> frozenset[str]:
    """The types that a schema names, also in its branches; empty where it names none."""
    kinds: set[str] = set()
    pending: list[Any] = [schema]
    for _ in range(_MAX_STEPS):
        if not pending:
            break
        here = pending.pop()
        if not is_object(here):
            continue
        kind = here.get("type")
        if isinstance(kind, str):
            kinds.add(kind)
        elif is_list(kind):
            kinds.update(item for item in kind if isinstance(item, str))
        else:
            listed = [here["const"]] if "const" in here else here.get("enum")
            kinds.update(_type_of(value) for value in (listed if is_list(listed) else []))
            for key in ("anyOf", "oneOf", "allOf"):
                parts = here.get(key)
                pending.extend(parts if is_list(parts) else [])
    return frozenset(kinds)


def _type_of(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    return "null" if value is None else "object" if is_object(value) else "array" if is_list(value) else "string"


def part(schema: Schema, token: str, root: object) -> Schema:
    """The schema of a member or, for a number, of an item."""
    properties = schema.get("properties")
    if is_object(properties) and token in properties:
        return resolved(properties[token], root)
    if token.isdigit():
        prefix = schema.get("prefixItems")
        if is_list(prefix) and (index := index_in(prefix, token)) >= 0:
            return resolved(prefix[index], root)
        return resolved(schema.get("items"), root)
    return resolved(schema.get("additionalProperties"), root)


def choices_of(schema: Schema) -> list[object]:
    """The values that a schema lists."""
    listed = [schema["const"]] if "const" in schema else schema.get("enum")
    return cast("list[object]", listed) if is_list(listed) else []


def told(schema: Schema) -> Schema:
    """A schema without the values that a secret one holds: they are never shown (as in prompts)."""
    if schema.get("x-secret") is not True:
        return schema
    return {key: value for key, value in schema.items() if key not in ("default", "const", "enum", "examples")}
