"""Hover in manifests and profiles: tools by their ids, rights, formats, and what the schemas say of any other key or value."""

from __future__ import annotations

from tamis.protocols.jsontext.tree import JsonTree, Path
from tamis.server.analysis.answers import HoverText
from tamis.server.analysis.describe import code
from tamis.server.analysis.hover_tool import HoverFacts, security, tool_card
from tamis.server.analysis.json_completion import explain_in_json
from tamis.server.analysis.json_words import FORMATS
from tamis.server.analysis.prompt_texts import own_tool
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
    tree = snapshot.manifest.tree if snapshot.kind == "manifest" else snapshot.profile.tree
    if any(start < offset < end for start, end in tree.comments):
        return None
    place = tree.pointer_at(offset)
    path, node = place.path, place.node
    if place.slot == "value" and node is not None and node.kind == "string" and isinstance(node.value, str):
        tool = _tool_of(snapshot, path, node.value)
        if tool is not None:
            return HoverText(node.span, tool_card(snapshot, tool, facts))
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
    found = explain_in_json(snapshot, offset)
    if found is None:
        return None
    more = _more(snapshot, tree, path, facts)
    return HoverText(found.span, f"{found.markdown}\n\n{more}") if more else found


def _in_schema(path: Path) -> bool:
    """Whether a place lies in an embedded schema, and not in a value that one holds."""
    if not path or path[0] not in ("parameters", "output") or len(path) < 2:
        return False
    return not any(token in ("default", "const", "enum", "examples") for token in path[1:-1])


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
