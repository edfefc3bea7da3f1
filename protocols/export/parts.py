"""What the rewriting of schemas asks about single parts: does one take null, are branches apart, what is shown of a value. Pure functions."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from tamis.protocols.export.shape import TYPES, type_name, types_of
from tamis.protocols.model import Json
from tamis.protocols.schema.words import is_list, is_object

MAX_BRANCHES = 200


def nullable(schema: dict[str, Json]) -> dict[str, Json]:
    """A schema that takes null too, in the strict manner."""
    parts = schema.get("anyOf")
    if is_list(parts):
        return schema if any(_takes_null(part) for part in parts) else {**schema, "anyOf": [*parts, {"type": "null"}]}
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    kinds = list[Json](types_of(schema))
    made: dict[str, Json] = {**schema, "type": kinds if "null" in kinds else [*kinds, "null"]}
    values = schema.get("enum")
    return {**made, "enum": [*values, None]} if is_list(values) and None not in values else made


def _takes_null(part: Json) -> bool:
    return is_object(part) and "null" in types_of(part)


def only_null(branch: Json) -> bool:
    """Whether a branch of a choice takes null and nothing else."""
    return is_object(branch) and (
        types_of(branch) == ("null",) or branch.get("enum") == [None] or branch.get("const", 0) is None
    )


def is_told(value: Json, *, strict: bool) -> bool:
    """Whether a value may stand in a list of allowed values."""
    return not isinstance(value, dict | list) if strict else isinstance(value, str) and value != ""


def disjoint(branches: Sequence[Json]) -> bool:
    """Whether no value can fit two of the branches, as far as their types and listed values show."""
    if len(branches) > MAX_BRANCHES:
        return False
    seen: list[tuple[set[str], set[str] | None]] = []
    for branch in branches:
        if not is_object(branch):
            return False
        values = [branch["const"]] if "const" in branch else branch.get("enum")
        listed = {json.dumps(value, sort_keys=True) for value in values} if is_list(values) else None
        kinds = {type_name(value) for value in values} if is_list(values) else set(types_of(branch)) or set(TYPES)
        kinds |= {"integer"} if "number" in kinds else set[str]()
        for others, known in seen:
            apart = listed is not None and known is not None and listed.isdisjoint(known) and not kinds & {"integer"}
            if not apart and not kinds.isdisjoint(others):
                return False
        seen.append((kinds, listed))
    return True


def whole_bounds(node: dict[str, Json], made: dict[str, Json]) -> None:
    """Bounds of a whole number that leave the bound itself out, as bounds that take it in."""
    for key, plain, step in (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)):
        bound = node.get(key)
        if isinstance(bound, bool) or not isinstance(bound, int | float) or not math.isfinite(bound):
            continue
        whole = int(bound // 1) if step > 0 else -int(-bound // 1)
        known = made.get(plain)
        value = whole + step
        if isinstance(known, int | float) and not isinstance(known, bool):
            value = max(known, value) if step > 0 else min(known, value)
        made[plain] = value


def shown(value: Json) -> str:
    """A value as a sentence has it, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:99]}…"
