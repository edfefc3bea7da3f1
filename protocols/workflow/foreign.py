"""Workflow files of other projects, known by their shape, so that one finding names them instead of many that miss the point.

Must not convert them: an engine of their own runs them.
"""

from __future__ import annotations

from typing import Literal

from tamis.protocols.jsontext.tree import JsonNode

Kind = Literal["comfyui-api", "comfyui", "n8n", "node-red", "langflow"]
KINDS: dict[Kind, str] = {
    "comfyui-api": "a ComfyUI workflow in API form (class_type, inputs)",
    "comfyui": "a ComfyUI workflow (nodes, links)",
    "n8n": "an n8n workflow (nodes, connections)",
    "node-red": "a Node-RED flow (a list of nodes with wires)",
    "langflow": "a Langflow flow (data with nodes and edges)",
}
MARKS = ("class_type", "wires")
"""Words of those that have neither nodes nor an interface at their root."""
_LOOKED_AT = 50


def foreign_kind(root: JsonNode | None) -> tuple[Kind, JsonNode] | None:
    """Which other project's workflow a file is, and the node that shows it; None for one that may be ours."""
    if root is None:
        return None
    if root.kind == "array":
        first = root.items[:_LOOKED_AT]
        wired = [item for item in first if item.kind == "object" and item.member("wires") is not None]
        known = all(item.kind == "object" and item.member("type") is not None for item in first)
        return ("node-red", root) if wired and known else None
    if root.kind != "object":
        return None
    nodes = root.get("nodes")
    if nodes is not None and nodes.kind == "array":
        links, connections = root.get("links"), root.get("connections")
        if connections is not None and connections.kind == "object":
            return "n8n", connections
        marked = any(root.member(name) is not None for name in ("last_node_id", "last_link_id"))
        return ("comfyui", links) if links is not None and links.kind == "array" and marked else None
    data = root.get("data")
    if data is not None and data.kind == "object":
        inner = [data.get(name) for name in ("nodes", "edges")]
        return ("langflow", data) if all(one is not None and one.kind == "array" for one in inner) else None
    called = [member.value for member in root.members[:_LOOKED_AT] if member.value is not None]
    shown = [one for one in called if one.kind == "object" and one.member("class_type") is not None]
    return ("comfyui-api", shown[0]) if shown and len(shown) == len(called) else None
