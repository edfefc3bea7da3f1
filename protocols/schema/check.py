"""Is a JSON a valid JSON Schema? The schema of schemas, walked by hand.

Load-time check of every ``parameters`` and ``output``: the standard validator takes 100 ms to import and names no place in a
keyword, so the walk is ours; tests hold it against the meta-schemas. Must not know manifests.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Literal

import msgspec

from tamis.protocols.model import Json, Severity
from tamis.protocols.schema.regex import PatternError, compile_pattern
from tamis.protocols.schema.words import (
    JSON_TYPES,
    LISTS,
    MAPS,
    SCHEMAS,
    Where,
    excerpt,
    has_type,
    is_list,
    is_object,
    pointer,
    resolve,
)
from tamis.protocols.suggest import Names, best, hint

MAX_SCHEMA_DEPTH = 100
MAX_SCHEMA_NODES = 50_000
Draft = Literal["2020-12", "2019-09", "draft-07", "draft-06", "draft-04"]
_DRAFTS: dict[str, Draft] = {
    "https://json-schema.org/draft/2020-12/schema": "2020-12",
    "https://json-schema.org/draft/2019-09/schema": "2019-09",
    "http://json-schema.org/draft-07/schema": "draft-07",
    "http://json-schema.org/draft-06/schema": "draft-06",
    "http://json-schema.org/draft-04/schema": "draft-04",
}

# What each keyword's value must be.
_Shape = Literal["schema", "schemas", "named", "items", "count", "number", "positive", "text", "flag", "names"]
_SHAPES: dict[str, _Shape] = {
    **dict.fromkeys(SCHEMAS, "schema"),
    **dict.fromkeys(LISTS, "schemas"),
    **dict.fromkeys(MAPS, "named"),
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), "count"),
    **dict.fromkeys(("maxContains", "minContains"), "count"),
    **dict.fromkeys(("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum"), "number"),
    **dict.fromkeys(("title", "description", "$comment", "format", "contentMediaType", "contentEncoding"), "text"),
    **dict.fromkeys(("$schema", "$id", "$ref", "$anchor", "$dynamicRef", "$dynamicAnchor", "pattern"), "text"),
    **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), "flag"),
    "multipleOf": "positive",
    "items": "items",
    "required": "names",
}
_FREE = frozenset(("const", "default", "enum", "type", "examples", "dependencies", "dependentRequired", "$vocabulary"))
KEYWORDS = frozenset(_SHAPES) | _FREE
# Words that editors and generators use in schemas; none of them is a misspelling of a keyword.
_KNOWN_EXTRAS = frozenset(
    (
        "nullable",
        "example",
        "markdownDescription",
        "enumDescriptions",
        "markdownEnumDescriptions",
        "defaultSnippets",
        "errorMessage",
        "deprecationMessage",
        "discriminator",
        "xml",
        "externalDocs",
        "id",
        "optional",
        "options",
        "$recursiveRef",
        "$recursiveAnchor",
        "enumNames",
        "displayName",
        "label",
        "name",
        "value",
        "order",
        "group",
    )
)


SchemaFault = Literal[
    "bad-pattern",
    "empty-enum",
    "list-for-schema",
    "named-twice",
    "not-boolean",
    "not-count",
    "not-examples",
    "not-list",
    "not-name",
    "not-names",
    "not-number",
    "not-object",
    "not-positive",
    "not-schema",
    "not-schemas",
    "not-text",
    "not-type",
    "not-types",
    "ref-endless",
    "ref-nowhere",
    "too-large",
]
"""What is wrong with a keyword's value, as the argument ``fault`` of ``VA450``: fixes go by it, and never by the sentence."""


class SchemaIssue(msgspec.Struct, frozen=True):
    """One fault of a schema: code, JSON Pointer into the schema, and whether it lies in the key itself."""

    code: str
    path: str
    args: dict[str, str | int]
    severity: Severity
    on_key: bool = False
    suggestion: str | None = None


def draft_of(schema: Json) -> Draft:
    """The draft that a schema names; 2020-12 when it names none that is known."""
    if is_object(schema):
        named = schema.get("$schema")
        if isinstance(named, str):
            return _DRAFTS.get(named.rstrip("#"), "2020-12")
    return "2020-12"


def is_known_metaschema(ref: str) -> bool:
    """Whether a reference leads to a meta-schema, which is at hand without any network."""
    return ref.partition("#")[0] in _DRAFTS


def check_schema(schema: Json) -> list[SchemaIssue]:
    """All faults of a schema, in document order; no error among them means that it can be compiled."""
    return list(Walk(schema).walk())


class Walk:
    """One pass over a schema; ``facts.py`` overrides the steps down to look at one subschema alone."""

    def __init__(self, root: Json, draft: Draft | None = None) -> None:
        self.root = root
        self.draft: Draft = draft or draft_of(root)
        self.nodes = 0

    @cached_property
    def has_ids(self) -> bool:
        """Whether the root names parts of itself: a question that each reference asks."""
        return has_ids(self.root)

    def walk(self) -> Iterator[SchemaIssue]:
        """All faults of the root."""
        yield from self.schema(self.root, None, 0)
        if self.nodes > MAX_SCHEMA_NODES:
            return
        if is_endless(self.root):
            yield _bad(None, "ref-endless", "a $ref leads back to itself without going into a part of the value")
        if self.has_ids:
            for where, ref in _outside_references(self.root):
                yield SchemaIssue("VA451", pointer(where), {"ref": ref}, "error")

    def schema(self, schema: Json, where: Where, depth: int) -> Iterator[SchemaIssue]:
        """Faults of a subschema and of all below it."""
        self.nodes += 1
        if depth > MAX_SCHEMA_DEPTH or self.nodes > MAX_SCHEMA_NODES:
            if self.nodes <= MAX_SCHEMA_NODES + 1:
                yield _bad(where, "too-large", f"more than {MAX_SCHEMA_DEPTH} levels or {MAX_SCHEMA_NODES} subschemas")
            return
        yield from self.node(schema, where, depth)

    def node(self, schema: Json, where: Where, depth: int) -> Iterator[SchemaIssue]:
        """Faults of a subschema, keyword by keyword."""
        if isinstance(schema, bool):
            return
        if not is_object(schema):
            fault: SchemaFault = "list-for-schema" if is_list(schema) else "not-schema"
            yield _bad(where, fault, f"a schema is an object, true or false, not {excerpt(schema)}")
            return
        for key, value in schema.items():
            yield from self.keyword(schema, key, value, (where, key), depth)
        if self.draft == "draft-04":
            return
        required, properties = schema.get("required"), schema.get("properties")
        if is_list(required) and required and is_object(properties) and not _more_properties(schema):
            known: Names | None = None
            for i, name in enumerate(required):
                if isinstance(name, str) and name not in properties:
                    if known is None:
                        # What is required already would then be required twice.
                        taken = {other for other in required if isinstance(other, str)}
                        known = Names(candidate for candidate in properties if candidate not in taken)
                    closest = known.best(name)
                    args: dict[str, str | int] = {"k": name, "hint": hint(closest)}
                    at = pointer(((where, "required"), i))
                    yield SchemaIssue("MF515", at, args, "warning", suggestion=closest)

    def keyword(self, schema: dict[str, Json], key: str, value: Json, here: Where, depth: int) -> Iterator[SchemaIssue]:
        """Faults of one keyword's value."""
        shape = _SHAPES.get(key)
        if shape == "schema":
            yield from self.schema(value, here, depth + 1)
        elif shape == "schemas":
            if not is_list(value) or not value:
                yield _bad(here, "not-schemas", f"{key} is a list of schemas that is not empty, not {excerpt(value)}")
                return
            for i, part in enumerate(value):
                yield from self.schema(part, (here, i), depth + 1)
        elif shape == "items":
            if is_list(value) and self.draft != "2020-12":
                if not value:
                    yield _bad(here, "not-schemas", "items is a schema or a list of schemas that is not empty")
                for i, part in enumerate(value):
                    yield from self.schema(part, (here, i), depth + 1)
            else:
                yield from self.schema(value, here, depth + 1)
        elif shape == "named":
            yield from self.named(key, value, here, depth)
        elif shape is not None:
            yield from self.scalar(key, shape, value, here)
        elif key in _FREE:
            yield from self.free(key, value, here, depth)
        elif not key.startswith(("x-", "$")) and key not in _KNOWN_EXTRAS:
            suggestion = best(key, sorted(KEYWORDS))
            if suggestion is not None and suggestion not in schema:
                args: dict[str, str | int] = {"k": key, "hint": hint(suggestion)}
                yield SchemaIssue("VA452", pointer(here), args, "warning", on_key=True, suggestion=suggestion)

    def named(self, key: str, value: Json, here: Where, depth: int) -> Iterator[SchemaIssue]:
        """Faults of an object of schemas."""
        if not is_object(value):
            yield _bad(here, "not-object", f"{key} is an object of schemas, not {excerpt(value)}")
            return
        for name, part in value.items():
            if key == "patternProperties":
                yield from _pattern(name, (here, name), on_key=True)
            yield from self.schema(part, (here, name), depth + 1)

    def scalar(self, key: str, shape: _Shape, value: Json, here: Where) -> Iterator[SchemaIssue]:
        """Faults of a value that is no schema."""
        if shape in ("count", "number", "positive"):
            yield from self.number(key, shape, value, here)
        elif shape == "flag":
            if not isinstance(value, bool):
                yield _bad(here, "not-boolean", f"{key} is true or false, not {excerpt(value)}")
        elif shape == "names":
            yield from _names(key, value, here)
        elif not isinstance(value, str):
            yield _bad(here, "not-text", f"{key} is a text, not {excerpt(value)}")
        elif key == "pattern":
            yield from _pattern(value, here, on_key=False)
        elif key in ("$ref", "$dynamicRef"):
            yield from self.reference(value, here)

    def number(self, key: str, shape: _Shape, value: Json, here: Where) -> Iterator[SchemaIssue]:
        """Faults of a bound."""
        number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
        if shape == "count":
            if number is None or number < 0 or not has_type(number, "integer"):
                yield _bad(here, "not-count", f"{key} is a whole number from 0, not {excerpt(value)}")
        elif shape == "positive":
            if number is None or number <= 0:
                yield _bad(here, "not-positive", f"{key} is a number above 0, not {excerpt(value)}")
        elif number is None and not (self.draft == "draft-04" and isinstance(value, bool)):
            yield _bad(here, "not-number", f"{key} is a number, not {excerpt(value)}")

    def reference(self, ref: str, here: Where) -> Iterator[SchemaIssue]:
        """Faults of a reference."""
        if not ref.startswith("#"):
            # An absolute reference may name a part of the schema itself.
            if not is_known_metaschema(ref) and not self.has_ids:
                yield SchemaIssue("VA451", pointer(here), {"ref": ref}, "error")
        elif (ref == "#" or ref.startswith("#/")) and not self.has_ids and not resolves(self.root, ref):
            yield _bad(here, "ref-nowhere", f"$ref {ref} leads nowhere")

    def free(self, key: str, value: Json, here: Where, depth: int) -> Iterator[SchemaIssue]:
        """Faults of a value of many shapes."""
        if key == "type":
            yield from _types(value, here)
        elif key == "enum":
            if not is_list(value):
                yield _bad(here, "not-list", f"enum is a list of values, not {excerpt(value)}")
            elif not value:
                args: dict[str, str | int] = {"reason": "an empty enum allows nothing", "fault": "empty-enum"}
                yield SchemaIssue("VA450", pointer(here), args, "warning")
        elif key == "examples":
            if not is_list(value):
                yield _bad(here, "not-examples", f"examples is a list, not {excerpt(value)}")
        elif key in ("dependencies", "dependentRequired"):
            yield from self.dependencies(key, value, here, depth)

    def dependencies(self, key: str, value: Json, here: Where, depth: int) -> Iterator[SchemaIssue]:
        """Faults of what some properties ask of others."""
        if not is_object(value):
            yield _bad(here, "not-object", f"{key} is an object, not {excerpt(value)}")
            return
        for name, part in value.items():
            if is_list(part):
                if not all(isinstance(other, str) for other in part) or len({str(other) for other in part}) != len(
                    part
                ):
                    yield _bad((here, name), "not-names", "a dependency is a list of different names")
            elif key == "dependentRequired":
                yield _bad((here, name), "not-list", f"a dependency is a list of names, not {excerpt(part)}")
            else:
                yield from self.schema(part, (here, name), depth + 1)


def _bad(where: Where, fault: SchemaFault, reason: str, suggestion: str | None = None) -> SchemaIssue:
    args: dict[str, str | int] = {"reason": reason, "fault": fault}
    return SchemaIssue("VA450", pointer(where), args, "error", suggestion=suggestion)


_FOREIGN_TYPES: dict[str, str] = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
}
"""Python's names of types."""


def _types(value: Json, here: Where) -> Iterator[SchemaIssue]:
    names = value if is_list(value) else [value]
    if not names or len({str(name) for name in names}) != len(names):
        yield _bad(here, "not-types", "type is a type name or a list of different ones")
        return
    for i, name in enumerate(names):
        if name not in JSON_TYPES:
            alike = best(str(name), JSON_TYPES) if isinstance(name, str) else None
            meant = alike or _FOREIGN_TYPES.get(str(name))
            at = (here, i) if is_list(value) else here
            yield _bad(at, "not-type", f"{excerpt(name)} is not a type{hint(meant)}", suggestion=meant)


def _names(key: str, value: Json, here: Where) -> Iterator[SchemaIssue]:
    # Older generators write "required": true on the property itself.
    if not is_list(value):
        yield _bad(here, "not-list", f"{key} is a list of names, not {excerpt(value)}")
        return
    seen: set[str] = set()
    for i, name in enumerate(value):
        if not isinstance(name, str):
            yield _bad((here, i), "not-name", f"{key} is a list of names, {excerpt(name)} is none")
        elif name in seen:
            yield _bad((here, i), "named-twice", f"{key} names {excerpt(name)} twice")
        else:
            seen.add(name)


def _pattern(pattern: str, here: Where, *, on_key: bool) -> Iterator[SchemaIssue]:
    try:
        regex = compile_pattern(pattern)
    except PatternError as error:
        place = "" if error.at is None else f" at character {error.at}"
        args: dict[str, str | int] = {
            "reason": f"the pattern {excerpt(pattern)} is no regular expression: {error}{place}",
            "fault": "bad-pattern",
        }
        yield SchemaIssue("VA450", pointer(here), args, "error", on_key)
        return
    if regex.risk and regex.automaton is None:
        yield SchemaIssue("MF519", pointer(here), {"reason": regex.risk}, "warning", on_key)


def _more_properties(schema: dict[str, Json]) -> bool:
    """Whether properties may be declared elsewhere than in ``properties``."""
    return any(key in schema for key in ("allOf", "anyOf", "oneOf", "$ref", "patternProperties", "if", "$dynamicRef"))


def has_ids(schema: Json) -> bool:
    """Whether a schema names parts of itself by ``$id`` or anchors, below its root."""
    stack: list[Json] = [schema]
    while stack:
        node = stack.pop()
        if is_list(node):
            stack.extend(node)
        elif is_object(node):
            if any(isinstance(node.get(key), str) for key in ("$anchor", "$dynamicAnchor", "$id")):
                return True
            stack.extend(node.values())
    return False


_IN_PLACE = ("$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")


def is_endless(root: Json) -> bool:
    """Whether judging one value would lead back to judging the same value: no validator comes back from that."""
    state: dict[int, bool] = {}
    stack: list[tuple[Json, bool]] = [(node, False) for node in _subschemas(root)]
    while stack:
        node, leaving = stack.pop()
        if leaving:
            state[id(node)] = True
            continue
        if not is_object(node) or state.get(id(node)):
            continue
        if id(node) in state:
            continue
        state[id(node)] = False
        stack.append((node, True))
        for below in _in_place(root, node):
            if state.get(id(below)) is False:
                return True
            stack.append((below, False))
    return False


def _in_place(root: Json, node: dict[str, Json]) -> Iterator[Json]:
    """The schemas that judge the same value as this one does."""
    for key in _IN_PLACE:
        part = node.get(key)
        if key == "$ref":
            if isinstance(part, str) and (part == "#" or part.startswith("#/")) and resolves(root, part):
                yield resolve(root, part)
        elif is_list(part):
            yield from part
        elif is_object(part):
            yield from part.values() if key == "dependentSchemas" else (part,)


def _subschemas(root: Json) -> Iterator[Json]:
    """Everything in a schema that may be one: where none is, nothing refers to anything."""
    stack: list[Json] = [root]
    while stack:
        node = stack.pop()
        if is_list(node):
            stack.extend(node)
        elif is_object(node):
            if any(key in node for key in _IN_PLACE):
                yield node
            stack.extend(node.values())


def _outside_references(root: Json) -> list[tuple[Where, str]]:
    """References that lead to no resource of a schema which names its parts by ``$id``."""
    from urllib.parse import urljoin

    resources: set[str] = {""}
    refs: list[tuple[Where, str, str]] = []
    stack: list[tuple[Json, Where, str]] = [(root, None, "")]
    while stack:
        node, where, base = stack.pop()
        if is_list(node):
            stack.extend((part, (where, i), base) for i, part in enumerate(node))
        elif is_object(node):
            own = node.get("$id")
            if isinstance(own, str):
                base = urljoin(base, own).partition("#")[0]
                resources.add(base)
            for key in ("$ref", "$dynamicRef"):
                ref = node.get(key)
                if isinstance(ref, str) and not ref.startswith("#"):
                    target = ref if ref.startswith("urn:") else urljoin(base, ref)
                    refs.append(((where, key), ref, target.partition("#")[0]))
            stack.extend((part, (where, key), base) for key, part in node.items() if key not in ("const", "enum"))
    return [(where, ref) for where, ref, to in refs if to not in resources and not is_known_metaschema(to)]


def resolves(root: Json, ref: str) -> bool:
    """Whether a local reference leads to a schema."""
    try:
        target = resolve(root, ref)
    except KeyError:
        return False
    return isinstance(target, (dict, bool))
