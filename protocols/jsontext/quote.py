"""A text as a JSON string, whatever it holds. Must not know why it is written."""

from __future__ import annotations

import json

import msgspec


def quoted(text: str) -> str:
    """The text in double quotes, escaped where JSON needs it; half a surrogate pair, which no encoding can carry, as ``\\\\ud800``."""
    try:
        return msgspec.json.encode(text).decode()
    except UnicodeEncodeError:
        return json.dumps(text)
