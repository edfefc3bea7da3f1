"""The call that is being written in pairs (TAM, VCP), for a display: what the finished block will hold, and nothing that it may not.

It follows what the reader takes without a doubt: fields in their usual spelling, comments and fence lines between them, longer runs of
delimiters (ruling 56). What only text to come can settle (the beginning of a delimiter, a line that may be the next field, a marker in a
value) is held back, and behind anything else that is unusual no more is shown of the block. What it costs hangs on the new text
alone. Must not know the reader's findings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from tamis.protocols.invisible import IN_LAYOUT
from tamis.protocols.model import ToolHint
from tamis.protocols.pairs.bounds import undecorated
from tamis.protocols.pairs.walk import BLANK, FENCE_LINE, LINE_END, SEPARATORS, Dialect
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span
from tamis.protocols.streaming.partial import MAX_NAME, Progress
from tamis.protocols.tam.keys import visible

_MAX_LINE = 2_000
"""Characters of a line between fields, and of the end of a value, that may be held back."""
_LOOK = 500
"""Characters before a delimiter that may be its key."""
_MAX_MARKER = 80

_QUOTE = "*`\"'“”‘’「」『』"
_BULLET = r"(?:(?:[-*+•·▪●◦‣–—][ \t]*+|\d{1,3}[.)][ \t]*+)(?:\[[ xX]?\]?[ \t]*+)?)?"
_WORDS = r"(?:\w[\w.\-/]{0,63}+(?:[\[(#]\d{0,9}[\])]?)?(?:[ \t]++[\w.\-/]{0,63}+){0,2})?"
_MAY_BE_KEY = rf"[\r\n>,，;；、|][ \t]*+{_BULLET}[{_QUOTE}]*+[ \t]*+{_WORDS}[{_QUOTE} \t]*+(?:(?:=>|::|->|[{SEPARATORS}\-])[{_QUOTE} \t]*+)?+\Z"
"""The end of a value that may be the beginning of the next field, from the character on that stands before it."""
_KEY_AT_END = lazy(_MAY_BE_KEY)
KEY_THERE = rf"(?:{_MAY_BE_KEY[:-2]})?\Z"
"""The same, where it may be missing, for ``PairSigns.held``."""
_BOUNDARIES = "\r\n>,，;；、|"
_HALF_MARKER = lazy(rf"[<＜《]{{1,4}}+[ \t{IN_LAYOUT}]*+(?:[\[［【|｜/][^<>＜＞《》\r\n]{{0,70}}+)?+[>＞》]{{0,3}}\Z")
_CLOSED = lazy(
    rf"[<＜《]{{1,4}}+[ \t{IN_LAYOUT}|｜]*+\[[ \t]*+(?i:end[ _\-]?tool(?:[ _\-]?request)?(?:[ _\-]?(?:exp|escape))?)[ \t]*+\]"
)
"""A closing marker, whatever stands at its end."""
_CLOSING_DECORATION = lazy(r"[*`\"'”’]{1,3}(?=\s)")

Role = Literal["id", "argument", "other"]
"""What a field is: the tool's id, an argument of the call, or something else, which is not shown."""


class PairSigns(msgspec.Struct, frozen=True):
    """What the characters of a block that still comes may be the beginning of, in one protocol of pairs."""

    loud: re.Pattern[str]
    """A character behind which a value may end, now or with what follows."""
    sign: re.Pattern[str]
    """One that begins a delimiter or a marker."""
    held: re.Pattern[str]
    """The end of a value that is no part of it if the value is never closed and another field follows."""
    between: re.Pattern[str]
    """What is passed over between two fields."""
    head: re.Pattern[str]
    """The opening delimiters of fields in their usual spelling."""
    odd_line: re.Pattern[str]
    """What in a line between fields looks like a delimiter."""
    late_separator: str = ""
    """A separator that begins a comment at the start of a line, and separates behind a field."""
    marked_end: re.Pattern[str] | None = None
    """What alone can end a value that holds a marker."""
    doubled_head: str = ""
    """An opening delimiter that counts as one where it is repeated."""


class PairProgress(Progress):
    """Follows one block of pairs."""

    def __init__(self, dialect: Dialect, signs: PairSigns, tools: Mapping[str, ToolHint]) -> None:
        super().__init__(dialect.protocol)
        self._d = dialect
        self._signs = signs
        self._tools = tools
        self._loud = signs.loud.search
        self._sign = signs.sign.search
        self._end_sign = self._sign
        """Finds what can end a value that is held back."""
        self._state: Literal["opener", "between", "line", "value", "frozen", "lost"] = "opener"
        self._before = ""
        """The character before the buffer."""
        self._role: Role = "other"
        self._family = ""
        self._id = ""
        self._frozen: list[str] = []
        """Text of a value that is held back until its closing delimiter comes."""
        self._marked = False
        """Whether a marker stands in that text."""

    # --- the steps ------------------------------------------------------------------------------------------------

    def _follow(self) -> None:
        text = self._buffer
        if (self._state == "value" and self._plain(text)) or (self._state == "frozen" and self._still(text)):
            return
        at = 0
        while not self._ended:
            state = self._state
            if state == "value":
                at, done = self._value(text, at)
            elif state == "between":
                at, done = self._field(text, at)
            elif state == "line":
                at, done = self._line(text, at)
            elif state == "frozen":
                at, done = self._in_frozen(text, at)
            elif state == "opener":
                at, done = self._opener(text)
            else:
                at, done = len(text), False
            if not done:
                break
        if at:
            self._before = text[at - 1]
            self._buffer = text[at:]

    def _plain(self, text: str) -> bool:
        """Takes text of a value in which nothing can end, and which no more than a key may stand before; False for any other."""
        if self._loud(self._chunk) is not None:
            return False
        if len(self._chunk) != len(text):
            if _KEY_AT_END.match(text) is not None:
                return len(text) <= _MAX_LINE
            if text[0] not in _BOUNDARIES or "#" in text or self._sign(text) is not None:
                return False
        self._say(text)
        self._buffer = ""
        return True

    def _still(self, text: str) -> bool:
        """Takes text that is held back and has no sign of an end; False for any other."""
        if self._end_sign(text) is not None:
            return False
        self._frozen.append(text)
        self._buffer = ""
        return True

    def _lose(self) -> None:
        """Nothing more of the block is sure."""
        self._state = "lost"
        self._frozen.clear()

    def _opener(self, text: str) -> tuple[int, bool]:
        match = self._d.opens.match(text)
        if match is None or match.end() == len(text):
            return self._wait(text, 0)
        self._d = self._dialect_of(match.group())
        self._state = "between"
        return match.end(), True

    def _dialect_of(self, marker: str) -> Dialect:
        """The dialect of the block that a marker opens."""
        del marker
        return self._d

    # --- between fields -------------------------------------------------------------------------------------------

    def _line(self, text: str, at: int) -> tuple[int, bool]:
        """The rest of a comment, in which a marker ends the block."""
        end = LINE_END.search(text, at)
        stop = end.start() if end is not None else len(text)
        marker = self._marker(text, at, stop)
        if marker is not None:
            self._state = "between"
            return marker, True
        if end is None:
            half = _HALF_MARKER.search(text, max(at, stop - _MAX_MARKER))
            return (half.start() if half is not None else stop), False
        self._state = "between"
        return stop, True

    def _marker(self, text: str, at: int, stop: int) -> int | None:
        """Where the first marker of a part of the text begins."""
        starts = [m.start() for pattern in (self._d.closes, self._d.opens) if (m := pattern.search(text, at, stop))]
        return min(starts, default=None)

    def _field(self, text: str, at: int) -> tuple[int, bool]:
        """What stands between two values: separators, a comment, a fence's line, a marker, or the next field."""
        d = self._d
        gap = self._signs.between.match(text, at)
        at = gap.end() if gap is not None else at
        if at == len(text):
            return at, False
        first = text[at]
        if first in "<＜《":
            return self._at_marker(text, at)
        if d.comment is not None and first == "#":
            self._state = "line"
            return at, True
        if first == self._signs.late_separator and (text[at - 1] if at else self._before) not in "\r\n":
            return at + 1, True
        if first in "`~-/;":
            end = LINE_END.search(text, at)
            if end is None:
                return self._wait(text, at)
            for pattern in (d.foreign_comment, FENCE_LINE):
                if pattern is not None and (match := pattern.match(text, at)) is not None:
                    return match.end(), True
        return self._key(text, at)

    def _wait(self, text: str, at: int) -> tuple[int, bool]:
        if len(text) - at > _MAX_LINE:
            self._lose()
            return len(text), True
        return at, False

    def _at_marker(self, text: str, at: int) -> tuple[int, bool]:
        d = self._d
        if d.closes.match(text, at) is not None or _CLOSED.match(text, at) is not None:
            self._ended = True
            return at, True
        whole = d.opens.match(text, at) is not None or _HALF_MARKER.match(text, at) is None
        if not whole and len(text) - at < _MAX_MARKER:
            return at, False
        self._lose()
        return at, True

    def _key(self, text: str, at: int) -> tuple[int, bool]:
        """The field that begins here, or a line that is none."""
        d = self._d
        match = d.key_text.match(text, at)
        key_end = match.end() if match is not None else at
        sep = d.separator.match(text, key_end)
        after = self._blank(text, sep.end() if sep is not None else key_end)
        if after >= len(text) or (sep is not None and sep.end() == len(text)):
            return self._wait(text, at)
        signs = self._signs
        head = signs.head.match(text, after)
        if head is not None and head.end() == len(text):
            # A run may go on.
            return self._wait(text, at)
        if head is not None and text[at:key_end].strip():
            rest = text[head.end() :].lstrip(" \t")
            again = signs.doubled_head
            if again and (not rest or again.startswith(rest)):
                return self._wait(text, at)
            self._begin_value(text[at:key_end], head.group())
            if again and rest.startswith(again):
                # Several of them count as one.
                self._lose()
            return head.end(), True
        if len(text) - after < len("「始ESCAPE」") and (
            not text[after:].strip("»>") or "「始escape」".startswith(text[after:].casefold())
        ):
            return self._wait(text, at)
        return self._other_line(text, at, key_end)

    def _blank(self, text: str, at: int) -> int:
        """Past blanks and closing emphasis between separator and value, as the reader passes them."""
        blank = BLANK.match(text, at)
        at = blank.end() if blank is not None else at
        decoration = _CLOSING_DECORATION.match(text, at)
        if decoration is None:
            return at
        blank = BLANK.match(text, decoration.end())
        return blank.end() if blank is not None else at

    def _other_line(self, text: str, at: int, key_end: int) -> tuple[int, bool]:
        """A line that is no field in the usual spelling: passed over where nothing in it looks like a delimiter."""
        end = LINE_END.search(text, at)
        if end is None:
            return self._wait(text, at)
        line = text[at : end.start()]
        odd = self._signs.odd_line.search(line) is not None or self._marker(text, at, end.start()) is not None
        if odd or self._role_of(undecorated(text[at:key_end], self._d)[1])[0] == "id":
            self._lose()
        return end.start(), True

    # --- values ---------------------------------------------------------------------------------------------------

    def _begin_value(self, key: str, head: str) -> None:
        self._family = self._d.family_of(head)
        self._role, name = self._role_of(undecorated(key, self._d)[1])
        self._state = "value"
        if self._role == "id":
            self._id = ""
        elif self._role == "argument":
            self._begin(name)

    def _role_of(self, raw: str) -> tuple[Role, str]:
        """What a field with that key is, and the name of its argument."""
        raise NotImplementedError

    def _say(self, text: str) -> None:
        if self._role == "id":
            self._id = (self._id + text)[:MAX_NAME]
        elif self._role == "argument":
            self._add(text)

    def _close(self) -> None:
        """The end of a value."""
        if self._role == "id":
            self.tool_id = visible(self._id).strip() or None
        elif self._role == "argument":
            self._end()
        self._state = "between"

    def _tail(self, text: str, at: int) -> Span | Literal["wait"] | None:
        """The closing delimiter at a place; ``wait`` while the end of the text may cut it in two."""
        raise NotImplementedError

    def _value(self, text: str, at: int) -> tuple[int, bool]:
        """Shows what is sure of a value, and stops at its end or at a doubt."""
        sign = self._sign
        place, stop = at, len(text)
        while (match := sign(text, place)) is not None:
            start = match.start()
            tail = self._tail(text, start)
            if tail == "wait":
                stop = start
                break
            if tail is not None:
                self._say(text[at:start])
                self._closed_by(text[slice(*tail)])
                return tail[1], True
            verdict, place = self._sign_in_value(text, at, start)
            if verdict == "wait":
                stop = place
                break
            if verdict == "key":
                self._say(text[at : self._held(text, at, place)])
                self._unclosed()
                return place, True
            if verdict == "doubt":
                stop = self._held(text, at, place)
                self._say(text[at:stop])
                self._freeze()
                return stop, True
        held = self._held(text, at, stop)
        self._say(text[at:held])
        if len(text) - held > _MAX_LINE:
            self._freeze()
            return held, True
        return held, False

    def _closed_by(self, tail: str) -> None:
        del tail
        self._close()

    def _unclosed(self) -> None:
        """The next field begins, and the value was never closed."""
        self._close()

    def _held(self, text: str, at: int, stop: int) -> int:
        """From where on the end of a value is held back."""
        if at < stop and _KEY_AT_END.match(text, at, stop) is not None:
            return at
        match = self._signs.held.search(text, max(at, stop - _MAX_LINE), stop)
        return match.start() if match is not None else stop

    def _sign_in_value(self, text: str, at: int, start: int) -> tuple[Literal["", "wait", "key", "doubt"], int]:
        """What a sign in a value is: the beginning of something, or text; and where that begins, or the text goes on."""
        d = self._d
        char = text[start]
        end = start + 1
        while char != "「" and end < len(text) and text[end] == char:
            end += 1
        if char in "»>》＞「":
            head = d.any_head.match(text, start)
            open_end = len(text) - end < 2 and not text[end:].strip(" \t")
            key = self._key_before(text, at, start) if head is not None or open_end or char == "「" else None
            if key is None:
                return "", end
            if d.families[self._family].heads.match(text, start) is not None:
                return "key", key
            if open_end or (char == "「" and len(text) - start < len("「始ESCAPE」")):
                return "wait", key
            return ("doubt", key) if head is not None else ("", end)
        marker = self._marker(text, start, min(len(text), end + _MAX_MARKER)) if char in "<＜《" else None
        if marker is not None and marker < end:
            return "doubt", start
        return ("wait", start) if char in "<＜《" and _HALF_MARKER.match(text, start) is not None else ("", end)

    def _key_before(self, text: str, low: int, head: int) -> int | None:
        """Where the field begins whose key stands directly before a delimiter, in the same value."""
        match = _KEY_AT_END.search(text, max(low, head - _LOOK), head)
        if match is None:
            return None
        before = match.group().rstrip(f" \t{_QUOTE}")
        if before[-1:] not in SEPARATORS and not before.endswith((":", "：", "->")):
            return None
        bare = undecorated(before[1:].rstrip(SEPARATORS + "-> \t"), self._d)[1]
        return match.start() + 1 if self._d.next_key.fullmatch(bare.strip()) is not None else None

    # --- what is held back until the closing delimiter comes ------------------------------------------------------

    def _freeze(self) -> None:
        self._state = "frozen"
        self._frozen.clear()
        self._marked = False
        self._end_sign = self._sign

    def _in_frozen(self, text: str, at: int) -> tuple[int, bool]:
        """Text of a value behind a marker, or behind what may be another field: it is shown when the value is closed."""
        d, place = self._d, at
        heads = d.families[self._family].heads
        while (match := self._end_sign(text, place)) is not None:
            start = match.start()
            tail = self._tail(text, start)
            if tail == "wait" or (tail is None and self._cut(text, start)):
                self._frozen.append(text[at:start])
                return start, False
            if tail is not None:
                self._thaw(text[at:start], text[slice(*tail)])
                return tail[1], True
            place = start + 1
            if heads.match(text, start) is not None:
                before = self._recent() + text[at:start]
                if self._key_before(before, 0, len(before)) is not None:
                    # Which of two fields the value ends before is for the reader to say.
                    self._lose()
                    return len(text), True
            if not self._marked and self._marker(text, start, min(len(text), start + _MAX_MARKER)) == start:
                self._marked = True
                if not d.drops:
                    # Whether the value goes on behind it, only the next closing marker tells.
                    self._lose()
                    return len(text), True
                self._end_sign = (self._signs.marked_end or self._signs.sign).search
        self._frozen.append(text[at:])
        return len(text), False

    def _cut(self, text: str, at: int) -> bool:
        """Whether the end of the text may cut in two what begins with a sign."""
        if text[at] in "<＜《":
            return _HALF_MARKER.match(text, at) is not None
        return not text[at:].strip("»> ") or "「始escape」".startswith(text[at:].casefold())

    def _recent(self) -> str:
        """The end of what is held back."""
        parts: list[str] = []
        size = 0
        for part in reversed(self._frozen):
            parts.append(part)
            size += len(part)
            if size > _LOOK:
                break
        return "".join(reversed(parts))

    def _thaw(self, last: str, tail: str) -> None:
        """The value is closed: all of it is shown, unless it may have ended at a marker in it."""
        text = "".join([*self._frozen, last])
        self._frozen.clear()
        if self._marked and self._d.any_head.search(text) is not None:
            self._lose()
            return
        self._say(text)
        self._closed_by(tail)
