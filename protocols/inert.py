"""Text that repeats what somebody else wrote, so that no reader takes a part of it for a call (ruling 48).

Brackets of markers are written as ``\\u003c`` and the like, in texts as in JSON, where it is the same text to whoever decodes
it. A marker is known by its bracket and its word, not by its whole spelling: any piece of an inert text is inert too, also
when it is cut, or when other text follows it. The marks of reasoning, echoes and turns (``marks.py``) are written so too, that
nothing a tool returned passes for another observation or for somebody's turn. Must not know how blocks are read.
"""

from __future__ import annotations

import re
from functools import cache

from tamis.protocols.invisible import IGNORABLE, IN_MARKERS
from tamis.protocols.marks import OBSERVATION, OBSERVATION_SIGNS, marks_of
from tamis.protocols.patterns import lazy
from tamis.protocols.plugins import SHIPPED, find_protocol, known_protocols

_JOINT = rf"[ \t_\-{IN_MARKERS}]*+"

_WORDS = (
    "ACTION",
    "OBSERVATION",
    "FUNCTION",
    "INVOKE",
    "TOOL",
    "THINK",
    "THINKING",
    "THOUGHT",
    "REASONING",
    "SCRATCHPAD",
    "REFLECTION",
    "ANTTHINKING",
)
"""The words of markers of calls, results and reasoning that stand alone; longer names that begin with one are other words."""
_PHRASES = (
    "REQUEST TOOL",
    "END TOOL",
    "TOOL REQUEST",
    "TOOL RESULT",
    "TOOL DEFINITION",
    "TOOL SUMMARY",
    "TOOL CALL",
    "TOOL RESPONSE",
    "TOOL USE",
    "FUNCTION CALL",
    "FUNCTION RESULT",
    "ARG KEY",
    "ARG VALUE",
    "START FUNCTION",
    "END FUNCTION",
    "START OF TURN",
    "END OF TURN",
)
"""The words of the markers that have several, in the dialects that are known. What follows them is free."""
_SQUARE_WORDS = "TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS|INST|THINK|ARGS|CALL_ID|SYSTEM_PROMPT"


def _spaced(phrase: str) -> str:
    """The letters of a phrase with unseen characters between them, and any joint between its words."""
    return _JOINT.join(rf"[{IN_MARKERS}]*+".join(word) for word in phrase.split())


_ANGLE = r"[<＜《]"
# No bracket stands in what is passed over, so that every character is looked at a bounded number of times.
_HEAD = lazy(
    rf"{_ANGLE}{{1,4}}+[\s|｜\[［【/\\{IN_MARKERS}]*+(?:\w{{1,16}}+[:：])?"
    rf"(?i:{'|'.join(map(_spaced, _PHRASES))}|(?:{'|'.join(map(_spaced, _WORDS))})[{IN_MARKERS}]*+S?(?![\w.]))"
)
_TOKEN = lazy(r"[<＜][|｜][^<>＜＞\s|｜]{1,64}+[|｜][>＞]")
_SQUARE = lazy(rf"\[(?=/?(?:{_SQUARE_WORDS})\])")
_TRIANGLE = lazy(r"◁(?=/?\w{1,16}+▷)")
_ECHO = lazy(rf"(?P<lead>(?:(?<=[\r\n])|\A)[ \t{IGNORABLE}]*+){OBSERVATION.pattern}")
_BRACKET = lazy(r"[<＜《]")


@cache
def _plugged(ids: tuple[str, ...]) -> re.Pattern[str] | None:
    """The markers of protocols that packages brought; they may begin with anything."""
    parts: list[str] = []
    for name in ids:
        protocol = find_protocol(name)
        if protocol is not None and name not in SHIPPED:
            parts += [protocol.opener.pattern, protocol.markers.stray]
    return re.compile("|".join(f"(?:{part})" for part in parts if part)) if parts else None


@cache
def _angled() -> re.Pattern[str]:
    """The marks of contexts that begin with an angle bracket."""
    marks = marks_of()
    return re.compile(rf"(?={marks.candidate.pattern}|＜){marks.angle.pattern}")


def _without_mark(match: re.Match[str]) -> str:
    mark = marks_of().meaning(match)
    # A page's own elements and comments stay readable: they could only set aside, and no call stands behind them.
    return match.group() if mark is None or mark.family in ("element", "comment") else _without_brackets(match)


def _escaped(char: str) -> str:
    return f"\\u{ord(char):04x}"


def _without_brackets(match: re.Match[str]) -> str:
    marker = match.group()
    changed = _BRACKET.sub(lambda bracket: _escaped(bracket.group()), marker)
    return changed if changed != marker else _first_escaped(match)


def _first_escaped(match: re.Match[str]) -> str:
    marker = match.group()
    return _escaped(marker[0]) + marker[1:] if marker else marker


def _word_escaped(match: re.Match[str]) -> str:
    word = match["observation"]
    return match["lead"] + _escaped(word[0]) + word[1:]


def inert(text: str) -> str:
    """``text`` with the brackets of every marker as ``\\u003c`` and the like; the same text when it holds none.

    Linear in its length. Doing it again changes nothing.
    """
    if "<" in text or "＜" in text or "《" in text:
        text = _TOKEN.sub(_without_brackets, _HEAD.sub(_without_brackets, text))
        text = _angled().sub(_without_mark, text)
    if "[" in text:
        text = _SQUARE.sub(_first_escaped, text)
    if "◁" in text:
        text = _TRIANGLE.sub(_first_escaped, text)
    for sign, patterns in marks_of().signs:
        if sign in text and sign not in OBSERVATION_SIGNS:
            for pattern in patterns:
                text = pattern.sub(_first_escaped, text)
    if "O" in text or (not text.isascii() and any(sign in text for sign in OBSERVATION_SIGNS)):
        text = _ECHO.sub(_word_escaped, text)
    pattern = _plugged(known_protocols())
    if pattern is None:
        return text
    # A marker that is gone may have hidden another one that begins inside it.
    for _ in range(_MAX_ROUNDS):
        changed = pattern.sub(_without_brackets, text)
        if changed == text:
            break
        text = changed
    return text


_MAX_ROUNDS = 8
