"""Linked editing: the names of an ACTION element's opening and closing tag, which change together.

Looks at the block around the cursor alone, so it works while the block is being typed. Two tags that do not have the same name are
not linked. Must not know tools.
"""

from __future__ import annotations

import re

from tamis.protocols.positions import Span
from tamis.server.analysis.snapshot import Snapshot

MAX_BLOCK_CHARS = 256 * 1024
WORD = r"[^\s<>/\"'`=][^\s<>\"'`=]*"
"""What a tag's name may be, ids like ``core:x`` and ``workflows/skills/x.json`` among them."""

_OPEN = re.compile(r"(?i:<action\s{0,8}>)")
_CLOSE = re.compile(r"(?i:</\s{0,8}action\s{0,8}>)")
_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<(?P<slash>/?)(?P<name>[^\s<>/!?\"'`=][^\s<>\"'`=]{0,255}?)(?:\s[^<>]{0,1024})?(?P<empty>/)?>",
    re.S,
)


def linked_names(snapshot: Snapshot, offset: int) -> tuple[Span, Span] | None:
    """The two places that change together with the name at an offset, or None."""
    if snapshot.kind != "text":
        return None
    text = snapshot.text
    block = _block(text, offset)
    if block is None:
        return None
    stack: list[tuple[str, Span]] = []
    for match in _TOKEN.finditer(text, *block):
        name = match["name"]
        if name is None or match["empty"]:
            continue
        span = match.span("name")
        if not match["slash"]:
            stack.append((name, span))
            continue
        at = next((i for i in range(len(stack) - 1, -1, -1) if stack[i][0] == name), -1)
        if at < 0:
            continue
        opened = stack[at][1]
        del stack[at:]
        if _touches(opened, offset) or _touches(span, offset):
            return opened, span
        if match.start() > offset and not any(_touches(one, offset) for _, one in stack) and not _before(stack, offset):
            return None
    return None


def _before(stack: list[tuple[str, Span]], offset: int) -> bool:
    return any(span[0] <= offset for _, span in stack)


def _touches(span: Span, offset: int) -> bool:
    return span[0] <= offset <= span[1]


def _block(text: str, offset: int) -> Span | None:
    """The ACTION block around an offset, its markers included."""
    floor, ceiling = max(0, offset - MAX_BLOCK_CHARS), min(len(text), offset + MAX_BLOCK_CHARS)
    start = None
    for match in _OPEN.finditer(text, floor, min(ceiling, offset + 16)):
        if match.start() <= offset:
            start = match.start()
    if start is None:
        return None
    close = _CLOSE.search(text, start, ceiling)
    end = close.end() if close is not None else ceiling
    return (start, end) if offset <= end else None
