"""JSON Schema's own keywords (2020-12 and draft-07) as schemas with descriptions, for completion and hover inside ``parameters``.

Only what authors of tool parameters write; whether an embedded schema is valid is decided elsewhere.
"""

from __future__ import annotations

from typing import Any

from tamis.protocols.manifest.json_schema import DRAFT_07, SCHEMAS
from tamis.protocols.manifest.profile import MAX_TIMEOUT_MS
from tamis.protocols.plugins import BUILT_IN
from tamis.protocols.schema.words import DRAFT_2020_12, OF_NUMBERS, OF_STRINGS

_SCHEMA = {"$ref": "#/$defs/schema"}
_TYPES = ["string", "number", "integer", "boolean", "array", "object", "null"]
_TYPE_ONLY = {"type": "${1|string,integer,number,boolean,array,object|}"}
_TYPE_STOP = "${2|string,integer,number,boolean,array,object|}"
_SCHEMA_SNIPPET = {"type": _TYPE_STOP, "description": "$3"}
_PROPERTY = {**_TYPE_ONLY, "description": "$2"}
FORMATS = {
    "date-time": "A date with a time and a zone: 2026-01-31T10:00:00Z.",
    "date": "A day: 2026-01-31.",
    "time": "A time of day with a zone: 10:00:00Z.",
    "duration": "A span of time: P1DT2H.",
    "email": "An e-mail address.",
    "idn-email": "An e-mail address in any script.",
    "hostname": "A host name.",
    "idn-hostname": "A host name in any script.",
    "ipv4": "An address such as 192.0.2.1.",
    "ipv6": "An address such as 2001:db8::1.",
    "uri": "An absolute URI.",
    "uri-reference": "A URI, absolute or relative.",
    "iri": "An absolute URI in any script.",
    "iri-reference": "A URI in any script, absolute or relative.",
    "uri-template": "A template for URIs (RFC 6570).",
    "uuid": "A UUID.",
    "json-pointer": "A JSON Pointer: /a/0.",
    "relative-json-pointer": "A JSON Pointer from a place: 1/a.",
    "regex": "A regular expression.",
}
_NOT_IN_07 = frozenset({"duration", "uuid"})


def _word(description: str, **schema: Any) -> dict[str, Any]:
    return {"description": description, **schema}


def _body(body: Any) -> list[dict[str, Any]]:
    return [{"body": body}]


_COUNT = {"type": "integer", "minimum": 0}
_PART = {"type": ["object", "boolean"], "allOf": [_SCHEMA], "defaultSnippets": _body(_TYPE_ONLY)}
_PARTS = {"type": "array", "items": _SCHEMA}
_NAMED = {
    "type": "object",
    "additionalProperties": _SCHEMA,
    "defaultSnippets": _body({"${1:name}": _SCHEMA_SNIPPET}),
}
_COMMON: dict[str, dict[str, Any]] = {
    "type": _word(
        "The type of the value; several in a list.",
        anyOf=[{"enum": _TYPES}, {"type": "array", "uniqueItems": True, "items": {"enum": _TYPES}}],
    ),
    "description": _word("What the value means; the model reads it.", type="string"),
    "properties": _word("The named members of an object.", **_NAMED),
    "required": _word(
        "The members that must be there.",
        type="array",
        uniqueItems=True,
        items={"type": "string"},
    ),
    "items": _word("The schema of every item of a list.", **_PART),
    "enum": _word("The values that are allowed.", type="array", uniqueItems=True),
    "default": _word("What is meant when the value is left out."),
    "const": _word("The only value that is allowed."),
    "additionalProperties": _word(
        "Whether other members are allowed, or what they must be.",
        type=["boolean", "object"],
        allOf=[_SCHEMA],
        defaultSnippets=_body(False),
    ),
    "title": _word("A short name.", type="string"),
    "examples": _word("Values to show.", type="array"),
    "format": _word("A format of text; checked, with a warning."),
    "pattern": _word("A regular expression that the text must match somewhere.", type="string"),
    "minLength": _word("The least number of characters.", **_COUNT),
    "maxLength": _word("The greatest number of characters.", **_COUNT),
    "minimum": _word("The smallest number.", type="number"),
    "maximum": _word("The greatest number.", type="number"),
    "exclusiveMinimum": _word("The number must be greater than this.", type="number"),
    "exclusiveMaximum": _word("The number must be smaller than this.", type="number"),
    "multipleOf": _word("The number must be a multiple of this.", type="number", exclusiveMinimum=0),
    "minItems": _word("The least number of items.", **_COUNT),
    "maxItems": _word("The greatest number of items.", **_COUNT),
    "uniqueItems": _word("Whether all items must differ.", type="boolean"),
    "contains": _word("What at least one item must be.", **_PART),
    "minProperties": _word("The least number of members.", **_COUNT),
    "maxProperties": _word("The greatest number of members.", **_COUNT),
    "patternProperties": _word(
        "Members whose names match.",
        type="object",
        additionalProperties=_SCHEMA,
        defaultSnippets=_body({"^${1:name}": {"type": _TYPE_STOP}}),
    ),
    "propertyNames": _word("What the members' names must be.", **_PART),
    "anyOf": _word("At least one of these must hold.", **_PARTS),
    "oneOf": _word("Exactly one of these must hold.", **_PARTS),
    "allOf": _word("All of these must hold.", **_PARTS),
    "not": _word("This must not hold.", **_PART),
    "if": _word("When this holds, `then` must, else `else`.", **_PART),
    "then": _word("Must hold when `if` does.", **_PART),
    "else": _word("Must hold when `if` does not.", **_PART),
    "$ref": _word("Another schema of this file, such as `#/$defs/name`.", type="string"),
    "contentEncoding": _word("How a text encodes bytes.", enum=["base64", "base32", "base16", "quoted-printable"]),
    "contentMediaType": _word(
        "The media type of what a text holds.", examples=["application/json", "text/markdown"], type="string"
    ),
    "readOnly": _word("Whether the value is never given.", type="boolean"),
    "writeOnly": _word("Whether the value is never shown.", type="boolean"),
    "$comment": _word("A note for people.", type="string"),
    "$schema": _word("The dialect of the schema; 2020-12 unless it says another.", type="string"),
    "$id": _word("The URI of the schema.", type="string"),
    "x-secret": _word(
        "Masks the value in logs, observations and records.", type="boolean", defaultSnippets=_body(True)
    ),
    "x-resource": _word(
        "The value may be a `fam://` URI that the tool writes to; the tool gets the path.",
        enum=["write"],
        defaultSnippets=_body("write"),
    ),
}
_ONLY_2020: dict[str, dict[str, Any]] = {
    "prefixItems": _word("The schemas of the first items.", **_PARTS),
    "minContains": _word("How many items `contains` must fit at least.", **_COUNT),
    "maxContains": _word("How many items `contains` may fit at most.", **_COUNT),
    "dependentRequired": _word(
        "Members that another member calls for.",
        type="object",
        additionalProperties={"type": "array", "items": {"type": "string"}},
    ),
    "dependentSchemas": _word(
        "Schemas that a member's presence calls for.", type="object", additionalProperties=_SCHEMA
    ),
    "unevaluatedItems": _word(
        "What items must be that nothing else has judged.", type=["boolean", "object"], allOf=[_SCHEMA]
    ),
    "unevaluatedProperties": _word(
        "What members must be that nothing else has judged.", type=["boolean", "object"], allOf=[_SCHEMA]
    ),
    "$defs": _word("Schemas to refer to.", **_NAMED),
    "$anchor": _word("A name for this schema, for `#name`.", type="string"),
    "$dynamicRef": _word("A reference that a schema around it may redirect.", type="string"),
    "$dynamicAnchor": _word("The name that a `$dynamicRef` finds.", type="string"),
    "contentSchema": _word("The schema of what a text holds.", **_PART),
    "deprecated": _word("Whether the value should no longer be given.", type="boolean", defaultSnippets=_body(True)),
}
_ONLY_07: dict[str, dict[str, Any]] = {
    "items": _word(
        "The schema of every item of a list, or of its first items one by one.",
        type=["object", "boolean", "array"],
        allOf=[_SCHEMA],
        items=_SCHEMA,
        defaultSnippets=_body(_TYPE_ONLY),
    ),
    "additionalItems": _word("What items must be behind those that `items` lists.", **_PART),
    "definitions": _word("Schemas to refer to.", **_NAMED),
    "dependencies": _word(
        "Members or schemas that a member's presence calls for.", type="object", additionalProperties=_SCHEMA
    ),
    "$ref": _word("Another schema of this file, such as `#/definitions/name`.", type="string"),
}


def _formats(names: list[str]) -> dict[str, Any]:
    return {**_COMMON["format"], "enum": names, "enumDescriptions": [FORMATS[name] for name in names]}


def _meta(words: dict[str, dict[str, Any]]) -> dict[str, Any]:
    schema = {"type": "object", "properties": words, "defaultSnippets": _body(_PROPERTY)}
    return {"$ref": "#/$defs/schema", "$defs": {"schema": schema}}


META: dict[str, Any] = _meta({**_COMMON, **_ONLY_2020, "format": _formats(list(FORMATS))})
"""The keywords of draft 2020-12."""
META_07: dict[str, Any] = _meta(
    {**_COMMON, **_ONLY_07, "format": _formats([name for name in FORMATS if name not in _NOT_IN_07])}
)
"""The keywords of draft-07."""
DIALECTS = (
    (DRAFT_2020_12, "draft 2020-12, the dialect of manifests"),
    ("http://json-schema.org/draft-07/schema#", "draft-07"),
)
"""What ``$schema`` of an embedded schema may say."""

_ARRAY = (
    "items",
    "minItems",
    "maxItems",
    "uniqueItems",
    "prefixItems",
    "additionalItems",
    "contains",
    "minContains",
    "maxContains",
    "unevaluatedItems",
)
_OBJECT = (
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
)
KEYWORDS_OF: dict[str, tuple[str, ...]] = {
    "string": OF_STRINGS,
    "number": OF_NUMBERS,
    "integer": OF_NUMBERS,
    "array": _ARRAY,
    "object": _OBJECT,
    "boolean": (),
    "null": (),
}
"""The keywords that say something about values of one type alone."""

PROFILE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "tool_ids_inventory": _word(
            "The ids of the tools that the agent may use.", type="array", items={"type": "string"}
        ),
        "toolCallConfig": {
            "type": "object",
            "description": "How the agent's calls are handled; without it tool calls are off.",
            "properties": {
                "enabled": _word("Whether the agent may call tools.", type="boolean", default=False),
                "mode": _word("Whether calls run by themselves or wait for a person.", enum=["auto", "manual"]),
                "toolToggles": _word(
                    "Switches single tools on or off, by id.", type="object", additionalProperties={"type": "boolean"}
                ),
                "defaultToolEnabled": _word("What holds for tools without a toggle.", type="boolean", default=True),
                "maxIterations": _word(
                    "How many rounds with calls are allowed.", type="integer", default=5, minimum=1, maximum=1000
                ),
                "timeout": _word(
                    "Time for one call, in milliseconds.",
                    type="integer",
                    default=30000,
                    minimum=1,
                    maximum=MAX_TIMEOUT_MS,
                ),
                "requireConfirmation": _word("Whether a person is asked before a call.", type="boolean", default=False),
                "parallelExecution": _word("Whether calls of one round run at once.", type="boolean", default=False),
                "protocol": _word(
                    "How the agent writes its calls (default: the setting protocol.default).",
                    enum=list(BUILT_IN),
                ),
            },
        },
    },
}
"""What an agent profile holds that counts here; it has other fields of its host."""
PROFILE_FILE = "agent_profile.schema.json"
"""The published file, in ``schemas/``."""


def profile_schema() -> dict[str, Any]:
    """``PROFILE`` as a file for editors that know only JSON Schema."""
    return {"$schema": DRAFT_07, "$id": f"{SCHEMAS}agent-profile/v1.json", "title": "Agent profile", **PROFILE}
