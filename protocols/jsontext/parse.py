"""JSON text with positions: a tolerant reader for manifests, profiles and JSON inside calls.

Reads JSON, and JSON with comments and trailing commas (ruling 31), into a tree in which every value and every key knows its
place. It never raises and never stops at the first fault: it returns the tree it could read and what was wrong. Time is linear
in the text; strings end at the end of their line; errors are capped, and past the cap the rest is left unread. Must not know
what the JSON means.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tamis.protocols.jsontext.findings import MAX_ERRORS
from tamis.protocols.jsontext.green import Branch, Green, NodeKind, Own, Reading, Scalar, empty, parts_of
from tamis.protocols.jsontext.tokens import LITERALS, Leaves, Stop, Tokens
from tamis.protocols.jsontext.tree import JsonTree
from tamis.protocols.model import Diag, Edit, Fix, Severity

MAX_JSON_DEPTH = 500
MAX_STRAY = 40
"""How many closers too many behind a document may be removed together."""

_WS = r"[ \t\n\r]*+"
_TEXT = r'"([^"\\\x00-\x1f]*+)"'
_NUMBER = r"(-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?)"
_VALUE = rf"(?:(?:{_TEXT}|{_NUMBER}|(true|false|null)){_WS}([,}}\]])|([{{\[]))"
# One match takes a whole plain member or element with the separator behind it; whatever is unusual fails it and is read slowly.
_MEMBER = re.compile(rf"{_WS}{_TEXT}{_WS}:{_WS}{_VALUE}")
_ELEMENT = re.compile(rf"{_WS}{_VALUE}")


Known = tuple[Branch, int]
"""A container that was read before, and how deep it goes at most: one if it holds no others."""


_NOTHING = Scalar("null", 0, None)
"""Stands in a list while its next element is read."""


def parse_json(text: str, *, comments: bool = True) -> JsonTree:
    """Reads a JSON document.

    With ``comments``, comments and trailing commas are trivia and reported as hints with a fix; without, they are errors, as
    is a byte order mark. Never raises. Severity ``error`` is in ``diagnostics`` exactly when the text is not JSON.
    """
    return JsonTree(text, Reader(text, comments).read())


class Reader(Tokens):
    """One pass over one text with an explicit stack: depth costs memory, never the interpreter's stack."""

    __slots__ = ("around", "below", "deepest", "expects", "known", "open_end", "pending", "stopped")

    def __init__(self, text: str, lenient: bool, known: Mapping[int, Known] | None = None) -> None:
        """``known`` are containers by the place of their opener whose text was read before: they are taken over."""
        super().__init__(text, lenient)
        self.pending = -1
        self.known = known
        self.stopped = False
        self.open_end = False
        self.deepest = 0
        # Only for a part of a text: the kinds and the number of containers around it, and whether a child was expected at its end.
        self.around: frozenset[NodeKind] = frozenset()
        self.below = 0
        self.expects = False

    # The pass

    def read(self) -> Reading:
        """The whole text."""
        text = self.text
        document = self.document
        if text.startswith("\ufeff"):
            self.at = 1
            severity: Severity = "information" if self.lenient else "error"
            fix = Fix("Remove the byte order mark", (Edit(0, 1, ""),))
            self.note(Diag("TC015", (0, 1), severity=severity, fix=fix))
            if not self.lenient:
                self.count()
        try:
            self.skip()
            if self.at >= len(text):
                self.error("MF520", 0, len(text), "empty-document", "the document is empty")
            else:
                document.starts.append(self.at)
                document.values.append(None)
                document.values[0] = self.value()
                if self.stack:
                    self.containers()
                self.rest()
        except Stop:
            self.stopped = True
            self.close_all()
        if document.values and document.values[0] is None:
            document.starts.clear()
            document.values.clear()
        own = document.own
        if own is not None:
            own.marks += own.speaks
        return Reading(document, self.lenient, self.errors, self.stopped, self.open_end, self.deepest)

    def read_part(self, branch: Branch, around: frozenset[NodeKind], below: int, *, closes: bool) -> bool:
        """Reads children of ``branch``, which is empty and stands in ``below`` containers of the kinds ``around``, its own among them.

        The text begins where a child is expected. With ``closes`` it ends with the closer of the branch, else where the next
        child is expected. False where that is not so, or where what is around would have to be known.
        """
        self.part = True
        self.around = around
        self.below = below
        self.stack.append(branch)
        try:
            self.containers()
        except Leaves:
            return not closes and self.expects and self.at >= len(self.text) and len(self.stack) == 1
        return closes and branch.closed and self.at == len(self.text)

    def rest(self) -> None:
        """Whatever stands behind the document."""
        self.skip()
        if self.at < len(self.text):
            end = max(len(self.text.rstrip()), self.at + 1)
            stray = self.text[self.at : end]
            fix = None
            if len(stray) <= MAX_STRAY and not stray.strip("}] \t\r\n"):
                fix = Fix(f"Remove '{' '.join(stray.split())}'", (Edit(self.at, end, ""),), "unsafe")
            self.error("MF520", self.at, end, "text-behind", "there is text after the end of the document", fix)

    def close_all(self) -> None:
        """Everything that is open ends here."""
        while self.stack:
            self.finish(self.at, False)

    def finish(self, end: int, closed: bool) -> None:
        """The innermost container ends."""
        stack = self.stack
        branch = stack.pop()
        branch.length = end - branch.origin
        branch.closed = closed
        keys = branch.keys
        if len(keys) > 1 and len(set(keys)) != len(keys):
            own = branch.own
            if own is None:
                own = branch.own = Own()
            own.doubled = True
        own = branch.own
        if own is not None:
            own.marks += own.speaks
            parent = stack[-1] if stack else self.document
            above = parent.own
            if above is None:
                above = parent.own = Own()
            above.errors += own.errors
            above.marks += own.marks > 0

    def containers(self) -> None:
        """Reads until the stack is empty or the text ends."""
        stack = self.stack
        while stack:
            node = stack[-1]
            if len(stack) > self.deepest:
                self.deepest = len(stack)
            if node.kind == "object":
                self.members(node)
            else:
                self.elements(node)

    def members(self, node: Branch) -> None:
        """Reads members as long as they are plain."""
        text, at, match = self.text, self.at, _MEMBER.match
        origin = node.origin
        keys, starts, shapes, values = node.keys, node.starts, node.shapes, node.values
        while True:
            token = match(text, at)
            if token is None:
                self.at = at
                self.slowly(node)
                return
            key, string, number, literal, separator, opener = token.groups()
            start, key_end = token.span(1)
            start -= 1
            key_end += 1
            end = token.end()
            if string is not None:
                offset = token.start(2) - 1 - start
                value = Scalar("string", len(string) + 2, string)
            elif opener is not None:
                offset = end - 1 - start
                value = None
            elif literal is not None:
                offset = token.start(4) - start
                value = LITERALS[literal]
            else:
                first, last = token.span(3)
                offset = first - start
                self.at = at
                value = Scalar("number", last - first, self.number(number, first, last))
            starts.append(start - origin)
            keys.append(key)
            # Behind a plain key the colon nearly always stands at once.
            colon = key_end - start
            shapes.append(offset if text[key_end] == ":" else (colon, text.find(":", key_end) - start, offset))
            values.append(value)
            at = end
            if separator == ",":
                # What follows a comma is looked at only when it is no plain member.
                self.pending = at - 1
                continue
            self.at = at
            if value is None:
                self.enter(node, opener, at - 1)
            else:
                self.close(separator)
                self.separator()
            return

    def elements(self, node: Branch) -> None:
        """Reads elements as long as they are plain."""
        text, at, match = self.text, self.at, _ELEMENT.match
        origin = node.origin
        starts, values = node.starts, node.values
        while True:
            token = match(text, at)
            if token is None:
                self.at = at
                self.slowly(node)
                return
            string, number, literal, separator, opener = token.groups()
            end = token.end()
            if string is not None:
                start = token.start(1) - 1
                value = Scalar("string", len(string) + 2, string)
            elif opener is not None:
                start = end - 1
                value = None
            elif literal is not None:
                start = token.start(3)
                value = LITERALS[literal]
            else:
                start, last = token.span(2)
                self.at = at
                value = Scalar("number", last - start, self.number(number, start, last))
            starts.append(start - origin)
            values.append(value)
            at = end
            if separator == ",":
                self.pending = at - 1
                continue
            self.at = at
            if value is None:
                self.enter(node, opener, at - 1)
            else:
                self.close(separator)
                self.separator()
            return

    def enter(self, node: Branch, opener: str | None, at: int) -> None:
        """A container as the last child of ``node``, where its place is kept."""
        if self.known is not None:
            taken = self.take(self.known, at)
            if taken is not None:
                node.values[-1] = taken
                self.separator()
                return
        branch = empty("object" if opener == "{" else "array", at)
        node.values[-1] = branch
        if len(self.stack) + self.below >= MAX_JSON_DEPTH:
            self.too_deep(at)
        self.stack.append(branch)

    def too_deep(self, at: int) -> None:
        """Too many levels; raises."""
        self.error("MF530", at, at + 1, "too-deep", f"more than {MAX_JSON_DEPTH} levels of nesting")
        if self.part:
            raise Leaves
        raise Stop

    def open(self, opener: str, at: int) -> Branch:
        """A container whose place comes later. Its content is left to the loop, unless it is known."""
        taken = self.take(self.known, at) if self.known is not None else None
        if taken is not None:
            return taken
        if len(self.stack) + self.below >= MAX_JSON_DEPTH:
            self.too_deep(at)
        branch = empty("object" if opener == "{" else "array", at)
        self.stack.append(branch)
        self.at = at + 1
        return branch

    def take(self, known: Mapping[int, Known], at: int) -> Branch | None:
        """The container that opens at ``at``, if it is known; it is then passed over."""
        entry = known.get(at)
        if entry is None:
            return None
        branch, height = entry
        deepest = len(self.stack) + height
        if deepest + self.below > MAX_JSON_DEPTH:
            return None
        self.deepest = max(self.deepest, deepest)
        self.at = at + branch.length
        if branch.is_marked:
            parent = self.stack[-1] if self.stack else self.document
            own = parent.own
            if own is None:
                own = parent.own = Own()
            own.marks += 1
        return branch

    def close(self, closer: str) -> None:
        """Closes the innermost container; the closer stands just before ``at``."""
        stack = self.stack
        wanted = "object" if closer == "}" else "array"
        if stack[-1].kind != wanted:
            if not any(branch.kind == wanted for branch in stack):
                if wanted in self.around:
                    raise Leaves
                self.error("MF520", self.at - 1, self.at, "stray-closer", f"'{closer}' closes nothing here")
                return
            # The closer belongs to an outer container: the inner ones end here.
            while stack[-1].kind != wanted:
                right = "}" if stack[-1].kind == "object" else "]"
                self.finish(self.at - 1, False)
                fix = Fix(f"Insert '{right}'", (Edit(self.at - 1, self.at - 1, right),), "unsafe")
                self.error(
                    "MF520", self.at - 1, self.at, "missing-closer", f"'{right}' is missing before '{closer}'", fix
                )
        self.finish(self.at, True)

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
                if not self.comma(at):
                    return
                continue
            if char in "}]":
                self.at = at + 1
                self.close(char)
                continue
            if char == ":":
                if self.was_name(at):
                    return
                self.error("MF520", at, at + 1, "stray-colon", "':' is not expected here")
                self.at = at + 1
                return
            end = self.last_end()
            fix = Fix("Insert ','", (Edit(end, end, ","),))
            self.error("MF520", at, at + 1, "missing-comma", "',' is missing before this", fix)
            return

    def was_name(self, colon: int) -> bool:
        """Whether the last element of a list is the name of a member of the object around it: the list's closer is then missing."""
        stack = self.stack
        node = stack[-1]
        if node.kind != "array" or not node.values:
            return False
        if len(stack) < 2:
            if self.below:
                raise Leaves  # what is around decides
            return False
        last = node.values[-1]
        if stack[-2].kind != "object" or not isinstance(last, Scalar) or not isinstance(last.value, str):
            return False
        start = node.origin + node.starts[-1]
        own = node.own
        if own is not None:
            comma = [diag for _, diag in own.notes if diag.span[0] >= start]
            if own.trivia and own.trivia[-1][0] >= node.starts[-1]:
                return False
            if len(comma) == 1 and comma[0].fix is not None and comma[0].fix.title == "Insert ','":
                # The closer is what is missing there, not the comma.
                own.notes.pop()
                own.errors -= 1
                self.errors -= 1
            elif comma:
                return False
        node.starts.pop()
        node.values.pop()
        end = self.last_end()
        self.finish(start, False)
        closer = "]" if "," in self.text[end:start] else "],"
        fix = Fix("Insert ']'", (Edit(end, end, closer),), "unsafe")
        name_end = start + last.length
        self.error("MF520", start, name_end, "missing-closer", "']' is missing before this name", fix)
        self.add(stack[-1], last.value, start, (name_end - start, -1, -1), None)
        self.member_value(stack[-1], start, name_end, colon)
        return True

    def last_end(self) -> int:
        """Where the last thing of the innermost container ends."""
        branch = self.stack[-1]
        if not branch.starts:
            return branch.origin + 1
        value = branch.values[-1]
        start = branch.origin + branch.starts[-1]
        if value is None:
            return start + parts_of(branch.shapes[-1], branch.keys[-1])[0]
        return branch.origin + branch.value_start(-1) + value.length

    def comma(self, at: int) -> bool:
        """Behind a comma at ``at``: another member, or a trailing comma, or one too many. Whether a closer follows; it is then done."""
        while True:
            self.skip()
            if self.at >= len(self.text):
                self.expects = True
                self.unclosed()
                return False
            char = self.text[self.at]
            if char in "}]":
                self.trivia("MF526", at, at + 1, self.at)
                self.at += 1
                self.close(char)
                return True
            if char != ",":
                return False
            self.error("MF520", self.at, self.at + 1, "missing-value", "a value is missing before ','")
            at = self.at
            self.at += 1

    def unclosed(self) -> None:
        """The text ends inside containers."""
        self.at = len(self.text)
        if self.part:
            raise Leaves
        if self.errors < MAX_ERRORS:
            self.errors += 1
            self.open_end = True
        self.close_all()

    # Unusual members

    def slowly(self, node: Branch) -> None:
        """What the fast patterns do not match: first the comma before it, then one member or element."""
        comma, self.pending = self.pending, -1
        if comma >= 0 and comma == self.at - 1:
            if self.comma(comma):
                self.separator()
            if not self.stack or self.stack[-1] is not node or self.pending >= 0:
                return
        if node.kind == "object":
            self.member_slowly(node)
        else:
            self.element_slowly(node)

    def member_slowly(self, node: Branch) -> None:
        """One member of any spelling, and what follows it."""
        text = self.text
        self.skip()
        at = self.at
        if at >= len(text):
            self.expects = True
            self.unclosed()
            return
        char = text[at]
        if char in "}]":
            self.at = at + 1
            self.close(char)
            self.separator()
            return
        if char == '"':
            key, key_end = self.string()
        elif char in "{[":
            self.error("MF520", at, at + 1, "missing-name", "a member of an object needs a name in double quotes")
            depth = len(self.stack)
            self.add(node, "", at, (0, -1, 0), self.open(char, at))
            if len(self.stack) == depth:
                self.separator()
            return
        elif char == ":":
            self.error("MF520", at, at + 1, "missing-name", "the name before ':' is missing")
            key, key_end = "", at
        elif char == ",":
            self.error("MF520", at, at + 1, "missing-member", "a member is missing before ','")
            self.at = at + 1
            if self.comma(at):
                self.separator()
            return
        else:
            key, key_end = self.bare_key()
        self.add(node, key, at, (key_end - at, -1, -1), None)
        self.skip()
        if self.at < len(text) and text[self.at] == ":":
            self.member_value(node, at, key_end, self.at)
            return
        ends = self.at >= len(text)
        alone = not ends and (
            text[self.at] in ",}]" or (text[self.at] == '"' and _MEMBER.match(text, self.at) is not None)
        )
        fix = None if ends or alone else Fix("Insert ':'", (Edit(key_end, key_end, ":"),), "unsafe")
        stop = min(self.at + 1, len(text)) if ends else key_end
        self.error("MF520", at, stop, "missing-colon", f"':' is missing after {text[at:key_end][:40]}", fix)
        if ends or text[self.at] in ",}]":
            self.separator()
            return
        if alone:
            return  # a whole member follows: the name stood alone
        self.member_value(node, at, key_end, -1)

    def member_value(self, node: Branch, at: int, key_end: int, colon: int) -> None:
        """The value of the last member, which begins at ``at``, and what follows it; ``colon`` is -1 where there is none."""
        text = self.text
        key = node.keys[-1]
        if colon >= 0:
            self.at = colon + 1
            colon -= at
            node.shapes[-1] = (key_end - at, colon, -1)
            self.skip()
        if self.at >= len(text):
            self.unclosed()
            return
        if text[self.at] in ",}]":
            self.error(
                "MF520", self.at, self.at + 1, "missing-value", f"the value of {text[at:key_end][:40]} is missing"
            )
            self.separator()
            return
        depth = len(self.stack)
        start = self.at - at
        node.values[-1] = self.value()
        node.shapes[-1] = start if colon == len(key) + 2 == key_end - at else (key_end - at, colon, start)
        if len(self.stack) == depth:
            self.separator()

    def add(self, node: Branch, key: str, at: int, shape: tuple[int, int, int], value: Green | None) -> None:
        """One more member."""
        node.starts.append(at - node.origin)
        node.keys.append(key)
        node.shapes.append(shape)
        node.values.append(value)

    def element_slowly(self, node: Branch) -> None:
        """One element of any spelling, and what follows it."""
        self.skip()
        if self.at >= len(self.text):
            self.expects = True
            self.unclosed()
            return
        char = self.text[self.at]
        if char in "}]":
            self.at += 1
            self.close(char)
            self.separator()
            return
        if char == ",":
            self.error("MF520", self.at, self.at + 1, "missing-value", "a value is missing before ','")
            self.at += 1
            if self.comma(self.at - 1):
                self.separator()
            return
        if char == ":":
            self.error("MF520", self.at, self.at + 1, "stray-colon", "':' is not expected in a list")
            self.at += 1
            return
        depth = len(self.stack)
        node.starts.append(self.at - node.origin)
        node.values.append(_NOTHING)
        node.values[-1] = self.value()
        if len(self.stack) == depth:
            self.separator()

    def value(self) -> Green:
        """One value at ``at``, which is not the end, a comma or a closer; containers are opened and left to the loop."""
        char = self.text[self.at]
        return self.open(char, self.at) if char in "{[" else self.scalar()
