"""Folds as LSP's folding ranges: whole lines for clients that fold only those, and no more than the client takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from tamis.server.analysis.shown.folding import Fold
from tamis.server.lsp.documents import Document

T = TypeVar("T")


class Wish(msgspec.Struct, frozen=True):
    """What a client can fold; ``limit`` None is no limit."""

    lines_only: bool = False
    limit: int | None = None
    texts: bool = False


def fold_ranges(document: Document, folds: Sequence[Fold], wish: Wish) -> list[dict[str, Any]]:
    """The ranges, by place. Where there are too many, the outermost stay; one line begins at most one range of whole lines."""
    if wish.limit is not None:
        # Most of a long file is never asked for: its places need not be looked up.
        folds = [fold for _, fold in _limited([(fold.depth, fold) for fold in folds], 4 * wish.limit)]
    entries: list[tuple[int, dict[str, Any]]] = []
    begun: set[int] = set()
    for fold in folds:
        entry: dict[str, Any]
        if wish.lines_only:
            first, last = (document.lines.position(offset)[0] for offset in fold.span)
            # The line that closes a fold stays to be seen.
            last = last if fold.last else last - 1
            if last <= first or first in begun:
                continue
            begun.add(first)
            entry = {"startLine": first, "endLine": last}
        else:
            area = document.range(fold.span)
            start, end = area.start, area.end
            if end.line <= start.line:
                continue
            entry = {
                "startLine": start.line,
                "startCharacter": start.character,
                "endLine": end.line,
                "endCharacter": end.character,
            }
        if fold.kind:
            entry["kind"] = fold.kind
        if wish.texts and fold.text:
            entry["collapsedText"] = fold.text
        entries.append((fold.depth, entry))
    return [entry for _, entry in _limited(entries, wish.limit)]


def _limited(entries: list[tuple[int, T]], limit: int | None) -> list[tuple[int, T]]:
    """As many as there may be: whole depths from the outermost on, and of the next one the first."""
    if limit is None or len(entries) <= limit:
        return entries
    room = limit
    counts = Counter(depth for depth, _ in entries)
    whole: set[int] = set()
    part = -1
    for depth in sorted(counts):
        if counts[depth] > room:
            part = depth
            break
        room -= counts[depth]
        whole.add(depth)
    kept: list[tuple[int, T]] = []
    for item in entries:
        if item[0] in whole:
            kept.append(item)
        elif item[0] == part and room > 0:
            room -= 1
            kept.append(item)
    return kept
