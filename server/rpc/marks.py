"""What is said of methods by name: which may still change their shape, which end with a result when they are cancelled. Must not know what they do."""

from __future__ import annotations

EXPERIMENTAL: frozenset[str] = frozenset()
"""Methods that ``initialize`` and the descriptions call ``experimental``; every other is ``stable``."""

FINISHES = frozenset({"tool/execute", "tool/executeText", "agent/step", "workflow/run"})
"""Methods that give their normal result also when they are cancelled, with the unfinished calls ``cancelled``."""


def stability(method: str) -> str:
    """``stable`` or ``experimental``."""
    return "experimental" if method in EXPERIMENTAL else "stable"
