"""Single proposals in JSON: a value as it is written, a first value for a key. Must not know which of them belong where."""

from __future__ import annotations

import json
from typing import Any, cast

from tamis.protocols.jsontext.tree import JsonTree
from tamis.server.analysis.answers import ItemKind, Proposal
from tamis.server.analysis.completion.json_slot import Slot
from tamis.server.analysis.completion.schema_place import Schema
from tamis.server.analysis.completion.snippets import choice, escape_snippet, snippet_of_body, value_of_body


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
    entries = [cast("Schema", one) for one in list_of(schema.get("defaultSnippets")) if isinstance(one, dict)]
    snippets: list[Any] = [one["body"] for one in entries if "body" in one]
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
