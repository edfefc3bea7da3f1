"""Completion in TAM and VCP blocks: tools, fields that are left, step and meta fields, marks, values (seed 001 §3, seed 002 §4)."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from tamis.protocols.suggest import normalised
from tamis.server.analysis.answers import Proposal
from tamis.server.analysis.completion.call_words import left, parameter_item, stop, tool_item, tool_names, tools_of
from tamis.server.analysis.completion.cursor import Cursor
from tamis.server.analysis.completion.snippets import escape_snippet
from tamis.server.analysis.snapshot import Snapshot, ToolView

MARKS = {"tam": ("»»»", "«««"), "vcp": ("「始」", "「末」")}
_MAX_SIDE = 30
"""Parameters for which side fields (``type_hint_…``, ``uri_…``) are proposed."""
_CHOICES: tuple[tuple[re.Pattern[str], tuple[tuple[str, str], ...]], ...] = (
    (re.compile(r"on_error(_\d+)?\Z"), (("stop", "default: the block ends there"), ("continue", "the next step runs"))),
    (
        re.compile(r"type_hint_.+\Z"),
        (("text", "default: as written"), ("json", "JSON text"), ("base64", "base64 of any bytes")),
    ),
    (re.compile(r"retry(_\d+)?\Z"), (("0", "default"), ("1", "one more try"), ("2", ""), ("3", ""))),
)
_META = {
    "maid": "who calls; an ordinary argument",
    "archery": "meta: run without waiting for the result",
    "ink": "meta: how the result is shown",
    "river": "meta: the context that goes along",
    "vref": "meta: a reference into the context",
    "timely_contact": "meta: when the call shall run",
    "tool_password": "meta: the password of a protected tool",
    "requireAdmin": "meta: the code of an administrator",
}
"""VCP's own fields (ruling 28)."""


def side_values(snapshot: Snapshot, cursor: Cursor) -> list[Proposal]:
    """Values of the fields that no tool declares."""
    if cursor.protocol != "tam" or not cursor.path:
        return []
    key = cursor.path[-1].casefold() + cursor.suffix
    for pattern, choices in _CHOICES:
        if pattern.match(key):
            return [Proposal(text, "value", cursor.span, text, detail=about) for text, about in choices]
    config = snapshot.settings.config
    if key.startswith("uri_") and config is not None:
        texts = [f"fam://{name}/" for name in sorted(config.resources)]
        return [Proposal(text, "folder", cursor.span, text, detail="resource of the operator") for text in texts]
    return []


def propose_in_pairs(snapshot: Snapshot, cursor: Cursor) -> list[Proposal]:
    """Everything but values."""
    head, tail = MARKS[cursor.protocol]
    if cursor.expect == "tool":
        return tool_names(snapshot, cursor)
    if cursor.expect == "open":
        text = head + tail
        return [
            Proposal(text, "keyword", cursor.span, text, f"{head}$1{tail}", detail="the value's marks", filter=head)
        ]
    if cursor.expect != "parameter":
        return []
    return _tam(snapshot, cursor) if cursor.protocol == "tam" else _vcp(snapshot, cursor)


def _field(key: str, cursor: Cursor, detail: str, *, sort: str = "") -> Proposal:
    head, tail = MARKS[cursor.protocol]
    if cursor.bare:
        return Proposal(key, "keyword", cursor.span, key, detail=detail, sort=sort)
    text = f"{key}:{head}{tail}"
    snippet = f"{escape_snippet(key)}:{head}$1{tail}"
    return Proposal(key, "keyword", cursor.span, text, snippet, detail=detail, filter=key, sort=sort)


def _parameter(key: str, schema: dict[str, Any], required: bool, cursor: Cursor) -> Proposal:
    head, tail = MARKS[cursor.protocol]
    text = key if cursor.bare else f"{key}:{head}{tail}"
    snippet = "" if cursor.bare else f"{escape_snippet(key)}:{head}{stop(1, schema)}{tail}"
    return parameter_item(key, schema, required, cursor.span, text, snippet, key)


def _whole_calls(snapshot: Snapshot, cursor: Cursor, key: str) -> list[Proposal]:
    """Tools with what they need, for a block that names none yet."""
    return (
        [] if cursor.bare else [_whole_call(snapshot, cursor, key, tool) for tool in tools_of(snapshot, cursor.span[0])]
    )


def _whole_call(snapshot: Snapshot, cursor: Cursor, key: str, tool: ToolView) -> Proposal:
    head, tail = MARKS[cursor.protocol]
    call = msgspec.structs.replace(cursor, tool_id=tool.tool_id)
    needed = [(name, schema) for name, schema, required in left(snapshot, call) if required]
    plain = [f"{key}:{head}{tool.tool_id}{tail}", *(f"{name}:{head}{tail}" for name, _ in needed)]
    stops = [f"{key}:{head}{escape_snippet(tool.tool_id)}{tail}"]
    stops += [
        f"{escape_snippet(name)}:{head}{stop(index, schema)}{tail}" for index, (name, schema) in enumerate(needed, 1)
    ]
    between = "\n" if cursor.protocol == "tam" else ",\n"
    return tool_item(tool, cursor.span, between.join(plain), between.join(stops), tool.tool_id)


# TAM


def _tam(snapshot: Snapshot, cursor: Cursor) -> list[Proposal]:
    items: list[Proposal] = []
    if not cursor.steps:
        items.append(_field("command", cursor, "the tool to run"))
    named: list[tuple[str, dict[str, Any]]] = []
    for name, schema, required in left(snapshot, cursor):
        items.append(_parameter(name + cursor.suffix, schema, required, cursor))
    if not cursor.steps:
        items += _whole_calls(snapshot, cursor, "command")
    everything = msgspec.structs.replace(cursor, present=frozenset())
    named = [(name, schema) for name, schema, _ in left(snapshot, everything)][:_MAX_SIDE]
    fields: dict[str, str] = {}
    if cursor.suffix:
        fields[f"command_{max(cursor.steps) + 1}"] = "the tool of the next step"
    if cursor.steps:
        fields[f"on_error{cursor.suffix}"] = "what happens when the step fails: stop (default) or continue"
        fields[f"retry{cursor.suffix}"] = "how many more times the step is tried"
    fields["request_id"] = "names the block; the same id is not run twice"
    fields["comment"] = "a note that is not passed on"
    for name, schema in named:
        if len(cursor.steps) > 1:
            fields[f"common_{name}"] = f"{name} for every step"
        if "enum" in schema or "const" in schema:
            continue
        if schema.get("type") not in ("integer", "number", "boolean"):
            fields[f"type_hint_{name}{cursor.suffix}"] = f"how {name} is written: text, json or base64"
        if schema.get("type") in (None, "string"):
            fields[f"uri_{name}{cursor.suffix}"] = f"{name} from a resource, such as fam://…"
    for at, (key, detail) in enumerate(fields.items()):
        if normalised(key) not in cursor.present:
            items.append(_field(key, cursor, detail, sort=f"7{at:03}"))
    return items


# VCP


def _vcp(snapshot: Snapshot, cursor: Cursor) -> list[Proposal]:
    items: list[Proposal] = []
    if "toolname" not in cursor.present:
        items.append(_field("tool_name", cursor, "the tool to run"))
    items += [_parameter(name, schema, required, cursor) for name, schema, required in left(snapshot, cursor)]
    if "toolname" not in cursor.present:
        items += _whole_calls(snapshot, cursor, "tool_name")
    declared = {normalised(item.label) for item in items}
    for at, (key, detail) in enumerate(_META.items()):
        if normalised(key) not in cursor.present and normalised(key) not in declared:
            items.append(_field(key, cursor, detail, sort=f"7{at:03}"))
    return items
