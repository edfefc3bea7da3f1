"""What no prompt says of a schema: the values of secrets (``"x-secret": true``), which only people and tools may see."""

from __future__ import annotations

from tamis.protocols.model import MAX_DEPTH, Json
from tamis.protocols.schema.vocabulary import MAPS
from tamis.protocols.schema.words import is_list, is_object

_VALUES = frozenset(("default", "examples", "enum", "const"))


def without_secret_values(schema: dict[str, Json]) -> dict[str, Json]:
    """The schema without the values that it gives for a secret, or for an object or a list that holds one.

    What nests deeper than 64 levels is left open: no prompt shows it.
    """
    return _cleaned(schema, 0)[0]


def _cleaned(schema: dict[str, Json], depth: int) -> tuple[dict[str, Json], bool]:
    if depth > MAX_DEPTH:
        return {}, False
    secret = schema.get("x-secret") is True
    kept: dict[str, Json] = {}
    for key, part in schema.items():
        if key in _VALUES:
            kept[key] = part
            continue
        kept[key], below = _part(part, depth + 1, is_map=key in MAPS)
        secret = secret or below
    return ({key: part for key, part in kept.items() if key not in _VALUES} if secret else kept), secret


def _part(part: Json, depth: int, *, is_map: bool) -> tuple[Json, bool]:
    if is_list(part):
        cleaned = [_part(one, depth + 1, is_map=False) for one in part] if depth <= MAX_DEPTH else []
        return [one for one, _ in cleaned], any(found for _, found in cleaned)
    if not is_object(part):
        return part, False
    if not is_map:
        return _cleaned(part, depth)
    named = {name: _part(one, depth, is_map=False) for name, one in part.items()}
    return {name: one for name, (one, _) in named.items()}, any(found for _, found in named.values())
