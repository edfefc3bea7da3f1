"""The semantic tokens of one call block: its lossless tokens, with what the call model and the tool's schema say of each."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from tamis.protocols.jsontext.tree import from_pointer
from tamis.protocols.lossless import Token as Tile
from tamis.protocols.model import Block, Call, Param
from tamis.protocols.plugins import editing_of, extras_of
from tamis.protocols.positions import Span
from tamis.protocols.schema.words import is_object
from tamis.server.analysis.embedded import blocks_in
from tamis.server.analysis.kinds import answer
from tamis.server.analysis.shown.schema_parts import choices_of, part, resolved, types_of
from tamis.server.analysis.shown.token_kinds import (
    COMMENT,
    DECORATOR,
    DEPRECATED,
    FUNCTION,
    KEYWORD,
    KNOWN,
    MEMBER,
    NUMBER,
    OPERATOR,
    PARAMETER,
    PROPERTY,
    READONLY,
    STRING,
    TYPE,
    VARIABLE,
    Token,
    token,
)
from tamis.server.analysis.snapshot import Snapshot, ToolView

_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_JSON = re.compile(
    r'(?P<key>"(?:[^"\\\n]|\\.)*"(?=\s{0,64}:))|(?P<text>"(?:[^"\\\n]|\\.)*"?)|(?P<number>-?\d[\d.eE+-]*)|(?P<word>true|false|null)'
)
_JSON_KINDS = {"key": PROPERTY, "text": STRING, "number": NUMBER, "word": KEYWORD}
_CHOICE = re.compile(r"(?i)(error|hint)")
_KEY_COLOURS = {"tool": KEYWORD, "modifier": DECORATOR, "comment": COMMENT}


def tool_modifiers(tool: ToolView | None) -> int:
    """The modifiers of a tool's name: known, not available, without any right to write or to reach a host."""
    if tool is None:
        return 0
    context = tool.manifest.security_context
    closed = not context.file_access.allow_write and not context.network.allow_hosts
    return (
        KNOWN
        | (0 if tool.available else DEPRECATED)
        | (READONLY if closed and not context.required_capabilities else 0)
    )


def tokens_of_block(snapshot: Snapshot, block: Block) -> list[Token]:
    """The tokens of a block in order, disjoint."""
    tiles = extras_of(block.protocol).block_tokens(snapshot.text, block)
    if tiles is None:
        return _tokens_of_calls(snapshot, block)
    walk = _Walk(snapshot, block)
    return [token for tile in tiles for token in walk.tokens(tile)]


class _Walk:
    """One pass over a block's tiles with the parameters beside it."""

    def __init__(self, snapshot: Snapshot, block: Block) -> None:
        self._snapshot = snapshot
        self._text = snapshot.text
        self._elements = extras_of(block.protocol).elements
        self._editing = editing_of(block.protocol)
        self._tools = {call.tool_span: snapshot.tool(call.tool_id) for call in block.calls}
        self._tool_spans = sorted(self._tools)
        self._by_name = {snapshot.text[slice(*span)]: tool for span, tool in self._tools.items()}
        self._schemas: tuple[Param, dict[int, dict[str, Any]]] | None = None
        seen: dict[int, tuple[Param, Call]] = {}
        for call in block.calls:
            for param in call.params:
                seen.setdefault(param.span[0], (param, call))
        self._params = [seen[start] for start in sorted(seen)]
        self._at = 0
        self._last_key = ""
        self._depth = 0
        self._closing = False
        self._half_tool = ""

    def _tag(self, start: int, end: int) -> None:
        """Keeps count of the elements of an ACTION block of which no call could be made."""
        sign = self._text[start:end]
        if sign.startswith("<") and not sign.startswith("<!"):
            self._closing = sign.startswith("</")
        if sign.endswith(">"):
            self._depth += -1 if self._closing else 0 if sign.endswith("/>") else 1

    def tokens(self, tile: Tile) -> Iterator[Token]:
        """The tokens of one tile."""
        kind, start, end = tile.kind, tile.start, tile.end
        if kind == "marker":
            yield token(start, end, KEYWORD)
        elif kind in ("separator", "delimiter", "tag"):
            self._tag(start, end)
            if self._text[start:end].strip():
                yield token(start, end, OPERATOR)
        elif kind == "comment":
            yield token(start, end, COMMENT)
        elif kind == "attribute":
            yield token(start, end, PROPERTY)
        elif kind == "entity":
            yield token(start, end, STRING)
        elif kind in ("key", "tool"):
            yield self._name(start, end)
        elif kind == "value":
            yield from self._value(start, end)

    def _param(self, start: int) -> tuple[Param, Call] | None:
        while self._at < len(self._params) and self._params[self._at][0].span[1] <= start:
            self._at += 1
        if self._at < len(self._params) and self._params[self._at][0].span[0] <= start:
            return self._params[self._at]
        return None

    def _name(self, start: int, end: int) -> Token:
        text = self._text[start:end]
        self._last_key = text
        if (start, end) in self._tools:
            return token(start, end, FUNCTION, tool_modifiers(self._tools[(start, end)]))
        inside = self._param(start)
        if inside is not None:
            param, call = inside
            if start == param.name_span[0] or text == self._text[slice(*param.name_span)]:
                return _parameter(self._snapshot, start, end, param, call)
            if text.lower() in self._editing.keywords:
                return token(start, end, KEYWORD)
            return token(start, end, PROPERTY)
        if self._elements:
            if text.lower() in self._editing.keywords:
                return token(start, end, KEYWORD)
            if text in self._by_name:
                return token(start, end, FUNCTION, tool_modifiers(self._by_name[text]))
            return self._half(start, end, text)
        return token(start, end, self._field(text))

    def _half(self, start: int, end: int, text: str) -> Token:
        """A name in a half-typed block: the outermost one is the tool's."""
        if self._tools:
            return token(start, end, VARIABLE)
        if self._depth - self._closing <= 0:
            self._half_tool = text
            return token(start, end, FUNCTION, tool_modifiers(self._snapshot.tool(text)))
        declared = self._snapshot.properties(self._half_tool)
        inner = self._depth - self._closing > 1
        return token(start, end, PROPERTY if inner else PARAMETER if not declared or text in declared else VARIABLE)

    def _field(self, written: str) -> int:
        """A key that is no parameter: what the protocol keeps for itself, or one that goes nowhere."""
        kind = self._editing.key_kind(written)
        if kind:
            return _KEY_COLOURS[kind]
        return VARIABLE if self._tools else PARAMETER

    def _value(self, start: int, end: int) -> Iterator[Token]:
        text = self._text
        for span in self._tool_spans[bisect_left(self._tool_spans, (start, start)) :][:1]:
            if span[1] <= end and span[0] < span[1]:
                yield token(*span, FUNCTION, tool_modifiers(self._tools[span]))
                return
        inside = self._param(start)
        if inside is None:
            yield from self._unnamed(*_trimmed(text, start, end))
            return
        param, call = inside
        schema = self._schema(call, param, start)
        hint = call.type_hints.get(param.name, "")
        yield from value_tokens(text, *_trimmed(text, start, end), schema, typed=hint.strip().lower() == "json")

    def _schema(self, call: Call, param: Param, start: int) -> dict[str, Any] | None:
        """The schema of the value that begins at ``start``: the parameter's, or that of a part of it; None for an unknown tool."""
        tool = self._tools[call.tool_span]
        if tool is None:
            return None
        if param.value.kind == "text":
            return resolved(self._snapshot.properties(call.tool_id).get(param.name), tool.manifest.parameters or {})
        if self._schemas is None or self._schemas[0] is not param:
            self._schemas = (param, _leaf_schemas(self._snapshot, call, param, tool))
        return self._schemas[1].get(start, {})

    def _unnamed(self, start: int, end: int) -> Iterator[Token]:
        if start >= end:
            return
        kind = self._field(self._last_key) if not self._elements else STRING
        if kind == COMMENT:
            yield token(start, end, COMMENT)
        elif kind == DECORATOR and _NUMBER.fullmatch(self._text, start, end):
            yield token(start, end, NUMBER)
        elif kind == DECORATOR and (named := _CHOICE.search(self._last_key)) is not None:
            yield token(start, end, MEMBER if named[1].lower() == "error" else TYPE)
        else:
            yield token(start, end, STRING)


def _parameter(snapshot: Snapshot, start: int, end: int, param: Param, call: Call) -> Token:
    """The name of a parameter: one that the tool declares, one that it does not, or one that should no longer be given."""
    tool = snapshot.tool(call.tool_id)
    if tool is None:
        return token(start, end, PARAMETER)
    declared = snapshot.properties(call.tool_id)
    schema = declared.get(param.name)
    if schema is None and declared and param.name not in tool.plan.names:
        return token(start, end, VARIABLE)
    gone = is_object(schema) and schema.get("deprecated") is True
    return token(start, end, PARAMETER, DEPRECATED if gone else 0)


def _leaf_schemas(snapshot: Snapshot, call: Call, param: Param, tool: ToolView) -> dict[int, dict[str, Any]]:
    """The schemas of the texts in a parameter's nested elements, by where each begins."""
    root = tool.manifest.parameters or {}
    whole = resolved(snapshot.properties(call.tool_id).get(param.name), root)
    leaf_schemas: dict[int, dict[str, Any]] = {}
    for pointer, value in param.value.walk():
        if value.kind == "text":
            here = whole
            for name in from_pointer(pointer):
                here = part(here, name, root)
            leaf_schemas.update((piece.start, here) for piece in value.pieces)
    return leaf_schemas


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def value_tokens(
    text: str, start: int, end: int, schema: dict[str, Any] | None, *, typed: bool = False
) -> Iterator[Token]:
    """The tokens of a value by what its schema will make of it; ``typed``: it is JSON whatever the schema says."""
    if start >= end:
        return
    types = types_of(schema) if schema else frozenset[str]()
    first = text[start]
    if first in "{[" and (typed or not schema or not types or types & {"object", "array"}):
        yield from json_tokens(text, start, end)
        return
    if typed:
        yield from json_tokens(text, start, end)
        return
    if schema and end - start <= 64:
        value = text[start:end]
        if types & {"integer", "number"} and _NUMBER.fullmatch(value):
            yield token(start, end, NUMBER)
            return
        if ("boolean" in types and value in ("true", "false")) or ("null" in types and value == "null"):
            yield token(start, end, KEYWORD)
            return
        if value in choices_of(schema):
            yield token(start, end, MEMBER)
            return
    yield token(start, end, STRING)


def json_tokens(text: str, start: int, end: int) -> Iterator[Token]:
    """The keys, texts, numbers and words of JSON text, however broken."""
    for match in _JSON.finditer(text, start, end):
        yield token(*match.span(), _JSON_KINDS[match.lastgroup or "text"])


def _tokens_of_calls(snapshot: Snapshot, block: Block) -> list[Token]:
    """The tokens of a block whose protocol has no tiles: names and values as the call model places them, markers."""
    text = snapshot.text
    taken: list[Token] = []
    for call in block.calls:
        taken.append(token(*call.tool_span, FUNCTION, tool_modifiers(snapshot.tool(call.tool_id))))
        for param in call.params:
            taken.append(_parameter(snapshot, *param.name_span, param, call))
            for _, value in param.value.walk():
                if value.kind == "text":
                    taken.append(token(*value.span, STRING))
                elif value.kind == "literal":
                    taken.extend(json_tokens(text, *value.span))
    markers = [span for span in (block.open, block.close) if span is not None]
    taken += [token(*span, KEYWORD) for span in markers if text[span[0] : span[0] + 1] not in ("{", "[")]
    tokens: list[Token] = []
    at = block.span[0]
    for item in sorted(taken):
        if at <= item[0] < item[1] <= block.span[1]:
            tokens.append(item)
            at = item[1]
    return tokens


# Semantic tokens: what the parts of call blocks and of manifests are, for colours that know the tools. In a text every part of a block has a token:
# marker, tool, names, marks, values by the parameter's schema, JSON inside them. A block that is set aside (ruling 44) looks like a comment, so that
# nobody takes it for a call. In a manifest only what an editor's own JSON colours cannot know.


MAX_KEPT = 20_000


class TokenCache:
    """The tokens of blocks by their text, relative to their start, while tools and settings stay the same."""

    def __init__(self) -> None:
        self._state: tuple[object, object] = (None, None)
        self._kept: dict[str, list[Token]] = {}

    def of(self, snapshot: Snapshot, block: Block) -> list[Token]:
        """The tokens of a block, at its place; one that is set aside is a comment as a whole."""
        if block.aside:
            return [(*block.span, COMMENT, 0)] if block.span[0] < block.span[1] else []
        state = (snapshot.registry, snapshot.settings)
        if state[0] is not self._state[0] or state[1] != self._state[1] or len(self._kept) > MAX_KEPT:
            self._state = state
            self._kept.clear()
        start, end = block.span
        text = snapshot.text[start:end]
        kept = self._kept.get(text)
        if kept is None:
            kept = [(token[0] - start, token[1] - start, *token[2:]) for token in tokens_of_block(snapshot, block)]
            self._kept[text] = kept
        return [(item + start, other + start, kind, bits) for item, other, kind, bits in kept]


def semantic_tokens(
    snapshot: Snapshot, span: Span | None = None, *, whole: bool = False, cache: TokenCache | None = None
) -> list[Token]:
    """The tokens of a document, or of what touches ``span``: in order, disjoint, not empty.

    ``whole``: the client has no colours of its own, so JSON's strings, numbers and words are told too.
    """
    find = answer(snapshot, "tokens")
    return find(snapshot, span, whole=whole, cache=cache) if find is not None else []


def tokens_of_text(
    snapshot: Snapshot, span: Span | None, *, whole: bool = False, cache: TokenCache | None = None
) -> list[Token]:
    """The tokens of the blocks of a text."""
    del whole  # of a text only blocks are told
    cache = cache or TokenCache()
    tokens = [token for block in blocks_in(snapshot.document.blocks, span) for token in cache.of(snapshot, block)]
    if span is None:
        return tokens
    return [token for token in tokens if token[0] < span[1] and span[0] < token[1]]
