"""A small GBNF machine for tests: reads a grammar, says whether a text is a sentence of it, makes random sentences.

Written from llama.cpp's description of the notation, and works as it does: a set of stacks goes over the text character by character.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r'(?P<space>[ \t]+)|(?P<comment>#[^\n]*)|(?P<line>\n)|(?P<assign>::=)|(?P<literal>"(?:[^"\\\n]|\\.)*")'
    r"|(?P<klass>\[(?:[^\]\\\n]|\\.)*\])|(?P<name>[a-zA-Z][a-zA-Z0-9-]*)|(?P<count>\{[0-9]+(?:,[0-9]*)?\})|(?P<sign>[()|?*+])"
)
_ESCAPE = re.compile(r'\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([\\"\[\]nrt]))|([^\\])', re.DOTALL)
_NAMED = {"n": "\n", "r": "\r", "t": "\t"}
POOL = list("abzAZ09 \n\t.,:;'\"\\/<>&[](){}|«»「」『』=_-!?`~终末始中文字é😀\u3000\u200b#xE\r")


@dataclass(frozen=True)
class Chars:
    ranges: tuple[tuple[int, int], ...]
    negated: bool = False

    def holds(self, char: str) -> bool:
        return any(low <= ord(char) <= high for low, high in self.ranges) != self.negated


@dataclass(frozen=True)
class Name:
    name: str


Part = Chars | Name
Stack = tuple[tuple[Part, ...], int, "Stack | None"] | None


@dataclass
class Grammar:
    rules: dict[str, list[tuple[Part, ...]]] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    """The names of the rules that the text defines; the others stand for groups and repetitions."""

    def accepts(self, text: str) -> bool:
        stacks = self._ready({((Name("root"),), 0, None)})
        for char in text:
            moved: set[Stack] = set()
            for stack in stacks:
                if stack is not None:
                    parts, at, below = stack
                    wanted = parts[at]
                    if isinstance(wanted, Chars) and wanted.holds(char):
                        moved.add(self._after(parts, at + 1, below))
            stacks = self._ready(moved)
            if not stacks:
                return False
        return None in stacks

    def _after(self, parts: tuple[Part, ...], at: int, below: Stack) -> Stack:
        return (parts, at, below) if at < len(parts) else below

    def _ready(self, stacks: set[Stack]) -> set[Stack]:
        """Every stack with a character on top that the given ones lead to; None is the end."""
        waiting, seen, ready = list(stacks), set(stacks), set[Stack]()
        while waiting:
            stack = waiting.pop()
            if stack is None or isinstance(top := stack[0][stack[1]], Chars):
                ready.add(stack)
                continue
            below = self._after(stack[0], stack[1] + 1, stack[2])
            for body in self.rules[top.name]:
                new: Stack = (body, 0, below) if body else below
                if new not in seen:
                    seen.add(new)
                    waiting.append(new)
        return ready

    def least(self) -> dict[str, int]:
        """The length of each rule's shortest sentence; a rule without one is missing."""
        found: dict[str, int] = {}
        changed = True
        while changed:
            changed = False
            for name, bodies in self.rules.items():
                for body in bodies:
                    if all(isinstance(part, Chars) or part.name in found for part in body):
                        length = sum(1 if isinstance(part, Chars) else found[part.name] for part in body)
                        if length < found.get(name, 1 << 60):
                            found[name] = length
                            changed = True
        return found

    def sentence(self, rng: random.Random, budget: int = 400) -> str:
        """A random sentence; past the budget the shortest way out is taken."""
        least = self.least()
        out: list[str] = []
        stack: list[Part] = [Name("root")]
        while stack:
            top = stack.pop()
            if isinstance(top, Chars):
                out.append(_pick(top, rng))
                continue
            bodies = self.rules[top.name]
            if len(out) > budget:
                sizes = [
                    sum(1 if isinstance(part, Chars) else least.get(part.name, 1 << 60) for part in body)
                    for body in bodies
                ]
                body = bodies[sizes.index(min(sizes))]
            else:
                body = rng.choice(bodies)
            stack.extend(reversed(body))
        return "".join(out)

    def undefined(self) -> set[str]:
        return {
            part.name for bodies in self.rules.values() for body in bodies for part in body if isinstance(part, Name)
        } - set(self.rules)

    def unused(self) -> set[str]:
        reached, waiting = {"root"}, ["root"]
        while waiting:
            for body in self.rules[waiting.pop()]:
                for part in body:
                    if isinstance(part, Name) and part.name not in reached:
                        reached.add(part.name)
                        waiting.append(part.name)
        return set(self.written) - reached

    def left_recursive(self) -> set[str]:
        """Rules that can begin with themselves, which llama.cpp refuses."""
        empty = {name for name, length in self.least().items() if length == 0}
        first: dict[str, set[str]] = {name: set() for name in self.rules}
        for name, bodies in self.rules.items():
            for body in bodies:
                for part in body:
                    if isinstance(part, Chars):
                        break
                    first[name].add(part.name)
                    if part.name not in empty:
                        break
        changed = True
        while changed:
            changed = False
            for reach in first.values():
                more = set().union(*(first[name] for name in reach)) - reach if reach else set()
                if more:
                    reach |= more
                    changed = True
        return {name for name, reach in first.items() if name in reach}


def _pick(chars: Chars, rng: random.Random) -> str:
    if not chars.negated:
        low, high = rng.choice(chars.ranges)
        return chr(rng.randint(low, high))
    near = [chr(low) for low, _ in chars.ranges] + POOL
    kept = [char for char in near if chars.holds(char)]
    return rng.choice(kept)


def parse(text: str) -> Grammar:
    """Reads a grammar; raises ``ValueError`` for what is no GBNF."""
    tokens: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"no GBNF at {text[at : at + 30]!r}")
        at = match.end()
        if match.lastgroup not in ("space", "comment"):
            tokens.append((str(match.lastgroup), match.group()))
    grammar = Grammar()
    reader = _Reader(grammar, tokens)
    while reader.at < len(tokens):
        if tokens[reader.at][0] == "line":
            reader.at += 1
            continue
        name = reader.take("name")
        reader.take("assign")
        if name in grammar.rules:
            raise ValueError(f"{name} is defined twice")
        grammar.written.append(name)
        grammar.rules[name] = []
        grammar.rules[name] = reader.alternatives(name)
        reader.take("line")
    return grammar


class _Reader:
    def __init__(self, grammar: Grammar, tokens: list[tuple[str, str]]) -> None:
        self.grammar = grammar
        self.tokens = tokens
        self.at = 0

    def take(self, kind: str) -> str:
        found, text = self.tokens[self.at]
        if found != kind:
            raise ValueError(f"expected {kind}, got {text!r}")
        self.at += 1
        return text

    def alternatives(self, name: str) -> list[tuple[Part, ...]]:
        found = [self.sequence(name)]
        while self.tokens[self.at] == ("sign", "|"):
            self.at += 1
            found.append(self.sequence(name))
        return found

    def sequence(self, name: str) -> tuple[Part, ...]:
        parts: list[Part] = []
        while True:
            kind, text = self.tokens[self.at]
            if kind == "literal":
                item = [Chars(((ord(char), ord(char)),)) for char in _units(text[1:-1])]
            elif kind == "klass":
                item = [_klass(text)]
            elif kind == "name":
                item = [Name(text)]
            elif text == "(":
                self.at += 1
                item = [self._rule(name, self.alternatives(name))]
                if self.tokens[self.at] != ("sign", ")"):
                    raise ValueError("a group is not closed")
            else:
                return tuple(parts)
            self.at += 1
            parts.extend(self._repeated(name, tuple(item)))

    def _repeated(self, name: str, item: tuple[Part, ...]) -> tuple[Part, ...]:
        kind, text = self.tokens[self.at]
        bounds = {"?": (0, 1), "*": (0, None), "+": (1, None)}.get(text) if kind == "sign" else None
        if kind == "count":
            low, comma, high = text[1:-1].partition(",")
            bounds = (int(low), int(high) if high else None if comma else int(low))
        if bounds is None:
            return item
        self.at += 1
        least, most = bounds
        if len(item) != 1:
            item = (self._rule(name, [item]),)
        result = item * least
        if most is None:
            loop = self._rule(name, [])
            self.grammar.rules[loop.name] = [(*item, loop), ()]
            return (*result, loop)
        tail: tuple[Part, ...] = ()
        for _ in range(most - least):
            tail = (self._rule(name, [(*item, *tail), ()]),)
        return (*result, *tail)

    def _rule(self, name: str, bodies: list[tuple[Part, ...]]) -> Name:
        made = f"{name}~{len(self.grammar.rules)}"
        self.grammar.rules[made] = bodies
        return Name(made)


def _units(text: str) -> list[str]:
    units: list[str] = []
    at = 0
    while at < len(text):
        match = _ESCAPE.match(text, at)
        if match is None:
            raise ValueError(f"unknown escape in {text!r}")
        at = match.end()
        code = match[1] or match[2] or match[3]
        units.append(chr(int(code, 16)) if code else _NAMED.get(match[4], match[4]) if match[4] else match[5])
    return units


def _klass(text: str) -> Chars:
    inside = text[1:-1]
    negated = inside.startswith("^")
    units = _units(inside[1:] if negated else inside)
    ranges: list[tuple[int, int]] = []
    at = 0
    while at < len(units):
        if at + 2 < len(units) and units[at + 1] == "-":
            ranges.append((ord(units[at]), ord(units[at + 2])))
            at += 3
        else:
            ranges.append((ord(units[at]), ord(units[at])))
            at += 1
    return Chars(tuple(ranges), negated)
