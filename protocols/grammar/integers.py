"""Ranges of integers as GBNF: every number of the range in its plain spelling, and no other. Must not know schemas beyond their bounds."""

from __future__ import annotations

import math

from tamis.protocols.grammar.rules import literal
from tamis.protocols.model import Json

MAX_DIGITS = 19
"""Digits of an integer, as far as the schema does not bound it closer: what 64 bits hold."""
BOUNDS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
_MOST = 10**MAX_DIGITS - 1
UNBOUNDED = (-_MOST, _MOST)


def bounds_of(schema: dict[str, Json]) -> tuple[int, int]:
    """The least and the greatest integer that a schema allows, within 19 digits."""
    low, high = -_MOST, _MOST
    for keyword in BOUNDS:
        bound = schema.get(keyword)
        if isinstance(bound, bool) or not isinstance(bound, (int, float)) or not abs(bound) < _MOST:
            continue
        if keyword == "minimum":
            low = max(low, math.ceil(bound))
        elif keyword == "exclusiveMinimum":
            low = max(low, math.floor(bound) + 1)
        elif keyword == "maximum":
            high = min(high, math.floor(bound))
        else:
            high = min(high, math.ceil(bound) - 1)
    return low, high


def spellings(low: int, high: int) -> list[str]:
    """Alternatives that spell exactly the integers from ``low`` to ``high``; none for an empty range."""
    found: list[str] = []
    if low < 0:
        found += [f'"-" {one}' for one in _natural(max(1, -high), -low)]
    if high >= 0:
        found += _natural(max(0, low), high)
    return found


def _natural(low: int, high: int) -> list[str]:
    found: list[str] = []
    for size in range(len(str(low)), len(str(high)) + 1):
        first = max(low, 0 if size == 1 else 10 ** (size - 1))
        last = min(high, 10**size - 1)
        if first <= last:
            found += _same_size(str(first), str(last))
    return found


def _same_size(low: str, high: str) -> list[str]:
    """The numbers between two of as many digits."""
    if low.strip("0") == "" and high.strip("9") == "":
        return [_any(len(low))]
    if low[0] == high[0]:
        if len(low) == 1:
            return [literal(low)]
        return [f"{literal(low[0])} {rest}" for rest in _same_size(low[1:], high[1:])]
    if len(low) == 1:
        return [f"[{low}-{high}]"]
    size = len(low) - 1
    first, last = int(low[0]), int(high[0])
    found: list[str] = []
    if low[1:].strip("0"):
        found += [f"{literal(low[0])} {rest}" for rest in _same_size(low[1:], "9" * size)]
        first += 1
    ending: list[str] = []
    if high[1:].strip("9"):
        ending = [f"{literal(high[0])} {rest}" for rest in _same_size("0" * size, high[1:])]
        last -= 1
    if first <= last:
        found.append(f"[{first}-{last}] {_any(size)}" if first < last else f"{literal(str(first))} {_any(size)}")
    return found + ending


def _any(size: int) -> str:
    return "[0-9]" if size == 1 else f"[0-9]{{{size}}}"
