"""Patterns of JSON Schemas as XML Schema writes them; None where XML Schema has no words for one.

XML Schema's patterns always hold for the whole text and know no anchors, no look-around and no back references. Must not know
schemas or values.
"""

from __future__ import annotations

import importlib
import re
from typing import Any, cast

from tamis.protocols.schema.regex import PatternError, compile_pattern, forks

MAX_REPEAT = 1_000
"""Repeats that count further, alone or inside each other, are not written: a validator may build that many states."""
MAX_CHARS = 4_000
_BEGIN = ("AT_BEGINNING", "AT_BEGINNING_STRING")
_END = "AT_END_STRING"
_ANYTHING = r"[\s\S]*"
# What Python's and JavaScript's \s take, of the characters that XML has.
_SPACE = "\\t\\n\\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_SPECIAL = frozenset("\\|.?*+(){}[]^-")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that no XML text can hold."""

Items = list[tuple[Any, Any]]


class _UnsaidError(Exception):
    """A part that XML Schema cannot say."""


def xml_pattern(pattern: str) -> str | None:
    """The pattern of an XML Schema that takes the texts in which an ECMA 262 pattern is found; not yet escaped for XML."""
    try:
        compiled = compile_pattern(pattern)
    except PatternError:
        return None
    if compiled.risk:
        return None
    parser: Any = importlib.import_module("re._parser")
    try:
        items = cast("Items", list(parser.parse(compiled.regex.pattern)))
        begins = bool(items) and _is_at(items[0], *_BEGIN)
        ends = bool(items) and _is_at(items[-1], _END)
        # A validator goes back through a text as Python does, no limit of ours stands before it, and libxml2 gives up.
        if forks(items[begins : len(items) - ends], ends=ends) + (not begins) > 1:
            return None
        written = _whole(items)
    except (_UnsaidError, RecursionError):
        return None
    return written if len(written) <= MAX_CHARS else None


def _whole(items: Items) -> str:
    """A pattern that is searched for as one that the whole text must match."""
    if len(items) == 1 and str(items[0][0]) == "BRANCH":
        return "|".join(_whole(list(branch)) for branch in items[0][1][1])
    begins = bool(items) and _is_at(items[0], *_BEGIN)
    items = items[begins:]
    ends = bool(items) and _is_at(items[-1], _END)
    items = items[: len(items) - ends]
    return f"{'' if begins else _ANYTHING}{_sequence(items, 1)}{'' if ends else _ANYTHING}"


def _is_at(item: tuple[Any, Any], *names: str) -> bool:
    return str(item[0]) == "AT" and str(item[1]) in names


def _sequence(items: Items, repeated: int) -> str:
    return "".join(_item(str(op), av, repeated) for op, av in items)


def _item(name: str, av: Any, repeated: int) -> str:
    if name == "LITERAL":
        return _char(int(av))
    if name == "NOT_LITERAL":
        return f"[^{_char(int(av))}]"
    if name == "ANY":
        return r"[^\n]"
    if name == "IN":
        return _set(list(av))
    if name in ("MAX_REPEAT", "MIN_REPEAT"):
        return _repeat(int(av[0]), av[1], list(av[2]), repeated)
    if name == "BRANCH":
        return f"({'|'.join(_sequence(list(branch), repeated) for branch in av[1])})"
    # A group that switches flags means other characters.
    if name == "SUBPATTERN" and not av[1] and not av[2]:
        return f"({_sequence(list(av[3]), repeated)})"
    raise _UnsaidError


def _repeat(least: int, most: Any, body: Items, repeated: int) -> str:
    endless = str(most) == "MAXREPEAT"
    count = repeated * max(least, 1 if endless else int(most), 1)
    if count > MAX_REPEAT:
        raise _UnsaidError
    return f"({_sequence(body, count)}){{{least},{'' if endless else int(most)}}}"


def _set(members: Items) -> str:
    negated = bool(members) and str(members[0][0]) == "NEGATE"
    parts = [_member(str(op), av) for op, av in members[negated:]]
    if "" in parts:
        # \S stands for all but some: alone it is their negation, beside others it cannot be said
        if len(parts) > 1:
            raise _UnsaidError
        return f"[{_SPACE}]" if negated else f"[^{_SPACE}]"
    return f"[{'^' if negated else ''}{''.join(parts)}]"


def _member(name: str, av: Any) -> str:
    """One member of a set; empty for all that is no space."""
    if name == "LITERAL":
        return _char(int(av))
    if name == "RANGE":
        return f"{_char(int(av[0]))}-{_char(int(av[1]))}"
    if name == "CATEGORY" and str(av) == "CATEGORY_SPACE":
        return _SPACE
    if name == "CATEGORY" and str(av) == "CATEGORY_NOT_SPACE":
        return ""
    raise _UnsaidError


def _char(code: int) -> str:
    char = chr(code)
    if UNWRITABLE.match(char):
        raise _UnsaidError
    return _NAMED.get(char) or (f"\\{char}" if char in _SPECIAL else char)
