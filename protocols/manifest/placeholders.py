"""Descriptions that Tamis itself writes where it has nothing to say, and how they are known again. Must not know who writes them."""

from __future__ import annotations

_ASKED = "what it takes and what it gives"
TO_SAY = f"what it does, when to use it, {_ASKED}"
NEW_TOOL = f"Replace this by what the tool does, when a model should use it, {_ASKED}."
MISSING_FIELD = f"Say here what the tool does, when to use it, {_ASKED}."
BODY = "What is sent."
"""Of a request's body that its document says nothing about."""
_TEXTS = (NEW_TOOL, MISSING_FIELD)


def to_be_said(what: str) -> str:
    """The description of a tool of which only that much is known."""
    return f"{what}; say here {TO_SAY}."


def left_to_say(text: str) -> str | None:
    """What of a description asks its author to write it; None for one that was written."""
    if text.strip() == BODY:
        return BODY
    asked = f"say here {TO_SAY}"
    return next((one for one in (*_TEXTS, asked) if one in text), None)
