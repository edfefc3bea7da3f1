"""The sum of the safe fixes of a text: what "repair this block" and ``tool/repair`` apply.

Must not know what a finding means; the readers attach the edits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tamis.protocols.model import Diag, Edit


def safe_edits(diagnostics: Iterable[Diag]) -> list[Edit]:
    """Every edit of every safe fix, sorted, disjoint and each once.

    Where two fixes insert at one place, that of the inner construct comes first (it begins later in the text). Of two fixes
    that overlap, the one of the earlier finding is taken; the other stays for the next time.
    """
    found: list[tuple[int, int, int, str]] = []
    taken: dict[tuple[int, int, str], None] = {}
    for diag in diagnostics:
        if diag.fix is None or diag.fix.applicability != "safe":
            continue
        if any(_overlaps(edit, found) for edit in diag.fix.edits if (edit.start, edit.end, edit.new_text) not in taken):
            continue
        for edit in diag.fix.edits:
            key = (edit.start, edit.end, edit.new_text)
            if key not in taken:
                taken[key] = None
                found.append((edit.start, edit.end, -diag.span[0], edit.new_text))
    found.sort(key=lambda item: item[:3])
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
    return any(edit.start < end and start < edit.end for start, end, _, _ in found)
