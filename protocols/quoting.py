"""Marks directly around one block that make it a quotation: a quoting prefix, a table row, quotation marks (rulings 44, 46, 47).

Looked at within bounds, so that a text of many blocks on one line stays linear. Must not know protocols.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from tamis.protocols.invisible import IGNORABLE
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span

REACH = 2_000
"""Characters before and behind a block that are looked at."""
Verdict = Literal["", "quote", "prefix", "marks", "table", "wait"]

_BLOCK = "\ufffc"
"""Stands for a block between parts of a paragraph."""
_NUMBER = lazy(r"[ \t]*+[\d.,:/%+-]*+[ \t]*+")
_MAX_GAPS = 64
"""Blocks of one paragraph whose quotation marks are counted together."""
_BLANK_LINE = lazy(r"(?>\r\n|\n|\r)[ \t]*+(?=[\r\n])")
_HIDDEN = lazy(f"[{IGNORABLE}]")
_QUOTE_LINE = lazy(r"(?:(?:[-*+]|\d{1,9}[.)])[ \t]++){0,4}+[>＞]")
_TABLE_LINE = lazy(r"[|｜]")
_COMMENT_LINE = lazy(r"//|/\*")
_DELIMITERS = lazy(r"«{2,}+|»{2,}+")
"""Of another protocol's values."""
_LIST_ITEM = lazy(r"(?:[-*+]|0[.)])[ \t]")
_DIGITS = lazy(r"\d++")
_LEVEL = lazy(r"\b(?i:trace|debug|info(?:rmation)?|notice|warn(?:ing)?|error|fatal|critical)\b[ \t]*+")
_PLAUSIBLE = lazy(r"[^\w\s]|.*(?:0|L\b|\])")
_MARKS = lazy("[“”«»„『』「」‘’‹›＂]")
_PAIRS: Final = (("“", "”"), ("«", "»"), ("„", "“”"), ("『", "』"))
_NEXT_TO: Final = {
    '"': '"',
    "'": "'",
    "`": "`",
    "‘": "’",
    "‹": "›",
    "»": "«",
    "「": "」",
    "“": "”",
    "«": "»",
    "„": "“”",
    "『": "』",
}


class Surroundings:
    """What stands around the blocks of a text, asked for each block in order."""

    def __init__(self) -> None:
        self._end = 0
        self._before: list[str] = []
        """The text before the last blocks of the paragraph."""
        self.next_block: Callable[[int, int], Span | Literal["wait"] | None] = lambda at, before: None
        """The first complete block that opens in ``[at, before)`` (set by the reader)."""

    def begin(self, end: int) -> None:
        """Takes the text up to ``end``, where a block ends, in which no quotation mark stands."""
        self._end = end

    def move(self, by: int) -> None:
        """Goes on in a text that begins ``by`` characters later."""
        self._end -= by

    def quoted(self, text: str, span: Span, *, final: bool) -> Verdict:
        """Whether a block is a quotation; ``wait`` when text to come tells. Asked again for the same block, it says the same."""
        start, end = span
        low = max(0, self._end, start - REACH)
        gap = text[low:start]
        blank = gap.rfind("\n\n")
        tail = gap if blank < 0 else gap[blank + 2 :]
        before = self._before if blank < 0 else []
        if tail:
            line = max(tail.rfind("\n"), tail.rfind("\r")) + 1
            lead = tail[line:]
            whole = line > 0 or blank >= 0 or low == 0 or low != self._end
            if lead and whole and not lead.isspace():
                verdict = _prefixed(text, start - len(lead), start, end, final=final)
                if verdict:
                    return verdict
        elif not before:
            return ""
        if not (has_marks(tail) or any(map(has_marks, before))):
            return ""
        paragraph = _last_paragraph(tail)
        if len(paragraph) == len(gap):
            paragraph = _BLOCK.join([*before, gap])
        return self._in_marks(text, end, paragraph[-REACH:], final=final)

    def behind(self, text: str, span: Span) -> None:
        """Takes a block: what is asked next stands behind it."""
        start, end = span
        gap = text[max(0, self._end, start - REACH) : start]
        if self._before and (len(self._before) > _MAX_GAPS or "\n\n" in gap):
            self._before.clear()
        self._before.append(_last_paragraph(gap))
        self._end = end

    def _in_marks(self, text: str, end: int, paragraph: str, *, final: bool) -> Verdict:
        paragraph = _seen(paragraph)
        before = paragraph.rstrip()
        closers = _NEXT_TO.get(before[-1:], "")
        plain = _opened(paragraph)
        open_pairs = [close for mark, close in _PAIRS if paragraph.rfind(mark) > max(map(paragraph.rfind, close))]
        if closers and before[-1] in "\"'`" and (before[-2:-1].isalnum() or before.endswith("``")):
            # Behind a word a mark closes; several backticks are a fence's line or code.
            closers = ""
        if not closers and not plain and not open_pairs:
            return ""
        after = self._prose_behind(text, end, final=final)
        if after is None:
            return "wait"
        after = _seen(after)
        if plain and _closed(after):
            return "marks"
        if any(close in after for closes in open_pairs for close in closes):
            return "marks"
        follow = after.lstrip()
        if closers and follow[:1] and follow[0] in closers and not follow[1:2].isalnum():
            return "marks"
        return ""

    def _prose_behind(self, text: str, end: int, *, final: bool) -> str | None:
        """The rest of the paragraph behind a block, without the text of later blocks; None when text to come tells."""
        stop = end + REACH
        prose: list[str] = []
        at = end
        for count in range(_MAX_GAPS):
            blank = _BLANK_LINE.search(text, at, stop)
            limit = blank.start() if blank is not None else min(stop, len(text))
            # Behind so many blocks every mark counts.
            span = self.next_block(at, limit) if count < _MAX_GAPS - 1 else None
            if span == "wait":
                return None
            if span is None:
                prose.append(text[at:limit])
                known = blank is not None or len(text) >= stop
                return _BLOCK.join(prose) if known or final else None
            prose.append(text[at : span[0]])
            at = span[1]
            if at >= stop:
                break
        return _BLOCK.join([*prose, ""])


def _seen(text: str) -> str:
    """A text as a reader sees its quotation marks."""
    if text.isascii():
        return text
    return _DELIMITERS.sub("", _HIDDEN.sub("", text)).replace("＂", '"')


def _opened(text: str) -> bool:
    """Whether a plain quotation mark is open at the end of a text: one that looks like an opening one, with none behind it that
    is sure to close it. Behind a digit it may stand for inches."""
    opened = -1
    at = text.find('"')
    while at >= 0:
        before, behind = text[at - 1 : at], text[at + 1 : at + 2]
        if before == "\\":
            pass
        elif opened < 0:
            closes = not before.isspace() and before != "" and behind.isspace() and not text[at + 1 :].isspace()
            if not before.isalnum() and not closes:
                opened = at
        elif (
            not before.isspace()
            and before not in "([{"
            and not behind.isalnum()
            and (not before.isdigit() or _NUMBER.fullmatch(text, opened + 1, at) is not None)
        ):
            opened = -1
        at = text.find('"', at + 1)
    return opened >= 0


def _closed(text: str) -> bool:
    """Whether a plain quotation mark that may close one stands in the text behind a block: any but those that begin a word, and the
    next one behind each of these."""
    opened = False
    at = text.find('"')
    while at >= 0:
        before, behind = text[at - 1 : at], text[at + 1 : at + 2]
        if before == "\\":
            pass
        elif opened:
            opened = False
        elif behind.isalnum() and (before.isspace() or (before != "" and before in "([{")):
            opened = True
        else:
            return True
        at = text.find('"', at + 1)
    return False


def has_marks(text: str) -> bool:
    """Whether any quotation mark stands in a text."""
    if '"' in text or "'" in text or "`" in text:
        return True
    return not text.isascii() and _MARKS.search(text) is not None


def _last_paragraph(gap: str) -> str:
    """The part of a text behind its last blank line."""
    if "\n" not in gap and "\r" not in gap:
        return gap
    at = 0
    for match in _BLANK_LINE.finditer(gap):
        at = match.end()
    return gap[at:]


def _prefixed(text: str, line: int, start: int, end: int, *, final: bool) -> Verdict:
    """Whether the text before a block on its line is a mark of quoting."""
    lead = text[line:start]
    shown = _HIDDEN.sub("", lead).lstrip()
    if _QUOTE_LINE.match(shown):
        return "quote"
    if _TABLE_LINE.match(shown):
        return "table"
    if _COMMENT_LINE.match(shown):
        return "prefix"
    prefix = _normal(shown)
    if prefix[-1:].isalnum() and not lead[-1:].isspace():
        return ""
    block = text[start:end]
    if "\n" in block or "\r" in block:
        if _all_carry(text, start, end, prefix, len(lead)):
            return "prefix"
        listed = _LIST_ITEM.match(f"{prefix} ") is not None
        timed = "0" in prefix and not listed
        return "prefix" if timed and _carries(_line_before(text, line), prefix, len(lead)) else ""
    return _among_like(text, line, end, prefix, lead, final=final)


def _normal(prefix: str) -> str:
    """A prefix without what changes from line to line: numbers, levels of a log, blanks at its ends."""
    return _LEVEL.sub("L ", _DIGITS.sub("0", prefix.strip())).strip()


def _carries(line: str, prefix: str, size: int) -> bool:
    shown = _HIDDEN.sub("", line[: size + 24])
    return bool(prefix) and _normal(shown).startswith(prefix)


def _all_carry(text: str, start: int, end: int, prefix: str, size: int) -> bool:
    """Whether every line of a block, but for blank ones, begins with the prefix of its first."""
    count = 0
    at = start
    while True:
        breaks = [position for sign in ("\n", "\r") if (position := text.find(sign, at, end)) >= 0]
        if not breaks:
            return count > 0
        at = min(breaks) + 1
        line = text[at : min(end, at + size + 40)].split("\n", 1)[0].split("\r", 1)[0]
        if not line.strip():
            continue
        if not _carries(line, prefix, size):
            return False
        count += 1


def _line_before(text: str, line: int) -> str:
    stop = line
    while stop > 0 and text[stop - 1] in "\r\n" and line - stop < 2:
        stop -= 1
    low = max(0, stop - REACH)
    return text[max(low, max(text.rfind("\n", low, stop), text.rfind("\r", low, stop)) + 1) : stop]


def _among_like(text: str, line: int, end: int, prefix: str, lead: str, *, final: bool) -> Verdict:
    """A block on one line: quoted when the line above or below carries its prefix, which is not a list's."""
    above = _line_before(text, line)
    bare = lead.strip()
    if bare in ("+", "-") and not lead[-1:].isspace():
        return "prefix" if above[:1] in ("+", "-") or above.startswith("@@") else ""
    if bare == "*":
        below = _below(text, end, final=final)
        if below is None:
            return "wait"
        return "prefix" if above.lstrip().startswith("/*") or below.lstrip().startswith("*/") else ""
    if _LIST_ITEM.match(f"{prefix} ") or _PLAUSIBLE.match(prefix) is None:
        return ""
    if _carries(above, prefix, len(lead)):
        return "prefix"
    below = _below(text, end, final=final)
    if below is None:
        return "wait"
    return "prefix" if _carries(below, prefix, len(lead)) else ""


def _below(text: str, end: int, *, final: bool) -> str | None:
    """The line below the one on which a block ends; None while it has not come."""
    after = text[end : end + REACH].replace("\r\n", "\n").replace("\r", "\n").split("\n", 2)
    if not final and len(after) < 3 and len(text) < end + REACH:
        return None
    return after[1] if len(after) > 1 else ""
