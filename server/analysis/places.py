"""Where in a text an offset lies: block, call, parameter. Look-ups by bisection, so that a long text costs no more than a short one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from tamis.protocols.model import Block, Call, Param
from tamis.protocols.positions import Span


def blocks_in(blocks: Sequence[Block], span: Span | None) -> Sequence[Block]:
    """The blocks that touch a span; all without one. Blocks come in the order of the text and never overlap."""
    if span is None:
        return blocks
    first = max(0, bisect_right(blocks, span[0], key=_start) - 1)
    while first < len(blocks) and blocks[first].span[1] < span[0]:
        first += 1
    return blocks[first : bisect_right(blocks, span[1], key=_start)]


def _start(block: Block) -> int:
    return block.span[0]


def block_at(blocks: Sequence[Block], offset: int) -> Block | None:
    """The block that an offset lies in or touches; of two that meet there the later one."""
    found = blocks_in(blocks, (offset, offset))
    return found[-1] if found else None


def calls_at(block: Block, offset: int) -> Iterator[Call]:
    """The calls of a block around an offset, the innermost place first: the calls of a batch may share its lines."""
    for call in block.calls:
        if _holds(call.tool_span, offset):
            yield call
    for call in block.calls:
        if not _holds(call.tool_span, offset) and _holds(call.span, offset):
            yield call
    for call in block.calls:
        if not _holds(call.tool_span, offset) and not _holds(call.span, offset) and param_at(call, offset):
            yield call


def param_at(call: Call, offset: int) -> Param | None:
    """The parameter of a call around an offset."""
    return next((param for param in call.params if _holds(param.span, offset)), None)


def _holds(span: Span, offset: int) -> bool:
    return span[0] <= offset <= span[1]
