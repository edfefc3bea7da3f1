"""What surrounds a block: reasoning, quotes, echoes, turns of others, fences and code, followed from left to right.

The reader feeds it the marks outside blocks; it says in which context a place stands, and how far a block there may reach
(rulings 5, 6, 7, 44 to 49). Marks in a block that ends well behind them are part of its values. A stream sets ``final`` to false:
then what hangs on text to come is answered by ``WAIT``. Must not know how any protocol is written.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from typing import Final

from tamis.protocols.base import Source
from tamis.protocols.invisible import IGNORABLE, ZERO_WIDTH
from tamis.protocols.marks import OBSERVATION, TICKS, Mark, Marks, begins_line, unfinished, visible
from tamis.protocols.model import Block
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span
from tamis.protocols.quoting import Surroundings

WAIT: Final = -1
CONTEXTS: Final = {
    "reasoning": "reasoning",
    "fence": "a code fence",
    "code": "inline code",
    "comment": "an HTML comment",
    "element": "an element that quotes",
    "quote": "a block quote",
    "prefix": "lines that all carry one prefix",
    "marks": "quotation marks",
    "table": "a table",
    "echo": "an echo of a tool's result",
    "turn": "somebody else's turn",
    "json": "a JSON document",
    "spelling": "markers that are for examples",
}
"""The contexts in which nothing runs, with the words for them. ``spelling`` is the block's own, wherever it stands (ruling 28)."""

_I = rf"[{IGNORABLE}]*+"
_PARAGRAPH_END = lazy(rf"(?>\r\n|\n|\r)[ \t]*+(?=[\r\n]|{_I}`{_I}`{_I}`|{_I}~{_I}~{_I}~)")
_BLANK_LINE = lazy(r"(?>\r\n|\n|\r)[ \t]*+(?=[\r\n])")
_FENCE_LINES = lazy(rf"(?m)^[ \t\u3000{IGNORABLE}]*+(?P<mark>`{_I}(?:`{_I}){{2,}}+|~{_I}(?:~{_I}){{2,}}+)[ \t]*+\r?$")
_LIST_MARKS = lazy(rf"[ \t\u3000{IGNORABLE}]*+(?:(?:[-*+]|\d{{1,9}}[.)])[ \t]++){{0,8}}+[ \t\u3000{IGNORABLE}]*+")
_QUOTED_VALUE = re.compile(r'[^\n"{\[]{0,400}?(?:Result|Output|Data)[ \t]*+:[ \t]*+(?=["{\[])')
_BLANK = f" \t\r\n\f\v\u3000\u00a0{ZERO_WIDTH}"
_MAX_LEAD = 200
_MAX_LINE = 2_000
"""Characters that a fence's line may have: in a text that is still coming, it is known that soon."""
_MAX_WIDTH = 64
"""Backticks that inline code may begin with: so many widths are looked for in one paragraph."""
_MAX_LINES = 1_000
"""Lines of other fences that are passed over in search of the end of one."""
_MAX_SLASHES = 8
"""Slashes of a text that are looked at one by one."""
_MAX_OPEN_VALUES = 8
"""Echoes whose value is not closed that are searched to the end of the text."""


_VALUE = lazy(r"""(?s:(?P<string>"(?:[^"\\]++|\\.)*+")|(?P<open>[{\[])|(?P<close>[}\]])|(?P<stop>"))""")


def _json_end(text: str, at: int) -> int:
    """The end of the string or the brackets that open at ``at``; -1 when they are not closed."""
    depth = 0
    for match in _VALUE.finditer(text, at):
        kind = match.lastgroup
        if kind == "stop":
            return -1
        depth += {"open": 1, "close": -1}.get(kind or "", 0)
        if depth <= 0:
            return match.end()
    return -1


def _keys(mark: Mark) -> list[str]:
    """The names under which a mark is looked for."""
    keys = [f"/{mark.name}" if mark.closes else mark.name]
    if mark.family == "reasoning" and mark.closes:
        keys.append("/reasoning")
    if mark.family in ("channel", "turn"):
        keys.append("/channel")
    return keys


MAY_BE_JSON = frozenset("{[ \t\r\n\ufeff")


class Fence:
    """One code fence: its marker and whether anything but blocks stands in it."""

    __slots__ = ("alone", "blocks", "closed", "ended", "last", "mark", "other", "seen", "thoughts")

    def __init__(self, mark: str, content: int, thoughts: int, *, alone: bool) -> None:
        self.mark = mark
        self.thoughts = thoughts
        """The reasoning depth at which it was opened."""
        self.seen = content
        self.other = False
        self.closed = False
        self.ended = False
        """Whether the pass has left it."""
        self.alone = alone
        """True while no other fence of the text holds a block."""
        self.last = True
        """True while nothing but blanks stands behind it."""
        self.blocks: list[Block] = []

    @property
    def wrapper(self) -> bool:
        """True when the fence holds nothing but blocks and ends the text (ruling 7)."""
        return not self.other and self.alone and self.last


class Enclosing:
    """A context that ends at a mark of its own: a comment, an element, inline code, an echo."""

    __slots__ = ("closer", "depth", "kind", "name", "width")

    def __init__(self, kind: str, name: str = "", *, closer: int = -1, width: int = 0) -> None:
        self.kind = kind
        self.name = name
        self.depth = 1
        self.closer = closer
        """For an observation: where its quoted value ends."""
        self.width = width
        """For inline code: how many backticks it begins with."""


class Context:
    """The state of one left-to-right pass over the text outside blocks."""

    def __init__(self, source: Source, marks: Marks, *, assume_open: bool = False, final: bool = True) -> None:
        self._text = source.text
        self._source = source
        self._marks = marks
        self.final = final
        """False while more text may come."""
        self.base = 0
        """Where the text begins in the whole text."""
        self.whole: Callable[[int, int], Block | None] = lambda at, before: None
        """The first block that opens at or behind a place, before another one, and ends well behind that (set by the reader)."""
        self._open: dict[str, int] = {"": 1} if assume_open else {}
        self.depth = 1 if assume_open else 0
        """How many openers of reasoning are open."""
        self._assumed = assume_open
        self._began = 0
        self.reasoning: list[Span] = []
        """Closed reasoning so far, in the whole text."""
        self.turn = ""
        """Whose turn it is: empty for the model's."""
        self.enclosing: Enclosing | None = None
        self.fence: Fence | None = None
        self._fences: list[Fence] = []
        self.fence_of: dict[int, Fence] = {}
        """The fence around a block, by the block's start."""
        self._behind: Fence | None = None
        self._behind_at = 0
        self._values_open = 0
        self.around = Surroundings()
        self._json: int | None = 0 if final and source.text[:1] not in MAY_BE_JSON else None
        self._json_asked = 0
        self._json_sign = ""
        """The first character that is no blank."""
        self._gone: list[str] = []
        """The text before this one, kept while it is not known whether the whole begins with a JSON document."""
        self._forget()
        self.alone_closer = False
        """Set by a closer without an opener: all before it is reasoning."""

    def begin(self, end: int) -> None:
        """Takes the text up to ``end``, where the last block ends, in which nothing was that matters."""
        self.around.begin(end)

    def _forget(self) -> None:
        """What is known of the text as a whole, found on first demand."""
        self._runs: dict[int, list[Span]] | None = None
        self._marked: dict[str, list[Span]] | None = None
        self._closers: bool | None = None
        self._pairs: dict[str, set[int]] = {}
        self._no_code: dict[int, int] = {}
        self._comments_open = False

    # --- marks ------------------------------------------------------------------------------------------------------

    def mark(self, match: re.Match[str]) -> int:
        """Takes a mark; returns where the pass goes on, or ``WAIT``."""
        start, end = match.span()
        mark = self._marks.meaning(match)
        if mark is None:
            return end
        if self._text[start - 1 : start] == "\\":
            return end
        if not self.final and unfinished(self._text, mark):
            return WAIT
        if self.enclosing is not None:
            self._inside(self.enclosing, mark)
            return end
        if self.fence is not None:
            return self._in_fence(self.fence, mark)
        if mark.family == "reasoning":
            self._reasoning(mark)
            return end
        if mark.family == "channel":
            return self._channel(mark)
        if mark.family == "turn":
            self._turn(mark)
            return end
        return end if mark.closes else self._enter(mark)

    def _inside(self, enclosing: Enclosing, mark: Mark) -> None:
        if mark.name != enclosing.name or enclosing.kind == "comment":
            return
        enclosing.depth += -1 if mark.closes else 1
        if enclosing.depth == 0:
            self.enclosing = None

    def _in_fence(self, fence: Fence, mark: Mark) -> int:
        """A closer of reasoning ends a fence that was opened in the reasoning and is never closed."""
        ends = mark.closes and mark.family in ("reasoning", "channel") and self.depth > 0 and fence.thoughts > 0
        if not ends:
            return mark.end
        if self._fence_end(fence, mark.end) is not None:
            return mark.end
        if not self.final:
            return WAIT
        self._end_fence(mark.start)
        if mark.family == "channel":
            return self._channel(mark)
        self._reasoning(mark)
        return mark.end

    def _reasoning(self, mark: Mark) -> None:
        if not mark.closes:
            if self._assumed and self.depth == 1 and not self._text[: mark.start].strip(_BLANK) and self.base == 0:
                # The model wrote the opener that the prompt already held.
                self._open = {}
                self.depth = 0
            self._assumed = False
            if self.depth == 0:
                self._began = self.base + mark.start
            self._open[mark.name] = self._open.get(mark.name, 0) + 1
            self.depth += 1
            return
        name = mark.name if self._open.get(mark.name) else "" if self._open.get("") else None
        if name is None:
            if not self.turn:
                self.alone_closer = True
                self.reasoning = [(0, self.base + mark.end)]
                self._began = 0
            return
        self._assumed = False
        self._open[name] -= 1
        self.depth -= 1
        if self.depth == 0:
            self.reasoning.append((self._began, self.base + mark.end))

    def _channel(self, mark: Mark) -> int:
        """Harmony: the analysis channel is reasoning up to the next control token."""
        if self._open.get("<|channel|>"):
            self._open["<|channel|>"] = 0
            self.depth -= 1
            if self.depth == 0:
                end = mark.end if mark.name in ("end", "return", "call") else mark.start
                self.reasoning.append((self._began, self.base + end))
        if not mark.closes:
            if self.depth == 0:
                self._began = self.base + mark.start
            self._open["<|channel|>"] = 1
            self.depth += 1
        return mark.end

    def _turn(self, mark: Mark) -> None:
        if self._open.get("<|channel|>"):
            self._channel(Mark("channel", "start", True, mark.start, mark.end))
        if self.depth:
            return
        if mark.name.startswith("["):
            self.turn = "" if mark.closes else "[inst]"
        else:
            self.turn = "" if mark.name == "own" else "other"

    def _enter(self, mark: Mark) -> int:
        """Begins a context: at the start of a line at once, elsewhere when it is closed further on."""
        if not self.first_on_line(mark.start):
            closed = self._comment_closed(mark) if mark.family == "comment" else self._paired(mark)
            if not closed:
                return mark.end if self.final else WAIT
        self.enclosing = Enclosing(mark.family, mark.name)
        return mark.end

    def observation(self, start: int, end: int) -> int:
        """Takes the beginning of a line that echoes a result (ruling 48)."""
        if self.enclosing is not None or self.fence is not None or not begins_line(self._text, start):
            return end
        value = self._quoted_value(end)
        if value == WAIT:
            return WAIT
        self.enclosing = Enclosing("echo", "observation:", closer=value)
        return end

    def _quoted_value(self, at: int) -> int:
        """The end of the value in quotes or brackets that an observation says; ``at`` where it says none."""
        text = self._text
        head = _QUOTED_VALUE.match(text, at)
        if head is None:
            known = self.final or text.find("\n", at) >= 0 or len(text) > at + 500
            return at if known else WAIT
        end = -1 if self._values_open > _MAX_OPEN_VALUES else _json_end(text, head.end())
        if end >= 0:
            return end
        if not self.final:
            return WAIT
        self._values_open += 1
        return at

    # --- runs of backticks and tildes --------------------------------------------------------------------------------

    def run(self, start: int, end: int) -> int:
        """Takes a run of backticks or tildes; returns where the pass goes on, or ``WAIT``."""
        text, fence = self._text, self.fence
        if self.enclosing is not None:
            return end
        if not self.final and end == len(text):
            return WAIT
        mark = visible(text[start:end])
        if len(mark) >= 3 and self.first_on_line(start):
            line_end = self._line_end(end)
            rest = visible(text[end:line_end])
            unknown = not self.final and line_end == len(text) < end + _MAX_LINE
            if fence is not None:
                if self._may_close(mark) and line_end < end + _MAX_LINE and not rest.strip():
                    if unknown:
                        return WAIT
                    fence.closed = True
                    self._end_fence(start)
                    self._behind_at = end
                return end
            if line_end < end + _MAX_LINE and (mark[0] == "~" or "`" not in rest):
                if unknown:
                    return WAIT
                if self._behind is not None:
                    self._behind.last = False
                    self._behind = None
                self.fence = Fence(mark, line_end, self.depth, alone=not self._fences)
                return end
        if fence is not None or mark[0] == "~":
            return end
        return self._code(start, end)

    def _code(self, start: int, end: int) -> int:
        """Inline code as CommonMark defines it: up to the next run as long in the same paragraph, outside blocks."""
        width = self._text.count("`", start, end)
        if width > _MAX_WIDTH:
            return end
        starts, _ = self._source.tokens(_PARAGRAPH_END)
        i = bisect_left(starts, end)
        limit = starts[i] if i < len(starts) else len(self._text)
        if start < self._no_code.get(width, -1):
            return end
        at = end
        while (close := self._tick(width, at)) is not None and close[0] < limit:
            block = self.whole(at, close[0])
            if block is None:
                self.enclosing = Enclosing("code", "`", width=width)
                return end
            at = block.span[1]
            i = bisect_left(starts, at)
            limit = starts[i] if i < len(starts) else len(self._text)
        if not self.final and limit == len(self._text):
            return WAIT
        self._no_code[width] = limit
        return end

    def _tick(self, width: int, at: int) -> Span | None:
        """The next run of so many backticks."""
        runs = self._runs
        if runs is None:
            runs = self._runs = {}
            for start, end in zip(*self._source.tokens(TICKS), strict=True):
                runs.setdefault(self._text.count("`", start, end), []).append((start, end))
        same = runs.get(width, [])
        i = bisect_left(same, (at, 0))
        return same[i] if i < len(same) else None

    def _may_close(self, mark: str) -> bool:
        fence = self.fence
        return fence is not None and mark[0] == fence.mark[0] and len(mark) >= len(fence.mark)

    def _line_end(self, at: int) -> int:
        position = self._text.find("\n", at, at + _MAX_LINE)
        return position if position >= 0 else min(len(self._text), at + _MAX_LINE)

    def first_on_line(self, at: int) -> bool:
        """Whether nothing but blanks and list markers stands before a place on its line."""
        low = max(0, at - _MAX_LEAD)
        line = max(self._text.rfind("\n", low, at), self._text.rfind("\r", low, at)) + 1
        if line == 0 and (low > 0 or self.base > 0):
            return False
        lead = self._text[line:at]
        return not lead or _LIST_MARKS.fullmatch(lead) is not None

    # --- ends --------------------------------------------------------------------------------------------------------

    def leave(self, at: int, before: int) -> int:
        """Ends a context that a closer at or behind ``at``, at most at ``before``, ends; where the pass goes on, or ``WAIT``.

        ``WAIT`` when none stands there.
        """
        enclosing = self.enclosing
        if enclosing is None or enclosing.kind == "element":
            return WAIT
        closer = self._closer(enclosing, at)
        if closer is None or closer[0] > before:
            return WAIT
        self.enclosing = None
        return closer[1]

    def _closer(self, enclosing: Enclosing, at: int) -> Span | None:
        """The next text that ends a context, were it outside blocks."""
        source = self._source
        if enclosing.kind == "comment":
            position = source.find("-->", at)
            return None if position < 0 else (position, position + 3)
        if enclosing.kind == "code":
            return self._tick(enclosing.width, at)
        if enclosing.name == "observation:":
            starts, ends = source.tokens(_BLANK_LINE)
            i = bisect_left(starts, max(at, enclosing.closer))
            return (starts[i], ends[i]) if i < len(starts) else None
        return self._next_mark(f"/{enclosing.name}", at)

    def limit(self, at: int) -> int | None:
        """Where a block that opens before ``at`` ends at the latest if it does not end well behind that; None when nothing ends it."""
        if self.enclosing is None and self.fence is None and not self.depth and not self.turn:
            return None
        ends: list[int] = []
        if self.enclosing is not None:
            closer = self._closer(self.enclosing, at)
            ends += [] if closer is None else [closer[0]]
        if self.fence is not None:
            end = self._fence_end(self.fence, at)
            ends += [] if end is None else [end]
        if self.depth:
            end = self.thought_end(at)
            ends += [] if end is None else [end]
            token = self._next_mark("/channel", at) if self._open.get("<|channel|>") else None
            ends += [] if token is None else [token[0]]
        if self.turn:
            token = self._next_mark("own" if self.turn == "other" else f"/{self.turn}", at)
            ends += [] if token is None else [token[0]]
        return min(ends) if ends else None

    def thought_end(self, at: int) -> int | None:
        """The next closer of reasoning, were it outside blocks."""
        if self._closers is None:
            self._closers = self._may_hold_closers()
        if not self._closers:
            return None
        span = self._next_mark("/reasoning", at)
        return None if span is None else span[0]

    def _may_hold_closers(self) -> bool:
        """Whether closers of reasoning can stand in the text: a slash behind the character that begins a mark. Quick; looks at few."""
        text = self._text
        low = self._source.low
        if not text.isascii() and text.find("／", low) >= 0:
            return True
        at = text.find("/", low)
        for _ in range(_MAX_SLASHES):
            if at < 0:
                return False
            before = text[at - 1 : at]
            # Characters without a width may stand between the two.
            if not before.isascii() or before == "<" or any(before == sign for sign, _ in self._marks.literal):
                return True
            at = text.find("/", at + 1)
        return True

    def _fence_end(self, fence: Fence, at: int) -> int | None:
        starts, ends = self._source.tokens(_FENCE_LINES)
        first = bisect_left(starts, at)
        for i in range(first, min(len(starts), first + _MAX_LINES)):
            mark = visible(self._text[starts[i] : ends[i]]).strip(_BLANK)
            if mark[0] == fence.mark[0] and len(mark) >= len(fence.mark):
                return starts[i]
        return None

    def _next_mark(self, key: str, at: int) -> Span | None:
        named = self._named().get(key)
        if named is None:
            return None
        i = bisect_left(named, (at, 0))
        return named[i] if i < len(named) else None

    def _named(self) -> dict[str, list[Span]]:
        """Every mark of the text that is read, also those in values, by name; with ``/`` before it the closers."""
        named = self._marked
        if named is None:
            named = self._marked = {}
            text, low = self._text, self._source.low
            patterns = [self._marks.angle]
            patterns += [
                pattern
                for sign, pattern in self._marks.others
                if pattern is not OBSERVATION and text.find(sign, low) >= 0
            ]
            for pattern in patterns:
                for match in pattern.finditer(text, low):
                    mark = self._marks.meaning(match)
                    if mark is None:
                        continue
                    for key in _keys(mark):
                        named.setdefault(key, []).append(match.span())
            for spans in named.values():
                spans.sort()
        return named

    # --- contexts that count only when they are closed -----------------------------------------------------------------

    def _comment_closed(self, mark: Mark) -> bool:
        if self._comments_open:
            return False
        at = mark.end
        while (close := self._source.find("-->", at)) >= 0:
            block = self.whole(at, close)
            if block is None:
                return True
            at = block.span[1]
        self._comments_open = True
        return False

    def _paired(self, mark: Mark) -> bool:
        """Whether an element that begins within a line is closed, outside blocks."""
        pairs = self._pairs.get(mark.name)
        if pairs is None:
            pairs = self._pairs[mark.name] = set()
            opens: list[int] = []
            named = self._named()
            tokens = [(span, False) for span in named.get(mark.name, ())]
            tokens += [(span, True) for span in named.get(f"/{mark.name}", ())]
            tokens.sort()
            at = mark.start
            for (start, end), closes in tokens:
                if start < at:
                    continue
                block = self.whole(at, start)
                if block is not None:
                    at = block.span[1]
                    continue
                at = end
                if not closes:
                    opens.append(start)
                elif opens:
                    pairs.add(opens.pop())
        return mark.start in pairs

    # --- blocks ------------------------------------------------------------------------------------------------------

    def setting(self, span: Span, *, reasoning_runs: bool) -> str:
        """The context in which a block at the current place is set aside: a key of ``CONTEXTS``, empty for none, or ``wait``.

        Fences are told by ``fence_of``, which knows more at the end of the text.
        """
        if self.depth and not reasoning_runs:
            return "reasoning"
        if self.enclosing is not None:
            return self.enclosing.kind
        if self.turn:
            return "turn"
        if self.fence is not None:
            return ""
        if self._json != 0:
            document = self.json_document()
            if document == WAIT:
                return "wait"
            if span[0] + self.base < document:
                return "json"
        return self.around.quoted(self._text, span, final=self.final)

    def json_document(self) -> int:
        """Where the JSON document ends that the text begins with: 0 where it begins with none, ``WAIT`` when text to come tells."""
        if self._json is not None:
            return self._json
        if not self._json_sign:
            self._json_sign = next(
                (part[:1] for item in (*self._gone, self._text) if (part := item.lstrip(_BLANK))), ""
            )
            if not self._json_sign and not self.final:
                return WAIT
            if self._json_sign not in ("{", "["):
                return self._settle_json(0)
        size = self.base + len(self._text)
        if not self.final and size < 2 * self._json_asked:
            return WAIT
        self._json_asked = size
        text = "".join([*self._gone, self._text])
        self._gone = [text[: self.base]] if self.base else []
        start = len(text) - len(text.lstrip(_BLANK))
        end = _json_end(text, start)
        if end < 0 and not self.final:
            return WAIT
        json_end = 0
        if end > 0:
            import json

            try:
                json_end = json.JSONDecoder(strict=False).raw_decode(text, start)[1]
            except (ValueError, RecursionError):
                json_end = 0
        return self._settle_json(json_end)

    def _settle_json(self, end: int) -> int:
        self._json = end
        self._gone.clear()
        return end

    @property
    def watches(self) -> bool:
        """Whether plain text matters to the pass."""
        fence = self.fence
        return self._behind is not None or (fence is not None and not fence.other)

    def pass_over(self, at: int) -> None:
        """Takes the text up to ``at``, in which no block begins any more; asked before that text is let go."""
        fence = self.fence
        if fence is not None:
            if at > fence.seen and not fence.other:
                fence.other = bool(self._text[fence.seen : at].strip(_BLANK))
            fence.seen = max(fence.seen, at)
        else:
            self._seen_behind(at)

    def _seen_behind(self, at: int) -> None:
        """Text behind a fence makes what it holds an example (ruling 7)."""
        fence = self._behind
        if fence is None or at <= self._behind_at:
            return
        if self._text[self._behind_at : at].strip(_BLANK):
            fence.last = False
            self._behind = None
        self._behind_at = at

    def block(self, block: Block) -> None:
        """Notes a block that was read at the current place."""
        self.around.behind(self._text, block.span)
        fence = self.fence
        start, end = block.span
        if fence is None:
            if self._behind is not None:
                self._behind.last = False
                self._behind = None
            return
        if start > fence.seen and not fence.other:
            fence.other = bool(self._text[fence.seen : start].strip(_BLANK))
        fence.seen = max(fence.seen, end)
        if not fence.blocks:
            self._fences.append(fence)
        fence.blocks.append(block)
        self.fence_of[start] = fence

    def finish(self) -> None:
        """Takes the end of the text, which ends what is open."""
        size = len(self._text)
        if self.fence is not None:
            self._end_fence(size)
        else:
            self._seen_behind(size)
        if self.depth:
            self.reasoning.append((self._began, self.base + size))
            self.depth = 0

    def _end_fence(self, at: int) -> None:
        fence = self.fence
        if fence is not None:
            fence.ended = True
            if fence.blocks:
                if not fence.other:
                    fence.other = bool(self._text[fence.seen : at].strip(_BLANK))
                self._behind, self._behind_at = fence, at
        self.fence = None

    @property
    def asks_for_json(self) -> bool:
        """Whether it is not known yet if the whole text begins with a JSON document."""
        return self._json is None

    def move(self, source: Source, by: int, gone: str = "") -> None:
        """Goes on in another text, in which everything stands ``by`` characters further to the front; ``gone`` are these characters."""
        if gone and self._json is None:
            self._gone.append(gone)
        self._text = source.text
        self._source = source
        self.base += by
        self._forget()
        if not by:
            return
        self._behind_at -= by
        self.around.move(by)
        if self.fence is not None:
            self.fence.seen -= by
        if self.enclosing is not None and self.enclosing.closer >= 0:
            self.enclosing.closer -= by
