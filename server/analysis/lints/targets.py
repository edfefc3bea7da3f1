"""What the targets of ``[lint] targets`` refuse or lose of a manifest: the losses of its export, each at the place that it is about (interop §2.3).

An export of ``protocols/export`` says the losses; here they get a place, a level and a fix. Must not know how a target is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tamis.protocols.contract import Loss
from tamis.protocols.export.losses import REFUSED, SAID_OTHERWISE
from tamis.protocols.export.names import TARGET_WORDS, Target, portable_name, portable_names, short_name
from tamis.protocols.export.shape import implied_type
from tamis.protocols.export.targets import export_tool, shortened
from tamis.protocols.jsontext.tokens import quoted
from tamis.protocols.jsontext.tree import JsonNode, JsonTree, Member, from_pointer, to_pointer
from tamis.protocols.levels import Levels
from tamis.protocols.manifest.reading import Manifest
from tamis.protocols.model import Diag, Edit, Fix
from tamis.protocols.positions import Span
from tamis.server.analysis.lints.local import renaming, without_member
from tamis.server.analysis.lints.tool import add_alias
from tamis.server.analysis.snapshot import Snapshot

MAX_FINDINGS = 200
"""Of one target; what is more is counted by the export's own last loss."""
_WORDS = {target: word for word, target in TARGET_WORDS.items()}
_NO_PLACE = frozenset(("output-dropped",))
"""What every manifest with an output loses in every form but those of MCP: nothing that could be written otherwise."""
_WITH_OUTPUT = ("mcp", "cursor")


def lint_targets(snapshot: Snapshot, levels: Levels) -> list[Diag]:
    """The findings for all targets of the levels; none for a manifest that cannot be registered."""
    manifest, tree = snapshot.manifest.manifest, snapshot.manifest.tree
    if manifest is None or tree.root is None:
        return []
    scans = snapshot.manifest.memory.scans
    facts = (tree.root.green, snapshot.registry, levels.targets)
    known = scans.get("targets")
    if known is not None and known[0][0] is facts[0] and known[0][1:] == facts[1:] and known[1] == tree.root.start:
        return known[2]
    diags = [diag for target in levels.targets for diag in _of_target(snapshot, manifest, tree, target)]
    scans["targets"] = (facts, tree.root.start, diags)
    return diags


def _of_target(snapshot: Snapshot, manifest: Manifest, tree: JsonTree, target: Target) -> Iterator[Diag]:
    name = _name(snapshot, manifest, target)
    for loss in export_tool(manifest, target, name).losses[:MAX_FINDINGS]:
        if loss.code in _NO_PLACE and target not in _WITH_OUTPUT:
            continue
        code = "TH401" if loss.code in REFUSED else "TH403" if loss.code in SAID_OTHERWISE else "TH402"
        args: dict[str, str | int] = {"target": _WORDS[target], "reason": loss.message}
        yield Diag(code, _place(tree, loss.path), args, fix=_fix(snapshot.text, tree, loss, name))


def _name(snapshot: Snapshot, manifest: Manifest, target: Target) -> str:
    """What the target calls the tool, as far as other tools leave it the name."""
    short = short_name(manifest.tool_id, manifest.aliases)
    wanted = {manifest.tool_id: short} if short else {}
    owned = dict.fromkeys(manifest.aliases, manifest.tool_id)
    for name in (portable_name(manifest.tool_id, target), *wanted.values()):
        owner = snapshot.registry.get(name) if snapshot.registry is not None else None
        if owner is not None:
            owned[name] = owner.tool_id
    return portable_names([manifest.tool_id], target, owned, wanted)[manifest.tool_id]


def _place(tree: JsonTree, pointer: str) -> Span:
    """The key of what a loss is about, or of the nearest thing above it that stands in the file."""
    path = from_pointer(pointer)
    while path:
        span = tree.key_span(to_pointer(path))
        if span is not None:
            return span
        path.pop()
    root = tree.root
    return (root.start, root.start + 1) if root is not None else (0, 0)


def _fix(text: str, tree: JsonTree, loss: Loss, name: str) -> Fix | None:
    """What an author can write instead, where one edit does it."""
    node = tree.node_at(loss.path)
    if loss.code == "name-changed":
        return add_alias(tree.root, text, name) if tree.root is not None else None
    make = _FIXES.get(loss.code)
    return make(tree, loss, node) if make is not None and node is not None else None


def _close(tree: JsonTree, loss: Loss, node: JsonNode) -> Fix | None:
    title = "Allow no other members"
    additional_properties = node.get("additionalProperties") if node.kind == "object" else None
    if additional_properties is not None:
        return Fix(title, (Edit(additional_properties.start, additional_properties.end, "false"),), "unsafe")
    return _added(node, '"additionalProperties": false', title)


def _require(tree: JsonTree, loss: Loss, node: JsonNode) -> Fix | None:
    *above, word, name = from_pointer(loss.path)
    holder = tree.root.at(above) if tree.root is not None else None
    if word != "properties" or holder is None or holder.kind != "object":
        return None
    title = f"Require '{name}'"
    required = holder.get("required")
    if required is None:
        return _added(holder, f'"required": [{quoted(name)}]', title)
    if required.kind != "array" or not required.closed:
        return None
    if required.items:
        end = required.items[-1].end
        return Fix(title, (Edit(end, end, f", {quoted(name)}"),), "unsafe")
    return Fix(title, (Edit(required.start, required.end, f"[{quoted(name)}]"),), "unsafe")


def _any_of(tree: JsonTree, loss: Loss, node: JsonNode) -> Fix | None:
    member = _member(tree, loss)
    return renaming(member, "anyOf", "unsafe") if member is not None and member.key == "oneOf" else None


def _without(tree: JsonTree, loss: Loss, node: JsonNode) -> Fix | None:
    *above, name = from_pointer(loss.path)
    holder = tree.root.at(above) if tree.root is not None else None
    member = _member(tree, loss)
    lost = ", which is told no more" if name == "default" else ", which is checked no more"
    return None if holder is None or member is None else without_member(holder, member, f"Remove '{name}'{lost}")


def _rename(tree: JsonTree, loss: Loss, node: JsonNode) -> Fix | None:
    """Another name of a parameter, where the schema says it and where its object requires it; what reads it has to follow."""
    *above, word, name = from_pointer(loss.path)
    member, holder = _member(tree, loss), tree.root.at(above) if tree.root is not None else None
    properties = holder.get("properties") if holder is not None else None
    if member is None or word != "properties" or holder is None or properties is None:
        return None
    portable = portable_name(name, "smolagents")
    if not name or not portable.strip("_") or properties.member(portable) is not None:
        return None
    required = holder.get("required")
    named = [item for item in required.items if item.value == name] if required is not None else []
    spans = [member.key_span, *((item.start, item.end) for item in named)]
    edits = tuple(Edit(start, end, quoted(portable)) for start, end in spans)
    return Fix(f"Rename to '{portable}'; the tool must read that name", edits, "unsafe")


def _object_type(tree: JsonTree, loss: Loss, node: JsonNode) -> Fix | None:
    """The type at a root that must be an object's; not where it names another type, which the tool gives."""
    title = "Say that it is an object"
    if loss.path.endswith("/type"):
        return Fix(title, (Edit(node.start, node.end, '"object"'),), "unsafe")
    has_shape = node.kind == "object" and node.get("properties") is not None and node.get("type") is None
    return _added(node, '"type": "object"', title) if has_shape else None


def _cut(tree: JsonTree, loss: Loss, node: JsonNode) -> Fix | None:
    if not isinstance(node.value, str):
        return None
    text = shortened(node.value)
    title = f"Cut the description behind {len(text)} characters; the rest is told to nobody"
    return Fix(title, (Edit(node.start, node.end, quoted(text)),), "unsafe")


def _typed(tree: JsonTree, loss: Loss, node: JsonNode) -> Fix | None:
    keys = {member.key for member in node.members}
    kind = implied_type(keys)
    return (
        _added(node, f'"type": "{kind}"', f"Take values of type {kind} only") if kind and "type" not in keys else None
    )


def _member(tree: JsonTree, loss: Loss) -> Member | None:
    *above, name = from_pointer(loss.path)
    holder = tree.root.at(above) if tree.root is not None else None
    return holder.member(name) if holder is not None and holder.kind == "object" else None


def _added(node: JsonNode, member: str, title: str) -> Fix | None:
    """The fix that adds a member at the end of an object."""
    if node.kind != "object" or not node.closed or any(member.value is None for member in node.members):
        return None
    at = node.members[-1].span[1] if node.members else node.start + 1
    return Fix(title, (Edit(at, at, f", {member}" if node.members else member),), "unsafe")


_FIXES: dict[str, Callable[[JsonTree, Loss, JsonNode], Fix | None]] = {
    "object-closed": _close,
    "optional-nullable": _require,
    "one-of-as-any-of": _any_of,
    "keyword-dropped": _without,
    "default-dropped": _without,
    "property-name": _rename,
    "output-dropped": _object_type,
    "root-type": _object_type,
    "type-assumed": _typed,
    "description-cut": _cut,
}
