"""Values whose edges leave two readings: quotes and brackets that may be delimiters in a spelling nobody knows.

A value that was written between canonical delimiters is never in doubt. One without them, or with only one of them, is when an
edge of it looks like the missing delimiter: what runs must not depend on a guess (ruling 1). Must not know blocks.
"""

from __future__ import annotations

from tamis.protocols.invisible import IN_LAYOUT
from tamis.protocols.patterns import lazy

_PARTNERS = {"“": "”", "「": "」", "『": "』", "【": "】", "《": "》", "〔": "〕", "＜": "＞", "»": "«", "‘": "’"}
_OPENERS = {close: char for char, close in _PARTNERS.items()}
_FENCES = ('"""', "'''", "```", '"', "'", "`")
_LONG = (("<![CDATA[", "]]>"), ("[[", "]]"), ("<<", ">>"), ("{{", "}}"))
_ESCAPED = lazy(r"(?s:&(?:[lr]aquo|[lg]t|\#\d{2,4});.*)")
_MARK = lazy(r"[「｢『【〔\[{][^「」｢｣『』【】〔〕\[\]{}\r\n]{1,8}[」｣』】〕\]}]")
_KEY = r"[*`\"'\-+•]{0,3}[ \t]?+\w[\w.\-/()\[\] ]{0,63}[*`\"']{0,3}"
_PAIR_LINE = lazy(rf"[\r\n][ \t]*+{_KEY}[ \t]*+(?:[:：=︰﹕∶](?!//)|->|→|»»)")
_ANGLES = lazy(r"[<«>»](?:[ \t]*+[<«>»])++")
_ANGLES_END = lazy(r"[<«>»](?:[ \t]*+[<«>»])++\Z")
_HALF_LINE = lazy(r"(?:«|<<|「末|末」)[ \t,，;；、]*+[\r\n]")
_HALF_TAIL = rf"(?:[<«](?:[ \t{IN_LAYOUT}]*+[<«])++|«|[《＜]{{2,}}+)[ \t,，;；、]*+"
_RUNS_ON_TAM = lazy(
    rf"{_HALF_TAIL}(?:[\r\n]\s*+{_KEY}[ \t]*(?:=>|->|::|[:：=︰﹕∶→])?|{_KEY}[ \t]*(?:=>|->|::|[:：=︰﹕∶→]))[*\s]*+(?:»»|>>)"
)
_RUNS_ON_VCP = lazy(
    rf"(?:「[末未]|[末未][」｣』}})）】]|[{{(（<＜\[【《『｢][末未])[^\r\n]?[ \t,，;；、]*+"
    rf"(?:[\r\n]\s*+<?{_KEY}>?[ \t]*[:：=︰﹕∶]|{_KEY}[ \t]*[:：=︰﹕∶][ \t]*「始)"
)
# 未 is a common word: its look-alike marks are looked for in the brackets that models give them.
_HALF_MARKS = (
    ("末", (*(side + "末" for side in "「{（(<＜[【《『｢"), *("末" + side for side in "」｣』}）)】"))),
    ("未", ("未」", "「未", "{未", "未}")),
)
_MARK_OPENS = "「｢『【〔[{"


def doubtful_start(part: str) -> bool:
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


def doubtful_end(part: str) -> bool:
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


def holds_pair(part: str) -> bool:
    """Whether a line of a value that nothing closes looks like a pair of its own, or ends with half a delimiter."""
    return _PAIR_LINE.search(part) is not None or _HALF_LINE.search(part) is not None


def _half_mark(part: str) -> bool:
    """Whether a bracket stands beside the character of an end mark: cheaper to find than the whole of the pattern."""
    return any(char in part and any(mark in part for mark in marks) for char, marks in _HALF_MARKS)


def runs_on(part: str, protocol: str, *, odd: bool = False) -> bool:
    """Whether a closed value holds a misspelt delimiter and then another pair: it may have ended there.

    ``odd``: its own delimiters are not the canonical ones, so that ``>>`` may begin that pair as well.
    """
    if protocol == "vcp":
        return _half_mark(part) and _RUNS_ON_VCP.search(part) is not None
    return ("»»" in part or (odd and ">>" in part)) and _RUNS_ON_TAM.search(part) is not None


def wrapped(part: str) -> bool:
    """Whether the whole of a value stands between one pair of quotes or long brackets, or begins with an escaped one."""
    if _PARTNERS.get(part[:1], "") == part[-1:] != "" or _ESCAPED.fullmatch(part) is not None:
        return True
    if any(part.startswith(a) and part.endswith(b) and len(part) >= len(a) + len(b) for a, b in _LONG):
        return True
    fence = next((fence for fence in _FENCES if part.startswith(fence)), None)
    if fence is None or len(part) < 2 * len(fence) or not part.endswith(fence):
        return False
    return len(fence) == 3 or fence not in part[1:-1]


def mark_starts(part: str) -> bool:
    """Whether a value begins with a short word in brackets, which may be a mark nobody knows (VCP)."""
    return _MARK.match(part) is not None


def mark_ends(part: str) -> bool:
    """Whether a value ends with a short word in brackets."""
    tail = part[-10:]
    last = max(tail.rfind(char) for char in _MARK_OPENS)
    return last >= 0 and last + len(part) > len(tail) and _MARK.fullmatch(tail, last) is not None
