"""How the marks around calls are written: reasoning, comments, elements that quote, echoes of results, turns (rulings 45 to 49).

A mark that a careful reader would see counts: in any letter case, full-width, and with invisible characters inside. Must not know
blocks, nor what a mark does to the text behind it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache, cached_property
from typing import Literal, NamedTuple

from tamis.protocols.invisible import IGNORABLE
from tamis.protocols.model import REASONING_TAGS
from tamis.protocols.patterns import lazy

Family = Literal["reasoning", "comment", "element", "echo", "turn", "channel"]

QUOTING = frozenset(
    (
        "pre",
        "code",
        "example",
        "examples",
        "xmp",
        "blockquote",
        "q",
        "cite",
        "figure",
        "samp",
        "kbd",
        "textarea",
        "script",
        "style",
        "template",
        "noscript",
    )
)
"""Elements whose content is shown, not meant (ruling 46)."""
ECHOES = frozenset(
    (
        "observation",
        "tool_response",
        "tool_responses",
        "tool_result",
        "tool_results",
        "tool_output",
        "function_response",
        "function_result",
        "function_results",
    )
)
"""Elements that hold what a tool returned (ruling 48)."""
_BRACKET_ECHOES = frozenset(("tool_results", "available_tools", "system_prompt"))
_OWN_ROLES = frozenset(("assistant", "model", "ai", "bot", "chatbot", "chatbot_token", "gpt"))
_OTHER_ROLES = frozenset(
    (
        "user",
        "human",
        "system",
        "developer",
        "tool",
        "observation",
        "function",
        "environment",
        "ipython",
        "user_token",
        "system_token",
    )
)
_TURN_TOKENS = frozenset(("im_start", "start_header_id", "start", "start_of_turn", "turn"))
_CHANNEL_ENDS = frozenset(("end", "return", "call", "start", "channel"))
_SUMMARY = "VCP调用结果"
_CAPITALS = str.maketrans("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧАВЕЅІЈКМНОРСТУХ", "ABEZHIKMNOPTYXABESIJKMHOPCTYX")
_ALIKE = str.maketrans("аеорсухіѕԁԛԝһјкмнтвӏαεικνορτυχϲϳıɑɡօոսհ", "aeopcyxisdqwhjkmhtblaeiknoptuxcjiagonuh")
"""Cyrillic, Greek and other letters that look like Latin ones."""
_DOUBLES = "\u00aa-\u02af\u0370-\u058f\u13a0-\u13ff\u1d00-\u1eff\u2070-\u218f\u24b6-\u24e9\u2581\uff01-\uff5e\U0001d400-\U0001d7ff"
"""Where what may look like a Latin letter stands in Unicode, for a set in a pattern."""
_OTHER_CASE = "\u0345\u1c80-\u1c87\u1fbe\u1fd3\u1fe3\u2c62-\u2c66\u2c6d-\u2c70\u2c7e\u2c7f\ua77d\ua78d\ua7aa-\ua7ae\ua7b0-\ua7b2\ua7c5\ua7c6\uab70-\uabbf"
"""What is one of those in the other case."""
_LIKE: dict[str, str] = {}
for _code, _latin in (*_CAPITALS.items(), *_ALIKE.items()):
    for _letter in (chr(_latin).lower(), chr(_latin).upper()):
        _LIKE[_letter] = _LIKE.get(_letter, "") + chr(_code)


class Mark(NamedTuple):
    """One mark: what it is the mark of, its folded name, and whether it ends or begins that. ``start`` and ``end`` are offsets."""

    family: Family
    name: str
    closes: bool
    start: int
    end: int


_Z = f"[{IGNORABLE}]*+"
_ATTRIBUTES = r"""(?:[^<>＜＞"']++|"[^"<＜]{0,400}+"|'[^'<＜]{0,400}+'|["'])*+"""
_REST = rf"(?:[\s/／]{_ATTRIBUTES})?+"
_REST_OPEN = lazy(
    rf"""[<＜]{_Z}[/／]?+[^\s<>＜＞/／]++[\s/／](?:[^<>＜＞"']++|"[^"<＜]{{0,400}}+"|'[^'<＜]{{0,400}}+')*+["'][^<＜]{{0,400}}+\Z"""
)


def _spaced(word: str) -> str:
    """A word in any letter case, with invisible characters inside, and with letters that look like its own."""
    return _Z.join(_letter_of(char) for char in word)


def _letter_of(char: str) -> str:
    return f"[{alike(char)}]" if char.isalnum() and char.isascii() else re.escape(char)


def alike(letter: str, but: str = "") -> str:
    """How a Latin letter or digit may be written in a mark: in both cases, full-width, and what looks like it; without ``but``."""
    cases = dict.fromkeys((letter.lower(), letter.upper()))
    written = "".join([*cases, *(chr(ord(case) + 0xFEE0) for case in cases), *_LIKE.get(letter, "")])
    return "".join(dict.fromkeys(char for char in written if char not in but))


def _cased(char: str) -> str:
    """A character in both cases, for a set in a pattern."""
    return "".join(map(re.escape, dict.fromkeys((char, char.lower(), char.upper()))))


def _begun(word: str, behind: str = "") -> str:
    """A pattern for every beginning of a spaced word that ends where the text ends."""
    pattern = behind
    for char in reversed(word):
        pattern = f"{_letter_of(char)}{_Z}(?:{pattern})?+"
    return rf"(?:{pattern})\Z"


_ANGLE = (
    rf"[<＜]{_Z}(?:(?P<comment>[!！]{_Z}[-－]{_Z}[-－])"
    rf"|[|｜]{_Z}(?P<token>(?:[^\s<>＜＞|｜{IGNORABLE}]{_Z}){{1,40}}+)[|｜]{_Z}[>＞]"
    rf"|(?P<slash>[/／]?+){_Z}(?P<name>(?:[^\s<>＜＞/／|｜!！\[\]{IGNORABLE}]{_Z}){{1,64}}+){_REST}[>＞]"
    rf"|<{_Z}(?:<{_Z})?+\[{_Z}(?P<ends>(?:{_spaced('END_')})?+){_Z}"
    rf"(?P<result>{_spaced('TOOL_')}{_Z}(?:{_spaced('RESULT')}|{_spaced('DEFINITION')})){_Z}\]{_Z}>(?:{_Z}>){{1,3}}+)"
)
# Words of a role, and what looks like them.
_WORD = rf"[A-Za-z_{IGNORABLE}\u0131\u0251\u0261\u0370-\u058f\uff21-\uff5a\U0001d400-\U0001d7ff]"
_ROLE = lazy(rf"[ \t{IGNORABLE}]*+(?:<\|[A-Z_]{{0,30}}\|>)?+({_WORD}*+)")
_NAMED = lazy(r"\(\?P<\w+>")
OBSERVATION_SIGNS = "OＯ" + "".join(chr(code) for code, latin in _CAPITALS.items() if chr(latin) == "O")
"""What the word begins with that begins an echo: a capital letter, or one that looks like it."""
OBSERVATION_WORD = "bservation"
OBSERVATION = lazy(rf"(?P<observation>[{OBSERVATION_SIGNS}]{_Z}{_spaced(OBSERVATION_WORD)}[ \t{IGNORABLE}]*+[:：])")
"""What begins an echo in the words of our own observations, where it begins a line."""
PLAIN_OBSERVATION = lazy(rf"(?P<observation>O(?i:{OBSERVATION_WORD})[ \t]*+:)")
"""The same in a text of ASCII characters."""
_UNSEEN = lazy(f"[{IGNORABLE}]")
_LEAD = lazy(rf"(?:^|[\r\n])[ \t{IGNORABLE}]*+\Z")


def fold(name: str) -> str:
    """A name as it is compared: lower case, half-width, without invisible characters, with Latin letters for their doubles."""
    if name.isascii():
        return name.lower()
    bare = _UNSEEN.sub("", unicodedata.normalize("NFKC", _UNSEEN.sub("", name)))
    return bare.replace("\u2581", "_").translate(_CAPITALS).lower().translate(_ALIKE)


BySign = tuple[tuple[str, tuple[re.Pattern[str], ...]], ...]
"""Characters, each with the patterns of what begins with it."""


def _by_sign(marks: Iterable[tuple[str, re.Pattern[str]]]) -> BySign:
    patterns: dict[str, tuple[re.Pattern[str], ...]] = {}
    for sign, pattern in marks:
        patterns[sign] = (*patterns.get(sign, ()), pattern)
    return tuple(patterns.items())


class Marks:
    """The marks that a set of reasoning tags makes: a pattern to look for, and what a match of it means."""

    def __init__(self, tags: tuple[str, ...]) -> None:
        self._names: dict[str, Family] = dict.fromkeys(QUOTING, "element")
        self._names |= dict.fromkeys(ECHOES, "echo")
        literal: dict[str, tuple[str, bool]] = {}
        for tag in tags:
            if tag[:1].isalnum() or tag[:1] == "_":
                self._names[fold(tag)] = "reasoning"
            elif tag:
                literal[fold(tag)] = (fold(tag), False)
                literal[fold(f"{tag[0]}/{tag[1:]}")] = (fold(tag), True)
        self._literal = literal
        words = {name[:2] for name in self._names}
        words |= {"ac", "us", "im", "sy", "as", "hu", "de", "ch"}
        self._starts = words
        brackets = "|".join(map(_spaced, ("INST", "TOOL_RESULTS", "AVAILABLE_TOOLS", "SYSTEM_PROMPT")))
        self.others: list[tuple[str, re.Pattern[str]]] = [
            *((sign, OBSERVATION) for sign in OBSERVATION_SIGNS),
            ("[", lazy(rf"(?P<mark>\[{_Z}(?P<slash>/?+){_Z}(?P<bracket>{brackets}){_Z}\])")),
            ("[", lazy(rf"(?P<mark>{_spaced(f'[[{_SUMMARY}信息汇总')})")),
            ("V", lazy(rf"(?P<mark>V{_Z}{_spaced(f'{_SUMMARY[1:]}结束]]')})")),
        ]
        """Marks that begin otherwise, each with the character that it begins with."""
        spoken: list[tuple[str, re.Pattern[str]]] = []
        for first in dict.fromkeys(item[0] for item in literal):
            names = sorted((item for item in literal if item[0] == first), key=len, reverse=True)
            pattern = "|".join(f"{re.escape(name[0])}{_Z}{_spaced(name[1:])}" for name in names)
            spoken.append((first, lazy(f"(?P<mark>(?P<literal>{pattern}))")))
        self.others += spoken
        whole = ["[INST]", "[/INST]", f"[[{_SUMMARY}信息汇总", f"{_SUMMARY}结束]]", *literal]
        whole += [f"[{slash}{name.upper()}]" for name in _BRACKET_ECHOES for slash in ("", "/")]
        self._begun = lazy("|".join(f"{re.escape(item[0])}{_Z}(?:{_begun(item[1:])}|\\Z)" for item in whole))
        self._first = {item[0] for item in whole}
        self.signs = _by_sign(self.others)
        self.plain = _by_sign(
            (sign, PLAIN_OBSERVATION if pattern is OBSERVATION else pattern)
            for sign, pattern in self.others
            if sign.isascii() and _SUMMARY not in pattern.pattern
        )
        """Those that can stand in a text of ASCII characters."""
        self.literal = _by_sign(spoken)
        """Those of reasoning."""

    # Each is compiled for the first text that may have such a mark: most texts of a command have none, and it takes as long as all else.

    @cached_property
    def candidate(self) -> re.Pattern[str]:
        """Where a mark or a marker that begins with ``<`` can stand: the literal first, which the search jumps to."""
        follow: dict[str, str] = {}
        for word in sorted(self._starts):
            # A name of one letter ends there.
            seconds = "".join(_cased(char) for char in word[1:]) or r"\s/>／＞"
            follow[word[0]] = follow.get(word[0], "") + seconds
        starts = "|".join(f"[{_cased(sign)}][{seconds}]" for sign, seconds in follow.items() if sign not in "tre")
        # A second letter may be a double of the right one, or one that nobody sees.
        doubled = rf"[{''.join(map(_cased, follow))}](?![\x00-\x7f])[{_DOUBLES}{_OTHER_CASE}{IGNORABLE}]"
        inner = rf"(?:[\s<|｜\[［【/／]{_Z}){{0,12}}+(?:[tTrReE]|{starts}|{doubled}|(?![\x00-\x7f])[{_DOUBLES}])"
        return re.compile(rf"<(?={_Z}(?:{inner}|[!！]))")

    @cached_property
    def angle(self) -> re.Pattern[str]:
        """The marks that begin with an angle bracket, and tags that may mean nothing."""
        return re.compile(f"(?P<mark>{_ANGLE})")

    @property
    def every(self) -> str:
        """A pattern for every mark, in which a tag may mean nothing."""
        others = [pattern.pattern for _, pattern in self.others if pattern is not OBSERVATION]
        parts = [self.angle.pattern, *others]
        # Each is a pattern of its own: names of groups may stand only once in one pattern.
        return "|".join(_NAMED.sub("(?:", part) for part in parts)

    def begun(self, text: str, low: int) -> int:
        """Where, at or behind ``low``, a mark may have begun that the end of the text cuts in two; the end where none has."""
        size = len(text)
        last = max(text.rfind("<", low), text.rfind("＜", low))
        if last >= 0 and (match := _BEGUN.match(text, last)) is not None:
            name, rest = match["name"], match["rest"]
            if name is None or self._may_name(fold(name), whole=rest is not None):
                size = last
                brackets = 0
                while size > low and (text[size - 1] == "<" or unseen(text[size - 1])):
                    brackets += text[size - 1] == "<"
                    if brackets == _MAX_BRACKETS:
                        break
                    size -= 1
        for sign in self._first:
            if text.find(sign, low, size) >= 0 and (match := self._begun.search(text, low)) is not None:
                size = min(size, match.start())
                break
        if text.find("O", low, size) >= 0 or (not text.isascii() and _ECHO_SIGN.search(text, low, size) is not None):
            for match in _BEGUN_ECHO.finditer(text, low):
                if begins_line(text, match.start()):
                    return min(size, match.start())
        return size

    def _may_name(self, name: str, *, whole: bool) -> bool:
        if whole:
            return name in self._names or name == "start_of_turn"
        return not name.isascii() or any(known.startswith(name) for known in (*self._names, "start_of_turn"))

    def read(self, text: str, at: int) -> re.Match[str] | None:
        """The mark at a place where ``every`` matches."""
        for pattern in (self.angle, *(pattern for _, pattern in self.others)):
            if (match := pattern.match(text, at)) is not None:
                return match
        return None

    def match(self, text: str, at: int) -> re.Match[str] | None:
        """The mark that begins with an angle bracket at a place, or None."""
        match = self.angle.match(text, at)
        return match if match is not None and self.meaning(match) is not None else None

    def meaning(self, match: re.Match[str]) -> Mark | None:
        """What a match of one of the patterns is; None for a tag that means nothing here."""
        start, end = match.span()
        if match.re is self.angle and match["name"] is not None:
            return self._tag(match, start, end)
        group = match.groupdict()
        if group.get("literal"):
            name, closes = self._literal[fold(group["literal"])]
            return Mark("reasoning", name, closes, start, end)
        if group.get("bracket"):
            name = fold(group["bracket"])
            family: Family = "echo" if name in _BRACKET_ECHOES else "turn"
            return Mark(family, f"[{name}]", bool(group["slash"]), start, end)
        if group.get("comment"):
            return Mark("comment", "<!--", False, start, end)
        if group.get("token"):
            return _token(match, fold(group["token"]), start, end)
        if group.get("result"):
            return Mark("echo", f"<<<[{fold(group['result'])}]>>>", bool(group["ends"]), start, end)
        if group.get("name"):
            return self._tag(match, start, end)
        return Mark("echo", _SUMMARY, match.string[end - 1] == "]", start, end)

    def _tag(self, match: re.Match[str], start: int, end: int) -> Mark | None:
        name = fold(match["name"])
        family = self._names.get(name)
        if family is None:
            return _turn(match, start, end) if name == "start_of_turn" else None
        closes = bool(match["slash"])
        if not closes and match.string[end - 2] in "/／":
            return None
        return Mark(family, name, closes, start, end)


def _turn(match: re.Match[str], start: int, end: int) -> Mark:
    role = _ROLE.match(match.string, end)
    name = fold(role.group(1)) if role is not None else ""
    return Mark("turn", "own" if name in _OWN_ROLES else "other", False, start, end)


def _token(match: re.Match[str], name: str, start: int, end: int) -> Mark | None:
    if name == "channel":
        role = _ROLE.match(match.string, end)
        return Mark("channel", name, role is None or fold(role.group(1)) != "analysis", start, end)
    if name in _TURN_TOKENS:
        return _turn(match, start, end)
    if name in _OWN_ROLES or name in _OTHER_ROLES:
        return Mark("turn", "own" if name in _OWN_ROLES else "other", False, start, end)
    return Mark("channel", name, True, start, end) if name in _CHANNEL_ENDS else None


TICKS = lazy(rf"`(?:{_Z}`)*+")
"""A run of backticks, as it is seen."""
TILDES = lazy(rf"~(?:{_Z}~){{2,}}+")
_RUN_END = lazy(rf"[`~](?:{_Z}[`~])*+{_Z}\Z")


def visible(text: str) -> str:
    """A text without what nobody sees."""
    return text if text.isascii() else _UNSEEN.sub("", text)


def unseen(char: str) -> bool:
    """Whether nobody sees a character."""
    return not char.isascii() and _UNSEEN.match(char) is not None


def run_at_end(text: str, low: int) -> int:
    """Where the run of backticks or tildes begins, at or behind ``low``, with which a text ends; its end where it ends with none."""
    last = text[-1:]
    if last not in ("`", "~") and not unseen(last):
        return len(text)
    match = _RUN_END.search(text, low)
    return len(text) if match is None else match.start()


def begins_line(text: str, at: int) -> bool:
    """Whether nothing but blanks stands before a place on its line."""
    return at == 0 or text[at - 1] in "\r\n" or _LEAD.search(text[max(0, at - 64) : at]) is not None


def unfinished(text: str, mark: Mark) -> bool:
    """Whether what a mark says may hang on text behind the end: the word behind a token, or a quotation mark in a tag."""
    if mark.family in ("reasoning", "element", "echo"):
        return _REST_OPEN.match(text, mark.start) is not None
    if mark.family not in ("turn", "channel") or mark.name.startswith("["):
        return False
    role = _ROLE.match(text, mark.end)
    return role is not None and role.end() == len(text)


@cache
def marks_of(tags: tuple[str, ...] = REASONING_TAGS) -> Marks:
    """The marks of a text whose reasoning has these tags."""
    return Marks(tags)


_BEGUN = lazy(
    rf"[<＜]{_Z}(?:\Z|[!！]{_Z}(?:[-－]{_Z})?\Z|[|｜]{_Z}(?:[^\s<>＜＞|｜{IGNORABLE}]{_Z}){{0,40}}+(?:[|｜]{_Z})?\Z"
    rf"|[/／]?+{_Z}(?P<name>(?:[^\s<>＜＞/／|｜!！\[\]{IGNORABLE}]{_Z}){{0,64}}+)(?P<rest>[\s/／]{_ATTRIBUTES})?\Z"
    r"|(?:<|\[)[^\s<]{0,100}+\Z)"
)
"""What may be the beginning of a mark of angle brackets at the end of a text that goes on."""
_ECHO_SIGN = lazy(f"[{OBSERVATION_SIGNS}]")
_BEGUN_ECHO = lazy(rf"[{OBSERVATION_SIGNS}]{_Z}(?:{_begun(OBSERVATION_WORD, f'[ {IGNORABLE}' + chr(9) + ']*+')}|\Z)")
_MAX_BRACKETS = 4
