"""Key, delimiter, value: what TAM and VCP share.

A ``Dialect`` says what markers and delimiters look like in one of them; a block is cut into pairs, comments and findings
(``pairs/lexer.py``, or a protocol's own strict walk), and ``block_of`` puts the result together. Must not know what a key
means: steps, batches and reserved names are the protocols'.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

import msgspec

from tamis.protocols.base import Source
from tamis.protocols.catalogue import CATALOGUE
from tamis.protocols.invisible import IN_LAYOUT
from tamis.protocols.model import (
    MAX_BLOCK_CHARS,
    MAX_PARAMS,
    MAX_PROBLEMS,
    Block,
    Call,
    Comment,
    Diag,
    Edit,
    Fix,
    ReadOptions,
    Severity,
)
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span
from tamis.protocols.tam.keys import visible

BLANK = lazy(rf"[\s{IN_LAYOUT}]*+")
LINE_END = lazy(r"[\r\n]")
LEADING = lazy(
    r"[ \t]*+(?:(?:[-*+•·▪●◦‣–—][ \t]++|\d{1,3}[.)][ \t]++)(?:\[[ xX]\][ \t]++)?)?[*`\"'“”‘’「」『』]*+[ \t]*+"
)
"""Bullets, quotes and emphasis that models put before a key (TM221, VC324); an underscore is part of the name."""
QUOTES = ("<", ">", "＜", "＞")
"""How the key of a quoted line begins (``> key``): the lines of its value are quoted too."""
TRAILING = " \t*`\"'“”‘’「」『』"
FENCE_LINE = lazy(r"(?:```|~~~)[\w+-]*[ \t]*+(?=[\r\n]|\Z)")
_DELIMITERS = frozenset(
    ["TM210", "TM211", "TM212", "TM213", "TM214", "TM215", "VC310", "VC311", "VC312", "VC313", "VC314"]
)
SEPARATORS = ":：=→︰﹕∶"
KEY = r"[*`\"'\-+•]{0,3}[ \t]?+\w[\w.\-/()\[\] ]{0,63}[*`\"']{0,3}"
"""A key as a line of a value may hold one, for ``Dialect.runs_on``."""
CONTROL = lazy(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class Family(msgspec.Struct, frozen=True):
    """One pair of delimiters: what closes a value that ``head`` opened."""

    name: str
    head: str
    tail: str
    closes: re.Pattern[str]
    """The closing delimiters that end such a value wherever they stand."""
    heads: re.Pattern[str]
    """Opening delimiters that, behind a key of their own, prove that the value before them was never closed."""


class Codes(msgspec.Struct, frozen=True):
    """The catalogue's codes for the findings that both dialects have."""

    missing_tail: str
    missing_head: str
    bare: str
    swapped: str
    own_tail: str
    separator: str
    decoration: str
    noise: str
    after_value: str
    missing_end: str
    empty: str
    misspelt: str
    """Delimiters in another spelling."""
    backup: str = ""
    """Delimiters in the backup form."""


class Dialect(msgspec.Struct, frozen=True):
    """What blocks and pairs look like in one protocol."""

    protocol: str
    opens: re.Pattern[str]
    """Opening markers of requests, which end an unclosed block."""
    closes: re.Pattern[str]
    foreign_closes: re.Pattern[str] | None
    """Closing markers of other protocols that may stand in for a missing one."""
    foreign_opens: re.Pattern[str] | None
    """Their opening markers: what closes a block of another protocol closes no block around it."""
    open_text: str
    close_text: str
    case_matters: bool
    """Whether letter case and blanks in a marker are worth a warning (VCP, ruling 28) or not (TAM, seed 002 §2.1)."""
    key_text: re.Pattern[str]
    """The text of a key up to its separator or delimiter; matches also nothing."""
    separator: re.Pattern[str]
    head: re.Pattern[str]
    strong_head: re.Pattern[str]
    """The canonical opening delimiter, which is never anything else."""
    any_head: re.Pattern[str]
    any_tail: re.Pattern[str]
    ending_tail: re.Pattern[str]
    """A closing delimiter in any spelling at the very end of a stretch of text."""
    bare_key: re.Pattern[str]
    """A key plausible enough to stand before an undelimited value."""
    bare_line: re.Pattern[str]
    """The start of a line that is such a pair."""
    later_bare_line: re.Pattern[str]
    """The same behind a line end."""
    inline_pair: re.Pattern[str]
    """A separator and the start of another pair inside a line, which ends an undelimited value."""
    next_key: re.Pattern[str]
    """A key plausible enough to prove, before a delimiter of its own, that the value above was never closed."""
    first_key: str
    """The key that names the tool; a block usually begins with it."""
    drops: bool
    """Whether a block without its closing marker is dropped (VCP, ruling 29)."""
    between: str
    """Characters that may stand between two pairs."""
    comment: re.Pattern[str] | None
    foreign_comment: re.Pattern[str] | None
    families: dict[str, Family]
    codes: Codes
    family_of: Callable[[str], str]
    """The name of the family by the opening delimiter as it is written; ``odd`` when it is none of the canonical ones."""
    odd_value: re.Pattern[str]
    """What in a value would be a delimiter, or a part of one, if the delimiters beside it changed."""
    runs_on: Callable[[str, bool], bool]
    """Whether a closed value holds a misspelt delimiter and then another pair, so that it may have ended there; also where its own
    delimiters are not the canonical ones."""
    foreign_marks: tuple[str, str]
    """The delimiters of another protocol of pairs."""
    rewrite_title: str
    """What a fix of misspelt delimiters does."""
    rewrite_tail_title: str
    """The same of a closing one without an opening one."""
    is_backup: Callable[[str], bool] | None = None
    """Whether a delimiter in another spelling is the backup form, which has a finding of its own (ruling 22)."""
    rewrites_any: bool = True
    """Whether misspelt delimiters are also rewritten around a value that holds the canonical closing one."""
    separates: str = ""
    """What stands between two pairs in the canonical spelling. Where there is something, it is no part of an undelimited value's end."""
    emphasis: str = ""
    """What may stand on both sides of a key as emphasis, although keys may hold it."""
    in_runs: bool = False
    """Whether delimiters are runs of one character, of which a longer one may hold a part of the value (ruling 56)."""
    by_words: bool = False
    """Whether delimiters are words in brackets, so that any short word in brackets at the edge of a value may be one."""
    half_tail: str = ""
    """The beginning of a closing delimiter, which leaves a doubt where it stands in a value alone."""
    half_tail_at: Callable[[str, int, int], int | None] | None = None
    """Where half a closing delimiter begins that ends a stretch of text; None where nothing does."""


class Pair(msgspec.Struct):
    """One field as it was written. ``value`` lies between the delimiters, untrimmed; ``raw`` is the undecorated key."""

    start: int
    end: int
    key: Span
    raw: str
    value: Span
    family: str
    mark: int
    """Where the opening delimiter begins; where the value begins if there is none."""
    delimited: bool = True
    """Whether an own closing delimiter stands in the text."""


class Finding(msgspec.Struct):
    """A diagnostic and the pair it is about (-1: the block)."""

    diag: Diag
    pair: int


class Findings:
    """The findings of one block, bounded: past the limit one error stands for the rest (TC023)."""

    __slots__ = ("_hints", "_problems", "items", "overflow")

    def __init__(self) -> None:
        self.items: list[Finding] = []
        self.overflow = False
        self._problems = 0
        self._hints = 0

    def add(
        self,
        code: str,
        span: Span,
        pair: int = -1,
        *,
        args: dict[str, str | int] | None = None,
        severity: Severity | None = None,
        fix: Fix | None = None,
        repair: bool = False,
        minor: bool = False,
    ) -> None:
        """Notes one finding; ``minor`` ones (hints) are dropped past the limit, others reject the block."""
        if minor:
            self._hints += 1
            if self._hints > MAX_PROBLEMS:
                return
        else:
            self._problems += 1
            if self._problems > MAX_PROBLEMS:
                if not self.overflow:
                    self.overflow = True
                    self.items.append(Finding(Diag("TC023", span, {"n": MAX_PROBLEMS}), -1))
                return
        self.items.append(Finding(Diag(code, span, args or {}, severity, fix, {}, repair), pair))


class Lexed(msgspec.Struct):
    """A block cut into pairs. ``stop`` says what ended it: its closing marker, another opening one, or the limit."""

    pairs: list[Pair]
    comments: list[Comment]
    findings: Findings
    close: Span | None
    stop: Literal["close", "open", "end"]
    end: int
    cut_pair: int | None = None
    """The pair whose value ran into the end of the block's text without a closing delimiter."""
    nested: Span | None = None
    """Where a whole block stands inside an unclosed value: two readings, so none is taken."""
    cut: str | None = None
    """What else the text ends in the middle of: a key, a delimiter or a marker (ruling 51)."""


def fix(title: str, *edits: Edit, unsafe: bool = False) -> Fix:
    """A fix of sorted edits."""
    return Fix(title, tuple(sorted(edits, key=lambda edit: (edit.start, edit.end))), "unsafe" if unsafe else "safe")


def delete(start: int, end: int) -> Edit:
    """The edit that removes a stretch."""
    return Edit(start, end, "")


def excerpt(text: str, start: int, end: int) -> str:
    """The start of a stretch, for messages."""
    part = text[start : min(end, start + 60)].strip()
    return part + "…" if end - start > 60 else part


def note_invisible(findings: Findings, text: str, start: int, end: int, where: str, pair: int = -1) -> None:
    """Reports characters without a width in a stretch of layout, at the first of them (TC013)."""
    part = text[start:end]
    if part.isascii():
        return
    places = [at for at, char in enumerate(part, start) if char in IN_LAYOUT]
    if not places:
        return
    findings.add(
        "TC013",
        (places[0], places[0] + 1),
        pair,
        args={"hex": f"{ord(text[places[0]]):04X}", "where": where},
        fix=fix("Remove the invisible characters", *(delete(at, at + 1) for at in places[:MAX_PROBLEMS])),
        repair=True,
    )


def note_controls(findings: Findings, text: str, start: int, end: int, pairs: list[Pair]) -> None:
    """Reports control characters inside values (TC014), one per value; NUL rejects the block."""
    i = 0
    at = CONTROL.search(text, start, end)
    while at is not None:
        here = at.start()
        while i < len(pairs) and pairs[i].end <= here:
            i += 1
        if i == len(pairs):
            return
        pair = pairs[i]
        if not pair.value[0] <= here < pair.value[1]:
            at = CONTROL.search(text, here + 1, end)
            continue
        code = ord(text[here])
        findings.add(
            "TC014",
            at.span(),
            i,
            args={"hex": f"{code:04X}", "param": pair.raw},
            severity="error" if code == 0 else None,
            fix=fix("Remove the control character", delete(*at.span()), unsafe=True),
        )
        # One per value is enough to say it; a binary value would drown everything else.
        at = CONTROL.search(text, pair.value[1], end)


def too_many(lexed: Lexed, at: int) -> None:
    """Rejects a block with too many pairs (TC022); the first ones stay for display."""
    args: dict[str, str | int] = {"limit": MAX_PARAMS, "what": "parameters"}
    lexed.findings.add("TC022", (at, at + 1), args=args, severity="error")
    del lexed.pairs[MAX_PROBLEMS:]


def note_marker(findings: Findings, text: str, span: Span, canonical: str, dialect: Dialect) -> None:
    """Reports a marker that is not spelled canonically (TC004), or holds an invisible character (TC013)."""
    raw = text[span[0] : span[1]]
    if raw == canonical:
        return
    shown = visible(raw)
    replace = fix(f"Write {canonical}", Edit(span[0], span[1], canonical))
    if shown != raw:
        char = next(char for char in raw if char in IN_LAYOUT)
        findings.add("TC013", span, args={"hex": f"{ord(char):04X}", "where": "a marker"}, fix=replace, repair=True)
        replace = None
        if shown == canonical:
            return
    minor = not dialect.case_matters and re.sub(r"[ \t]", "", shown).upper() == canonical
    findings.add(
        "TC004",
        span,
        args={"raw": raw, "canonical": canonical},
        severity="hint" if minor else None,
        fix=replace,
        repair=not minor,
        minor=minor,
    )


def note_unterminated(lexed: Lexed, opener: Span, dialect: Dialect, options: ReadOptions) -> bool:
    """Reports a block without its closing marker; whether the text was cut off inside it (ruling 1).

    With another opening marker in its way the block was abandoned: it does not run. At the end of a complete text it runs
    when every value is closed (ruling 1); in a text that was cut off it never does.
    """
    if lexed.stop == "close" or lexed.nested is not None:
        return False
    findings = lexed.findings
    where = "the next opening marker" if lexed.stop == "open" else "the end of the last pair"
    insert = fix(f"Insert {dialect.close_text}", Edit(lexed.end, lexed.end, f"\n{dialect.close_text}"))
    args: dict[str, str | int] = {"close": dialect.close_text, "where": where}
    if (lexed.stop == "open" and lexed.cut_pair is None) or dialect.drops:
        # Closing it would run what was abandoned: a person decides.
        insert = msgspec.structs.replace(insert, applicability="unsafe")
    if lexed.stop == "open" and lexed.cut_pair is None:
        findings.add(
            dialect.codes.missing_end, opener, args=args, severity=None if dialect.drops else "error", fix=insert
        )
        return False
    last = lexed.pairs[-1]
    if not options.complete or not last.delimited or lexed.cut is not None:
        construct = f"the value of {last.raw}" if not last.delimited else lexed.cut or "the block"
        findings.add(
            "TC001", opener, args={"protocol": dialect.protocol.upper(), "construct": construct}, severity="error"
        )
        if dialect.drops and options.complete:
            findings.add(dialect.codes.missing_end, opener, args=args)
        return True
    findings.add(dialect.codes.missing_end, opener, args=args, fix=insert, repair=not dialect.drops)
    return False


def own_line(text: str, opener: Span) -> bool:
    """Whether only blanks stand before a marker on its line; a longer run of blanks than any indentation counts as text."""
    before = text[max(0, opener[0] - 80) : opener[0]].rstrip(" \t")
    return before == "" if opener[0] < 80 else before[-1:] in ("\n", "\r")


def doubled(text: str, opener: Span, limit: int, dialect: Dialect) -> Block | None:
    """An opening marker with another one right behind it, the cheapest way to flood a reader (TC006)."""
    inner = BLANK.match(text, opener[1], limit)
    if inner is None or dialect.opens.match(text, inner.end(), limit) is None:
        return None
    if not own_line(text, opener):
        return mention(dialect.protocol, opener)
    remove = fix("Remove the outer marker", delete(*opener))
    return mention(dialect.protocol, opener, Diag("TC006", opener, fix=remove))


def in_prose(text: str, opener: Span, lexed: Lexed, dialect: Dialect) -> bool:
    """Whether a marker stands in a sentence that goes on behind it and only looks like pairs (``the … marker: it opens``)."""
    if lexed.close is not None or own_line(text, opener):
        return False
    inner = BLANK.match(text, opener[1])
    if inner is None or LINE_END.search(text, opener[1], inner.end()) is not None:
        return False
    return all(
        pair.family == "bare" and not pair.delimited and not pair.raw.casefold().startswith(dialect.first_key)
        for pair in lexed.pairs
    )


def _begins(text: str, opener: Span, limit: int, dialect: Dialect) -> bool:
    """Whether the text ends in the first key of a block: a call that was cut off, wherever its marker stands."""
    rest = text[opener[1] : min(limit, opener[1] + 200)]
    if opener[1] + len(rest) < limit:
        return False
    written = visible(rest).lstrip()
    key = written.casefold().rstrip("0123456789_:： \t\r\n")
    new_line = LINE_END.search(rest[: len(rest) - len(written)]) is not None
    return dialect.first_key.startswith(key) and len(key) >= (1 if new_line else 4)


def empty_block(
    source: Source, opener: Span, limit: int, lexed: Lexed, dialect: Dialect, options: ReadOptions
) -> Block:
    """A marker with no pair behind it: a mention in prose, an empty block, or the start of one that was cut off."""
    text = source.text
    alone = own_line(text, opener)
    close = source.next_token(dialect.closes, opener[1], limit) if lexed.stop == "close" else None
    if close is not None:
        inside = text[opener[1] : close[0]]
        if alone if not inside.strip() else LINE_END.search(inside) is not None:
            lexed.findings.add(dialect.codes.empty, opener)
            note_marker(lexed.findings, text, opener, dialect.open_text, dialect)
            lexed.close, lexed.end = close, close[1]
            return block_of(text, dialect, opener, lexed, [], truncated=False, dropped=True)
    elif lexed.stop == "end" and (
        (not options.complete and (alone or not text[opener[1] : limit].strip()))
        or _begins(text, opener, limit, dialect)
    ):
        construct = "the block"
        lexed.findings.items.clear()
        lexed.findings.add("TC001", opener, args={"protocol": dialect.protocol.upper(), "construct": construct})
        lexed.end = limit
        return block_of(text, dialect, opener, lexed, [], truncated=True, dropped=True)
    elif alone and lexed.stop == "open":
        remove = fix("Remove the outer marker", delete(*opener))
        return mention(dialect.protocol, opener, Diag("TC006", opener, fix=remove))
    return mention(dialect.protocol, opener)


def mention(protocol: str, opener: Span, *diagnostics: Diag) -> Block:
    """A marker that opens nothing."""
    return Block(protocol, opener, opener, None, "mention", diagnostics=list(diagnostics))


def block_of(
    text: str,
    dialect: Dialect,
    opener: Span,
    lexed: Lexed,
    calls: list[tuple[Call, set[int]]],
    *,
    truncated: bool,
    dropped: bool,
) -> Block:
    """The finished block: findings handed to the calls they touch, errors applied to all of them (ruling 1).

    ``calls`` pairs each call with the indices of its pairs; findings about the block touch every call.
    """
    items = lexed.findings.items
    if lexed.end - opener[0] > MAX_BLOCK_CHARS:
        items.append(Finding(Diag("TC021", opener, {"limit": MAX_BLOCK_CHARS}), -1))
    errors = truncated or dropped or not calls or any(is_error(item.diag) for item in items)
    _only_by_a_person(text, items, lexed, dialect, errors=errors)
    repairs = [item for item in items if item.diag.repair and not is_error(item.diag)]
    kept: list[Call] = []
    for call, own in calls:
        call.complete = not truncated
        call.executable = not errors
        if repairs:
            call.repairs = [item.diag for item in repairs if item.pair < 0 or item.pair in own]
        kept.append(call)
    diagnostics = sorted((item.diag for item in items), key=lambda diag: diag.span)
    return Block(
        dialect.protocol,
        (opener[0], max(lexed.end, opener[1])),
        opener,
        lexed.close,
        "truncated" if truncated else "rejected" if errors else "complete",
        [] if dropped else kept,
        diagnostics,
        lexed.comments,
    )


def _odd_value(value: str, dialect: Dialect) -> bool:
    value = visible(value)
    return dialect.odd_value.search(value) is not None or dialect.runs_on(value, False)


def _only_by_a_person(text: str, items: list[Finding], lexed: Lexed, dialect: Dialect, *, errors: bool) -> None:
    """Makes a fix unsafe in a block that does not run, and where a key or value is odd: what is read could change (P4)."""
    for item in items:
        change = item.diag.fix
        if change is None or change.applicability != "safe":
            continue
        if not errors:
            pair = lexed.pairs[item.pair] if 0 <= item.pair < len(lexed.pairs) else None
            if pair is None or (
                pair.raw.strip(" \t->")[-1:].strip(SEPARATORS)
                and (change.edits[-1].end < pair.value[0] or not _odd_value(text[slice(*pair.value)], dialect))
            ):
                continue
        item.diag = _unsafe(item.diag)
    if any(
        item.diag.code in _DELIMITERS and item.diag.fix and item.diag.fix.applicability == "unsafe" for item in items
    ):
        # Some delimiters of a block put right and others not: what then closes what is another question.
        for item in items:
            if item.diag.code in _DELIMITERS:
                item.diag = _unsafe(item.diag)


def _unsafe(diag: Diag) -> Diag:
    change = diag.fix
    if change is None or change.applicability != "safe":
        return diag
    return msgspec.structs.replace(diag, fix=msgspec.structs.replace(change, applicability="unsafe"))


def is_error(diag: Diag) -> bool:
    """Whether a finding blocks its block's calls."""
    return (diag.severity or CATALOGUE[diag.code].severity) == "error"
