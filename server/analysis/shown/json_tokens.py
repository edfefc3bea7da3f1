"""The semantic tokens of a manifest or profile: roles that JSON's own colours cannot know.

Only the members that a span touches are walked.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import cast

from tamis.protocols.jsontext.green import Branch, Green, Scalar, parts_of
from tamis.protocols.jsontext.tree import JsonNode, Member, memo_of
from tamis.protocols.manifest.reading import FIELDS
from tamis.protocols.positions import Span
from tamis.protocols.schema.words import LISTS, MAPS, SCHEMAS
from tamis.server.analysis.completion.json_words import META
from tamis.server.analysis.shown.block_tokens import tool_modifiers
from tamis.server.analysis.shown.token_kinds import (
    COMMENT,
    DECLARATION,
    DEPRECATED,
    FUNCTION,
    KEYWORD,
    MEMBER,
    NUMBER,
    PARAMETER,
    PROPERTY,
    STRING,
    TYPE,
    Token,
)
from tamis.server.analysis.snapshot import Snapshot

_ROOT = frozenset({*FIELDS, "$schema"})
_PROFILE = frozenset({"tool_ids_inventory", "toolCallConfig"})
_KEYWORDS = frozenset(META["$defs"]["schema"]["properties"]) | {
    "definitions",
    "$schema",
    "$id",
    "$comment",
    "readOnly",
    "writeOnly",
}
_SCHEMAS = (SCHEMAS | {"items"}) - {"additionalItems", "contentSchema"}
_TEXTS = {"type": TYPE, "format": TYPE, "$ref": TYPE, "required": PARAMETER}
_KNOWN = _KEYWORDS | _SCHEMAS | MAPS
_MAX_DEPTH = 100
_EVERYWHERE = (-1, 1 << 60)
_TOKENS = "semantic tokens"
"""What a schema's tokens, counted from its start, are remembered by."""
_PLAIN = re.compile(r'"(?:[^"\\\n]|\\.)*"?|-?\d[\d.eE+-]*|\btrue\b|\bfalse\b|\bnull\b')


def tokens_of_json(snapshot: Snapshot, span: Span | None, *, whole: bool, cache: object = None) -> list[Token]:
    """The tokens of a manifest or profile in order, disjoint; ``whole`` fills the gaps with what every JSON has."""
    del cache  # the tree knows what did not change
    tree = snapshot.tree
    walk = _Walk(snapshot, span or (0, len(snapshot.text)))
    if tree.root is not None:
        walk.root(tree.root)
    low, high = walk.span
    tokens = [token for token in walk.found if token[0] < token[1] and token[0] < high and low < token[1]]
    tokens.sort()
    if whole:
        tokens = _filled(snapshot.text, tokens, tree.comments, walk.span)
    return tokens


def _filled(text: str, roles: list[Token], comments: list[Span], span: Span) -> list[Token]:
    filled_tokens: list[Token] = []
    taken: list[Token] = sorted([*roles, *((*comment, COMMENT, 0) for comment in comments)])
    taken = [token for token in taken if token[0] < span[1] and span[0] < token[1]]
    at = text.rfind("\n", 0, span[0]) + 1
    for token in [*taken, (span[1], span[1], STRING, 0)]:
        start, end = token[:2]
        for match in _PLAIN.finditer(text, at, max(at, start)):
            first = match[0][0]
            kind = STRING if first == '"' else KEYWORD if first.isalpha() else NUMBER
            if match.end() > span[0]:
                filled_tokens.append((*match.span(), kind, 0))
        if at <= start < end:
            filled_tokens.append(token)
        at = max(at, end)
    return filled_tokens


class _Walk:
    def __init__(self, snapshot: Snapshot, span: Span) -> None:
        self.snapshot = snapshot
        self.span = span
        self.found: list[Token] = []

    def put(self, span: Span, kind: int, modifiers: int = 0) -> None:
        """One token, of a key or of a text, if it lies in what was asked for."""
        if span[0] < self.span[1] and self.span[0] < span[1]:
            self.found.append((*span, kind, modifiers))

    def members(self, node: JsonNode | None) -> Iterator[Member]:
        """The members of an object that touch the span."""
        if node is None or node.kind != "object":
            return
        for member in node.members:
            if member.key_start >= self.span[1]:
                return
            if member.span[1] > self.span[0]:
                yield member

    def items(self, node: JsonNode | None) -> Iterator[JsonNode]:
        """The items of a list that touch the span."""
        for item in node.items if node is not None and node.kind == "array" else ():
            if item.start >= self.span[1]:
                return
            if item.end > self.span[0]:
                yield item

    def texts(self, node: JsonNode | None, kind: int, modifiers: int = 0) -> None:
        """A text, or every text of a list."""
        for item in [node] if node is not None and node.kind == "string" else self.items(node):
            if item.kind == "string":
                self.put(item.span, kind, modifiers)

    def tool(self, node: JsonNode | None) -> None:
        """A text that names a tool."""
        if node is not None and node.kind == "string" and isinstance(node.value, str):
            self.put(node.span, FUNCTION, tool_modifiers(self.snapshot.tool(node.value)))

    def root(self, node: JsonNode) -> None:
        """The members of a manifest or of a profile."""
        known = _ROOT if self.snapshot.kind == "manifest" else _PROFILE
        for member in self.members(node):
            if member.key not in known:
                continue
            self.put(member.key_span, PROPERTY)
            self.field(member)

    def field(self, member: Member) -> None:
        """What one member of the root holds."""
        key, value = member.key, member.value
        if key in ("toolId", "aliases"):
            self.texts(value, FUNCTION, DECLARATION)
        elif key in ("parameters", "output"):
            self.schema(value)
        elif key == "handler":
            self.handler(value)
        elif key == "examples":
            for item in self.items(value):
                for part in self.members(item):
                    self.put(part.key_span, PROPERTY)
                    if part.key == "input":
                        for argument in self.members(part.value):
                            self.put(argument.key_span, PARAMETER)
        elif key == "dependencies":
            for part in self.members(value):
                self.put(part.key_span, FUNCTION, tool_modifiers(self.snapshot.tool(part.key)))
        elif key == "tool_ids_inventory":
            for item in self.items(value):
                self.tool(item)
        elif key in ("securityContext", "execution", "protocolConfig", "toolCallConfig"):
            self.plain(value)

    def plain(self, node: JsonNode | None, depth: int = 0) -> None:
        """An object whose keys are all fields."""
        for member in self.members(node):
            self.put(member.key_span, PROPERTY)
            if member.key == "vcpCommand":
                self.texts(member.value, FUNCTION, DECLARATION)
            elif member.key == "toolToggles":
                for part in self.members(member.value):
                    self.put(part.key_span, FUNCTION, tool_modifiers(self.snapshot.tool(part.key)))
            elif member.key in ("mode", "protocol", "requiredCapabilities"):
                self.texts(member.value, MEMBER)
            elif depth < 4:
                self.plain(member.value, depth + 1)

    def handler(self, node: JsonNode | None) -> None:
        """How the tool is run."""
        for member in self.members(node):
            self.put(member.key_span, PROPERTY)
            if member.key in ("type", "language"):
                self.texts(member.value, MEMBER)
            elif member.key in ("entryPoint", "methodName"):
                self.texts(member.value, FUNCTION)
            elif member.key == "serviceName":
                self.texts(member.value, TYPE)

    def schema(self, node: JsonNode | None) -> None:
        """An embedded schema: keywords, names, types."""
        if node is not None and isinstance(node.green, Branch):
            _Schema(self.span).put(node.green, node.start, 0, self.found)


class _Schema:
    """The tokens of a schema, from its branches alone; those of an unchanged schema are remembered with it."""

    def __init__(self, span: Span) -> None:
        self._low, self._high = span

    def put(self, branch: Branch, at: int, depth: int, into: list[Token]) -> None:
        """The tokens of the schema that stands at ``at``, as far as they may touch the span; they come in order."""
        end = at + branch.length
        if branch.kind != "object" or depth > _MAX_DEPTH or end <= self._low or at >= self._high:
            return
        if at < self._low or end > self._high:
            self._walk(branch, at, depth, into)
            return
        memo = memo_of(branch)
        kept = cast("list[Token] | None", memo.get(_TOKENS))
        if kept is None:
            fresh: list[Token] = []
            _Schema(_EVERYWHERE)._walk(branch, 0, depth, fresh)
            memo[_TOKENS] = kept = fresh
        into += [(start + at, end + at, kind, bits) for start, end, kind, bits in kept]

    def _walk(self, branch: Branch, at: int, depth: int, into: list[Token]) -> None:
        for index, key in enumerate(branch.keys):
            if key not in _KNOWN:
                continue
            start = at + branch.starts[index]
            width = parts_of(branch.shapes[index], key)[0]
            into.append((start, start + width, KEYWORD, 0))
            value = branch.values[index]
            if value is None:
                continue
            where = at + branch.value_start(index)
            if key in _TEXTS:
                self._texts(value, where, _TEXTS[key], into)
            elif isinstance(value, Branch):
                if key in MAPS:
                    self._map(value, where, PARAMETER if key == "properties" else TYPE, depth, into)
                elif key in LISTS:
                    for i, item in enumerate(value.values):
                        if isinstance(item, Branch):
                            self.put(item, where + value.value_start(i), depth + 1, into)
                elif key in _SCHEMAS:
                    self.put(value, where, depth + 1, into)

    def _map(self, branch: Branch, at: int, kind: int, depth: int, into: list[Token]) -> None:
        """Schemas by name; of many only those that the span touches are looked at."""
        starts = branch.starts
        first = max(0, bisect_right(starts, self._low - at) - 1)
        for index in range(first, len(branch.keys)):
            start = at + starts[index]
            if start >= self._high:
                return
            value = branch.values[index]
            width = parts_of(branch.shapes[index], branch.keys[index])[0]
            into.append((start, start + width, kind, DECLARATION | (DEPRECATED if _gone(value) else 0)))
            if isinstance(value, Branch):
                self.put(value, at + branch.value_start(index), depth + 1, into)

    def _texts(self, value: Green, at: int, kind: int, into: list[Token]) -> None:
        """A text, or every text of a list."""
        if isinstance(value, Scalar):
            if value.kind == "string":
                into.append((at, at + value.length, kind, 0))
        elif value.kind == "array":
            for index, item in enumerate(value.values):
                if isinstance(item, Scalar) and item.kind == "string":
                    start = at + value.value_start(index)
                    into.append((start, start + item.length, kind, 0))


def _gone(schema: Green | None) -> bool:
    if not isinstance(schema, Branch) or "deprecated" not in schema.keys:
        return False
    value = schema.values[schema.keys.index("deprecated")]
    return value is not None and not isinstance(value, Branch) and value.value is True
