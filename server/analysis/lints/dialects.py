"""The keywords of JSON Schema that lints need to know: which dialect has them, what they are about, what stands below them.

Must not know findings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from tamis.protocols.jsontext.tree import JsonNode, Member
from tamis.protocols.schema.check import Draft
from tamis.protocols.schema.vocabulary import LISTS, MAPS, OF_LISTS, OF_NUMBERS, OF_OBJECTS, OF_STRINGS, SCHEMAS

Shape = Literal["schema", "schemas", "named"]
SHAPES: dict[str, Shape] = {
    **dict.fromkeys((*SCHEMAS, "items"), "schema"),
    **dict.fromkeys(LISTS, "schemas"),
    **dict.fromkeys((*MAPS, "dependencies"), "named"),
}
ABOUT: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(OF_NUMBERS, ("number", "integer")),
    **dict.fromkeys(OF_STRINGS, ("string",)),
    **dict.fromkeys(OF_LISTS, ("array",)),
    **dict.fromkeys(OF_OBJECTS, ("object",)),
}
"""What types of values a keyword says something about; keywords that are not in it are about any."""

NEW_KEYWORDS: dict[str, str] = {
    "prefixItems": "a list in 'items'",
    "dependentRequired": "'dependencies'",
    "dependentSchemas": "'dependencies'",
    "unevaluatedItems": "'additionalItems'",
    "unevaluatedProperties": "'additionalProperties'",
    "minContains": "",
    "maxContains": "",
    "$anchor": "'$id'",
    "$dynamicRef": "'$ref'",
    "$dynamicAnchor": "'$id'",
}
"""Keywords that draft-07 does not have, and what it has instead."""

CONSTRAINTS = frozenset((*ABOUT, "type", "enum", "const", "allOf", "anyOf", "oneOf", "not", "if"))
"""Keywords that refuse values; the others only describe."""

FORMATS = (
    *("date-time", "date", "time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6"),
    *("uri", "uri-reference", "iri", "iri-reference", "uri-template", "uuid", "json-pointer", "relative-json-pointer"),
    "regex",
)
# Formats of OpenAPI and of generators that say something to a reader, though no validator of JSON Schema checks them.
OTHER_FORMATS = frozenset(
    (
        *(
            "int32",
            "int64",
            "uint",
            "uint8",
            "uint16",
            "uint32",
            "uint64",
            "int8",
            "int16",
            "float",
            "double",
            "decimal",
        ),
        *("binary", "byte", "base64", "base64url", "password", "html", "markdown", "url", "path", "file-path", "enum"),
        *("directory-path", "file", "color", "phone", "json", "xml", "yaml", "csv", "sql", "textarea", "text", "code"),
        *("ip", "ipv4network", "ipv6network", "unix-time", "timestamp", "google-datetime", "google-duration"),
    )
)


def parts_of(node: JsonNode, draft: Draft) -> Iterator[tuple[Member, JsonNode]]:
    """The schemas and lists or maps of schemas directly below a schema, with the keyword's member."""
    for member in node.members:
        shape = SHAPES.get(member.key)
        value = member.value
        if shape is None or value is None or value.kind not in ("object", "array"):
            continue
        if shape == "schema" and value.kind == "array" and (member.key != "items" or draft == "2020-12"):
            continue
        yield member, value


def types_of(node: JsonNode) -> tuple[str, ...]:
    """The types that a schema names; empty where it names none."""
    named = node.get("type")
    if named is None:
        return ()
    items = named.items if named.kind == "array" else [named]
    return tuple(item.value for item in items if isinstance(item.value, str) and item.kind == "string")
