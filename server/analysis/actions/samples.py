"""A value to begin with for a schema: what is written where an argument is missing. Must not know where it is written."""

from __future__ import annotations

import json

from tamis.protocols.model import Json
from tamis.protocols.schema.words import is_list, is_object

_LEAST: dict[str, Json] = {"boolean": False, "array": [], "object": {}, "null": None, "string": ""}


def sample_value(schema: Json) -> Json:
    """The constant, the default, an example, the first choice, or the least of the schema's type."""
    if not is_object(schema):
        return ""
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    for key in ("examples", "enum"):
        values = schema.get(key)
        if is_list(values) and values:
            return values[0]
    kind = schema.get("type")
    if is_list(kind):
        kind = next((one for one in kind if one != "null"), "null")
    if kind in ("integer", "number"):
        least = schema.get("minimum")
        return least if isinstance(least, int | float) and not isinstance(least, bool) else 0
    return _LEAST.get(str(kind), "")


def sample(schema: Json) -> str:
    """The same as it is written in a call: a text as it is, anything else as JSON."""
    value = sample_value(schema)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
