"""Semantic tokens as LSP sends them: five numbers each, relative to the one before, in the client's legend and encoding."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tamis.protocols.positions import PositionEncoding
from tamis.server.analysis.shown.token_kinds import INSTEAD, KINDS, MODIFIERS, Token

_LINE_END = re.compile(r"\r\n|\n|\r")


class Legend(msgspec.Struct, frozen=True):
    """The kinds and modifiers of a client that we use; ``kind_of`` and ``bit_of`` lead from ours to its (-1, 0: it has none)."""

    kinds: tuple[str, ...]
    modifiers: tuple[str, ...]
    kind_of: tuple[int, ...]
    bit_of: tuple[int, ...]


def legend_for(capability: Mapping[str, Any]) -> Legend:
    """The legend for a client's ``textDocument.semanticTokens``: what it does not know is left out or stands as its nearest."""
    known, marks = capability.get("tokenTypes"), capability.get("tokenModifiers")
    offered = [name for name in known if isinstance(name, str)] if isinstance(known, list) else []  # pyright: ignore[reportUnknownVariableType]
    named = [name for name in marks if isinstance(name, str)] if isinstance(marks, list) else []  # pyright: ignore[reportUnknownVariableType]
    stands: list[str] = []
    for kind in KINDS:
        name = kind if kind in offered else INSTEAD.get(kind, "")
        stands.append(name if name in offered else "")
    kinds = tuple(dict.fromkeys(name for name in stands if name))
    modifiers = tuple(name for name in MODIFIERS if name in named)
    kind_of = tuple(kinds.index(name) if name else -1 for name in stands)
    bit_of = tuple(1 << modifiers.index(name) if name in modifiers else 0 for name in MODIFIERS)
    return Legend(kinds, modifiers, kind_of, bit_of)


def encode(
    text: str,
    tokens: Sequence[Token],
    legend: Legend,
    encoding: PositionEncoding,
    *,
    multiline: bool,
    begin: tuple[int, int] = (0, 0),
) -> list[int]:
    """The numbers of tokens that are sorted and disjoint. Without ``multiline`` a token is cut at each line end.

    ``begin`` is a line and where it starts, at or before the first token: what stands before it is not looked at.
    """
    if not tokens:
        return []
    bits = [sum(bit for i, bit in enumerate(legend.bit_of) if mask >> i & 1) for mask in range(1 << len(MODIFIERS))]
    line, line_start = begin
    plain = encoding == "utf-32" or text.isascii()
    count = len if plain else _utf8 if encoding == "utf-8" else _utf16
    data: list[int] = []
    said_line = said_column = column = 0
    at = line_start
    ends = _LINE_END.finditer(text, line_start)
    next_end = next(ends, None)
    for token in tokens:
        kind = legend.kind_of[token[2]]
        if kind < 0:
            continue
        start = token[0]
        stop = token[1]
        while start < stop:
            while next_end is not None and next_end.end() <= start:
                line += 1
                line_start = at = next_end.end()
                column = 0
                next_end = next(ends, None)
            cut = stop
            rest = stop
            if next_end is not None and next_end.start() < stop:
                if not multiline:
                    cut = next_end.start()
                rest = next_end.end() if not multiline else stop
            if cut > start:
                if plain:
                    column = start - line_start
                else:
                    column += count(text[at:start])
                    at = start
                data += (
                    line - said_line,
                    column - said_column if line == said_line else column,
                    count(text[start:cut]),
                    kind,
                    bits[token[3]],
                )
                said_line, said_column = line, column
            start = max(rest, start + 1) if rest < stop else stop
    return data


def _utf8(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _utf16(text: str) -> int:
    return len(text) if text.isascii() else len(text) + sum(1 for char in text if char > "\uffff")


def delta(before: Sequence[int], after: Sequence[int]) -> list[dict[str, Any]]:
    """The edit that makes the new numbers of the old ones; none when they are equal."""
    low, high = 0, min(len(before), len(after))
    step = 1024
    # Equal stretches are compared as a whole, so that an edit costs little more than the numbers it touches.
    while low < high and before[low : low + step] == after[low : low + step]:
        low += step
    low = min(low, high)
    while low < high and before[low] == after[low]:
        low += 1
    tail = 0
    room = high - low
    while (
        tail < room
        and before[len(before) - tail - step : len(before) - tail]
        == after[len(after) - tail - step : len(after) - tail]
    ):
        if tail + step > room:
            break
        tail += step
    while tail < room and before[len(before) - tail - 1] == after[len(after) - tail - 1]:
        tail += 1
    removed = len(before) - tail - low
    data = list(after[low : len(after) - tail])
    return [{"start": low, "deleteCount": removed, "data": data}] if removed or data else []
