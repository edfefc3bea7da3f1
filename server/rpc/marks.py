"""Which methods may still change their shape. Must not know what they do."""

from __future__ import annotations

EXPERIMENTAL: frozenset[str] = frozenset()
"""Methods that ``initialize`` and the descriptions call ``experimental``; every other is ``stable``."""


def stability(method: str) -> str:
    """``stable`` or ``experimental``."""
    return "experimental" if method in EXPERIMENTAL else "stable"
