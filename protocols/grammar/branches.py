"""A JSON Schema as alternatives that a grammar can say: references resolved, ``anyOf`` and ``oneOf`` spread, ``allOf`` joined.

What a grammar cannot say widens: the alternative then allows more than the schema, and a remark names the keyword. Must not know
GBNF.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from tamis.protocols.grammar.rules import BOUNDS
from tamis.protocols.model import Json
from tamis.protocols.schema.words import is_list, is_object, merge_all_of, refusing, resolve

TYPES = ("string", "integer", "number", "boolean", "null", "object", "array")
MAX_BRANCHES = 64
"""Alternatives of one schema; with more it allows any value."""
_MAX_STEPS = 2_000
"""Schemas that are looked at for the alternatives of one; contradictions could otherwise be multiplied out without end."""
_MAX_NESTED = 64
_MAX_JOINED = 512
"""Properties of an alternative that joins several schemas."""
_WIDER = frozenset(
    (
        "pattern",
        "format",
        "minLength",
        "maxLength",
        "multipleOf",
        "uniqueItems",
        "contains",
        "minContains",
        "maxContains",
        "patternProperties",
        "propertyNames",
        "minProperties",
        "maxProperties",
        "dependentRequired",
        "dependentSchemas",
        "dependencies",
        "if",
        "not",
        "unevaluatedItems",
        "unevaluatedProperties",
        "contentSchema",
    )
)
COMPOSED = ("$ref", "anyOf", "oneOf", "allOf")
_UNREAD = frozenset(
    (
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
        "$comment",
        "$defs",
        "definitions",
        "$schema",
        "$id",
        "then",
        "else",
        "contentMediaType",
        "contentEncoding",
    )
)


class Branch(msgspec.Struct, frozen=True):
    """One alternative: constants, or the values of ``types`` as ``schema`` describes them, which composes no more.

    ``types`` is None where the schema says nothing of the type.
    """

    schema: dict[str, Json] = {}
    types: tuple[str, ...] | None = None
    constants: tuple[Json, ...] | None = None


Remark = Callable[[str], None]


def branches_of(schema: Json, root: Json, remark: Remark) -> list[Branch]:
    """The alternatives of a schema; none where nothing is allowed. ``remark`` is told each keyword that widens."""
    branches: list[Branch] = []
    for single in _Spread(root, remark).of(schema, (), 0):
        if len(branches) >= MAX_BRANCHES:
            remark("more alternatives than a grammar should have")
            return [Branch()]
        branch = _branch(single, remark)
        if branch is not None and branch not in branches:
            branches.append(branch)
    return branches


def _branch(schema: Json, remark: Remark) -> Branch | None:
    if not is_object(schema):
        return Branch() if schema is True else None
    types = _types(schema)
    for keyword in schema:
        # Integers keep their bounds; of a number only the sign is left out.
        bounded = keyword in BOUNDS and (types is None or "number" in types)
        bounded = bounded or (types is None and keyword in ("minItems", "maxItems"))
        if keyword in _WIDER or (bounded and not (keyword == "minimum" and _is_zero(schema[keyword]))):
            remark(keyword)
    if types == ():
        return None
    if "const" in schema or is_list(schema.get("enum")):
        enum = schema.get("enum")
        constants = [schema["const"]] if "const" in schema else list(enum) if is_list(enum) else []
        kept = tuple(constant for constant in constants if types is None or _has_type(constant, types))
        return Branch(schema, types, kept) if kept else None
    return Branch(schema, types)


def _types(schema: dict[str, Json]) -> tuple[str, ...] | None:
    kind = schema.get("type")
    if isinstance(kind, str):
        return (kind,) if kind in TYPES else ()
    if is_list(kind):
        return tuple(name for name in TYPES if name in kind)
    if "properties" in schema or "additionalProperties" in schema or "required" in schema:
        return ("object",)
    return ("array",) if "items" in schema or "prefixItems" in schema else None


def _has_type(value: Json, types: tuple[str, ...]) -> bool:
    if isinstance(value, bool):
        return "boolean" in types
    if isinstance(value, (int, float)):
        whole = isinstance(value, int) or value.is_integer()
        return "number" in types or (whole and "integer" in types)
    name = "null" if value is None else "string" if isinstance(value, str) else "array" if is_list(value) else "object"
    return name in types


def _is_zero(value: Json) -> bool:
    return isinstance(value, (int, float)) and value == 0


class _Spread:
    """A schema without references and composition, once per alternative; lazily, so that a caller can stop."""

    def __init__(self, root: Json, remark: Remark) -> None:
        self._root = root
        self._remark = remark
        self._steps = 0

    def of(self, schema: Json, seen: tuple[str, ...], depth: int) -> Iterator[Json]:
        """The alternatives; ``seen`` are the references that led here."""
        self._steps += 1
        if self._steps > _MAX_STEPS or depth > _MAX_NESTED:
            self._remark("a composition that is too large")
            if self._steps <= _MAX_STEPS + 1:
                yield True
            return
        if not is_object(schema):
            yield schema
            return
        for keyword in ("$dynamicRef", "$recursiveRef"):
            if keyword in schema:
                self._remark(keyword)
        keyword = next((candidate for candidate in COMPOSED if candidate in schema), None)
        if keyword is None:
            yield schema
            return
        base: dict[str, Json] = {name: part for name, part in schema.items() if name != keyword}
        part = schema[keyword]
        if keyword == "$ref":
            if not isinstance(part, str) or part in seen:
                # A reference that only leads back to itself says nothing more.
                return
            for item in _joined([_target(part, self._root, self._remark), base], self._remark):
                yield from self.of(item, (*seen, part), depth + 1)
        elif keyword == "allOf":
            parts: list[Json] = [base, *part] if is_list(part) else [base]
            for item in _joined(parts, self._remark):
                yield from self.of(item, seen, depth + 1)
        else:
            if keyword == "oneOf":
                self._remark("oneOf, which is read as anyOf")
            for alternative in part if is_list(part) else []:
                for item in _joined([base, alternative], self._remark):
                    yield from self.of(item, seen, depth + 1)


def _target(ref: str, root: Json, remark: Remark) -> Json:
    if ref == "#" or ref.startswith("#/"):
        try:
            return resolve(root, ref)
        except KeyError:
            pass
    remark(f"$ref {ref}")
    return True


def _joined(parts: list[Json], remark: Remark) -> Iterator[Json]:
    """Schemas that all hold as one; nothing where one of them allows nothing."""
    read = [
        {name: value for name, value in part.items() if name not in _UNREAD} if is_object(part) else part
        for part in parts
    ]
    merged = merge_all_of(read)
    if not is_object(merged.schema) or merged.empty:
        return
    properties = merged.schema.get("properties")
    several = sum(is_object(part) and "properties" in part for part in read) > 1
    if several and is_object(properties) and len(properties) > _MAX_JOINED:
        remark("more properties than a grammar should join")
        return
    for _ in refusing(read):
        # A schema that allows no further properties allows none that only the others declare.
        remark("additionalProperties beside other schemas")
    waiting: list[Json] = []
    for keyword, value in merged.left:
        if keyword in COMPOSED:
            waiting.append({keyword: value})
        else:
            remark(f"allOf with two {keyword}")
    all_of = merged.schema.get("allOf")
    more: dict[str, Json] = {"allOf": [*(all_of if is_list(all_of) else []), *waiting]} if waiting else {}
    yield {**merged.schema, **more}
