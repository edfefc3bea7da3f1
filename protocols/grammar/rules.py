"""GBNF rules: names, literals, character classes.

GBNF is the grammar notation of llama.cpp; what is used here are literals, classes, groups, ``?``, ``*``, ``+`` and ``{m,n}``. Must not
know protocols or schemas.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import msgspec

from tamis.protocols.model import Json

MAX_RULES = 20_000

_NO_WORD = re.compile(r"[^A-Za-z0-9]+")
CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff"
"""Ranges of characters that a value should not hold (TC014), as ``klass`` takes them."""


class Rules:
    """A grammar in the making: rules in order of their first mention, and remarks for its head."""

    def __init__(self) -> None:
        self._rules: dict[str, str] = {}
        self._notes: dict[str, None] = {}

    @property
    def full(self) -> bool:
        """Whether the grammar has as many rules as it may have; what follows must be kept general."""
        return len(self._rules) >= MAX_RULES

    def name(self, wanted: str) -> str:
        """A free rule name like ``wanted``, which it reserves."""
        base = _NO_WORD.sub("-", wanted).strip("-").lower()[:48] or "r"
        name, number = base, 1
        while name in self._rules:
            number += 1
            name = f"{base}-{number}"
        self._rules[name] = ""
        return name

    def define(self, name: str, body: str) -> str:
        """Sets the body of a rule; gives its name."""
        self._rules[name] = body
        return name

    def has(self, name: str) -> bool:
        """Whether there is a rule of that name."""
        return name in self._rules

    def body(self, name: str) -> str:
        """The body of a rule; empty while it is being made."""
        return self._rules.get(name, "")

    def note(self, text: str) -> None:
        """A remark for the head of the grammar, once."""
        self._notes[" ".join(text.split())] = None

    def text(self, root: str) -> str:
        """The grammar, with the rules that ``root`` leads to; ``root`` is the body of the first one."""
        self._rules = {"root": root} | {name: body for name, body in self._rules.items() if name != "root"}
        used: dict[str, None] = {}
        waiting = ["root"]
        while waiting:
            name = waiting.pop()
            if name not in used:
                used[name] = None
                waiting.extend(reversed(mentions(self._rules[name])))
        lines = [f"# {note}" for note in self._notes]
        lines += [f"{name} ::= {body}" for name, body in self._rules.items() if name in used]
        return "\n".join(lines) + "\n"


def mentions(body: str) -> list[str]:
    """The rules that a rule's body names, in order."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|\{[0-9,]*\}', " ", body)
    return re.findall(r"[A-Za-z][A-Za-z0-9-]*", bare)


def literal(text: str) -> str:
    """A text as it is."""
    return '"' + "".join(_in_literal(char) for char in text) + '"'


def klass(chars: str, *, negated: bool = False) -> str:
    """One character of ``chars`` (or none of them), where ``a-b`` is a range; a hyphen for itself stands first."""
    inside = (
        char if char == "-" and 0 < index < len(chars) - 1 else _in_class(char) for index, char in enumerate(chars)
    )
    return f"[{'^' if negated else ''}{''.join(inside)}]"


def either(branches: Sequence[str]) -> str:
    """Any of the branches, each once; in parentheses where there are several."""
    kept = list(dict.fromkeys(branches))
    return kept[0] if len(kept) == 1 else f"({' | '.join(kept)})"


def _in_literal(char: str) -> str:
    named = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(char)
    return named or (char if char.isprintable() else _code(char))


def _in_class(char: str) -> str:
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(char)
    if named is not None:
        return named
    return (
        char if char.isalnum() or (not char.isascii() and char.isprintable()) or char in "<>&/:_ ;,." else _code(char)
    )


def _code(char: str) -> str:
    number = ord(char)
    if number < 256:
        return f"\\x{number:02X}"
    # Converters to other notations lose the zeros of an escape that begins with one.
    return f"\\u{number:04X}" if 0x1000 <= number < 0x10000 else char


# Ranges of integers as GBNF: every number of the range in its plain spelling, and no other.


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
    spellings: list[str] = []
    if low < 0:
        spellings += [f'"-" {item}' for item in _natural(max(1, -high), -low)]
    if high >= 0:
        spellings += _natural(max(0, low), high)
    return spellings


def _natural(low: int, high: int) -> list[str]:
    alternatives: list[str] = []
    for size in range(len(str(low)), len(str(high)) + 1):
        first = max(low, 0 if size == 1 else 10 ** (size - 1))
        last = min(high, 10**size - 1)
        if first <= last:
            alternatives += _same_size(str(first), str(last))
    return alternatives


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
    alternatives: list[str] = []
    if low[1:].strip("0"):
        alternatives += [f"{literal(low[0])} {rest}" for rest in _same_size(low[1:], "9" * size)]
        first += 1
    ending: list[str] = []
    if high[1:].strip("9"):
        ending = [f"{literal(high[0])} {rest}" for rest in _same_size("0" * size, high[1:])]
        last -= 1
    if first <= last:
        alternatives.append(f"[{first}-{last}] {_any(size)}" if first < last else f"{literal(str(first))} {_any(size)}")
    return alternatives + ending


def _any(size: int) -> str:
    return "[0-9]" if size == 1 else f"[0-9]{{{size}}}"


# Texts that hold none of some words, as right-linear GBNF: the states of an automaton that has read what may become one. Linear in the words, and
# every character of a text decides alone.


_START, _LETTER, _DRIVE, _REST = range(4)
_State = tuple[str, int]


class Escapes(msgspec.Struct, frozen=True):
    """Rules of escapes that a text may hold: any, and those that may follow what looks like a drive (``C:``) at its start.

    In JSON ``"C:\\temp"`` has a tab where a path was meant; the reader says so (F20).
    """

    every: str
    after_drive: str


def avoiding(
    rules: Rules,
    wanted: str,
    words: Sequence[str],
    close: str,
    *,
    without: str = "",
    not_first: str = "",
    escapes: Escapes | None = None,
    alike: Mapping[str, str] | None = None,
) -> str:
    """The rule of a text that holds none of ``words``, and then ``close``, which the text's own end must not begin to say.

    ``without`` are further characters that it does not hold (as ``klass`` takes them), ``not_first`` those that it does not
    begin with. Every word must be longer than one character; with ``escapes`` none may hold a Latin letter or a colon first.
    ``alike`` has, by a character of the words, all characters that count as it, no character twice.
    """
    spellings = alike or {}
    alphabet = "".join(sorted({char for word in words for char in word}))
    nodes = _nodes(words)
    start: _State = ("", _REST if escapes is None and not not_first else _START)
    names: dict[_State, str] = {start: rules.name(wanted)}
    waiting: list[_State] = [start]

    def named(state: _State) -> str:
        if state not in names:
            names[state] = rules.name(f"{wanted}-{len(names)}")
            waiting.append(state)
        return names[state]

    while waiting:
        state = waiting.pop()
        node, place = state
        branches: list[str] = []
        follow = _REST if escapes is None else place
        steps: dict[str, str] = {}
        apart = ""
        for char in alphabet:
            to = None if place == _START and char in not_first else _next(node, char, nodes, words)
            if to != "":
                apart += spellings.get(char, char)
            if to:
                steps[to] = steps.get(to, "") + spellings.get(char, char)
        free = apart + without
        if place == _START:
            free += "".join(char for char in not_first if char not in alphabet)
        if follow == _START:
            branches.append(f"[A-Za-z] {named(('', _LETTER))}")
            free += "A-Za-z"
        elif follow == _LETTER:
            branches.append(f"[:] {named(('', _DRIVE))}")
            free += ":"
        branches.append(f"{klass(free, negated=True)} {named(('', _REST))}")
        branches += [f"{klass(chars)} {named((to, _REST))}" for to, chars in steps.items()]
        if escapes is not None:
            branches.append(f"{escapes.after_drive if place == _DRIVE else escapes.every} {named(('', _REST))}")
        if (node + close).find(close) == len(node):
            branches.append(literal(close))
        rules.define(names[state], " | ".join(branches))
    return names[start]


def _nodes(words: Sequence[str]) -> set[str]:
    """What of a word may have been said: every true beginning of one that holds none itself."""
    beginnings = {word[:size] for word in words for size in range(len(word))}
    return {node for node in beginnings if not any(word in node for word in words)} | {""}


def _next(node: str, char: str, nodes: set[str], words: Sequence[str]) -> str | None:
    """What has been said of a word after one more character; None where a word would be complete."""
    text = node + char
    if any(text.endswith(word) for word in words):
        return None
    return next(text[at:] for at in range(len(text) + 1) if text[at:] in nodes)
