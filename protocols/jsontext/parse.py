"""JSON text with positions: a tolerant reader for manifests, profiles and JSON inside calls.

Reads JSON, and JSON with comments and trailing commas (ruling 31), into a tree in which every value and every key knows its
place. It never raises and never stops at the first fault: it returns the tree it could read and what was wrong. Time is linear
in the text; strings end at the end of their line; errors are capped, and past the cap the rest is left unread. Must not know
what the JSON means.
"""

from __future__ import annotations

import json
import re
from typing import Literal

from tamis.protocols.jsontext.quote import quoted
from tamis.protocols.jsontext.tree import JsonNode, JsonTree, Member
from tamis.protocols.model import Diag, Edit, Fix, Severity

MAX_ERRORS = 200
MAX_JSON_DEPTH = 500
MAX_INT_DIGITS = 4300
"""The interpreter's own bound for turning text into an integer; JSON numbers above it are refused."""

_WS = r"[ \t\n\r]*+"
_TEXT = r'"([^"\\\x00-\x1f]*+)"'
_NUMBER = r"(-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?)"
_VALUE = rf"(?:(?:{_TEXT}|{_NUMBER}|(true|false|null)){_WS}([,}}\]])|([{{\[]))"
# One match takes a whole plain member or element with the separator behind it; whatever is unusual fails it and is read slowly.
_MEMBER = re.compile(rf"{_WS}{_TEXT}{_WS}:{_WS}{_VALUE}")
_ELEMENT = re.compile(rf"{_WS}{_VALUE}")
_LINE_END = re.compile(r"[\r\n]")
_SKIP = re.compile(r"[ \t\n\r]*+")
_STRING = re.compile(r'"(?:[^"\\\n\r]++|\\[^\n\r])*+(?:(")|\\)?')
_SINGLE = re.compile(r"'(?:[^'\\\n\r]++|\\[^\n\r])*+(')?")
_WORD = re.compile(r"[^\s\"'{}\[\],:/]++|/")
_EXACT_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?")
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|(\\u?[0-9a-fA-F]{0,3})|([\x00-\x1f])')
_SURROGATE = re.compile("[\ud800-\udfff]")
_LITERALS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
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

State = Literal["value", "key", "after", "first-key", "first-item"]


class _Stop(Exception):  # noqa: N818 (control flow, not a fault)
    """The cap on errors or depth is reached: the rest of the text stays unread."""


def parse_json(text: str, *, comments: bool = True) -> JsonTree:
    """Reads a JSON document.

    With ``comments``, comments and trailing commas are trivia and reported as hints with a fix; without, they are errors, as
    is a byte order mark. Never raises. Severity ``error`` is in ``diagnostics`` exactly when the text is not JSON.
    """
    return _Reader(text, comments).read()


class _Reader:
    """One pass over one text with an explicit stack: depth costs memory, never the interpreter's stack."""

    __slots__ = ("at", "comments", "diags", "errors", "jsonc", "pending", "quiet", "root", "stack", "text", "trailing")

    def __init__(self, text: str, jsonc: bool) -> None:
        self.text = text
        self.at: int = 0
        self.pending = -1
        self.jsonc = jsonc
        self.diags: list[Diag] = []
        self.errors = 0
        self.quiet = 0
        self.comments: list[tuple[int, int]] = []
        self.trailing: list[int] = []
        self.root: JsonNode | None = None
        self.stack: list[JsonNode] = []

    # Findings

    def error(self, code: str, start: int, end: int, reason: str, fix: Fix | None = None) -> None:
        if self.errors >= MAX_ERRORS:
            self.diags.append(Diag("MF529", (start, start), {"n": MAX_ERRORS}))
            raise _Stop
        self.errors += 1
        self.diags.append(Diag(code, (start, end), {"reason": reason}, fix=fix))

    def ended(self, what: str, start: int, end: int) -> None:
        """The text ends inside a string or comment."""
        self.errors += 1
        args: dict[str, str | int] = {"open": what, "line": self.text.count("\n", 0, start) + 1}
        self.diags.append(Diag("MF521", (start, end), args, data={"open": start}))

    def trivia(self, code: str, start: int, end: int, fix: Fix) -> None:
        """A comment or trailing comma: a hint where they are allowed, an error where not."""
        if not self.jsonc:
            self.errors += 1
            if self.errors > MAX_ERRORS:
                self.diags.append(Diag("MF529", (start, start), {"n": MAX_ERRORS}))
                raise _Stop
        elif self.quiet >= MAX_ERRORS:
            return
        else:
            self.quiet += 1
        severity: Severity = "hint" if self.jsonc else "error"
        self.diags.append(Diag(code, (start, end), severity=severity, fix=fix))

    # The pass

    def read(self) -> JsonTree:
        text = self.text
        if text.startswith("\ufeff"):
            self.at = 1
            severity: Severity = "information" if self.jsonc else "error"
            fix = Fix("Remove the byte order mark", (Edit(0, 1, ""),))
            self.diags.append(Diag("TC015", (0, 1), severity=severity, fix=fix))
            self.errors += not self.jsonc
        try:
            self.skip()
            if self.at >= len(text):
                self.error("MF520", self.at, self.at, "the document is empty")
            else:
                self.root = self.value()
                if self.stack:
                    self.containers()
                self.rest()
        except _Stop:
            self.close_all()
        _find_duplicates(self.root, self.diags)
        self.diags.sort(key=lambda diag: diag.span)
        return JsonTree(text, self.root, self.diags, self.comments, self.trailing)

    def rest(self) -> None:
        """Whatever stands behind the document."""
        self.skip()
        if self.at < len(self.text):
            end = max(len(self.text.rstrip()), self.at + 1)
            self.error("MF520", self.at, end, "there is text after the end of the document")

    def close_all(self) -> None:
        for node in self.stack:
            node.end = self.at
            node.closed = False
        self.stack.clear()

    def containers(self) -> None:
        """Reads until the stack is empty or the text ends."""
        text, stack = self.text, self.stack
        member_match, element_match = _MEMBER.match, _ELEMENT.match
        while stack:
            node = stack[-1]
            at = self.at
            if node.kind == "object":
                found = member_match(text, at)
                if found is None:
                    self.slowly(node)
                    continue
                key, string, number, literal, separator, opener = found.groups()
                start = found.start(1) - 1
                base = 2
            else:
                found = element_match(text, at)
                if found is None:
                    self.slowly(node)
                    continue
                key = ""
                start = 0
                string, number, literal, separator, opener = found.groups()
                base = 1
            if opener is not None:
                value = self.open(opener, found.end() - 1, push=False)
            elif string is not None:
                first, last = found.span(base)
                value = JsonNode("string", first - 1, last + 1, string)
            elif number is not None:
                first, last = found.span(base + 1)
                value = JsonNode("number", first, last, self.number(number, first, last))
            else:
                first, last = found.span(base + 2)
                value = JsonNode("null" if literal == "null" else "boolean", first, last, _LITERALS[literal])
            if base == 2:
                key_end = start + len(key) + 2
                node.members.append(Member(key, start, key_end, text.find(":", key_end), value))
            else:
                node.items.append(value)
            self.at = found.end()
            if opener is not None:
                if len(stack) >= MAX_JSON_DEPTH:
                    self.too_deep(value)
                stack.append(value)
            elif separator == ",":
                # What follows a comma is looked at only when it is no plain member.
                self.pending = found.end() - 1
            else:
                self.close(separator)

    def too_deep(self, node: JsonNode) -> None:
        self.error("MF530", node.start, node.start + 1, f"more than {MAX_JSON_DEPTH} levels of nesting")
        raise _Stop

    def open(self, opener: str, at: int, *, push: bool = True) -> JsonNode:
        node = JsonNode("object" if opener == "{" else "array", at, at + 1, None)
        if push:
            if len(self.stack) >= MAX_JSON_DEPTH:
                self.too_deep(node)
            self.stack.append(node)
            self.at = at + 1
            self.first()
        return node

    def first(self) -> None:
        """Behind an opener: an empty container closes at once."""
        self.skip()
        if self.at < len(self.text) and self.text[self.at] in "}]":
            self.at += 1
            self.close(self.text[self.at - 1])

    def close(self, closer: str) -> None:
        """Closes the innermost container; the closer stands just before ``at``."""
        stack = self.stack
        wanted = "object" if closer == "}" else "array"
        if stack[-1].kind != wanted:
            if not any(node.kind == wanted for node in stack):
                self.error("MF520", self.at - 1, self.at, f"'{closer}' closes nothing here")
                self.separator()
                return
            # The closer belongs to an outer container: the inner ones end here.
            while stack[-1].kind != wanted:
                inner = stack.pop()
                inner.end = self.at - 1
                inner.closed = False
                right = "}" if inner.kind == "object" else "]"
                fix = Fix(f"Insert '{right}'", (Edit(self.at - 1, self.at - 1, right),), "unsafe")
                self.error("MF520", self.at - 1, self.at, f"'{right}' is missing before '{closer}'", fix)
        node = stack.pop()
        node.end = self.at
        if stack:
            self.separator()

    def separator(self) -> None:
        """Behind a value inside a container: a comma, a closer, or a fault."""
        while self.stack:
            self.skip()
            text, at = self.text, self.at
            if at >= len(text):
                self.unclosed()
                return
            char = text[at]
            if char == ",":
                self.at = at + 1
                self.comma(at)
                return
            if char in "}]":
                self.at = at + 1
                self.close(char)
                return
            if char == ":":
                self.error("MF520", at, at + 1, "':' is not expected here")
                self.at = at + 1
                return
            end = self.last_end()
            fix = Fix("Insert ','", (Edit(end, end, ","),))
            self.error("MF520", at, at + 1, "',' is missing before this", fix)
            return

    def last_end(self) -> int:
        """Where the last thing of the innermost container ends."""
        node = self.stack[-1]
        if node.kind == "object" and node.members:
            member = node.members[-1]
            return member.value.end if member.value is not None else member.key_end
        if node.items:
            return node.items[-1].end
        return node.start + 1

    def comma(self, at: int) -> None:
        """Behind a comma at ``at``: another member, or a trailing comma, or one too many."""
        while True:
            self.skip()
            if self.at >= len(self.text):
                self.unclosed()
                return
            char = self.text[self.at]
            if char in "}]":
                self.trailing.append(at)
                self.trivia("MF526", at, at + 1, Fix("Remove the trailing comma", (Edit(at, at + 1, ""),)))
                self.at += 1
                self.close(char)
                return
            if char != ",":
                return
            self.error("MF520", self.at, self.at + 1, "a value is missing before ','")
            at = self.at
            self.at += 1

    def unclosed(self) -> None:
        """The text ends inside containers."""
        inner = self.stack[-1]
        opener = "{" if inner.kind == "object" else "["
        line = self.text.count("\n", 0, inner.start) + 1
        end = len(self.text)
        self.at = end
        right = "".join("}" if node.kind == "object" else "]" for node in reversed(self.stack[-64:]))
        fix = Fix(f"Insert '{right}'", (Edit(end, end, right),), "unsafe") if len(self.stack) <= 64 else None
        shown = len(self.text.rstrip())
        args: dict[str, str | int] = {"open": f"'{opener}'", "line": line}
        if self.errors < MAX_ERRORS:
            self.errors += 1
            self.diags.append(Diag("MF521", (max(shown - 1, 0), shown), args, fix=fix, data={"open": inner.start}))
        self.close_all()

    # Unusual members

    def slowly(self, node: JsonNode) -> None:
        """What the fast patterns do not match: first the comma before it, then one member or element."""
        comma, self.pending = self.pending, -1
        if comma >= 0 and comma == self.at - 1:
            self.comma(comma)
            if not self.stack or self.stack[-1] is not node or self.pending >= 0:
                return
        if node.kind == "object":
            self.member_slowly(node)
        else:
            self.element_slowly(node)

    def member_slowly(self, node: JsonNode) -> None:
        text = self.text
        self.skip()
        at = self.at
        if at >= len(text):
            self.unclosed()
            return
        char = text[at]
        if char in "}]":
            self.at = at + 1
            self.close(char)
            return
        if char == '"':
            key, key_end = self.string()
        elif char in "{[":
            self.error("MF520", at, at + 1, "a member of an object needs a name in double quotes")
            node.members.append(Member("", at, at, -1, self.open(char, at)))
            return
        elif char == ":":
            self.error("MF520", at, at + 1, "the name before ':' is missing")
            key, key_end = "", at
        elif char == ",":
            self.error("MF520", at, at + 1, "a member is missing before ','")
            self.at = at + 1
            self.comma(at)
            return
        else:
            key, key_end = self.bare_key()
        member = Member(key, at, key_end, -1, None)
        node.members.append(member)
        self.skip()
        if self.at < len(text) and text[self.at] == ":":
            member.colon = self.at
            self.at += 1
            self.skip()
        else:
            stop = min(self.at + 1, len(text))
            self.error(
                "MF520", at, key_end if self.at < len(text) else stop, f"':' is missing after {text[at:key_end][:40]}"
            )
            if self.at >= len(text) or text[self.at] in ",}]":
                self.separator()
                return
            if text[self.at] == '"' and _MEMBER.match(text, self.at):
                return  # a whole member follows: the name stood alone
        if self.at >= len(text):
            self.unclosed()
            return
        if text[self.at] in ",}]":
            self.error("MF520", self.at, self.at + 1, f"the value of {text[at:key_end][:40]} is missing")
            self.separator()
            return
        depth = len(self.stack)
        member.value = self.value()
        if len(self.stack) == depth and member.value.kind not in ("object", "array"):
            self.separator()

    def element_slowly(self, node: JsonNode) -> None:
        self.skip()
        if self.at >= len(self.text):
            self.unclosed()
            return
        char = self.text[self.at]
        if char in "}]":
            self.at += 1
            self.close(char)
            return
        if char == ",":
            self.error("MF520", self.at, self.at + 1, "a value is missing before ','")
            self.at += 1
            self.comma(self.at - 1)
            return
        if char == ":":
            self.error("MF520", self.at, self.at + 1, "':' is not expected in a list")
            self.at += 1
            return
        depth = len(self.stack)
        value = JsonNode("null", self.at, self.at, None)
        slot = len(node.items)
        node.items.append(value)
        node.items[slot] = value = self.value()
        if len(self.stack) == depth and value.kind not in ("object", "array"):
            self.separator()

    def bare_key(self) -> tuple[str, int]:
        """A name without double quotes: single quotes or a bare word."""
        text, at = self.text, self.at
        if text[at] == "'":
            key, end = self.single()
        else:
            end = _word_end(text, at)
            key = text[at:end]
            self.at = end
        fix = Fix("Put the name in double quotes", (Edit(at, end, quoted(key)),))
        self.error("MF520", at, end, "names need double quotes", fix)
        return key, end

    # Values

    def value(self) -> JsonNode:
        """One value at ``at``, which is not the end, a comma or a closer; containers are opened and left to the loop."""
        text, at = self.text, self.at
        char = text[at]
        if char in "{[":
            return self.open(char, at)
        if char == '"':
            string, end = self.string()
            return JsonNode("string", at, end, string)
        if char == "'":
            string, end = self.single()
            fix = Fix("Use double quotes", (Edit(at, end, quoted(string)),))
            self.error("MF522", at, end, "strings need double quotes", fix)
            return JsonNode("string", at, end, string)
        if char in "}],:":
            self.error("MF520", at, at + 1, f"a value is expected, not '{char}'")
            self.at = at + 1
            return JsonNode("error", at, at + 1, None)
        number = _EXACT_NUMBER.match(text, at)
        end = _word_end(text, at)
        self.at = end
        if number is not None and number.end() == end:
            return JsonNode("number", at, end, self.number(text[at:end], at, end))
        return self.word(text[at:end], at, end)

    def word(self, word: str, at: int, end: int) -> JsonNode:
        if word in _LITERALS:
            return JsonNode("null" if word == "null" else "boolean", at, end, _LITERALS[word])
        if word in _NOT_FINITE:
            self.error("MF523", at, end, f"{word} is not a JSON number: numbers are finite")
            return JsonNode("error", at, end, None)
        if word in _FOREIGN_WORDS:
            right = _FOREIGN_WORDS[word]
            fix = Fix(f"Replace by {right}", (Edit(at, end, right),))
            self.error("MF520", at, end, f"{word} is written {right} in JSON", fix)
            return JsonNode("null" if right == "null" else "boolean", at, end, _LITERALS[right])
        if word[0] in "0123456789+-.":
            self.error("MF523", at, end, f"{_shown(word)} is not a JSON number")
            return JsonNode("error", at, end, None)
        fix = Fix("Put it in double quotes", (Edit(at, end, quoted(word)),), "unsafe")
        self.error("MF520", at, end, f"a value is expected, not {_shown(word)}; texts need double quotes", fix)
        return JsonNode("error", at, end, None)

    def number(self, text: str, start: int, end: int) -> int | float | None:
        if "." not in text and "e" not in text and "E" not in text:
            if len(text) > MAX_INT_DIGITS and len(text.lstrip("-")) > MAX_INT_DIGITS:
                self.error("MF523", start, end, f"the number has more than {MAX_INT_DIGITS} digits")
                return None
            return int(text)
        value = float(text)
        if value in (float("inf"), float("-inf")):
            self.error("MF523", start, end, "the number is out of range")
            return None
        return value

    def string(self) -> tuple[str, int]:
        """The string at ``at``: its text, decoded as far as it can be, and its end."""
        text, at = self.text, self.at
        found = _STRING.match(text, at)
        end = found.end() if found else at + 1
        self.at = end
        raw = text[at:end]
        closed = found is not None and found.group(1) is not None
        if not closed:
            if end >= len(text):
                self.ended("a string", at, end)
            else:
                self.error("MF522", at, end, "the string is not closed on its line")
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
                self.error("MF522", first, last, f"control character U+{ord(control):04X} in a string", fix)
            elif closed or last < end:
                fix = Fix("Double the backslash", (Edit(first, first, "\\"),), "unsafe")
                self.error("MF522", first, max(last, first + 1), f"{_shown(fault.group())} is not a JSON escape", fix)
        if not closed or faults:
            return raw[1:-1] if closed else raw[1:], end
        if "\\" not in raw:
            return raw[1:-1], end
        return self.decoded(json.loads(raw), at, end), end

    def decoded(self, value: str, at: int, end: int) -> str:
        """The decoded text of the string at ``at``: a lone surrogate escape is legal and becomes U+FFFD, with a warning."""
        if _SURROGATE.search(value):
            value = _SURROGATE.sub("\ufffd", value)
            self.diags.append(Diag("MF527", (at, end)))
        return value

    def single(self) -> tuple[str, int]:
        found = _SINGLE.match(self.text, self.at)
        end = found.end() if found else self.at + 1
        raw = self.text[self.at : end]
        self.at = end
        inner = raw[1:-1] if found is not None and found.group(1) else raw[1:]
        return inner.replace("\\'", "'"), end

    def skip(self) -> None:
        """Moves past blanks and comments."""
        text = self.text
        while True:
            found = _SKIP.match(text, self.at)
            at = self.at = found.end() if found else self.at
            if at + 1 >= len(text) or text[at] not in "/#":
                return
            if text.startswith("//", at) or text[at] == "#":
                end = _line_end(text, at)
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
                self.error("MF520", at, end, "comments start with // or /*", fix)
            else:
                self.comments.append((at, end))
                self.trivia("MF525", at, end, Fix("Remove the comment", (Edit(at, end, ""),)))


def _line_end(text: str, at: int) -> int:
    found = _LINE_END.search(text, at)
    return found.start() if found else len(text)


def _word_end(text: str, at: int) -> int:
    """The end of the run of characters that can belong to no other token; at least one character."""
    found = _WORD.match(text, at)
    return found.end() if found else at + 1


def _shown(word: str) -> str:
    return word if len(word) <= 40 else word[:39] + "…"


def _find_duplicates(root: JsonNode | None, diags: list[Diag]) -> None:
    """A key that an object has twice: the last one counts; each earlier one is reported."""
    if root is None:
        return
    left = MAX_ERRORS
    stack = [root]
    while stack:
        node = stack.pop()
        if node.kind == "array":
            stack.extend(item for item in node.items if item.kind in ("object", "array"))
            continue
        seen: dict[str, Member] = {}
        for member in node.members:
            value = member.value
            if value is not None and value.kind in ("object", "array"):
                stack.append(value)
        if len({member.key for member in node.members}) == len(node.members):
            continue
        for member in node.members:
            earlier = seen.get(member.key)
            if earlier is not None and left > 0 and member.colon >= 0:
                left -= 1
                diags.append(Diag("MF524", (member.key_start, member.key_end), {"k": member.key}))
            seen[member.key] = member
