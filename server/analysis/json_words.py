"""JSON Schema's own keywords (draft 2020-12) as a schema with descriptions, for completion and hover inside ``parameters``.

Only what authors of tool parameters write; whether an embedded schema is valid is decided elsewhere.
"""

from __future__ import annotations

from typing import Any

_SCHEMA = {"$ref": "#/$defs/schema"}
_TYPES = ["string", "number", "integer", "boolean", "array", "object", "null"]
_FORMATS = [
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "uuid",
    "regex",
]


def _word(description: str, **schema: Any) -> dict[str, Any]:
    return {"description": description, **schema}


_COUNT = {"type": "integer", "minimum": 0}
_KEYWORDS: dict[str, dict[str, Any]] = {
    "type": _word("The type of the value.", enum=_TYPES),
    "description": _word("What the value means; the model reads it.", type="string"),
    "properties": _word("The named members of an object.", type="object", additionalProperties=_SCHEMA),
    "required": _word("The members that must be there.", type="array", items={"type": "string"}),
    "items": _word("The schema of every item of a list.", type="object", allOf=[_SCHEMA]),
    "enum": _word("The values that are allowed.", type="array"),
    "default": _word("What is meant when the value is left out."),
    "const": _word("The only value that is allowed."),
    "additionalProperties": _word("Whether other members are allowed, or what they must be.", type="boolean"),
    "title": _word("A short name.", type="string"),
    "examples": _word("Values to show.", type="array"),
    "format": _word("A format of text; checked, with a warning.", enum=_FORMATS),
    "pattern": _word("A regular expression that the text must match somewhere.", type="string"),
    "minLength": _word("The least number of characters.", **_COUNT),
    "maxLength": _word("The greatest number of characters.", **_COUNT),
    "minimum": _word("The smallest number.", type="number"),
    "maximum": _word("The greatest number.", type="number"),
    "exclusiveMinimum": _word("The number must be greater than this.", type="number"),
    "exclusiveMaximum": _word("The number must be smaller than this.", type="number"),
    "multipleOf": _word("The number must be a multiple of this.", type="number"),
    "minItems": _word("The least number of items.", **_COUNT),
    "maxItems": _word("The greatest number of items.", **_COUNT),
    "uniqueItems": _word("Whether all items must differ.", type="boolean"),
    "prefixItems": _word("The schemas of the first items.", type="array", items=_SCHEMA),
    "contains": _word("What at least one item must be.", type="object", allOf=[_SCHEMA]),
    "minProperties": _word("The least number of members.", **_COUNT),
    "maxProperties": _word("The greatest number of members.", **_COUNT),
    "patternProperties": _word("Members whose names match.", type="object", additionalProperties=_SCHEMA),
    "propertyNames": _word("What the members' names must be.", type="object", allOf=[_SCHEMA]),
    "anyOf": _word("At least one of these must hold.", type="array", items=_SCHEMA),
    "oneOf": _word("Exactly one of these must hold.", type="array", items=_SCHEMA),
    "allOf": _word("All of these must hold.", type="array", items=_SCHEMA),
    "not": _word("This must not hold.", type="object", allOf=[_SCHEMA]),
    "if": _word("When this holds, `then` must, else `else`.", type="object", allOf=[_SCHEMA]),
    "then": _word("Must hold when `if` does.", type="object", allOf=[_SCHEMA]),
    "else": _word("Must hold when `if` does not.", type="object", allOf=[_SCHEMA]),
    "$ref": _word("Another schema of this file, such as `#/$defs/name`.", type="string"),
    "$defs": _word("Schemas to refer to.", type="object", additionalProperties=_SCHEMA),
    "deprecated": _word("Whether the value should no longer be given.", type="boolean"),
    "x-secret": _word("Masks the value in logs, observations and records.", type="boolean"),
}

META: dict[str, Any] = {
    "$ref": "#/$defs/schema",
    "$defs": {"schema": {"type": "object", "properties": _KEYWORDS}},
}

PROFILE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "tool_ids_inventory": _word(
            "The ids of the tools that the agent may use (seed 004 §2.1).", type="array", items={"type": "string"}
        ),
        "toolCallConfig": {
            "type": "object",
            "description": "How the agent's calls are handled; without it tool calls are off (ruling 42).",
            "properties": {
                "enabled": _word("Whether the agent may call tools.", type="boolean", default=False),
                "mode": _word("Whether calls run by themselves or wait for a person.", enum=["auto", "manual"]),
                "toolToggles": _word(
                    "Switches single tools on or off, by id.", type="object", additionalProperties={"type": "boolean"}
                ),
                "defaultToolEnabled": _word("What holds for tools without a toggle.", type="boolean", default=True),
                "maxIterations": _word("How many rounds with calls are allowed.", type="integer", default=5),
                "timeout": _word("Time for one call, in milliseconds.", type="integer", default=30000),
                "requireConfirmation": _word("Whether a person is asked before a call.", type="boolean", default=False),
                "parallelExecution": _word("Whether calls of one round run at once.", type="boolean", default=False),
                "protocol": _word("How the agent writes its calls.", enum=["vcp", "action", "tam"], default="vcp"),
            },
        },
    },
}
"""What an agent profile holds that counts here; it has other fields of its host."""
