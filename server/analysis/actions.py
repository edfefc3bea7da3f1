"""Quick fixes: what each finding offers, and all safe ones together."""

from __future__ import annotations

from tamis.protocols.model import Edit
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
    """The edits of all safe fixes, sorted and disjoint; of two that overlap the first counts, the other stays for the next time."""
    chosen: list[Edit] = []
    for finding in diagnose(snapshot):
        if finding.fix is None or finding.fix.applicability != "safe":
            continue
        edits = finding.fix.edits
        if not any(_overlap(edit, other) for edit in edits for other in chosen):
            chosen.extend(edits)
    return tuple(sorted(chosen, key=lambda edit: (edit.start, edit.end)))


def _overlap(one: Edit, two: Edit) -> bool:
    if one.start == one.end == two.start == two.end:
        return True
    return one.start < two.end and two.start < one.end
