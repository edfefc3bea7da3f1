"""Strings of a manifest that go on behind a line break: one finding with the escapes that are missing, none about the rest of the text.

A JSON reader ends a string with its line, so the rest of it reads like a heap of faults. Must not know LSP.
"""

from __future__ import annotations

import re
from bisect import bisect_right

import msgspec

from tamis.protocols.jsontext.tokens import NOT_CLOSED
from tamis.protocols.model import Diag, Edit, Fix
from tamis.protocols.positions import Span

MAX_LINES = 40
"""How many lines of a text are looked at for the quote that closes it."""
_LINE = re.compile(r"(\r?\n)([^\r\n]*)")
_CLOSER = re.compile(r'(?:[^"\\]|\\.)*"(?=[ \t]*(?:[,}\]]|$))')
_CONTROL = re.compile(r"\r?\n|\t")


def mend_broken_strings(text: str, diags: list[Diag]) -> list[Diag]:
    """The findings with those about the rest of a broken string left out; the list itself where there is no such string."""
    found: dict[int, tuple[int, Diag]] = {}
    last = -1
    for diag in diags:
        if diag.code == "MF522" and diag.args.get("reason") == NOT_CLOSED and diag.span[0] >= last:
            end = _end(text, diag.span)
            if end:
                last = end
                found[diag.span[0]] = (end, _mended(text, diag, end))
    if not found:
        return diags
    starts = sorted(found)
    kept: list[Diag] = []
    for diag in diags:
        at = bisect_right(starts, diag.span[0]) - 1
        start = starts[at] if at >= 0 else -1
        if start < 0 or diag.span[0] > found[start][0]:
            kept.append(diag)
        elif diag.span[0] == start and diag.code == "MF522":
            kept.append(found[start][1])
    return kept


def _end(text: str, span: Span) -> int:
    """Where a string is closed that goes on behind its line; 0 where what follows is no rest of a string."""
    at = text.find("\n", span[1])
    if at < 0 or text[span[1] : at].strip(" \t\r,"):
        return 0
    at -= text[at - 1] == "\r"
    for _ in range(MAX_LINES):
        line = _LINE.match(text, at)
        if line is None:
            return 0
        closer = _CLOSER.match(line[2])
        if closer is not None:
            return line.start(2) + closer.end()
        if '"' in line[2] or line[2].lstrip()[:1] in ("{", "}", "[", "]"):
            return 0
        at = line.end()
    return 0


def _mended(text: str, diag: Diag, end: int) -> Diag:
    edits = tuple(
        Edit(found.start(), found.end(), "\\t" if found[0] == "\t" else "\\n")
        for found in _CONTROL.finditer(text, diag.span[1], end)
    )
    return msgspec.structs.replace(
        diag, span=(diag.span[0], end), fix=Fix("Write the line breaks as \\n", edits, "unsafe")
    )
