"""Patterns of JSON Schemas: ECMA spelling to Python's, and a bound on what a pattern may cost.

A backtracking engine can take time exponential in the text, and it cannot be interrupted. So each pattern is judged once, from
its structure, and is only tried on texts up to a length at which it is harmless. Must not know schemas or arguments.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

import msgspec

# Linear-time matching of patterns on which a backtracking engine may take exponential time. A pattern without references and look-around is an
# automaton: all its states are walked side by side, one step per character, and steps are remembered. Answers only whether the pattern is found.


MAX_STATES = 3_000
MAX_TEXT = 200_000
_MAX_STEPS = 20_000


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


_CATEGORIES: dict[str, Callable[[str], bool]] = {
    "CATEGORY_DIGIT": str.isdecimal,
    "CATEGORY_SPACE": str.isspace,
    "CATEGORY_WORD": _is_word,
}


class UnsupportedError(Exception):
    """The pattern is no plain automaton: it has references, look-around, word boundaries, or too many states."""


class Automaton:
    """One pattern, from the tree of ``re``'s parser. Built once, shared by all texts."""

    __slots__ = ("_accept", "_edges", "_start", "_steps")

    def __init__(self, tree: list[tuple[Any, Any]]) -> None:
        # A state is a list of alternatives without a character ("", to), one condition or one character test.
        self._edges: list[list[tuple[str, Any, int]]] = [[]]
        self._accept = 0
        self._start = self._sequence(tree, 0)
        self._steps: dict[tuple[frozenset[int], str, bool], frozenset[int]] = {}

    def found_in(self, text: str) -> bool:
        """Whether the pattern is found anywhere in the text; a text over 200,000 characters counts as no match."""
        if len(text) > MAX_TEXT:
            return False
        last = len(text) - 1
        here = self._closure({self._start}, begin=True, end=not text)
        steps = self._steps
        for i, char in enumerate(text):
            if self._accept in here:
                return True
            key = (here, char, i == last)
            following = steps.get(key)
            if following is None:
                if len(steps) > _MAX_STEPS:
                    steps.clear()
                following = steps[key] = self._step(here, char, end=i == last)
            here = following
        return self._accept in here

    def _step(self, states: frozenset[int], char: str, *, end: bool) -> frozenset[int]:
        reached = {self._start}
        for state in states:
            for kind, what, to in self._edges[state]:
                if kind == "char" and _matches(what, char):
                    reached.add(to)
        return self._closure(reached, begin=False, end=end)

    def _closure(self, states: set[int], *, begin: bool, end: bool) -> frozenset[int]:
        seen = set(states)
        stack = list(states)
        while stack:
            for kind, _, to in self._edges[stack.pop()]:
                free = kind == "" or (kind == "begin" and begin) or (kind == "end" and end)
                if free and to not in seen:
                    seen.add(to)
                    stack.append(to)
        return frozenset(seen)

    # Building, from the end to the start

    def _state(self, *edges: tuple[str, Any, int]) -> int:
        if len(self._edges) >= MAX_STATES:
            raise UnsupportedError
        self._edges.append(list(edges))
        return len(self._edges) - 1

    def _sequence(self, items: list[tuple[Any, Any]], to: int) -> int:
        for op, av in reversed(items):
            to = self._item(str(op), av, to)
        return to

    def _item(self, name: str, av: Any, to: int) -> int:
        if name in ("LITERAL", "NOT_LITERAL", "IN", "ANY"):
            return self._state(("char", (name, av), to))
        if name == "AT":
            kind = {"AT_BEGINNING": "begin", "AT_BEGINNING_STRING": "begin", "AT_END_STRING": "end"}.get(str(av))
            if kind is None:
                raise UnsupportedError
            return self._state((kind, None, to))
        if name == "SUBPATTERN":
            if av[1] or av[2]:
                raise UnsupportedError
            return self._sequence(list(av[3]), to)
        if name == "BRANCH":
            return self._state(*(("", None, self._sequence(list(branch), to)) for branch in av[1]))
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            return self._repeat(int(av[0]), int(av[1]), list(av[2]), to)
        raise UnsupportedError

    def _repeat(self, least: int, most: int, body: list[tuple[Any, Any]], to: int) -> int:
        if most >= MAX_STATES:
            loop = self._state(("", None, to))
            self._edges[loop].append(("", None, self._sequence(body, loop)))
            to = loop
        else:
            for _ in range(most - least):
                to = self._state(("", None, to), ("", None, self._sequence(body, to)))
        for _ in range(least):
            to = self._sequence(body, to)
        return to


def _matches(test: tuple[str, Any], char: str) -> bool:
    name, av = test
    code = ord(char)
    if name in ("LITERAL", "NOT_LITERAL"):
        return (code == int(av)) == (name == "LITERAL")
    if name == "ANY":
        return char != "\n"
    negated = False
    is_match = False
    for op, what in av:
        kind = str(op)
        if kind == "NEGATE":
            negated = True
        elif kind == "LITERAL":
            is_match = is_match or code == int(what)
        elif kind == "RANGE":
            is_match = is_match or int(what[0]) <= code <= int(what[1])
        else:
            inverse = "_NOT_" in str(what)
            check = _CATEGORIES[str(what).replace("_NOT_", "_")]
            is_match = is_match or check(char) != inverse
    return is_match != negated


MAX_PATTERN_CHARS = 2_000
_ESCAPES = {"d": "0-9", "w": "A-Za-z0-9_"}
_CLASSES = {"d": "[0-9]", "D": "[^0-9]", "w": "[A-Za-z0-9_]", "W": "[^A-Za-z0-9_]"}
_PROPERTIES = {
    "L": r"[^\W\d_]",
    "Letter": r"[^\W\d_]",
    "N": r"\d",
    "Nd": r"\d",
    "Number": r"\d",
    "Lu": r"[^\W\d_]",
    "Ll": r"[^\W\d_]",
    "Han": r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]",
    "Script=Han": r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]",
}
_PROPERTY = re.compile(r"\\p\{([A-Za-z=_]+)\}")


class Pattern(msgspec.Struct, frozen=True):
    """A compiled pattern.

    ``limit`` is the longest text that Python's engine may try it on (0: any); ``risk`` says why it is dangerous; ``automaton``
    takes over above the limit, where the pattern is one.
    """

    regex: re.Pattern[str]
    limit: int = 0
    risk: str = ""
    automaton: Automaton | None = None

    @property
    def longest(self) -> int:
        """The longest text that the pattern is tried on at all; 0 for any."""
        return 0 if not self.limit else self.limit if self.automaton is None else MAX_TEXT

    def test(self, text: str) -> bool:
        """Whether the pattern is found in the text; a text that is too long to be tried counts as no match."""
        if self.limit and len(text) > self.limit:
            return self.automaton is not None and self.automaton.found_in(text)
        return self.regex.search(text) is not None


class PatternError(ValueError):
    """A pattern that cannot be compiled; its text is the reason, ``at`` the place in the pattern if known."""

    def __init__(self, reason: str, at: int | None = None) -> None:
        super().__init__(reason)
        self.at = at


@lru_cache(maxsize=2048)
def compile_pattern(pattern: str) -> Pattern:
    """Compiles an ECMA 262 pattern; raises ``PatternError``."""
    if len(pattern) > MAX_PATTERN_CHARS:
        raise PatternError(f"more than {MAX_PATTERN_CHARS} characters")
    try:
        regex = re.compile(_python_spelling(pattern))
    except re.error as error:
        raise PatternError(error.msg, error.pos) from None
    except (OverflowError, RecursionError, ValueError) as error:
        raise PatternError(str(error) or "too complex") from None
    try:
        return _judge(regex)
    except RecursionError:
        return Pattern(regex, 16, "it is nested too deeply to be judged")


def _python_spelling(pattern: str) -> str:
    """ECMA's ``$``, ``\\d``, ``\\w``, ``(?<name>`` and ``\\p{…}`` as Python writes them.

    Python's ``$`` also matches before a final newline, its ``\\d`` and ``\\w`` know all of Unicode: a schema means neither.
    """
    if not any(mark in pattern for mark in ("$", "\\", "(?<", "[")):
        return pattern
    out: list[str] = []
    at, inside = 0, False
    while at < len(pattern):
        char = pattern[at]
        if char == "\\" and at + 1 < len(pattern):
            follow = pattern[at + 1]
            prop = _PROPERTY.match(pattern, at)
            if prop is not None and prop.group(1) in _PROPERTIES and not inside:
                out.append(_PROPERTIES[prop.group(1)])
                at = prop.end()
                continue
            if inside and follow in _ESCAPES:
                out.append(_ESCAPES[follow])
            elif not inside and follow in _CLASSES:
                out.append(_CLASSES[follow])
            elif follow == "/":
                out.append("/")
            else:
                out.append(char + follow)
            at += 2
            continue
        if inside:
            inside = char != "]"
            # Python warns of what may become set operations; ECMA reads these as themselves.
            out.append("\\" + char if char in "[&~|" else char)
        elif char == "[":
            inside = True
            out.append(char)
            if pattern.startswith("^", at + 1):
                at += 1
                out.append("^")
        elif char == "$":
            out.append(r"\Z")
        elif pattern.startswith("(?<", at) and pattern[at + 3 : at + 4] not in ("=", "!"):
            out.append("(?P<")
            at += 2
        else:
            out.append(char)
        at += 1
    return "".join(out)


_UNBOUNDED = 32
"""A repeat that may run this often counts as one that may run for ever."""

Chars = tuple[frozenset[int], bool]
"""Code points below 256, and whether any other may match."""
_ALL: Chars = (frozenset(range(256)), True)
_NONE: Chars = (frozenset(), False)


def _judge(regex: re.Pattern[str]) -> Pattern:
    parser: Any = importlib.import_module("re._parser")
    tree = cast("list[tuple[Any, Any]]", list(parser.parse(regex.pattern)))
    state = _Judge()
    state.scan(tree, None)
    repeats = state.repeats
    anchored = bool(tree) and str(tree[0][0]) == "AT"
    if not state.risk and (repeats == 0 or (anchored and repeats == 1)):
        return Pattern(regex)
    try:
        automaton = Automaton(tree)
    except UnsupportedError:
        automaton = None
    if state.risk:
        return Pattern(regex, 16, state.risk, automaton)
    return Pattern(regex, 10_000 if repeats == 1 else 5_000 if repeats == 2 else 1_000, "", automaton)


class _Judge:
    """Looks for repeats inside repeats that can share out one text in several ways."""

    def __init__(self) -> None:
        self.repeats = 0
        self.risk = ""

    def scan(self, items: list[tuple[Any, Any]], loop: Chars | None) -> None:
        """``loop`` holds what may follow these items inside an enclosing unbounded repeat; None outside of any."""
        for i, (op, av) in enumerate(items):
            name = str(op)
            if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
                least, most, body = int(av[0]), int(av[1]), list(av[2])
                endless = most >= _UNBOUNDED
                self.repeats += endless
                if loop is not None and least != most and _overlap(_first(body)[0], _after(items[i + 1 :], loop)):
                    self.risk = "a repeat inside a repeat can match the same text in several ways"
                self.scan(body, _first(body)[0] if endless else _after_or_none(items[i + 1 :], loop))
            elif name == "BRANCH":
                branches = [list(branch) for branch in av[1]]
                self.branches(branches, items[i + 1 :], loop)
            elif name == "SUBPATTERN":
                self.scan(list(av[3]), _after_or_none(items[i + 1 :], loop))
            elif name in ("ASSERT", "ASSERT_NOT"):
                self.scan(list(av[1]), None)
            elif name == "ATOMIC_GROUP":
                self.scan(list(av), None)

    def branches(self, branches: list[list[tuple[Any, Any]]], rest: list[tuple[Any, Any]], loop: Chars | None) -> None:
        for branch in branches:
            self.scan(branch, _after_or_none(rest, loop))
        if loop is None:
            return
        firsts = [_first(branch) for branch in branches]
        seen = _NONE
        for chars, nullable in firsts:
            here = _union(chars, _after(rest, loop)) if nullable else chars
            if _overlap(seen, here):
                self.risk = "alternatives inside a repeat can match the same text"
            seen = _union(seen, here)


def forks(items: list[tuple[Any, Any]], *, ends: bool) -> int:
    """How many long repeats of a parsed pattern could also go on where they end: about the power of a text's length that a
    backtracking engine needs. ``ends``: nothing follows the pattern."""
    return _forks(items, _NONE if ends else _ALL)


def _forks(items: list[tuple[Any, Any]], follow: Chars) -> int:
    count = 0
    for i, (op, av) in enumerate(items):
        name, rest = str(op), _after(items[i + 1 :], follow)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            chars = _first(list(av[2]))[0]
            count += int(av[1]) >= _UNBOUNDED and _overlap(chars, rest)
            count += _forks(list(av[2]), _union(chars, rest))
        elif name == "BRANCH":
            count += sum(_forks(list(branch), rest) for branch in av[1])
        elif name == "SUBPATTERN":
            count += _forks(list(av[3]), rest)
    return count


def _after(rest: list[tuple[Any, Any]], loop: Chars) -> Chars:
    chars, nullable = _first(rest)
    return _union(chars, loop) if nullable else chars


def _after_or_none(rest: list[tuple[Any, Any]], loop: Chars | None) -> Chars | None:
    return None if loop is None else _after(rest, loop)


def _first(items: list[tuple[Any, Any]]) -> tuple[Chars, bool]:
    """What a sequence can begin with, and whether it can be empty."""
    chars = _NONE
    for op, av in items:
        first_chars, nullable = _first_of(str(op), av)
        chars = _union(chars, first_chars)
        if not nullable:
            return chars, False
    return chars, True


def _first_of(name: str, av: Any) -> tuple[Chars, bool]:
    if name == "LITERAL":
        return _char(int(av)), False
    if name == "NOT_LITERAL":
        return (_ALL[0] - _char(int(av))[0], True), False
    if name == "ANY":
        return (_ALL[0] - {10}, True), False
    if name == "IN":
        return _set(list(av)), False
    if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        first_chars, nullable = _first(list(av[2]))
        return first_chars, nullable or int(av[0]) == 0
    if name == "SUBPATTERN":
        return _first(list(av[3]))
    if name == "ATOMIC_GROUP":
        return _first(list(av))
    if name == "BRANCH":
        parts = [_first(list(branch)) for branch in av[1]]
        chars = _NONE
        for part, _ in parts:
            chars = _union(chars, part)
        return chars, any(nullable for _, nullable in parts)
    if name in ("AT", "ASSERT", "ASSERT_NOT"):
        return _NONE, True
    return _ALL, True


def _set(members: list[tuple[Any, Any]]) -> Chars:
    chars = _NONE
    negated = False
    for op, av in members:
        name = str(op)
        if name == "NEGATE":
            negated = True
        elif name == "LITERAL":
            chars = _union(chars, _char(int(av)))
        elif name == "RANGE":
            low, high = int(av[0]), int(av[1])
            chars = _union(chars, (frozenset(range(low, min(high, 255) + 1)), high > 255))
        else:
            chars = _union(chars, _category(str(av)))
    if negated:
        # A negated set leaves out few characters: beyond 255 it always matches some.
        return _ALL[0] - chars[0], True
    return chars


def _category(name: str) -> Chars:
    short = {"CATEGORY_DIGIT": r"\d", "CATEGORY_SPACE": r"\s", "CATEGORY_WORD": r"\w"}.get(name)
    inverse = {"CATEGORY_NOT_DIGIT": r"\D", "CATEGORY_NOT_SPACE": r"\S", "CATEGORY_NOT_WORD": r"\W"}.get(name)
    pattern = re.compile(short or inverse or "[^]")
    return frozenset(code for code in range(256) if pattern.match(chr(code))), True


def _char(code: int) -> Chars:
    return (frozenset((code,)), False) if code < 256 else (frozenset(), True)


def _union(one: Chars, two: Chars) -> Chars:
    return one[0] | two[0], one[1] or two[1]


def _overlap(one: Chars, two: Chars) -> bool:
    return bool(one[0] & two[0]) or (one[1] and two[1])
