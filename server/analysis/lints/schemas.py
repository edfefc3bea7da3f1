"""Lints of one subschema: keywords that say nothing, contradict each other, or belong to another dialect.

Whether a schema is valid, and misspelled keywords, are reading's business (``protocols/schema/check.py``); what stands here is
valid and still not what its author meant. Each function looks at one container only. Must not know manifests.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from tamis.protocols.jsontext.green import Branch, Scalar
from tamis.protocols.jsontext.tokens import quoted
from tamis.protocols.jsontext.tree import JsonNode, Member
from tamis.protocols.model import Edit, Fix
from tamis.protocols.schema.check import Draft
from tamis.protocols.schema.words import (
    JSON_TYPES,
    LISTS,
    MAPS,
    OF_LISTS,
    OF_NUMBERS,
    OF_OBJECTS,
    OF_STRINGS,
    SCHEMAS,
    as_json,
    excerpt,
    has_type,
    json_equal,
    types_in_words,
)
from tamis.protocols.suggest import best, hint
from tamis.server.analysis.lints.local import Collector, Locals, renaming, text_of, without_item, without_member

# The keywords of JSON Schema that lints need to know: which dialect has them, what they are about, what stands below them.


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


def types_of(node: JsonNode) -> tuple[str, ...]:
    """The types that a schema names; empty where it names none."""
    named = node.get("type")
    if named is None:
        return ()
    items = named.items if named.kind == "array" else [named]
    return tuple(item.value for item in items if isinstance(item.value, str) and item.kind == "string")


_MAX_ENUM = 2_000


_BOUNDS = (
    *(("minLength", "maxLength", False), ("minItems", "maxItems", False), ("minProperties", "maxProperties", False)),
    *(
        ("minContains", "maxContains", False),
        ("minimum", "maximum", False),
        ("exclusiveMinimum", "exclusiveMaximum", True),
    ),
    *(("exclusiveMinimum", "maximum", True), ("minimum", "exclusiveMaximum", True)),
)
_FEW = 32
_QUIET = frozenset(("type", "description", "title", "default", "$comment", "$schema", "deprecated", "examples"))
_LOOKED_AT = frozenset(
    (
        *("enum", "const", "format", "nullable", "example", "items", "additionalItems", "dependencies", "$ref"),
        *("if", "then", "else", *NEW_KEYWORDS),
    )
)
"""Keywords of which more is asked than whether the type has them and whether they are one of two bounds."""


@lru_cache(maxsize=256)
def _are_quiet(keys: tuple[str, ...], type_name: str) -> bool:
    """Whether there is nothing to find in subschemas of these keywords, whatever their values are but that of ``type`` (empty: none that is
    known)."""
    if not _LOOKED_AT.isdisjoint(keys) or any(low in keys and high in keys for low, high, _ in _BOUNDS):
        return False
    return not type_name or all(type_name in ABOUT.get(key, (type_name,)) for key in keys)


def says_nothing(branch: Branch) -> bool:
    """Whether a subschema says no more than what it is, as most do: nothing in that can be at odds."""
    keys = branch.keys
    if _QUIET.issuperset(keys):
        return True
    if len(keys) > _FEW:
        return False
    type_name = ""
    if "type" in keys:
        value = branch.values[keys.index("type")]
        if not isinstance(value, Scalar) or (branch.own is not None and branch.own.doubled):
            return False
        type_name = value.value if value.kind == "string" and isinstance(value.value, str) else ""
    return _are_quiet(tuple(keys), type_name if type_name in JSON_TYPES else "")


def lint_schema(node: JsonNode, draft: Draft) -> Locals:
    """The findings of one subschema, relative to it; nothing below it is looked at."""
    collector = Collector(node.start)
    members = {member.key: member for member in node.members if member.value is not None}
    _dialect(node, members, draft, collector)
    types = types_of(node)
    if types and all(name in JSON_TYPES for name in types):
        _other_types(node, members, types, collector)
        _values(members, types, collector)
    _ranges(members, collector)
    _enum(members, collector)
    _partners(node, members, draft, collector)
    _format(members, collector)
    _openapi(node, members, types, collector)
    return collector.found


def _dialect(node: JsonNode, members: dict[str, Member], draft: Draft, collector: Collector) -> None:
    if draft == "2020-12":
        items = members.get("items")
        if items is not None and items.value is not None and items.value.kind == "array":
            args = {"k": "items", "name": "prefixItems"}
            fix = renaming(items, "prefixItems") if "prefixItems" not in members else None
            rest = members.get("additionalItems")
            if fix is not None and rest is not None:
                edits = (*fix.edits, Edit(rest.key_start, rest.key_end, '"items"'))
                fix = Fix(fix.title, tuple(sorted(edits, key=lambda edit: edit.start)))
            collector.add("LN702", items.key_span, args, fix=fix)
        elif "additionalItems" in members:
            member = members["additionalItems"]
            fix = renaming(member, "items", "unsafe") if "items" not in members else None
            args = {"k": "additionalItems", "dialect": draft, "instead": ": 'items' beside 'prefixItems' says it"}
            collector.add("LN703", member.key_span, args, fix=fix)
        if "dependencies" in members:
            _dependencies(members, collector)
        return
    if draft == "draft-07":
        for name, instead in NEW_KEYWORDS.items():
            if name in members:
                args = {"k": name, "dialect": draft, "instead": f"; it has {instead} instead" if instead else ""}
                collector.add("LN703", members[name].key_span, args)
        if "$ref" in members:
            for name in members:
                if name in CONSTRAINTS:
                    fix = without_member(node, members[name], f"Remove '{name}'")
                    collector.add("LN709", members[name].key_span, {"k": name}, fix=fix)


def _dependencies(members: dict[str, Member], collector: Collector) -> None:
    member = members["dependencies"]
    value = member.value
    parts = [member.value for member in value.members if member.value is not None] if value is not None else []
    kinds = {"dependentRequired" if part.kind == "array" else "dependentSchemas" for part in parts}
    fix = None
    if len(kinds) == 1 and not kinds & members.keys():
        fix = renaming(member, next(iter(kinds)), "unsafe")
    wanted = " and ".join(f"'{name}'" for name in sorted(kinds or {"dependentRequired"}))
    collector.add(
        "LN703", member.key_span, {"k": "dependencies", "dialect": "2020-12", "instead": f": use {wanted}"}, fix=fix
    )


def _other_types(node: JsonNode, members: dict[str, Member], types: tuple[str, ...], collector: Collector) -> None:
    for name, member in members.items():
        about = ABOUT.get(name)
        if about is None or any(kind in types for kind in about):
            continue
        # OpenAPI's way to say how wide a number is.
        if name == "format" and ("number" in types or "integer" in types) and text_of(member.value) in OTHER_FORMATS:
            continue
        args = {"k": name, "type": types_in_words(types), "wanted": types_in_words(about[:1])}
        collector.add("LN704", member.key_span, args, fix=without_member(node, member, f"Remove '{name}'"))


def _number(member: Member | None) -> float | int | None:
    value = member.value.value if member is not None and member.value is not None else None
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _ranges(members: dict[str, Member], collector: Collector) -> None:
    for low, high, strict in _BOUNDS:
        a, b = _number(members.get(low)), _number(members.get(high))
        if a is None or b is None or a < b or (a == b and not strict):
            continue
        second = max((members[low], members[high]), key=lambda member: member.key_start)
        if second.value is not None:
            args = {"low": low, "a": as_json(a), "high": high, "b": as_json(b)}
            collector.add("LN705", second.value.span, args)


def _enum(members: dict[str, Member], collector: Collector) -> None:
    node = members["enum"].value if "enum" in members else None
    if node is None or node.kind != "array" or len(node.greens) > _MAX_ENUM:
        return
    seen: set[object] = set()
    large: list[object] = []
    for i, item in enumerate(node.items):
        value = item.to_python()
        if isinstance(value, (dict, list)):
            twice = len(large) < 100 and any(json_equal(value, item) for item in large)
            large.append(value)
        else:
            # 1 equals 1.0 and never true, in JSON's sense and in that of this key.
            key = (isinstance(value, bool), value)
            twice = key in seen
            seen.add(key)
        if twice and item.kind != "error":
            fix = without_item(node, i, "Remove the second one", "safe")
            collector.add("LN706", item.span, {"v": excerpt(value)}, fix=fix)


def _values(members: dict[str, Member], types: tuple[str, ...], collector: Collector) -> None:
    """``enum`` and ``const`` against ``type``; a default is held against the whole schema elsewhere (MF532)."""
    listed = members["enum"].value if "enum" in members else None
    items = listed.items[:_MAX_ENUM] if listed is not None and listed.kind == "array" else []
    const = members["const"].value if "const" in members else None
    for item in (*items, *((const,) if const is not None else ())):
        if item.kind == "error":
            continue
        value = item.to_python()
        if any(has_type(value, name) for name in types):
            continue
        where = item.span if item.kind not in ("object", "array") else (item.start, item.start + 1)
        collector.add("LN707", where, {"v": excerpt(value), "type": types_in_words(types)})


_PARTNERS = (("then", "if"), ("else", "if"), ("minContains", "contains"), ("maxContains", "contains"))


def _partners(node: JsonNode, members: dict[str, Member], draft: Draft, collector: Collector) -> None:
    for name, partner in _PARTNERS:
        if name in members and partner not in members and not (draft == "draft-07" and name in NEW_KEYWORDS):
            fix = without_member(node, members[name], f"Remove '{name}'")
            collector.add("LN708", members[name].key_span, {"k": name, "partner": partner}, fix=fix)
    if "if" in members and "then" not in members and "else" not in members:
        collector.add("LN708", members["if"].key_span, {"k": "if", "partner": "then"})
    if draft == "draft-07" and "additionalItems" in members and "items" not in members:
        args = {"k": "additionalItems", "partner": "items"}
        collector.add("LN708", members["additionalItems"].key_span, args)


def _format(members: dict[str, Member], collector: Collector) -> None:
    value = members["format"].value if "format" in members else None
    name = text_of(value)
    if value is None or name is None or name in FORMATS or name in OTHER_FORMATS:
        return
    # A format of one's own is allowed; only what looks like a slip is said.
    near = _FORMAT_WORDS.get(name.lower()) or best(name, FORMATS)
    if near is not None:
        fix = Fix(f"Replace by '{near}'", (Edit(value.start, value.end, quoted(near)),), "unsafe")
        collector.add("LN710", value.span, {"v": name, "hint": hint(near)}, fix=fix)


_FORMAT_WORDS = {
    **dict.fromkeys(("datetime", "iso8601", "iso-8601", "date_time", "iso-date-time"), "date-time"),
    **dict.fromkeys(("guid", "uuid4", "uuidv4"), "uuid"),
    **dict.fromkeys(("mail", "e-mail", "emailaddress"), "email"),
    **dict.fromkeys(("regexp", "regular-expression"), "regex"),
    **dict.fromkeys(("host", "host-name", "domain"), "hostname"),
}


def _openapi(node: JsonNode, members: dict[str, Member], types: tuple[str, ...], collector: Collector) -> None:
    nullable = members.get("nullable")
    if nullable is not None and nullable.value is not None and nullable.value.kind == "boolean":
        fix = None
        named = members["type"].value if "type" in members else None
        if nullable.value.value is True and named is not None and named.kind == "string" and "null" not in types:
            cut = without_member(node, nullable, "")
            listed = Edit(named.start, named.end, f'[{quoted(types[0])}, "null"]') if types else None
            if cut is not None and listed is not None and not _touch(cut.edits[0], listed):
                edits = tuple(sorted((*cut.edits, listed), key=lambda edit: edit.start))
                fix = Fix("Write \"null\" into 'type'", edits, "unsafe")
        instead = "\"null\" in 'type'" if nullable.value.value is True else "nothing for it"
        collector.add("LN713", nullable.key_span, {"k": "nullable", "instead": instead}, fix=fix)
    example = members.get("example")
    if example is not None and example.value is not None and "examples" not in members:
        value = example.value
        edits = (
            Edit(example.key_start, example.key_end, '"examples"'),
            Edit(value.start, value.start, "["),
            Edit(value.end, value.end, "]"),
        )
        fix = Fix("Write it as 'examples'", edits) if value.kind != "error" else None
        collector.add("LN713", example.key_span, {"k": "example", "instead": "a list in 'examples'"}, fix=fix)


def _touch(one: Edit, two: Edit) -> bool:
    return one.start < two.end and two.start < one.end
