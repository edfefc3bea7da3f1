"""Texts that hold none of some words, as right-linear GBNF: the states of an automaton that has read what may become one.

Linear in the words, and every character of a text decides alone. Must not know protocols or schemas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from tamis.protocols.grammar.rules import Rules, klass, literal

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
    said = node + char
    if any(said.endswith(word) for word in words):
        return None
    return next(said[at:] for at in range(len(said) + 1) if said[at:] in nodes)
