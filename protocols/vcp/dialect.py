"""How VCP is spelled (seed 001 §4 and §7, rulings 27 to 30): its markers and marks, in every spelling that is read, and the walk of a block in
the canonical one.

The walk gives up at anything unusual; the tolerant one (``pairs/lexer.py``) owns the findings.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from tamis.protocols.base import Source
from tamis.protocols.invisible import IN_LAYOUT
from tamis.protocols.model import MAX_NAME_CHARS, MAX_PARAMS
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
from tamis.protocols.tam.keys import visible

OPEN = "<<<[TOOL_REQUEST]>>>"
CLOSE = "<<<[END_TOOL_REQUEST]>>>"
HEAD = "「始」"
TAIL = "「末」"

_Z = rf"[{IN_LAYOUT}]*+"
_S = rf"[ \t{IN_LAYOUT}]*+"
_GAP = rf"[ \t_\-{IN_LAYOUT}]*+"
# Patterns that are looked for in whole texts begin with one set of characters, which the regex engine skips to.
_SIGNS = "<《＜"
_LEFT = rf"(?<![{_SIGNS}][{_SIGNS}])[{_SIGNS}]{{1,3}}+(?![{_SIGNS}]){_S}[\[［【]?{_S}"
_RIGHT = rf"{_S}[\]］】]?{_S}[>》＞]{{2,4}}+(?![>》＞])"


def _letters(word: str) -> str:
    return _Z.join(word)


_TOOL_REQUEST = f"{_letters('TOOL')}{_GAP}{_letters('REQUEST')}"
# The variants with a suffix are an extension of upstream; a block is closed by the marker with the same suffix.
_SUFFIXES = {"": "", "EXP": f"{_GAP}EXP", "ESCAPE": f"{_GAP}ESCAPE"}
OPENS = signed(_SIGNS, _SIGNS, f"{_LEFT}{_TOOL_REQUEST}(?:{_GAP}(?:EXP|ESCAPE))?{_RIGHT}")

_L = r"[「｢『{｛【［\[〔《〈]"
_R = r"[」｣』}｝】］\]〕》〉]"
_KIND = r"(?:[ _\-]?(?:ESCAPE|exp))?"
_STARTS = (
    rf"(?i:[「｢『{{｛【［\[〔《〈始(（<＜](?:(?<={_L}){_S}(?:始|开始|開始|start|begin){_KIND}{_S}{_R}"
    rf"|(?<=始){_R}|(?<=[(（<＜])始[)）>＞]))"
)
# Half a mark, unless the character goes on as a word (「始终…).
_HALF = "「始(?![终終末于於])"
_ENDS = (
    rf"(?i:[「｢『{{｛【［\[〔《〈(（<＜](?:(?<={_L}){_S}(?:末|未|终|終|结束|結束|end|stop|/始){_KIND}{_S}{_R}"
    r"|(?<=[(（<＜])[末未][)）>＞]))"
)
_ANY_HEAD = lazy(f"{_STARTS[:-2]}|(?<=「)始(?![终終末于於])))")
_ANY_TAIL = lazy(_ENDS)
PLAIN = Family("plain", HEAD, TAIL, lazy(TAIL), lazy("「始(?:ESCAPE|exp)?」"))
ESCAPE = Family("escape", "「始ESCAPE」", "「末ESCAPE」", lazy("(?i:「末ESCAPE」)"), lazy("(?i:「始ESCAPE」)"))
EXP = Family("exp", "「始exp」", "「末exp」", lazy("(?i:「末exp」)"), lazy("(?i:「始exp」)"))
_LINE_KEY = r"[ \t]*+(?:[-*+•][ \t]++)?[*`\"']*+[\w\-]{1,64}+[*`\"']*+[ \t]*+[:：=︰﹕∶](?!//)"


_RUNS_ON = lazy(
    rf"(?:「[末未]|[末未][」｣』}})）】]|[{{(（<＜\[【《『｢][末未])[^\r\n]?[ \t,，;；、]*+"
    rf"(?:[\r\n]\s*+<?{KEY}>?[ \t]*[:：=︰﹕∶]|{KEY}[ \t]*[:：=︰﹕∶][ \t]*「始)"
)
# 未 is a common word: its look-alike marks are looked for in the brackets that models give them.
_HALF_MARKS = (
    ("末", (*(side + "末" for side in "「{（(<＜[【《『｢"), *("末" + side for side in "」｣』}）)】"))),
    ("未", ("未」", "「未", "{未", "未}")),
)


def _runs_on(part: str, _odd: bool = False) -> bool:
    # A bracket beside the character of an end mark is cheaper to find than the whole of the pattern.
    half = any(char in part and any(mark in part for mark in marks) for char, marks in _HALF_MARKS)
    return half and _RUNS_ON.search(part) is not None


def _half_tail_at(text: str, start: int, end: int) -> int | None:
    """Half a mark at the end, unless it ends a word (年末) or a bracket in the value opens it."""
    if not text.endswith("末」", start, end) or text[end - 3] in "年月周期季岁本始粉":
        return None
    part = text[start:end]
    return end - 2 if part.count("」") > part.count("「") else None


def _family_of(head: str) -> str:
    if head == HEAD:
        return "plain"
    if _ANY_TAIL.fullmatch(head):
        return "swapped"
    lowered = head.casefold()
    if "escape" in lowered:
        return "escape"
    return "exp" if "exp" in lowered else "plain" if head.startswith(HEAD) else "odd"


def _dialect(suffix: str) -> Dialect:
    ending = _SUFFIXES[suffix]
    tag = f"_{suffix}" if suffix else ""
    return Dialect(
        protocol="vcp",
        opens=OPENS,
        closes=signed(_SIGNS, _SIGNS, f"{_LEFT}{_letters('END')}{_GAP}{_TOOL_REQUEST}{ending}{_RIGHT}"),
        foreign_closes=None,
        foreign_opens=None,
        open_text=f"<<<[TOOL_REQUEST{tag}]>>>",
        close_text=f"<<<[END_TOOL_REQUEST{tag}]>>>",
        case_matters=True,
        key_text=lazy(r"[^\r\n:：=→︰﹕∶<>「」,，;；、|]*+"),
        separator=lazy(r"=>|::|[:：=→︰﹕∶]"),
        head=lazy(
            rf"(?i:「始(?:ESCAPE|exp)?」)(?:[ \t]*+「始」)*+|(?P<odd>{_STARTS})(?:[ \t]*+(?:(?P=odd)|「始」))*+|{_ENDS}|{_HALF}"
        ),
        strong_head=lazy("「始(?:ESCAPE|exp)?」"),
        any_head=_ANY_HEAD,
        any_tail=_ANY_TAIL,
        ending_tail=lazy(rf"(?:{_ENDS}|「始」|「末)\Z"),
        bare_key=lazy(r"[\w\-]{1,64}"),
        bare_line=lazy(_LINE_KEY),
        later_bare_line=lazy(r"[\r\n]" + _LINE_KEY),
        inline_pair=lazy(r"[,，;；、|][ \t]*+[\w\-]{1,64}+[ \t]*+[:：=](?!//)"),
        next_key=lazy(r"[\w\-]{1,64}+(?:[ \t][\w\-]{1,64}+){0,2}"),
        first_key="tool_name",
        drops=True,
        between=",，;；、|",
        comment=None,
        foreign_comment=None,
        families={
            "plain": PLAIN,
            "escape": ESCAPE,
            "exp": EXP,
            "swapped": Family("swapped", HEAD, TAIL, lazy(HEAD), lazy(TAIL)),
            "odd": Family("odd", HEAD, TAIL, _ANY_TAIL, _ANY_HEAD),
        },
        codes=Codes(
            missing_tail="VC310",
            missing_head="VC311",
            bare="VC313",
            swapped="VC314",
            own_tail="VC315",
            separator="VC320",
            decoration="VC324",
            noise="VC325",
            after_value="VC321",
            missing_end="VC301",
            empty="VC302",
            misspelt="VC312",
        ),
        family_of=_family_of,
        odd_value=lazy(r"\A(?:「始|」)|「末\Z|「[始末]」"),
        runs_on=_runs_on,
        foreign_marks=("»»»", "«««"),
        rewrite_title="Write the canonical marks",
        rewrite_tail_title=f"Write {TAIL}",
        rewrites_any=False,
        separates=",",
        by_words=True,
        half_tail="「末",
        half_tail_at=_half_tail_at,
    )


DIALECTS: Final = {suffix: _dialect(suffix) for suffix in _SUFFIXES}


def suffix_of(marker: str) -> str:
    """The variant that an opening marker names: ``EXP``, ``ESCAPE``, or none."""
    upper = visible(marker).upper()
    return next((name for name in ("EXP", "ESCAPE") if name in upper), "")


def dialect_of(marker: str) -> Dialect:
    """The dialect of the block that an opening marker opens."""
    return DIALECTS[suffix_of(marker)]


OTHER_BLOCK = lazy(r"(?i:<<{1,3}\[TOOL_(?:DEFINITION|RESULT)\]>{2,4})")
OTHER_CLOSE = lazy(r"(?i:<<{1,3}\[END_TOOL_(?:DEFINITION|RESULT)\]>{2,4})")

_LAYOUT = lazy(r"[ \t\r\n]*+")
_PAIR = lazy(r"([A-Za-z0-9_-]++):[ \t]*+「始」(?!「始|」)")
_NEXT = lazy(r",?+[ \t]*+[\r\n]")


def lex_canonical(source: Source, start: int, limit: int) -> Lexed | None:
    """The pairs of a block in canonical form, or None at anything unusual."""
    text = source.text
    pairs: list[Pair] = []
    starts, ends = source.tokens(PLAIN.closes)
    at = start
    while True:
        layout = _LAYOUT.match(text, at, limit)
        at = layout.end() if layout else at
        match = _PAIR.match(text, at, limit)
        if match is None:
            break
        head, key = match.end(), match.span(1)
        i = bisect_left(starts, head)
        if i == len(starts) or ends[i] > limit or key[1] - key[0] > MAX_NAME_CHARS:
            return None
        tail, end = starts[i], ends[i]
        if text.find("「始", head, tail) >= 0 or text[tail - 1] == "「":
            return None
        pairs.append(Pair(at, end, key, match.group(1), (head, tail), "plain", head - len(HEAD)))
        at = end
        following = _NEXT.match(text, at, limit)
        if following is not None:
            at = following.end()
        elif text.startswith(",", at):
            at += 1
        else:
            return None
    end = at + len(CLOSE)
    if not text.startswith(CLOSE, at) or end > limit or not pairs:
        return None
    # A closing marker inside a value and control characters need the tolerant walk's judgement.
    if CONTROL.search(text, start, at) is not None:
        return None
    # So does anything like a mark inside a value.
    if (text.count("末", start, at) != len(pairs) or text.find("未", start, at) >= 0) and any(
        _runs_on(text[slice(*pair.value)]) for pair in pairs
    ):
        return None
    if any(text.find(char, start, at) >= 0 for char in "<《＜") and DIALECTS[""].closes.search(text, start, at):
        return None
    lexed = Lexed(pairs, [], Findings(), (at, end), "close", end)
    if len(pairs) > MAX_PARAMS:
        too_many(lexed, pairs[MAX_PARAMS].start)
    return lexed
