"""Completion: what may stand at an offset of a document, whatever its kind."""

from __future__ import annotations

from tamis.server.analysis.answers import Proposals
from tamis.server.analysis.snapshot import MAX_ANALYSED_CHARS, Snapshot


def complete(snapshot: Snapshot, offset: int) -> Proposals:
    """Proposals at a code-point offset; empty where nothing is known to belong."""
    if len(snapshot.text) > MAX_ANALYSED_CHARS:
        return Proposals()
    if snapshot.kind == "text":
        from tamis.server.analysis.text_completion import propose_in_text

        return propose_in_text(snapshot, offset)
    if snapshot.kind in ("manifest", "profile"):
        from tamis.server.analysis.json_completion import propose_in_json

        return propose_in_json(snapshot, offset)
    return Proposals()
