"""Tools that come with a request: they guide reading and checking like registered ones, and cannot be run. Must not know a registry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tamis.protocols.model import Json
from tamis.server.runtime.tools.registry import Tool


class InlineTool(msgspec.Struct, rename="camel"):
    """A tool given with a request: it guides reading and checking like a registered one."""

    tool_id: str
    parameters: dict[str, Any] = {}


def find_inline(tool_id: str, tools: Sequence[InlineTool]) -> Tool | None:
    """The first of the tools that has this id."""
    for inline in tools:
        if inline.tool_id == tool_id:
            return inline_tool(inline.tool_id, inline.parameters)
    return None


def inline_tool(tool_id: str, parameters: dict[str, Json]) -> Tool:
    """A tool that exists only for one request: it can be checked against, never run."""
    from tamis.protocols.manifest.reading import Manifest, ServiceMethod

    manifest = Manifest(
        tool_id=tool_id,
        display_name=tool_id,
        description="",
        version="0.0.0",
        handler=ServiceMethod(service_name="inline", method_name="none"),
        parameters=parameters,
    )
    return Tool(manifest, "", available=False, reason="given inline")
