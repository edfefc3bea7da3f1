"""Masking of secret arguments: what ``"x-secret": true`` marks in a schema is never shown in logs, records or observations.

Must not know where the masked values go.
"""

from __future__ import annotations

from tamis.protocols.model import MAX_DEPTH, Json
from tamis.protocols.schema.words import MAPS, is_list, is_object, resolve

MASK = "***"
_MAX_DEPTH = 64


def mask(args: Json, schema: Json) -> Json:
    """A copy of raw or coerced arguments with every secret value replaced by ``***``.

    A text that stands for an object or list with secrets inside (JSON text) is masked whole, as is what lies too deep to look at.
    """
    return _Mask(schema).value(args, [schema], 0)


class _Mask:
    def __init__(self, root: Json) -> None:
        self.root = root
        self.secretive: dict[int, bool] = {}

    def value(self, value: Json, schemas: list[Json], depth: int) -> Json:
        parts = self.expanded(schemas)
        if any(part.get("x-secret") is True for part in parts):
            return MASK
        if not any(self.has_secret(part) for part in parts):
            return value
        if depth > _MAX_DEPTH or isinstance(value, str):
            return MASK
        if is_object(value):
            return {name: self.value(inner, _below(parts, name), depth + 1) for name, inner in value.items()}
        if is_list(value):
            return [self.value(inner, _items(parts, i), depth + 1) for i, inner in enumerate(value)]
        return value

    def expanded(self, schemas: list[Json]) -> list[dict[str, Json]]:
        """The schemas with all that apply at the same place."""
        parts: list[dict[str, Json]] = []
        seen: set[int] = set()
        stack = list(schemas)
        while stack and len(parts) < 1_000:
            node = stack.pop()
            if not is_object(node) or id(node) in seen:
                continue
            seen.add(id(node))
            parts.append(node)
            for key in ("allOf", "anyOf", "oneOf"):
                below = node.get(key)
                if is_list(below):
                    stack.extend(below)
            stack.extend(node[key] for key in ("if", "then", "else") if key in node)
            ref = node.get("$ref")
            if isinstance(ref, str) and (ref == "#" or ref.startswith("#/")):
                try:
                    stack.append(resolve(self.root, ref))
                except KeyError:
                    continue
        return parts

    def has_secret(self, schema: dict[str, Json]) -> bool:
        """Whether a secret is marked anywhere below a schema, through references too."""
        known = self.secretive.get(id(schema))
        if known is not None:
            return known
        is_secret = False
        stack: list[Json] = [schema]
        seen: set[int] = set()
        while stack and not is_secret:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if is_list(node):
                stack.extend(node)
            elif is_object(node):
                is_secret = node.get("x-secret") is True
                stack.extend(node.values())
                ref = node.get("$ref")
                if isinstance(ref, str) and ref.startswith("#"):
                    try:
                        stack.append(resolve(self.root, ref))
                    except KeyError:
                        continue
        self.secretive[id(schema)] = is_secret
        return is_secret


def _below(parts: list[dict[str, Json]], name: str) -> list[Json]:
    schemas: list[Json] = []
    for part in parts:
        properties = part.get("properties")
        if is_object(properties) and name in properties:
            schemas.append(properties[name])
        else:
            schemas += [part[key] for key in ("additionalProperties", "unevaluatedProperties") if key in part]
        patterns = part.get("patternProperties")
        if is_object(patterns):
            schemas += list(patterns.values())
    return schemas


def _items(parts: list[dict[str, Json]], index: int) -> list[Json]:
    schemas: list[Json] = []
    for part in parts:
        for key in ("prefixItems", "items"):
            below = part.get(key)
            if is_list(below):
                schemas += below[index : index + 1]
            elif below is not None:
                schemas.append(below)
        schemas += [part[key] for key in ("additionalItems", "contains", "unevaluatedItems") if key in part]
    return schemas


# What no prompt and no export says of a schema: the values of secrets, which only people and tools may see.


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
        cleaned = [_part(item, depth + 1, is_map=False) for item in part] if depth <= MAX_DEPTH else []
        return [item for item, _ in cleaned], any(found for _, found in cleaned)
    if not is_object(part):
        return part, False
    if not is_map:
        return _cleaned(part, depth)
    named = {name: _part(item, depth, is_map=False) for name, item in part.items()}
    return {name: item for name, (item, _) in named.items()}, any(found for _, found in named.values())
