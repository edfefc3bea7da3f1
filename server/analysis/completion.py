"""Completion: what may stand at an offset of a document, whatever its kind."""

from __future__ import annotations

import msgspec

from tamis.server.analysis.answers import Proposal, Proposals
from tamis.server.analysis.snapshot import MAX_ANALYSED_CHARS, Snapshot

MAX_PROPOSALS = 500


def complete(snapshot: Snapshot, offset: int) -> Proposals:
    """Proposals at a code-point offset, best first and at most 500; empty where nothing is known to belong."""
    if len(snapshot.text) > MAX_ANALYSED_CHARS:
        return Proposals()
    items: list[Proposal] = []
    if snapshot.kind == "text":
        from tamis.server.analysis.text_completion import propose_in_text

        items = propose_in_text(snapshot, offset)
    elif snapshot.kind in ("manifest", "profile"):
        from tamis.server.analysis.json_completion import propose_in_json

        items = propose_in_json(snapshot, offset)
    ranked = [
        item if item.sort else msgspec.structs.replace(item, sort=f"{index:04}")
        for index, item in enumerate(items[:MAX_PROPOSALS])
    ]
    return Proposals(tuple(ranked), len(items) > MAX_PROPOSALS)
