"""Folding ranges: blocks, calls, long values and comments of a text; containers and comments of a manifest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from tamis.protocols.jsontext.tree import JsonNode, JsonTree
from tamis.protocols.model import Block, Call
from tamis.protocols.plugins import extras_of
from tamis.protocols.positions import Span
from tamis.server.analysis.kinds import answer
from tamis.server.analysis.snapshot import Snapshot

MAX_FOLDS = 50_000
MAX_SAID = 60


class Fold(msgspec.Struct, frozen=True, gc=False):
    """What can be folded: ``span`` is what disappears, so its first and last line stay visible around it.

    ``last`` says that the line where it ends disappears as well, where only whole lines can. ``text`` stands for it when it is folded. ``depth`` counts the folds around it.
    """

    span: Span
    depth: int
    kind: Literal["", "comment"] = ""
    text: str = ""
    last: bool = False


def folds(snapshot: Snapshot) -> list[Fold]:
    """The folds of a document by place, outer before inner; only those over a line end."""
    find = answer(snapshot, "folds")
    kept: list[Fold] = find(snapshot) if find is not None else []
    kept.sort(key=lambda fold: (fold.span[0], -fold.span[1], fold.depth))
    return list(_without_crossings(kept))[:MAX_FOLDS]


def of_text(snapshot: Snapshot) -> list[Fold]:
    """Blocks, calls and values, as far as they break lines."""
    folds = [fold for block in snapshot.document.blocks for fold in _in_block(snapshot, block)]
    return [fold for fold in folds if _breaks(snapshot.text, fold.span)]


def of_json(snapshot: Snapshot) -> list[Fold]:
    """Objects, lists and comments."""
    tree = snapshot.tree
    return [*_containers(tree), *comment_folds(tree.text, tree.comments)]


def _without_crossings(folds: list[Fold]) -> Iterator[Fold]:
    """The folds but for those that begin in another and end behind it, as a name that is written twice can make them."""
    around: list[int] = []
    for fold in folds:
        while around and around[-1] <= fold.span[0]:
            around.pop()
        if around and fold.span[1] > around[-1]:
            continue
        around.append(fold.span[1])
        yield fold


def _breaks(text: str, span: Span) -> bool:
    return text.find("\n", *span) >= 0 or text.find("\r", *span) >= 0


# Texts


def _in_block(snapshot: Snapshot, block: Block) -> Iterator[Fold]:
    text = snapshot.text
    end = block.close[0] if block.close is not None else block.span[1]
    phrase = ", ".join(dict.fromkeys(call.tool_id for call in block.calls if call.tool_id))
    yield Fold((block.open[1], end), 0, text=_short(phrase), last=block.close is None)
    several = len(block.calls) > 1
    for call in block.calls:
        inside = extras_of(block.protocol).elements and call.shape == "tag"
        span = _call_span(text, call, block)
        if several or inside:
            yield Fold(span, 1, text="" if inside else _short(call.tool_id), last=not inside)
    seen: set[Span] = set()
    for call in block.calls:
        for param in call.params:
            value = param.value
            if param.span in seen or not _breaks(text, param.span):
                continue
            seen.add(param.span)
            yield Fold(_value_span(text, param.span, param.name_span, value.span), 2, text="…", last=True)
    yield from comment_folds(text, [comment.span for comment in block.comments], depth=2)


def _call_span(text: str, call: Call, block: Block) -> Span:
    """What of a call disappears: everything behind the line of its tool, in ACTION up to its closing tag."""
    start, end = call.tool_span[1], call.span[1]
    if extras_of(block.protocol).elements:
        closing = text.rfind("</", start, end)
        opened = text.find(">", start, end)
        if opened >= 0:
            start = opened + 1
        if closing >= start:
            end = closing
    return start, max(start, end)


def _value_span(text: str, param: Span, name: Span, value: Span) -> Span:
    """A value with everything of its parameter behind the line where it begins."""
    start = value[0]
    # A value that begins on the line after its mark folds to the mark.
    before = text[name[1] : start]
    at = min((i for i in (before.find("\n"), before.find("\r")) if i >= 0), default=-1)
    if at >= 0:
        start = name[1] + at
    return start, max(start, param[1])


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_SAID else text[: MAX_SAID - 1] + "…"


def comment_folds(text: str, spans: list[Span], depth: int = 1) -> Iterator[Fold]:
    """Comments over several lines, and runs of comments with nothing but blanks between them."""
    run: list[Span] = []
    for span in [*spans, None]:
        if span is not None and run and not text[run[-1][1] : span[0]].strip():
            run.append(span)
            continue
        if run and _breaks(text, (run[0][0], run[-1][1])):
            line = text[run[0][0] : run[-1][1]].splitlines()[0]
            yield Fold((run[0][0] + len(line), run[-1][1]), depth, "comment", "…", last=True)
        run = [span] if span is not None else []


# JSON


def _containers(tree: JsonTree) -> Iterator[Fold]:
    if tree.root is None:
        return
    text = tree.text
    pending: list[tuple[JsonNode, int]] = [(tree.root, 0)]
    while pending:
        node, depth = pending.pop()
        if node.kind not in ("object", "array"):
            continue
        end = node.end - 1 if node.closed else node.end
        if not _breaks(text, (node.start + 1, end)):
            continue
        yield Fold((node.start + 1, max(node.start + 1, end)), depth, last=not node.closed)
        below = [member.value for member in node.members] if node.kind == "object" else node.items
        pending.extend((part, depth + 1) for part in below if part is not None)
