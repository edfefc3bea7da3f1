"""Slots: which types go into which, what a value is, and the slots of a tool by its schemas (seed 004 §2.3, ruling 36)."""

from __future__ import annotations

import msgspec

from tamis.protocols.model import Json
from tamis.protocols.schema.words import is_list, is_object
from tamis.protocols.workflow.model import ANY, Slot

_OF_SCHEMA = {
    "string": "STRING",
    "integer": "INTEGER",
    "number": "FLOAT",
    "boolean": "BOOLEAN",
    "object": "OBJECT",
    "array": "ARRAY",
}
WHOLE = "output"
"""The slot that gives all that a tool gave."""
SLOTS_WORD = "x-slots"
"""In a tool's ``output`` schema: the names and types of the slots of a workflow or node, whose bare result has no names."""


class Slots(msgspec.Struct, frozen=True):
    """The slots of one type of node. ``open_inputs``: any other input is taken too; ``open_outputs``: any other may be asked for."""

    inputs: dict[str, Slot] = {}
    outputs: dict[str, Slot] = {}
    open_inputs: bool = False
    open_outputs: bool = False
    bare: bool = False
    """The only named output is what the whole result is."""


def fits(value: Json, kind: str) -> bool:
    """Whether a value is of a slot's type."""
    if kind == "STRING":
        return isinstance(value, str)
    if kind == "BOOLEAN":
        return isinstance(value, bool)
    if kind in ("INTEGER", "FLOAT"):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and (kind == "FLOAT" or not isinstance(value, float) or value.is_integer())
    if kind == "OBJECT":
        return is_object(value)
    return is_list(value) if kind == "ARRAY" else True


def connects(source: str, target: str) -> bool:
    """Whether what comes out of a slot can go into another: the same type, an integer where a number is wanted, a single value where
    a text is wanted, anything where anything is taken. What holds anything may go anywhere: its value is judged when it is there."""
    if source == target or source in ANY or target in ANY:
        return True
    return (source, target) == ("INTEGER", "FLOAT") or (
        target == "STRING" and source in ("INTEGER", "FLOAT", "BOOLEAN")
    )


def converted(value: Json, kind: str) -> Json:
    """A value as the slot that it goes into wants it: a number or a boolean as text, in JSON's spelling."""
    if kind == "STRING" and isinstance(value, int | float):
        return msgspec.json.encode(value).decode() if abs(value) < 1 << 63 else str(value)
    return value


def held(value: Json, kind: str) -> tuple[Json, bool]:
    """A value as an output of the interface gives it, and whether it is another than was given. Null is no value, of any type.

    Raises ``ValueError`` for a value of another type: a text is never taken for a number.
    """
    if value is None or (kind != "INTEGER" and fits(value, kind)):
        return value, False
    if kind == "INTEGER" and fits(value, kind):
        return (int(value), True) if isinstance(value, float) else (value, False)
    if kind == "STRING" and isinstance(value, bool | int | float):
        return converted(value, kind), True
    raise ValueError(f"no {kind}")


def slots_of(parameters: Json, output: Json) -> Slots:
    """The slots of a tool: its parameters go in; ``output`` gives its whole result, and the result's declared properties stand beside it."""
    properties = parameters.get("properties") if is_object(parameters) else None
    needed = parameters.get("required") if is_object(parameters) else None
    required = needed if is_list(needed) else []
    inputs = {
        name: Slot(name, type_of(schema), required=name in required)
        for name, schema in (properties.items() if is_object(properties) else ())
    }
    closed = is_object(parameters) and (bool(inputs) or parameters.get("additionalProperties") is False)
    return _with_outputs(Slots(inputs, open_inputs=not closed), output)


def _with_outputs(slots: Slots, output: Json) -> Slots:
    named = output.get(SLOTS_WORD) if is_object(output) else None
    if is_object(named):
        outputs = {name: Slot(name, kind if isinstance(kind, str) else "WILDCARD") for name, kind in named.items()}
        whole = next(iter(outputs.values())).type if len(outputs) == 1 else "OBJECT"
        bare = len(outputs) == 1
        outputs.setdefault(WHOLE, Slot(WHOLE, whole))
        return msgspec.structs.replace(slots, outputs=outputs, bare=bare)
    properties = output.get("properties") if is_object(output) else None
    outputs = {
        name: Slot(name, type_of(schema)) for name, schema in (properties.items() if is_object(properties) else ())
    }
    outputs.setdefault(WHOLE, Slot(WHOLE, type_of(output)))
    is_open = type_of(output) in ("WILDCARD", "OBJECT") and len(outputs) == 1
    return msgspec.structs.replace(slots, outputs=outputs, open_outputs=is_open)


def type_of(schema: Json) -> str:
    """The slot type of a JSON Schema; what has several types or none holds anything."""
    kind = schema.get("type") if is_object(schema) else None
    return _OF_SCHEMA.get(kind, "WILDCARD") if isinstance(kind, str) else "WILDCARD"
