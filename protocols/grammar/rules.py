"""GBNF rules: names, literals, character classes.

GBNF is the grammar notation of llama.cpp; what is used here are literals, classes, groups, ``?``, ``*``, ``+`` and ``{m,n}``. Must not
know protocols or schemas.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

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
