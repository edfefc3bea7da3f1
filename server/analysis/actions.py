"""Quick fixes: what each finding offers, and all safe ones together."""

from __future__ import annotations

from tamis.protocols.model import Edit, Fix
from tamis.protocols.positions import Span
from tamis.server.analysis.answers import Action
from tamis.server.analysis.diagnostics import diagnose
from tamis.server.analysis.snapshot import Snapshot


def quick_fixes(snapshot: Snapshot, span: Span) -> list[Action]:
    """The fixes of the findings that touch ``span``."""
    return [
        Action(finding, finding.fix)
        for finding in diagnose(snapshot)
        if finding.fix is not None and finding.span[0] <= span[1] and span[0] <= finding.span[1]
    ]


def fix_all(snapshot: Snapshot) -> tuple[Edit, ...]:
    """The edits of all safe fixes, sorted and disjoint; of two that overlap the first counts, the other stays for the next time.

    What reading a text found is repaired as ``tool/repair`` does it: read again, the text makes the same calls (P4).
    """
    findings = diagnose(snapshot)
    chosen: list[Edit] = []
    known: set[int] = set()
    if snapshot.kind == "text" and any(_is_safe(finding.fix) for finding in findings):
        from tamis.protocols.repair import mended

        chosen.extend(mended(snapshot.document, snapshot.read).edits)
        known = {id(diag.fix) for diag in snapshot.document.diagnostics}
    for finding in findings:
        if finding.fix is None or not _is_safe(finding.fix) or id(finding.fix) in known:
            continue
        edits = finding.fix.edits
        if not any(_overlap(edit, other) for edit in edits for other in chosen):
            chosen.extend(edits)
    return tuple(sorted(chosen, key=lambda edit: (edit.start, edit.end)))


def _is_safe(fix: Fix | None) -> bool:
    return fix is not None and fix.applicability == "safe"


def _overlap(one: Edit, two: Edit) -> bool:
    if one.start == one.end == two.start == two.end:
        return True
    return one.start < two.end and two.start < one.end
