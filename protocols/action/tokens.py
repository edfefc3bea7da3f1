"""Tokens of an ACTION block: tags as models write them, CDATA, comments.

A scanner, not an XML parser: it takes names whole whatever they hold (ruling 13), reads near misses of a tag and says so,
and leaves everything else to be text. Must not know what an element means.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from typing import Literal

from tamis.protocols.base import Source
from tamis.protocols.invisible import IN_TAGS
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span

Kind = Literal["open", "close", "self", "cdata", "comment", "pi", "doctype"]

DECORATION = "`\"'“”‘’"
MARKER_KEY = "action"

# First characters exclude what begins comparisons and arrows; later ones exclude what code and prose put behind a '<'.
_FIRST = r"[^\s<>=!?;()&,{}\[\]|\\^%＜＞\x00-\x1f/\-+*#~$.:]"
_REST = r"[^\s<>=!?;()&,{}\[\]|\\^%＜＞\x00-\x1f]"
# The caret begins a range of versions (`id@^1.2`, ruling 35), and nothing else that a name can be. A "=" right behind the first word
# belongs to the name (`tool=Name`, ruling 13), except where a quoted value follows it, and behind `input`, whose name is an
# attribute (AX158). The sign stands first in each branch: what is tried at every tag costs one look at a character.
_NAME = rf"{_FIRST}{_REST}*+(?:\^(?<=@\^){_REST}*+|=(?<![</]input=)(?=[^\s<>=\"'`“”‘’/]){_REST}*+)?"
_ATTRIBUTES = r"""(?:[^<>"']++|"[^"<]*+"|'[^'<]*+')*+(?=>)|[^<>]*+"""

# Most tags: nothing about them is unusual, whatever else is wrong with the block.
_PLAIN = lazy(r"<(/?)([A-Za-z_][A-Za-z0-9_.:\-]*+)>")
_OPEN = lazy(rf"<(?P<space>[ \t]{{0,4}})(?P<name>{_NAME})(?P<attrs>(?:[\s=])(?:{_ATTRIBUTES}))?>")
_CLOSE = lazy(rf"<(?P<space>\s{{0,4}}/\s{{0,4}})(?P<name>{_NAME})(?P<rest>\s[^<>]*+|/(?=>))?(?P<end>>|(?=<))")
_UNBRACKETED = lazy(rf"<(?P<name>{_NAME})(?P<rest>\s*+)(?=<[^\s<])")
_UNBRACKETED_VALUE = lazy(rf"<(?P<name>{_NAME})[ \t](?![\w\-]+\s*=)(?=[^<>]*+</(?P=name)\s*>)")
_NEXT_CLOSE = lazy(rf"</{_NAME}\s*+>")
_MAX_GLUED = 400
_CDATA = lazy(r"<!\[CDATA\[|<[ \t]?!?[ \t]?\[[ \t]?(?i:CDATA)[ \t]?\[|<!(?i:CDATA)\[")
_PI = lazy(r"<\?[^<]*?\?>")
_DOCTYPE = lazy(r"<!(?i:DOCTYPE|ENTITY|ELEMENT|ATTLIST|NOTATION)\b[^<>\[]*+>?")
CDATA_OPEN = lazy(r"<!\[CDATA\[")
CDATA_CLOSE = lazy(r"\]\]>")
COMMENT_CLOSE = lazy(r"-->")
_ANY_TAG = lazy(rf"<(\s{{0,4}}/\s{{0,4}})?({_NAME})")
_WIDE_CLOSE = lazy(r"＜/((?i:action))＞")
_PARTIAL_CDATA_END = lazy(r"\](?:[ \t]?\])?[ \t]*+>?[ \t\r\n]*+\Z|\]\]\s*+\Z")


class Token:
    """One piece of markup. ``partner`` is the index of the matching tag, ``-1`` without one."""

    __slots__ = (
        "attributes",
        "content",
        "end",
        "flag",
        "key",
        "kind",
        "name",
        "name_span",
        "partner",
        "raw",
        "start",
    )

    def __init__(self, kind: Kind, start: int, end: int) -> None:
        self.kind: Kind = kind
        self.start = start
        self.end = end
        self.name = ""
        """The name without decoration and invisible characters."""
        self.key = ""
        """The name in lower case, for matching that overlooks case."""
        self.name_span: Span = (start, start)
        self.attributes: Span | None = None
        self.content: Span = (start, start)
        """Of a CDATA section: its inside."""
        self.flag = ""
        """What was unusual: ``space``, ``bracket``, ``bracket-value``, ``junk``, ``own``, ``own-unclear``, ``unterminated``, ``early``, ``spelling``, ``doubtful``."""
        self.partner = -1
        self.raw = False
        """True for markup that turned out to be text of a value."""


_DROPPED = {ord(char): None for char in IN_TAGS + DECORATION}


def plain_name(raw: str) -> str:
    """A name without quotes, backticks and invisible characters (ruling 13)."""
    return raw if raw.isidentifier() else raw.translate(_DROPPED)


def whole_name(name: str) -> bool:
    """Whether a tag of that name is read as one."""
    match = _OPEN.fullmatch(f"<{name}>")
    return match is not None and match.group("name") == name and not name.endswith("/")


class TagIndex:
    """Where each name is opened and closed, over the whole text that is read, to look ahead in O(log n)."""

    def __init__(self, source: Source) -> None:
        self.opens: dict[str, list[int]] = {}
        self.closes: dict[str, list[int]] = {}
        keys: dict[str, str] = {}
        for match in _ANY_TAG.finditer(source.text, source.low):
            slash, name = match.groups()
            key = keys.get(name)
            if key is None:
                key = keys[name] = plain_name(name.rstrip("/")).lower()
            where = self.opens if slash is None else self.closes
            places = where.get(key)
            if places is None:
                where[key] = [match.start()]
            else:
                places.append(match.start())

    def next_open(self, key: str, at: int) -> int:
        """Offset of the next tag that opens ``key`` at or after ``at``; a very large number without one."""
        return _next(self.opens.get(key), at)

    def next_close(self, key: str, at: int) -> int:
        """Offset of the next tag that closes ``key`` at or after ``at``; a very large number without one."""
        return _next(self.closes.get(key), at)

    def is_before(self, place: int, other: int, further: Callable[[], int] | None = None) -> bool:
        """Whether a place that was given stands before another one, and before ``further`` too.

        Each decision about what is ahead is made here, so that an index of a text that goes on can tell which hang on the rest of it.
        """
        return place < other and (further is None or place < further())


NOWHERE = 1 << 62
"""The place of a tag that the text does not have."""


def _next(places: list[int] | None, at: int) -> int:
    if not places:
        return NOWHERE
    i = bisect_left(places, at)
    return places[i] if i < len(places) else NOWHERE


class Tokens:
    """The tokens from one place on, made on demand, so that a block costs what it spans."""

    def __init__(self, source: Source, start: int, limit: int) -> None:
        self.source = source
        self.text = source.text
        self.limit = limit
        self.start = start
        self.at = start
        self.list: list[Token] = []
        self._last_open = ""
        self._opened = start
        """Where the last opening tag ends."""
        self._wide = source.find("＜", start) >= 0

    def get(self, i: int) -> Token | None:
        """The token at index ``i``, or None at the end of the text."""
        while i >= len(self.list):
            token = self._scan()
            if token is None:
                return None
            self.list.append(token)
        return self.list[i]

    def _scan(self) -> Token | None:
        _text, limit = self.text, self.limit
        at = self.at
        while (at := self._find(at, limit)) >= 0:
            token = self._token(at)
            if token is not None and token.end <= limit:
                self.at = token.end
                return token
            at += 1
        self.at = limit
        return None

    def _find(self, at: int, limit: int) -> int:
        """The next ``<``, or the next full-width closing marker."""
        position = self.text.find("<", at, limit)
        if self._wide:
            match = self.source.next_token(_WIDE_CLOSE, at, limit)
            if match is not None and (position < 0 or match[0] < position):
                return match[0]
        return position

    def _token(self, at: int) -> Token | None:
        text, limit = self.text, self.limit
        match = _PLAIN.match(text, at, limit)
        if match is not None:
            return self._plain(match)
        follow = text[at + 1 : at + 2]
        if text[at] == "＜":
            token = Token("close", at, at + len("＜/ACTION＞"))
            token.name_span = (at + 2, token.end - 1)
            token.name = text[at + 2 : token.end - 1]
            token.key = MARKER_KEY
            return token
        if follow == "!" or follow == "[" or (follow in " \t" and text[at + 2 : at + 3] in ("!", "[")):
            return self._declaration(at)
        if follow == "?":
            match = _PI.match(text, at, limit)
            return Token("pi", at, match.end()) if match is not None else None
        match = _OPEN.match(text, at, limit)
        if match is not None:
            return self._opening(match)
        match = _CLOSE.match(text, at, limit)
        if match is not None:
            token = Token("close", at, match.end())
            self._named(token, match)
            rest = (match.group("rest") or "").strip()
            if match.group("end") != ">":
                if rest:
                    return None
                token.flag = "bracket"
                token.end = match.end("name")
            elif rest:
                token.flag = "junk"
            elif match.group("space") != "/":
                token.flag = "space"
            return token
        match = _UNBRACKETED_VALUE.match(text, at, limit)
        if match is not None:
            token = Token("open", at, match.end())
            token.flag = "bracket-value"
        elif glued := self._glued(at):
            wide = text[glued] == "＞"
            token = Token("open", at, glued + wide)
            token.flag = "bracket-value" if wide else "bracket"
            token.name_span = (at + 1, glued)
            token.name = plain_name(text[at + 1 : glued])
            token.key = token.name.lower()
            self._last_open, self._opened = token.key, token.end
            return token
        else:
            match = _UNBRACKETED.match(text, at, limit)
            if match is None:
                return None
            token = Token("open", at, match.end("name"))
            token.flag = "bracket"
        self._named(token, match)
        self._last_open, self._opened = token.key, token.end
        return token

    def _glued(self, at: int) -> int:
        """``<path/tmp/x</path>``: where the name ends that runs into its value, as the closing tag says; 0 where it does not."""
        text = self.text
        close = self.source.next_token(_NEXT_CLOSE, at + 1, min(self.limit, at + _MAX_GLUED))
        if close is None:
            return 0
        name = text[close[0] + 2 : close[1] - 1].rstrip()
        end = at + 1 + len(name)
        if end >= close[0] or not text.startswith(name, at + 1) or text[end].isspace():
            return 0
        between = text[end : close[0]]
        return 0 if "<" in between or ">" in between else end

    def _plain(self, match: re.Match[str]) -> Token:
        slash, name = match.groups()
        token = Token("close" if slash else "open", match.start(), match.end())
        token.name_span = match.span(2)
        token.name = name
        token.key = name.lower()
        if not slash:
            self._last_open, self._opened = token.key, token.end
        return token

    def _opening(self, match: re.Match[str]) -> Token | None:
        token = Token("open", match.start(), match.end())
        self._named(token, match)
        if match.group("attrs") is not None:
            start, end = match.span("attrs")
            if self.text[end - 1] == "/" and end - 1 > start:
                token.kind = "self"
                end -= 1
            if self.text[start:end].strip():
                token.attributes = (start, end)
            elif self.text[start] == "/":
                token.kind = "self"
        elif match.group("name").endswith("/"):
            token.kind = "self"
            start, end = match.span("name")
            raw = match.group("name").rstrip("/")
            token.name_span = (start, start + len(raw))
            token.name = plain_name(raw)
            token.key = token.name.lower()
        if match.group("space"):
            token.flag = "space"
        if token.kind == "open":
            self._last_open, self._opened = token.key, token.end
        return token

    def _named(self, token: Token, match: re.Match[str]) -> None:
        token.name_span = match.span("name")
        token.name = plain_name(match.group("name"))
        token.key = token.name.lower()

    def _declaration(self, at: int) -> Token | None:
        text, limit = self.text, self.limit
        if text.startswith("<!--", at):
            end = self.source.next_token(COMMENT_CLOSE, at + 4, limit)
            token = Token("comment", at, end[1] if end is not None else at + 4)
            token.content = (at + 4, end[0] if end is not None else at + 4)
            if end is None:
                token.flag = "unterminated"
            return token
        match = _CDATA.match(text, at, limit)
        if match is not None:
            return self._cdata(match)
        match = _DOCTYPE.match(text, at, limit)
        return Token("doctype", at, match.end()) if match is not None else None

    def _cdata(self, match: re.Match[str]) -> Token | None:
        text, limit, source = self.text, self.limit, self.source
        at, start = match.span()
        token = Token("cdata", at, start)
        exact = match.group() == "<![CDATA["
        close = source.next_token(CDATA_CLOSE, start, limit)
        if not exact:
            if close is None and (self._own_close(start, limit) is None or text[self._opened : at].strip()):
                return None
            token.flag = "spelling"
        inner = source.next_token(CDATA_OPEN, start, limit)
        own: int | None = None
        if close is None or (inner is not None and inner[0] < close[0]):
            own = self._own_close(start, close[0] if close is not None else limit)
        if close is None or (own is not None and self._runs_on(own, close)):
            # Never closed: it ends at its element's closing tag (ruling 18).
            if own is None:
                token.flag = "unterminated"
                token.content = (start, limit)
                token.end = limit
                return token
            token.flag = "unterminated"
            end = own
            partial = _PARTIAL_CDATA_END.search(text, max(start, end - 16), end)
            if partial is not None and partial.group().count("]") + partial.group().count(">") >= 2:
                end = partial.start()
            token.content = (start, end)
            token.end = own
            return token
        end = self._late_end(start, close)
        if own is not None:
            after = text[text.find(">", own) + 1 : text.find(">", own) + 65].lstrip()
            token.flag = "doubtful" if after.startswith("</") else token.flag
        if end is not None:
            token.flag = "early"
            close = end
        token.content = (start, close[0])
        token.end = close[1]
        return token

    def _own_close(self, start: int, end: int) -> int | None:
        """Where the tag that closes the element of a CDATA section stands in ``start:end``."""
        if not self._last_open:
            return None
        match = lazy(rf"<\s{{0,4}}/\s{{0,4}}{re.escape(self._last_open)}\s*+>", re.IGNORECASE).search(
            self.text, start, end
        )
        return match.start() if match is not None else None

    def _runs_on(self, own: int, close: Span) -> bool:
        """True when a section swallowed the next parameter: its own closing tag, then another tag, then CDATA."""
        after = self.text[self.text.find(">", own) + 1 : self.text.find(">", own) + 65].lstrip()
        if not after.startswith("<") or after.startswith("<!"):
            return False
        follow = self.text[close[1] : close[1] + 64].lstrip()
        opener = _ANY_TAG.match(after)
        if opener is None:
            return False
        if opener.group(1) is not None:
            return not follow.lower().startswith(f"</{self._last_open}")
        return True

    def _late_end(self, start: int, close: Span) -> Span | None:
        """The ``]]>`` that really ends a section which holds ``]]>`` itself: the last one before the closing tag (AX121)."""
        text, source, limit = self.text, self.source, self.limit
        key = self._last_open
        if not key or _closes(text, close[1], key) or text.startswith("<![CDATA[", close[1]):
            return None
        last: Span | None = None
        at = close[1]
        depth = 0
        for _ in range(64):
            nxt = source.next_token(CDATA_CLOSE, at, limit)
            if nxt is None:
                break
            opened = source.next_token(CDATA_OPEN, at, limit)
            if opened is not None and opened[0] < nxt[0]:
                depth += 1
                at = opened[1]
                if depth > 1:
                    break
                continue
            if depth:
                depth -= 1
            elif _closes(text, nxt[1], key) and (last is None):
                last = nxt
                break
            at = nxt[1]
        if last is None:
            return None
        # Another element between the two ends: then the first end was meant, and the second is stray.
        between = text[close[1] : last[0]]
        return None if re.search(rf"</\s*{re.escape(key)}\s*>", between, re.IGNORECASE) else last


def _closes(text: str, at: int, key: str) -> bool:
    follow = text[at : at + 256 + len(key)].lstrip()
    return follow[: len(key) + 2].lower() == f"</{key}"
