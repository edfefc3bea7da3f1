"""JSON Schemas (2020-12) of everything on the wire, made from the Structs.

What a host writes keeps its defaults; what it reads has every field that is always written as required. Texts below a field are
its description, which only the source has: it is read once. Must not know how the schemas are shown.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import sys
from collections.abc import Iterable
from typing import Any, cast

import msgspec

from tamis.protocols.messages import NOTIFICATIONS, REQUESTS, Sent
from tamis.server.rpc.described.methods import Described
from tamis.server.rpc.described.plain import plain
from tamis.server.rpc.described.words import READ, WRITTEN

Schema = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
PREFIX = "#/$defs/"


class Schemas(msgspec.Struct, frozen=True):
    """The schemas of all parts, and what each message refers to."""

    parts: dict[str, Schema]
    """By name, in the order of names."""
    params: dict[str, Schema]
    """By method, notification or request of the daemon; without those that take none."""
    results: dict[str, Schema]
    """By method or request of the daemon."""


def schemas(methods: Iterable[Described]) -> Schemas:
    """The schemas of the methods and of what the daemon sends by itself."""
    listed = [*methods]
    sent: dict[str, Sent] = {**NOTIFICATIONS, **REQUESTS}
    # What a host writes: the params of methods, and its own replies. What it reads: everything else.
    written = [(one.name, f"{one.title}Params", one.params) for one in listed if one.params.__struct_fields__]
    replies = [(name, "", one.result) for name, one in REQUESTS.items() if one.result is not None]
    told = [(name, "", one.params) for name, one in sent.items()]
    read = [(one.name, "", kind) for one in listed for kind in one.results]
    kinds = [*written, *replies, *told, *read]
    classes = _classes(kind for _, _, kind in kinds)
    wanted = [*(kind for _, _, kind in kinds), *classes]
    made, parts = msgspec.json.schema_components(wanted, ref_template=PREFIX + "{name}")
    found: list[Schema] = [*made]
    by_class = {_name(schema): kind for schema, kind in zip(found[len(kinds) :], classes, strict=True)}
    ours, theirs = found[: len(written) + len(replies)], found[len(written) + len(replies) : len(kinds)]
    inputs = _reachable(ours, parts)
    params = {_name(schema) for schema in ours[: len(written)]}
    for name, part in parts.items():
        _describe(part, by_class[name], {**READ, **WRITTEN} if name in params else READ)
    for name in _reachable(theirs, parts) - inputs:
        _require(parts[name], by_class[name])
    out = Schemas({}, {}, {})
    for (method, title, _), schema in zip(written, ours, strict=False):
        # The params of each method have their own name, also where two methods share a Struct.
        out.parts[title] = copy.deepcopy(parts[_name(schema)])
        out.params[method] = {"$ref": PREFIX + title}
    out.results.update({name: schema for (name, _, _), schema in zip(replies, ours[len(written) :], strict=True)})
    out.params.update({name: schema for (name, _, _), schema in zip(told, theirs, strict=False)})
    for (name, _, _), schema in zip(read, theirs[len(told) :], strict=True):
        # A method whose request decides what it gives has several results.
        first = out.results.get(name)
        out.results[name] = schema if first is None else {"anyOf": [*first.get("anyOf", [first]), schema]}
    roots = [*out.parts.values(), *out.params.values(), *out.results.values()]
    for name in _reachable(roots, parts) - out.parts.keys():
        if name != by_class[name].__name__:
            # One name, one shape: hosts know parts by their names alone.
            raise TypeError(f"two Structs on the wire have the same name: rename {by_class[name]}")
        out.parts[name] = parts[name]
    ordered = dict(sorted(out.parts.items()))
    for name, part in ordered.items():
        part["title"] = name
    return Schemas(ordered, out.params, out.results)


def refer(schema: Any, prefix: str) -> Any:
    """The schema with its references below ``prefix`` instead of ``$defs``."""
    if isinstance(schema, dict):
        given = cast("Schema", schema)
        return {
            key: prefix + value.removeprefix(PREFIX) if key == "$ref" else refer(value, prefix)
            for key, value in given.items()
        }
    return [refer(item, prefix) for item in cast("list[Any]", schema)] if isinstance(schema, list) else schema


def document(methods: Iterable[Described]) -> Schema:
    """``schemas/contract.json``: every part under ``$defs``, and under ``x-messages`` which parts a message has."""
    made = schemas(methods)
    names = [*dict.fromkeys([*made.params, *made.results])]
    return {
        "$schema": DIALECT,
        "$id": "tamis:contract/v1.json",
        "title": "What goes over the wire between Tamis and a host",
        "$defs": made.parts,
        "x-messages": {
            name: {
                key: found[name] for key, found in (("params", made.params), ("result", made.results)) if name in found
            }
            for name in sorted(names)
        },
    }


def _name(schema: Schema) -> str:
    return str(schema["$ref"]).removeprefix(PREFIX)


def _classes(kinds: Iterable[Any]) -> list[type[msgspec.Struct]]:
    seen: set[type[msgspec.Struct]] = set()
    for info in msgspec.inspect.multi_type_info([*kinds]):
        _collect(info, seen)
    return sorted(seen, key=lambda kind: (kind.__module__, kind.__qualname__))


def _collect(info: Any, seen: set[type[msgspec.Struct]]) -> None:
    if isinstance(info, msgspec.inspect.StructType):
        if info.cls not in seen:
            seen.add(info.cls)
            for field in info.fields:
                _collect(field.type, seen)
        return
    for name in ("type", "item_type", "item_types", "key_type", "value_type", "types"):
        below = getattr(info, name, ())
        for one in cast("Iterable[Any]", below) if isinstance(below, tuple) else (below,):
            _collect(one, seen)


def _describe(part: Schema, kind: type[msgspec.Struct], shared: dict[str, str]) -> None:
    if "description" in part:
        part["description"] = plain(str(part["description"]))
    texts = _field_texts(kind)
    for field in msgspec.structs.fields(kind):
        schema = part["properties"][field.encode_name]
        text = texts.get(field.name) or shared.get(field.encode_name, "")
        if text and "description" not in schema:
            schema["description"] = plain(text)


def _require(part: Schema, kind: type[msgspec.Struct]) -> None:
    # Everything but what may be left out (UNSET) is always written.
    optional = {field.encode_name for field in msgspec.structs.fields(kind) if field.default is msgspec.UNSET}
    part["required"] = [name for name in part["properties"] if name not in optional]
    for schema in part["properties"].values():
        schema.pop("default", None)


def _reachable(roots: Iterable[Any], parts: dict[str, Schema]) -> set[str]:
    found: set[str] = set()
    left: list[Any] = [*roots]
    while left:
        one = left.pop()
        if isinstance(one, list):
            left += cast("list[Any]", one)
        elif isinstance(one, dict):
            given = cast("Schema", one)
            name = str(given.get("$ref", "")).removeprefix(PREFIX)
            if name in parts and name not in found:
                found.add(name)
                left.append(parts[name])
            left += given.values()
    return found


def _field_texts(kind: type[msgspec.Struct]) -> dict[str, str]:
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        found |= _texts_of(base.__module__).get(base.__name__, {}) if base.__module__.startswith("tamis.") else {}
    return found


@functools.cache
def _texts_of(module: str) -> dict[str, dict[str, str]]:
    """Class → field → the text below it."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except OSError:  # installed without its source: the description has fewer words
        return {}
    return {
        node.name: {
            before.target.id: node_text
            for before, after in zip(node.body, node.body[1:], strict=False)
            if isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name)
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if isinstance(node_text := after.value.value, str)
        }
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
