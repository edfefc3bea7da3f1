"""Schemas as they are written in a manifest: where a parameter is declared, listed as required and used by an example.

Works on the JSON tree of one manifest, with places. Must not know calls, other files or LSP.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tamis.protocols.jsontext.tree import JsonNode, JsonTree, Member, Path, from_pointer
from tamis.protocols.positions import Span
from tamis.server.analysis.facts import inner

SCHEMAS = ("parameters", "output")
EXAMPLES = {"input": "parameters", "expectedOutput": "output"}
"""What an example's data are instances of."""
DEFINITIONS = ("$defs", "definitions")
_MAX_HOPS = 32

Chain = tuple[str, ...]
"""How a value is reached from the arguments: names of properties, ``*`` for every item of a list."""


class Spot(msgspec.Struct, frozen=True):
    """A name in the tree, without its quotes. ``declares`` says whether it is the declaration."""

    span: Span
    declares: bool = False


def schema_root(path: Path) -> Path | None:
    """The root of the schema that a path lies in, or None outside every schema."""
    return path[:1] if path and path[0] in SCHEMAS else None


Anchors = dict[tuple[Path, str], Path]
"""Where each ``$anchor`` of a file stands, by the root of its schema and its name."""


def anchors_of(tree: JsonTree) -> Anchors:
    """The anchors of a file; of equal ones the first."""
    anchors: Anchors = {}
    for path, node in _objects(tree):
        name = _text(node.get("$anchor"))
        if name:
            anchors.setdefault((path[:1], name), path)
    return anchors


def resolve_reference(tree: JsonTree, reference: str, at: Path, anchors: Anchors | None = None) -> Path | None:
    """The path of what a ``$ref`` at ``at`` means in the same file, or None where nothing is there.

    ``#/…`` counts from the root of the schema around it, ``#name`` is an ``$anchor``: whoever asks often gives ``anchors_of``.
    """
    root = schema_root(at)
    if root is None or tree.root is None or not reference.startswith("#"):
        return None
    if reference in ("#", "#/"):
        return root if tree.root.at(root) is not None else None
    if reference.startswith("#/"):
        path: Path = (*root, *from_pointer(_decoded(reference[1:])))
        return path if tree.root.at(path) is not None else None
    return (anchors_of(tree) if anchors is None else anchors).get((root, reference[1:]))


def _objects(tree: JsonTree) -> Iterator[tuple[Path, JsonNode]]:
    for name in SCHEMAS:
        top = tree.root.get(name) if tree.root is not None and tree.root.kind == "object" else None
        yield from ((path, node) for path, node in _walk(top, (name,)) if node.kind == "object")


def references(tree: JsonTree) -> Iterator[tuple[Path, JsonNode]]:
    """Every ``$ref`` of the file: the path of the object that holds it, and the node of its text."""
    for path, node in _objects(tree):
        ref = node.get("$ref")
        if ref is not None and ref.kind == "string":
            yield path, ref


def object_schema(path: Path) -> Path:
    """The object schema that a branch of it (``then``, ``allOf/0`` …) belongs to: they speak of one object."""
    while len(path) > 1:
        if path[-1] in ("if", "then", "else", "not"):
            path = path[:-1]
        elif isinstance(path[-1], int) and len(path) > 2 and path[-2] in ("allOf", "anyOf", "oneOf"):
            path = path[:-2]
        else:
            break
    return path


def declaring(tree: JsonTree, chain: Chain, root: str = "parameters") -> tuple[Path, Member] | None:
    """The object schema and the member of its ``properties`` that declare the value of a chain; follows ``$ref``."""
    path: Path = (root,)
    for i, token in enumerate(chain):
        if token == "*":
            path = (*path, "items")
            continue
        schema = _followed(tree, path)
        declaration = property_of(tree, schema, token) if schema is not None else None
        if schema is None or declaration is None:
            return None
        if i == len(chain) - 1:
            return schema, declaration[1]
        path = (*declaration[0], "properties", token)
    return None


def property_of(tree: JsonTree, schema: Path, name: str) -> tuple[Path, Member] | None:
    """The member that declares a property of an object schema, in it or in its branches, and the path of that branch."""
    for path, node in _branches(tree, schema):
        listed = node.get("properties")
        member = listed.member(name) if listed is not None and listed.kind == "object" else None
        if member is not None:
            return path, member
    return None


def _branches(tree: JsonTree, schema: Path) -> Iterator[tuple[Path, JsonNode]]:
    """An object schema and, behind it, its branches."""
    top = tree.root.at(schema) if tree.root is not None else None
    pending: list[tuple[Path, JsonNode]] = [(schema, top)] if top is not None else []
    while pending:
        path, node = pending.pop(0)
        if node.kind != "object":
            continue
        yield path, node
        for keyword in ("then", "else", "if", "not"):
            part = node.get(keyword)
            if part is not None:
                pending.append(((*path, keyword), part))
        for keyword in ("allOf", "anyOf", "oneOf"):
            pending += [((*path, keyword, i), part) for i, part in enumerate(_items(node.get(keyword)))]


def _followed(tree: JsonTree, path: Path) -> Path | None:
    """A schema's path with its ``$ref`` followed, where it declares no properties of its own."""
    for _ in range(_MAX_HOPS):
        node = tree.root.at(path) if tree.root is not None else None
        if node is None or node.kind != "object":
            return None
        reference = _text(node.get("$ref"))
        if node.get("properties") is not None or not reference:
            return path
        target = resolve_reference(tree, reference, path)
        if target is None:
            return path
        path = target
    return None


def property_spots(tree: JsonTree, schema: Path, name: str) -> list[Spot]:
    """Every place of a manifest that names a property: its declaration, ``required`` and what else lists it, the keys of examples."""
    declaration = property_of(tree, schema, name)
    declared = declaration[1].key_start if declaration is not None else -1
    spots: list[Spot] = []
    for _, node in _branches(tree, schema):
        listed = node.get("properties")
        members = listed.members if listed is not None and listed.kind == "object" else []
        spots += [_key(tree, member, declares=member.key_start == declared) for member in members if member.key == name]
        spots += _listed(tree, node, name)
    spots += [_key(tree, member) for member in _example_keys(tree, schema, name)]
    return sorted(set(spots), key=lambda spot: spot.span)


def _key(tree: JsonTree, member: Member, *, declares: bool = False) -> Spot:
    return Spot(inner(tree.text, member.key_start, member.key_end), declares=declares)


def arguments_schema(tree: JsonTree) -> Path | None:
    """The path of the object schema that declares the arguments of a call."""
    return _followed(tree, ("parameters",))


def _example_keys(tree: JsonTree, schema: Path, name: str) -> Iterator[Member]:
    """The keys of examples that mean the property of a schema, whichever way leads there."""
    root = schema_root(schema)
    if root is None or tree.root is None:
        return
    part = next(key for key, about in EXAMPLES.items() if about == root[0])
    for i, example in enumerate(_items(tree.root.get("examples"))):
        example_node = example.get(part) if example.kind == "object" else None
        for path, node in _walk(example_node, ("examples", i, part)):
            member = node.member(name) if node.kind == "object" else None
            chain = example_chain((*path, name))
            if member is None or chain is None:
                continue
            declaration = declaring(tree, chain[1], chain[0])
            if declaration is not None and declaration[0] == schema:
                yield member


def _listed(tree: JsonTree, node: JsonNode, name: str) -> Iterator[Spot]:
    """The name in ``required``, ``dependentRequired`` and their kin."""
    texts = list(_items(node.get("required")))
    for keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
        listed = node.get(keyword)
        for member in listed.members if listed is not None and listed.kind == "object" else ():
            if member.key == name:
                yield _key(tree, member)
            texts += _items(member.value)
    for item in texts:
        if item.kind == "string" and item.value == name:
            yield Spot(inner(tree.text, item.start, item.end))


def _items(node: JsonNode | None) -> list[JsonNode]:
    return node.items if node is not None and node.kind == "array" else []


def example_chain(path: Path) -> tuple[str, Chain] | None:
    """Which schema an example's key is about, and the way to it there; None for a path that is no key of an example's data."""
    root = EXAMPLES.get(str(path[2])) if len(path) > 3 and path[0] == "examples" else None
    return None if root is None else (root, tuple("*" if isinstance(token, int) else token for token in path[3:]))


def pointer_sites(tree: JsonTree, target: Path) -> list[Span]:
    """The places in the texts of all ``$ref`` that name the last token of a path: a pointer to it or to something below it.

    A reference by ``$anchor`` names something else, and a token that is written with escapes is left out.
    """
    pointer_sites: list[Span] = []
    for at, node in references(tree):
        reference = node.value
        root = schema_root(at)
        if not isinstance(reference, str) or root is None or not reference.startswith("#/"):
            continue
        start, end = inner(tree.text, node.start, node.end)
        if tree.text[start:end] != reference:
            continue
        path, place = root, start + 1
        for written in reference[2:].split("/"):
            place += 1
            path = (*path, from_pointer("/" + _decoded(written))[0])
            if path == target:
                pointer_sites.append((place, place + len(written)))
            place += len(written)
    return pointer_sites


def _decoded(pointer: str) -> str:
    if "%" not in pointer:
        return pointer
    from urllib.parse import unquote

    return unquote(pointer)


def _text(node: JsonNode | None) -> str:
    return node.value if node is not None and isinstance(node.value, str) else ""


def _walk(node: JsonNode | None, path: Path) -> Iterator[tuple[Path, JsonNode]]:
    stack: list[tuple[Path, JsonNode]] = [(path, node)] if node is not None else []
    while stack:
        here, current = stack.pop()
        yield here, current
        parts: list[tuple[Path, JsonNode]] = [
            ((*here, member.key), member.value) for member in current.members if member.value is not None
        ]
        parts += [((*here, i), item) for i, item in enumerate(current.items)]
        stack.extend(reversed(parts))
