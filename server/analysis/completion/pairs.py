"""Completion in blocks of fields: tools, fields that are left, the protocol's own fields, marks, values (seed 001 §3, seed 002 §4)."""

from __future__ import annotations

from typing import Any

import msgspec

from tamis.protocols.editing import Fields, Step
from tamis.protocols.plugins import editing_of, extras_of
from tamis.protocols.suggest import normalised
from tamis.server.analysis.answers import Proposal
from tamis.server.analysis.completion.call_words import left, parameter_item, stop, tool_item, tool_names, tools_of
from tamis.server.analysis.completion.cursor import Cursor
from tamis.server.analysis.completion.snippets import escape_snippet
from tamis.server.analysis.snapshot import Snapshot, ToolView


def _written(cursor: Cursor) -> Fields:
    """How the fields around the cursor are written; only asked for in a block of fields."""
    fields = editing_of(cursor.protocol).fields
    assert fields is not None
    return fields


def side_values(snapshot: Snapshot, cursor: Cursor) -> list[Proposal]:
    """Values of the fields that no tool declares."""
    if not cursor.path:
        return []
    key = cursor.path[-1].casefold() + cursor.suffix
    choices = editing_of(cursor.protocol).side_values(key)
    if choices:
        return [Proposal(text, "value", cursor.span, text, detail=about) for text, about in choices]
    config = snapshot.settings.config
    if key.startswith("uri_") and config is not None and extras_of(cursor.protocol).modifiers:
        texts = [f"fam://{name}/" for name in sorted(config.resources)]
        return [Proposal(text, "folder", cursor.span, text, detail="resource of the operator") for text in texts]
    return []


def propose_in_pairs(snapshot: Snapshot, cursor: Cursor) -> list[Proposal]:
    """Everything but values."""
    head, tail = _written(cursor).marks
    if cursor.expect == "tool":
        return tool_names(snapshot, cursor)
    if cursor.expect == "open":
        text = head + tail
        return [
            Proposal(text, "keyword", cursor.span, text, f"{head}$1{tail}", detail="the value's marks", filter=head)
        ]
    if cursor.expect != "parameter":
        return []
    return _names(snapshot, cursor)


def _field(key: str, cursor: Cursor, detail: str, *, sort: str = "") -> Proposal:
    head, tail = _written(cursor).marks
    if cursor.bare:
        return Proposal(key, "keyword", cursor.span, key, detail=detail, sort=sort)
    text = f"{key}:{head}{tail}"
    snippet = f"{escape_snippet(key)}:{head}$1{tail}"
    return Proposal(key, "keyword", cursor.span, text, snippet, detail=detail, filter=key, sort=sort)


def _parameter(key: str, schema: dict[str, Any], required: bool, cursor: Cursor) -> Proposal:
    head, tail = _written(cursor).marks
    text = key if cursor.bare else f"{key}:{head}{tail}"
    snippet = "" if cursor.bare else f"{escape_snippet(key)}:{head}{stop(1, schema)}{tail}"
    return parameter_item(key, schema, required, cursor.span, text, snippet, key)


def _whole_calls(snapshot: Snapshot, cursor: Cursor, key: str) -> list[Proposal]:
    """Tools with what they need, for a block that names none yet."""
    return (
        [] if cursor.bare else [_whole_call(snapshot, cursor, key, tool) for tool in tools_of(snapshot, cursor.span[0])]
    )


def _whole_call(snapshot: Snapshot, cursor: Cursor, key: str, tool: ToolView) -> Proposal:
    head, tail = _written(cursor).marks
    call = msgspec.structs.replace(cursor, tool_id=tool.tool_id)
    needed = [(name, schema) for name, schema, required in left(snapshot, call) if required]
    plain = [f"{key}:{head}{tool.tool_id}{tail}", *(f"{name}:{head}{tail}" for name, _ in needed)]
    stops = [f"{key}:{head}{escape_snippet(tool.tool_id)}{tail}"]
    stops += [
        f"{escape_snippet(name)}:{head}{stop(index, schema)}{tail}" for index, (name, schema) in enumerate(needed, 1)
    ]
    between = _written(cursor).between
    return tool_item(tool, cursor.span, between.join(plain), between.join(stops), tool.tool_id)


def _names(snapshot: Snapshot, cursor: Cursor) -> list[Proposal]:
    """What a key may be: the tool's, a parameter's, one of the protocol's own; whole calls where no tool is named yet."""
    fields = _written(cursor)
    lacks_tool = not (cursor.steps if fields.steps else normalised(fields.tool_key) in cursor.present)
    items: list[Proposal] = []
    if lacks_tool:
        items.append(_field(fields.tool_key, cursor, "the tool to run"))
    for name, schema, required in left(snapshot, cursor):
        items.append(_parameter(name + cursor.suffix, schema, required, cursor))
    if lacks_tool:
        items += _whole_calls(snapshot, cursor, fields.tool_key)
    everything = msgspec.structs.replace(cursor, present=frozenset())
    named = ((name, schema) for name, schema, _ in left(snapshot, everything))
    taken = frozenset(normalised(item.label) for item in items)
    side = editing_of(cursor.protocol).side_fields(Step(cursor.steps, cursor.suffix), named, taken)
    for at, (key, detail) in enumerate(side.items()):
        if normalised(key) not in cursor.present:
            items.append(_field(key, cursor, detail, sort=f"7{at:03}"))
    return items
