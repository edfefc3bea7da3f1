"""Validity of typed JSON by compiled checks: the fast filter in front of jsonschema.

Compiles the common keywords of a schema into one predicate. A schema that uses anything else is not compiled (``None``), and
jsonschema decides alone; a property test proves that predicate and jsonschema agree. Must not know coercion or messages.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tamis.protocols.model import Json
from tamis.protocols.schema.check import Draft, draft_of, has_ids
from tamis.protocols.schema.regex import PatternError, compile_pattern
from tamis.protocols.schema.words import enum_has, has_type, is_list, is_object, json_equal, resolve

Check = Callable[[Json], bool]

_SILENT = frozenset(
    {
        *("title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly", "format"),
        *("contentEncoding", "contentMediaType", "contentSchema", "$defs", "definitions", "example", "$schema"),
    }
)
_OUTSIDE = frozenset(
    {
        *("patternProperties", "dependentSchemas", "dependentRequired", "dependencies", "propertyNames"),
        *("if", "then", "else", "prefixItems", "contains", "minContains", "maxContains", "additionalItems"),
        *("unevaluatedItems", "unevaluatedProperties", "$dynamicRef", "$dynamicAnchor", "$anchor", "$id", "id"),
        *("$recursiveRef", "$vocabulary"),
    }
)


def compile_valid(schema: Json) -> Check | None:
    """A predicate that says exactly what jsonschema would, or None when the schema is outside the compiled keywords."""
    return compile_valid_at(schema, schema)


def compile_valid_at(root: Json, schema: Json) -> Check | None:
    """A predicate of one part of a schema, whose local references lead into the whole; None as in ``compile_valid``."""
    return compile_parts(root)(schema)


def compile_parts(root: Json) -> Callable[[Json], Check | None]:
    """As ``compile_valid_at``, for many parts of one schema, which is looked through once."""
    named: list[bool] = []

    def compile_one(part: Json) -> Check | None:
        if not named:
            named.append(has_ids(root))
        return None if named[0] else compile_part(root, part, draft_of(root))

    return compile_one


def compile_part(root: Json, schema: Json, draft: Draft) -> Check | None:
    """As ``compile_valid_at`` for a root that names no part of itself by ``$id`` or anchors, in the draft of the root."""
    if draft not in ("2020-12", "2019-09", "draft-07"):
        return None
    try:
        return _Compiler(root, draft == "draft-07").compile_root(schema)
    except (_OutsideError, RecursionError, PatternError, KeyError):
        return None


class _OutsideError(Exception):
    """The schema uses something that is left to jsonschema."""


class _Compiler:
    def __init__(self, root: Json, ref_alone: bool) -> None:
        self.root = root
        self.ref_alone = ref_alone
        self.refs: dict[str, list[Check]] = {}
        self.memos: list[dict[int, tuple[Json, bool]]] = []

    def compile_root(self, schema: Json) -> Check:
        """The predicate of a whole call: verdicts of references are remembered for its time."""
        check = self.compile(schema, 0)
        memos = self.memos
        if not memos:
            return check

        def root(instance: Json) -> bool:
            for memo in memos:
                memo.clear()
            return check(instance)

        return root

    def compile(self, schema: Json, depth: int) -> Check:
        if depth > 64:
            raise _OutsideError
        if schema is True or schema == {}:
            return _always
        if schema is False:
            return _never
        if not is_object(schema):
            raise _OutsideError
        if self.ref_alone and "$ref" in schema:
            return self.ref(schema["$ref"])
        checks: list[Check] = []
        for key in schema:
            if key in _OUTSIDE:
                raise _OutsideError
        if "type" in schema:
            checks.append(_type(schema["type"]))
        for key, value in schema.items():
            keyword = self.keyword(schema, key, value, depth)
            if keyword is not None:
                checks.append(keyword)
        return _every(checks)

    def keyword(self, schema: dict[str, Json], key: str, value: Json, depth: int) -> Check | None:
        if key in _SILENT or key == "type":
            return None
        if key == "enum" and is_list(value):
            return _enum(value)
        if key == "const":
            return lambda instance: json_equal(instance, value)
        if key == "$ref":
            return self.ref(value)
        if key in ("properties", "required", "additionalProperties"):
            first = next(name for name in schema if name in ("properties", "required", "additionalProperties"))
            return self.members(schema, depth) if key == first else None
        if key == "items":
            if is_list(value):
                raise _OutsideError
            return _items(self.compile(value, depth + 1))
        if key in ("allOf", "anyOf", "oneOf"):
            if not is_list(value):
                raise _OutsideError
            return _combine(key, [self.compile(part, depth + 1) for part in value])
        if key == "not":
            inner = self.compile(value, depth + 1)
            return lambda instance: not inner(instance)
        if key == "pattern" and isinstance(value, str):
            test = compile_pattern(value).test
            return lambda instance: not isinstance(instance, str) or test(instance)
        if key == "uniqueItems":
            return _unique if value else None
        limit = _limit(key, value)
        if limit is not None:
            return limit
        # An unknown keyword means nothing, to jsonschema as well.
        return None

    def ref(self, ref: Json) -> Check:
        if not isinstance(ref, str) or not (ref == "#" or ref.startswith("#/")):
            raise _OutsideError
        slot = self.refs.get(ref)
        if slot is None:
            # A schema may refer to itself: the slot is filled once, and found by every reference.
            slot = self.refs[ref] = []
            slot.append(self.compile(resolve(self.root, ref), 0))
        cell = slot
        # Alternatives that all lead back here would judge a part once for each path to it: exponentially often in its depth.
        # An entry holds its instance, so that the identity cannot be another's.
        memo: dict[int, tuple[Json, bool]] = {}
        self.memos.append(memo)

        def check(instance: Json) -> bool:
            if not isinstance(instance, (dict, list)):
                return cell[0](instance)
            known = memo.get(id(instance))
            if known is not None:
                return known[1]
            verdict = cell[0](instance)
            memo[id(instance)] = (instance, verdict)
            return verdict

        return check

    def members(self, schema: dict[str, Json], depth: int) -> Check:
        declared = schema.get("properties", {})
        required = schema.get("required", [])
        extra = schema.get("additionalProperties", True)
        if not is_object(declared) or not is_list(required):
            raise _OutsideError
        checks = {name: self.compile(part, depth + 1) for name, part in declared.items()}
        names = [name for name in required if isinstance(name, str)]
        rest = None if extra is True or extra == {} else self.compile(extra, depth + 1)

        def check(instance: Json) -> bool:
            if not isinstance(instance, dict):
                return True
            for name in names:
                if name not in instance:
                    return False
            for name, value in instance.items():
                member_check = checks.get(name)
                if member_check is not None:
                    # most members are texts of which no more is asked
                    if (member_check is not _string or type(value) is not str) and not member_check(value):
                        return False
                elif rest is not None and not rest(value):
                    return False
            return True

        return check


def _always(_: Json) -> bool:
    return True


def _never(_: Json) -> bool:
    return False


def _every(checks: list[Check]) -> Check:
    checks = [check for check in checks if check is not _always]
    if not checks:
        return _always
    if len(checks) == 1:
        return checks[0]
    if len(checks) == 2:
        one, two = checks
        return lambda instance: one(instance) and two(instance)
    several = tuple(checks)

    def check(instance: Json) -> bool:
        for part in several:  # noqa: SIM110 (a generator costs twice as much here)
            if not part(instance):
                return False
        return True

    return check


def _integer(value: Json) -> bool:
    kind = type(value)
    return kind is int or (kind is float and value.is_integer())  # type: ignore[union-attr]


def _number(value: Json) -> bool:
    kind = type(value)
    return kind is int or kind is float


def _string(value: Json) -> bool:
    return isinstance(value, str)


def _object(value: Json) -> bool:
    return isinstance(value, dict)


_TYPES: dict[str, Check] = {
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": lambda value: value is True or value is False,
    "null": lambda value: value is None,
    "array": is_list,
    "object": _object,
}


def _type(names: Json) -> Check:
    if isinstance(names, str) and names in _TYPES:
        return _TYPES[names]
    if is_list(names) and all(isinstance(name, str) and name in _TYPES for name in names):
        several = [str(name) for name in names]
        return lambda value: any(has_type(value, name) for name in several)
    raise _OutsideError


def _enum(values: list[Json]) -> Check:
    texts = frozenset(value for value in values if isinstance(value, str))
    if len(texts) == len(values):
        return lambda instance: isinstance(instance, str) and instance in texts
    return lambda instance: enum_has(values, instance)


def _items(inner: Check) -> Check:
    def check(instance: Json) -> bool:
        if not isinstance(instance, list):
            return True
        for item in instance:  # noqa: SIM110 (a generator costs twice as much here)
            if not inner(item):
                return False
        return True

    return check


def _combine(key: str, parts: list[Check]) -> Check:
    if key == "allOf":
        return _every(parts)
    if key == "anyOf":
        return lambda instance: any(part(instance) for part in parts)
    return lambda instance: sum(1 for part in parts if part(instance)) == 1


def _unique(instance: Json) -> bool:
    if not isinstance(instance, list):
        return True
    seen: set[tuple[str, object]] = set()
    others: list[Json] = []
    for item in instance:
        if isinstance(item, (list, dict)):
            if enum_has(others, item):
                return False
            others.append(item)
            continue
        # 1 and 1.0 are equal and hash alike; true is neither.
        key = ("flag" if isinstance(item, bool) else "", item)
        if key in seen:
            return False
        seen.add(key)
    return True


def _limit(key: str, value: Json) -> Check | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        if key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"):
            raise _OutsideError
        return None
    bound = value
    if key == "minimum":
        return lambda instance: not _number(instance) or instance >= bound  # type: ignore[operator]
    if key == "maximum":
        return lambda instance: not _number(instance) or instance <= bound  # type: ignore[operator]
    if key == "exclusiveMinimum":
        return lambda instance: not _number(instance) or instance > bound  # type: ignore[operator]
    if key == "exclusiveMaximum":
        return lambda instance: not _number(instance) or instance < bound  # type: ignore[operator]
    if key == "minLength":
        return lambda instance: not isinstance(instance, str) or len(instance) >= bound
    if key == "maxLength":
        return lambda instance: not isinstance(instance, str) or len(instance) <= bound
    if key == "minItems":
        return lambda instance: not isinstance(instance, list) or len(instance) >= bound
    if key == "maxItems":
        return lambda instance: not isinstance(instance, list) or len(instance) <= bound
    if key == "minProperties":
        return lambda instance: not isinstance(instance, dict) or len(instance) >= bound
    if key == "maxProperties":
        return lambda instance: not isinstance(instance, dict) or len(instance) <= bound
    if key == "multipleOf":
        return lambda instance: is_multiple(instance, bound)
    return None


def is_multiple(instance: Json, of: int | float) -> bool:
    """``multipleOf`` as jsonschema reads it: floats by their quotient, exactly where it overflows."""
    if isinstance(instance, bool) or not isinstance(instance, (int, float)):
        return True
    if isinstance(of, int):
        return instance % of == 0
    try:
        quotient = instance / of
    except OverflowError:
        return _is_multiple(instance, of)
    if math.isinf(quotient):
        return _is_multiple(instance, of)
    return int(quotient) == quotient


def _is_multiple(value: float, of: float) -> bool:
    from fractions import Fraction

    return (Fraction(value) / Fraction(of)).denominator == 1
