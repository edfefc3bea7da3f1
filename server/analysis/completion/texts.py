"""Completion in texts with calls: which protocol the cursor is in, whole blocks, closing marks, values, JSON inside values.

Each proposal is written the way its protocol writes it, once plain and once with tab stops.
"""

from __future__ import annotations

import re

import msgspec

from tamis.protocols.jsontext.tree import Path
from tamis.protocols.model import Piece
from tamis.protocols.patterns import lazy
from tamis.protocols.plugins import BUILT_IN, SHIPPED, editing_of
from tamis.server.analysis.answers import Proposal
from tamis.server.analysis.completion.action import propose_in_action
from tamis.server.analysis.completion.call_words import tools_of, values
from tamis.server.analysis.completion.cursor import Cursor, find_cursor
from tamis.server.analysis.completion.cursor_place import first_char
from tamis.server.analysis.completion.pairs import propose_in_pairs, side_values
from tamis.server.analysis.completion.snippets import escape_snippet
from tamis.server.analysis.embedded import Embedded
from tamis.server.analysis.embedded_schema import is_structured, propose_embedded, value_schemas
from tamis.server.analysis.snapshot import Snapshot

__all__ = ["propose_in_text", "tools_of"]

_REFERENCE = lazy(r"(?<!\\)\{\{[ \t]*([\w.:-]*)\Z")


def propose_in_text(snapshot: Snapshot, offset: int) -> list[Proposal]:
    """Proposals at an offset of a text with calls."""
    from tamis.server.analysis.completion.json_calls import propose_in_json_call

    cursor = find_cursor(snapshot.text, offset)
    if cursor is None:
        found = propose_in_json_call(snapshot, offset)
        return _blocks(snapshot, offset) if found is None else found
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
    made = propose_in_action if editing_of(cursor.protocol).fields is None else propose_in_pairs
    return made(snapshot, cursor)


def _references(snapshot: Snapshot, offset: int, begun: re.Match[str]) -> list[Proposal]:
    """What may stand in ``{{…}}``: variables, results of the blocks before, names of secrets."""
    from tamis.server.analysis.running.variables import known_names, variables_in

    blocks = snapshot.document.blocks
    here = next((number for number, block in enumerate(blocks) if offset <= block.span[1]), None)
    config = snapshot.settings.config
    words = known_names(variables_in(snapshot), here)
    words |= {f"secret:{name}": "a secret, by its name" for name in (config.secrets if config is not None else ())}
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
        found = [item for item in proposed if item.span[0] <= offset <= item.span[1]]
        if found or inside.text.strip():
            return found
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
