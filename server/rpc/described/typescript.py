"""TypeScript declarations of everything on the wire (``schemas/tamis.d.ts``), made from its JSON Schemas.

Knows the keywords that the Structs' schemas have and no others: an unknown one is an error, not a guess.
"""

from __future__ import annotations

import json
import re
from typing import Any, cast

from tamis.protocols.messages import NOTIFICATIONS, REQUESTS
from tamis.server.rpc.described.methods import described, plain
from tamis.server.rpc.described.schemas import PREFIX, Schema, schemas
from tamis.server.rpc.params import Group
from tamis.server.rpc.session import MEANINGS, numbers

_HEAD = """\
// What goes over the wire between Tamis and a host. Written from the Structs by tools/published_contract.py.

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
"""
_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_NAME = re.compile(r"[A-Za-z_$][\w$]*")
# What narrows a type without changing what TypeScript can say of it.
_WORDS = {"description", "title", "default", "format", "pattern", "required", "additionalProperties", "propertyNames"}
_BOUNDS = {
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
}
_KNOWN = _WORDS | _BOUNDS | {"type", "$ref", "anyOf", "enum", "const", "items", "prefixItems", "properties"}


def declarations(declared: Group) -> str:
    """The text of the declaration file."""
    methods = described(declared)
    schema_set = schemas(methods)
    parts = [_HEAD, *(_interface(name, part) for name, part in schema_set.parts.items())]

    def entry(name: str, words: str, fields: dict[str, Schema]) -> str:
        inner = "; ".join(f"{field}: {type_of(schema)}" for field, schema in fields.items())
        return f"{_comment(words, '  ')}  {_quoted(name)}: {{ {inner} }};\n"

    empty: Schema = {"type": "object", "additionalProperties": False}
    parts.append(
        "/** The methods of the daemon. */\nexport interface Methods {\n"
        + "".join(
            entry(
                method.name,
                method.summary,
                {"params": schema_set.params.get(method.name, empty), "result": schema_set.results[method.name]},
            )
            for method in methods
        )
        + "}\n"
    )
    parts.append(
        "/** What the daemon tells by itself. */\nexport interface Notifications {\n"
        + "".join(
            entry(name, _words(notification.params), {"params": schema_set.params[name]})
            for name, notification in NOTIFICATIONS.items()
        )
        + "}\n"
    )
    parts.append(
        "/** What the daemon asks the host. */\nexport interface Requests {\n"
        + "".join(
            entry(name, _words(request.params), {"params": schema_set.params[name], "result": schema_set.results[name]})
            for name, request in REQUESTS.items()
        )
        + "}\n"
    )
    codes = "".join(f"{_comment(MEANINGS.get(name, ''), '  ')}  {name}: {code};\n" for name, code in numbers().items())
    parts.append(f"/** The numbers of errors by name. */\nexport interface ErrorCodes {{\n{codes}}}\n")
    parts.append(
        "/** `data` of the project's own errors. */\n"
        "export interface ErrorData { code: keyof ErrorCodes; retryable: boolean; hint: string }\n"
    )
    return "\n".join(parts)


def type_of(schema: Any) -> str:
    """A schema as a type expression. Raises ``ValueError`` for a keyword that it does not know."""
    members = cast("Schema", schema)
    unknown = members.keys() - _KNOWN
    if unknown:
        raise ValueError(f"a schema on the wire uses {sorted(unknown)}, which have no TypeScript form here")
    if "$ref" in members:
        return str(members["$ref"]).removeprefix(PREFIX)
    if "anyOf" in members:
        return " | ".join(dict.fromkeys(type_of(item) for item in members["anyOf"]))
    if "enum" in members or "const" in members:
        values = members["enum"] if "enum" in members else [members["const"]]
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)
    kind = members.get("type")
    if kind == "array":
        return _array(members)
    if kind == "object":
        return _object(members)
    return "Json" if kind is None else _PLAIN[kind]


def _array(schema: Schema) -> str:
    if "prefixItems" in schema:
        return f"[{', '.join(type_of(prefix_item) for prefix_item in schema['prefixItems'])}]"
    inner = type_of(schema["items"]) if schema.get("items") else "Json"
    return f"({inner})[]" if "|" in inner else f"{inner}[]"


def _object(schema: Schema) -> str:
    below = schema.get("additionalProperties", True)
    if "properties" in schema:
        required = schema.get("required", ())
        fields = (
            f"{_quoted(name)}{'' if name in required else '?'}: {type_of(item)}"
            for name, item in schema["properties"].items()
        )
        return f"{{ {'; '.join(fields)} }}"
    if below is False:
        return "{ [name: string]: never }"
    return f"{{ [name: string]: {'Json' if below is True or not below else type_of(below)} }}"


def _interface(name: str, part: Schema) -> str:
    required = part.get("required", ())
    lines: list[str] = []
    for field, schema in part["properties"].items():
        text = str(schema.get("description", ""))
        if "default" in schema:
            shown = json.dumps(schema["default"], ensure_ascii=False)
            text = f"{text} Default: `{shown}`.".strip() if len(shown) < 60 and schema["default"] is not None else text
        mark = "" if field in required else "?"
        lines.append(f"{_comment(text, '  ')}  {_quoted(field)}{mark}: {type_of(schema)};\n")
    return f"{_comment(str(part.get('description', '')), '')}export interface {name} {{\n{''.join(lines)}}}\n"


def _comment(text: str, indent: str) -> str:
    return f"{indent}/** {' '.join(text.replace('*/', '* /').split())} */\n" if text else ""


def _quoted(name: str) -> str:
    return name if _NAME.fullmatch(name) else json.dumps(name)


def _words(kind: type[Any]) -> str:
    return plain(kind.__doc__ or "")
