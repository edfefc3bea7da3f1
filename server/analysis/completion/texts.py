"""Completion in texts with calls: which protocol the cursor is in, whole blocks, closing marks, values, JSON inside values.

Each proposal is written the way its protocol writes it, once plain and once with tab stops.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from tamis.protocols.editing import Fields, Step
from tamis.protocols.jsontext.tree import Path
from tamis.protocols.model import Piece
from tamis.protocols.patterns import lazy
from tamis.protocols.plugins import BUILT_IN, SHIPPED, editing_of, extras_of
from tamis.protocols.schema.words import is_list, is_object
from tamis.protocols.suggest import normalised
from tamis.server.analysis.answers import ItemKind, Proposal
from tamis.server.analysis.completion.call_words import (
    left,
    parameter_item,
    stop,
    tool_item,
    tool_names,
    tools_of,
    values,
)
from tamis.server.analysis.completion.cursor import Cursor, find_cursor, first_char
from tamis.server.analysis.completion.proposals import escape_snippet
from tamis.server.analysis.embedded import Embedded
from tamis.server.analysis.embedded_schema import is_structured, propose_embedded, value_schemas
from tamis.server.analysis.kinds import holds_calls
from tamis.server.analysis.snapshot import Snapshot, ToolView

# Completion in ACTION blocks: tools, parameters as elements, inputs or attributes, values, closing tags (seed 000, seed 003 §3.1).


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
        for index, (name, schema, _) in enumerate((item for item in left(snapshot, cursor) if item[2]), 1)
    ]
    body = "\n".join(lines) or "  $0"
    return _element("inputs", cursor, "<inputs>\n  \n</inputs>", f"<inputs>\n{body}\n</inputs>", "the arguments")


def _nested(snapshot: Snapshot, cursor: Cursor) -> list[Proposal]:
    """Elements inside a parameter's element: members of an object, items of a list (ruling 15)."""
    proposals: dict[str, Proposal] = {}
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
                proposals.setdefault(name, _element_of(name, part if is_object(part) else {}, need, cursor))
        elif is_object(items):
            proposal = _element(
                "item", cursor, "<item></item>", f"<item>{stop(1, items)}</item>", "one item of the list"
            )
            proposals.setdefault("item", proposal)
    return list(proposals.values())


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


# Completion in blocks of fields: tools, fields that are left, the protocol's own fields, marks, values (seed 001 §3, seed 002 §4).


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


__all__ = ["propose_in_text", "tools_of"]

_REFERENCE = lazy(r"(?<!\\)\{\{[ \t]*([\w.:-]*)\Z")


def propose_in_text(snapshot: Snapshot, offset: int) -> list[Proposal]:
    """Proposals at an offset of a text with calls."""
    from tamis.server.analysis.completion.json_calls import propose_in_json_call

    cursor = find_cursor(snapshot.text, offset)
    if cursor is None:
        expected = _in_expectation(snapshot, offset)
        if expected is not None:
            return expected
        proposals = propose_in_json_call(snapshot, offset)
        return _blocks(snapshot, offset) if proposals is None else proposals
    cursor = _on_its_line(snapshot.text, offset, cursor)
    begun = _REFERENCE.search(snapshot.text, max(0, offset - 256), offset) if cursor.expect == "value" else None
    if begun is not None:
        return _references(snapshot, offset, begun)
    items = _ends(snapshot.text, offset, cursor)
    if items:
        return items
    if cursor.expect == "value":
        marks = _marks(snapshot.text, offset, cursor)
        return marks if marks and cursor.container == "text" else [*_values(snapshot, cursor, offset), *marks]
    proposer = propose_in_action if editing_of(cursor.protocol).fields is None else propose_in_pairs
    return proposer(snapshot, cursor)


def _in_expectation(snapshot: Snapshot, offset: int) -> list[Proposal] | None:
    """What may stand in ``{{…}}`` of what is expected; None elsewhere."""
    begun = _REFERENCE.search(snapshot.text, max(0, offset - 256), offset)
    if begun is None or "expect" not in snapshot.text:
        return None
    from tamis.server.analysis.running.expectations import expectations_in

    document = snapshot.document
    before = [number for number, block in enumerate(document.blocks) if block.calls and block.span[1] < offset]
    fences = expectations_in(document, before[-1]) if before and not document.blocks[before[-1]].aside else []
    inside = any(fence.form == "json" and fence.place[0] <= offset <= fence.place[1] for fence in fences)
    return _references(snapshot, offset, begun, secrets=False) if inside else None


def propose_in_example(snapshot: Snapshot, offset: int) -> list[Proposal] | None:
    """What may stand in ``{{…}}`` in a manifest's example; None where none was begun."""
    begun = _REFERENCE.search(snapshot.text, max(0, offset - 256), offset)
    return None if begun is None else _references(snapshot, offset, begun)


def _references(snapshot: Snapshot, offset: int, begun: re.Match[str], *, secrets: bool = True) -> list[Proposal]:
    """What may stand in ``{{…}}``: variables, results of the blocks before, names of secrets."""
    from tamis.server.analysis.running.variables import known_names, variables_in

    blocks = snapshot.document.blocks if holds_calls(snapshot.kind) else []
    here = next((number for number, block in enumerate(blocks) if offset <= block.span[1]), None)
    config = snapshot.settings.config
    words = known_names(variables_in(snapshot), here)
    if secrets and config is not None:
        words |= {f"secret:{name}": "a secret, by its name" for name in config.secrets}
    span = (begun.start(1), offset)
    closed = snapshot.text.startswith("}}", offset)
    return [
        Proposal(name, "value", span, name if closed else name + "}}", detail=detail, filter=name)
        for name, detail in words.items()
    ]


def _on_its_line(text: str, offset: int, cursor: Cursor) -> Cursor:
    """The cursor with what a proposal replaces cut to the cursor's line: LSP allows no other range."""
    start, end = cursor.span
    if "\n" not in text[start:end] and "\r" not in text[start:end]:
        return cursor
    first = max(start, text.rfind("\n", start, offset) + 1, text.rfind("\r", start, offset) + 1)
    stops = [at for at in (text.find("\n", offset, end), text.find("\r", offset, end)) if at >= 0]
    return msgspec.structs.replace(cursor, span=(first_char(text, first, offset), min(stops, default=end)))


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
    for protocol in SHIPPED:
        editing = editing_of(protocol)
        marker, block = editing.begin, editing.empty_call
        if not marker or (protocol not in BUILT_IN and protocol not in snapshot.settings.also):
            continue
        if snapshot.protocol not in ("auto", protocol):
            continue
        typed = _typed_of(text, offset, marker)
        if not typed and line.strip():
            continue
        snippet = escape_snippet(block.format("\0")).replace("\0", "$0")
        span, about = (offset - typed, offset), editing.call_title
        items.append(Proposal(marker, "block", span, block.format(""), snippet, detail=about, filter=marker))
    return items


def _ends(text: str, offset: int, cursor: Cursor) -> list[Proposal]:
    """The closing marker, once its beginning is typed (a lone ``<`` may begin a value or a tag as well)."""
    marker = editing_of(cursor.protocol).close
    if not marker:
        return []
    typed = _typed_of(text, offset, marker)
    if typed < 2 and not (typed and cursor.expect != "value"):
        return []
    return [Proposal(marker, "keyword", (offset - typed, offset), marker, detail="end of the block", filter=marker)]


def _marks(text: str, offset: int, cursor: Cursor) -> list[Proposal]:
    """What closes a value: the mark or the section, once it is begun, or where the value has no end yet."""
    mark = editing_of(cursor.protocol).marks(cursor.container)[1] if cursor.container else ""
    if mark:
        typed = _typed_of(text, offset, mark)
        if not typed or text.startswith(mark[typed:], offset):
            return []
        return [Proposal(mark, "keyword", (offset - typed, offset), mark, detail="end of the value", filter=mark)]
    if cursor.container == "cdata":
        typed = _typed_of(text, offset, "]]>")
        if typed and not text.startswith("]]>"[typed:], offset):
            return [
                Proposal("]]>", "keyword", (offset - typed, offset), "]]>", detail="end of the section", filter="]]>")
            ]
    if cursor.container == "text" and (typed := _typed_of(text, offset, "<![CDATA[")):
        section = "<![CDATA[]]>"
        detail = "text as it is, nothing escaped"
        return [
            Proposal(
                "<![CDATA[",
                "keyword",
                (offset - typed, offset),
                section,
                "<![CDATA[$1]]>",
                detail=detail,
                filter="<![CDATA[",
            )
        ]
    return []


# Values


def _values(snapshot: Snapshot, cursor: Cursor, offset: int) -> list[Proposal]:
    side = side_values(snapshot, cursor)
    if side:
        return side
    path: Path = cursor.path
    schemas = value_schemas(snapshot, cursor.tool_id, path)
    start, end = cursor.value
    if is_structured(schemas, snapshot.text[start : min(end, start + 1_000)]):
        inside = embedded_of(snapshot.text, cursor)
        proposed = propose_embedded(snapshot, inside, cursor.tool_id, path, offset)
        # In the middle of an entity nothing begins and nothing ends.
        proposals = [item for item in proposed if item.span[0] <= offset <= item.span[1]]
        if proposals or inside.text.strip():
            return proposals
    items = values(snapshot, cursor, schemas)
    if cursor.container not in ("text", "attribute"):
        return items
    inside = Embedded(snapshot.text, (), cursor.container, offset)
    return [msgspec.structs.replace(item, text=inside.escape(item.text) or "") for item in items]


def embedded_of(text: str, cursor: Cursor) -> Embedded:
    """The value around a cursor, decoded as its container says."""
    start, end = cursor.value
    container = cursor.container
    if container in ("text", "attribute"):
        from tamis.protocols.action.decode import Decoded

        decoded = Decoded()
        decoded.text(text, start, end)
        return Embedded(text, decoded.pieces, container, start)
    return Embedded(text, [Piece(start, end)] if start < end else [], container, start)
