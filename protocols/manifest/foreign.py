"""Files that carry the suffix of a manifest and have another project's shape (ruling 32). Must not convert them."""

from __future__ import annotations

from typing import Literal

from tamis.protocols.jsontext.tree import JsonNode

Shape = Literal[
    "mcp",
    "openai",
    "anthropic",
    "vcp",
    "implementation",
    "arguments",
    "scripted",
    "openapi",
    "mcpb",
    "mcpServers",
    "list",
]
SHAPES: dict[Shape, str] = {
    "mcp": "an MCP tool (name, inputSchema)",
    "openai": "an OpenAI function (name, description, parameters)",
    "anthropic": "an Anthropic tool (name, input_schema)",
    "vcp": "a VCP plugin manifest",
    "implementation": "a tool definition with id and implementation",
    "arguments": "a tool definition with a list of arguments (name, arguments)",
    "scripted": "a tool definition with a schema or a script of its own (name, schema, script)",
    "openapi": "an OpenAPI document",
    "mcpb": "an MCP bundle manifest",
    "mcpServers": "an MCP server configuration",
    "list": "a list of tools",
}


SCRIPTED = ("schema", "script", "fs_prefixes", "network_allow", "timeout_ms")
"""Fields that definitions of other runners have beside a name, and manifests never have."""


def foreign_shape(root: JsonNode) -> tuple[Shape, JsonNode] | None:
    """Which other shape a file has, and the node that shows it; None for one that may be a manifest."""
    if root.kind == "array":
        return ("list", root) if _is_list_of_tools(root) else None
    if root.kind != "object":
        return None
    names = {*root.keys}
    if "toolId" in names or "handler" in names:
        return None

    def shown(name: str) -> JsonNode:
        return root.get(name) or root

    project = _project_shape(root, names)
    if project is not None:
        return project
    if "function" in names and shown("function").kind == "object":
        return "openai", shown("function")
    if "name" in names and "inputSchema" in names:
        return "mcp", shown("inputSchema")
    if "name" in names and "input_schema" in names:
        return "anthropic", shown("input_schema")
    if "implementation" in names and ({"id", "name"} & names):
        return "implementation", shown("implementation")
    if "name" in names and "parameters" in names:
        return "openai", shown("name")
    if "name" in names and "description" in names and shown("arguments").kind == "array":
        return "arguments", shown("arguments")
    if "name" in names and (mark := next((key for key in SCRIPTED if key in names), "")):
        return "scripted", shown(mark)
    tools = root.get("tools") or root.get("functions")
    if tools is not None and tools.kind == "array":
        return "list", tools
    return None


def _is_list_of_tools(root: JsonNode) -> bool:
    first = root.items[0] if root.items else None
    if first is None or first.kind != "object":
        return False
    named = first.member("name") is not None and first.member("description") is not None
    return named or foreign_shape(first) is not None


def _project_shape(root: JsonNode, names: set[str]) -> tuple[Shape, JsonNode] | None:
    """The shape of a file that describes more than tools: a service, servers, a plug-in, a bundle."""

    def shown(name: str) -> JsonNode:
        return root.get(name) or root

    if "openapi" in names or "swagger" in names:
        return "openapi", shown("openapi")
    if "mcpServers" in names:
        return "mcpServers", shown("mcpServers")
    if "pluginType" in names or ("communication" in names and "entryPoint" in names):
        return "vcp", shown("pluginType")
    capabilities = root.get("capabilities")
    if capabilities is not None and capabilities.kind == "object" and capabilities.member("invocationCommands"):
        return "vcp", capabilities
    if "server" in names and ({"manifest_version", "dxt_version"} & names):
        return "mcpb", shown("server")
    return None
