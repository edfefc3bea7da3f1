"""Which schemas hold at a place of a JSON document: the way down through references, branches and conditions.

For completion and hover only; whether a document is valid is decided elsewhere. Of several branches those count that the
document's present values speak for: no fault before faults, then a matching ``enum`` or ``const``, then the most known members.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, cast

import msgspec

from tamis.protocols.jsontext.tree import JsonNode, Path
from tamis.protocols.model import Json
from tamis.protocols.schema.words import resolve

Schema = dict[str, Any]
_MAX_STEPS = 4_000
_MAX_ITEMS = 50
"""Items of a list, and members of an object, that are looked at to choose a branch."""


def schemas_at(schema: object, node: JsonNode | None, path: Path, root: object = None) -> list[Schema]:
    """The schemas that apply to the value at ``path`` below ``node``, which ``schema`` describes.

    References are looked up in ``root``, which is ``schema`` itself unless given.
    """
    walk = _Walk(schema if root is None else root)
    here = walk.expand(schema, node)
    for token in path:
        below = node.at((token,)) if node is not None else None
        here = [schema for parent in here for part in _step(parent, token) for schema in walk.expand(part, below)]
        node = below
    return here


def folded(schemas: list[Schema]) -> list[Schema]:
    """The schemas of a place, each reference together with what it leads to: what stands beside ``$ref`` counts first."""
    folded_schemas: list[Schema] = []
    held: Schema = {}
    for schema in schemas:
        held = {**schema, **held}
        if not isinstance(schema.get("$ref"), str):
            folded_schemas.append({name: part for name, part in held.items() if name != "$ref"})
            held = {}
    return [*folded_schemas, held] if held else folded_schemas


class _Fit(msgspec.Struct):
    """How well a value fits a schema."""

    faults: int = 0
    named: bool = False
    """An ``enum`` or ``const`` names the value."""
    tags: int = 0
    """Members whose schema names their value: what tells branches apart."""
    known: int = 0
    """Members that the schema declares."""

    @property
    def rank(self) -> tuple[bool, bool, int, int]:
        """Greater is better."""
        return self.faults == 0, self.named, self.tags, self.known

    def add(self, other: _Fit) -> None:
        self.faults += other.faults
        self.named = self.named or other.named
        self.tags += other.tags
        self.known += other.known


class _Walk:
    """One descent; counts its steps, so that a schema of references to itself ends."""

    def __init__(self, root: object) -> None:
        self._root = root
        self._left = _MAX_STEPS

    def expand(self, schema: object, node: JsonNode | None) -> list[Schema]:
        """A schema and everything that it pulls in for this value."""
        schemas: list[Schema] = []
        self._expand(schema, node, schemas, 0)
        return schemas

    def _expand(self, schema: object, node: JsonNode | None, schemas: list[Schema], depth: int) -> None:
        self._left -= 1
        if not isinstance(schema, dict) or self._left < 0 or depth > 40:
            return
        here = cast("Schema", schema)
        schemas.append(here)
        for key in ("$ref", "$dynamicRef"):
            if isinstance(here.get(key), str):
                self._expand(self.resolve(here[key]), node, schemas, depth + 1)
        for part in _list(here.get("allOf")):
            self._expand(part, node, schemas, depth + 1)
        for key in ("oneOf", "anyOf"):
            for part in self._chosen(_list(here.get(key)), node, only_one=key == "oneOf"):
                self._expand(part, node, schemas, depth + 1)
        if "if" in here:
            # What the condition names may be written too: that is how one of the branches is chosen.
            self._expand(here["if"], node, schemas, depth + 1)
            holds = node is not None and self._fit(here["if"], node, depth + 1).faults == 0
            self._expand(here.get("then" if holds else "else"), node, schemas, depth + 1)
        for name, part in _parts(here.get("dependentSchemas")):
            if node is not None and node.kind == "object" and node.member(name) is not None:
                self._expand(part, node, schemas, depth + 1)

    def _chosen(self, branches: list[Any], node: JsonNode | None, *, only_one: bool) -> list[Any]:
        if node is None or len(branches) < 2:
            return branches
        fits = [(self._fit(part, node, 1).rank, part) for part in branches]
        best = max(rank for rank, _ in fits)
        if best[0] and not only_one:
            # Several branches without a fault are all still open, unless the values speak for one.
            good = [(rank, part) for rank, part in fits if rank[0]]
            top = max(rank[1:3] for rank, _ in good)
            return [part for rank, part in good if rank[1:3] == top]
        return [part for rank, part in fits if rank == best]

    def resolve(self, reference: str) -> object:
        """What a reference inside the same schema leads to; None for any other."""
        try:
            return resolve(cast("Json", self._root), reference)
        except KeyError:
            return None

    def _fit(self, schema: object, node: JsonNode, depth: int) -> _Fit:
        self._left -= 1
        fit = _Fit()
        if not isinstance(schema, dict) or self._left < 0 or depth > 20:
            fit.faults = int(schema is False)
            return fit
        here = cast("Schema", schema)
        if isinstance(here.get("$ref"), str):
            fit.add(self._fit(self.resolve(here["$ref"]), node, depth + 1))
        kinds: Any = here.get("type")
        if kinds is not None and not _has_type(node, kinds):
            fit.faults += 1
        if "const" in here or isinstance(here.get("enum"), list):
            fit.named = _is_one_of(node, [here["const"]] if "const" in here else here["enum"])
            fit.faults += not fit.named
        for part in _list(here.get("allOf")):
            fit.add(self._fit(part, node, depth + 1))
        for key in ("anyOf", "oneOf"):
            branches = _list(here.get(key))[:_MAX_ITEMS]
            if branches:
                fit.add(max((self._fit(part, node, depth + 1) for part in branches), key=lambda item: item.rank))
        if node.kind == "object":
            self._fit_members(here, node, fit, depth)
        elif node.kind == "array":
            prefix, rest = _items(here)
            for index, item in enumerate(node.items[:_MAX_ITEMS]):
                fit.faults += self._fit(prefix[index] if index < len(prefix) else rest, item, depth + 1).faults
        return fit

    def _fit_members(self, schema: Schema, node: JsonNode, fit: _Fit, depth: int) -> None:
        fit.faults += sum(node.member(str(name)) is None for name in _list(schema.get("required"))[:_MAX_ITEMS])
        declared: Any = schema.get("properties")
        properties = cast("Schema", declared) if isinstance(declared, dict) else {}
        for member in node.members[:_MAX_ITEMS]:
            if member.key not in properties:
                fit.faults += schema.get("additionalProperties") is False and "patternProperties" not in schema
                continue
            fit.known += 1
            if member.value is not None and member.value.kind != "error":
                inner = self._fit(properties[member.key], member.value, depth + 1)
                fit.faults += inner.faults
                fit.tags += inner.named


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _parts(value: object) -> list[tuple[str, Any]]:
    return list(cast("Schema", value).items()) if isinstance(value, dict) else []


def _is_one_of(node: JsonNode, values: list[Any]) -> bool:
    if node.kind in ("object", "array"):
        return node.to_python() in [candidate for candidate in values if isinstance(candidate, (dict, list))]
    return any(type(item) is type(node.value) and item == node.value for item in values) or (
        node.kind == "number" and not isinstance(node.value, bool) and node.value in values
    )


def _has_type(node: JsonNode, kinds: object) -> bool:
    wanted: list[Any] = _list(cast("object", kinds)) if isinstance(kinds, list) else [kinds]
    return node.kind == "error" or node.kind in wanted or (node.kind == "number" and "integer" in wanted)


def _items(schema: Schema) -> tuple[list[Any], Any]:
    """The schemas of a list's first items, and that of the others (2020-12 and draft-07)."""
    if isinstance(schema.get("items"), list):
        return schema["items"], schema.get("additionalItems")
    return _list(schema.get("prefixItems")), schema.get("items")


def _step(schema: Schema, token: str | int) -> Iterator[object]:
    if isinstance(token, int):
        prefix, rest = _items(schema)
        yield prefix[token] if token < len(prefix) else rest
        return
    properties: Any = schema.get("properties")
    if isinstance(properties, dict) and token in properties:
        yield properties[token]
        return
    matched = [
        part for pattern, part in _parts(schema.get("patternProperties"))[:_MAX_ITEMS] if _matches(pattern, token)
    ]
    yield from matched or [schema.get("additionalProperties")]


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return None


_RISKY = re.compile(r"[*+}][^()]*\)[*+{]")
"""A repeat inside a repeat can take time without end; such a pattern is not tried for a mere proposal."""


def _matches(pattern: str, name: str) -> bool:
    if len(pattern) > 200 or len(name) > 200 or _RISKY.search(pattern):
        return False
    regex = _compiled(pattern)
    return regex is not None and regex.search(name) is not None
