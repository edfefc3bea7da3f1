"""How TAM is spelled (seed 002): its markers and delimiters, in every spelling that is read, and the walk of a block in the canonical one.

The walk gives up at anything unusual; the tolerant one (``pairs/lexer.py``) owns the findings.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from tamis.protocols.base import Source
from tamis.protocols.invisible import IN_LAYOUT
from tamis.protocols.model import MAX_NAME_CHARS, MAX_PARAMS, Comment
from tamis.protocols.pairs.walk import (
    CONTROL,
    KEY,
    Codes,
    Dialect,
    Family,
    Findings,
    Lexed,
    Pair,
    too_many,
)
from tamis.protocols.patterns import lazy, signed

OPEN = "<|[REQUEST_TOOL]|>"
CLOSE = "<|[END_TOOL]|>"
HEAD = "»»»"
TAIL = "«««"


def _letters(word: str) -> str:
    return rf"[{IN_LAYOUT}]*+".join(word)


_GAP = rf"[ \t_\-{IN_LAYOUT}]*+"
# Patterns that are looked for in whole texts begin with one set of characters, which the regex engine skips to.
_SIGNS = "<＜"
_FOLLOW = rf"{_SIGNS} \t{IN_LAYOUT}|｜\[［【"
_LEFT = rf"[{_SIGNS}]?+[ \t{IN_LAYOUT}]*+(?=[|｜\[［【])[|｜\[［【 \t{IN_LAYOUT}]*+"
_RIGHT = rf"[\]］】|｜ \t{IN_LAYOUT}]*+(?:>{{1,2}}|＞{{1,2}})"
_REQUEST_TOOL = f"{_letters('REQUEST')}{_GAP}{_letters('TOOL')}"
_END_TOOL = (
    f"(?:/{_GAP}(?:{_letters('REQUEST')}{_GAP})?{_letters('TOOL')}"
    f"|{_letters('END')}(?:{_GAP}{_letters('REQUEST')})?(?:{_GAP}{_letters('TOOL')}S?)?"
    f"|{_letters('TOOL')}{_GAP}{_letters('END')})"
)

PLAIN = Family("plain", HEAD, TAIL, lazy("««««*+"), lazy("»»»»*+"))
_BACKUP_TAIL = lazy(r"[<«](?:(?<=<)<<<*+(?!\[)|(?<=«)«««*+)")
_ANY_HEAD = lazy(r"[»>》＞«](?:(?<=»)»*+|(?<=>)(?:[ \t]?>)++|(?<=[》＞])[》＞]++|(?<=«)«««*+)")
_MIXED_TAIL = lazy(
    rf"[<«《＜](?:(?<=[<«])(?:[ \t{IN_LAYOUT}]*+[<«])++(?!\[)|(?<=«)|(?<=[《＜])[《＜]++)",
)
_LINE_KEY = r"[ \t]*+(?:[-*+•][ \t]++)?[*`\"']*+[^\W\d][\w.\-]{0,63}+(?: \d{1,9}+)?[*`\"']*+[ \t]*+[:：=︰﹕∶](?!//)"


_HALF_TAIL = rf"(?:[<«](?:[ \t{IN_LAYOUT}]*+[<«])++|«|[《＜]{{2,}}+)[ \t,，;；、]*+"
_RUNS_ON = lazy(
    rf"{_HALF_TAIL}(?:[\r\n]\s*+{KEY}[ \t]*(?:=>|->|::|[:：=︰﹕∶→])?|{KEY}[ \t]*(?:=>|->|::|[:：=︰﹕∶→]))[*\s]*+(?:»»|>>)"
)


def _runs_on(part: str, odd: bool) -> bool:
    """``odd``: ``>>`` may begin the other pair as well."""
    return ("»»" in part or (odd and ">>" in part)) and _RUNS_ON.search(part) is not None


def _is_backup(raw: str) -> bool:
    """``>>>`` and mixed delimiters of three; any other length or shape is misspelt (ruling 22)."""
    return len(raw) == 3 and not raw.strip("<>»«") and any(char in "<>" for char in raw)


def _family_of(head: str) -> str:
    """The family by what the delimiter is made of: a value that ``»`` opened is not closed by ``<<`` in its text."""
    if head.startswith(HEAD) and not head.strip("»"):
        return "plain"
    if head == ">>>":
        return "backup"
    if head[0] in "«<《＜":
        return "swapped" if head[0] == "«" else "swapped ascii" if head[0] == "<" else "swapped wide"
    kinds = {char for char in head if char in "»>《》＜＞"}
    return "odd" if len(kinds) > 1 else {"»": "odd quotes", ">": "odd ascii"}.get(head[0], "odd")


DIALECT: Final = Dialect(
    protocol="tam",
    opens=signed(_SIGNS, _FOLLOW, f"{_LEFT}{_REQUEST_TOOL}{_RIGHT}"),
    closes=signed(_SIGNS, _FOLLOW, f"{_LEFT}{_END_TOOL}{_RIGHT}"),
    foreign_closes=lazy(r"(?i:<{2,4}\[?END_TOOL_REQUEST\]?>{2,4}|</ACTION>)(?=[ \t]*+(?:[\r\n]|\Z))"),
    foreign_opens=lazy(r"<{1,4}(?i:\[?TOOL_REQUEST\]?>{2,4}|ACTION>)"),
    open_text=OPEN,
    close_text=CLOSE,
    case_matters=False,
    key_text=lazy(r"[^\r\n:：=→︰﹕∶»«<>《》＜＞]*+"),
    separator=lazy(r"=>|::|[:：=→︰﹕∶]"),
    # A single » and doubled ASCII brackets are also prose and shell: they count only with their partner on the line.
    head=lazy(
        rf"»{{3,}}+|>{{3,}}+|[»>]{{3}}|»{{1,2}}+(?:[ \t{IN_LAYOUT}]++»{{1,2}}+)*+|>(?:[ \t]>){{2}}|>{{1,2}}+(?:[{IN_LAYOUT}]++>{{1,2}}+)++"
        r"|>>(?=[^\r\n<>«]*+(?:<<|«))|[》＞]{2,}+"
        r"|«{3,}+|<{3,}+(?=[^\r\n<>]*+>>>)|[《＜]{2,}+(?=[^\r\n]*?[》＞]{2})"
    ),
    strong_head=lazy(r"»»»»*+|>>>>*+"),
    any_head=_ANY_HEAD,
    any_tail=lazy(r"«{2,}+|<{3,}+(?!\[)|[《＜]{2,}+"),
    ending_tail=lazy(rf"(?:[<«](?:[ \t{IN_LAYOUT}]*+[<«])++|«|[《＜]{{2,}}+|»{{2,}}+)\Z"),
    bare_key=lazy(r"[^\W\d][\w.\-]{0,63}+(?: \d{1,9})?"),
    bare_line=lazy(_LINE_KEY),
    later_bare_line=lazy(r"[\r\n]" + _LINE_KEY),
    inline_pair=lazy(r"[,，;；][ \t]*+[\w.\-]{1,64}+[ \t]*+[:：=][ \t]*+(?:»»»|>>>)"),
    next_key=lazy(r"\w[\w.\-/]{0,63}+(?:[\[(#]\d{1,9}[\])]?)?(?:[ \t][\w.\-/]{1,63}+){0,2}"),
    first_key="command",
    drops=False,
    between=",，;；、|",
    comment=lazy(r"#[^\r\n]*+"),
    foreign_comment=lazy(r"//[^\r\n]*+|--[ \t][^\r\n]*+|<!--[^\r\n]*?-->|/\*[^\r\n]*?\*/|;[ \t][^\r\n]*+"),
    families={
        "plain": PLAIN,
        "backup": Family("backup", HEAD, TAIL, _BACKUP_TAIL, lazy(r"[»>](?:(?<=»)»»»*+|(?<=>)>>>*+)")),
        "swapped": Family("swapped", HEAD, TAIL, lazy(r"»{3,}+"), lazy(r"«{3,}+")),
        "swapped ascii": Family("swapped", HEAD, TAIL, lazy(r">{3,}+"), lazy(r"«{3,}+")),
        "swapped wide": Family("swapped", HEAD, TAIL, lazy(r"[》＞]{2,}+"), lazy(r"«{3,}+")),
        "odd": Family("odd", HEAD, TAIL, _MIXED_TAIL, _ANY_HEAD),
        "odd quotes": Family("odd", HEAD, TAIL, lazy(rf"«(?:[ \t{IN_LAYOUT}]*+«)*+"), _ANY_HEAD),
        "odd ascii": Family("odd", HEAD, TAIL, lazy(r"<{2,}+(?!\[)"), _ANY_HEAD),
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
        misspelt="TM212",
        backup="TM210",
    ),
    family_of=_family_of,
    odd_value=lazy(r"\A»|«\Z|»»»|«««"),
    runs_on=_runs_on,
    foreign_marks=("「始」", "「末」"),
    rewrite_title="Write »»» and «««",
    rewrite_tail_title="Write »»» and «««",
    is_backup=_is_backup,
    emphasis="__",
    in_runs=True,
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
        if text.find("»»", head, tail) >= 0:
            # Whether another pair begins there is for the tolerant walk to say.
            return None
        pairs.append(Pair(at, end, key, match.group(1), (head, tail), "plain", head - len(HEAD)))
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
