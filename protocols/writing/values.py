"""JSON values on their way into a text: what can be written at all, JSON text, equality.

Must not know protocols or schemas.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Literal, TypeGuard

from tamis.protocols.model import MAX_DEPTH, Json, ToolHint, escape_pointer

if TYPE_CHECKING:
    from tamis.protocols.schema.coerce import Node, Reading
    from tamis.protocols.schema.valid import Check

MAX_DIGITS = 4_000
"""Digits of a number up to which the coercion of arguments reads it."""
_SURROGATE = re.compile("[\ud800-\udfff]")
# JSON leaves these as they are; no protocol's text carries them well.
_UNSAFE = re.compile("[\x7f\ufeff\ufffe\uffff]")
# A letter, a colon and an escape look like a drive with a path (F20); the long form of the escape cannot be misread.
_DRIVE = re.compile(r'"[A-Za-z]:\\[bfnrt]')
_LONG = {"b": "\\u0008", "f": "\\u000c", "n": "\\u000a", "r": "\\u000d", "t": "\\u0009"}


def is_object(value: object) -> TypeGuard[dict[str, Json]]:
    """Whether a value is a JSON object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Json]]:
    """Whether a value is a JSON array."""
    return isinstance(value, list)


def fault_of(value: Json) -> tuple[str, str] | None:
    """Why a value can be written in no protocol: the JSON Pointer of the place and a sentence; None for a sound one."""
    stack: list[tuple[str, Json, int]] = [("", value, 0)]
    while stack:
        here, part, depth = stack.pop()
        if isinstance(part, str):
            if (match := _SURROGATE.search(part)) is not None:
                return here, f"U+{ord(match.group()):04X} is half of a surrogate pair and no character"
        elif isinstance(part, float):
            if part != part or part in (float("inf"), float("-inf")):
                return here, "JSON has no NaN and no infinity"
        elif isinstance(part, int):
            # Four thousand digits are about 13,288 bits; asking for the digits of more is what Python refuses.
            if part.bit_length() > 13_280 and (part.bit_length() > 13_300 or len(str(abs(part))) >= MAX_DIGITS):
                return here, f"it has more than {MAX_DIGITS} digits"
        elif (is_list(part) or is_object(part)) and depth >= MAX_DEPTH:
            return here, f"it is nested deeper than {MAX_DEPTH} levels"
        elif is_list(part):
            stack.extend((f"{here}/{i}", item, depth + 1) for i, item in enumerate(part))
        elif is_object(part):
            if any(_SURROGATE.search(name) is not None for name in part):
                return here, "a name in it holds half of a surrogate pair, which is no character"
            stack.extend((f"{here}/{escape_pointer(name)}", item, depth + 1) for name, item in part.items())
    return None


def json_text(value: Json, avoid: str = "") -> str:
    """JSON text of a sound value (``fault_of``); characters of ``avoid`` are written as escapes, inside strings only."""
    text = json.dumps(value, ensure_ascii=False)
    if "\\" in text and ":\\" in text:
        text = _DRIVE.sub(lambda match: match.group()[:-2] + _LONG[match.group()[-1]], text)
    text = _UNSAFE.sub(_escape, text)
    for char in avoid:
        # Delimiters of a protocol are no JSON syntax, so they can only stand inside a string.
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"


def as_text(value: Json) -> str:
    """A string as it is, anything else as JSON text."""
    return value if isinstance(value, str) else json_text(value)


def same(a: Json, b: Json) -> bool:
    """Equality of JSON values: ``1`` and ``1.0`` are one number, ``True`` is none; bounded by the depth of sound values."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b
    if is_list(a) and is_list(b):
        return len(a) == len(b) and all(map(same, a, b))
    if is_object(a) and is_object(b):
        return a.keys() == b.keys() and all(same(part, b[name]) for name, part in a.items())
    return type(a) is type(b) and a == b


def texts_only(value: Json) -> bool:
    """Whether nothing but strings, lists and objects is in a value, as a text without a schema gives it (ruling 2)."""
    stack: list[Json] = [value]
    while stack:
        part = stack.pop()
        if is_list(part):
            stack.extend(part)
        elif is_object(part):
            stack.extend(part.values())
        elif not isinstance(part, str):
            return False
    return True


def excerpt(value: Json) -> str:
    """A value for a message, on one line and short."""
    text = json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else f"'{value}'"
    return text if len(text) <= 60 else text[:59] + "…"


# What a written value will be read as: the tool's schema, asked beforehand.


Verdict = Literal["exact", "text", "no"]
"""How a value comes back. ``exact``: equal, after coercion where a schema is known. ``text``: as the JSON text of the value,
because no schema says otherwise. ``no``: as something else."""


class Expectation:
    """The schema of one tool as the reader of its calls will apply it; without a schema, values stay as they are written."""

    def __init__(self, tool: ToolHint | None, reading: Reading) -> None:
        self._reading: Reading = reading
        self._schema: Json = None
        self._nodes: Node | None = None
        self._fits: dict[str, Check | None] = {}
        if tool is None or not tool.parameters:
            return
        # Reading, which only asks how JSON is written, does without.
        from tamis.protocols.schema.check import check_schema
        from tamis.protocols.schema.plan import compile_nodes
        from tamis.protocols.schema.valid import compile_parts

        if any(issue.severity == "error" for issue in check_schema(tool.parameters)):
            return
        self._schema = tool.parameters
        self._nodes = compile_nodes(self._schema, compile_parts(self._schema))

    def read(self, name: str, raw: Json) -> tuple[Json, bool]:
        """What the schema makes of a raw argument, and whether it has nothing to say about it."""
        if self._nodes is None:
            return raw, True
        from tamis.protocols.schema.coerce import Run

        run = Run(self._reading)
        coerced = self._nodes.coerce({name: raw}, None, run)
        return (coerced[name] if is_object(coerced) else raw), not run.errors and not run.warnings

    def verdict(self, name: str, raw: Json, wanted: Json) -> Verdict:
        """How ``wanted`` comes back when ``raw`` is read."""
        coerced, _ = self.read(name, raw)
        if same(coerced, wanted):
            return "exact"
        if self._nodes is not None and self.fits(name, wanted):
            return "no"
        if same(raw, wanted):
            # The value as it was written somewhere else: no schema has read it yet, or none can.
            return "exact"
        if isinstance(raw, str) and not isinstance(wanted, str):
            from tamis.protocols.schema.coerce_text import read_json_text

            value, notes = read_json_text(raw)
            return "text" if not notes and same(value, wanted) else "no"
        return "no"

    def clean(self, name: str, raw: Json, wanted: Json) -> bool:
        """Whether ``raw`` is read as ``wanted`` without a word."""
        coerced, silent = self.read(name, raw)
        return silent and same(coerced, wanted)

    def fits(self, name: str, value: Json) -> bool:
        """Whether a typed value is one that the parameter's own schema allows; False where it has none."""
        if name not in self._fits:
            self._fits[name] = self._check(name)
        check = self._fits[name]
        return check is not None and check(value)

    def _check(self, name: str) -> Check | None:
        properties = self._schema.get("properties") if is_object(self._schema) else None
        part = properties.get(name) if is_object(properties) else None
        if not is_object(part) or not part:
            return None
        from tamis.protocols.schema.valid import compile_valid_at

        compiled = compile_valid_at(self._schema, part)
        # Outside the compiled keywords the coercion's own types decide: a value of another type does not fit.
        return compiled if compiled is not None else lambda _: True


class Expectations:
    """One ``Expectation`` per tool of a call list, made when it is first asked for."""

    def __init__(self, tools: dict[str, ToolHint], reading: Reading) -> None:
        self._tools = tools
        self._reading: Reading = reading
        self._made: dict[str, Expectation] = {}

    def of(self, tool_id: str) -> Expectation:
        """The expectation for a tool's calls."""
        expectation = self._made.get(tool_id)
        if expectation is None:
            expectation = self._made[tool_id] = Expectation(self._tools.get(tool_id), self._reading)
        return expectation
