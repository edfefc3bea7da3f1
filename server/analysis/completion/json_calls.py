"""Completion in calls that are written as JSON: Hermes blocks, and texts that are one JSON document of calls (seed 004 §2.4).

Names, arguments and their values by the tool's schema, also where the arguments are JSON inside a JSON string. Works on the JSON
alone, half-typed or not. Must not know how a call is read.
"""

from __future__ import annotations

import json
import re
from collections import deque
from typing import Any

import msgspec

from tamis.protocols.calljson.forms import ARGUMENTS, NAMES
from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.jsontext.tree import JsonNode, JsonTree, Path
from tamis.protocols.model import Piece
from tamis.protocols.plugins import editing_of
from tamis.protocols.schema.words import is_object
from tamis.server.analysis.answers import Proposal
from tamis.server.analysis.completion.call_words import tool_item, tools_of
from tamis.server.analysis.completion.json_slot import slot_at
from tamis.server.analysis.completion.schema_place import Schema, schemas_at
from tamis.server.analysis.completion.schema_proposals import JsonAsk, propose_json
from tamis.server.analysis.embedded import Embedded
from tamis.server.analysis.embedded_schema import propose_embedded, value_schemas
from tamis.server.analysis.snapshot import Snapshot

MAX_BLOCK_CHARS = 256 * 1024
_JSON_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})(?:\\u([dD][c-fC-F][0-9a-fA-F]{2}))?|(.))", re.S)
_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'", re.S)
_CHARS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

_CALL: Schema = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "The tool to call."},
        "arguments": {"type": "object", "description": "Its arguments by name."},
    },
    "required": ["name", "arguments"],
}
_DOCUMENT: Schema = {
    "type": ["object", "array"],
    "properties": {
        "toolName": {"type": "string", "description": "The tool to call."},
        "arguments": {"type": "object", "description": "Its arguments by name."},
        "tool_calls": {
            "type": "array",
            "description": "Calls as OpenAI writes them.",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "type": {"const": "function"},
                    "function": {**_CALL, "properties": {**_CALL["properties"], "arguments": {"type": "string"}}},
                },
            },
        },
    },
    "items": {"$ref": "#"},
}


def propose_in_json_call(snapshot: Snapshot, offset: int) -> list[Proposal] | None:
    """Proposals inside a call that is JSON; None where there is none around the offset."""
    region = _region(snapshot, offset)
    if region is None:
        return None
    start, end, shape = region
    text = snapshot.text[start:end]
    tree = parse_json(text)
    at = offset - start
    place = tree.pointer_at(at)
    if place.node is not None and place.node.kind == "string" and place.path and place.path[-1] in ARGUMENTS:
        tool_id = _tool_of(tree, place.path[:-1])
        if tool_id and place.node.start < at:
            inside = string_in(snapshot.text, start, place.node)
            proposals = propose_embedded(snapshot, inside, tool_id, (), offset)
            # In the middle of an escape nothing begins and nothing ends.
            return [item for item in proposals if item.span[0] <= offset <= item.span[1]]
    slot = slot_at(tree, at)
    if (
        slot is not None
        and slot.kind == "value"
        and slot.path
        and slot.path[-1] in NAMES
        and not _in_arguments(tree, slot.path)
    ):
        span = (slot.span[0] + start, slot.span[1] + start)
        items: list[Proposal] = []
        for tool in tools_of(snapshot, offset):
            quoted = json.dumps(tool.tool_id, ensure_ascii=False)
            typed = text[slot.span[0] : slot.span[0] + 1]
            items.append(tool_item(tool, span, quoted + slot.after, "", quoted if typed in ('"', "") else tool.tool_id))
        return items

    def schemas(path: Path) -> list[Schema] | None:
        place = _in_arguments(tree, path)
        if place is None:
            return schemas_at(shape, tree.root, path)
        tool_id, inner = place
        return _argument_schemas(snapshot, tree, tool_id, path, inner)

    return [
        msgspec.structs.replace(item, span=(item.span[0] + start, item.span[1] + start))
        for item in propose_json(JsonAsk(tree, schemas), at)
    ]


def _argument_schemas(snapshot: Snapshot, tree: JsonTree, tool_id: str, path: Path, inner: Path) -> list[Schema]:
    tool = snapshot.tool(tool_id)
    root: Any = tool.manifest.parameters if tool is not None else None
    if not is_object(root):
        return []
    node = tree.root.at(path[: len(path) - len(inner)]) if tree.root is not None else None
    above = value_schemas(snapshot, tool_id, ()) if not inner else [root]
    return above if not inner and node is None else schemas_at(root, node, inner)


def _region(snapshot: Snapshot, offset: int) -> tuple[int, int, Schema] | None:
    """The JSON around an offset: the inside of a Hermes block, or the whole text; and the shape of a call there."""
    text = snapshot.text
    for name in snapshot.settings.also:
        block = editing_of(name).json_block
        if block is None:
            continue
        opens, closes = block
        floor = max(0, offset - MAX_BLOCK_CHARS)
        opener = next(iter(deque(opens.finditer(text, floor, offset), maxlen=1)), None)
        if opener is not None and closes.search(text, opener.end(), offset) is None:
            ceiling = min(len(text), offset + MAX_BLOCK_CHARS)
            closer = closes.search(text, offset, ceiling) or opens.search(text, offset, ceiling)
            return opener.end(), closer.start() if closer is not None else ceiling, _CALL
    if snapshot.protocol == "auto" and len(text) <= MAX_BLOCK_CHARS and text.lstrip("\ufeff \t\r\n")[:1] in ("{", "["):
        return 0, len(text), _DOCUMENT
    return None


def _in_arguments(tree: JsonTree, path: Path) -> tuple[str, Path] | None:
    """The tool in whose arguments a path lies, and the way inside them."""
    for at, token in enumerate(path):
        if token in ARGUMENTS and (tool_id := _tool_of(tree, path[:at])):
            return tool_id, path[at + 1 :]
    return None


def _tool_of(tree: JsonTree, path: Path) -> str:
    """The tool that the object at a path names."""
    node: JsonNode | None = tree.root.at(path) if tree.root is not None else None
    if node is None or node.kind != "object":
        return ""
    for name in NAMES:
        member = node.get(name)
        if member is not None and isinstance(member.value, str):
            return member.value
    return ""


def string_in(source: str, base: int, node: JsonNode) -> Embedded:
    """The text of a JSON string whose tree begins at ``base`` of the source."""
    start, end = node.start + base, node.end + base
    quote = source[start : start + 1]
    inner = start + 1 if quote in ('"', "'") else start
    whole = _STRING.match(source, start, end)
    if whole is not None and whole.end() == end:
        end -= 1
    pieces: list[Piece] = []
    at = inner
    for match in _JSON_ESCAPE.finditer(source, inner, end):
        if at < match.start():
            pieces.append(Piece(at, match.start()))
        pieces.append(Piece(match.start(), match.end(), _decoded(match)))
        at = match.end()
    if at < end:
        pieces.append(Piece(at, end))
    return Embedded(source, pieces, "json", inner)


def _decoded(match: re.Match[str]) -> str:
    if match[1] is None:
        return _CHARS.get(match[3], match[3])
    high = int(match[1], 16)
    if match[2] is not None:
        if 0xD800 <= high <= 0xDBFF:
            return chr(0x10000 + ((high - 0xD800) << 10) + (int(match[2], 16) - 0xDC00))
        return chr(high) + chr(int(match[2], 16)) if not 0xD800 <= high <= 0xDFFF else "\ufffd\ufffd"
    return chr(high) if not 0xD800 <= high <= 0xDFFF else "\ufffd"
