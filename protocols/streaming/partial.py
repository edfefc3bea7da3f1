"""The call that is being written, for a display: what can be seen of it so far, at the price of the new text only.

Values are shown as they are written (entities, indentation and markup as they stand; CDATA marks left out). Nothing here decides
anything: what is shown may still turn out to be no call, and only the reader says what a call is. Must not be run.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from tamis.protocols.action.decode import INPUT_ALIASES, INPUTS_ALIASES, TOOL_ID_ALIASES
from tamis.protocols.patterns import lazy

MAX_NAME = 256
"""Characters of a name that are shown."""
_MAX_DONE = 100
_WINDOW = 400


class NewText(msgspec.Struct, frozen=True):
    """New characters of one argument's value, which has ``length`` characters with them."""

    argument: str
    text: str
    length: int


class Partial(msgspec.Struct, frozen=True):
    """The call that is being written."""

    protocol: str
    tool_id: str | None
    """None while it is not known."""
    done: tuple[str, ...]
    """Names of the arguments that are finished, the first 100."""
    argument: str | None
    """The argument whose value is being written."""
    new: tuple[NewText, ...]
    """What this piece of the text added to values, in order."""


class Progress:
    """Follows one block from its opening marker on."""

    def __init__(self, protocol: str) -> None:
        self.protocol = protocol
        self.tool_id: str | None = None
        self._done: tuple[str, ...] = ()
        self._argument: str | None = None
        self._length = 0
        self._new: list[NewText] = []
        self._buffer = ""
        self._chunk = ""
        self._ended = False

    def feed(self, chunk: str) -> Partial | None:
        """Takes the next piece of the block; None once its closing marker has come: nothing more is written then."""
        if self._ended:
            return None
        self._new = []
        self._chunk = chunk
        self._buffer += chunk
        self._follow()
        if self._ended:
            self._buffer = ""
            return None
        return Partial(self.protocol, self.tool_id, self._done, self._argument, tuple(self._new))

    def _follow(self) -> None:
        """Of a protocol that nobody here knows only the marker was seen."""
        self._buffer = ""

    def _begin(self, name: str) -> None:
        self._argument = name
        self._length = 0

    def _add(self, text: str) -> None:
        if not text or self._argument is None:
            return
        self._length += len(text)
        last = self._new[-1] if self._new else None
        if last is not None and last.argument == self._argument and last.length + len(text) == self._length:
            self._new[-1] = NewText(self._argument, last.text + text, self._length)
        else:
            self._new.append(NewText(self._argument, text, self._length))

    def _end(self) -> None:
        if self._argument is not None and len(self._done) < _MAX_DONE:
            self._done = (*self._done, self._argument)
        self._argument = None

    def _next_call(self, tool_id: str | None) -> None:
        self.tool_id = tool_id
        self._done = ()
        self._argument = None


_TAG = lazy(r"<\s*+(?P<slash>/?+)\s*+(?P<name>[^\s<>/=]{1,256}+)(?P<rest>[^<>]*+)>")
_NAME_ATTRIBUTE = lazy(r"""\b(?:name|key|id)\s*+=\s*+["']?([^"'<>]*)""")


class ActionProgress(Progress):
    """Both shapes of ACTION, by their tags."""

    def __init__(self, protocol: str) -> None:
        super().__init__(protocol)
        self._section: Literal["", "]]>", "-->"] = ""
        self._tool = ""
        self._tag = ""
        self._id = ""
        self._in_id = False
        self._opened = False
        self._said = False
        """Whether the value has any text but blanks."""
        self._comments: list[str] = []
        """A comment that is still open, and those of a value before any text of it: they belong to it when text follows (ruling 17)."""

    def _follow(self) -> None:
        text, at = self._buffer, 0
        while at < len(text) and not self._ended:
            if self._section:
                at, done = self._inside_section(text, at)
            else:
                at, done = self._markup(text, at)
            if not done:
                break
        self._buffer = text[at:]

    def _inside_section(self, text: str, at: int) -> tuple[int, bool]:
        end = text.find(self._section, at)
        if end >= 0:
            if self._section == "]]>":
                self._text(text[at:end])
            else:
                self._comment(text[at : end + 3])
            self._section = ""
            return end + 3, True
        half, sign = self._section[:2], self._section[0]
        keep = min(len(text) - at, 2 if text.endswith(half) else 1 if text.endswith(sign) else 0)
        if self._section == "]]>":
            self._text(text[at : len(text) - keep])
        else:
            self._comments.append(text[at : len(text) - keep])
        return len(text) - keep, False

    def _markup(self, text: str, at: int) -> tuple[int, bool]:
        start = text.find("<", at)
        if start < 0:
            self._text(text[at:])
            return len(text), False
        self._text(text[at:start])
        if text.startswith("<![CDATA[", start):
            self._section = "]]>"
            return start + 9, True
        if text.startswith("<!--", start):
            self._section = "-->"
            self._comments.append("<!--")
            return start + 4, True
        match = _TAG.match(text, start)
        if match is not None:
            if not self._take(match):
                self._text(match.group())
            return match.end(), True
        open_end = text.find("<", start + 1) < 0 and text.find(">", start + 1) < 0
        if open_end and len(text) - start <= MAX_NAME + _WINDOW:
            return start, False
        self._text("<")
        return start + 1, True

    def _text(self, text: str) -> None:
        if self._in_id:
            self._id = (self._id + text)[:MAX_NAME]
            return
        if not self._said and text and not text.isspace():
            self._said = True
            self._add("".join(self._comments))
            self._comments.clear()
        if self._comments:
            self._comments.append(text)
        else:
            self._add(text)

    def _comment(self, end: str) -> None:
        """Takes the end of a comment."""
        self._comments.append(end)
        if self._said or self._argument is None or self._in_id:
            self._add("".join(self._comments))
            self._comments.clear()

    def _begin(self, name: str) -> None:
        super()._begin(name)
        self._said = False
        self._comments.clear()

    def _take(self, match: re.Match[str]) -> bool:
        """Takes a tag; False when it is part of a value."""
        name, rest = match.group("name"), match.group("rest")
        key = name.strip("`\"'").lower()
        if match.group("slash"):
            return self._close(name, key)
        if self._argument is not None:
            return False
        alone = rest.rstrip().endswith("/")
        if key == "action" and not self._opened:
            self._opened = True
        elif key in TOOL_ID_ALIASES and not self._tool:
            self._next_call(None)
            self._id, self._in_id, self._tag = "", not alone, name
        elif key in INPUTS_ALIASES:
            self._tool = self._tool or "\0inputs"
        elif key in INPUT_ALIASES and (attribute := _NAME_ATTRIBUTE.search(rest)) is not None:
            self._argument_tag(name, attribute.group(1)[:MAX_NAME], alone=alone)
        elif not self._tool and self.tool_id is None:
            self._next_call(name)
            self._tool = "" if alone else name
            if alone:
                self.tool_id = name
        elif not self._tool:
            self._next_call(name)
            self._tool = "" if alone else name
        else:
            self._argument_tag(name, name, alone=alone)
        return True

    def _argument_tag(self, tag: str, name: str, *, alone: bool) -> None:
        self._tag = tag
        self._begin(name)
        if alone:
            self._end()

    def _close(self, name: str, key: str) -> bool:
        if self._in_id and name == self._tag:
            self._in_id = False
            self.tool_id = self._id.strip() or None
            return True
        if self._argument is not None:
            if name != self._tag and name != self._tool and key not in ("action", "inputs"):
                return False
            self._end()
        if name == self._tool or key in ("action", "inputs"):
            self._tool = ""
        self._ended = key == "action"
        return True
