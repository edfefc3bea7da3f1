"""TAM (seed 002): the markers and delimiters, and the two ways of reading a block.

The strict walk takes canonical text and gives up at anything unusual; the tolerant one (``pairs/lexer.py``) owns the
findings. Both give the same pairs, from which ``tam/steps.py`` makes the calls. Must not know tools beyond ``ReadOptions``.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from tamis.protocols.base import Markers, Source
from tamis.protocols.model import MAX_NAME_CHARS, MAX_PARAMS, Block, Comment, ReadOptions
from tamis.protocols.pairs.lexer import lex
from tamis.protocols.pairs.walk import (
    CONTROL,
    Codes,
    Dialect,
    Family,
    Findings,
    Lexed,
    Pair,
    block_of,
    doubled,
    empty_block,
    in_prose,
    mention,
    note_controls,
    note_marker,
    note_unterminated,
    too_many,
)
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span
from tamis.protocols.tam.keys import INVISIBLE
from tamis.protocols.tam.steps import make_calls

OPEN = "<|[REQUEST_TOOL]|>"
CLOSE = "<|[END_TOOL]|>"
HEAD = "»»»"
TAIL = "«««"


def _letters(word: str) -> str:
    return rf"[{INVISIBLE}]*+".join(word)


_GAP = rf"[ \t_\-{INVISIBLE}]*+"
# Patterns that are looked for in whole texts begin with one set of characters, which the regex engine skips to.
_LEFT = rf"[<＜][<＜]?+[ \t{INVISIBLE}]*+(?=[|｜\[［【])[|｜\[［【 \t{INVISIBLE}]*+"
_RIGHT = rf"[\]］】|｜ \t{INVISIBLE}]*+(?:>{{1,2}}|＞{{1,2}})"
_REQUEST_TOOL = f"{_letters('REQUEST')}{_GAP}{_letters('TOOL')}"
_END_TOOL = (
    f"(?:/{_GAP}(?:{_letters('REQUEST')}{_GAP})?{_letters('TOOL')}"
    f"|{_letters('END')}(?:{_GAP}{_letters('REQUEST')})?(?:{_GAP}{_letters('TOOL')}S?)?"
    f"|{_letters('TOOL')}{_GAP}{_letters('END')})"
)

PLAIN = Family("plain", HEAD, TAIL, lazy("««««*+"), lazy("»»»»*+"))
_BACKUP_TAIL = lazy(r"[<«](?:(?<=<)<<<*+(?!\[)|(?<=«)«««*+)")
_ANY_HEAD = lazy(r"[»>》＞«](?:(?<=»)»*+|(?<=>)>>>*+|(?<=[》＞])[》＞]++|(?<=«)«««*+)")
_LINE_KEY = r"[ \t]*+(?:[-*+•][ \t]++)?[*`\"']*+[^\W\d][\w.\-]{0,63}+[*`\"']*+[ \t]*+[:：=](?!//)"


def _family_of(head: str) -> str:
    if head.startswith(HEAD) and not head.strip("»"):
        return "plain"
    if head == ">>>":
        return "backup"
    return "swapped" if head[0] in "«<《＜" else "odd"


DIALECT: Final = Dialect(
    protocol="tam",
    opens=lazy(f"(?i:{_LEFT}{_REQUEST_TOOL}{_RIGHT})"),
    closes=lazy(f"(?i:{_LEFT}{_END_TOOL}{_RIGHT})"),
    foreign_closes=lazy(r"(?i:<{2,4}\[?END_TOOL_REQUEST\]?>{2,4}|</ACTION>)(?=[ \t]*+(?:[\r\n]|\Z))"),
    open_text=OPEN,
    close_text=CLOSE,
    case_matters=False,
    key_text=lazy(r"[^\r\n:：=→»«<>《》＜＞]*+"),
    separator=lazy(r"=>|[:：=→︰﹕∶]"),
    # A single » and doubled ASCII brackets are also prose and shell: they count only with their partner on the line.
    head=lazy(
        r"»{3,}+|>{3,}+|[»>]{3}|»{1,2}+(?:[ \t]++»{1,2}+)*+|>(?:[ \t]>){2}|>>(?=[^\r\n<>]*+<<)|[》＞]{2,}+"
        r"|«{3,}+|<{3,}+(?=[^\r\n<>]*+>>>)|[《＜]{2,}+(?=[^\r\n]*?[》＞]{2})"
    ),
    strong_head=lazy(r"»»»»*+|>>>>*+"),
    any_head=_ANY_HEAD,
    any_tail=lazy(r"«{2,}+|<{3,}+(?!\[)|[《＜]{2,}+"),
    ending_tail=lazy(r"(?:«(?:[ \t]*«)*+|<{2,}+|[《＜]{2,}+|»{2,}+)\Z"),
    bare_key=lazy(r"[^\W\d][\w.\-]{0,63}"),
    bare_line=lazy(_LINE_KEY),
    later_bare_line=lazy(r"[\r\n]" + _LINE_KEY),
    inline_pair=lazy(r"[,，;；][ \t]*+[\w.\-]{1,64}+[ \t]*+[:：=][ \t]*+(?:»»»|>>>)"),
    next_key=lazy(r"\w[\w.\-]{0,63}+(?:[ \t][\w.\-]{1,63}+){0,2}"),
    first_key="command",
    drops=False,
    between=",，;；",
    comment=lazy(r"#[^\r\n]*+"),
    foreign_comment=lazy(r"//[^\r\n]*+|--[ \t][^\r\n]*+|<!--[^\r\n]*?-->|/\*[^\r\n]*?\*/|;[ \t][^\r\n]*+"),
    families={
        "plain": PLAIN,
        "backup": Family("backup", HEAD, TAIL, _BACKUP_TAIL, lazy(r"[»>](?:(?<=»)»»»*+|(?<=>)>>>*+)")),
        "swapped": Family("swapped", HEAD, TAIL, lazy(r"»{3,}+|>{3,}+|[》＞]{2,}+"), lazy(r"«{3,}+")),
        "odd": Family("odd", HEAD, TAIL, lazy(r"«(?:[ \t]*«)*+|<{2,}+(?!\[)|[《＜]{2,}+"), _ANY_HEAD),
    },
    codes=Codes(
        missing_tail="TM211",
        missing_head="TM213",
        bare="TM214",
        swapped="TM215",
        own_tail="TM216",
        separator="TM220",
        decoration="TM221",
        noise="TC011",
        after_value="TM226",
        missing_end="TC002",
        empty="TC012",
    ),
    family_of=_family_of,
)

_LAYOUT = lazy(r"[ \t]*+[\r\n][ \t\r\n]*+")
_PAIR = lazy(r"([A-Za-z][A-Za-z0-9]*+(?:_[A-Za-z0-9]++)*+):»»»(?!»)")
_COMMENT = lazy(r"#[^\r\n]*+")


def lex_canonical(source: Source, start: int, limit: int) -> Lexed | None:
    """The pairs of a block in canonical form, or None at anything unusual."""
    text = source.text
    pairs: list[Pair] = []
    comments: list[Comment] = []
    starts, ends = source.tokens(PLAIN.closes)
    at = start
    while (layout := _LAYOUT.match(text, at, limit)) is not None:
        at = layout.end()
        match = _PAIR.match(text, at, limit)
        if match is None:
            if text.startswith(CLOSE, at) and at + len(CLOSE) <= limit:
                break
            comment = _COMMENT.match(text, at, limit)
            if comment is None:
                return None
            comments.append(Comment(comment.span(), comment.group()))
            at = comment.end()
            continue
        head, key = match.end(), match.span(1)
        i = bisect_left(starts, head)
        if i == len(starts) or ends[i] > limit or ends[i] - starts[i] != 3 or key[1] - key[0] > MAX_NAME_CHARS:
            return None
        tail, end = starts[i], ends[i]
        if text.find(HEAD, head, tail) >= 0:
            return None
        pairs.append(Pair(at, end, key, match.group(1), (head, tail), "plain"))
        at = end
    else:
        return None
    end = at + len(CLOSE)
    # A closing marker inside a value, a control character and an empty block need the tolerant walk's judgement.
    if not pairs or CONTROL.search(text, start, at) is not None:
        return None
    if (text.find("<", start, at) >= 0 or text.find("＜", start, at) >= 0) and DIALECT.closes.search(text, start, at):
        return None
    lexed = Lexed(pairs, comments, Findings(), (at, end), "close", end)
    if len(pairs) > MAX_PARAMS:
        too_many(lexed, pairs[MAX_PARAMS].start)
    return lexed


class TamProtocol:
    """``<|[REQUEST_TOOL]|>`` … ``<|[END_TOOL]|>`` with ``key:»»»value«««``."""

    id = "tam"
    opener = DIALECT.opens
    markers = Markers(
        open=OPEN,
        close=CLOSE,
        stray=r"<{1,2}+\|?\[(?i:END_TOOL)\]\|?>{1,2}+",
        escaped=r"&lt;\|\[REQUEST_TOOL\]\|&gt;",
        bare_sign=HEAD,
        bare=lazy(r"(?m:^)[ \t]*+command(?:_\d{1,4})?[ \t]*+[:：][ \t]*+»»»"),
    )

    def read_block(self, source: Source, opener: Span, limit: int, options: ReadOptions) -> Block:
        """Reads the block opened at ``opener``; see ``CallProtocol``."""
        text = source.text
        lexed = lex_canonical(source, opener[1], limit)
        if lexed is None:
            twice = doubled(text, opener, limit, DIALECT)
            if twice is not None:
                return twice
            lexed = lex(source, opener[1], limit, DIALECT, complete=options.complete)
            note_controls(lexed.findings, text, opener[1], lexed.end, lexed.pairs)
        if not lexed.pairs:
            return empty_block(source, opener, limit, lexed, DIALECT, options)
        if in_prose(text, opener, lexed, DIALECT):
            return mention("tam", opener)
        note_marker(lexed.findings, text, opener, OPEN, DIALECT)
        if lexed.close is not None and DIALECT.closes.fullmatch(text, *lexed.close):
            note_marker(lexed.findings, text, lexed.close, CLOSE, DIALECT)
        truncated = note_unterminated(lexed, opener, DIALECT, options)
        calls = make_calls(text, lexed, options)
        return block_of(DIALECT, opener, lexed, calls, truncated=truncated, dropped=False)


TAM: Final = TamProtocol()
