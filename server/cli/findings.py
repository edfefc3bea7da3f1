"""Findings as text: ``file:line:column: severity: message [code]``, one-based. Holds no rules."""

from __future__ import annotations

import sys

from tamis.protocols.catalogue import CATALOGUE, message, severity
from tamis.protocols.model import Document
from tamis.protocols.positions import LineIndex
from tamis.server.cli.outputs import Paint, Painted, write_note

COLOURS = {"error": "31", "warning": "33", "information": "36", "hint": "90"}


_TOLD = frozenset(("TC008",))
"""What is told beside errors and warnings: a call is run that a reader could take for an example."""


def print_findings(document: Document, name: str) -> list[str]:
    """The errors and warnings of a parsed text, and what else bears on what is run, on standard error; their sentences come back."""
    lines = LineIndex(document.text)
    paint = Paint(sys.stderr)
    told: list[str] = []
    for diag in document.diagnostics:
        if severity(diag) in ("error", "warning") or diag.code in _TOLD:
            row, column = lines.position(diag.span[0])
            place = f"{name}:{row + 1}:{column + 1}"
            write_note(*finding_line(paint, place, severity(diag), message(diag), shown_code(diag.code)))
            told.append(message(diag))
    return told


def shown_code(code: str) -> str:
    """A finding's code with its slug, where the catalogue has one."""
    entry = CATALOGUE.get(code)
    return code if entry is None else f"{code} {entry.slug}"


def finding_line(paint: Paint, place: str, level: str, text: str, code: str) -> tuple[str | Painted, ...]:
    """One finding as the pieces of a line."""
    return f"{place}: ", paint(COLOURS[level], level), f": {text} [{code}]"
