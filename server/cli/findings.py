"""Findings as text: ``file:line:column: severity: message [code]``, one-based. Holds no rules."""

from __future__ import annotations

from typing import TextIO

from tamis.protocols.catalogue import CATALOGUE, message, severity
from tamis.protocols.model import Diag, Document
from tamis.protocols.positions import LineIndex
from tamis.server.cli.inputs import Paint

COLOURS = {"error": "31", "warning": "33", "information": "36", "hint": "90"}


def print_findings(document: Document, name: str, stream: TextIO) -> None:
    """The errors and warnings of a parsed text."""
    lines = LineIndex(document.text)
    paint = Paint(stream)
    for diag in document.diagnostics:
        if severity(diag) in ("error", "warning"):
            stream.write(finding_line(diag, lines, name, paint) + "\n")


def finding_line(diag: Diag, lines: LineIndex, name: str, paint: Paint) -> str:
    """One finding on one line."""
    line, column = lines.position(diag.span[0])
    level = severity(diag)
    entry = CATALOGUE[diag.code]
    return f"{name}:{line + 1}:{column + 1}: {paint(COLOURS[level], level)}: {message(diag)} [{diag.code} {entry.slug}]"
