"""Linear-time matching of patterns on which a backtracking engine may take exponential time.

A pattern without references and look-around is an automaton: all its states are walked side by side, one step per character,
and steps are remembered. Answers only whether the pattern is found. Must not know schemas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
    found = False
    for op, what in av:
        kind = str(op)
        if kind == "NEGATE":
            negated = True
        elif kind == "LITERAL":
            found = found or code == int(what)
        elif kind == "RANGE":
            found = found or int(what[0]) <= code <= int(what[1])
        else:
            inverse = "_NOT_" in str(what)
            check = _CATEGORIES[str(what).replace("_NOT_", "_")]
            found = found or check(char) != inverse
    return found != negated
