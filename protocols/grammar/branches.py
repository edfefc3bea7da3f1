"""A JSON Schema as alternatives that a grammar can say: references resolved, ``anyOf`` and ``oneOf`` spread, ``allOf`` joined.

What a grammar cannot say widens: the alternative then allows more than the schema, and a remark names the keyword. Must not know
GBNF.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from tamis.protocols.grammar.rules import BOUNDS
from tamis.protocols.model import Json
from tamis.protocols.schema.words import is_list, is_object, resolve

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
        keyword = next((one for one in COMPOSED if one in schema), None)
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


def _joined_properties(old: dict[str, Json], new: dict[str, Json]) -> dict[str, Json]:
    joined: dict[str, Json] = dict(old)
    for name, inner in new.items():
        joined[name] = inner if name not in joined or joined[name] == inner else {"allOf": [joined[name], inner]}
    return joined


def _joined_types(old: Sequence[str], new: Sequence[str]) -> list[Json]:
    """The types that both allow; an integer is a number."""
    kept: list[Json] = [name for name in old if name in new or (name == "integer" and "number" in new)]
    kept += [name for name in new if name == "integer" and "number" in old and name not in kept]
    return kept


def _joined_keyword(keyword: str, old: Json, value: Json, remark: Remark) -> tuple[Json] | None:
    """What two different values of a keyword say together; None where nothing is allowed, or it is too much to say."""
    if keyword == "properties" and is_object(old) and is_object(value):
        joined = _joined_properties(old, value)
        if len(joined) > _MAX_JOINED:
            remark("more properties than a grammar should join")
            return None
        return (joined,)
    if keyword == "required" and is_list(old) and is_list(value):
        return ([*old, *(name for name in value if name not in old)],)
    if keyword == "type":
        kept = _joined_types(_names(old), _names(value))
        return (kept,) if kept else None
    if keyword == "enum" and is_list(old) and is_list(value):
        return ([choice for choice in old if choice in value],)
    if keyword in ("items", "additionalProperties"):
        return ({"allOf": [old, value]},)
    remark(f"allOf with two {keyword}")
    return (old,)


def _remark_closed(parts: list[Json], properties: Json, remark: Remark) -> None:
    """A schema that allows no further properties allows none that only the others declare."""
    count = len(properties) if is_object(properties) else 0
    for part in parts if count else []:
        if is_object(part) and part.get("additionalProperties", True) is not True:
            own = part.get("properties")
            if not is_object(own) or len(own) < count:
                remark("additionalProperties beside other schemas")


def _joined(parts: list[Json], remark: Remark) -> Iterator[Json]:
    """Schemas that all hold as one; nothing where one of them allows nothing."""
    result: dict[str, Json] = {}
    waiting: list[Json] = []
    for part in parts:
        if part is False:
            return
        if not is_object(part):
            continue
        for keyword, value in part.items():
            old = result.get(keyword)
            if keyword in _UNREAD:
                continue
            if keyword not in result or old == value:
                result[keyword] = value
            elif keyword in COMPOSED:
                waiting.append({keyword: value})
            else:
                both = _joined_keyword(keyword, old, value, remark)
                if both is None:
                    return
                result[keyword] = both[0]
    _remark_closed(parts, result.get("properties"), remark)
    if waiting:
        all_of = result.get("allOf")
        result["allOf"] = [*(all_of if is_list(all_of) else []), *waiting]
    yield result


def _names(value: Json) -> list[str]:
    return (
        [value]
        if isinstance(value, str)
        else [item for item in value if isinstance(item, str)]
        if is_list(value)
        else []
    )
