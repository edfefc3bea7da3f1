"""Lints of calls in texts: what a writer of TAM does best (T35), and what tools say is going out of use.

Must not know manifests beyond what their schemas say of a parameter.
"""

from __future__ import annotations

import msgspec

from tamis.protocols.levels import Levels
from tamis.protocols.model import Block, Diag, Edit, Fix, Json
from tamis.protocols.plugins import extras_of
from tamis.protocols.schema.words import is_object
from tamis.server.analysis.snapshot import Snapshot, ToolView

_MAX_MERGED = 20
LARGE_VALUE = 8_000
"""Characters from which a value is better given by reference."""


def lint_text(snapshot: Snapshot, blocks: list[Block], levels: Levels) -> list[Diag]:
    """The findings of the blocks that are requests, in their order."""
    diagnostics: list[Diag] = []
    before: Block | None = None
    for block in blocks:
        if extras_of(block.protocol).modifiers:
            _tam(snapshot.text, block, before, levels, diagnostics)
            before = block
        else:
            before = None
        for call in block.calls:
            tool = snapshot.tool(call.tool_id) if call.tool_id else None
            if tool is None:
                continue
            instead = _deprecated(tool.manifest.raw.get("x-deprecated"), tool.manifest.raw.get("deprecated"))
            if instead is not None:
                diagnostics.append(Diag("LN771", call.tool_span, {"id": call.tool_id, "instead": instead}))
            properties = snapshot.properties(call.tool_id)
            for param in call.params:
                schema = properties.get(param.name)
                if is_object(schema):
                    instead = _deprecated(schema.get("x-deprecated"), schema.get("deprecated"))
                    if instead is not None:
                        args: dict[str, str | int] = {"p": param.name, "id": tool.tool_id, "instead": instead}
                        diagnostics.append(Diag("LN772", param.name_span, args))
                if (
                    extras_of(block.protocol).modifiers
                    and _is_large(param.value.span)
                    and f"uri_{param.name}" not in call.uris
                ):
                    size = param.value.span[1] - param.value.span[0]
                    if param.value.kind == "text" and _takes_reference(tool, param.name):
                        diagnostics.append(Diag("LN773", param.name_span, {"p": param.name, "n": size}))
    return diagnostics


def _is_large(span: tuple[int, int]) -> bool:
    return span[1] - span[0] > LARGE_VALUE


def _takes_reference(tool: ToolView, name: str) -> bool:
    """Whether a parameter takes text, so that what a resource holds can stand for it."""
    schema = (tool.manifest.parameters or {}).get("properties")
    part = schema.get(name) if is_object(schema) else None
    return is_object(part) and part.get("type", "string") == "string"


def _deprecated(*marks: Json) -> str | None:
    """What a mark says to use instead: empty where it only says that something is deprecated; None without a mark."""
    for mark in marks:
        if isinstance(mark, str) and mark.strip():
            return f": {mark.strip()}"
        if mark is True:
            return ""
    return None


def _tam(text: str, block: Block, before: Block | None, levels: Levels, diagnostics: list[Diag]) -> None:
    if block.state != "complete" or block.close is None or not block.calls:
        return
    if levels.says("LN774") and all(call.request_id is None for call in block.calls):
        diagnostics.append(Diag("LN774", block.open))
    if before is None or before.close is None or before.state != "complete" or not before.calls:
        return
    # Blocks with ids of their own are meant to be told apart; text between them may be what a person reads.
    if text[before.span[1] : block.span[0]].strip():
        return
    if all(call.request_id is None for call in (*before.calls, *block.calls)):
        diagnostics.append(
            Diag("LN770", block.open, fix=_merged(text, before, block) if len(diagnostics) < _MAX_MERGED else None)
        )


def _merged(text: str, before: Block, block: Block) -> Fix | None:
    """Both blocks as one, where each is executable and comes back as the same calls; a failed step then stops the later ones."""
    calls = [*before.calls, *block.calls]
    start, end = before.span[0], block.span[1]
    if before.comments or block.comments or not all(call.executable for call in calls) or end - start > LARGE_VALUE:
        return None
    from tamis.protocols.base import WriteOptions
    from tamis.protocols.convert.plain import raw_call
    from tamis.protocols.plugins import find_protocol

    protocol = find_protocol(block.protocol)
    numbered = [
        msgspec.structs.replace(raw_call(call, text), step=number) for number, call in enumerate(calls, start=1)
    ]
    written = protocol.write_calls(numbered, WriteOptions()) if protocol is not None else None
    if protocol is None or written is None or written.refusals or written.text.count(protocol.markers.open) != 1:
        return None
    return Fix("Join with the block before", (Edit(start, end, written.text.rstrip("\n")),), "unsafe")
