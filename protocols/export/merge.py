"""Several schemas that must all hold, as one schema; says whether it accepts exactly what all of them accept."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from tamis.protocols.export.shape import is_constraint, type_name, types_of
from tamis.protocols.model import Json
from tamis.protocols.schema.words import is_list, is_object

_LARGEST = frozenset(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"))
_SMALLEST = frozenset(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"))
_TOGETHER = (
    frozenset(("items", "prefixItems", "additionalItems", "unevaluatedItems")),
    frozenset(("contains", "minContains", "maxContains")),
    frozenset(("if", "then", "else")),
)
_CLOSING = ("additionalProperties", "patternProperties", "unevaluatedProperties")


def conjunction(parts: Sequence[Json]) -> tuple[dict[str, Json] | bool, bool]:
    """The parts as one schema, and whether it is exact. Where two keywords cannot be joined, the first part's is kept."""
    made: dict[str, Json] = {}
    exact = True
    if any(part is False for part in parts):
        return False, True
    schemas = [part for part in parts if is_object(part)]
    exact = _closes_alike(schemas) and not any(_entangled(schemas, group) for group in _TOGETHER)
    for part in schemas:
        for key, value in part.items():
            if key not in made:
                made[key] = value
                continue
            joined, sure = _joined(key, made[key], value)
            made[key] = joined
            exact = exact and (sure or not is_constraint(key))
    return made, exact


def _entangled(parts: Sequence[dict[str, Json]], group: frozenset[str]) -> bool:
    """Whether keywords that mean something only together stand in several parts; ``items`` alone can be joined."""
    having = [group.intersection(part) for part in parts if not group.isdisjoint(part)]
    return len(having) > 1 and any(names != frozenset(("items",)) for names in having)


def _closes_alike(parts: Sequence[dict[str, Json]]) -> bool:
    """Whether no part refuses, by what it says of undeclared names, a property that another part declares."""
    closing = [part for part in parts if any(part.get(key) not in (None, True) for key in _CLOSING)]
    if not closing:
        return True
    names = [set(_properties(part)) for part in parts]
    return len(parts) == 1 or (len(closing) == len(parts) and all(name == names[0] for name in names))


def _properties(part: dict[str, Json]) -> dict[str, Json]:
    properties = part.get("properties")
    return properties if is_object(properties) else {}


def _joined(key: str, one: Json, other: Json) -> tuple[Json, bool]:
    if json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True):
        return one, True
    join = _JOIN.get(key)
    if join is not None:
        return join(one, other)
    if isinstance(one, int | float) and isinstance(other, int | float):
        if key in _LARGEST:
            return max(one, other), True
        if key in _SMALLEST:
            return min(one, other), True
    return one, False


def _join_type(one: Json, other: Json) -> tuple[Json, bool]:
    ours, theirs = types_of({"type": one}), types_of({"type": other})
    both = [name for name in ours if name in theirs or (name == "integer" and "number" in theirs)]
    both += [name for name in theirs if name == "integer" and "number" in ours and name not in both]
    if not both:
        return one, False
    return both[0] if len(both) == 1 else list[Json](both), True


def _join_properties(one: Json, other: Json) -> tuple[Json, bool]:
    if not is_object(one) or not is_object(other):
        return one, False
    made = dict(one)
    exact = True
    for name, schema in other.items():
        if name in made:
            made[name], sure = conjunction([made[name], schema])
            exact = exact and sure
        else:
            made[name] = schema
    return made, exact


def _join_required(one: Json, other: Json) -> tuple[Json, bool]:
    if not is_list(one) or not is_list(other):
        return one, False
    return list(dict.fromkeys(str(name) for name in (*one, *other))), True


def _join_enum(one: Json, other: Json) -> tuple[Json, bool]:
    if not is_list(one) or not is_list(other):
        return one, False
    theirs = [(type_name(value), value) for value in other]
    both = [value for value in one if (type_name(value), value) in theirs]
    return (both, True) if both else (one, False)


def _join_parts(one: Json, other: Json) -> tuple[Json, bool]:
    if isinstance(one, bool) or isinstance(other, bool):
        return (False, True) if one is False or other is False else (other if one is True else one, True)
    return conjunction([one, other]) if is_object(one) and is_object(other) else (one, False)


_JOIN: dict[str, Callable[[Json, Json], tuple[Json, bool]]] = {
    "type": _join_type,
    "properties": _join_properties,
    "required": _join_required,
    "enum": _join_enum,
    "items": _join_parts,
    "additionalProperties": _join_parts,
}
