"""Tool ids as the names that a target allows: one rule, distinct names, the same ones every time."""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, get_args

Target = Literal["mcp", "openai", "openaiStrict", "anthropic", "gemini", "cursor", "smolagents"]
TARGETS: tuple[Target, ...] = get_args(Target)
TARGET_WORDS: dict[str, Target] = {
    "mcp": "mcp",
    "openai": "openai",
    "openai-strict": "openaiStrict",
    "anthropic": "anthropic",
    "gemini": "gemini",
    "cursor": "cursor",
    "smolagents": "smolagents",
}
"""What commands and settings call the targets; the name on the wire is taken too."""
MAX_CHARS = 64
"""What every target takes; Anthropic's interface allows 128, its desktop program 64."""
CURSOR_CHARS = 59 - len("tamis")
"""Cursor leaves out a tool whose name and its server's have more than 59 characters together; ours is `tamis` where nobody gave it another name."""
DIFFERENT: tuple[Target, ...] = ("openai", "gemini", "cursor", "smolagents")
"""The targets whose names differ; the others name tools as the first does."""
_GIVE_WAY = frozenset[Target](("cursor", "smolagents"))
"""Targets whose names differ more: none of theirs is another tool's in one before, so that a call by any name means one tool."""
_OTHER = re.compile(r"[^A-Za-z0-9_-]")
_OF_WORDS = re.compile(r"[^A-Za-z0-9_]")


def portable_name(tool_id: str, target: Target) -> str:
    """The name of one tool. Dots are replaced also where a target allows them: many of its clients do not."""
    name = (_OF_WORDS if target in ("cursor", "smolagents") else _OTHER).sub("_", tool_id)
    if target in ("gemini", "smolagents") and not re.match(r"[A-Za-z_]", name):
        name = f"_{name}"
    if target == "smolagents" and keyword.iskeyword(name):
        name = f"{name}_"
    return name[: most_chars(target)]


def most_chars(target: Target) -> int:
    """How long a name may be."""
    return CURSOR_CHARS if target == "cursor" else MAX_CHARS


def short_name(tool_id: str, names: Iterable[str]) -> str | None:
    """The name that a tool has outside of Tamis: its id without the namespace, where that is one of its ``names`` (as an import gives it)."""
    bare = tool_id.rpartition(":")[2]
    return bare if bare != tool_id and bare in names else None


def portable_names(
    tool_ids: Iterable[str],
    target: Target,
    owned: Mapping[str, str] | None = None,
    short: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """A distinct name for every id. An id that is a name already keeps it; others get a number, ``_2`` …; where several meet and none keeps it, from ``_1`` on.

    ``owned`` names the tool that a name means in calls, such as an alias: no other tool gets that name. ``short`` has names that tools
    want (``short_name``): each is given where the target allows it and calls by it reach the tool.
    """
    ids = sorted(set(tool_ids))
    before = DIFFERENT[: DIFFERENT.index(target)] if target in _GIVE_WAY else ()
    return list(names_in_turn(ids, (*before, target), owned or {}, short or {}))[-1]


def names_in_turn(
    ids: Sequence[str], targets: Iterable[Target], owned: Mapping[str, str], short: Mapping[str, str]
) -> Iterator[dict[str, str]]:
    """The same for each target, of sorted ids; those that give way are told what the targets before them gave."""
    reach = dict(owned)
    for target in targets:
        names = _names(ids, target, reach if target in _GIVE_WAY else owned, short)
        yield names
        for tool_id, name in names.items():
            reach.setdefault(name, tool_id)


def _names(ids: Sequence[str], target: Target, reach: Mapping[str, str], short: Mapping[str, str]) -> dict[str, str]:
    kept = {tool_id: tool_id for tool_id in ids if portable_name(tool_id, target) == tool_id}
    kept |= {
        tool_id: name
        for tool_id, name in short.items()
        if reach.get(name) == tool_id and name not in ids and portable_name(name, target) == name
    }
    bases = {tool_id: portable_name(tool_id, target) for tool_id in ids if tool_id not in kept}
    return numbered(bases, kept, reach, most_chars(target))


def numbered(
    bases: Mapping[str, str], kept: Mapping[str, str], owned: Mapping[str, str], most: int = MAX_CHARS
) -> dict[str, str]:
    """``kept`` (names by id) and a distinct name near its base for every other id; see ``portable_names``."""
    names = dict(kept)
    taken = set(names.values())
    alone = Counter(bases.values())
    for tool_id, base in bases.items():
        free = alone[base] == 1 and base not in taken and owned.get(base, tool_id) == tool_id
        name, number = base, 2 if base in taken or alone[base] == 1 else 1
        while not free:
            tail = f"_{number}"
            name, number = base[: most - len(tail)] + tail, number + 1
            free = name not in taken and name not in alone and owned.get(name, tool_id) == tool_id
        taken.add(name)
        names[tool_id] = name
    return names
