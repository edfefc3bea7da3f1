"""Edits that take a block out of what hides it: a code fence around it (TC008), HTML escapes (TC010).

Must not know how a block is read.
"""

from __future__ import annotations

from tamis.protocols.base import Source
from tamis.protocols.context import Fence
from tamis.protocols.model import Block, Edit, Fix
from tamis.protocols.patterns import lazy

_ESCAPED_CLOSE = lazy(r"&lt;(?:/ACTION|\|\[END_TOOL\]\||&lt;&lt;\[END_TOOL_REQUEST\]&gt;&gt;)&gt;")
_MAX_ESCAPED = 20_000
_MAX_FENCE_LINE = 300
_BLANK = " \t\r\n"


def unwrapped(text: str, fence: Fence, block: Block) -> Fix | None:
    """The removal of both lines of a fence that holds one block and nothing else."""
    if len(fence.blocks) != 1 or not fence.closed or fence.other:
        return None
    start, end = block.span
    above = text[max(0, start - _MAX_FENCE_LINE) : start]
    top = above.rstrip(_BLANK)
    line = max(top.rfind("\n"), top.rfind("\r")) + 1
    below = text[end : end + _MAX_FENCE_LINE]
    close = len(below) - len(below.lstrip(_BLANK))
    if not top[line:].lstrip(" \t\ufeff\u3000").startswith(fence.mark) or not below.startswith(fence.mark, close):
        return None
    bare = top[line:].lstrip("\ufeff")
    first = start - len(above) + line + len(top[line:]) - len(bare)
    rest = below[close + len(fence.mark) :]
    left = rest.lstrip(fence.mark[0])
    if left.lstrip(" \t")[:1] not in ("", "\r", "\n"):
        # No closing line of a fence: its text would stand behind the block.
        return None
    stop = end + close + len(fence.mark) + len(rest) - len(left)
    return Fix("Remove the code fence", (Edit(first, start, ""), Edit(end, stop, "")))


def unescaped(source: Source, start: int, end: int) -> Fix | None:
    """The block whose escaped opening marker stands at ``start``, with its escapes decoded once; for a person to decide."""
    text = source.text
    close = source.next_token(_ESCAPED_CLOSE, end, len(text))
    done = source.memo.get("unescaped", 0)
    # Each stretch is decoded once, however many escaped openers stand in it.
    if close is None or close[1] - start > _MAX_ESCAPED or not isinstance(done, int) or start < done:
        return None
    source.memo["unescaped"] = close[1]
    from html import unescape

    return Fix("Decode the HTML escapes", (Edit(start, close[1], unescape(text[start : close[1]])),), "unsafe")
