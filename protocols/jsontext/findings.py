"""What is wrong with a JSON text, collected from its tree in the order of the text, with places counted from its start.

Branches without findings are passed over, so a clean document costs nothing. Must not read the text anew.
"""

from __future__ import annotations

import msgspec

from tamis.protocols.jsontext.green import Branch, Reading
from tamis.protocols.model import Diag, Edit, Fix
from tamis.protocols.positions import Span

MAX_ERRORS = 200
"""So many errors, as many hints and as many doubled keys are told of in one text."""


class Found(msgspec.Struct):
    """What a tree has besides values."""

    diagnostics: list[Diag]
    comments: list[Span]
    trailing_commas: list[int]


def collect(text: str, reading: Reading) -> Found:
    """Everything that the reader noted, as if the text had been read in one go."""
    document = reading.document
    if not document.is_marked and not reading.open_end:
        return Found([], [], [])
    # (diagnostic, depth): of two at one place the inner one was found first.
    rows: list[tuple[Diag, int]] = []
    trivia: list[Trivium] = []
    doubled: list[Diag] = []
    stack: list[tuple[Branch, int, int]] = [(document, 0, 0)] if document.is_marked else []
    left = MAX_ERRORS
    while stack:
        branch, start, depth = stack.pop()
        own = branch.own
        if own is None:
            continue
        for shift, diag in own.notes:
            rows.append((_moved(text, diag, start - branch.origin + shift), -depth))
        for first, last, seen in own.trivia:
            trivia.append((start + seen, start + first, start + last))
        if own.doubled and left > 0:
            left = _doubled(branch, start, doubled, left)
        if own.marks > own.speaks:
            for i, value in enumerate(branch.values):
                if isinstance(value, Branch) and value.own is not None and value.own.marks:
                    stack.append((value, start + branch.value_start(i), depth + 1))
    trivia.sort()
    if reading.lenient:
        rows += [(_hint(*item), 0) for item in trivia[:MAX_ERRORS]]
    if reading.open_end:
        # A text that ends inside a string or a comment as well says so first.
        inner = next((diag for diag, _ in rows if diag.code == "MF521"), None)
        rows.append((_unclosed(text, document, inner), 1))
    rows.sort(key=_place)
    diagnostics = [diag for diag, _ in rows] + doubled
    if doubled:
        diagnostics.sort(key=_span)
    comments = [(first, last) for seen, first, last in trivia if seen == first]
    return Found(diagnostics, comments, [first for seen, first, _ in trivia if seen > first])


Trivium = tuple[int, int, int]


def _place(row: tuple[Diag, int]) -> tuple[Span, int]:
    return row[0].span, row[1]


def _span(diag: Diag) -> Span:
    return diag.span


def _moved(text: str, diag: Diag, shift: int) -> Diag:
    """A finding at its place in this version of the text."""
    if diag.code == "MF521":
        # What is left open is named with its line, which an edit before it can change.
        start = diag.span[0] + shift
        args: dict[str, str | int] = {**diag.args, "line": text.count("\n", 0, start) + 1}
        return msgspec.structs.replace(diag, span=(start, diag.span[1] + shift), args=args, data={"open": start})
    if not shift:
        return diag
    fix = diag.fix
    if fix is not None:
        edits = tuple(Edit(edit.start + shift, edit.end + shift, edit.new_text) for edit in fix.edits)
        fix = Fix(fix.title, edits, fix.applicability)
    return msgspec.structs.replace(diag, span=(diag.span[0] + shift, diag.span[1] + shift), fix=fix)


def _hint(seen: int, start: int, end: int) -> Diag:
    code, title = ("MF525", "Remove the comment") if seen == start else ("MF526", "Remove the trailing comma")
    return Diag(code, (start, end), severity="hint", fix=Fix(title, (Edit(start, end, ""),)))


def _doubled(branch: Branch, start: int, into: list[Diag], left: int) -> int:
    """A key that an object has twice: the last one counts; each later one is reported."""
    seen: set[str] = set()
    for key, at, shape in zip(branch.keys, branch.starts, branch.shapes, strict=True):
        if key in seen and left > 0:
            width, colon = (len(key) + 2, 0) if isinstance(shape, int) else shape[:2]
            if colon >= 0:
                left -= 1
                into.append(Diag("MF524", (start + at, start + at + width), {"k": key}))
        seen.add(key)
    return left


def _unclosed(text: str, document: Branch, inner: Diag | None) -> Diag:
    """The text ends inside containers: each is the last child of the one around it. ``inner``: inside what the last of them ends."""
    start, branch = 0, document
    kinds: list[str] = []
    while branch.values:
        value = branch.values[-1]
        if not isinstance(value, Branch) or value.closed:
            break
        start, branch = start + branch.value_start(-1), value
        kinds.append(value.kind)
    end, shown = len(text), len(text.rstrip())
    right = "".join("}" if kind == "object" else "]" for kind in reversed(kinds[-64:]))
    closes = len(kinds) <= 64
    if inner is not None:
        # Whatever is written behind a string that is open is part of it.
        tail = text[inner.span[0] :]
        quote = tail[:1] if tail[:1] in ("'", '"') else ""
        closes = closes and bool(quote) and (len(tail) - len(tail.rstrip("\\"))) % 2 == 0
        right = quote + right
    fix = Fix(f"Insert '{right}'", (Edit(end, end, right),), "unsafe") if closes else None
    opener = "{" if branch.kind == "object" else "["
    args: dict[str, str | int] = {"open": f"'{opener}'", "line": text.count("\n", 0, start) + 1}
    return Diag("MF521", (max(shown - 1, 0), shown), args, fix=fix, data={"open": start})
