"""Docstrings as hosts read them: plain back-ticks, on one line, without the notes of where a rule is from. Must not know what is described.

Such a note stands in parentheses, as in "(seed 001 §6.1)", "(ruling 20)" or "(A40 to A44)", and names a document that users do not have.
"""

from __future__ import annotations

import re

_PARENTHESES = re.compile(r" ?\(([^()]*)\)")
_NOTE = re.compile(
    r"(?:^|, )(?:seeds? \d{3}(?: §[\d.]+)?|§[\d.]+|rulings? \d+|issue [\d.]+|[ADFVW]\d{1,3}|interface(?:, [A-Z]\w+)?)"
    r"(?: (?:and|to) (?:§[\d.]+|\d+|[ADFVW]\d{1,3}))*(?=, |$)"
)


def plain(text: str) -> str:
    """A docstring, or a part of one, as a host reads it."""
    return _PARENTHESES.sub(_without_notes, " ".join(text.replace("``", "`").split())).strip()


def _without_notes(found: re.Match[str]) -> str:
    kept = _NOTE.sub("", found[1]).removeprefix(", ")
    return found[0].replace(found[1], kept) if kept else ""
