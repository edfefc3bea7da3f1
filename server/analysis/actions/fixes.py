"""Quick fixes: what each finding offers, and all safe ones together."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from itertools import accumulate

from tamis.protocols.catalogue import message
from tamis.protocols.changes import composed
from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.jsontext.tree import JsonTree
from tamis.protocols.model import Edit, Fix
from tamis.protocols.positions import Span
from tamis.server.analysis.answers import Action, Finding
from tamis.server.analysis.diagnostics import MAX_FINDINGS, diagnose, to_finding
from tamis.server.analysis.kinds import MAX_ANALYSED_CHARS, answer
from tamis.server.analysis.manifests import left_to_client
from tamis.server.analysis.navigation.proof import apply
from tamis.server.analysis.snapshot import Snapshot


def quick_fixes(snapshot: Snapshot, span: Span) -> list[Action]:
    """The fixes of the findings that touch ``span``, of those too that the editor's own JSON service tells without a fix."""
    touched = _touched(diagnose(snapshot), span)
    actions = [Action(finding, finding.fix) for finding in touched if finding.fix is not None]
    if (more := answer(snapshot, "fixes")) is not None:
        actions += more(snapshot, span, touched)
    if actions and is_json(snapshot):
        proof = _Proof(snapshot)
        actions = [action for action in actions if proof.is_sound(action)]
    return actions


def _touched(findings: list[Finding], span: Span) -> list[Finding]:
    return [finding for finding in findings if finding.span[0] <= span[1] and span[0] <= finding.span[1]]


def of_manifest(snapshot: Snapshot, span: Span, touched: list[Finding]) -> list[Action]:
    """What findings of a manifest offer beside their own fixes, also those that the editor's JSON service tells."""
    findings = _touched([to_finding(diag) for diag in left_to_client(snapshot)], span)
    actions = [Action(finding, finding.fix) for finding in findings if finding.fix is not None]
    return actions + (_mendings(snapshot, touched + findings) if touched or findings else [])


def of_text(snapshot: Snapshot, _span: Span, touched: list[Finding]) -> list[Action]:
    """For a block that is set aside, the fix that takes it out of its context; only a person can know that it is meant."""
    aside = {finding.span: finding for finding in touched if finding.code in ("TC017", "TC018")}
    if not aside:
        return []
    from tamis.protocols.live import made_live

    blocks = [block for block in snapshot.document.blocks if block.aside and block.open in aside][:MAX_MADE_LIVE]
    fixes = [(aside[block.open], made_live(snapshot.document, block, snapshot.read)) for block in blocks]
    return [Action(finding, fix) for finding, fix in fixes if fix is not None]


def _mendings(snapshot: Snapshot, touched: list[Finding]) -> list[Action]:
    """What findings of a manifest offer that needs a look around them; behind the fixes that they bring."""
    from tamis.server.analysis.actions.mending import Mender

    mender = Mender(snapshot)
    by_diagnostic = {(finding.code, finding.span, finding.message): finding for finding in touched}
    actions: list[Action] = []
    for diag in snapshot.manifest.diagnostics:
        finding = by_diagnostic.get((diag.code, diag.span, message(diag)))
        if finding is not None:
            actions += [Action(finding, fix) for fix in mender.mendings(diag)]
    return actions


def is_json(snapshot: Snapshot) -> bool:
    """Whether a document is a JSON text that is analysed."""
    return (
        snapshot.kind != "plugin"
        and snapshot.path.endswith((".json", ".jsonc"))
        and (len(snapshot.text) <= MAX_ANALYSED_CHARS)
    )


class _Proof:
    """Whether fixes leave half-typed JSON no worse than it is, and those of its syntax better: behind a broken part nothing stands where it
    seems to. Of what touches a broken place nobody knows where it ends."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._text = snapshot.text
        broken = sorted(broken_places(snapshot.tree))
        self.faults = len(broken)
        self._starts = [start for start, _ in broken]
        self._ends = list(accumulate((end for _, end in broken), max))
        self._left = min(MAX_PROVED_CHARS, MAX_PROVED * len(self._text))

    def is_sound(self, action: Action) -> bool:
        """Whether a fix may be offered. Behind the bound on what is tried out one of the syntax is, and no other."""
        if not self.faults:
            return True
        syntax = action.finding.code in SYNTAX
        if not syntax and any(edit.start < edit.end and self._touches(edit) for edit in action.fix.edits):
            return False
        if self._left < len(self._text):
            return syntax
        self._left -= len(self._text)
        after = faults(parse_json(apply(self._text, action.fix.edits)))
        return after < self.faults or (after == self.faults and not syntax)

    def _touches(self, edit: Edit) -> bool:
        before = bisect_right(self._starts, edit.end)
        return before > 0 and self._ends[before - 1] >= edit.start


MAX_ROUNDS = 10
MAX_FIXED = 10_000
"""Findings of a document whose safe fixes are made together."""
MAX_MADE_LIVE = 4
"""Blocks of a selection for which it is tried out how they would run."""
MAX_PROVED = 64
"""So many fixes of a broken text are tried out before they are offered."""
MAX_PROVED_CHARS = 1_000_000
"""How much broken text is read again to try out fixes before they are offered."""
SYNTAX = frozenset(("MF520", "MF521", "MF522", "MF523"))


def faults(tree: JsonTree) -> int:
    """How many places of a text are no JSON."""
    return len(broken_places(tree))


def broken_places(tree: JsonTree) -> list[Span]:
    """The places of a text that are no JSON."""
    return [diag.span for diag in tree.diagnostics if diag.code in SYNTAX]


def fix_all(snapshot: Snapshot) -> tuple[Edit, ...]:
    """The edits of all safe fixes, sorted and disjoint, until none is left: asked again of the text that they leave, it gives none.
    Also those of findings that are too many to be shown; of more than ``MAX_FIXED`` in one document those of the gravest.

    What reading a text found is repaired as ``tool/repair`` does it: read again, the text makes the same calls (P4).
    """
    edits = _fix_once(snapshot)
    if not edits:
        return ()
    seen = {snapshot.text}
    here = snapshot.with_text(apply(snapshot.text, edits))
    # A fix may overlap another, or bring to light what can be fixed as well.
    for _ in range(MAX_ROUNDS):
        more = _fix_once(here)
        if not more or here.text in seen:
            break
        seen.add(here.text)
        edits = tuple(composed(snapshot.text, edits, more))
        here = here.with_text(apply(here.text, more))
    return edits


def _fix_once(snapshot: Snapshot) -> tuple[Edit, ...]:
    """The edits of the safe fixes of what is found now; of two that overlap the first counts."""
    findings = diagnose(snapshot)
    if len(findings) >= MAX_FINDINGS:
        findings = diagnose(snapshot, MAX_FIXED)
    chosen: list[Edit] = []
    known: set[int] = set()
    if snapshot.kind == "text" and any(_is_safe(finding.fix) for finding in findings):
        from tamis.protocols.repair import mended

        chosen.extend(mended(snapshot.document, snapshot.read).edits)
        known = {id(diag.fix) for diag in snapshot.document.diagnostics}
    proof = _Proof(snapshot) if is_json(snapshot) else None
    taken = _Taken(chosen)
    for finding in findings:
        if finding.fix is None or not _is_safe(finding.fix) or id(finding.fix) in known:
            continue
        if proof is not None and not proof.is_sound(Action(finding, finding.fix)):
            continue
        if not any(map(taken.overlaps, finding.fix.edits)):
            taken.add(finding.fix.edits)
    edits = tuple(taken.edits)
    if proof is None or not proof.faults:
        return edits
    # Each alone mends the syntax; all together must, too.
    return () if faults(parse_json(apply(snapshot.text, edits))) > proof.faults else edits


class _Taken:
    """Edits that do not overlap, in order."""

    def __init__(self, edits: Iterable[Edit]) -> None:
        self.edits = sorted(edits, key=_place)

    def overlaps(self, edit: Edit) -> bool:
        """Whether an edit changes what one of them changes; two insertions at one place do."""
        at = bisect_left(self.edits, edit.end, key=_start)
        if at and self.edits[at - 1].end > edit.start:
            return True
        return edit.start == edit.end and any(
            other.start == other.end == edit.start for other in self.edits[max(0, at - 1) : at + 1]
        )

    def add(self, edits: Iterable[Edit]) -> None:
        """Takes edits that do not overlap the others."""
        for edit in edits:
            insort(self.edits, edit, key=_place)


def _place(edit: Edit) -> Span:
    return edit.start, edit.end


def _start(edit: Edit) -> int:
    return edit.start


def _is_safe(fix: Fix | None) -> bool:
    return fix is not None and fix.applicability == "safe"
