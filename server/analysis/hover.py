"""Hover: what is under the cursor, in a call or in a manifest."""

from __future__ import annotations

from tamis.protocols.model import Call, Param
from tamis.server.analysis.answers import HoverText
from tamis.server.analysis.describe import code, describe_schema, describe_tool, type_name
from tamis.server.analysis.snapshot import MAX_ANALYSED_CHARS, Snapshot


def explain(snapshot: Snapshot, offset: int) -> HoverText | None:
    """What to say about an offset, or None."""
    if len(snapshot.text) > MAX_ANALYSED_CHARS:
        return None
    if snapshot.kind == "text":
        return _in_text(snapshot, offset)
    if snapshot.kind in ("manifest", "profile"):
        from tamis.server.analysis.json_completion import explain_in_json

        return explain_in_json(snapshot, offset)
    return None


def _in_text(snapshot: Snapshot, offset: int) -> HoverText | None:
    for call in snapshot.document.calls:
        if not call.span[0] <= offset <= call.span[1]:
            continue
        if call.tool_span[0] <= offset <= call.tool_span[1]:
            return _tool(snapshot, call)
        for param in call.params:
            if param.span[0] <= offset <= param.span[1]:
                return _parameter(snapshot, call, param)
    return None


def _tool(snapshot: Snapshot, call: Call) -> HoverText | None:
    tool = snapshot.tool(call.tool_id)
    if tool is None:
        return None
    title = tool.manifest.display_name or tool.tool_id
    return HoverText(call.tool_span, f"**{title}** {code(tool.tool_id)}\n\n{describe_tool(tool)}")


def _parameter(snapshot: Snapshot, call: Call, param: Param) -> HoverText | None:
    properties = snapshot.properties(call.tool_id)
    if param.name not in properties:
        return None
    schema = properties[param.name]
    need = ", required" if param.name in snapshot.required(call.tool_id) else ""
    return HoverText(param.span, f"**{param.name}** ({type_name(schema)}{need})\n\n{describe_schema(schema)}".strip())
