"""Signature help: the parameters of the tool whose call is being typed, and which of them the cursor is at.

Works from the text around the cursor, as completion does: the call need not be readable yet.
"""

from __future__ import annotations

import json

import msgspec

from tamis.protocols.positions import Span
from tamis.protocols.suggest import normalised
from tamis.server.analysis.completion.cursor import Cursor, find_cursor
from tamis.server.analysis.describe import MAX_TEXT, describe_schema, type_name
from tamis.server.analysis.kinds import MAX_ANALYSED_CHARS
from tamis.server.analysis.shown.schema_parts import Schema, choices_of, resolved, told
from tamis.server.analysis.snapshot import Snapshot, ToolView

MAX_PARAMETERS = 100
MAX_CHOICES = 5
MAX_VALUE_CHARS = 24


class Argument(msgspec.Struct, frozen=True):
    """One parameter: its name, where it stands in the label, and what it means, as Markdown."""

    name: str
    span: Span
    documentation: str = ""


class Signature(msgspec.Struct, frozen=True):
    """A tool's parameters in one line; ``active`` is None where the cursor is at none of them."""

    label: str
    documentation: str
    arguments: tuple[Argument, ...]
    active: int | None = None


def signature_at(snapshot: Snapshot, offset: int) -> Signature | None:
    """The signature for an offset inside a call's arguments, or None."""
    if snapshot.kind != "text" or len(snapshot.text) > MAX_ANALYSED_CHARS:
        return None
    cursor = find_cursor(snapshot.text, offset)
    if cursor is None or cursor.expect == "tool" or not cursor.tool_id:
        return None
    tool = snapshot.tool(cursor.tool_id)
    if tool is None:
        return None
    return _signature(snapshot, tool, cursor)


def _signature(snapshot: Snapshot, tool: ToolView, cursor: Cursor) -> Signature:
    root = tool.manifest.parameters or {}
    properties = snapshot.properties(cursor.tool_id)
    needed = snapshot.required(cursor.tool_id)
    label = f"{cursor.tool_id}("
    arguments: list[Argument] = []
    for name, schema in list(properties.items())[:MAX_PARAMETERS]:
        here = told(resolved(schema, root))
        if arguments:
            label += ", "
        text = _parameter(name, here, name in needed)
        arguments.append(Argument(name, (len(label), len(label) + len(text)), describe_schema(here)))
        label += text
    if len(properties) > MAX_PARAMETERS:
        label += f", … {len(properties) - MAX_PARAMETERS} more"
    label += ")"
    return Signature(
        label, tool.manifest.description[:MAX_TEXT], tuple(arguments), _active(snapshot, cursor, arguments)
    )


def _parameter(name: str, schema: Schema, required: bool) -> str:
    choices = choices_of(schema)
    kind = type_name(schema)
    if choices:
        shown = " | ".join(_short(value) for value in choices[:MAX_CHOICES])
        kind = shown + (" | …" if len(choices) > MAX_CHOICES else "")
    default = f" = {_short(schema['default'])}" if "default" in schema else ""
    return f"{name}{'' if required else '?'}: {kind}{default}"


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= MAX_VALUE_CHARS else text[: MAX_VALUE_CHARS - 1] + "…"


def _active(snapshot: Snapshot, cursor: Cursor, arguments: list[Argument]) -> int | None:
    """The parameter that the cursor is in or whose name is being typed; between parameters the next one that is left."""
    names = [normalised(argument.name) for argument in arguments]
    if cursor.path:
        return _place(names, cursor.path[0])
    if cursor.expect != "parameter":
        return None
    typed = snapshot.text[cursor.span[0] : cursor.span[1]].lstrip("</").rstrip(">")
    if cursor.suffix and typed.endswith(cursor.suffix):
        typed = typed[: -len(cursor.suffix)]
    if typed:
        wanted = normalised(typed)
        exact = _place(names, typed)
        if exact is not None:
            return exact
        return next((i for i, name in enumerate(names) if name.startswith(wanted)), None)
    suffix = normalised(cursor.suffix)
    present = {normalised(name) for name in cursor.present}
    left = [i for i, name in enumerate(names) if name not in present and name + suffix not in present]
    needed = {normalised(str(name)) for name in snapshot.required(cursor.tool_id)}
    return next((i for i in left if names[i] in needed), left[0] if left else None)


def _place(names: list[str], name: str) -> int | None:
    wanted = normalised(name)
    return names.index(wanted) if wanted in names else None
