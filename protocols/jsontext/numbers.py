"""Numbers that JSON does not have (RFC 8259: no ``NaN``, no ``Infinity``), and that Python's own writer and reader let through. Pure."""

from __future__ import annotations

import json
import math
from typing import Any, cast

from tamis.protocols.jsontext.tree import to_pointer

Place = list[str | int]


def not_finite(value: object) -> tuple[str, float] | None:
    """The first such number in plain data, with its JSON Pointer (empty: the value itself)."""
    stack: list[tuple[Place, object]] = [([], value)]
    while stack:
        place, item = stack.pop()
        if isinstance(item, float):
            if not math.isfinite(item):
                return to_pointer(place), item
        elif isinstance(item, dict):
            members = reversed(cast("dict[Any, object]", item).items())
            stack += [([*place, str(name)], inner) for name, inner in members]
        elif isinstance(item, list | tuple):
            items = cast("list[object]", item)
            stack += [([*place, at], items[at]) for at in reversed(range(len(items)))]
    return None


def number_name(number: float) -> str:
    """What others call it."""
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def read_leniently(data: bytes) -> Any:
    """A JSON text in which only such numbers are wrong; None for any other fault.

    Programs that write with Python's ``json`` send them. Who waits for their answer shall learn what is wrong with it, and not wait on.
    """
    try:
        value: Any = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if not_finite(value) is not None else None
