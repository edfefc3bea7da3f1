"""The tolerant walk over one block of key-value pairs; it owns the findings.

It decides where each value ends and never what a key means. Nothing is searched twice: delimiters and markers come from
token arrays that the ``Source`` builds once per text, every line is looked at once, and a value is left in one step.
"""

from __future__ import annotations

import re

from tamis.protocols.base import Source
from tamis.protocols.model import MAX_NAME_CHARS, MAX_PARAMS, Comment, Edit, Fix, Severity
from tamis.protocols.pairs.bounds import Bounds, past
from tamis.protocols.pairs.walk import (
    BLANK,
    FENCE_LINE,
    LEADING,
    LINE_END,
    TRAILING,
    Dialect,
    Family,
    Lexed,
    Pair,
    delete,
    excerpt,
    fix,
    note_invisible,
    too_many,
)
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span
from tamis.protocols.tam.keys import visible

_OWN_QUOTES = lazy(r"""\"[^\r\n\"]*+\"|'[^\r\n']*+'|`[^\r\n`]*+`|“[^\r\n”]*+”|(?s:&(?:[lr]aquo|[lg]t|\#\d{2,4});.*)""")
_CLOSING_DECORATION = lazy(r"[*`\"'”’]{1,3}(?=\s)")


def _is_backup(raw: str) -> bool:
    return len(raw) == 3 and not raw.strip("<>»«") and any(char in "<>" for char in raw)


class _Lexer(Bounds):
    """The walk itself; ``lex`` is its only user."""

    nested: Span | None = None
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
            if out.pairs and text[at] in d.between and not self.comment_line(at, bound):
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
            # What follows the last pair of an unclosed block is the text after it.
            self.found.items = [item for item in self.found.items if item.diag.span[0] < max(out.end, 1)]

    def between(self, at: int, bound: int) -> int:
        """Skips the separators after a value."""
        end = at
        while end < bound and self.text[end] in self.d.between:
            end += 1
        raw = self.text[at:end]
        if raw != "," or self.d.protocol == "tam":
            canonical = self.d.codes.after_value == "VC321"
            self.found.add(
                self.d.codes.after_value,
                (at, end),
                args={"raw": raw},
                fix=fix("Write ','" if canonical else "Remove it", Edit(at, end, "," if canonical else "")),
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

    # --- fields ---------------------------------------------------------------------------------------------------

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
        if head is not None and sep_span is not None:
            return self.value(at, key_end, sep_span, head)
        if head is not None and text[at:key_end].strip() and d.strong_head.match(text, after, bound):
            return self.value(at, key_end, None, head)
        line_end = self.line_end(max(key_end, at), bound)
        strong = d.strong_head.search(text, key_end, line_end)
        if strong is not None:
            found = self.late_head(at, strong)
            if found is not None:
                return found
        if sep_span is not None:
            return self.undelimited(at, key_end, sep_span, bound)
        return None

    def blank(self, at: int, bound: int) -> int:
        """Past blanks and closing emphasis between separator and value (``**key:** value``)."""
        at = past(BLANK, self.text, at, bound)
        if m := _CLOSING_DECORATION.match(self.text, at, bound):
            at = past(BLANK, self.text, m.end(), bound)
        return at

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

    def key(self, start: int, end: int) -> tuple[Span, list[Edit]]:
        """The undecorated span of a key and the edits that remove its decoration."""
        written = self.text[start:end].rstrip()
        first = LEADING.match(written)
        skip = first.end() if first else 0
        bare = written[skip:].rstrip(TRAILING)
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
        if edits:
            self.found.add(
                d.codes.decoration,
                (start, key_end),
                index,
                args={"raw": excerpt(text, start, key_end)},
                fix=fix("Remove the decoration", *edits),
                repair=True,
            )
        if not raw.isascii() and visible(raw) != raw:
            # In TAM the key is normalised, and that finding's fix writes the whole of it anew.
            rewrite = fix("Remove the invisible characters", Edit(*span, visible(raw))) if d.protocol == "vcp" else None
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
        pair = Pair(start, start, span, raw, (head_start, head_start), "bare")
        self.out.pairs.append(pair)
        return pair

    def value(self, start: int, key_end: int, sep: Span | None, head: re.Match[str]) -> int:
        """A delimited value: where it ends, and what is to be said about its delimiters."""
        d = self.d
        pair = self.open_pair(start, key_end, sep, head.start())
        index = len(self.out.pairs) - 1
        name = d.family_of(head.group())
        family = d.families[name]
        pair.family = name
        at = head.end()
        tail = self.closing(at, family)
        if tail is not None:
            pair.value, pair.end = (at, tail[0]), tail[1]
            self.spelling(index, head.span(), tail, family)
            return self.own_tail(index, tail[1], family)
        bound = self.seek(at)
        follower = self.next_key(d.any_head, at, bound)
        stop = follower[0] if follower else bound
        end, tail = self.value_end(at, stop)
        pair.value = (at, end)
        pair.end = tail[1] if tail else end
        if tail is not None:
            self.spelling(index, head.span(), tail, family)
            return tail[1]
        pair.delimited = False
        self.spelling(index, head.span(), None, family)
        self.unclosed(index, family, stop, follower[1] if follower else None)
        if out_of := (self.open is not None and stop == self.open[0]):
            self.nested = self.whole_block_inside(at, family)
            if self.nested is not None:
                self.found.add(d.codes.own_tail, self.nested, index, args={"key": pair.raw})
                return self.nested[1]
        if stop == self.limit or (out_of and not self.complete):
            self.out.cut_pair = index
            pair.end = pair.end if self.complete else self.limit
            return pair.end
        return stop

    def unclosed(self, index: int, family: Family, stop: int, follower: str | None) -> None:
        pair = self.out.pairs[index]
        target = follower or ("the end of the text" if stop == self.limit else "the marker")
        self.found.add(
            self.d.codes.missing_tail,
            (pair.start, pair.value[1]),
            index,
            args={"key": pair.raw, "next": target},
            severity="error" if not self.complete or stop == self.limit else None,
            fix=fix(f"Insert {family.tail}", Edit(pair.value[1], pair.value[1], self.d.families["plain"].tail)),
            repair=True,
        )

    def own_tail(self, index: int, at: int, family: Family) -> int:
        """Text after the delimiter that ends with another one: the value held its own closing delimiter."""
        text, d = self.text, self.d
        again = self.token(family.closes, at, self.seek(at))
        if again is None or self.token(d.any_head, at, again[0]) is not None:
            return at
        if not text[at : again[0]].strip(" \t"):
            self.doubled_tail(index, at, again)
            return again[1]
        if LINE_END.search(text, at, again[0]) is not None or not text[at : again[0]].strip(d.between + " \t"):
            return at
        while (more := self.token(family.closes, again[1], self.seek(again[1]))) is not None:
            # To the last one on the line.
            between = text[again[1] : more[0]]
            if LINE_END.search(between) is not None or not between.strip(d.between + " \t"):
                break
            if self.token(d.any_head, again[1], more[0]) is not None:
                break
            again = more
        pair = self.out.pairs[index]
        first = (pair.value[1], at)
        whole = (pair.value[0], again[0])
        own: Fix | None = None
        if d.protocol == "vcp":
            escape = d.families["escape"]
            if escape.tail not in text[whole[0] : whole[1]]:
                own = fix(
                    "Write the whole value between ESCAPE marks",
                    Edit(pair.value[0] - len(family.head), pair.value[0], escape.head),
                    Edit(again[0], again[1], escape.tail),
                    unsafe=True,
                )
        # The whole value or the part before the first delimiter: two readings, so the block does not run (F4).
        self.found.add(d.codes.own_tail, first, index, args={"key": pair.raw}, fix=own)
        return again[1]

    def spelling(self, index: int, head: Span, tail: Span | None, family: Family) -> None:
        """Reports delimiters that are not the canonical ones, with the edits that make them so."""
        text, d = self.text, self.d
        plain = d.families["plain"]
        target = family if family.name in ("escape", "exp") else plain
        marks: list[tuple[str, Span, str]] = []
        for span, wanted in ((head, target.head), (tail, target.tail)):
            if span is not None and text[span[0] : span[1]] != wanted:
                marks.append((text[span[0] : span[1]], span, wanted))
        if family.name in ("escape", "exp"):
            self.found.add("VC316", head, index, minor=True)
        if not marks:
            return
        pair = self.out.pairs[index]
        args: dict[str, str | int] = {}
        if family.name == "swapped":
            code = d.codes.swapped
        elif d.protocol == "vcp":
            code = "VC312"
            args = {"raw": " … ".join(m[0] for m in marks), "canonical": " … ".join(m[2] for m in marks)}
        else:
            self.tam_spelling(index, marks)
            return
        safe = plain.tail not in text[pair.value[0] : pair.value[1]] or target is not plain
        self.found.add(
            code,
            marks[0][1],
            index,
            args=args,
            fix=fix("Write the canonical marks", *(Edit(*m[1], m[2]) for m in marks)) if safe else None,
            repair=True,
        )

    def tam_spelling(self, index: int, marks: list[tuple[str, Span, str]]) -> None:
        """``>>>`` and mixed pairs are the backup form (ruling 22); any other length or shape is misspelt."""
        for code, chosen in (
            ("TM210", [m for m in marks if _is_backup(m[0])]),
            ("TM212", [m for m in marks if not _is_backup(m[0])]),
        ):
            if chosen:
                self.found.add(
                    code,
                    chosen[0][1],
                    index,
                    args={"raw": " … ".join(m[0] for m in chosen), "canonical": " … ".join(m[2] for m in chosen)},
                    fix=fix("Write »»» and «««", *(Edit(*m[1], m[2]) for m in chosen)),
                    repair=True,
                )

    def undelimited(self, start: int, key_end: int, sep: Span, bound: int) -> int | None:
        """A value without an opening delimiter: up to its closing one (missing head), or bare."""
        text, d, out = self.text, self.d, self.out
        span, edits = self.key(start, key_end)
        if not d.bare_key.fullmatch(text, *span) or any(
            char in "\"'“”" for e in edits for char in text[e.start : e.end]
        ):
            return None
        at = past(BLANK, text, sep[1], bound)
        line = self.line_end(sep[1], bound)
        if at >= line or text.startswith("//", at) or self.after_block(start):
            return None
        if m := d.inline_pair.search(text, at, line):
            line = m.start()
        plain = d.families["plain"]
        tail_span: Span | None = None
        if m := d.any_tail.search(text, at, line):
            tail_span = m.span()
        else:
            tail = self.token(plain.closes, at, bound)
            if tail is not None and self.token(d.any_head, at, tail[0]) is None:
                other = d.later_bare_line.search(text, line, tail[0])
                tail_span = tail if other is None else None
        index = len(out.pairs)
        if tail_span is not None:
            pair = self.open_pair(start, key_end, sep, at)
            pair.value, pair.end = (at, tail_span[0]), tail_span[1]
            self.found.add(
                d.codes.missing_head,
                (start, tail_span[1]),
                index,
                args={"key": pair.raw},
                fix=fix(f"Insert {plain.head}", Edit(at, at, plain.head)),
                repair=True,
            )
            if text[tail_span[0] : tail_span[1]] != plain.tail:
                self.tail_only(index, tail_span)
            return tail_span[1]
        end = line if text[line : line + 1].strip() else self.bare_end(line, bound)
        if d.protocol == "vcp":
            while end > at and text[end - 1] in d.between + " \t":
                end -= 1
        pair = self.open_pair(start, key_end, sep, at)
        pair.value, pair.end, pair.delimited = (at, end), end, False
        # Quotes around the whole of it, or escaped delimiters, may belong to the value or not: two readings.
        doubtful = _OWN_QUOTES.fullmatch(text, at, end) is not None
        self.found.add(
            d.codes.bare,
            (start, end),
            index,
            args={"key": pair.raw},
            severity="error" if doubtful else None,
            fix=fix(
                f"Write {plain.head}…{plain.tail}",
                Edit(at, at, plain.head),
                Edit(end, end, plain.tail),
                unsafe=doubtful,
            ),
            repair=True,
        )
        if end >= self.limit:
            out.cut_pair = index
        return end

    def doubled_tail(self, index: int, at: int, again: Span) -> None:
        """The closing delimiter written twice over."""
        raw = self.text[at : again[1]].strip()
        self.found.add(
            "TM212" if self.d.protocol == "tam" else "VC312",
            again,
            index,
            args={"raw": raw + raw, "canonical": raw},
            fix=fix("Remove the second one", delete(at, again[1])),
            repair=True,
        )

    def tail_only(self, index: int, tail: Span) -> None:
        plain = self.d.families["plain"]
        mark = (self.text[tail[0] : tail[1]], tail, plain.tail)
        if self.d.protocol == "tam":
            self.tam_spelling(index, [mark])
        else:
            self.found.add(
                "VC312",
                tail,
                index,
                args={"raw": mark[0], "canonical": mark[2]},
                fix=fix(f"Write {plain.tail}", Edit(*tail, plain.tail)),
                repair=True,
            )

    # --- noise ----------------------------------------------------------------------------------------------------

    def noise(self, at: int, bound: int) -> int:
        """Text that is no pair: the rest of the line."""
        end = self.line_end(at, bound)
        self.noise_at(at, end)
        return end if end > at else at + 1

    def noise_at(self, start: int, end: int) -> None:
        text, d, out = self.text, self.d, self.out
        end = start + len(text[start:end].rstrip())
        # Text right behind a bare value may well be the rest of it: two readings, so the block does not run.
        doubtful = bool(out.pairs) and not out.pairs[-1].delimited
        mangled = d.any_tail.search(text, start, end) is not None or d.any_head.search(text, start, end) is not None
        severity: Severity = "error" if doubtful or mangled else "warning"
        self.found.add(
            d.codes.noise,
            (start, end),
            args={"excerpt": excerpt(text, start, end)},
            severity=severity,
            fix=fix("Remove the text", delete(start, end), unsafe=severity == "error"),
        )


def lex(source: Source, start: int, limit: int, dialect: Dialect, *, complete: bool) -> Lexed:
    """Walks one block from behind its opening marker; tolerant, total, linear."""
    return _Lexer(source, start, limit, dialect, complete=complete).run()
