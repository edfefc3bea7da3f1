"""Completion in texts with calls: blocks, tool ids, the parameters that are left, their values, closing tags.

Each proposal is written the way its protocol writes it, once plain and once with tab stops.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from tamis.protocols.positions import Span
from tamis.protocols.schema.words import is_list, is_object
from tamis.protocols.suggest import normalised
from tamis.server.analysis.answers import ItemKind, Proposal
from tamis.server.analysis.cursor import Cursor, find_cursor
from tamis.server.analysis.describe import describe_schema, describe_tool, type_name
from tamis.server.analysis.snapshot import Snapshot, ToolView

_BLOCKS = {
    "action": ("<ACTION>", "<ACTION>\n  {0}\n</ACTION>", "ACTION call, tool id as tag"),
    "tam": ("<|[REQUEST_TOOL]|>", "<|[REQUEST_TOOL]|>\ncommand:»»»{0}«««\n<|[END_TOOL]|>", "TAM call"),
    "vcp": (
        "<<<[TOOL_REQUEST]>>>",
        "<<<[TOOL_REQUEST]>>>\ntool_name:「始」{0}「末」\n<<<[END_TOOL_REQUEST]>>>",
        "VCP call",
    ),
}
_END = {"tam": "<|[END_TOOL]|>", "vcp": "<<<[END_TOOL_REQUEST]>>>", "action": "</ACTION>"}
_ERROR_CHOICES = ("stop", "continue")
_HINT_CHOICES = ("text", "json", "base64")


def propose_in_text(snapshot: Snapshot, offset: int) -> list[Proposal]:
    """Proposals at an offset of a text with calls."""
    cursor = find_cursor(snapshot.text, offset)
    items = _ends(snapshot.text, offset, cursor)
    if cursor is None:
        items += _blocks(snapshot, offset)
    elif not items:
        items += {"action": _action, "tam": _tam, "vcp": _vcp}[cursor.protocol](snapshot, cursor)
    return items


def escape_snippet(text: str) -> str:
    """Text as it stands in a snippet: nothing in it is a tab stop."""
    return re.sub(r"([\\$}])", r"\\\1", text)


def _typed_of(text: str, offset: int, marker: str) -> int:
    """How many characters before the offset are the beginning of a marker, in any case."""
    for length in range(min(len(marker), offset), 0, -1):
        if text[offset - length : offset].casefold() == marker[:length].casefold():
            return length
    return 0


# Blocks


def _blocks(snapshot: Snapshot, offset: int) -> list[Proposal]:
    text = snapshot.text
    line = text[max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1 : offset]
    items: list[Proposal] = []
    for protocol, (marker, block, detail) in _BLOCKS.items():
        if snapshot.protocol not in ("auto", protocol):
            continue
        typed = _typed_of(text, offset, marker)
        if not typed and line.strip():
            continue
        span = (offset - typed, offset)
        items.append(
            Proposal(
                marker,
                "block",
                span,
                block.format(""),
                escape_snippet(block.replace("{0}", "\0")).replace("\0", "$0"),
                detail=detail,
                filter=marker,
            )
        )
    return items


def _ends(text: str, offset: int, cursor: Cursor | None) -> list[Proposal]:
    """The closing marker, once its beginning is typed (a lone ``<`` may begin a value or a tag as well)."""
    if cursor is None or cursor.protocol == "action":
        return []
    marker = _END[cursor.protocol]
    typed = _typed_of(text, offset, marker)
    if typed < 2 and not (typed and cursor.expect != "value"):
        return []
    return [Proposal(marker, "keyword", (offset - typed, offset), marker, detail="end of the block", filter=marker)]


# Tools


def tools_of(snapshot: Snapshot) -> list[ToolView]:
    """The tools that can be proposed: each id once, in its newest version."""
    seen: dict[str, ToolView] = {}
    for tool in snapshot.registry.tools if snapshot.registry is not None else ():
        seen.setdefault(tool.tool_id, tool)
    return list(seen.values())


def _tool_item(tool: ToolView, span: Span, text: str, snippet: str = "", filter_text: str = "") -> Proposal:
    return Proposal(
        tool.tool_id,
        "tool",
        span,
        text,
        snippet,
        detail=tool.manifest.display_name,
        documentation=describe_tool(tool),
        filter=filter_text,
    )


# Values


def value_choices(schema: object) -> list[tuple[str, str]]:
    """The values that a schema names, as (text, why): enum, const, booleans, default, examples."""
    if not isinstance(schema, dict):
        return []
    found: dict[str, str] = {}
    here = cast("dict[str, Any]", schema)
    listed: Any = here.get("enum")
    values: list[tuple[Any, str]] = (
        [(value, "") for value in cast("list[Any]", listed)] if isinstance(listed, list) else []
    )
    if "const" in here:
        values.append((here["const"], "the only value"))
    kinds: Any = here.get("type")
    if kinds == "boolean" or (isinstance(kinds, list) and "boolean" in kinds):
        values += [(True, ""), (False, "")]
    if "default" in here:
        values.append((here["default"], "default"))
    examples: Any = here.get("examples")
    if isinstance(examples, list):
        values += [(value, "example") for value in cast("list[Any]", examples)]
    for value, why in values:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        found[text] = found.get(text) or why
    return list(found.items())


def _schema_at(snapshot: Snapshot, tool_id: str, path: tuple[str, ...]) -> dict[str, Any]:
    """The schema at a path of parameter and element names; ``item`` steps into a list as tags write it (ruling 15)."""
    here: dict[str, Any] = {"properties": snapshot.properties(tool_id)}
    for name in path:
        declared: Any = here.get("properties")
        items: Any = here.get("items")
        if not isinstance(declared, dict) and isinstance(items, dict):
            if name == "item":
                here = cast("dict[str, Any]", items)
                continue
            # A repeated tag is a list: its name stands for each of its items.
            declared = cast("dict[str, Any]", items).get("properties")
        if not isinstance(declared, dict):
            return {}
        known = cast("dict[str, Any]", declared)
        wanted = normalised(name)
        found: Any = known.get(name) or next((part for key, part in known.items() if normalised(key) == wanted), None)
        if not isinstance(found, dict):
            return {}
        here = cast("dict[str, Any]", found)
    return here if path else {}


def _values(snapshot: Snapshot, cursor: Cursor) -> list[Proposal]:
    schema = _schema_at(snapshot, cursor.tool_id, cursor.path)
    return [
        Proposal(text, "value", cursor.span, text, detail=why, documentation=describe_schema(schema))
        for text, why in value_choices(schema)
    ]


def _left(snapshot: Snapshot, cursor: Cursor) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """The parameters that the call does not have yet, required ones first: (name, schema, required)."""
    names = snapshot.required(cursor.tool_id)
    present = {normalised(name) for name in cursor.present}
    properties = snapshot.properties(cursor.tool_id)
    for name in sorted(properties, key=lambda name: name not in names):
        if normalised(name + cursor.suffix) not in present:
            schema = properties[name]
            yield name, schema if is_object(schema) else {}, name in names


def _parameter_item(
    name: str, schema: dict[str, Any], required: bool, span: Span, text: str, snippet: str, filter_text: str = ""
) -> Proposal:
    detail = type_name(schema) + (", required" if required else "")
    return Proposal(
        name,
        "parameter",
        span,
        text,
        snippet,
        detail=detail,
        documentation=describe_schema(schema),
        filter=filter_text,
        deprecated=schema.get("deprecated") is True,
    )


def _stop(index: int, schema: dict[str, Any]) -> str:
    """A tab stop, with the choices of an enum."""
    choices = [text for text, _ in value_choices({key: schema[key] for key in ("enum", "type") if key in schema})]
    if not choices or any(re.search(r"[|,\\]", text) for text in choices):
        return f"${index}"
    listed = ",".join(escape_snippet(text) for text in choices)
    return f"${{{index}|{listed}|}}"


# ACTION


def _action(snapshot: Snapshot, cursor: Cursor) -> list[Proposal]:
    if cursor.expect == "nothing":
        return []
    if cursor.expect == "value":
        return _values(snapshot, cursor)
    if cursor.expect == "close":
        return _closing_tags(cursor)
    if cursor.expect == "tool":
        return _action_tools(snapshot, cursor)
    if cursor.bare:
        return [
            _parameter_item(name, schema, required, cursor.span, name, "")
            for name, schema, required in _left(snapshot, cursor)
        ]
    items: list[Proposal] = []
    if cursor.shape == "inputs":
        if cursor.open_tags[:1] == ("inputs",) and len(cursor.open_tags) == 1:
            items = [_input(name, schema, required, cursor.span) for name, schema, required in _left(snapshot, cursor)]
        elif not cursor.open_tags and cursor.tool_id:
            body = "<inputs>\n  {}\n</inputs>"
            items = [_element("inputs", cursor.span, body.format(""), body.format("$0"), "keyword", "the arguments")]
    elif len(cursor.path) == 0:
        items = [_tagged(name, schema, required, cursor.span) for name, schema, required in _left(snapshot, cursor)]
    else:
        items = _nested(snapshot, cursor)
    return items + _closing_tags(cursor)


def _element(
    label: str, span: Span, text: str, snippet: str, kind: ItemKind = "parameter", detail: str = "", doc: str = ""
) -> Proposal:
    return Proposal(label, kind, span, text, snippet, detail=detail, documentation=doc, filter=f"<{label}")


def _tagged(name: str, schema: dict[str, Any], required: bool, span: Span) -> Proposal:
    text = f"<{name}></{name}>"
    safe = escape_snippet(name)
    snippet = f"<{safe}>{_stop(1, schema)}</{safe}>"
    return _parameter_item(name, schema, required, span, text, snippet, f"<{name}")


def _input(name: str, schema: dict[str, Any], required: bool, span: Span) -> Proposal:
    quoted = name.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    text = f'<input name="{quoted}"></input>'
    snippet = f'<input name="{escape_snippet(quoted)}">{_stop(1, schema)}</input>'
    return _parameter_item(name, schema, required, span, text, snippet, f"<input {name}")


def _nested(snapshot: Snapshot, cursor: Cursor) -> list[Proposal]:
    schema = _schema_at(snapshot, cursor.tool_id, cursor.path)
    items, inner = schema.get("items"), schema.get("properties")
    if not is_object(inner) and is_object(items):
        schema, inner = items, items.get("properties")
    if is_object(inner):
        required = schema.get("required")
        wanted = required if is_list(required) else []
        return [
            _tagged(name, part if is_object(part) else {}, name in wanted, cursor.span) for name, part in inner.items()
        ]
    if is_object(items):
        return [_element("item", cursor.span, "<item></item>", "<item>$1</item>", "keyword", "one item of the list")]
    return []


def _closing_tags(cursor: Cursor) -> list[Proposal]:
    text = f"</{cursor.open_tags[-1] if cursor.open_tags else 'ACTION'}>"
    return [Proposal(text, "keyword", cursor.span, text, detail="closing tag", filter=text, sort="9")]


def _action_tools(snapshot: Snapshot, cursor: Cursor) -> list[Proposal]:
    tools = tools_of(snapshot)
    if cursor.open_tags[:1] == ("tool_id",):
        return [_tool_item(tool, cursor.span, tool.tool_id) for tool in tools]
    if cursor.bare:
        return [_tool_item(tool, cursor.span, tool.tool_id) for tool in tools]
    items: list[Proposal] = []
    for tool in tools:
        name = tool.tool_id
        lines = [f"<{escape_snippet(name)}>"]
        call = msgspec.structs.replace(cursor, tool_id=name, present=frozenset())
        index = 0
        for parameter, schema, required in _left(snapshot, call):
            if required:
                index += 1
                safe = escape_snippet(parameter)
                lines.append(f"  <{safe}>{_stop(index, schema)}</{safe}>")
        if index == 0:
            lines.append("  $0")
        lines.append(f"</{escape_snippet(name)}>")
        items.append(_tool_item(tool, cursor.span, f"<{name}></{name}>", "\n".join(lines), f"<{name}"))
    items.append(
        _element(
            "tool_id",
            cursor.span,
            "<tool_id></tool_id>",
            '<tool_id>$1</tool_id>\n<inputs>\n  <input name="$2">$3</input>\n</inputs>',
            "keyword",
            "tool id as text, arguments as inputs",
        )
    )
    return items + _closing_tags(cursor)


# TAM


def _tam(snapshot: Snapshot, cursor: Cursor) -> list[Proposal]:
    if cursor.expect == "tool":
        return [_tool_item(tool, cursor.span, tool.tool_id) for tool in tools_of(snapshot)]
    if cursor.expect == "value":
        key = cursor.path[-1].casefold()
        if key.startswith("on_error"):
            return [Proposal(text, "value", cursor.span, text) for text in _ERROR_CHOICES]
        if key.startswith("type_hint_"):
            return [Proposal(text, "value", cursor.span, text) for text in _HINT_CHOICES]
        return _values(snapshot, cursor)
    if cursor.expect != "parameter":
        return []
    items: list[Proposal] = []
    if not cursor.steps:
        items.append(_field("command", cursor, "the tool to run"))
    for name, schema, required in _left(snapshot, cursor):
        key = name + cursor.suffix
        text = key if cursor.bare else f"{key}:»»»«««"
        snippet = "" if cursor.bare else f"{escape_snippet(key)}:»»»{_stop(1, schema)}«««"
        items.append(_parameter_item(key, schema, required, cursor.span, text, snippet))
    more = [f"on_error{cursor.suffix}", f"retry{cursor.suffix}"] if cursor.suffix else []
    if cursor.suffix:
        more.insert(0, f"command_{max(cursor.steps) + 1}")
    more += ["request_id", "comment"]
    return items + [_field(name, cursor, _about(name)) for name in more if normalised(name) not in cursor.present]


def _about(field: str) -> str:
    return _TAM_FIELDS.get(field) or _TAM_FIELDS.get(field.rpartition("_")[0], "")


_TAM_FIELDS = {
    "command": "the tool of the next step",
    "on_error": "what happens when the step fails: stop (default) or continue",
    "retry": "how many more times the step is tried",
    "request_id": "names the block; the same id is not run twice",
    "comment": "a note that is not passed on",
}


def _field(key: str, cursor: Cursor, detail: str) -> Proposal:
    if cursor.bare:
        return Proposal(key, "keyword", cursor.span, key, detail=detail)
    return Proposal(key, "keyword", cursor.span, f"{key}:»»»«««", f"{key}:»»»$1«««", detail=detail)


# VCP


def _vcp(snapshot: Snapshot, cursor: Cursor) -> list[Proposal]:
    if cursor.expect == "tool":
        return [_tool_item(tool, cursor.span, tool.tool_id) for tool in tools_of(snapshot)]
    if cursor.expect == "value":
        return _values(snapshot, cursor)
    if cursor.expect != "parameter":
        return []
    items: list[Proposal] = []
    if "toolname" not in cursor.present:
        items.append(
            Proposal(
                "tool_name",
                "keyword",
                cursor.span,
                "tool_name" if cursor.bare else "tool_name:「始」「末」",
                "" if cursor.bare else "tool_name:「始」$1「末」",
                detail="the tool to run",
            )
        )
    for name, schema, required in _left(snapshot, cursor):
        text = name if cursor.bare else f"{name}:「始」「末」"
        snippet = "" if cursor.bare else f"{escape_snippet(name)}:「始」{_stop(1, schema)}「末」"
        items.append(_parameter_item(name, schema, required, cursor.span, text, snippet))
    return items
