"""Where a value ends, and what is to be said when its delimiters do not say it.

Nothing is searched twice: delimiters and markers come from token arrays that the ``Source`` builds once per text. Must not know
what a key means.
"""

from __future__ import annotations

import re

from tamis.protocols.model import Edit, Fix
from tamis.protocols.pairs.bounds import Keys, past
from tamis.protocols.pairs.walk import BLANK, KEY, LINE_END, Dialect, Family, Pair, delete, fix
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span
from tamis.protocols.tam.keys import visible

# Values whose edges leave two readings: quotes and brackets that may be delimiters in a spelling nobody knows. A value that was written between
# canonical delimiters is never in doubt. One without them, or with only one of them, is when an edge of it looks like the missing
# delimiter: what runs must not depend on a guess (ruling 1).

_PARTNERS = {"“": "”", "「": "」", "『": "』", "【": "】", "《": "》", "〔": "〕", "＜": "＞", "»": "«", "‘": "’"}
_OPENERS = {close: char for char, close in _PARTNERS.items()}
_FENCES = ('"""', "'''", "```", '"', "'", "`")
_LONG = (("<![CDATA[", "]]>"), ("[[", "]]"), ("<<", ">>"), ("{{", "}}"))
_ESCAPED = lazy(r"(?s:&(?:[lr]aquo|[lg]t|\#\d{2,4});.*)")
_MARK = lazy(r"[「｢『【〔\[{][^「」｢｣『』【】〔〕\[\]{}\r\n]{1,8}[」｣』】〕\]}]")
_PAIR_LINE = lazy(rf"[\r\n][ \t]*+{KEY}[ \t]*+(?:[:：=︰﹕∶](?!//)|->|→|»»)")
_ANGLES = lazy(r"[<«>»](?:[ \t]*+[<«>»])++")
_ANGLES_END = lazy(r"[<«>»](?:[ \t]*+[<«>»])++\Z")
_HALF_LINE = lazy(r"(?:«|<<|「末|末」)[ \t,，;；、]*+[\r\n]")
_MARK_OPENS = "「｢『【〔[{"


def _doubtful_start(part: str) -> bool:
    """Whether a value begins with something that looks like an opening delimiter whose partner is missing."""
    close = _PARTNERS.get(part[:1])
    if part.startswith("「始") or (_ANGLES.match(part) is not None and not part.startswith(("<<[", "<<<["))):
        return True
    if close is not None:
        return part.count(part[0]) > part.count(close)
    fence = next((fence for fence in _FENCES if part.startswith(fence)), None)
    if fence is not None:
        return part.count(fence) % 2 == 1
    return any(part.startswith(a) and part.count(a) > part.count(b) for a, b in _LONG)


def _doubtful_end(part: str) -> bool:
    """The same for the end of a value."""
    if part.endswith("「始」") or _ANGLES_END.search(part, max(0, len(part) - 12)) is not None:
        return True
    opened = _OPENERS.get(part[-1:])
    if opened is not None:
        return part.count(part[-1]) > part.count(opened)
    fence = next((fence for fence in _FENCES if part.endswith(fence)), None)
    if fence is not None:
        return part.count(fence) % 2 == 1
    return any(part.endswith(b) and part.count(b) > part.count(a) for a, b in _LONG)


def _holds_pair(part: str) -> bool:
    """Whether a line of a value that nothing closes looks like a pair of its own, or ends with half a delimiter."""
    return _PAIR_LINE.search(part) is not None or _HALF_LINE.search(part) is not None


def _wrapped(part: str) -> bool:
    """Whether the whole of a value stands between one pair of quotes or long brackets, or begins with an escaped one."""
    if _PARTNERS.get(part[:1], "") == part[-1:] != "" or _ESCAPED.fullmatch(part) is not None:
        return True
    if any(part.startswith(a) and part.endswith(b) and len(part) >= len(a) + len(b) for a, b in _LONG):
        return True
    fence = next((fence for fence in _FENCES if part.startswith(fence)), None)
    if fence is None or len(part) < 2 * len(fence) or not part.endswith(fence):
        return False
    return len(fence) == 3 or fence not in part[1:-1]


def _mark_starts(part: str) -> bool:
    """Whether a value begins with a short word in brackets, which may be a mark nobody knows (VCP)."""
    return _MARK.match(part) is not None


def _mark_ends(part: str) -> bool:
    """Whether a value ends with a short word in brackets."""
    tail = part[-10:]
    last = max(tail.rfind(char) for char in _MARK_OPENS)
    return last >= 0 and last + len(part) > len(tail) and _MARK.fullmatch(tail, last) is not None


def is_run(raw: str) -> bool:
    """Whether a delimiter is a run of more than three of TAM's own characters: what of it belongs to the value, the whole block
    says (ruling 56)."""
    return len(raw) > 3 and (not raw.strip("»") or not raw.strip("«"))


class Spelling(Keys):
    """The part of the walk that judges delimiters."""

    def spelling(self, index: int, head: Span, tail: Span | None, family: Family) -> None:
        """Reports delimiters that are not the canonical ones, with the edits that make them so."""
        text, d = self.text, self.d
        plain = d.families["plain"]
        target = family if family.name in ("escape", "exp") else plain
        marks: list[tuple[str, Span, str]] = []
        for span, wanted in ((head, target.head), (tail, target.tail)):
            if span is not None and text[span[0] : span[1]] != wanted:
                if family.name == "plain" and d.in_runs and is_run(text[slice(*span)]):
                    continue
                marks.append((text[span[0] : span[1]], span, wanted))
        if family.name in ("escape", "exp"):
            self.found.add("VC316", head, index, minor=True)
        if not marks:
            return
        pair = self.out.pairs[index]
        held = plain.tail in text[pair.value[0] : pair.value[1]] and target is plain
        if family.name != "swapped":
            self.misspelt(index, marks, d.rewrite_title if d.rewrites_any or not held else "")
            return
        self.found.add(
            d.codes.swapped,
            marks[0][1],
            index,
            args={},
            fix=None if held else fix("Write the canonical marks", *(Edit(*m[1], m[2]) for m in marks)),
            repair=True,
        )

    def misspelt(self, index: int, marks: list[tuple[str, Span, str]], title: str) -> None:
        """Reports delimiters in another spelling, those in the backup form apart; without a ``title`` there is no fix."""
        codes, is_backup = self.d.codes, self.d.is_backup
        groups = [(codes.misspelt, marks)]
        if is_backup is not None:
            groups = [(codes.backup, [m for m in marks if is_backup(m[0])])]
            groups.append((codes.misspelt, [m for m in marks if not is_backup(m[0])]))
        for code, chosen in groups:
            if chosen:
                self.found.add(
                    code,
                    chosen[0][1],
                    index,
                    args={"raw": " … ".join(m[0] for m in chosen), "canonical": " … ".join(m[2] for m in chosen)},
                    fix=fix(title, *(Edit(*m[1], m[2]) for m in chosen)) if title else None,
                    repair=True,
                )

    def doubled_tail(self, index: int, at: int, again: Span) -> None:
        """The closing delimiter written twice over."""
        raw = self.text[at : again[1]].strip()
        self.found.add(
            self.d.codes.misspelt,
            again,
            index,
            args={"raw": raw + raw, "canonical": raw},
            fix=fix("Remove the second one", delete(at, again[1])),
            repair=True,
        )

    def tail_only(self, index: int, tail: Span) -> None:
        """Reports the closing delimiter of a value that has no opening one."""
        plain = self.d.families["plain"]
        self.misspelt(index, [(self.text[tail[0] : tail[1]], tail, plain.tail)], self.d.rewrite_tail_title)


def _foreign_marks(dialect: Dialect, text: str, start: int, end: int) -> tuple[Span, Span] | None:
    """Another protocol's delimiters, where they stand around the whole of a value and nowhere in it."""
    head, tail = dialect.foreign_marks
    part = text[start:end]
    if not (part.startswith(head) and part.endswith(tail)) or part.count(head) + part.count(tail) != 2:
        return None
    return (start, start + len(head)), (end - len(tail), end)


class Values(Spelling):
    """The part of the walk that closes pairs."""

    nested: Span | None = None

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
            self.doubt(index, at, tail, family)
            self.spelling(index, head.span(), tail, family)
            self.half_tail(tail, min(head.end() - head.start(), len(d.families["plain"].tail)))
            return self.own_tail(index, tail[1], family)
        bound = self.seek(at)
        follower = self.next_key(d.any_head, at, bound)
        stop = follower[0] if follower else bound
        end, tail = self.value_end(at, stop)
        pair.value = (at, end)
        pair.end = tail[1] if tail else end
        if tail is not None:
            self.doubt(index, at, tail, family, loose=True)
            self.spelling(index, head.span(), tail, family)
            self.half_tail(tail, len(d.families["plain"].head) + 1)
            return tail[1]
        pair.delimited = False
        self.spelling(index, head.span(), None, family)
        self.unclosed(index, family, stop, follower[1] if follower else None, doubtful=sep is None)
        if out_of := (self.open is not None and stop == self.open[0]):
            self.nested = self.whole_block_inside(at, family)
            if self.nested is not None:
                self.found.add(d.codes.own_tail, self.nested, index, args={"key": pair.raw})
                return self.nested[1]
            if self.in_call(pair):
                # Everything behind it is in the open value, and nothing of it runs (ruling 50).
                stop = pair.end = self.limit
        if stop == self.limit or (out_of and not self.complete):
            self.out.cut_pair = index
            pair.end = pair.end if self.complete else self.limit
            return pair.end
        return stop

    def in_call(self, pair: Pair) -> bool:
        """Whether an open value belongs to a call, not to a sentence that only names the markup: the block begins its line, or has
        a value already."""
        return self.out.pairs[0] is not pair or LINE_END.search(self.text, self.start, pair.start) is not None

    def half_tail(self, tail: Span, head: int) -> None:
        """Notes a text that ends in a closing delimiter shorter than ``head`` characters: the rest of it, or of the value, is missing."""
        if past(BLANK, self.text, tail[1], self.limit) < len(self.text):
            return
        if len(visible(self.text[slice(*tail)]).replace(" ", "")) < head:
            self.out.cut = "a delimiter"

    def only_tail(self, head: re.Match[str]) -> bool:
        """Whether what looks like swapped delimiters is a closing one alone: the next opening one has a key of its own."""
        family = self.d.families[self.d.family_of(head.group())]
        if family.name != "swapped":
            return False
        tail = self.token(family.closes, head.end(), self.limit)
        return tail is not None and self.key_before(head.end(), tail[0]) is not None

    def undelimited(self, start: int, key_end: int, sep: Span, bound: int) -> int | None:
        """A value without an opening delimiter: up to its closing one (missing head), or bare."""
        text, d, out = self.text, self.d, self.out
        span, edits = self.key(start, key_end)
        if not d.bare_key.fullmatch(text, *span) or any(
            char in "\"'“”" for e in edits for char in text[e.start : e.end]
        ):
            return None
        at = self.blank(sep[1], bound) if edits else past(BLANK, text, sep[1], bound)
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
            part = text[at : tail_span[0]]
            doubtful = _doubtful_start(part) or (d.by_words and _mark_starts(part))
            # A canonical opening delimiter inside: the text before it may be the value, or be no part of it (ruling 67).
            doubtful = doubtful or d.strong_head.search(part) is not None
            if not part:
                # Nothing before the delimiter but something behind it: it may as well open the value.
                behind = text[tail_span[1] : self.line_end(tail_span[1], bound)]
                doubtful = behind.strip(d.between + " \t") != ""
            self.found.add(
                d.codes.missing_head,
                (start, tail_span[1]),
                index,
                args={"key": pair.raw},
                severity="error" if doubtful else None,
                fix=fix(f"Insert {plain.head}", Edit(at, at, plain.head), unsafe=doubtful),
                repair=True,
            )
            if text[tail_span[0] : tail_span[1]] != plain.tail:
                self.tail_only(index, tail_span)
                self.half_tail(tail_span, len(plain.head))
            return tail_span[1]
        end = line if text[line : line + 1].strip() else self.bare_end(line, bound)
        if d.separates:
            while end > at and text[end - 1] in d.between + " \t":
                end -= 1
        pair = self.open_pair(start, key_end, sep, at)
        pair.value, pair.end, pair.delimited = (at, end), end, False
        # Quotes around the whole of it, or escaped delimiters, may belong to the value or not: two readings.
        doubtful = _wrapped(text[at:end]) or self.odd_edge(at, end, both=True) or _holds_pair(text[at:end])
        bare = _foreign_marks(d, text, at, end) or ((at, at), (end, end))
        self.found.add(
            d.codes.bare,
            (start, end),
            index,
            args={"key": pair.raw},
            severity="error" if doubtful else None,
            fix=fix(
                f"Write {plain.head}…{plain.tail}",
                Edit(*bare[0], plain.head),
                Edit(*bare[1], plain.tail),
                unsafe=doubtful,
            ),
            repair=True,
        )
        if end >= self.limit:
            out.cut_pair = index
        return end

    def unclosed(self, index: int, family: Family, stop: int, follower: str | None, *, doubtful: bool) -> None:
        """Reports a value that nothing closes; ``doubtful`` when it has no separator either."""
        pair = self.out.pairs[index]
        target = follower or ("the end of the text" if stop == self.limit else "the marker")
        unsure = doubtful or not self.complete or stop == self.limit or self.odd_edge(*pair.value, both=False)
        unsure = unsure or _holds_pair(self.text[slice(*pair.value)]) or self.holds_tail(*pair.value)
        tail = family.tail if family.name in ("escape", "exp") else self.d.families["plain"].tail
        self.found.add(
            self.d.codes.missing_tail,
            (pair.start, pair.value[1]),
            index,
            args={"key": pair.raw, "next": target},
            severity="error" if unsure else None,
            fix=fix(f"Insert {tail}", Edit(pair.value[1], pair.value[1], tail), unsafe=unsure),
            repair=True,
        )

    def doubt(self, index: int, at: int, tail: Span, family: Family, *, loose: bool = False) -> None:
        """Reports a value that has its closing delimiter but may have ended before it: two readings (F4).

        ``loose``: the delimiter is one only because it stands at the end; another one before it may be as good.
        """
        text, d = self.text, self.d
        if family.name in ("escape", "exp"):
            # A mark opened and not closed inside: the closing one may be its own.
            unsure = text.rfind("「始", at, tail[0]) > text.rfind("「末", at, tail[0])
        elif family.name == "swapped":
            unsure = d.head.match(text, past(BLANK, text, at, tail[0]), tail[0]) is not None
            # Longer than three, or with another mark inside: part of it may be the value's.
            unsure = unsure or (tail[1] - tail[0] > 3 if d.in_runs else self.holds_tail(at, tail[0]))
        else:
            unsure = loose and self.holds_tail(at, tail[0])
        if unsure or (family.name not in ("escape", "exp") and d.runs_on(text[at : tail[0]], family.name != "plain")):
            self.found.add(d.codes.own_tail, tail, index, args={"key": self.out.pairs[index].raw})

    def holds_tail(self, start: int, end: int) -> bool:
        """Whether a closing delimiter in any spelling stands inside a stretch."""
        if self.d.any_tail.search(self.text, start, end) is not None:
            return True
        half = self.d.half_tail
        return half != "" and self.text.find(half, start, end) >= 0

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
        escape = d.families.get("escape")
        if escape is None:
            own = self.as_json(pair, again)
        elif escape.tail not in text[whole[0] : whole[1]]:
            own = fix(
                "Write the whole value between ESCAPE marks",
                Edit(pair.value[0] - len(family.head), pair.value[0], escape.head),
                Edit(again[0], again[1], escape.tail),
                unsafe=True,
            )
        # The table of codes reads the part before the first delimiter, with a warning. F4 asks for the whole value or an error,
        # never a silent cut, and ruling 1 lets a call run only with one reading: so this is an error, and the fix a person's.
        self.found.add(d.codes.own_tail, first, index, args={"key": pair.raw}, fix=own)
        return again[1]

    def as_json(self, pair: Pair, tail: Span) -> Fix | None:
        """A TAM value with its own delimiter as a JSON string, which can hold it (``type_hint``, seed 002 §4)."""
        text = self.text
        if not pair.raw.isascii() or not pair.raw.replace("_", "").isalnum():
            return None
        import json

        value = json.dumps(text[pair.value[0] : tail[0]].strip(), ensure_ascii=False)
        for char in "«»":
            value = value.replace(char, f"\\u00{ord(char):02x}")
        hint = f"\ntype_hint_{pair.raw}:{self.d.families['plain'].head}json{self.d.families['plain'].tail}"
        return fix(
            "Write the whole value as a JSON string",
            Edit(pair.value[0], tail[0], value),
            Edit(tail[1], tail[1], hint),
            unsafe=True,
        )

    def odd_edge(self, start: int, end: int, *, both: bool) -> bool:
        """Whether an edge of a value may be a delimiter in a spelling that is not known: two readings (ruling 1)."""
        part = self.text[start:end]
        if _doubtful_end(part) or (both and _doubtful_start(part)):
            return True
        return self.d.by_words and (_mark_ends(part) or (both and _mark_starts(part)))
