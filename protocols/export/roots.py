"""The root of a tool's parameters: an object, and for some targets one that says what it takes without choices at its root."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.protocols.export.losses import Losses, below
from tamis.protocols.export.merge import conjunction
from tamis.protocols.export.refs import follow
from tamis.protocols.export.shape import types_of
from tamis.protocols.model import Json
from tamis.protocols.schema.words import is_list, is_object

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
        made, exact = conjunction([rest, *(_behind(part, schema) for part in parts)])
        if not is_object(made):
            losses.add("nothing-fits", below(base, "allOf"), "no arguments are allowed here, which cannot be said")
        node = made if is_object(made) else rest
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
        made, exact = conjunction([rest, own])
        if not exact:
            losses.add("root-combination", base, "the reference at the root was joined with what stands beside it")
        node = made if is_object(made) else rest
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
        found = branch.get("properties")
        for name, part in found.items() if is_object(found) else ():
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
    made: dict[str, Json] = {**rest, "properties": declared}
    if required:
        made["required"] = list(dict.fromkeys(str(name) for name in required))
    return made
