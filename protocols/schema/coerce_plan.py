"""Schema to coercion nodes: which types a place allows, and what lies below it.

Works for every schema, also for one whose validity only jsonschema can judge. Must not see arguments.
"""

from __future__ import annotations

from collections.abc import Callable

from tamis.protocols.model import Json
from tamis.protocols.schema.check import resolve
from tamis.protocols.schema.coerce import Node
from tamis.protocols.schema.formats import format_name
from tamis.protocols.schema.valid import Check
from tamis.protocols.schema.words import is_list, is_object, type_of

_MAX_NODES = 50_000


def compile_nodes(schema: Json, valid_of: Callable[[Json], Check | None]) -> Node:
    """The coercion nodes of a schema; ``valid_of`` compiles the predicate of an alternative. Never raises on a checked schema."""
    return _Builder(schema, valid_of).node(schema)


class _Builder:
    def __init__(self, root: Json, valid_of: Callable[[Json], Check | None]) -> None:
        self.root = root
        self.valid_of = valid_of
        self.by_ref: dict[str, Node] = {}
        self.made = 0

    def node(self, schema: Json, node: Node | None = None) -> Node:
        node = node or Node()
        self.made += 1
        if not is_object(schema) or self.made > _MAX_NODES:
            node.plain = True
            return node
        ref = schema.get("$ref")
        if isinstance(ref, str):
            target = self.target(ref)
            if target is not None:
                node.all_of.append(target)
        self.values(schema, node)
        self.parts(schema, node)
        node.types = _meet([node.types, *(_types_of_choice(choice) for choice in node.choices)])
        for part in node.all_of:
            node.types = _meet([node.types, part.types])
            node.enum = node.enum if node.enum is not None else part.enum
            node.required |= part.required
        node.plain = (
            node.enum is None
            and node.format is None
            and (node.types is None or "string" in node.types)
            and not (node.types is not None and "null" in node.types)
            and not any(part.format or not part.plain for part in node.all_of)
        )
        return node

    def target(self, ref: str) -> Node | None:
        if not (ref == "#" or ref.startswith("#/")):
            return None
        found = self.by_ref.get(ref)
        if found is None:
            try:
                schema = resolve(self.root, ref)
            except KeyError:
                return None
            # Entered before it is built: a schema may refer to itself.
            found = self.by_ref[ref] = Node()
            if is_object(schema):
                found.types = _declared(schema)
            self.node(schema, found)
        return found

    def values(self, schema: dict[str, Json], node: Node) -> None:
        types = _declared(schema)
        enum = schema.get("enum")
        if "const" in schema:
            enum = [schema["const"]]
        if is_list(enum):
            node.enum = enum
            of_enum = tuple(dict.fromkeys(type_of(value) for value in enum))
            types = of_enum if types is None else types
        node.types = types
        named = schema.get("format")
        if isinstance(named, str) and format_name(named) is not None:
            node.format = named

    def parts(self, schema: dict[str, Json], node: Node) -> None:
        properties = schema.get("properties")
        if is_object(properties):
            node.properties = {name: self.node(part) for name, part in properties.items()}
        required = schema.get("required")
        if is_list(required):
            node.required = frozenset(name for name in required if isinstance(name, str))
        additional = schema.get("additionalProperties")
        if is_object(additional) and additional:
            node.additional = self.node(additional)
        items = schema.get("items")
        prefix = schema.get("prefixItems")
        if is_list(items):
            prefix, items = items, schema.get("additionalItems")
        if is_object(items):
            node.items = self.node(items)
        if is_list(prefix):
            node.prefix = [self.node(part) for part in prefix]
        all_of = schema.get("allOf")
        if is_list(all_of):
            node.all_of += [self.node(part) for part in all_of]
        for key in ("anyOf", "oneOf"):
            alternatives = schema.get(key)
            if is_list(alternatives):
                choice = [self.node(part) for part in alternatives]
                for part, made in zip(alternatives, choice, strict=True):
                    made.valid = self.valid_of(part)
                node.choices.append(choice)


def _declared(schema: dict[str, Json]) -> tuple[str, ...] | None:
    named = schema.get("type")
    if isinstance(named, str):
        return (named,)
    if is_list(named):
        types = tuple(str(name) for name in named)
        # A whole number in a text is an integer before it is a number.
        return tuple(sorted(types, key=lambda name: name == "number")) if "integer" in types else types
    return None


def _types_of_choice(choice: list[Node]) -> tuple[str, ...] | None:
    types: dict[str, None] = {}
    for node in choice:
        if node.types is None:
            return None
        types.update(dict.fromkeys(node.types))
    return tuple(types)


def _meet(all_types: list[tuple[str, ...] | None]) -> tuple[str, ...] | None:
    """The types that all of them allow; an integer is a number too."""
    met: tuple[str, ...] | None = None
    for types in all_types:
        if types is None:
            continue
        if met is None:
            met = types
            continue
        wide = {*types, "integer"} if "number" in types else set(types)
        kept = tuple(name for name in met if name in wide or (name == "number" and "integer" in types))
        met = tuple("integer" if name == "number" and "number" not in wide else name for name in kept)
    return met
