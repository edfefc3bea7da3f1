"""What may be written at an offset of a JSON text: a key or a value, over which span, and what must stand behind it.

Works in half-typed text: unfinished strings, words without quotes, missing commas. Must not know schemas.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from typing import Any, Literal, cast

import msgspec

from tamis.protocols.jsontext.tree import JsonNode, JsonTree, Member, Path, Place
from tamis.protocols.positions import Span
from tamis.server.analysis.answers import ItemKind, Proposal
from tamis.server.analysis.completion.proposals import choice, escape_snippet, snippet_of_body, value_of_body
from tamis.server.analysis.completion.schema_place import Schema

_BLANKS = " \t\r\n\ufeff"
_SKIP = re.compile(r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*(?s:.*?)\*/)*+")
_LOOK = 20_000
"""Characters of layout and comments that are passed over on either side."""


class Slot(msgspec.Struct, frozen=True):
    """A place where a key or a value belongs.

    ``path`` leads to the value (of a key: to the object that holds it). ``span`` is what is replaced: the word or text at the
    offset, else nothing. ``after`` is the comma that must follow. ``names_only``: a colon stands behind the key already.
    """

    kind: Literal["key", "value"]
    path: Path
    span: Span
    after: str
    container: JsonNode | None
    node: JsonNode | None = None
    member: Member | None = None
    names_only: bool = False


def slot_at(tree: JsonTree, offset: int) -> Slot | None:
    """The slot at an offset; None where nothing belongs: in a comment, behind a value, in a document that has its value."""
    if in_comment(tree, offset):
        return None
    if tree.root is None:
        if _before(tree, offset) != " ":
            return None
        return Slot("value", (), (offset, offset), "", None)
    place = tree.pointer_at(offset)
    if place.slot == "key":
        return _at_key(tree, offset, place)
    if place.slot == "gap":
        return _in_gap(tree, offset, place)
    if place.node is None:
        return _without_value(tree, tree.root, offset, place)
    return _at_value(tree, offset, place, place.node)


def _at_key(tree: JsonTree, offset: int, place: Place) -> Slot | None:
    """In or beside a member's name."""
    member = place.member
    if member is None:
        return _between(tree, offset, place.path, place.container)
    has_colon = member.colon >= 0
    if offset == member.key_start and has_colon:
        # Right before a whole member: another one.
        return _between(tree, offset, place.path[:-1], place.container)
    span = member.key_span
    behind = "" if has_colon else _after(tree.text, span[1])
    return Slot("key", place.path[:-1], span, behind, place.container, None, member, has_colon)


def _in_gap(tree: JsonTree, offset: int, place: Place) -> Slot | None:
    """Between two members, or before the first and behind the last one."""
    path, container, member = place.path, place.container, place.member
    at_member = member is not None and bool(path) and path[-1] == member.key
    if at_member and member is not None and (container is None or container.member(member.key) is member):
        path = path[:-1]
    return _between(tree, offset, path, container)


def _without_value(tree: JsonTree, root: JsonNode, offset: int, place: Place) -> Slot | None:
    """Where a value belongs and none is, or before the one that is."""
    text, container, member = tree.text, place.container, place.member
    value = member.value if member is not None else None
    if value is not None and offset < value.start:
        # Before a value that is there: it is replaced, for two would be one too many.
        if value.kind in ("object", "array") or "\n" in text[offset : value.end]:
            return None
        return Slot("value", place.path, (offset, value.end), _after(text, value.end), container, value, member)
    if container is None:
        blank = not text[:offset].strip(_BLANKS) and offset <= root.start
        behind = _before(tree, offset) in "}],:"
        return None if blank or behind or root.kind != "error" else Slot("value", (), (offset, offset), "", None)
    if container.kind == "array" and _before(tree, offset) not in "[,":
        return None
    return Slot("value", place.path, (offset, offset), _after(text, offset), container, None, member)


def _at_value(tree: JsonTree, offset: int, place: Place, node: JsonNode) -> Slot | None:
    """In or beside a value."""
    text, container, member = tree.text, place.container, place.member
    if node.kind in ("object", "array"):
        if offset > node.start or container is None or container.kind != "array" or _before(tree, offset) not in "[,":
            return None
        return Slot("value", place.path, (offset, offset), _after(text, offset), container, None, member)
    if offset < node.start or offset > node.end:
        return None
    if offset == node.start and node.kind in ("string", "error") and (container is None or container.kind == "array"):
        return Slot("value", place.path, (offset, offset), _after(text, offset), container, node, member)
    return Slot("value", place.path, node.span, _after(text, node.end), container, node, member)


def slot_without_comma(tree: JsonTree, offset: int) -> Slot | None:
    """The slot of a key on a line of its own, behind a member that no comma follows."""
    if tree.root is None or in_comment(tree, offset):
        return None
    place = tree.pointer_at(offset)
    container = place.container
    if place.slot != "gap" or container is None or container.kind != "object":
        return None
    slot = Slot("key", place.path, (offset, offset), _after(tree.text, offset), container)
    return slot if missing_comma(tree, slot) >= 0 else None


_WHOLE = re.compile(r"""(?:["\]}]|(?<![\w.+-])(?:true|false|null|-?\d[\d.eE+-]{0,40}))\Z""")


def missing_comma(tree: JsonTree, slot: Slot) -> int:
    """Where the comma before a key on a line of its own is missing; -1 where none is."""
    at = _last_before(tree, slot.span[0])
    text = tree.text
    if slot.kind != "key" or slot.names_only or at < 0 or text[at] in "{," or "\n" not in text[at : slot.span[0]]:
        return -1
    return at + 1 if _WHOLE.search(text[max(0, at - 50) : at + 1]) else -1


def in_comment(tree: JsonTree, offset: int) -> bool:
    """Whether an offset lies inside a comment; behind the last character of a line comment counts too."""
    at = bisect_left(tree.comments, (offset, 0)) - 1
    if at < 0:
        return False
    start, end = tree.comments[at]
    return start < offset < end or (
        offset == end and (tree.text[start + 1 : start + 2] == "/" or tree.text[end - 2 : end] != "*/")
    )


def _between(tree: JsonTree, offset: int, path: Path, container: JsonNode | None) -> Slot | None:
    if container is None or container.kind != "object" or _before(tree, offset) not in "{,":
        return None
    return Slot("key", path, (offset, offset), _after(tree.text, offset), container)


def _before(tree: JsonTree, offset: int) -> str:
    """The last character before an offset that is neither blank nor in a comment; a blank where there is none."""
    at = _last_before(tree, offset)
    return tree.text[at] if at >= 0 else " "


def _last_before(tree: JsonTree, offset: int) -> int:
    """Where the last character before an offset stands that is neither blank nor in a comment; -1 where there is none."""
    text, comments = tree.text, tree.comments
    at = offset
    floor = max(0, offset - _LOOK)
    comment = bisect_left(comments, (offset, 0)) - 1
    while at > floor:
        if text[at - 1] in _BLANKS:
            at -= 1
        elif comment >= 0 and comments[comment][1] == at:
            at = comments[comment][0]
            comment -= 1
        elif comment >= 0 and comments[comment][0] < at <= comments[comment][1]:
            at = comments[comment][0]
        else:
            return at - 1
    return -1


def _after(text: str, offset: int) -> str:
    """The comma that something written at an offset needs behind it."""
    match = _SKIP.match(text, offset, min(len(text), offset + _LOOK))
    at = match.end() if match is not None else offset
    return "" if text[at : at + 1] in ("", ",", "}", "]", ":") else ","


# Single proposals in JSON: a value as it is written, a first value for a key.


def list_of(value: object) -> list[Any]:
    """A list of a schema; empty where something else stands."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def filter_of(tree: JsonTree, slot: Slot, quoted: str) -> str:
    """What a client compares with what is typed: with the quote where one is typed."""
    start, end = slot.span
    typed = tree.text[start : start + 1] if end > start else '"'
    return quoted if typed == '"' else quoted.strip('"')


def first_value(schema: Schema) -> tuple[str, str]:
    """A first value for a new key: plain, and with tab stops; several choices are one stop that lists them."""
    entries = [cast("Schema", item) for item in list_of(schema.get("defaultSnippets")) if isinstance(item, dict)]
    snippets: list[Any] = [entry["body"] for entry in entries if "body" in entry]
    named = [schema["const"]] if "const" in schema else list_of(schema.get("enum"))
    others = [*([schema["default"]] if "default" in schema else []), *list_of(schema.get("examples"))]
    if len(snippets) == 1 and not named and not others:
        return json.dumps(value_of_body(snippets[0]), ensure_ascii=False), snippet_of_body(snippets[0])
    if len(others) == 1 and isinstance(others[0], bool) and not named and not snippets:
        return json.dumps(others[0]), choice([others[0], not others[0]])
    if len(named) + len(others) + len(snippets) == 1:
        return _guess((named or others)[0])
    kind = _kind(schema)
    if snippets or named or len(others) > 1:
        stop = choice(named) if named and not snippets else '"$1"' if kind == "string" and not snippets else "$1"
        return _plain_of(schema, named, kind), stop
    if kind == "boolean":
        return "false", choice([True, False])
    if kind in ("integer", "number") and isinstance(schema.get("minimum"), (int, float)):
        return _guess(schema["minimum"])
    return _STARTS.get(kind, ("null", "$1"))


def _plain_of(schema: Schema, named: list[Any], kind: str) -> str:
    if "default" in schema:
        return json.dumps(schema["default"], ensure_ascii=False)
    if named:
        return json.dumps(named[0], ensure_ascii=False)
    return _STARTS.get(kind, ("null", ""))[0]


_STARTS = {
    "string": ('""', '"$1"'),
    "object": ("{}", "{$1}"),
    "array": ("[]", "[$1]"),
    "boolean": ("false", "$1"),
    "integer": ("0", "${1:0}"),
    "number": ("0", "${1:0}"),
    "null": ("null", "${1:null}"),
}


def _kind(schema: Schema) -> str:
    kinds: Any = schema.get("type")
    if isinstance(kinds, list):
        return str(next(iter(cast("list[Any]", kinds)), ""))
    if kinds is None:
        return "object" if "properties" in schema else "array" if "items" in schema else ""
    return str(kinds)


def _guess(value: object) -> tuple[str, str]:
    """A value that stands there selected, to be typed over."""
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str):
        return text, '"${1:' + escape_snippet(text[1:-1]) + '}"'
    if type(value) in (dict, list):
        return text, value_snippet(value)
    return text, "${1:" + text + "}"


def value_item(
    tree: JsonTree,
    slot: Slot,
    value: object,
    detail: str = "",
    documentation: str = "",
    *,
    kind: ItemKind = "value",
    label: str = "",
    preselect: bool = False,
) -> Proposal:
    """A value as it is written in JSON."""
    text = json.dumps(value, ensure_ascii=False)
    snippet = value_snippet(value)
    if type(value) in (dict, list) and value:
        text = json.dumps(value, ensure_ascii=False, indent="\t")
        label = label or label_of(value)
    return Proposal(
        label or text,
        kind,
        slot.span,
        text + slot.after,
        snippet + slot.after,
        detail=detail,
        documentation=documentation,
        filter=filter_of(tree, slot, text),
        preselect=preselect,
    )


def label_of(value: object) -> str:
    """A value as a label: on one line, without blanks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def value_snippet(value: object) -> str:
    """A value with a tab stop inside an empty container, else none."""
    if type(value) in (dict, list) and not value:
        return "{$1}" if type(value) is dict else "[$1]"
    indent = "\t" if type(value) in (dict, list) else None
    return escape_snippet(json.dumps(value, ensure_ascii=False, indent=indent))
