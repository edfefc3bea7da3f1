"""What surrounds a block: reasoning, code fences and inline code, followed from left to right.

The reader feeds it the tokens outside blocks; it says whether a place is reasoning, an example or quoted (rulings 5, 6, 7).
Must not know how any protocol is written.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from tamis.protocols.base import Source
from tamis.protocols.model import Block

THINK = r"</?+(?i:think(?:ing)?)(?:\s[^<>]*+)?>"
THINK_CLOSE = re.compile(r"</(?i:think(?:ing)?)(?:\s[^<>]*+)?>")
_TICKS = re.compile(r"`++")
_TICKS_OR_END = re.compile(r"`++|[\r\n]")
_BLANK = " \t\r\n\f\v\u3000\u00a0\u200b\u200c\u200d\u2060\ufeff"
_MAX_FENCE_INDENT = 200
_MAX_LINE = 2_000
"""Characters that a fence's line and inline code may have: in a text that is still coming, both are known that soon."""


class Fence:
    """One code fence: its marker and whether anything but blocks stands in it."""

    __slots__ = ("blocks", "closed", "depth", "mark", "other", "seen")

    def __init__(self, mark: str, content: int, depth: int) -> None:
        self.mark = mark
        self.depth = depth
        """The reasoning depth at which it was opened."""
        self.seen = content
        self.other = False
        self.closed = False
        self.blocks: list[Block] = []

    @property
    def wrapper(self) -> bool:
        """True when the fence holds nothing but blocks (ruling 7)."""
        return not self.other


class Context:
    """The state of one left-to-right pass over the text outside blocks."""

    def __init__(self, source: Source) -> None:
        self._text = source.text
        self._source = source
        self._runs: dict[int, list[int]] | None = None
        self.depth = 0
        self.fence: Fence | None = None
        self.fence_of: dict[int, Fence] = {}
        """The fence around a block, by the block's start."""

    def think(self, start: int, end: int) -> bool:
        """Takes a reasoning tag; False for a closing tag that closes nothing (F12)."""
        if self._text[start + 1] != "/":
            if self.fence is None and self._text[end - 2] != "/":
                self.depth += 1
            return True
        if self.depth == 0:
            return False
        if self.fence is not None:
            if self.fence.depth == 0:
                return True
            self._end_fence(start)
        self.depth -= 1
        return True

    def run(self, start: int, end: int) -> int:
        """Takes a run of backticks or tildes; returns where the pass goes on (behind inline code, behind a fence's line)."""
        text = self._text
        mark = text[start:end]
        if len(mark) >= 3 and self._first_on_line(start):
            line_end = self._line_end(end)
            rest = text[end:line_end]
            if self.fence is not None:
                if self._may_close(mark) and line_end < end + _MAX_LINE and not rest.strip():
                    self.fence.closed = True
                    self._end_fence(start)
                return end
            if line_end < end + _MAX_LINE and (mark[0] == "~" or "`" not in rest):
                self.fence = Fence(mark, line_end, self.depth)
                return end
        if self.fence is not None or mark[0] == "~":
            return end
        return self._code_span(start, end)

    def waits(self, start: int, end: int) -> bool:
        """Whether what ``run`` says of a run of backticks or tildes hangs on text that is still to come."""
        text, fence = self._text, self.fence
        if end == len(text):
            return True
        mark = text[start:end]
        if len(mark) >= 3 and self._first_on_line(start):
            line_end = self._line_end(end)
            if line_end == len(text) < end + _MAX_LINE:
                rest = text[end:]
                if fence is not None:
                    return self._may_close(mark) and not rest.strip()
                if mark[0] == "~" or "`" not in rest:
                    return True
            elif fence is not None or (
                line_end < end + _MAX_LINE and (mark[0] == "~" or "`" not in text[end:line_end])
            ):
                return False
        if fence is not None or mark[0] == "~":
            return False
        for other in _TICKS_OR_END.finditer(text, end):
            if text[other.start()] != "`" or other.start() - end >= _MAX_LINE:
                return False
            if other.end() == len(text):
                return True
            if other.end() - other.start() == end - start:
                return False
        return len(text) < end + _MAX_LINE

    def _may_close(self, mark: str) -> bool:
        fence = self.fence
        return fence is not None and mark[0] == fence.mark[0] and len(mark) >= len(fence.mark)

    def _line_end(self, at: int) -> int:
        found = self._text.find("\n", at, at + _MAX_LINE)
        return found if found >= 0 else min(len(self._text), at + _MAX_LINE)

    def pass_over(self, at: int) -> None:
        """Takes the text up to ``at``, in which no block begins any more; asked before that text is let go."""
        fence = self.fence
        if fence is not None and at > fence.seen:
            fence.other = fence.other or bool(self._text[fence.seen : at].strip(_BLANK))
            fence.seen = at

    def move(self, source: Source, by: int) -> None:
        """Goes on in another text, in which everything stands ``by`` characters further to the front."""
        self._text = source.text
        self._source = source
        self._runs = None
        if self.fence is not None:
            self.fence.seen -= by

    def block(self, block: Block) -> None:
        """Notes a block that was read at the current place."""
        fence = self.fence
        if fence is None:
            return
        start, end = block.span
        if start > fence.seen and self._text[fence.seen : start].strip(_BLANK):
            fence.other = True
        fence.seen = max(fence.seen, end)
        fence.blocks.append(block)
        self.fence_of[start] = fence

    def finish(self) -> None:
        """Takes the end of the text, which ends an open fence."""
        if self.fence is not None:
            self._end_fence(len(self._text))

    def _end_fence(self, at: int) -> None:
        fence = self.fence
        if fence is not None and fence.blocks and self._text[fence.seen : at].strip(_BLANK):
            fence.other = True
        self.fence = None

    def _first_on_line(self, at: int) -> bool:
        low = max(0, at - _MAX_FENCE_INDENT)
        line = max(self._text.rfind("\n", low, at), self._text.rfind("\r", low, at)) + 1
        if line == 0 and low > 0:
            return False
        return not self._text[line:at].strip(" \t\u3000\ufeff")

    def _code_span(self, start: int, end: int) -> int:
        """The end of the inline code that the run opens; the run's own end when nothing on its line closes it."""
        width = end - start
        runs = self._runs
        if runs is None:
            runs = self._runs = {}
            for run_start, run_end in zip(*self._source.tokens(_TICKS), strict=True):
                runs.setdefault(run_end - run_start, []).append(run_start)
        same = runs.get(width, [])
        i = bisect_right(same, start)
        if i == len(same) or same[i] - end >= _MAX_LINE:
            return end
        if self._text.find("\n", end, same[i]) < 0 and self._text.find("\r", end, same[i]) < 0:
            return same[i] + width
        return end
