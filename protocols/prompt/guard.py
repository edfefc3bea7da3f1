"""Foreign text inside a prompt: a manifest's words must not be able to become a call, to end what they stand in, or to set it aside.

Markers of every known protocol and the marks of contexts (reasoning, comments, elements that quote, echoes, turns: ``marks.py``) are
shown escaped (``&lt;ACTION&gt;``), those without an angle bracket and code fences get a backslash, a backtick without a partner
becomes ``'``, control and direction characters are shown as ``\\u....``. Everything else, in whatever language, stays as it is.
Must not know what a tool is.
"""

from __future__ import annotations

import re
from functools import cache

from tamis.protocols.invisible import IGNORABLE
from tamis.protocols.marks import OBSERVATION, TICKS, marks_of
from tamis.protocols.observation import plain
from tamis.protocols.patterns import lazy
from tamis.protocols.plugins import find_protocol, known_protocols

_UNSEEN = f"[{IGNORABLE}]*+"
_FENCE = lazy(rf"(?m:^)([ \t\u3000{IGNORABLE}]*+)(?=`{_UNSEEN}`{_UNSEEN}`|~{_UNSEEN}~{_UNSEEN}~)")
# A definition or result block is no request, but a text inside one could end it (VC326).
_OTHER_BLOCKS = r"(?i:[<＜《]{2,4}\[(?:END_)?TOOL_(?:DEFINITION|RESULT)\][>＞》]{2,4})"
_ECHO = lazy(rf"(?<=[\r\n])([ \t{IGNORABLE}]*+)(?={OBSERVATION.pattern})")
_BLANK_LINE = lazy(r"\n[ \t]*+\n")
_MARKS = lazy("「(?=[始末])")
_ESCAPE_MARKS = lazy("「(?=[始末](?i:ESCAPE)」)")
_SECTION = "<![CDATA["
_BRACKETS = str.maketrans(dict.fromkeys("<＜《", "&lt;") | dict.fromkeys(">＞》", "&gt;"))
_JSON_BRACKETS = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<＜《"})


@cache
def _markers(ids: tuple[str, ...]) -> re.Pattern[str]:
    parts = [_OTHER_BLOCKS]
    for name in ids:
        protocol = find_protocol(name)
        if protocol is not None:
            parts += [protocol.opener.pattern, protocol.markers.stray]
    return re.compile("|".join(f"(?:{part})" for part in parts if part))


def _shown(match: re.Match[str]) -> str:
    text = match.group()
    escaped = text.translate(_BRACKETS)
    # A marker without any bracket, which only a plug-in has, is quoted by the backslash that the reader knows.
    return escaped if escaped != text else "\\" + text


def _shown_mark(match: re.Match[str]) -> str:
    quoted = match.string[match.start() - 1 : match.start()] == "\\"
    return match.group() if quoted or marks_of().meaning(match) is None else _shown(match)


def guard(text: str) -> str:
    """``text`` so that no reader finds a marker, a mark of a context or a fence in it; the same text when it has none."""
    text = _markers(known_protocols()).sub(_shown, plain(text))
    marks = marks_of()
    text = marks.angle.sub(_shown_mark, text)
    for sign, pattern in marks.others:
        if sign in text and pattern is not OBSERVATION:
            text = pattern.sub(_shown_mark, text)
    text = _FENCE.sub(r"\1\\", _ECHO.sub(r"\1\\", text))
    return _sections_closed(_paired(text) if "`" in text else text)


def _paired(text: str) -> str:
    """A backtick that quotes nothing here would quote what follows; inline code in the text stays."""
    runs = [run.span() for run in TICKS.finditer(text)]
    ends = {run[0]: i for i, run in enumerate(runs)}
    closers: dict[int, int] = {}
    partner: dict[int, int] = {}
    for start, end in reversed(runs):
        width = text.count("`", start, end)
        if width in closers:
            partner[start] = closers[width]
        closers[width] = start
    parts: list[str] = []
    at = i = 0
    while i < len(runs):
        start, end = runs[i]
        close = partner.get(start)
        if close is None or _BLANK_LINE.search(text, end, close) is not None:
            parts += [text[at:start], "'" * text.count("`", start, end)]
            at = end
            i += 1
        else:
            i = ends[close] + 1
    return "".join([*parts, text[at:]])


def _sections_closed(text: str) -> str:
    """A CDATA section that is never closed would take what follows it into itself; one that is closed stays as it is."""
    at = text.rfind("]]>") + 1
    return text[:at] + text[at:].replace(_SECTION, "&lt;![CDATA[") if text.find(_SECTION, at) >= 0 else text


def guard_json(text: str) -> str:
    """JSON text with every bracket that can begin a marker as an escape, so that it says the same and holds no marker, nor any mark of a context."""
    text = text.translate(_JSON_BRACKETS)
    for sign, pattern in marks_of().others:
        if sign in text and pattern is not OBSERVATION:
            text = pattern.sub(_escaped_in_json, text)
    return text.replace("`", "\\u0060") if "`" in text and _paired(text) != text else text


def _escaped_in_json(match: re.Match[str]) -> str:
    mark = match.group()
    return f"\\u{ord(mark[0]):04x}{mark[1:]}"


def one_line(text: str, limit: int | None = None) -> str:
    """``guard`` on one line, cut to ``limit`` characters with an ellipsis."""
    line = " ".join(text.split())
    if limit is not None and len(line) > limit:
        line = line[: limit - 1].rstrip() + "…"
    return guard(line)


def code(text: str) -> str:
    """A name in code marks, which readers take as text; a backtick in it, which would end them, is shown as ``'``."""
    return f"`{_sections_closed(plain(text)).replace('`', chr(39)).replace(chr(10), ' ')}`"


def marked(text: str) -> str:
    """A text as a VCP value: between 「始」 and 「末」, or between the ESCAPE marks when it holds such marks itself (ruling 28)."""
    if _MARKS.search(text) is None:
        return f"「始」{text}「末」"
    return f"「始ESCAPE」{_ESCAPE_MARKS.sub('&#12300;', text)}「末ESCAPE」"
