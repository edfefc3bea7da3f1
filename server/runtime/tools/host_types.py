"""The names of types as hosts write them (``string[]``, ``number | null``, ``'a' | 'b'``) as JSON Schemas.

A name that says nothing to JSON (``GenerateTreeOptions``) gives a schema that takes anything and tells the name. Pure.
"""

from __future__ import annotations

import json
from typing import Any

_NAMES = {
    "string": ("string", "str", "text", "char", "path"),
    "number": ("number", "float", "double", "decimal"),
    "integer": ("integer", "int", "long", "bigint"),
    "boolean": ("boolean", "bool"),
    "object": ("object", "dict", "map", "record", "json"),
    "array": ("array", "list"),
    "null": ("null", "none", "undefined", "void"),
}
_KINDS: dict[str, dict[str, Any]] = {name: {"type": kind} for kind, names in _NAMES.items() for name in names}
_ANYTHING = ("any", "unknown", "mixed", "")
_LISTS = ("array", "list", "readonlyarray", "set", "iterable")
_WRAPPERS = ("promise", "readonly", "optional", "partial", "awaited")
_MAX_DEPTH = 8
_MAX_CHARS = 2_000


def schema_of_type(text: str) -> dict[str, Any]:
    """The schema of a type's name; never raises."""
    return _schema(text.strip()[:_MAX_CHARS], 0)


def _schema(text: str, depth: int) -> dict[str, Any]:
    text = _bare(text)
    known = _KINDS.get(text.lower())
    if known is not None:
        return dict(known)
    if text.lower() in _ANYTHING:
        return {}
    if depth < _MAX_DEPTH:
        made = _composed(text, depth)
        if made is not None:
            return made
    return {"description": text[:200]}


def _composed(text: str, depth: int) -> dict[str, Any] | None:
    options = _split(text, "|")
    if len(options) > 1:
        return _union(options, depth)
    if text.endswith("[]"):
        return {"type": "array", "items": _schema(text[:-2], depth + 1)}
    if text.endswith("?"):
        return _schema(text[:-1], depth + 1)
    literal = _literal(text)
    if literal is not None:
        return {"const": literal[0]}
    name, opening, inner = text.partition("<") if text.endswith(">") else text.partition("[")
    if not opening or text[-1] not in ">]":
        return {"type": "object"} if text.startswith("{") and text.endswith("}") else None
    parts = _split(inner[:-1], ",")
    kind = name.strip().lower()
    if kind in _LISTS and parts:
        return {"type": "array", "items": _schema(parts[0], depth + 1)}
    if kind in ("record", "map", "dict") and len(parts) == 2:
        return {"type": "object", "additionalProperties": _schema(parts[1], depth + 1) or True}
    if kind in _WRAPPERS and len(parts) == 1:
        return _schema(parts[0], depth + 1)
    return None


def _union(options: list[str], depth: int) -> dict[str, Any]:
    literals = [_literal(option) for option in options]
    if all(literal is not None for literal in literals):
        return {"enum": [literal[0] for literal in literals if literal is not None]}
    # `undefined` says that the parameter may be left out, which `required` says already
    schemas = [_schema(option, depth + 1) for option in options if option.strip().lower() not in ("undefined", "void")]
    if len(schemas) == 1:
        return schemas[0]
    kinds = [schema.get("type") for schema in schemas]
    if all(list(schema) == ["type"] for schema in schemas) and all(isinstance(kind, str) for kind in kinds):
        return {"type": list(dict.fromkeys(kinds))}
    return {"anyOf": schemas}


def _literal(text: str) -> tuple[Any] | None:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"`":
        return (text[1:-1],)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return (value,) if isinstance(value, (int, float, bool)) else None


def _bare(text: str) -> str:
    """The text without blanks and without parentheses around the whole."""
    text = text.strip()
    while text.startswith("(") and text.endswith(")") and _closes_at_end(text):
        text = text[1:-1].strip()
    return text


def _closes_at_end(text: str) -> bool:
    depth = 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return at == len(text) - 1
    return False


def _split(text: str, separator: str) -> list[str]:
    """Parts of a type between separators that stand in no brackets and no quotes."""
    parts: list[str] = []
    depth, start, quote = 0, 0, ""
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"`":
            quote = char
        elif char in "<([{":
            depth += 1
        elif char in ">)]}":
            depth -= 1
        elif char == separator and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]
