"""The keywords of JSON Schema: which hold schemas, and which say something of the values of one type.

The one table of it. Who serves only a part of them says what it leaves out. Must not know what anybody does with a schema.
"""

from __future__ import annotations

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
