"""The tolerant walk over one block of key-value pairs; it owns the findings.

It decides where each pair begins (``bounds.py``), where its value ends (``values.py``), what delimiters are misspelt
(``values.py``) and what stands between the pairs; never what a key means. Every line is looked at once, and a value is left
in one step.
"""

from __future__ import annotations

import re

from tamis.protocols.base import Source
from tamis.protocols.edges import slip_before, slip_behind
from tamis.protocols.lossless import Tiles, Token
from tamis.protocols.model import MAX_PARAMS, Block, Comment, Edit, Severity
from tamis.protocols.pairs.bounds import ends_inside, past
from tamis.protocols.pairs.values import Values
from tamis.protocols.pairs.walk import (
    BLANK,
    FENCE_LINE,
    LINE_END,
    Dialect,
    Lexed,
    Pair,
    delete,
    excerpt,
    fix,
    note_invisible,
    too_many,
)
from tamis.protocols.positions import Span
from tamis.protocols.tam.keys import parse_key, visible


class _Lexer(Values):
    """The walk itself; ``lex`` is its only user."""

    oversize = False

    def run(self) -> Lexed:
        text, d, out = self.text, self.d, self.out
        at = self.start
        while True:
            here = past(BLANK, text, at, self.limit)
            bound = self.seek(at)
            note_invisible(self.found, text, at, min(here, bound), "layout")
            at = here
            if at >= bound:
                break
            if text[at] in d.between and not self.comment_line(at, bound):
                at = self.between(at, bound)
                continue
            then = self.trivia(at, bound)
            if then is None:
                if d.foreign_closes is not None and self.foreign_close(at, bound):
                    return out
                if len(out.pairs) >= MAX_PARAMS:
                    too_many(out, at)
                    self.oversize = True
                    at = self.skip(at)
                    break
                then = self.field(at, bound)
            if then is None:
                then = self.noise(at, bound)
            at = then
            if out.cut_pair is not None or self.nested is not None:
                break
            if self.found.overflow and self.close is not None:
                self.oversize = True
                at = self.skip(at)
                break
        self.finish(at)
        return out

    def finish(self, at: int) -> None:
        out = self.out
        if self.nested is not None:
            out.nested, out.end = self.nested, self.nested[1]
            return
        if out.cut_pair is not None:
            out.end = at
            return
        self.seek(at)
        if self.close is not None and at >= self.close[0]:
            out.close, out.stop, out.end = self.close, "close", self.close[1]
        else:
            out.stop = "open" if self.open is not None and at >= self.open[0] else "end"
            if self.oversize:
                out.end = at
                return
            out.end = out.pairs[-1].end if out.pairs else self.start
            if out.stop == "end" and out.cut is None and out.pairs:
                behind = max(out.end, out.comments[-1].span[1] if out.comments else 0)
                out.cut = ends_inside(self.text, behind, self.limit, self.d)
            # What follows the last pair of an unclosed block is the text after it.
            self.found.items = [item for item in self.found.items if item.diag.span[0] < max(out.end, 1)]

    def between(self, at: int, bound: int) -> int:
        """Skips the separators after a value."""
        end = at
        while end < bound and self.text[end] in self.d.between:
            end += 1
        raw = self.text[at:end]
        canonical = self.d.separates
        if raw != canonical:
            self.found.add(
                self.d.codes.after_value,
                (at, end),
                args={"raw": raw},
                fix=fix(f"Write '{canonical}'" if canonical else "Remove it", Edit(at, end, canonical)),
                minor=True,
            )
        return end

    def comment_line(self, at: int, bound: int) -> bool:
        """Whether a comment of another language starts the line (``; note``), not a separator."""
        foreign = self.d.foreign_comment
        return foreign is not None and self.text[at - 1] in "\r\n" and foreign.match(self.text, at, bound) is not None

    def trivia(self, at: int, bound: int) -> int | None:
        """Comments and fence lines between pairs."""
        d, text = self.d, self.text
        if d.comment is not None and (m := d.comment.match(text, at, bound)):
            self.out.comments.append(Comment(m.span(), m.group()))
            return m.end()
        if d.foreign_comment is not None and (m := d.foreign_comment.match(text, at, bound)):
            body = m.group().strip("/-<>!*; \t")
            self.found.add(
                "TM250",
                m.span(),
                args={"raw": excerpt(text, *m.span())},
                fix=fix("Write a # comment", Edit(m.start(), m.end(), f"# {body}")),
                repair=True,
            )
            self.out.comments.append(Comment(m.span(), m.group()))
            return m.end()
        if m := FENCE_LINE.match(text, at, bound):
            return m.end()
        return None

    def foreign_close(self, at: int, bound: int) -> bool:
        """A closing marker of another protocol on its own line, where the own one is missing (TC005)."""
        d = self.d
        if d.foreign_closes is None or not self.out.pairs:
            return False
        m = d.foreign_closes.match(self.text, at, bound)
        if m is None or (self.close is not None and (self.open is None or self.close[0] < self.open[0])):
            return False
        if d.foreign_opens is not None and self.token(d.foreign_opens, self.start, at) is not None:
            return False
        self.found.add(
            "TC005",
            m.span(),
            args={"a": d.protocol.upper(), "b": m.group()},
            # In a text that was cut off the own marker may still have come.
            severity=None if self.complete else "error",
            fix=fix(f"Write {d.close_text}", Edit(m.start(), m.end(), d.close_text)),
            repair=True,
        )
        self.out.close, self.out.stop, self.out.end = m.span(), "close", m.end()
        return True

    def field(self, at: int, bound: int) -> int | None:
        """The pair that starts at ``at``, or None when the text there is no pair."""
        text, d = self.text, self.d
        key_end = past(d.key_text, text, at, bound)
        sep = d.separator.match(text, key_end, bound)
        sep_span = sep.span() if sep else None
        if (
            text.startswith((">", "＞"), key_end)
            and text[key_end - 1 : key_end] == "-"
            and not text.startswith(">>", key_end)
        ):
            sep_span, key_end = (key_end - 1, key_end + 1), key_end - 1
        after = self.blank(sep_span[1] if sep_span else key_end, bound)
        head = d.head.match(text, after, bound)
        if head is not None and sep_span is not None and not self.only_tail(head):
            return self.value(at, key_end, sep_span, head)
        if head is not None and text[at:key_end].strip() and d.strong_head.match(text, after, bound):
            return self.value(at, key_end, None, head)
        line_end = self.line_end(max(key_end, at), bound)
        strong = d.strong_head.search(text, key_end, line_end)
        if strong is not None:
            late_head = self.late_head(at, strong)
            if late_head is not None:
                return late_head
        if sep_span is not None:
            return self.undelimited(at, key_end, sep_span, bound)
        return None

    def late_head(self, at: int, strong: re.Match[str]) -> int | None:
        """A canonical delimiter further on in the line: what stands before its separator is the key."""
        text, d = self.text, self.d
        before = text[at : strong.start()].rstrip()
        sep: Span | None = None
        for width in (2, 1):
            tail = before[-width:]
            if len(tail) == width and d.separator.fullmatch(tail):
                sep = (at + len(before) - width, at + len(before))
                break
        if sep is None:
            return None
        start = at
        for char in d.between:
            start = max(start, text.rfind(char, at, sep[0]) + 1)
        if start > at:
            if d.bare_line.match(text, at, start):
                return None
            self.noise_at(at, start)
        start = past(BLANK, text, start, sep[0])
        head = d.head.match(text, strong.start(), self.limit)
        return self.value(start, sep[0], sep, head) if head else None

    def noise(self, at: int, bound: int) -> int:
        """Text that is no pair: the rest of the line."""
        end = self.line_end(at, bound)
        self.noise_at(at, end)
        return end if end > at else at + 1

    def noise_at(self, start: int, end: int) -> None:
        text, d, out = self.text, self.d, self.out
        end = start + len(text[start:end].rstrip())
        # Text right behind a bare value may well be the rest of it: two readings, so the block does not run.
        last = out.pairs[-1] if out.pairs else None
        doubtful = last is not None and (
            not last.delimited
            or (last.family not in ("plain", "escape", "exp") and LINE_END.search(text, last.end, start) is None)
        )
        mangled = d.any_tail.search(text, start, end) is not None or d.any_head.search(text, start, end) is not None
        if last is not None and last.delimited and not text[slice(*last.value)].strip():
            args: dict[str, str | int] = {"param": last.raw, "excerpt": excerpt(text, start, end)}
            self.found.add("TC063", (start, end), len(out.pairs) - 1, args=args)
        severity: Severity = "error" if doubtful or mangled else "warning"
        self.found.add(
            d.codes.noise,
            (start, end),
            args={"excerpt": excerpt(text, start, end)},
            severity=severity,
            # Behind the start of a section the ACTION reader takes a marker for text.
            fix=fix(
                "Remove the text", delete(start, end), unsafe=severity == "error" or "<![CDATA[" in text[start:end]
            ),
        )


def lex(source: Source, start: int, limit: int, dialect: Dialect, *, complete: bool) -> Lexed:
    """Walks one block from behind its opening marker; tolerant, total, linear."""
    lexed = _Lexer(source, start, limit, dialect, complete=complete).run()
    if dialect.in_runs:
        _settle_runs(source.text, lexed, dialect)
    _check_edges(source.text, lexed, dialect)
    return lexed


_Marks = tuple[tuple[str, ...], tuple[str, ...], frozenset[tuple[str, str]], str, str]
_MARKS: dict[str, _Marks] = {}


def _marks(dialect: Dialect) -> _Marks:
    """The opening and closing delimiters of a dialect, their pairs, and the characters of each."""
    found = _MARKS.get(dialect.open_text)
    if found is None:
        pairs = list(dict.fromkeys((family.head, family.tail) for family in dialect.families.values()))
        heads, tails = tuple(head for head, _ in pairs), tuple(tail for _, tail in pairs)
        found = _MARKS[dialect.open_text] = heads, tails, frozenset(pairs), "".join(heads), "".join(tails)
    return found


def _check_edges(text: str, lexed: Lexed, dialect: Dialect) -> None:
    """Reports pieces of delimiters in values (ruling 67)."""
    heads, tails, correct, first, last = _marks(dialect)
    for index, pair in enumerate(lexed.pairs):
        # Between the ESCAPE marks everything is a value.
        doubled = pair.family == "plain" and not dialect.in_runs
        start, end = pair.value
        if (text[pair.mark : start], text[end : pair.end]) in correct and (
            start == end or (text[start] not in first and text[end - 1] not in last)
        ):
            continue
        written = (pair.mark, pair.value[0]), (pair.value[1], max(pair.end, pair.value[1]))
        for slip in (
            slip_before(text, pair.value, written[0], heads, doubled=doubled),
            slip_behind(text, pair.value, written[1], tails, doubled=doubled),
        ):
            if slip is not None:
                lexed.findings.add(
                    "TC062",
                    slip.span,
                    index,
                    args={"raw": text[slice(*slip.span)], "param": pair.raw, "mark": slip.mark},
                    fix=fix(f"Write {slip.mark}", Edit(*slip.span, slip.mark), unsafe=True),
                )


def _settle_runs(text: str, lexed: Lexed, dialect: Dialect) -> None:
    """Gives each value what a run of more than three ``»`` or ``«`` has of it (ruling 56).

    The outer three are the delimiter, the rest is the value. In a ``command``, and where every field of the block is written with the
    same longer run, the whole run is the delimiter (TM212).
    """
    if not any(_longer(text, pair) for pair in lexed.pairs):
        return
    runs = [_runs(text, pair) for pair in lexed.pairs]
    if all(head <= 3 and tail <= 3 for head, tail in runs):
        return
    plain = dialect.families["plain"]
    same = len(set(runs)) == 1 and runs[0][0] == runs[0][1]
    for index, (pair, (head, tail)) in enumerate(zip(lexed.pairs, runs, strict=True)):
        start, end = pair.value
        if not same and parse_key(visible(pair.raw)).base != dialect.first_key:
            pair.value = (start - max(head - 3, 0), end + max(tail - 3, 0))
            continue
        marks = [
            (text[a:b], (a, b), canonical)
            for a, b, canonical in ((start - head, start, plain.head), (end, end + tail, plain.tail))
            if b - a > 3
        ]
        if marks:
            lexed.findings.add(
                dialect.codes.misspelt,
                marks[0][1],
                index,
                args={
                    "raw": " … ".join(raw for raw, _, _ in marks),
                    "canonical": " … ".join(mark[2] for mark in marks),
                },
                fix=fix(dialect.rewrite_title, *(Edit(*span, canonical) for _, span, canonical in marks)),
                repair=True,
            )


def _longer(text: str, pair: Pair) -> bool:
    """Whether what delimits a value may be a longer run than three; cheap."""
    start, end = pair.value
    return pair.end - end > 3 or text[start - 4 : start - 3] == "»"


def _runs(text: str, pair: Pair) -> tuple[int, int]:
    """How long the runs of ``»`` and ``«`` are that delimit a value; 0 where it is delimited otherwise."""
    if pair.family != "plain":
        return 0, 0
    start, end = pair.value
    head = start
    while head > pair.key[1] and text[head - 1] == "»":
        head -= 1
    tail = text[end : pair.end]
    return start - head, len(tail) if tail and not tail.strip("«") else 0


# A TAM or VCP block as tokens without gaps (the lossless view of ``protocols/lossless.py``). The block is walked again by the tolerant walk, because
# a block keeps its meaning and not its punctuation.


def pair_tokens(text: str, block: Block, dialect: Dialect) -> list[Token]:
    """The tokens of one block of ``text``, in order; together they are its text."""
    start, end = block.span
    inner = text[start:end]
    low = block.open[1] - start
    high = (block.close[0] if block.close is not None else end) - start
    source = Source(inner)
    lexed = lex(source, low, len(inner), dialect, complete=True)
    tiles = Tiles(inner, start)
    tiles.put("marker", 0, low)
    comments = {comment.span[0]: comment.span[1] for comment in lexed.comments}
    at = low
    for pair in [pair for pair in lexed.pairs if pair.end <= high]:
        _between(tiles, at, pair.start, comments, dialect)
        _pair(tiles, pair, dialect)
        at = pair.end
    _between(tiles, at, high, comments, dialect)
    if block.close is not None:
        tiles.put("marker", high, block.close[1] - start)
        _between(tiles, block.close[1] - start, len(inner), {}, dialect)
    return tiles.tokens


def _pair(tiles: Tiles, pair: Pair, dialect: Dialect) -> None:
    text = tiles.text
    tiles.words("decoration", pair.start, pair.key[0])
    tiles.put("key", *pair.key)
    at = pair.key[1]
    while at < pair.value[0]:
        blank = past(BLANK, text, at, pair.value[0])
        tiles.put("blank", at, blank)
        at = blank
        separator = dialect.separator.match(text, at, pair.value[0])
        head = dialect.head.match(text, at, pair.value[0])
        if separator is not None:
            tiles.put("separator", *separator.span())
            at = separator.end()
        elif head is not None and head.end() >= pair.value[0]:
            tiles.put("delimiter", at, pair.value[0])
            at = pair.value[0]
        elif at < pair.value[0]:
            tiles.put("decoration", at, at + 1)
            at += 1
    tiles.put("value", *pair.value)
    tiles.words("delimiter", pair.value[1], pair.end)


def _between(tiles: Tiles, at: int, end: int, comments: dict[int, int], dialect: Dialect) -> None:
    """What stands between two pairs: blanks, comments, separators, fences, and text that is none of these."""
    text = tiles.text
    while at < end:
        blank = past(BLANK, text, at, end)
        tiles.put("blank", at, blank)
        at = blank
        if at >= end:
            return
        stop = comments.get(at)
        if stop is not None:
            tiles.put("comment", at, min(stop, end))
            at = min(stop, end)
        elif text[at] in dialect.between:
            tiles.put("separator", at, at + 1)
            at += 1
        elif (fence := FENCE_LINE.match(text, at, end)) is not None:
            tiles.put("fence", *fence.span())
            at = fence.end()
        else:
            line = min((i for i in (text.find("\n", at, end), text.find("\r", at, end)) if i >= 0), default=end)
            tiles.put("noise", at, line)
            at = line
