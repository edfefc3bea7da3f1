"""Quick fixes: what each finding offers, and all safe ones together."""

from __future__ import annotations

from tamis.protocols.catalogue import message
from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.jsontext.tree import JsonTree
from tamis.protocols.model import Edit, Fix
from tamis.protocols.positions import Span
from tamis.server.analysis.answers import Action, Finding
from tamis.server.analysis.diagnostics import diagnose, to_finding
from tamis.server.analysis.manifests import left_to_client
from tamis.server.analysis.navigation.proof import apply
from tamis.server.analysis.snapshot import MAX_ANALYSED_CHARS, Snapshot


def quick_fixes(snapshot: Snapshot, span: Span) -> list[Action]:
    """The fixes of the findings that touch ``span``, of those too that the editor's own JSON service tells without a fix."""
    findings = diagnose(snapshot)
    if snapshot.kind == "manifest" and len(snapshot.text) <= MAX_ANALYSED_CHARS:
        findings += [to_finding(diag) for diag in left_to_client(snapshot)]
    touched = [finding for finding in findings if finding.span[0] <= span[1] and span[0] <= finding.span[1]]
    found = [Action(finding, finding.fix) for finding in touched if finding.fix is not None]
    if touched and snapshot.kind == "manifest" and len(snapshot.text) <= MAX_ANALYSED_CHARS:
        found += _mendings(snapshot, touched)
        found = [action for action in found if _is_sound(snapshot, action)]
    return found


def _mendings(snapshot: Snapshot, touched: list[Finding]) -> list[Action]:
    """What findings of a manifest offer that needs a look around them; behind the fixes that they bring."""
    from tamis.server.analysis.actions.mending import mendings

    said = {(finding.code, finding.span, finding.message): finding for finding in touched}
    found: list[Action] = []
    for diag in snapshot.manifest.diagnostics:
        finding = said.get((diag.code, diag.span, message(diag)))
        if finding is not None:
            found += [Action(finding, fix) for fix in mendings(snapshot, diag)]
    return found


def _is_sound(snapshot: Snapshot, action: Action) -> bool:
    """Whether a fix leaves half-typed JSON no worse than it is: behind a broken part nothing stands where it seems to."""
    before = faults(snapshot.manifest.tree)
    if not before or action.finding.code in SYNTAX:
        return True
    if len(snapshot.text) > MAX_PROVED_CHARS:
        return False
    return faults(parse_json(apply(snapshot.text, action.fix.edits))) <= before


MAX_PROVED_CHARS = 200_000
"""The largest broken text in which fixes are tried out before they are offered."""
SYNTAX = frozenset(("MF520", "MF521", "MF522", "MF523"))


def faults(tree: JsonTree) -> int:
    """How many places of a text are no JSON."""
    return sum(diag.code in SYNTAX for diag in tree.diagnostics)


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
