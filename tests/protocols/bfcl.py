"""The BFCL corpus as calls with schemas: every answer that the field's own function-calling benchmark accepts.

``answers(folder)`` gives each possible answer's alternatives at least once; BFCL's Python types become JSON Schema's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from tamis.protocols.base import PlainCall
from tamis.protocols.model import Json, ToolHint

_TYPES = {"dict": "object", "float": "number", "tuple": "array"}
FILES = ("simple_python", "multiple", "parallel", "live_simple")


class Answer(msgspec.Struct, frozen=True):
    """The calls of one answer and the tools they are made to."""

    name: str
    calls: tuple[PlainCall, ...]
    tools: dict[str, ToolHint]


def answers(folder: Path) -> Iterator[Answer]:
    """Every possible answer, with every alternative of each parameter in one of them."""
    for file in FILES:
        questions = _rows(folder / f"BFCL_v4_{file}.json")
        truths = {row["id"]: row for row in _rows(folder / "possible_answer" / f"BFCL_v4_{file}.json")}
        for question in questions:
            truth = truths.get(question["id"])
            if truth is None:
                continue
            tools = {f["name"]: ToolHint(f["name"], _schema(f["parameters"])) for f in question["function"]}
            for n, calls in enumerate(_variants(truth["ground_truth"], tools)):
                yield Answer(f"{question['id']}#{n}", tuple(calls), tools)


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def _schema(given: Any) -> Any:
    """BFCL's schema with JSON Schema's types, at every depth; its own words that JSON Schema does not know are dropped."""
    if isinstance(given, list):
        return [_schema(one) for one in given]
    if not isinstance(given, dict):
        return given
    made: dict[str, Any] = {}
    for key, value in given.items():
        if key == "properties" and isinstance(value, dict):
            made[key] = {name: _schema(part) for name, part in value.items()}
        elif key == "type" and isinstance(value, str):
            if value != "any":
                made[key] = _TYPES.get(value.lower(), value.lower())
        elif key in ("items", "additionalProperties", "anyOf", "oneOf", "allOf"):
            made[key] = _schema(value)
        elif key in ("enum", "required", "description", "format", "minItems", "maxItems", "minimum", "maximum"):
            made[key] = value
    return made


def _variants(truth: list[dict[str, Any]], tools: dict[str, ToolHint]) -> Iterator[list[PlainCall]]:
    n, most = 0, 1
    while n < most:
        calls: list[PlainCall] = []
        for call in truth:
            for name, params in call.items():
                schema = tools[name].parameters if name in tools else {}
                args, count = _members(params, schema, n)
                most = max(most, count)
                calls.append(PlainCall(name, args))
        yield calls
        n += 1


def _members(alternatives: dict[str, Any], schema: Any, n: int) -> tuple[dict[str, Json], int]:
    """One choice for every member, and how many there are; ``""`` means that a member may be left out."""
    properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
    made: dict[str, Json] = {}
    most = 1
    for name, values in alternatives.items():
        part = properties.get(name, {})
        if not isinstance(values, list):
            values = [values]
        most = max(most, len(values))
        value = values[n % len(values)] if values else ""
        if value == "":
            continue
        made[name], count = _value(value, part, n)
        most = max(most, count)
    return made, most


def _value(value: Any, schema: Any, n: int) -> tuple[Json, int]:
    """A value; members of objects are lists of alternatives again, as BFCL's own checker reads them."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    if isinstance(value, dict):
        if all(isinstance(one, list) for one in value.values()) and value:
            return _members(value, schema, n)
        return value, 1
    items = schema.get("items", {}) if isinstance(schema, dict) else {}
    if isinstance(value, list) and kind == "array" and any(isinstance(one, dict) for one in value):
        pairs = [_value(one, items, n) for one in value]
        return [one for one, _ in pairs], max(count for _, count in pairs)
    return value, 1
