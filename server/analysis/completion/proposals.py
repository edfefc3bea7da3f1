"""Completion: what may stand at an offset of a document, whatever its kind."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from tamis.server.analysis.answers import Proposal, Proposals
from tamis.server.analysis.kinds import answer
from tamis.server.analysis.snapshot import Snapshot

MAX_PROPOSALS = 500


def complete(snapshot: Snapshot, offset: int) -> Proposals:
    """Proposals at a code-point offset, best first and at most 500; empty where nothing is known to belong.

    Long documentation is left out: ``documentation_of`` words it for those that are looked at.
    """
    propose = answer(snapshot, "complete")
    items: list[Proposal] = propose(snapshot, offset) if propose is not None else []
    cut = len(items) > MAX_PROPOSALS
    if cut:
        items = _fitting(snapshot.text, offset, items)
    return Proposals(tuple(_ranked(item, index) for index, item in enumerate(items[:MAX_PROPOSALS])), cut)


def _ranked(item: Proposal, index: int) -> Proposal:
    # Without a tab stop the plain text says the same.
    snippet = item.snippet if "$" in item.snippet else ""
    sort = item.sort or f"{index:04}"
    if sort == item.sort and snippet == item.snippet:
        return item
    return msgspec.structs.replace(item, sort=sort, snippet=snippet)


def _fitting(text: str, offset: int, items: list[Proposal]) -> list[Proposal]:
    """Of too many proposals first those that hold what is typed; the order stays."""
    fitting: list[Proposal] = []
    others: list[Proposal] = []
    for item in items:
        typed = text[item.span[0] : offset].strip("\"'").casefold() if item.span[0] <= offset else ""
        fits = typed in (item.filter or item.label).casefold() or typed in item.label.casefold()
        (fitting if fits else others).append(item)
    return fitting + others


def documentation_of(item: Proposal) -> str:
    """What there is to say about a proposal, as Markdown; empty for nothing."""
    subject: Any = item.subject
    if item.documentation or subject is None:
        return item.documentation
    from tamis.server.analysis.describe import describe_schema, describe_tool

    if isinstance(subject, dict):
        schema = cast("dict[str, Any]", subject)
        said: Any = schema.get("markdownDescription")
        return describe_schema({**schema, "description": said} if isinstance(said, str) else schema)
    return describe_tool(subject)
