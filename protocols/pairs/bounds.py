"""Where things end inside a block: markers, lines, and values whose closing delimiter is missing or doubtful.

Every question is answered from token arrays or within one line, so that no stretch of text is searched twice.
"""

from __future__ import annotations

import re
from bisect import bisect_left

from tamis.protocols.base import Source
from tamis.protocols.model import MAX_NAME_CHARS, Edit
from tamis.protocols.pairs.walk import (
    BLANK,
    FENCE_LINE,
    LEADING,
    LINE_END,
    QUOTES,
    SEPARATORS,
    TRAILING,
    Dialect,
    Family,
    Findings,
    Lexed,
    Pair,
    delete,
    excerpt,
    fix,
    note_invisible,
)
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span
from tamis.protocols.tam.keys import visible

_INLINE_BLANK = lazy(r"[ \t]*+")
_NEWLINE = lazy(r"\r\n|[\r\n]")
_ENTITY = lazy(r"&#?\w{1,9};\Z")
_KEY_WINDOW = 400
_MAX_REST = 400
_BULLETS = "-*+•·▪●◦‣–—_"
_HALF_MARKER = lazy(r"[<＜][^>＞\r\n]*+\Z")
_HALF_PAIR = lazy(r"[^\r\n»>]*+[»>]{0,2}+\Z")


def past(pattern: re.Pattern[str], text: str, at: int, bound: int) -> int:
    """The end of a match at ``at``, or ``at`` itself."""
    m = pattern.match(text, at, bound)
    return m.end() if m else at


def ends_inside(text: str, at: int, limit: int, dialect: Dialect) -> str | None:
    """What the text is cut off in behind the last pair of a block: ``a marker``, ``a key``; None where it ends behind that pair
    or goes on with something else (ruling 51).

    Only one line can be the start of the next pair: more of them are the text behind the block.
    """
    if limit != len(text) or limit - at > _MAX_REST:
        return None
    while (fence := FENCE_LINE.match(text, past(BLANK, text, at, limit), limit)) is not None:
        at = fence.end()
    rest = visible(text[at:limit]).strip(dialect.between + " \t\r\n")
    if _HALF_MARKER.match(rest) is not None:
        return "a marker"
    half = _HALF_PAIR.match(rest)
    if not rest or half is None:
        return None
    written = rest.rstrip("»> \t")
    key = written.rstrip(SEPARATORS + " \t")
    first = LEADING.match(key)
    bare = key[first.end() if first else 0 :].rstrip(TRAILING)
    gap = text[at : limit - len(text[at:limit].lstrip())]
    beside = gap.count("\n") + gap.count("\r") - gap.count("\r\n") < 2
    plausible = dialect.next_key if beside or key != written else dialect.bare_key
    return "a key" if not bare.strip(_BULLETS) or plausible.fullmatch(bare) is not None else None


class Bounds:
    """One walk over a block: its text, the next markers, and the questions about ends."""

    def __init__(self, source: Source, start: int, limit: int, dialect: Dialect, *, complete: bool) -> None:
        self.source = source
        self.text = source.text
        self.start = start
        self.limit = limit
        self.d = dialect
        self.complete = complete
        self.close: Span | None = None
        self.open: Span | None = None
        self.line = (-1, -1, -1)
        # By identity: the patterns are the dialect's, and hashing them each time would cost more than the lookup.
        self.arrays: dict[int, tuple[list[int], list[int]]] = {}
        self.out = Lexed([], [], Findings(), None, "end", start)
        self.found = self.out.findings

    def token(self, pattern: re.Pattern[str], at: int, limit: int) -> Span | None:
        """The first match that starts at or after ``at`` and ends at or before ``limit``; see ``Source.next_token``."""
        try:
            starts, ends = self.arrays[id(pattern)]
        except KeyError:
            starts, ends = self.arrays[id(pattern)] = self.source.tokens(pattern)
        i = bisect_left(starts, at)
        if i < len(starts) and ends[i] <= limit:
            return starts[i], ends[i]
        return None

    def seek(self, at: int) -> int:
        """Looks up the next markers from ``at`` and returns the bound that they set."""
        close, opened, bound = self.close, self.open, self.limit
        if close is None or close[0] < at:
            close = self.close = self.token(self.d.closes, at, bound)
        if opened is None or opened[0] < at:
            opened = self.open = self.token(self.d.opens, at, bound)
        if close is not None and close[0] < bound:
            bound = close[0]
        return opened[0] if opened is not None and opened[0] < bound else bound

    def skip(self, at: int) -> int:
        """Past the rest of a block that is rejected for its size: its last closing marker before the next opening one."""
        self.open = self.token(self.d.opens, at, self.limit)
        bound = self.open[0] if self.open else self.limit
        starts, ends = self.source.tokens(self.d.closes)
        i = bisect_left(starts, bound) - 1
        if i < 0 or starts[i] < at or ends[i] > bound:
            return bound
        self.close = (starts[i], ends[i])
        return starts[i]

    def line_end(self, at: int, bound: int) -> int:
        """The end of the line; remembered, because many short pairs may stand on one long line."""
        if self.line[0] <= at <= self.line[1] and self.line[2] == bound:
            return self.line[1]
        m = LINE_END.search(self.text, at, bound)
        self.line = (at, m.start() if m else bound, bound)
        return self.line[1]

    def closing(self, at: int, family: Family) -> Span | None:
        """The closing delimiter of a value, or None when evidence says that it has none."""
        tail = self.token(family.closes, at, self.limit)
        if tail is None or self.next_key(family.heads, at, tail[0]) is not None:
            return None
        self.seek(at)
        if self.close is None or self.close[0] >= tail[0]:
            return tail
        if self.d.drops and self.token(self.d.any_head, at, tail[0]) is None:
            # Any marker inside a closed value is text (ruling 28).
            return tail
        # A closing marker stands before the delimiter: it is part of the value only if the block closes again later.
        later = self.token(self.d.closes, tail[1], self.limit)
        opened = self.token(self.d.opens, tail[1], self.limit)
        return tail if later is not None and (opened is None or later[0] < opened[0]) else None

    def next_key(self, heads: re.Pattern[str], at: int, end: int) -> tuple[int, str] | None:
        """The first line inside ``[at, end)`` that starts a pair of its own: its offset and its key."""
        head = self.token(heads, at, end)
        while head is not None:
            key = self.key_before(at, head[0])
            if key is not None:
                return key
            head = self.token(heads, head[1], end)
        return None

    def key_before(self, low: int, head: int) -> tuple[int, str] | None:
        """The key that stands on the line before a delimiter at ``head``, if there is one behind ``low``."""
        text, d = self.text, self.d
        low = max(low, head - _KEY_WINDOW)
        before = text[low:head].rstrip(" \t")
        if before[-1:] in "*`" and before.rstrip("*`")[-1:] in (":", "："):
            before = before.rstrip("*`")
        width = next((n for n in (2, 1) if d.separator.fullmatch(before[-n:])), 2 if before.endswith("->") else 0)
        if not width:
            return None
        before = before[:-width]
        line = max(before.rfind("\n"), before.rfind("\r"), *(before.rfind(char) for char in d.between + ">"))
        if line < 0:
            return None
        key = before[line + 1 :].strip()
        first = LEADING.match(key)
        bare = key[first.end() if first else 0 :].rstrip(TRAILING)
        if not d.next_key.fullmatch(bare):
            return None
        start = line + 1 if before[line] in "\r\n" or before[line] == ">" else line
        return low + start, bare

    def value_end(self, at: int, stop: int) -> tuple[int, Span | None]:
        """The end of a value without a proper closing delimiter: less trailing trivia, and a misspelt delimiter there."""
        text, d = self.text, self.d
        end = at + len(text[at:stop].rstrip())
        if d.comment is not None:
            while True:
                line = max(text.rfind("\n", at, end), text.rfind("\r", at, end)) + 1
                if line == 0 or not d.comment.match(text, past(BLANK, text, line, end), end):
                    break
                end = at + len(text[at:line].rstrip())
        trimmed = end
        while trimmed > at and text[trimmed - 1] in d.between + " \t\r\n":
            if text[trimmed - 1] == ";" and _ENTITY.search(text, max(at, trimmed - 12), trimmed):
                break
            trimmed -= 1
        m = d.ending_tail.search(text, max(at, trimmed - 40), trimmed)
        if m is not None:
            return m.start(), m.span()
        half = None if d.half_tail_at is None else d.half_tail_at(text, at, trimmed)
        if half is not None:
            return half, (half, trimmed)
        return (trimmed if d.separates else end), None

    def whole_block_inside(self, at: int, family: Family) -> Span | None:
        """A block quoted whole inside an unclosed value: its closing marker, then this value's own tail and marker."""
        opened = self.open
        if opened is None or not self.complete:
            return None
        inner = self.token(self.d.closes, opened[1], self.limit)
        if inner is None:
            return None
        tail = self.token(family.closes, inner[1], self.limit)
        outer = self.token(self.d.closes, inner[1], self.limit)
        after = self.token(self.d.opens, inner[1], self.limit)
        head = self.token(self.d.any_head, inner[1], self.limit)
        if tail is None or outer is None or outer[0] < tail[0] or (after is not None and after[0] < outer[0]):
            return None
        if head is not None and head[0] < tail[0]:
            return None
        return at, outer[1]

    def bare_end(self, line: int, bound: int) -> int:
        """The end of a bare value: its line and those after it, up to a blank line, a comment or another pair."""
        text, d = self.text, self.d
        end = line
        while end < bound:
            newline = _NEWLINE.match(text, end, bound)
            start = newline.end() if newline else end
            first = past(_INLINE_BLANK, text, start, bound)
            if first >= bound or text[first] in "\r\n":
                break
            if (d.comment and d.comment.match(text, first, bound)) or FENCE_LINE.match(text, first, bound):
                break
            if d.bare_line.match(text, first, bound) or d.strong_head.search(text, first, self.line_end(first, bound)):
                break
            if d.foreign_closes is not None and d.foreign_closes.match(text, first, bound):
                break
            end = self.line_end(first, bound)
        return end - (len(text[line:end]) - len(text[line:end].rstrip()))

    def after_block(self, start: int) -> bool:
        """Prose under a block without a closing marker: a blank line follows pairs that were all closed."""
        pairs = self.out.pairs
        if not pairs or not pairs[-1].delimited or (self.close is not None and not self.open):
            return False
        if self.close is not None and self.open is not None and self.close[0] < self.open[0]:
            return False
        return len(LINE_END.findall(self.text[pairs[-1].end : start].replace("\r\n", "\n"))) > 1


# The key of a pair and what surrounds it: decoration, separator, invisible characters.


_CLOSING_DECORATION = lazy(r"[*`\"'”’]{1,3}(?=\s)")


def undecorated(written: str, dialect: Dialect) -> tuple[int, str]:
    """A key without its decoration, and how many characters of that stand before it; an empty one when nothing else is there."""
    written = written.rstrip()
    first = LEADING.match(written)
    skip = first.end() if first else 0
    bare = written[skip:].rstrip(TRAILING)
    mark = dialect.emphasis
    if mark and len(bare) > 2 * len(mark) and bare.startswith(mark) and bare.endswith(mark):
        return skip + len(mark), bare[len(mark) : -len(mark)]
    return skip, bare


class Keys(Bounds):
    """The part of the walk that opens pairs."""

    def blank(self, at: int, bound: int) -> int:
        """Past blanks and closing emphasis between separator and value (``**key:** value``)."""
        at = past(BLANK, self.text, at, bound)
        if m := _CLOSING_DECORATION.match(self.text, at, bound):
            at = past(BLANK, self.text, m.end(), bound)
        return at

    def key(self, start: int, end: int) -> tuple[Span, list[Edit]]:
        """The undecorated span of a key and the edits that remove its decoration."""
        written = self.text[start:end].rstrip()
        skip, bare = undecorated(written, self.d)
        if not bare:
            return (start, start + len(written)), []
        edits = [delete(start, start + skip)] if skip else []
        inner = start + skip + len(bare)
        if skip + len(bare) < len(written):
            edits.append(delete(inner, start + len(written)))
        return (start + skip, inner), edits

    def open_pair(self, start: int, key_end: int, sep: Span | None, head_start: int) -> Pair:
        """Starts a pair: its key, its separator and what is to be said about both."""
        text, d, index = self.text, self.d, len(self.out.pairs)
        span, edits = self.key(start, key_end)
        raw = text[span[0] : span[1]]
        if len(raw) > MAX_NAME_CHARS:
            self.found.add("TC021", span, index, args={"limit": MAX_NAME_CHARS})
            raw = raw[:MAX_NAME_CHARS]
        tail_decoration = sep is not None and visible(text[sep[1] : head_start]).strip() != ""
        if tail_decoration and sep is not None:
            edits.append(delete(sep[1], head_start))
        # In a quotation (``> key``) the lines of the values are quoted too, and nobody wrote them so.
        quoted = raw.startswith(QUOTES)
        if edits or quoted:
            self.found.add(
                d.codes.decoration,
                (start, key_end),
                index,
                args={"raw": excerpt(text, start, key_end)},
                severity="error" if quoted else None,
                fix=fix("Remove the decoration", *edits) if edits else None,
                repair=True,
            )
        if not raw.isascii() and visible(raw) != raw:
            rewrite = fix("Remove the invisible characters", Edit(*span, visible(raw)))
            char = next(char for char in raw if not visible(char))
            args: dict[str, str | int] = {"hex": f"{ord(char):04X}", "where": "a name"}
            self.found.add("TC013", span, index, args=args, fix=rewrite, repair=True)
        written = text[sep[0] : sep[1]] if sep else ""
        if written != ":":
            self.found.add(
                d.codes.separator,
                sep or (key_end, head_start),
                index,
                args={"raw": written or "a missing separator"},
                fix=fix("Write ':'", Edit(*(sep or (key_end, head_start)), ":")),
                repair=True,
            )
        elif sep and not tail_decoration:
            note_invisible(self.found, text, sep[1], head_start, "layout", index)
        pair = Pair(start, start, span, raw, (head_start, head_start), "bare", head_start)
        self.out.pairs.append(pair)
        return pair
