"""What becomes of faulty TAM and VCP blocks: the calls that run, and what a reader does wrong with them."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from tamis.protocols.catalogue import severity
from tamis.protocols.model import Call, Document, Edit, ReadOptions
from tamis.protocols.reader import read_text
from tamis.protocols.repair import apply_edits, safe_edits
from tests.protocols.pair_blocks import Rng, Shown, Written, tam_block, vcp_block
from tests.protocols.pair_faults import NOT_TOGETHER, TAM_FAULTS, VCP_FAULTS


def shown(call: Call, text: str) -> Shown:
    """What a call says, with its modifiers."""
    return (
        call.tool_id,
        call.args(text),
        call.step,
        call.on_error,
        call.retry,
        call.request_id,
        call.uris,
        call.type_hints,
        call.meta,
    )


def ran(document: Document, protocol: str) -> list[Shown]:
    """The calls of one protocol that may run; a block whose markers are spoilt can bring a call of another to light."""
    return [shown(call, document.text) for call in document.calls if call.executable and call.protocol == protocol]


def level(calls: list[Shown]) -> list[Any]:
    """Calls compared without what no rule fixes: line ends, and blanks at both ends of a value."""

    def flat(value: Any) -> Any:
        return re.sub(r"\r\n|\r", "\n", value).strip() if isinstance(value, str) else value

    return [
        (
            call[0],
            {name: flat(value) for name, value in call[1].items()},
            *call[2:8],
            {k: flat(v) for k, v in call[8].items()},
        )
        for call in calls
    ]


def mend(text: str, rounds: int = 4, options: ReadOptions | None = None) -> tuple[str, list[list[Edit]]]:
    """The text after all safe edits, and the edits of each round."""
    history: list[list[Edit]] = []
    for _ in range(rounds):
        edits = safe_edits(read_text(text, options=options).diagnostics)
        if not edits:
            break
        history.append(edits)
        text = apply_edits(text, edits)
    return text, history


BUILDERS = {"tam": (tam_block, TAM_FAULTS), "vcp": (vcp_block, VCP_FAULTS)}
WITHOUT_FIX = {
    "TC016",
    "VC323",
    "TC014",
    "TC003",
    "TC060",
    "TM223",
    "TM224",
    "TM230",
    "TM241",
    "TM245",
    "VC304",
    "VC301",
    "VC302",
}
"""Warnings that no safe edit removes, as the catalogue's table says."""


def faulty(protocol: str, seed: int, faults: int = 1) -> tuple[Written, tuple[str, ...]] | None:
    """A block with that many faults, by seed; None where the faults leave nothing that a reader could know."""
    rng = Rng(seed)
    build, table = BUILDERS[protocol]
    written = build(rng)
    names = list(table)
    picked = [names[seed % len(names)], *(rng.choice(names) for _ in range(faults - 1))]
    if len(set(picked)) < len(picked) or frozenset(picked) in NOT_TOGETHER:
        return None
    for name in picked:
        if table[name](rng, written) is False:
            return None
    return written, tuple(picked)


def wrong(protocol: str, seed: int, faults: int = 1) -> tuple[str, ...]:
    """What a reader does wrong with a faulty block, in words; nothing when it reads the same calls or none."""
    found = faulty(protocol, seed, faults)
    if found is None:
        return ()
    written, picked = found
    text = written.text()
    document = read_text(text)
    calls = ran(document, protocol)
    wanted = sorted(written.want, key=lambda call: call[2] or 0)
    problems: list[str] = []
    where = f"{protocol} {seed} {'+'.join(picked)}"
    if calls and level(calls) != level(wanted):
        problems.append(f"{where}: read {calls}, meant {wanted}, from {text!r}")
    problems += [f"{where}: {problem}" for problem in unsound(document, protocol)]
    body = text[: len(text) - len(written.trail)]
    cut = Rng(seed).randrange(max(1, len(body) - len(written.close)))
    if ran(read_text(text[:cut], options=ReadOptions(complete=False)), protocol):
        problems.append(f"{where}: ran when cut off at {cut}")
    return tuple(problems)


def unsound(document: Document, protocol: str, options: ReadOptions | None = None) -> list[str]:
    """What is wrong with the safe edits of a text (P4, P6)."""
    text, calls = document.text, ran(document, protocol)
    problems: list[str] = []
    for block in document.blocks:
        low, high = block.span
        # What unwraps a fence, and what removes a second block, stands around the block.
        problems += [
            f"an edit of {diag.code} reaches out of its block"
            for diag in block.diagnostics
            for edit in (diag.fix.edits if diag.fix is not None and diag.code not in ("TC007", "TC008") else ())
            if not low <= edit.start <= edit.end <= high
        ]
    mended, history = mend(text, options=options)
    if any(a.end > b.start for edits in history for a, b in pairwise(edits)):
        problems.append("edits overlap")
    if len(history) > 3:
        problems.append("more than three rounds of edits")
    after = read_text(mended, options=options)
    if level(ran(after, protocol)) != level(calls):
        problems.append(f"safe edits change {calls} to {ran(after, protocol)} in {text!r}")
    left = [diag.code for diag in after.diagnostics if severity(diag) == "warning" and diag.code not in WITHOUT_FIX]
    if calls and left:
        problems.append(f"{left} stay after the safe edits of {text!r}")
    return problems
