"""Completion in ``tamis.toml``: tables, keys and values by place, from the schema of the settings and from the files around."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, cast

from tamis.protocols.plugins import SHIPPED
from tamis.protocols.tomltext import TomlTree, read_toml
from tamis.server.analysis.answers import Proposal
from tamis.server.analysis.completion.proposals import choice, escape_snippet
from tamis.server.analysis.configuration.place import Path, TomlPlace, dotted, place_at, schema_of
from tamis.server.analysis.describe import type_name
from tamis.server.analysis.kinds import kind_of
from tamis.server.analysis.running.mentions import keys_of
from tamis.server.analysis.running.variables import SHARED
from tamis.server.analysis.snapshot import Snapshot
from tamis.server.runtime.settings.classes import short_word
from tamis.server.runtime.settings.schema import example, settings_schema

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")
_FOLDERS = frozenset(("tools.*", "workflows.*", "resources.*"))
MAX_FOLDERS = 100


def propose_in_settings(snapshot: Snapshot, offset: int) -> list[Proposal]:
    """Proposals at an offset, best first."""
    tree = read_toml(snapshot.text)
    place = place_at(tree, offset)
    if place is None:
        return []
    if place.kind == "header":
        return list(_headers(tree, place, offset, "" if place.closed else "]"))
    if place.kind == "value":
        return list(_values(snapshot, tree, place))
    proposals = list(_keys(tree, place))
    if place.margin and "*" not in place.path:
        proposals += _headers(tree, place, offset, None)
    return proposals


# Tables


def _headers(tree: TomlTree, place: TomlPlace, offset: int, after: str | None) -> Iterator[Proposal]:
    """Tables that have no header yet; ``after`` None: the brackets are to be written too."""
    there = {
        dotted(table.names)
        for table in tree.tables[1:]
        if not (table.header[0] <= place.span[0] <= place.span[1] <= table.header[1])
    }
    for table in tree.tables:
        there |= {
            dotted((*table.names, *entry.names[: depth + 1]))
            for entry in table.entries
            if entry.equals >= 0
            for depth in range(len(entry.names))
        }
    for name, schema in _tables(settings_schema(), ""):
        if name in there:
            continue
        begin, end = ("[", "]") if after is None else ("", after)
        text, snippet, label = f"{begin}{name}{end}", "", f"[{name}]"
        if schema.get("additionalProperties") and type_name(schema["additionalProperties"]) == "object":
            # Tables of one's own names: what has a header is one of them.
            text, label = f"{begin}{name}.name{end}", f"[{name}.…]"
            snippet = f"{begin}{name}.${{1:name}}{end}"
        yield Proposal(
            label,
            "namespace",
            place.span,
            text,
            snippet,
            detail="table",
            documentation=str(schema.get("description", "")),
            filter=text if after is None else name,
        )


def _tables(schema: dict[str, Any], prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, part in cast("dict[str, dict[str, Any]]", schema.get("properties", {})).items():
        if part.get("type") == "object":
            yield f"{prefix}{name}", part
            if name != "lint":
                yield from _tables(part, f"{prefix}{name}.")


# Keys


def _is_below(names: Path, path: Path) -> bool:
    return len(names) > len(path) and names[: len(path)] == path


def _keys(tree: TomlTree, place: TomlPlace) -> Iterator[Proposal]:
    schema = schema_of(settings_schema(), place.path)
    if schema is None:
        return
    properties = cast("dict[str, dict[str, Any]]", schema.get("properties", {}))
    # Single settings before tables, which have headers of their own, and slugs before codes.
    order = sorted(properties, key=lambda name: (properties[name].get("type") == "object", name[-1:].isdigit()))
    headers = {table.names[len(place.path)] for table in tree.tables if _is_below(table.names, place.path)}
    for name in order:
        if name in place.there or name in headers or (not place.path and properties[name].get("type") == "object"):
            continue
        path = (*place.path, name)
        part = schema_of(settings_schema(), path) or {}
        text, snippet = name, ""
        if place.bare:
            plain, stop = _first(part, dotted(path))
            text, snippet = f"{name} = {plain}", f"{name} = {stop}"
        yield Proposal(
            name,
            "property",
            place.span,
            text,
            snippet,
            detail=", ".join(word for word in (about(part), short_word(dotted(path))) if word),
            subject=part,
            filter=name,
        )


def about(schema: dict[str, Any]) -> str:
    """A setting's type and default in a few words."""
    kind = type_name(schema)
    if kind == "object":
        return "table"
    default = schema.get("default")
    if default is None or default == "" or default == []:
        return kind
    return f"{kind}, default {toml_text(default)}"


@cache
def _words(values: tuple[Any, ...]) -> tuple[str, str]:
    """The first of some words, and all of them as a choice; the rules of ``[lint]`` share theirs."""
    return toml_text(values[0]), choice(values)


def _first(schema: dict[str, Any], name: str) -> tuple[str, str]:
    """A first value: plain, and with tab stops."""
    kind = type_name(schema)
    default = schema.get("default")
    if "enum" in schema:
        values = [*([default] if default is not None else []), *schema["enum"]]
        return _words(tuple(values))
    if kind == "boolean":
        return toml_text(not default), choice([not default, bool(default)])
    if kind == "object":
        return "{}", "{ $1 }"
    if kind.startswith("array"):
        return "[]", "[$1]"
    if kind == "string":
        return '""', '"$1"'
    shown = toml_text(default) if default is not None else example(name) or "0"
    return shown, f"${{1:{escape_snippet(shown)}}}"


# Values


def _values(snapshot: Snapshot, tree: TomlTree, place: TomlPlace) -> Iterator[Proposal]:
    schema = schema_of(settings_schema(), place.path)
    if schema is None:
        return
    typed = tree.text[place.span[0] : place.span[0] + 1] if place.value is not None else ""
    quote = typed if typed in ('"', "'") and typed else '"'
    seen: set[str] = set()
    for value, detail in _choices(snapshot, schema, place):
        text = toml_text(value)
        if text in seen or (isinstance(value, str) and value in place.there):
            continue
        seen.add(text)
        if isinstance(value, str) and quote == "'" and "'" not in value:
            text = f"'{value}'"
        yield Proposal(
            text,
            "folder" if dotted(place.path) in _FOLDERS else "value",
            place.span,
            text,
            detail=detail,
            filter=text if typed else text.strip("\"'"),
            preselect=value == schema.get("default"),
        )
    kind = type_name(schema)
    if place.value is None and not seen:
        opened = {"object": ("{}", "{ $1 }"), "string": ('""', '"$1"')}.get(kind)
        if opened is None and kind.startswith("array"):
            opened = ("[]", "[$1]")
        if opened is not None:
            yield Proposal(opened[0], "value", place.span, opened[0], opened[1], detail=kind)


def _choices(snapshot: Snapshot, schema: dict[str, Any], place: TomlPlace) -> Iterator[tuple[Any, str]]:
    name = dotted(place.path)
    default = schema.get("default")
    for value in cast("list[Any]", schema.get("enum", ())):
        yield value, "default" if value == default else ""
    if schema.get("type") == "boolean":
        yield from ((value, "default" if value == default else "") for value in (True, False))
    if name in ("protocol.default", "protocol.also.*"):
        yield from ((value, "protocol") for value in dict.fromkeys((*SHIPPED, *snapshot.settings.also)))
    elif name == "environment":
        config = snapshot.settings.config
        named = {key.path[0]: None for key in keys_of(read_toml(snapshot.text))}
        named |= dict.fromkeys(config.environments if config is not None else ())
        yield from ((name, "environment") for name in named if name != SHARED)
    elif name == "profile":
        yield from ((path, "agent profile") for path in _profiles(snapshot))
    elif name in _FOLDERS:
        yield from ((path, "folder") for path in _folders(snapshot, name == "workflows.*"))
    elif name == "policy.allowHosts.*":
        yield from _hosts(snapshot)
        yield "*", "any public host"
    elif schema.get("type") == "integer":
        if default is not None:
            yield default, "default"
        shown = example(name)
        if shown.isdigit():
            yield int(shown), "example"


def _hosts(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """What registered tools ask for."""
    asked: dict[str, list[str]] = {}
    for tool in snapshot.registry.tools if snapshot.registry is not None else ():
        for host in tool.manifest.security_context.network.allow_hosts:
            if tool.tool_id not in asked.setdefault(host, []):
                asked[host].append(tool.tool_id)
    for host, tools in sorted(asked.items()):
        yield host, f"asked for by {tools[0]}" + (f" and {len(tools) - 1} more" if len(tools) > 1 else "")


def _profiles(snapshot: Snapshot) -> Iterator[str]:
    yield from _below(snapshot, (path for path in _files(snapshot) if kind_of(path, "") == "profile"))


def _folders(snapshot: Snapshot, workflows: bool) -> Iterator[str]:
    index = snapshot.index
    declared = index.tools() if index is not None else ()
    folders = {posixpath.dirname(tool.path) for tool in declared if (tool.declared.kind == "workflow") is workflows}
    yield from list(_below(snapshot, folders))[:MAX_FOLDERS]


def _files(snapshot: Snapshot) -> Iterable[str]:
    return snapshot.index.files() if snapshot.index is not None else ()


def _below(snapshot: Snapshot, paths: Iterable[str]) -> Iterator[str]:
    """Paths relative to the settings' folder, of those that lie in it."""
    root = posixpath.dirname(snapshot.path)
    for path in sorted(paths):
        if path == root or path.startswith(f"{root}/"):
            yield posixpath.relpath(path, root)


def toml_text(value: object) -> str:
    """A plain value as TOML."""
    if isinstance(value, dict):
        items = ", ".join(f"{key} = {toml_text(item)}" for key, item in cast("dict[str, Any]", value).items())
        return f"{{ {items} }}" if items else "{}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml_text(item) for item in cast("list[Any]", value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def path_of_key(place: TomlPlace) -> Path:
    """The setting that a key's place names."""
    if place.entry is None:
        return place.path
    for name, span in zip(place.entry.names, place.entry.spans, strict=True):
        if span == place.span:
            return (*place.path, name)
    return place.path
