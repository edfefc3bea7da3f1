"""Strings of a manifest that go on behind a line break, or lack one of their quotes: one finding with what is missing, none about the rest.

A JSON reader ends a string with its line, and reads every quote behind a lost one the other way round, so the rest reads like a heap of
faults. Must not know LSP.
"""

from __future__ import annotations

import re
from bisect import bisect_right

import msgspec

from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.model import Diag, Edit, Fix
from tamis.protocols.positions import Span

MAX_PROVED_CHARS = 200_000
"""The largest text in which a quote is tried out."""
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
        if diag.code == "MF522" and diag.args.get("fault") == "unclosed-string" and diag.span[0] >= last:
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


_LOST_MAX = 8
_OPENING = re.compile(r'"[ \t]*:')
_VALUE_END = re.compile(r'"[ \t]*(?:[,}\]\r\n]|\Z)')
_NAME_AND_COLON = re.compile(r'"([^":{}\[\],]+?)[ \t]*:[ \t]*"')


def mend_lost_quotes(text: str, diags: list[Diag]) -> list[Diag]:
    """The findings with one for each lost quote, in the place of all that its line is told of behind it; the list itself where none is lost."""
    if sum(diag.code in _FAULTS for diag in diags) < 2:
        return diags
    found: dict[int, Diag] = {}
    ends: list[Span] = []
    for diag in diags:
        if len(found) < _LOST_MAX and not any(start <= diag.span[0] < end for start, end in ends):
            lost = _lost(text, diag)
            if lost is not None:
                found[lost.span[0]] = lost
                end = text.find("\n", lost.span[0])
                ends.append((lost.span[0], len(text) if end < 0 else end))
    if not found:
        return diags
    names = {str(diag.args.get("name", "")) for diag in found.values()}
    kept = [
        diag
        for diag in diags
        if not any(start <= diag.span[0] < end for start, end in ends)
        # A name that lacks its quote is there.
        and not (diag.code == "MF501" and str(diag.args.get("k", "")) in names)
    ]
    return sorted([*kept, *found.values()], key=lambda diag: diag.span)


_FAULTS = frozenset(("MF520", "MF521", "MF522", "MF523"))


def _lost(text: str, diag: Diag) -> Diag | None:
    """The quote that is missing at a fault, or None."""
    start, end = diag.span
    fault = diag.args.get("fault")
    if fault == "missing-colon" and text[start : start + 1] == '"':
        match = _NAME_AND_COLON.fullmatch(text, start, end)
        if match is None:
            return None
        edit, what, span, name = Edit(match.end(1), match.end(1), '"'), "closing", (start, match.end(1)), match[1]
    elif fault == "unquoted-name" and _OPENING.match(text, end):
        edit, what, span, name = Edit(start, start, '"'), "opening", (start, end + 1), text[start:end]
    elif (diag.code == "MF523" or fault == "unexpected-value") and _VALUE_END.match(text, end):
        edit, what, span, name = Edit(start, start, '"'), "opening", (start, end + 1), ""
    else:
        return None
    after = text[: edit.start] + '"' + text[edit.end :]
    if len(text) > MAX_PROVED_CHARS or _count(after) >= _count(text):
        return None
    fix = Fix("Insert '\"'", (edit,), "unsafe")
    shown = name or text[start:end]
    return Diag("MF520", span, {"reason": f"{shown} has no {what} quote", "name": name}, fix=fix)


def _count(text: str) -> int:
    return sum(diag.code in _FAULTS for diag in parse_json(text).diagnostics)
