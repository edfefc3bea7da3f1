"""The sum of the safe fixes of a text: what "repair this block" and ``tool/repair`` apply.

Must not know what a finding means; the readers attach the edits.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence

from tamis.protocols.model import Diag, Edit


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
