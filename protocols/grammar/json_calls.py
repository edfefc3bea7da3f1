"""One tool's call as a JSON object in GBNF, for the protocols whose calls are JSON. Must not know what stands around it."""

from __future__ import annotations

from tamis.protocols.base import CallProtocol, PlainCall, PromptTool, WriteOptions
from tamis.protocols.grammar.branches import COMPOSED
from tamis.protocols.grammar.json_schema_rules import SchemaRules
from tamis.protocols.grammar.json_text import Surrounding, constant, shared
from tamis.protocols.model import Json, ToolHint
from tamis.protocols.plugins import extras_of


def json_call(protocol: CallProtocol, tool: PromptTool, schemas: SchemaRules, around: Surrounding) -> str:
    """A call as a JSON object; empty when the name cannot be written."""
    options = WriteOptions(tools={tool.name: ToolHint(tool.name, {})})
    if protocol.write_calls((PlainCall(tool.name),), options).refusals:
        return ""
    shared(schemas.rules, "ws")
    # Names that the tool does not declare are offered only where its schema opens itself (ruling 3).
    parameters: dict[str, Json] = {**tool.parameters, "type": "object"}
    if not any(keyword in parameters for keyword in COMPOSED):
        parameters.setdefault("additionalProperties", False)
    members = [
        constant(around, extras_of(protocol.id).tool_key),
        constant(around, tool.name),
        constant(around, "arguments"),
        schemas.rule(parameters, around, ""),
    ]
    name, tool_name, arguments, value = members
    return f'"{{" ws {name} ws ":" ws {tool_name} ws "," ws {arguments} ws ":" ws {value} ws "}}"'
