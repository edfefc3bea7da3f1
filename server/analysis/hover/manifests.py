"""Hover in manifests and profiles: tools by their ids, rights, formats, and what the schemas say of any other key or value."""

from __future__ import annotations

from tamis.protocols.jsontext.tree import JsonNode, JsonTree, Path, Place
from tamis.protocols.model import unescape_pointer
from tamis.protocols.schema.words import MAPS
from tamis.server.analysis.answers import HoverText
from tamis.server.analysis.completion.json_words import FORMATS
from tamis.server.analysis.completion.manifests import explain_in_json, is_schema_place, meta_of
from tamis.server.analysis.completion.schema_place import folded, schemas_at
from tamis.server.analysis.describe import code, describe_schema, type_name
from tamis.server.analysis.hover.tools import HoverFacts, own_tool, security, tool_card
from tamis.server.analysis.navigation.workflows import workflow_card
from tamis.server.analysis.snapshot import Snapshot, ToolView

TYPES = {
    "string": "Text.",
    "number": "A number; digits are kept as they are written.",
    "integer": "A whole number; `5.0` is one too.",
    "boolean": "`true` or `false`.",
    "array": "A list; `items` says of what.",
    "object": "Named members; `properties` says which.",
    "null": "Nothing: `null`.",
}


def explain_in_file(snapshot: Snapshot, offset: int, facts: HoverFacts) -> HoverText | None:
    """What to say about an offset of a manifest or profile."""
    tree = snapshot.tree
    if any(start < offset < end for start, end in tree.comments):
        return None
    place = tree.pointer_at(offset)
    path, node = place.path, place.node
    if place.slot == "value" and node is not None and node.kind == "string" and isinstance(node.value, str):
        if path[:1] == ("examples",) and "{{" in node.value:
            from tamis.server.analysis.hover.explain import in_expected

            return in_expected(snapshot, offset)
        tool = _tool_of(snapshot, path, node.value)
        if tool is not None:
            return HoverText(node.span, tool_card(snapshot, tool, facts))
        if snapshot.kind == "profile" and len(path) == 2 and path[0] == "tool_ids_inventory":
            card = workflow_card(snapshot, node.value)
            if card:
                return HoverText(node.span, card)
        if _in_schema(path):
            if path[-1] == "format" and node.value in FORMATS:
                return HoverText(
                    node.span, f"**{node.value}** (format)\n\n{FORMATS[node.value]} Checked, with a warning."
                )
            named = path[-1] == "type" or path[-2:-1] == ("type",)
            if named and node.value in TYPES:
                return HoverText(node.span, f"**{node.value}** (type)\n\n{TYPES[node.value]}")
    if place.slot == "key" and place.member is not None:
        named_tool = _tool_of_key(snapshot, path)
        if named_tool is not None:
            return HoverText(place.member.key_span, tool_card(snapshot, named_tool, facts))
    if snapshot.kind == "manifest" and _in_schema(path):
        declared = _declared(tree, place)
        if declared is not None:
            return declared
    hover = explain_in_json(snapshot, offset)
    if hover is None:
        return None
    more = _more(snapshot, tree, path, facts)
    return HoverText(hover.span, f"{hover.markdown}\n\n{more}") if more else hover


def _in_schema(path: Path) -> bool:
    """Whether a place lies in an embedded schema, and not in a value that one holds."""
    if not path or path[0] not in ("parameters", "output") or len(path) < 2:
        return False
    return not any(token in ("default", "const", "enum", "examples") for token in path[1:-1])


def _declared(tree: JsonTree, place: Place) -> HoverText | None:
    """What a schema says of a parameter or definition, at its name, in ``required``, and at a ``$ref`` to it."""
    path, node, member = place.path, place.node, place.member
    root = tree.root.get(str(path[0])) if tree.root is not None else None
    if root is None:
        return None
    inner, owner, span = path[1:], path[:-1], (0, 0)
    if place.slot == "key" and member is not None and member.value is not None and path[-2:-1] and len(path) > 2:
        if path[-2] not in MAPS - {"dependentSchemas"} or not _is_map(root, inner[:-1]):
            return None
        name, span, owner = str(path[-1]), member.key_span, path[:-2]
        part = member.value
    elif place.slot == "value" and node is not None and node.kind == "string" and isinstance(node.value, str):
        name, span = node.value, node.span
        if path[-1:] == ("$ref",):
            steps = [unescape_pointer(step) for step in name.removeprefix("#/").split("/")]
            part = root.at(steps) if name.startswith("#/") else None
            owner = ()
        elif path[-2:-1] == ("required",):
            owner = path[:-2]
            part = tree.root.at((*owner, "properties", name)) if tree.root is not None else None
        else:
            return None
    else:
        return None
    if part is None or part.kind != "object":
        return None
    schemas = folded(schemas_at(part.to_python(), None, (), root.to_python()))
    schema = schemas[0] if schemas else None
    listed = tree.root.at((*owner, "required")) if tree.root is not None and owner else None
    needed = ", required" if listed is not None and any(item.value == name for item in listed.items) else ""
    text = describe_schema(schema)
    return HoverText(span, f"**{name}** ({type_name(schema)}{needed})" + (f"\n\n{text}" if text else ""))


def _is_map(root: JsonNode, inner: Path) -> bool:
    """Whether names of schemas stand at a path, and not keywords: a property may be called ``properties``."""
    return is_schema_place(meta_of(root), root, inner[:-1])


def _tool_of(snapshot: Snapshot, path: Path, name: str) -> ToolView | None:
    """The tool that a text at a place names."""
    if snapshot.kind == "profile":
        return snapshot.tool(name) if len(path) == 2 and path[0] == "tool_ids_inventory" else None
    if path == ("toolId",) or (len(path) == 2 and path[0] == "aliases") or path == ("protocolConfig", "vcpCommand"):
        return own_tool(snapshot) or (snapshot.tool(name) if path == ("toolId",) else None)
    return None


def _tool_of_key(snapshot: Snapshot, path: Path) -> ToolView | None:
    """The tool that a key names."""
    token = path[-1] if path else ""
    if not isinstance(token, str):
        return None
    if snapshot.kind == "profile":
        return snapshot.tool(token) if path[:2] == ("toolCallConfig", "toolToggles") and len(path) == 3 else None
    return snapshot.tool(token) if len(path) == 2 and path[0] == "dependencies" else None


def _more(snapshot: Snapshot, tree: JsonTree, path: Path, facts: HoverFacts) -> str:
    """What is known here beside the schema: the rights that come of a request, the time that a run really has."""
    if snapshot.kind != "manifest":
        return ""
    if path[:1] == ("securityContext",):
        tool = own_tool(snapshot)
        return security(snapshot, tool, facts) if tool is not None else ""
    config = snapshot.settings.config
    if path in (("execution", "timeoutMs"), ("execution", "limits", "wallMs")) and config is not None:
        node = tree.root.at(path) if tree.root is not None else None
        asked = node.value if node is not None and isinstance(node.value, int) else None
        wall = config.sandbox.wall_ms
        effective = wall if asked is None else min(asked, wall)
        return f"In force: {code(effective)} ms; the settings allow {code(wall)} (sandbox.wallMs)."
    return ""
