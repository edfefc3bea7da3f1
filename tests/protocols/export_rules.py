"""What each provider's interface refuses in a tool definition, written down apart from the code that exports (interop §2.2, §2.3)."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from typing import Any

NAMES = {
    "mcp": re.compile(r"[A-Za-z0-9_-]{1,64}"),
    "openai": re.compile(r"[A-Za-z0-9_-]{1,64}"),
    "openaiStrict": re.compile(r"[A-Za-z0-9_-]{1,64}"),
    "anthropic": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    "gemini": re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}"),
    "cursor": re.compile(r"[A-Za-z0-9_]{1,54}"),
    "smolagents": re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}"),
}
_NAMED = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_ONE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_MANY = ("anyOf", "oneOf", "allOf", "prefixItems")


def schemas(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every schema in a schema with its place."""
    yield path, node
    if not isinstance(node, dict):
        return
    for key, value in node.items():
        if key in _NAMED and isinstance(value, dict):
            for name, part in value.items():
                yield from schemas(part, f"{path}/{key}/{name}")
        elif key in _MANY and isinstance(value, list):
            for i, part in enumerate(value):
                yield from schemas(part, f"{path}/{key}/{i}")
        elif key in _ONE and isinstance(value, dict | bool):
            yield from schemas(value, f"{path}/{key}")


def faults(target: str, definition: dict[str, Any]) -> list[str]:
    """Why a provider would refuse a definition; empty when it would not."""
    body = definition.get("function", definition)
    found = [] if NAMES[target].fullmatch(body["name"]) else [f"name {body['name']!r}"]
    if not isinstance(body.get("description"), str):
        found.append("no description")
    return found + list(_OF[target](body))


def _mcp(body: dict[str, Any]) -> Iterator[str]:
    if body["inputSchema"].get("type") != "object":
        yield "inputSchema is no object"
    if "outputSchema" in body and body["outputSchema"].get("type") != "object":
        yield "outputSchema is no object"
    if "dev.tamis/toolId" not in body["_meta"]:
        yield "the original id is not kept"


def _openai(body: dict[str, Any]) -> Iterator[str]:
    if len(body["description"]) > 1024:
        yield "the description is too long"
    root = body["parameters"]
    if root.get("type") != "object":
        yield "the root is no object"
    yield from (f"{key} at the root" for key in ("oneOf", "anyOf", "allOf", "enum", "not") if key in root)
    for path, node in schemas(root):
        if isinstance(node, dict) and node.get("type") == "array" and "items" not in node:
            yield f"{path}: an array without items"


_STRICT_WORDS = frozenset(
    (
        *("type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "$ref", "$defs"),
        *("title", "description", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("multipleOf", "minItems", "maxItems"),
    )
)


def _strict(body: dict[str, Any]) -> Iterator[str]:
    yield from _openai(body)
    if body.get("strict") is not True:
        yield "not strict"
    for path, node in schemas(body["parameters"]):
        if isinstance(node, bool):
            if not path.endswith("/additionalProperties"):
                yield f"{path}: a boolean schema"
            continue
        yield from (f"{path}: {key}" for key in node if key not in _STRICT_WORDS)
        if "$ref" in node:
            if len(node) > 1:
                yield f"{path}: words beside $ref"
            if node["$ref"].removeprefix("#/$defs/") not in body["parameters"].get("$defs", {}):
                yield f"{path}: {node['$ref']} leads nowhere"
            continue
        if "type" not in node and "anyOf" not in node:
            yield f"{path}: no type"
        kinds = node.get("type") if isinstance(node.get("type"), list) else [node.get("type")]
        if "object" in kinds:
            if node.get("additionalProperties") is not False:
                yield f"{path}: an open object"
            if sorted(node.get("required", [])) != sorted(node.get("properties", {})):
                yield f"{path}: not all properties are required"
        if "array" in kinds and not isinstance(node.get("items"), dict):
            yield f"{path}: an array without items"


def _anthropic(body: dict[str, Any]) -> Iterator[str]:
    root = body["input_schema"]
    if root.get("type") != "object":
        yield "the root is no object"
    yield from (f"{key} at the root" for key in ("oneOf", "anyOf", "allOf", "$ref") if key in root)


_GEMINI_WORDS = frozenset(
    (
        *("type", "format", "title", "description", "nullable", "enum", "items", "minItems", "maxItems", "properties"),
        *("required", "minimum", "maximum", "minLength", "maxLength", "pattern", "minProperties", "maxProperties"),
        *("anyOf", "default"),
    )
)


def _gemini(body: dict[str, Any]) -> Iterator[str]:
    for path, node in schemas(body.get("parameters", {"type": "object", "properties": {"x": {"type": "string"}}})):
        if isinstance(node, bool):
            yield f"{path}: a boolean schema"
            continue
        yield from (f"{path}: {key}" for key in node if key not in _GEMINI_WORDS)
        if "anyOf" in node:
            if set(node) != {"anyOf"}:
                yield f"{path}: words beside anyOf"
            continue
        kind = node.get("type")
        if kind not in ("string", "number", "integer", "boolean", "array", "object"):
            yield f"{path}: type {kind!r}"
        if kind == "object" and not node.get("properties"):
            yield f"{path}: an object without properties"
        if kind == "array" and not isinstance(node.get("items"), dict):
            yield f"{path}: an array without items"
        if node.get("format") not in (None, "enum", "date-time"):
            yield f"{path}: format {node['format']}"
        values = node.get("enum")
        if values is not None and (kind != "string" or not all(isinstance(v, str) and v for v in values)):
            yield f"{path}: enum {values}"
        yield from (
            f"{path}: {name} is required and not there"
            for name in node.get("required", [])
            if name not in node["properties"]
        )


_SMOL_TYPES = {"string", "boolean", "integer", "number", "image", "audio", "array", "object", "any", "null"}


def _smolagents(body: dict[str, Any]) -> Iterator[str]:
    """As `Tool.validate_arguments` judges the attributes of a tool (smolagents, src/smolagents/tools.py)."""
    if keyword.iskeyword(body["name"]):
        yield "the name is a reserved word"
    if body["output_type"] not in _SMOL_TYPES:
        yield f"output type {body['output_type']}"
    for name, schema in body["inputs"].items():
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not kinds or set(kinds) - _SMOL_TYPES:
            yield f"{name}: type {kinds}"
        if not isinstance(schema["description"], str):
            yield f"{name}: no description"


_OF = {
    "cursor": _mcp,
    "smolagents": _smolagents,
    "mcp": _mcp,
    "openai": _openai,
    "openaiStrict": _strict,
    "anthropic": _anthropic,
    "gemini": _gemini,
}
