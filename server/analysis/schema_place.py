"""Which schemas hold at a place of a JSON document: the way down through references, branches and conditions.

For completion and hover only; whether a document is valid is decided elsewhere. Branches that the document's present
values rule out (``const``, ``enum``, ``required`` under ``if``, ``oneOf``, ``anyOf``) are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from tamis.protocols.jsontext.tree import JsonNode, Path

Schema = dict[str, Any]
_MAX_STEPS = 2_000


def schemas_at(schema: object, node: JsonNode | None, path: Path) -> list[Schema]:
    """The schemas that apply to the value at ``path`` of a document whose root is ``node``."""
    walk = _Walk(schema)
    here = list(walk.expand(schema, node))
    for token in path:
        below = node.at((token,)) if node is not None else None
        here = [found for parent in here for part in _step(parent, token) for found in walk.expand(part, below)]
        node = below
    return here


class _Walk:
    """One descent; counts its steps, so that a schema of references to itself ends."""

    def __init__(self, root: object) -> None:
        self._root = root
        self._left = _MAX_STEPS

    def expand(self, schema: object, node: JsonNode | None) -> Iterator[Schema]:
        """A schema and everything that it pulls in for this value."""
        self._left -= 1
        if not isinstance(schema, dict) or self._left < 0:
            return
        here = cast("Schema", schema)
        yield here
        reference: Any = here.get("$ref")
        if isinstance(reference, str) and reference.startswith("#"):
            yield from self.expand(self._resolve(reference), node)
        for part in _list(here.get("allOf")):
            yield from self.expand(part, node)
        for key in ("oneOf", "anyOf"):
            branches = _list(here.get(key))
            fitting = [part for part in branches if self._fits(part, node)]
            for part in fitting or branches:
                yield from self.expand(part, node)
        if "if" in here:
            yield from self.expand(here.get("then" if self._fits(here["if"], node, strict=True) else "else"), node)

    def _resolve(self, reference: str) -> object:
        here: Any = self._root
        for token in reference.lstrip("#").split("/")[1:]:
            token = token.replace("~1", "/").replace("~0", "~")
            here = cast("Schema", here).get(token) if isinstance(here, dict) else None
        return here

    def _fits(self, schema: object, node: JsonNode | None, *, strict: bool = False) -> bool:
        """Whether the values that are there agree with a branch; ``strict``: what it requires must be there too."""
        if not isinstance(schema, dict):
            return schema is not False
        here = cast("Schema", schema)
        reference: Any = here.get("$ref")
        if isinstance(reference, str) and reference.startswith("#"):
            return self._fits(self._resolve(reference), node, strict=strict)
        if node is None:
            return not strict
        kinds: Any = here.get("type")
        if kinds is not None and not _has_type(node, kinds):
            return False
        if "const" in here and (node.kind in ("object", "array") or node.value != here["const"]):
            return False
        if "enum" in here and node.kind not in ("object", "array") and node.value not in here["enum"]:
            return False
        if strict and any(node.member(str(name)) is None for name in _list(here.get("required"))):
            return False
        properties: Any = here.get("properties")
        if node.kind == "object" and isinstance(properties, dict):
            for name, part in cast("Schema", properties).items():
                value = node.get(name)
                if value is not None and not self._fits(part, value):
                    return False
        return True


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _has_type(node: JsonNode, kinds: object) -> bool:
    wanted: list[Any] = _list(cast("object", kinds)) if isinstance(kinds, list) else [kinds]
    return node.kind == "error" or node.kind in wanted or (node.kind == "number" and "integer" in wanted)


def _step(schema: Schema, token: str | int) -> Iterator[object]:
    if isinstance(token, int):
        prefix = _list(schema.get("prefixItems"))
        yield prefix[token] if token < len(prefix) else schema.get("items")
        return
    properties: Any = schema.get("properties")
    if isinstance(properties, dict) and token in properties:
        yield properties[token]
        return
    yield schema.get("additionalProperties")
