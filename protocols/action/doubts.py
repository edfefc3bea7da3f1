"""What only all findings of a block together can tell: guesses that are each likely alone and doubtful side by side.

Must not know how a finding is made.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from tamis.protocols.action.findings import Findings
from tamis.protocols.model import Call, Diag

_MAX_SHARED = 64
_MAX_NOISE = 400
_GUESSED = frozenset({"AX102", "AX103", "AX104", "AX105", "AX106", "AX132"})
"""Findings about which tag was meant."""
_SPELLING = frozenset({"TC004", "TC013", "AX107", "AX122", "AX131", "AX153", "AX154", "AX158", "AX159"})
"""Findings whose edits change how a mark is spelled and nothing else."""


def settle_doubts(text: str, findings: Findings, calls: Sequence[Call]) -> None:
    """Makes an error of what has more than one reading (ruling 1)."""
    found = findings.list
    codes = {diag.code for diag in found}
    if not codes & _GUESSED:
        return
    noise = [text[slice(*diag.span)][:_MAX_NOISE] for diag in found if diag.code == "TC011"]
    ids = [call.tool_id for call in calls[:_MAX_SHARED]]
    # A tool with a parameter of its own name: one of the two tags may be the other's. The same with a tool that is empty.
    twice = any(call.shape == "tag" and call.param(call.tool_id) is not None for call in calls) or (
        "AX103" in codes and any(not call.params and ids.count(call.tool_id) > 1 for call in calls[:_MAX_SHARED])
    )
    empty: set[int] = set()
    if noise:
        # Text beside a parameter without any: it may be its value.
        empty = {p.span[0] for call in calls for p in call.params if p.value.kind == "text" and not p.value.pieces}
    for i, diag in enumerate(found):
        if diag.code not in _GUESSED:
            continue
        lost = diag.code == "AX102" and diag.span[0] in empty
        if diag.code == "AX105":
            # A stray closing tag whose name stands in the noise: its opening tag was misspelled.
            name = str(diag.args.get("name"))
            lost = any(name in part for part in noise)
        if twice or lost:
            found[i] = replace(diag, severity="error", repair=False)


def report_dashes(text: str, findings: Findings) -> None:
    """``--`` in a comment, which XML forbids and nothing depends on (AX124)."""
    for comment in findings.comments[:_MAX_SHARED]:
        start, end = comment.span[0] + 4, comment.span[1] - 3
        at = text.find("--", start, end)
        if at < 0 and text.endswith("-", start, end):
            at = end - 1
        if at >= 0:
            findings.list.append(Diag("AX124", (at, min(at + 2, end))))


def leave_to_a_person(findings: Findings) -> None:
    """Makes unsafe what would settle, in a block with an error, what the error leaves open (P4)."""
    for i, diag in enumerate(findings.list):
        fix = diag.fix
        if fix is not None and fix.applicability == "safe" and diag.code not in _SPELLING:
            findings.list[i] = replace(diag, fix=replace(fix, applicability="unsafe"))
