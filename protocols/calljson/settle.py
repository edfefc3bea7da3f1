"""The last word on a block of JSON calls: errors apply to every call, repairs go to the calls that they touch (ruling 1).

Must not know where the block stood.
"""

from __future__ import annotations

import msgspec

from tamis.protocols.catalogue import severity
from tamis.protocols.model import Block, Diag, Edit


def settle(block: Block) -> Block:
    """The block with its findings sorted and its calls allowed to run or not."""
    diags = _outermost(block.diagnostics)
    failed = block.state != "complete" or any(severity(diag) == "error" for diag in diags)
    if failed:
        if block.state == "complete":
            block.state = "rejected"
        # An edit could settle what the error leaves open.
        diags = [_unsafe(diag) for diag in diags]
    repairs = [diag for diag in diags if diag.repair and severity(diag) != "error"]
    for call in block.calls:
        call.complete = block.state != "truncated"
        call.executable = not failed
        if repairs:
            others = [other.span for other in block.calls if other is not call]
            call.repairs = [d for d in repairs if not any(a <= d.span[0] and d.span[1] <= b for a, b in others)]
    block.diagnostics = sorted(diags, key=lambda diag: diag.span)
    return block


def _unsafe(diag: Diag) -> Diag:
    if diag.fix is None or diag.fix.applicability == "unsafe":
        return diag
    return msgspec.structs.replace(diag, fix=msgspec.structs.replace(diag.fix, applicability="unsafe"))


def _outermost(diags: list[Diag]) -> list[Diag]:
    """Findings whose fix lies inside what another one rewrites keep their words and leave the fix to that one."""
    rewriting = [
        d.fix.edits[0] for d in diags if d.code in ("HM604", "HM605") and d.fix is not None and len(d.fix.edits) == 1
    ]
    whole = [edit for edit in rewriting if edit.new_text[:1] in ("{", "\\")]
    if not whole:
        return diags
    kept: list[Diag] = []
    for diag in diags:
        edits: tuple[Edit, ...] = diag.fix.edits if diag.fix is not None else ()
        inside = any(
            not any(edit is one for one in edits) and edit.start <= one.start and one.end <= edit.end
            for edit in whole
            for one in edits
        )
        kept.append(msgspec.structs.replace(diag, fix=None) if inside else diag)
    return kept
