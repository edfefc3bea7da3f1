"""The tokens of JSON text and what is wrong with them: strings, numbers, words, blanks and comments.

Every finding goes to the innermost container that is open, so that a container read alone brings its own. Must not know
what stands between tokens.
"""

from __future__ import annotations

import json
import re
from typing import Literal

import msgspec

from tamis.protocols.jsontext.findings import MAX_ERRORS
from tamis.protocols.jsontext.green import NO_KEYS, NO_SHAPES, Branch, Own, Scalar
from tamis.protocols.model import Diag, Edit, Fix

MAX_INT_DIGITS = 4300
"""The interpreter's own bound for turning text into an integer; JSON numbers above it are refused."""

_QUOTES = "“”„‟«»‘’‚‛＂`"
"""What word processors and other languages quote with."""
_LINE_END = re.compile(r"[\r\n]")
_SKIP = re.compile(r"[ \t\n\r]*+")
_STRING = re.compile(r'"(?:[^"\\\n\r]++|\\[^\n\r])*+(?:(")|\\)?')
_SINGLE = re.compile(r"'(?:[^'\\\n\r]++|\\[^\n\r])*+(')?")
_WORD = re.compile(r"[^\s\"'{}\[\],:/]++|/")
_EXACT_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?")
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|(\\u?[0-9a-fA-F]{0,3})|([\x00-\x1f])')
_SURROGATE = re.compile("[\ud800-\udfff]")
LITERALS = {
    "true": Scalar("boolean", 4, True),
    "false": Scalar("boolean", 5, False),
    "null": Scalar("null", 4, None),
}
_FOREIGN_WORDS = {
    "True": "true",
    "False": "false",
    "None": "null",
    "undefined": "null",
    "TRUE": "true",
    "FALSE": "false",
    "NULL": "null",
    "Null": "null",
}
_NOT_FINITE = frozenset(("NaN", "nan", "Infinity", "-Infinity", "+Infinity", "inf", "-inf", "-NaN"))


JsonFault = Literal[
    "control-character",
    "empty-document",
    "foreign-comment",
    "foreign-word",
    "missing-closer",
    "missing-colon",
    "missing-comma",
    "missing-member",
    "missing-name",
    "missing-value",
    "not-a-number",
    "not-finite",
    "out-of-range",
    "single-quotes",
    "stray-closer",
    "stray-colon",
    "text-behind",
    "too-deep",
    "too-many-digits",
    "unclosed-string",
    "unexpected-value",
    "unknown-escape",
    "unquoted-name",
]
"""What is wrong with a token, as the argument ``fault`` of its finding: fixes go by it, and never by the sentence."""


class Stop(Exception):  # noqa: N818 (control flow, not a fault)
    """The cap on errors or depth is reached: the rest of the text stays unread."""


class Leaves(Exception):  # noqa: N818 (control flow, not a fault)
    """What was to be read alone is closed by, or closes, something around it, or has too many errors to be judged alone."""


class Tokens:
    """A place in a text, what reads the token there, and the containers that are open."""

    __slots__ = ("at", "document", "errors", "lenient", "part", "stack", "text")

    def __init__(self, text: str, lenient: bool) -> None:
        self.text = text
        self.at: int = 0
        self.lenient = lenient
        self.part = False
        """Whether this is a part of a text, which must not end within a token."""
        self.errors: int = 0
        self.document = Branch("array", 0, len(text), True, [], [], NO_KEYS, NO_SHAPES)
        self.stack: list[Branch] = []

    # Findings

    def note(self, diag: Diag) -> None:
        """Adds a finding."""
        branch = self.stack[-1] if self.stack else self.document
        own = branch.own
        if own is None:
            own = branch.own = Own()
        own.notes.append((0, diag))

    def count(self) -> None:
        """One more error."""
        self.errors += 1
        branch = self.stack[-1] if self.stack else self.document
        own = branch.own
        if own is None:
            own = branch.own = Own()
        own.errors += 1

    def stop(self, at: int) -> None:
        """Too many errors; raises."""
        if self.part:
            raise Leaves
        self.note(Diag("MF529", (at, at), {"n": MAX_ERRORS}))
        raise Stop

    def error(self, code: str, start: int, end: int, fault: JsonFault, reason: str, fix: Fix | None = None) -> None:
        """Adds an error; past the cap, raises."""
        if self.errors >= MAX_ERRORS:
            self.stop(start)
        self.count()
        self.note(Diag(code, (start, end), {"reason": reason, "fault": fault}, fix=fix))

    def ended(self, what: str, start: int, end: int) -> None:
        """The text ends inside a string or comment."""
        if self.part:
            raise Leaves
        self.count()
        args: dict[str, str | int] = {"open": what}
        self.note(Diag("MF521", (start, end), args))

    def trivia(self, code: str, start: int, end: int, seen: int) -> None:
        """A comment or trailing comma: a hint where they are allowed, an error where not."""
        branch = self.stack[-1] if self.stack else self.document
        own = branch.own
        if own is None:
            own = branch.own = Own()
        origin = branch.origin
        own.trivia.append((start - origin, end - origin, seen - origin))
        if self.lenient:
            return
        self.count()
        if self.errors > MAX_ERRORS:
            self.stop(start)
        title = "Remove the comment" if code == "MF525" else "Remove the trailing comma"
        fix = Fix(title, (Edit(start, end, ""),))
        self.note(Diag(code, (start, end), severity="error", fix=fix))

    # Tokens

    def bare_key(self) -> tuple[str, int]:
        """A name without double quotes: single quotes or a bare word."""
        text, at = self.text, self.at
        if text[at] == "'":
            key, end = self.single()
        else:
            end = _word_end(text, at)
            key = text[at:end].strip(_QUOTES) or text[at:end]
            self.at = end
        fix = Fix("Put the name in double quotes", (Edit(at, end, quoted(key)),))
        self.error("MF520", at, end, "unquoted-name", "names need double quotes", fix)
        return key, end

    # Values

    def scalar(self) -> Scalar:
        """The value at ``at``, which is not the end and opens no container."""
        text, at = self.text, self.at
        char = text[at]
        if char == '"':
            string, end = self.string()
            return Scalar("string", end - at, string)
        if char == "'":
            string, end = self.single()
            fix = Fix("Use double quotes", (Edit(at, end, quoted(string)),))
            self.error("MF522", at, end, "single-quotes", "strings need double quotes", fix)
            return Scalar("string", end - at, string)
        if char in "}],:":
            self.error("MF520", at, at + 1, "unexpected-value", f"a value is expected, not '{char}'")
            self.at = at + 1
            return Scalar("error", 1, None)
        number = _EXACT_NUMBER.match(text, at)
        end = _word_end(text, at)
        self.at = end
        if number is not None and number.end() == end:
            return Scalar("number", end - at, self.number(text[at:end], at, end))
        return self.word(text[at:end], at, end)

    def word(self, word: str, at: int, end: int) -> Scalar:
        """A value that is neither quoted nor a number."""
        if word in LITERALS:
            return LITERALS[word]
        if word in _NOT_FINITE:
            self.error("MF523", at, end, "not-finite", f"{word} is not a JSON number: numbers are finite")
            return Scalar("error", end - at, None)
        if word in _FOREIGN_WORDS:
            right = _FOREIGN_WORDS[word]
            fix = Fix(f"Replace by {right}", (Edit(at, end, right),))
            self.error("MF520", at, end, "foreign-word", f"{word} is written {right} in JSON", fix)
            return Scalar(LITERALS[right].kind, end - at, LITERALS[right].value)
        if word[0] in "0123456789+-.":
            self.error("MF523", at, end, "not-a-number", f"{_shown(word)} is not a JSON number")
            return Scalar("error", end - at, None)
        bare = word.strip(_QUOTES)
        title = "Put it in double quotes" if bare == word else "Use straight double quotes"
        fix = Fix(title, (Edit(at, end, quoted(bare)),), "unsafe")
        self.error(
            "MF520",
            at,
            end,
            "unexpected-value",
            f"a value is expected, not {_shown(word)}; texts need double quotes",
            fix,
        )
        return Scalar("error", end - at, None)

    def number(self, text: str, start: int, end: int) -> int | float | None:
        """The value of a number; None, and an error, where it has none."""
        if "." not in text and "e" not in text and "E" not in text:
            if len(text) > MAX_INT_DIGITS and len(text.lstrip("-")) > MAX_INT_DIGITS:
                self.error("MF523", start, end, "too-many-digits", f"the number has more than {MAX_INT_DIGITS} digits")
                return None
            return int(text)
        value = float(text)
        if value in (float("inf"), float("-inf")):
            self.error("MF523", start, end, "out-of-range", "the number is out of range")
            return None
        return value

    def string(self) -> tuple[str, int]:
        """The string at ``at``: its text, decoded as far as it can be, and its end."""
        text, at = self.text, self.at
        match = _STRING.match(text, at)
        end = match.end() if match else at + 1
        self.at = end
        raw = text[at:end]
        closed = match is not None and match.group(1) is not None
        if not closed:
            if end >= len(text):
                self.ended("a string", at, end)
            else:
                # A comma at the end of the line stands behind the string: only the quote before it is missing.
                body = raw.rstrip()
                if len(body) > 1 and body.endswith(",") and not body.endswith("\\,"):
                    body = body[:-1].rstrip()
                    raw = body
                    end = self.at = at + len(body)
                fix = None
                if len(body) > 1 and not body.endswith("\\"):
                    place = at + len(body)
                    fix = Fix("Close the string", (Edit(place, place, '"'),), "unsafe")
                self.error("MF522", at, end, "unclosed-string", "the string is not closed on its line", fix)
        if closed and "\\" in raw:
            # The C decoder takes exactly what has no fault; only then is a look at every escape due.
            try:
                return self.decoded(json.loads(raw), at, end), end
            except ValueError:
                pass
        faults = [m for m in _ESCAPE.finditer(raw) if m.lastindex] if "\\" in raw or not raw.isprintable() else ()
        for fault in faults:
            first, last = at + fault.start(), at + fault.end()
            if fault.group(2):
                control = fault.group(2)
                escaped = quoted(control)[1:-1]
                fix = Fix(f"Write {escaped}", (Edit(first, last, escaped),))
                self.error(
                    "MF522",
                    first,
                    last,
                    "control-character",
                    f"control character U+{ord(control):04X} in a string",
                    fix,
                )
            elif closed or last < end:
                fix = Fix("Double the backslash", (Edit(first, first, "\\"),), "unsafe")
                self.error(
                    "MF522",
                    first,
                    max(last, first + 1),
                    "unknown-escape",
                    f"{_shown(fault.group())} is not a JSON escape",
                    fix,
                )
        if not closed or faults:
            return raw[1:-1] if closed else raw[1:], end
        if "\\" not in raw:
            return raw[1:-1], end
        return self.decoded(json.loads(raw), at, end), end

    def decoded(self, value: str, at: int, end: int) -> str:
        """The decoded text of the string at ``at``: a lone surrogate escape is legal and becomes U+FFFD, with a warning."""
        if _SURROGATE.search(value):
            value = _SURROGATE.sub("\ufffd", value)
            self.note(Diag("MF527", (at, end)))
        return value

    def single(self) -> tuple[str, int]:
        """The string in single quotes at ``at``, and its end."""
        match = _SINGLE.match(self.text, self.at)
        end = match.end() if match else self.at + 1
        raw = self.text[self.at : end]
        self.at = end
        inner = raw[1:-1] if match is not None and match.group(1) else raw[1:]
        return inner.replace("\\'", "'"), end

    def skip(self) -> None:
        """Moves past blanks and comments."""
        text = self.text
        while True:
            match = _SKIP.match(text, self.at)
            at = self.at = match.end() if match else self.at
            if at + 1 >= len(text) or text[at] not in "/#":
                return
            if text.startswith("//", at) or text[at] == "#":
                end = _line_end(text, at)
                if self.part and end == len(text):
                    raise Leaves
            elif text.startswith("/*", at):
                close = text.find("*/", at + 2)
                end = len(text) if close < 0 else close + 2
                if close < 0:
                    self.at = end
                    self.ended("a comment", at, end)
                    return
            else:
                return
            self.at = end
            if text[at] == "#":
                fix = Fix("Use //", (Edit(at, at + 1, "//"),))
                self.error("MF520", at, end, "foreign-comment", "comments start with // or /*", fix)
            else:
                self.trivia("MF525", at, end, at)


def _line_end(text: str, at: int) -> int:
    match = _LINE_END.search(text, at)
    return match.start() if match else len(text)


def _word_end(text: str, at: int) -> int:
    """The end of the run of characters that can belong to no other token; at least one character."""
    match = _WORD.match(text, at)
    return match.end() if match else at + 1


def _shown(word: str) -> str:
    return word if len(word) <= 40 else word[:39] + "…"


def quoted(text: str) -> str:
    """Returns a text as a JSON string; half a surrogate pair, which no encoding can carry, as ``\\ud800``."""
    try:
        return msgspec.json.encode(text).decode()
    except UnicodeEncodeError:
        return json.dumps(text)
