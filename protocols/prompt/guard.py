"""Foreign text inside a prompt: a manifest's words must not be able to become a call, or to end what they stand in.

Markers of every known protocol and reasoning tags are shown escaped (``&lt;ACTION&gt;``), code fences get a backslash, control and
direction characters are shown as ``\\u....``. Everything else, in whatever language, stays as it is. Must not know what a tool is.
"""

from __future__ import annotations

import re
from functools import cache

from tamis.protocols.context import THINK
from tamis.protocols.observation import plain
from tamis.protocols.patterns import lazy
from tamis.protocols.plugins import find_protocol, known_protocols

_FENCE = lazy(r"(?m:^)([ \t\u3000\ufeff]*+)(?=`{3}|~{3})")
# A definition or result block is no request, but a text inside one could end it (VC326).
_OTHER_BLOCKS = r"(?i:[<＜《]{2,4}\[(?:END_)?TOOL_(?:DEFINITION|RESULT)\][>＞》]{2,4})"
_OBSERVATION = r"(?i:</?observation(?:\s[^<>]*+)?>)"
_MARKS = lazy("「(?=[始末])")
_ESCAPE_MARKS = lazy("「(?=[始末](?i:ESCAPE)」)")
_SECTION = "<![CDATA["
_BRACKETS = str.maketrans(dict.fromkeys("<＜《", "&lt;") | dict.fromkeys(">＞》", "&gt;"))
_JSON_BRACKETS = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<＜《"})


@cache
def _markers(ids: tuple[str, ...]) -> re.Pattern[str]:
    parts = [_OTHER_BLOCKS, _OBSERVATION, THINK]
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


def guard(text: str) -> str:
    """``text`` so that no reader finds a marker, a reasoning tag or a fence in it; the same text when it has none."""
    text = _markers(known_protocols()).sub(_shown, plain(text))
    return _sections_closed(_FENCE.sub(r"\1\\", text))


def _sections_closed(text: str) -> str:
    """A CDATA section that is never closed would take what follows it into itself; one that is closed stays as it is."""
    at = text.rfind("]]>") + 1
    return text[:at] + text[at:].replace(_SECTION, "&lt;![CDATA[") if text.find(_SECTION, at) >= 0 else text


def guard_json(text: str) -> str:
    """JSON text with every bracket that can begin a marker as an escape, so that it says the same and holds no marker."""
    return text.translate(_JSON_BRACKETS)


def one_line(text: str, limit: int | None = None) -> str:
    """``guard`` on one line, cut to ``limit`` characters with an ellipsis."""
    line = " ".join(text.split())
    if limit is not None and len(line) > limit:
        line = line[: limit - 1].rstrip() + "…"
    return guard(line)


def indented(text: str, indent: str) -> str:
    """``guard`` with every line after the first set in by ``indent``, so that it stays inside its list item."""
    lines = [line.strip() for line in guard(text).strip().splitlines()]
    return "\n".join(line if at == 0 or not line else indent + line for at, line in enumerate(lines))


def code(text: str) -> str:
    """A name in code marks, which readers take as text; a backtick in it, which would end them, is shown as ``'``."""
    return f"`{_sections_closed(plain(text)).replace('`', chr(39)).replace(chr(10), ' ')}`"


def marked(text: str) -> str:
    """A text as a VCP value: between 「始」 and 「末」, or between the ESCAPE marks when it holds such marks itself (ruling 28)."""
    if _MARKS.search(text) is None:
        return f"「始」{text}「末」"
    return f"「始ESCAPE」{_ESCAPE_MARKS.sub('&#12300;', text)}「末ESCAPE」"
