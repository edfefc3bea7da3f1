"""Manifests of a given size for the language servers, and the keystrokes that are typed into them."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

Bulk = Literal["properties", "examples", "nested", "string"]
_WORDS = {
    False: ("Parameter number {i} of the tool, which says what it is for.", "An example, number {i}."),
    True: ("第{i}个参数：说明它的用途，写得清楚一些。🚀", "第{i}个例子 🎉，说明怎样调用。"),
}
_TYPES = ("string", "integer", "number", "boolean")
_VALUES: dict[str, object] = {"string": "x", "integer": 1, "number": 1.5, "boolean": True}


def manifest(size: int, bulk: Bulk, *, cjk: bool, pretty: bool) -> str:
    """A sound manifest of about ``size`` bytes."""
    said, shown = _WORDS[cjk]
    properties: dict[str, Any] = {}
    examples: list[Any] = []
    whole: dict[str, Any] = {
        "toolId": "bench:large",
        "displayName": "Large",
        "description": "A large manifest to measure an editor with: " + said.format(i=0),
        "version": "1.0.0",
        "handler": {"type": "external-script", "scriptPath": "tool.py", "language": "python"},
        "parameters": {"type": "object", "properties": properties},
        "examples": examples,
    }
    groups: dict[str, Any] = {}
    if bulk == "nested":
        whole["output"] = {"type": "object", "properties": groups}
    for i in range(12):
        properties[f"first_{i}"] = _property(said, i)
    room = size
    examples.append({"description": shown.format(i=0), "input": {"first_0": "x", "first_1": 1, "first_2": 1.5}})
    i = 0
    if bulk == "string":
        whole["description"] += said.format(i=1) * (size // len(said.encode()))
    while bulk != "string" and room > 0:
        if bulk == "properties":
            properties[f"param_{i}"] = made = _property(said, i)
        elif bulk == "nested":
            inner = {f"part_{i}_{k}": _property(said, k) for k in range(8)}
            groups[f"group_{i}"] = made = {
                "type": "object",
                "properties": {"deep": {"type": "object", "properties": inner}},
            }
        else:
            name = f"first_{i % 12}"
            value = _VALUES[properties[name]["type"]]
            made = {"description": shown.format(i=i), "input": {name: value, "first_0": "x", "first_2": 1.5 + i}}
            examples.append(made)
        room -= len((json.dumps(made, indent=2 if pretty else None, ensure_ascii=False)).encode()) + (
            50 if pretty else 18
        )
        if bulk == "properties" and i % 10 == 0:
            value = _VALUES[properties[f"param_{i}"]["type"]]
            examples.append(one := {"description": shown.format(i=i), "input": {f"param_{i}": value}})
            room -= len(json.dumps(one, indent=2 if pretty else None, ensure_ascii=False).encode()) + (
                60 if pretty else 2
            )
        i += 1
    if pretty:
        return json.dumps(whole, indent=2, ensure_ascii=False)
    return json.dumps(whole, separators=(",", ":"), ensure_ascii=False)


def _property(said: str, i: int) -> dict[str, Any]:
    kind = _TYPES[i % 4]
    made: dict[str, Any] = {"type": kind, "description": said.format(i=i)}
    if kind in ("integer", "number"):
        made["minimum"] = 0
    return made


_PLACES = {
    "description": r'"description": ?"()',
    "type word": r'"type": ?"stri()ng"',
    "key": r'"(?:param|first|part|group)_\d+(?:_\d+)?()": ?',
    "number": r'"minimum": ?0()|: ?1()\.5|: ?1()[,}\n]',
}
_TYPED = {"description": "x", "type word": "n", "key": "7", "number": "5"}


def keystrokes(text: str, kind: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """At the start, in the middle and at the end: a character typed, and taken away again, as LSP content changes."""
    found = [match.end(match.lastindex or 1) for match in re.finditer(_PLACES[kind], text)]
    chosen = (found[0], found[len(found) // 2], found[-1])
    return [_pair(text, at, _TYPED[kind]) for at in dict.fromkeys(chosen)]


def _pair(text: str, at: int, typed: str) -> tuple[dict[str, Any], dict[str, Any]]:
    start = position(text, at)
    end = {"line": start["line"], "character": start["character"] + len(typed)}
    return (
        {"range": {"start": start, "end": start}, "text": typed},
        {"range": {"start": start, "end": end}, "text": ""},
    )


def position(text: str, at: int) -> dict[str, int]:
    """The place of a code point, in UTF-16 units."""
    start = text.rfind("\n", 0, at) + 1
    return {"line": text.count("\n", 0, at), "character": len(text[start:at].encode("utf-16-le")) // 2}
