"""The sum of the safe fixes of a text: what "repair this block" and ``tool/repair`` apply.

A repair keeps every call as it was read (P4): ``mended`` reads the text again after each round of edits and takes back what
would change one. Must not know what a finding means; the readers attach the edits.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence

import msgspec

from tamis.protocols.model import Call, Diag, Document, Edit

ROUNDS = 4
"""Edits that overlap wait for the next round; three are enough for anything seen, and the last one shows that it is."""
_MAX_APART = 32


class Repair(msgspec.Struct, frozen=True):
    """A text with its safe edits applied: ``edits`` turn the text that was given into ``document.text``."""

    edits: tuple[Edit, ...]
    document: Document


def safe_edits(diagnostics: Iterable[Diag]) -> list[Edit]:
    """Every edit of every safe fix, sorted, disjoint and each once.

    Where two fixes insert at one place, that of the inner construct comes first (it begins later in the text). Of two fixes
    that overlap, the one of the earlier finding is taken; the other stays for the next time.
    """
    found: list[tuple[int, int, int, str]] = []
    taken: set[tuple[int, int, str]] = set()
    for diag in diagnostics:
        if diag.fix is None or diag.fix.applicability != "safe":
            continue
        new = [edit for edit in diag.fix.edits if (edit.start, edit.end, edit.new_text) not in taken]
        if any(_overlaps(edit, found) for edit in new):
            continue
        for edit in new:
            taken.add((edit.start, edit.end, edit.new_text))
            insort(found, (edit.start, edit.end, -diag.span[0], edit.new_text))
    return [Edit(start, end, text) for start, end, _, text in found]


def mended(document: Document, read: Callable[[str], Document]) -> Repair:
    """Applies safe edits until none is left; the calls stay what they are.

    ``read`` reads a text as ``document`` was read. Edits that would change a call are left out, block by block.
    """
    wanted = [says(call, document.text) for call in document.calls]
    length = len(document.text)
    pieces: list[tuple[int, int] | str] = [(0, length)]
    for _ in range(ROUNDS):
        edits = safe_edits(document.diagnostics)
        if not edits:
            break
        after = read(apply_edits(document.text, edits))
        if [says(call, after.text) for call in after.calls] != wanted:
            edits, after = _apart(document, edits, wanted, read)
            if not edits:
                break
        pieces = _edited(pieces, edits)
        document = after
    return Repair(tuple(_composed(pieces, length)), document)


def says(call: Call, text: str) -> tuple[object, ...]:
    """What a call says, without its places and findings."""
    return (
        call.protocol,
        call.tool_id,
        call.args(text),
        call.step,
        call.on_error,
        call.retry,
        call.request_id,
        call.uris,
        call.type_hints,
        call.meta,
        call.complete,
        call.executable,
    )


def _apart(
    document: Document, edits: list[Edit], wanted: list[tuple[object, ...]], read: Callable[[str], Document]
) -> tuple[list[Edit], Document]:
    """The edits of those blocks whose repair keeps every call; none when there are too many blocks to try."""
    groups: list[list[Edit]] = []
    taken: set[int] = set()
    for block in document.blocks:
        inside = [
            i for i, e in enumerate(edits) if block.span[0] <= e.start and e.end <= block.span[1] and i not in taken
        ]
        taken.update(inside)
        groups.append([edits[i] for i in inside])
    kept: list[Edit] = []
    result = document
    for group in groups if len(groups) <= _MAX_APART else []:
        if not group:
            continue
        tried = sorted([*kept, *group], key=lambda edit: (edit.start, edit.end))
        after = read(apply_edits(document.text, tried))
        if [says(call, after.text) for call in after.calls] == wanted:
            kept, result = tried, after
    return kept, result


def _edited(pieces: list[tuple[int, int] | str], edits: Sequence[Edit]) -> list[tuple[int, int] | str]:
    """A text made of stretches of the first one and inserted ones, after another round of edits."""
    out: list[tuple[int, int] | str] = []
    rest = list(reversed(pieces))
    at = 0

    def take(length: int, *, keep: bool) -> None:
        nonlocal at
        at += length
        while length > 0:
            piece = rest.pop()
            size = len(piece) if isinstance(piece, str) else piece[1] - piece[0]
            used = min(size, length)
            length -= used
            head = piece[:used] if isinstance(piece, str) else (piece[0], piece[0] + used)
            if used < size:
                rest.append(piece[used:] if isinstance(piece, str) else (piece[0] + used, piece[1]))
            if keep:
                out.append(head)

    for edit in edits:
        take(edit.start - at, keep=True)
        take(edit.end - edit.start, keep=False)
        if edit.new_text:
            out.append(edit.new_text)
    out.extend(reversed(rest))
    return out


def _composed(pieces: list[tuple[int, int] | str], length: int) -> list[Edit]:
    """The edits of the first text, of that length, that give what the pieces say."""
    edits: list[Edit] = []
    at = 0
    new: list[str] = []
    for piece in [*pieces, (length, length)]:
        if isinstance(piece, str):
            new.append(piece)
            continue
        if new or piece[0] > at:
            edits.append(Edit(at, piece[0], "".join(new)))
            new = []
        at = piece[1]
    return edits


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """``text`` with sorted, disjoint edits applied."""
    parts: list[str] = []
    at = 0
    for edit in edits:
        parts.append(text[at : edit.start])
        parts.append(edit.new_text)
        at = edit.end
    parts.append(text[at:])
    return "".join(parts)


def _overlaps(edit: Edit, found: list[tuple[int, int, int, str]]) -> bool:
    i = bisect_left(found, (edit.start,))
    if i > 0 and found[i - 1][1] > edit.start:
        return True
    while i < len(found) and found[i][0] < edit.end:
        if found[i][0] > edit.start or found[i][1] > edit.start:
            return True
        i += 1
    return False
