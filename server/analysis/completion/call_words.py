"""What completion in calls has in common for all protocols: tools in the order of use, values that a schema names, parameters left."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from tamis.protocols.plugins import extras_of
from tamis.protocols.positions import Span
from tamis.protocols.schema.words import is_object
from tamis.protocols.suggest import normalised
from tamis.server.analysis.answers import Proposal
from tamis.server.analysis.completion.cursor import Cursor
from tamis.server.analysis.completion.proposals import escape_snippet
from tamis.server.analysis.describe import type_name
from tamis.server.analysis.embedded_schema import value_schemas
from tamis.server.analysis.snapshot import Snapshot, ToolView

_RECENT_CHARS = 64 * 1024
_NAMED = re.compile(
    r"command(?:_?\d{1,4})?[ \t]{0,8}[:：][ \t]{0,8}(?:»»»|>>>)\s{0,8}([^\s«<]{1,256})"
    r"|tool_name[ \t]{0,8}[:：][ \t]{0,8}「始(?:ESCAPE|exp)?」\s{0,8}([^\s「]{1,256})"
    r"|<tool_id>\s{0,8}([^\s<]{1,256})"
    r"|\"(?:name|toolName)\"\s{0,8}:\s{0,8}\"([^\"\n]{1,256})\""
    r"|<([A-Za-z_][^\s<>/]{1,255})"
)
_SMALL_NAMESPACE = 3
_MAX_DETAIL = 100


# Tools


def tools_of(snapshot: Snapshot, offset: int) -> list[ToolView]:
    """The tools that can be proposed, each id once in its newest version.

    First those used before the cursor in this document, the last one first; then those used most in the workspace; then by name.
    """
    seen: dict[str, ToolView] = {}
    for tool in snapshot.registry.tools if snapshot.registry is not None else ():
        seen.setdefault(tool.tool_id, tool)
    last: dict[str, int] = {}
    for match in _NAMED.finditer(snapshot.text, max(0, offset - _RECENT_CHARS), offset):
        name = next((group for group in match.groups() if group), "")
        last[name] = match.start()
    counts = snapshot.index.times_used() if snapshot.index is not None else {}

    def rank(tool: ToolView) -> tuple[int, int, str]:
        names = (tool.tool_id, *tool.manifest.aliases)
        recent = max((last.get(name, -1) for name in names), default=-1)
        return -recent, -sum(counts.get(name, 0) for name in names), tool.tool_id

    return sorted(seen.values(), key=rank)


def tool_item(tool: ToolView, span: Span, text: str, snippet: str = "", filter_text: str = "") -> Proposal:
    """A tool; what it does stands beside its id."""
    manifest = tool.manifest
    description = " ".join(manifest.description.split())
    if len(description) > _MAX_DETAIL:
        description = description[: _MAX_DETAIL - 1].rstrip() + "…"
    return Proposal(
        tool.tool_id,
        "tool",
        span,
        text,
        snippet,
        detail=description or manifest.display_name,
        subject=tool,
        filter=filter_text,
        deprecated=manifest.raw.get("deprecated") is True or manifest.raw.get("x-deprecated") is True,
        aside=manifest.display_name,
    )


def tool_names(snapshot: Snapshot, cursor: Cursor) -> list[Proposal]:
    """Tool ids as plain names, then the namespaces that hold several."""
    pinned = _pins(snapshot, cursor)
    if pinned:
        return pinned
    tools = tools_of(snapshot, cursor.span[0])
    items = [tool_item(tool, cursor.span, tool.tool_id) for tool in tools]
    if extras_of(cursor.protocol).by_command:
        for tool in tools:
            command = tool.manifest.vcp_command
            if command and command != tool.tool_id:
                item = tool_item(tool, cursor.span, command)
                items.append(msgspec.structs.replace(item, label=command, aside=tool.tool_id))
    counts: dict[str, int] = {}
    for tool in tools:
        head, colon, _ = tool.tool_id.partition(":")
        if colon:
            counts[head + ":"] = counts.get(head + ":", 0) + 1
    items += [
        Proposal(name, "namespace", cursor.span, name, detail=f"namespace of {count} tools", sort="8")
        for name, count in sorted(counts.items())
        if count >= _SMALL_NAMESPACE and len(counts) > 1
    ]
    return items


def _pins(snapshot: Snapshot, cursor: Cursor) -> list[Proposal]:
    """Behind ``id@``: the versions that are registered, and the range around the newest (ruling 35)."""
    name, at, _ = snapshot.text[slice(*cursor.span)].partition("@")
    if not at or snapshot.registry is None:
        return []
    tools = [tool for tool in snapshot.registry.tools if tool.tool_id == name]
    items = [
        msgspec.structs.replace(tool_item(tool, cursor.span, text), label=text, detail="exactly this version")
        for tool in tools
        if (text := f"{name}@{tool.manifest.version}")
    ]
    if items and tools[0].manifest.version[:1].isdigit():
        text = f"{name}@^{tools[0].manifest.version}"
        items.append(
            msgspec.structs.replace(tool_item(tools[0], cursor.span, text), label=text, detail="no change of calls")
        )
    return items


# Values


def value_choices(schema: object) -> list[tuple[str, str]]:
    """The values that a schema names, as (text, why): enum, const, booleans, default, examples."""
    if not isinstance(schema, dict):
        return []
    here = cast("dict[str, Any]", schema)
    choices: dict[str, str] = {}
    listed: Any = here.get("enum")
    values: list[tuple[Any, str]] = (
        [(value, "") for value in cast("list[Any]", listed)[:600]] if isinstance(listed, list) else []
    )
    if "const" in here:
        values.append((here["const"], "the only value"))
    kinds: Any = here.get("type")
    if not values and (kinds == "boolean" or (isinstance(kinds, list) and "boolean" in kinds)):
        values += [(True, ""), (False, "")]
    if "default" in here:
        values.append((here["default"], "default"))
    examples: Any = here.get("examples")
    if isinstance(examples, list):
        values += [(value, "example") for value in cast("list[Any]", examples)[:600]]
    for value, why in values:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        choices[text] = choices.get(text) or why
    return list(choices.items())


def _descriptions(schema: dict[str, Any]) -> dict[str, str]:
    """What ``enumDescriptions`` says of each value."""
    listed, texts = schema.get("enum"), schema.get("enumDescriptions")
    if not (isinstance(listed, list) and isinstance(texts, list)):
        return {}
    pairs = zip(cast("list[Any]", listed), cast("list[Any]", texts), strict=False)
    return {str(value): text for value, text in pairs if isinstance(text, str)}


def values(snapshot: Snapshot, cursor: Cursor, schemas: list[dict[str, Any]]) -> list[Proposal]:
    """The values that the schemas of an argument name; the default is chosen first."""
    proposals: dict[str, Proposal] = {}
    for schema in schemas:
        descriptions = _descriptions(schema)
        for text, why in value_choices(schema):
            if text not in proposals:
                proposals[text] = Proposal(
                    text.replace("\n", "↵")[:80],
                    "value",
                    cursor.span,
                    text,
                    detail=why,
                    documentation=descriptions.get(text, ""),
                    subject=schema,
                    filter=text,
                    preselect=why == "default",
                )
    return list(proposals.values())


# Parameters


def left(snapshot: Snapshot, cursor: Cursor, tool_id: str = "") -> Iterator[tuple[str, dict[str, Any], bool]]:
    """The parameters that the call does not have yet, required ones first, deprecated ones last: (name, schema, required)."""
    tool_id = tool_id or cursor.tool_id
    by_name: dict[str, tuple[dict[str, Any], bool]] = {}
    for schema in value_schemas(snapshot, tool_id, ()):
        names: Any = schema.get("required")
        properties: Any = schema.get("properties")
        for name, part in (cast("dict[str, Any]", properties) if isinstance(properties, dict) else {}).items():
            known = by_name.get(name)
            needed = isinstance(names, list) and name in names
            by_name[name] = (
                known[0] if known and known[0] else part if is_object(part) else {},
                needed or (known is not None and known[1]),
            )
    present = {normalised(name) for name in cursor.present}
    ordered = sorted(by_name.items(), key=lambda item: (item[1][0].get("deprecated") is True, not item[1][1]))
    for name, (schema, required) in ordered:
        if normalised(name + cursor.suffix) not in present:
            yield name, schema, required


def parameter_item(
    name: str, schema: dict[str, Any], required: bool, span: Span, text: str, snippet: str, filter_text: str = ""
) -> Proposal:
    """A parameter with its type."""
    return Proposal(
        name,
        "parameter",
        span,
        text,
        snippet,
        detail=type_name(schema) + (", required" if required else ""),
        subject=schema,
        filter=filter_text,
        deprecated=schema.get("deprecated") is True,
    )


def stop(index: int, schema: dict[str, Any]) -> str:
    """A tab stop for a value: the choices of an enum, the text of a default."""
    choices = [
        text for text, _ in value_choices({key: schema[key] for key in ("enum", "type", "const") if key in schema})
    ]
    if choices and len(choices) <= 50 and not any(re.search(r"[|,\\\n$}<&»«「」\"]", text) for text in choices):
        return f"${{{index}|{','.join(choices)}|}}"
    default = schema.get("default")
    if isinstance(default, (str, int, float)) and not isinstance(default, bool):
        text = str(default)
        if text and "\n" not in text and not re.search(r"[<>&»«「」\"]", text):
            return f"${{{index}:{escape_snippet(text)}}}"
    return f"${index}"
