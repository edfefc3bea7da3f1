"""Which faults of an embedded schema the metaschema of draft-07 says too: what an editor's own JSON service tells with our schema.

The published schema for editors is draft-07's (``schemas/tool.schema.json``), whatever dialect a manifest's schemas name. Must not
judge schemas.
"""

from __future__ import annotations

from tamis.protocols.model import Diag

_MAPS = frozenset(("properties", "patternProperties", "definitions", "dependencies"))
_LISTS = frozenset(("allOf", "anyOf", "oneOf", "items", "enum", "required", "type", "examples"))
_SCHEMAS = frozenset(
    ("additionalItems", "contains", "additionalProperties", "propertyNames", "if", "then", "else", "not", "items")
)
_LEAVES = frozenset(
    (
        *("$id", "$schema", "$ref", "$comment", "title", "description", "readOnly", "multipleOf"),
        *("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength", "pattern"),
        *("maxItems", "minItems", "uniqueItems", "maxProperties", "minProperties", "format"),
        *("contentMediaType", "contentEncoding"),
    )
)
_BEYOND = ("is no regular expression", "leads nowhere", "leads back", "more than ", "an empty enum")
"""Words of faults that no metaschema sees."""


def metaschema_says(diag: Diag) -> bool:
    """Whether a finding on a schema (``VA450``) is one of its shape, below keywords that draft-07 has."""
    reason = str(diag.args.get("reason", ""))
    tokens = str(diag.data.get("path", "")).split("/")[2:]
    if diag.code != "VA450" or any(words in reason for words in _BEYOND):
        return False
    if tokens[-1:] == ["items"] and ", not [" in reason:
        return False  # a list of schemas, which draft-07 has
    at = 0
    while at < len(tokens):
        word = tokens[at]
        numbered = tokens[at + 1 : at + 2] and tokens[at + 1].isdecimal()
        if word in _MAPS:
            at += 2
            if word == "dependencies" and tokens[at : at + 1] and tokens[at].isdecimal():
                at += 1
        elif word in _LISTS and numbered:
            at += 2
        elif word in _SCHEMAS or word in _LISTS or word in _LEAVES:
            at += 1
        else:
            return False
    return True
