"""Completion in ACTION blocks: tools, parameters as elements, inputs or attributes, values, closing tags (seed 000, seed 003 §3.1)."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from tamis.protocols.schema.words import is_list, is_object
from tamis.server.analysis.answers import ItemKind, Proposal
from tamis.server.analysis.completion.call_words import left, parameter_item, stop, tool_item, tool_names, tools_of
from tamis.server.analysis.completion.cursor import Cursor
from tamis.server.analysis.completion.snippets import escape_snippet
from tamis.server.analysis.embedded_schema import value_schemas
from tamis.server.analysis.snapshot import Snapshot

_TAG = re.compile(r"[^\s<>/!?\"'=&]+\Z")
"""A name that can be a tag; others need an ``<input name="…">``."""


def propose_in_action(snapshot: Snapshot, cursor: Cursor) -> list[Proposal]:
    """Everything but values."""
    if cursor.expect == "close":
        return _closing_tags(cursor)
    if cursor.expect == "tool":
        return _tools(snapshot, cursor)
    if cursor.expect == "attribute":
        return [_attribute(name, schema, required, cursor) for name, schema, required in left(snapshot, cursor)]
    if cursor.expect != "parameter":
        return []
    if cursor.bare:
        return [
            parameter_item(name, schema, need, cursor.span, name, "") for name, schema, need in left(snapshot, cursor)
        ]
    items: list[Proposal] = []
    if cursor.shape == "inputs" and len(cursor.path) == 0:
        if cursor.open_tags == ("inputs",):
            items = [_input(name, schema, need, cursor) for name, schema, need in left(snapshot, cursor)]
        elif not cursor.open_tags and cursor.tool_id:
            items = [_inputs(snapshot, cursor)]
    elif len(cursor.path) == 0:
        items = [
            _element_of(name, schema, need, cursor) for name, schema, need in left(snapshot, cursor) if _TAG.match(name)
        ]
    else:
        items = [*_nested(snapshot, cursor), _section(cursor)]
    return items + _closing_tags(cursor)


def _element(label: str, cursor: Cursor, text: str, snippet: str, detail: str, kind: ItemKind = "keyword") -> Proposal:
    return Proposal(label, kind, cursor.span, text, snippet, detail=detail, filter=f"<{label}")


def _element_of(name: str, schema: dict[str, Any], required: bool, cursor: Cursor) -> Proposal:
    text = f"<{name}></{name}>"
    safe = escape_snippet(name)
    snippet = f"<{safe}>{stop(1, schema)}</{safe}>"
    return parameter_item(name, schema, required, cursor.span, text, snippet, f"<{name}")


def _quoted(name: str) -> str:
    return name.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")


def _input(name: str, schema: dict[str, Any], required: bool, cursor: Cursor) -> Proposal:
    text = f'<input name="{_quoted(name)}"></input>'
    snippet = f'<input name="{escape_snippet(_quoted(name))}">{stop(1, schema)}</input>'
    return parameter_item(name, schema, required, cursor.span, text, snippet, f"<input {name}")


def _attribute(name: str, schema: dict[str, Any], required: bool, cursor: Cursor) -> Proposal:
    text = name if cursor.bare else f'{name}=""'
    snippet = "" if cursor.bare else f'{escape_snippet(name)}="{stop(1, schema)}"'
    return parameter_item(name, schema, required, cursor.span, text, snippet)


def _inputs(snapshot: Snapshot, cursor: Cursor) -> Proposal:
    """``<inputs>`` with what the tool needs."""
    lines = [
        f'  <input name="{escape_snippet(_quoted(name))}">{stop(index, schema)}</input>'
        for index, (name, schema, _) in enumerate((one for one in left(snapshot, cursor) if one[2]), 1)
    ]
    body = "\n".join(lines) or "  $0"
    return _element("inputs", cursor, "<inputs>\n  \n</inputs>", f"<inputs>\n{body}\n</inputs>", "the arguments")


def _nested(snapshot: Snapshot, cursor: Cursor) -> list[Proposal]:
    """Elements inside a parameter's element: members of an object, items of a list (ruling 15)."""
    found: dict[str, Proposal] = {}
    for schema in value_schemas(snapshot, cursor.tool_id, cursor.path):
        items, inner = schema.get("items"), schema.get("properties")
        if not is_object(inner) and is_object(items):
            schema, inner = items, items.get("properties")
        if is_object(inner):
            wanted: Any = schema.get("required")
            for name, part in inner.items():
                if not _TAG.match(name):
                    continue
                need = is_list(wanted) and name in wanted
                found.setdefault(name, _element_of(name, part if is_object(part) else {}, need, cursor))
        elif is_object(items):
            made = _element("item", cursor, "<item></item>", f"<item>{stop(1, items)}</item>", "one item of the list")
            found.setdefault("item", made)
    return list(found.values())


def _section(cursor: Cursor) -> Proposal:
    text = "<![CDATA["
    detail = "text as it is, nothing escaped"
    return Proposal(text, "keyword", cursor.span, f"{text}]]>", f"{text}$1]]>", detail=detail, filter=text, sort="8")


def _closing_tags(cursor: Cursor) -> list[Proposal]:
    text = f"</{cursor.open_tags[-1] if cursor.open_tags else 'ACTION'}>"
    return [Proposal(text, "keyword", cursor.span, text, detail="closing tag", filter=text, sort="9")]


def _tools(snapshot: Snapshot, cursor: Cursor) -> list[Proposal]:
    if cursor.open_tags[:1] == ("tool_id",) or cursor.bare:
        return tool_names(snapshot, cursor)
    items: list[Proposal] = []
    for tool in tools_of(snapshot, cursor.span[0]):
        name = escape_snippet(tool.tool_id)
        call = msgspec.structs.replace(cursor, tool_id=tool.tool_id, present=frozenset())
        needed = [(parameter, schema) for parameter, schema, required in left(snapshot, call) if required]
        lines = [
            f"  <{escape_snippet(parameter)}>{stop(index, schema)}</{escape_snippet(parameter)}>"
            for index, (parameter, schema) in enumerate(needed, 1)
        ]
        snippet = "\n".join((f"<{name}>", *(lines or ["  $0"]), f"</{name}>"))
        plain = [f"  <{parameter}></{parameter}>" for parameter, _ in needed]
        text = (
            "\n".join((f"<{tool.tool_id}>", *plain, f"</{tool.tool_id}>"))
            if plain
            else f"<{tool.tool_id}></{tool.tool_id}>"
        )
        items.append(tool_item(tool, cursor.span, text, snippet, f"<{tool.tool_id}"))
    items.append(
        _element(
            "tool_id",
            cursor,
            "<tool_id></tool_id>",
            '<tool_id>$1</tool_id>\n<inputs>\n  <input name="$2">$3</input>\n</inputs>',
            "tool id as text, arguments as inputs",
        )
    )
    return items + _closing_tags(cursor)
