"""Tool ids as the names that a target allows: one rule, distinct names, the same ones every time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal, get_args

Target = Literal["mcp", "openai", "openaiStrict", "anthropic", "gemini"]
TARGETS: tuple[Target, ...] = get_args(Target)
MAX_CHARS = 64
"""What every target takes; Anthropic's interface allows 128, its desktop program 64."""
_OTHER = re.compile(r"[^A-Za-z0-9_-]")


def portable_name(tool_id: str, target: Target) -> str:
    """The name of one tool. Dots are replaced also where a target allows them: many of its clients do not."""
    name = _OTHER.sub("_", tool_id)
    if target == "gemini" and not re.match(r"[A-Za-z_]", name):
        name = f"_{name}"
    return name[:MAX_CHARS]


def portable_names(tool_ids: Iterable[str], target: Target, owned: Mapping[str, str] | None = None) -> dict[str, str]:
    """A distinct name for every id. An id that is a name already keeps it; others get a number, ``_2`` …; where several meet and none keeps it, from ``_1`` on.

    ``owned`` names the tool that a name means in calls, such as an alias: no other tool gets that name.
    """
    ids = sorted(set(tool_ids))
    names = {tool_id: tool_id for tool_id in ids if portable_name(tool_id, target) == tool_id}
    taken = set(names)
    bases = {tool_id: portable_name(tool_id, target) for tool_id in ids if tool_id not in names}
    alone = Counter(bases.values())
    for tool_id, base in bases.items():
        free = alone[base] == 1 and base not in taken and (owned or {}).get(base, tool_id) == tool_id
        name, number = base, 2 if base in taken or alone[base] == 1 else 1
        while not free:
            tail = f"_{number}"
            name, number = base[: MAX_CHARS - len(tail)] + tail, number + 1
            free = name not in taken and name not in alone and (owned or {}).get(name, tool_id) == tool_id
        taken.add(name)
        names[tool_id] = name
    return names
