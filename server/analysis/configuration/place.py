"""What a place of a ``tamis.toml`` is for: the name of a table, a key of which table, the value of which setting.

Works in half-typed text. Must not know what there is to set: ``schema_of`` walks a schema that it is given.
"""

from __future__ import annotations

import re
from typing import Any, Literal, cast

import msgspec

from tamis.protocols.positions import Span
from tamis.protocols.tomltext import TomlEntry, TomlTree, TomlValue

Path = tuple[str, ...]


class TomlPlace(msgspec.Struct, frozen=True):
    """``path`` leads to the table that a key stands in, or to the setting of a value (``*`` for an item of a list); of a header it is
    empty. ``span`` is what would be replaced; ``there`` are the names that the table has already.

    ``bare``: behind the key stands no ``=`` yet. ``margin``: a key at the beginning of a line, where a header could stand too. ``entry``
    and ``value`` are what stands there, if anything does.
    """

    kind: Literal["header", "key", "value"]
    path: Path
    span: Span
    there: frozenset[str] = frozenset()
    bare: bool = True
    margin: bool = False
    closed: bool = True
    entry: TomlEntry | None = None
    value: TomlValue | None = None


def place_at(tree: TomlTree, offset: int) -> TomlPlace | None:
    """The place of an offset; None in comments and where nothing belongs."""
    if any(start < offset <= end for start, end in tree.comments):
        return None
    table = tree.tables[0]
    for toml_table in tree.tables[1:]:
        start, end = toml_table.header
        width = 2 if toml_table.array else 1
        if start < offset <= (end - width if toml_table.closed else end) and offset >= start + width:
            inner = (start + width, end - width if toml_table.closed else end)
            return TomlPlace("header", (), inner, closed=toml_table.closed)
        if start >= offset:
            break
        table = toml_table
    if table.header[0] < offset <= table.header[1] and tree.tables[0] is not table:
        return None
    return _in_entries(tree, table.entries, table.names, offset) or _new_key(tree, table.entries, table.names, offset)


def _in_entries(tree: TomlTree, entries: list[TomlEntry], path: Path, offset: int) -> TomlPlace | None:
    for entry in entries:
        start, end = entry.span
        if offset < start:
            break
        if offset <= entry.spans[-1][1]:
            return _key(tree, entries, entry, path, offset)
        if entry.equals < 0:
            continue
        if offset <= entry.equals:
            return None
        if offset <= end or (entry.value is None and _same_line(tree.text, end, offset)):
            return _value(tree, entry, entry.value, (*path, *entry.names), offset)
    return None


def _same_line(text: str, start: int, offset: int) -> bool:
    return not text[start:offset].strip(" \t")


def _key(tree: TomlTree, entries: list[TomlEntry], entry: TomlEntry, path: Path, offset: int) -> TomlPlace | None:
    for index, span in enumerate(entry.spans):
        if span[0] <= offset <= span[1]:
            above = entry.names[:index]
            there = _names(entries, above, but=entry)
            first = index == 0 and len(entry.names) == 1
            return TomlPlace(
                "key",
                (*path, *above),
                span,
                there,
                bare=entry.equals < 0 and index == len(entry.names) - 1,
                margin=first and entry.equals < 0 and _begins_line(tree.text, span[0]),
                entry=entry,
            )
    return None


def _names(entries: list[TomlEntry], above: Path = (), but: TomlEntry | None = None) -> frozenset[str]:
    depth = len(above)
    return frozenset(
        entry.names[depth]
        for entry in entries
        if entry is not but and len(entry.names) > depth and entry.names[:depth] == above
    )


def _begins_line(text: str, at: int) -> bool:
    return not text[text.rfind("\n", 0, at) + 1 : at].strip(" \t\ufeff")


def _new_key(tree: TomlTree, entries: list[TomlEntry], path: Path, offset: int) -> TomlPlace | None:
    """A key that is not begun yet: at the beginning of a line."""
    if not _begins_line(tree.text, offset):
        return None
    return TomlPlace("key", path, (offset, offset), _names(entries), margin=True)


def _value(tree: TomlTree, entry: TomlEntry, value: TomlValue | None, path: Path, offset: int) -> TomlPlace | None:
    if value is None:
        return TomlPlace("value", path, (offset, offset), entry=entry)
    start, end = value.span
    if value.kind == "array" and start < offset and (offset < end or not value.closed):
        for item in value.items:
            if item.span[0] <= offset <= item.span[1]:
                return _value(tree, entry, item, (*path, "*"), offset)
        there = frozenset(item.value for item in value.items if isinstance(item.value, str))
        return TomlPlace("value", (*path, "*"), (offset, offset), there, entry=entry)
    if value.kind == "table" and start < offset and (offset < end or not value.closed):
        toml_place = _in_entries(tree, value.entries, path, offset)
        if toml_place is not None:
            return toml_place
        before = tree.text[start:offset].rstrip(" \t")[-1:]
        if before not in ("{", ","):
            return None
        return TomlPlace("key", path, (offset, offset), _names(value.entries))
    if start <= offset <= end:
        return TomlPlace("value", path, (start, end), entry=entry, value=value)
    return None


def schema_of(schema: dict[str, Any], path: Path) -> dict[str, Any] | None:
    """The part of a schema that a path leads to; None where it leads nowhere."""
    here: Any = schema
    root = schema
    for name in path:
        if name == "*" and "items" in here:
            here = here["items"]
            continue
        properties: Any = here.get("properties")
        more: Any = here.get("additionalProperties")
        if isinstance(properties, dict) and name in properties:
            here = cast("dict[str, Any]", properties)[name]
        elif isinstance(more, dict):
            here = cast("dict[str, Any]", more)
        elif (part := _by_pattern(here, name)) is not None:
            here = part
        else:
            return None
    merged = {name: value for name, value in here.items() if name != "allOf"} if "allOf" in here else here
    for part in here.get("allOf", ()):
        target: Any = root
        for step in str(part["$ref"]).removeprefix("#/").split("/"):
            target = target[step]
        merged = {**target, **merged}
    return merged


def _by_pattern(schema: dict[str, Any], name: str) -> dict[str, Any] | None:
    patterns = cast("dict[str, dict[str, Any]]", schema.get("patternProperties", {}))
    return next((part for pattern, part in patterns.items() if re.search(pattern, name)), None)


def dotted(path: Path) -> str:
    """A path as the page of settings writes it."""
    return ".".join(path)
