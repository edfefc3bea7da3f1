"""The root of a tool's parameters: an object, and for some targets one that says what it takes without choices at its root."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.protocols.export.losses import Losses, below
from tamis.protocols.export.shape import MAX_DEPTH, conjunction, map_parts
from tamis.protocols.model import Json
from tamis.protocols.schema.words import is_constraint, is_list, is_object, resolve, types_of

# References inside a schema, put where they stand for: for targets that know none, or none with words beside them. Only references into the schema
# itself are followed; whatever else they name is left open and said. A schema that holds itself is kept as a reference into ``$defs`` where the
# target knows those, else cut and said. Bounded in depth and size.


MAX_NODES = 10_000
_OLD_DRAFTS = ("draft-03", "draft-04", "draft-06", "draft-07")


def follow(root: Json, ref: str) -> Json | None:
    """The schema that a reference into the same document names (``#`` or ``#/…``), or None where it names none there."""
    try:
        here = resolve(root, ref)
    except KeyError:
        return None
    return here if is_object(here) or isinstance(here, bool) else None


class Inliner:
    """Puts what references name in their place. ``defs`` holds afterwards what is referred to still."""

    def __init__(self, root: dict[str, Json], losses: Losses, base: str, *, keep_recursive: bool) -> None:
        self._root = root
        self._losses = losses
        self._base = base
        self._keep = keep_recursive
        self._left = MAX_NODES
        # Before 2019 the words beside a reference did not count.
        self._alone = any(draft in str(root.get("$schema", "")) for draft in _OLD_DRAFTS)
        self._names: dict[str, str] = {}
        self.defs: dict[str, Json] = {}

    def schema(self) -> dict[str, Json]:
        """The whole schema."""
        schema = self._walk(self._root, self._base, (), 0)
        return schema if is_object(schema) else {}

    def _walk(self, node: Json, path: str, stack: tuple[str, ...], depth: int) -> Json:
        self._left -= 1
        if not is_object(node):
            return node if isinstance(node, bool) else True
        if depth > MAX_DEPTH or self._left < 0:
            why = f"it nests deeper than {MAX_DEPTH} levels" if depth > MAX_DEPTH else "the schema is too large"
            self._losses.add("too-deep", path, f"{why} with what it refers to: any value is allowed here")
            return {}
        if depth and isinstance(node.get("$id"), str) and "$ref" in str(node):
            self._losses.add("ref-unresolved", path, "references below an '$id' of its own are not followed")
            return {key: node[key] for key in ("type", "title", "description") if key in node}
        ref = node.get("$ref", node.get("$dynamicRef"))
        rest = {key: value for key, value in node.items() if key not in ("$ref", "$dynamicRef", "$defs", "definitions")}
        if not isinstance(ref, str):
            return map_parts(rest, lambda part, names: self._walk(part, below(path, *names), stack, depth + 1))
        if self._alone:
            rest = {key: value for key, value in rest.items() if not is_constraint(key)}
        own = map_parts(rest, lambda part, names: self._walk(part, below(path, *names), stack, depth + 1))
        return self._beside(self._named(ref, path, stack, depth), own)

    def _named(self, ref: str, path: str, stack: tuple[str, ...], depth: int) -> Json:
        target = follow(self._root, ref)
        if target is None:
            self._losses.add("ref-unresolved", path, f"'{ref[:100]}' cannot be resolved here: any value is allowed")
            return {}
        if ref not in stack:
            return self._walk(target, path, (*stack, ref), depth + 1)
        if not self._keep:
            what = "it holds itself, which this form cannot say: deeper levels are described by no schema"
            self._losses.add("recursive-ref", path, what)
            kind = target.get("type") if is_object(target) else None
            return {"type": kind} if kind in ("object", "array") else {}
        if ref not in self._names:
            bare = ref.rpartition("/")[2].replace("#", "") or "root"
            self._names[ref] = name = bare if bare not in self.defs else f"{bare}_{len(self.defs)}"
            self.defs[name] = {}
            self.defs[name] = self._walk(target, below(self._base, "$defs", name), (ref,), 1)
        return {"$ref": f"#/$defs/{self._names[ref]}"}

    def _beside(self, target: Json, own: dict[str, Json]) -> Json:
        """A schema with the words that stood beside the reference to it."""
        if not own or not is_object(target):
            return target
        if any(is_constraint(key) for key in own) or "$ref" in target:
            return {"allOf": [target, own]}
        return {**target, **own}


CHOICES = ("anyOf", "oneOf", "allOf")
_MAX_HOPS = 32


def object_root(schema: dict[str, Json], losses: Losses, base: str) -> dict[str, Json]:
    """The schema with ``"type": "object"`` at its root: arguments are always an object, so that this refuses nothing."""
    kinds = types_of(schema)
    if kinds and "object" not in kinds:
        losses.add("root-type", below(base, "type"), f"arguments are an object, not {kinds[0]}")
    return {"type": "object", **{key: value for key, value in schema.items() if key != "type"}}


def flat_root(schema: dict[str, Json], losses: Losses, base: str, banned: Sequence[str]) -> dict[str, Json]:
    """The schema without ``banned`` keywords at its root, and without a reference there."""
    node = _followed(schema, losses, base)
    parts = node.get("allOf")
    if is_list(parts) and "allOf" in banned:
        rest = {key: value for key, value in node.items() if key != "allOf"}
        merged, exact = conjunction([rest, *(_behind(part, schema) for part in parts)])
        if not is_object(merged):
            losses.add("nothing-fits", below(base, "allOf"), "no arguments are allowed here, which cannot be said")
        node = merged if is_object(merged) else rest
        if not exact:
            losses.add(
                "root-combination", below(base, "allOf"), "'allOf' at the root was joined, which is not quite the same"
            )
        if any(key in node for key in ("allOf", "$ref")):
            node = flat_root({key: value for key, value in node.items() if key != "allOf"}, losses, base, banned)
    for key in ("anyOf", "oneOf"):
        if key in banned and is_list(parts := node.get(key)):
            branches = [part for part in (_behind(part, schema) for part in parts) if is_object(part)]
            node = _union({name: value for name, value in node.items() if name != key}, branches)
            what = f"'{key}' at the root is refused: all its branches' properties are declared, none of its own is required"
            losses.add("root-combination", below(base, key), what)
    for key in banned:
        if key in node:
            losses.add("keyword-dropped", below(base, key), f"'{key}' at the root is refused")
            node = {name: value for name, value in node.items() if name != key}
    return node


def _followed(schema: dict[str, Json], losses: Losses, base: str) -> dict[str, Json]:
    node = schema
    for _ in range(_MAX_HOPS):
        ref = node.get("$ref")
        if not isinstance(ref, str):
            return node
        target = follow(schema, ref)
        rest = {key: value for key, value in node.items() if key != "$ref"}
        if not is_object(target):
            losses.add("ref-unresolved", base, f"'{ref[:100]}' cannot be resolved here: any arguments are allowed")
            return rest
        own = {key: value for key, value in target.items() if key not in rest or key not in ("$defs", "definitions")}
        merged, exact = conjunction([rest, own])
        if not exact:
            losses.add("root-combination", base, "the reference at the root was joined with what stands beside it")
        node = merged if is_object(merged) else rest
    losses.add("recursive-ref", base, "the references at the root lead in a circle")
    return {key: value for key, value in node.items() if key != "$ref"}


def _behind(part: Json, root: dict[str, Json]) -> Json:
    """A branch with what it refers to."""
    for _ in range(_MAX_HOPS):
        if not is_object(part) or not isinstance(ref := part.get("$ref"), str):
            return part
        target = follow(root, ref)
        rest = {key: value for key, value in part.items() if key != "$ref"}
        part = conjunction([rest, target])[0] if target is not None else rest
    return True


def _union(rest: dict[str, Json], branches: Sequence[dict[str, Json]]) -> dict[str, Json]:
    """One object that takes what any of the branches takes."""
    properties = rest.get("properties")
    declared: dict[str, Json] = dict(properties) if is_object(properties) else {}
    own = set(declared)
    for branch in branches:
        members = branch.get("properties")
        for name, part in members.items() if is_object(members) else ():
            if name in own or declared.get(name) == part:
                continue
            known = declared.get(name)
            inner = known.get("anyOf") if is_object(known) and len(known) == 1 else None
            declared[name] = part if known is None else {"anyOf": [*(inner if is_list(inner) else [known]), part]}
    needs: list[set[str]] = []
    for branch in branches:
        listed = branch.get("required")
        needs.append({name for name in listed if isinstance(name, str)} if is_list(listed) else set())
    always = set[str].intersection(*needs) if needs else set[str]()
    before = rest.get("required")
    required = [*(before if is_list(before) else []), *sorted(always)]
    merged: dict[str, Json] = {**rest, "properties": declared}
    if required:
        merged["required"] = list(dict.fromkeys(str(name) for name in required))
    return merged
