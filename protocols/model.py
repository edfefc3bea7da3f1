"""The call model: what every protocol reads a text into.

Blocks hold calls, calls hold parameters, parameters hold values; each part knows its place in the text. All offsets are
code points, half open, into the whole text that was parsed. Values are kept as pieces of the source and decoded on
demand, so that a place inside a decoded value (an error at character 17 of a JSON text inside CDATA) leads back to the
exact source character. The wire form is in ``contract/``; this module never knows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from tamis.protocols.positions import Span

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Severity = Literal["error", "warning", "information", "hint"]
Applicability = Literal["safe", "unsafe"]
"""``safe``: applying it keeps the meaning that was read. ``unsafe``: a person decides."""


class Edit(msgspec.Struct, frozen=True):
    """Replace ``text[start:end]`` by ``new_text``."""

    start: int
    end: int
    new_text: str


class Fix(msgspec.Struct, frozen=True):
    """A titled set of edits, sorted and disjoint, that removes the cause of a diagnostic."""

    title: str
    edits: tuple[Edit, ...]
    applicability: Applicability = "safe"


class Diag(msgspec.Struct, frozen=True):
    """One finding: a catalogue code at a place.

    ``args`` fill the catalogue's message; ``severity`` overrides the catalogue's where the catalogue gives a choice
    (a missing close marker is a warning, but an error in a text that was cut off). ``repair`` says that the reader
    assumed something which no rule allows as written (ruling 1): it then stands in the repairs of the calls it touches.
    """

    code: str
    span: Span
    args: dict[str, str | int] = {}
    severity: Severity | None = None
    fix: Fix | None = None
    data: dict[str, Json] = {}
    repair: bool = False


class Piece(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A stretch of source that decodes to ``text``, or to itself when ``text`` is None."""

    start: int
    end: int
    text: str | None = None


class Value(msgspec.Struct, gc=False):
    """A parameter's value, or a part of one.

    ``span`` is the source of the value without tags, delimiters or CDATA marks (the ``argRanges`` of the interface).
    ``kind`` says which of the other fields holds it: ``pieces`` for a text, ``items`` for a list, ``entries`` for an object,
    ``literal`` for a number, a boolean or null of a protocol whose values are typed (JSON).
    ``repeated`` marks a list that only repetition made (one ``<file>`` beside another), ``item_list`` one that an element
    with only ``<item>`` children made: a schema may read both otherwise (ruling 15).
    """

    kind: Literal["text", "list", "object", "literal"]
    span: Span
    pieces: tuple[Piece, ...] = ()
    items: list[Value] = []
    entries: dict[str, Value] = {}
    repeated: bool = False
    item_list: bool = False
    cdata: bool = False
    literal: bool | int | float | None = None

    def text(self, source: str) -> str:
        """The decoded text; of anything else the source slice, as it was written."""
        if self.kind != "text":
            return source[self.span[0] : self.span[1]]
        return "".join(source[p.start : p.end] if p.text is None else p.text for p in self.pieces)

    def source_offset(self, decoded: int) -> int:
        """The source offset of a character of the decoded text; past its end, the end of the last piece."""
        at = 0
        for piece in self.pieces:
            length = piece.end - piece.start if piece.text is None else len(piece.text)
            if decoded < at + length:
                return piece.start + (decoded - at) if piece.text is None else piece.start
            at += length
        return self.pieces[-1].end if self.pieces else self.span[1]

    def source_span(self, start: int, end: int) -> Span:
        """The source span of ``decoded[start:end]``; an empty range stays empty."""
        first = self.source_offset(start)
        if end <= start:
            return first, first
        at = 0
        for piece in self.pieces:
            length = piece.end - piece.start if piece.text is None else len(piece.text)
            if end <= at + length:
                return first, piece.start + (end - at) if piece.text is None else piece.end
            at += length
        return first, self.source_offset(end)

    def python(self, source: str) -> Json:
        """The uncoerced value: strings, lists and objects of them (ruling 2), and the literals of typed protocols."""
        if self.kind == "text":
            return self.text(source)
        if self.kind == "literal":
            return self.literal
        if self.kind == "list":
            return [item.python(source) for item in self.items]
        return {name: value.python(source) for name, value in self.entries.items()}

    def walk(self, pointer: str = "") -> Iterator[tuple[str, Value]]:
        """This value and every part of it with its JSON Pointer, containers before their parts."""
        stack: list[tuple[str, Value]] = [(pointer, self)]
        while stack:
            here, value = stack.pop()
            yield here, value
            if value.kind == "list":
                stack.extend((f"{here}/{i}", item) for i, item in reversed(list(enumerate(value.items))))
            elif value.kind == "object":
                stack.extend(
                    (f"{here}/{escape_pointer(name)}", part) for name, part in reversed(list(value.entries.items()))
                )


Origin = Literal["child", "input", "attribute", "pair", "json", "common"]


class Param(msgspec.Struct, gc=False):
    """One argument of a call: the name as it is used, as it was written, and its value."""

    name: str
    value: Value
    span: Span
    """The whole parameter with its tags or delimiters."""
    name_span: Span
    raw_name: str = ""
    origin: Origin = "child"


class Comment(msgspec.Struct, frozen=True):
    """A comment inside a block, kept for editors (ruling 25)."""

    span: Span
    text: str


class Call(msgspec.Struct):
    """One call as it was read. ``args`` are uncoerced; coercion needs the tool's schema and happens later."""

    protocol: str
    tool_id: str
    tool_span: Span
    span: Span
    params: list[Param] = []
    step: int | None = None
    on_error: Literal["stop", "continue"] | None = None
    retry: int | None = None
    request_id: str | None = None
    uris: dict[str, str] = {}
    type_hints: dict[str, str] = {}
    meta: dict[str, str] = {}
    complete: bool = True
    executable: bool = True
    repairs: list[Diag] = []
    shape: Literal["tag", "inputs", ""] = ""
    """For ACTION: which of its two shapes the call has; its observations differ."""

    def args(self, source: str) -> dict[str, Json]:
        """The uncoerced arguments by name."""
        return {param.name: param.value.python(source) for param in self.params}

    def param(self, name: str) -> Param | None:
        """The parameter of that name, or None."""
        return next((param for param in self.params if param.name == name), None)


BlockState = Literal["complete", "truncated", "rejected", "mention"]


class Block(msgspec.Struct):
    """One block of one protocol.

    ``span`` runs from the opening marker to the end of what the block takes (its closing marker, or where it was found to
    end). ``state``: ``complete`` (also after repairs), ``truncated`` (the text was cut off inside it), ``rejected`` (an error
    made its calls non-executable, or it was dropped), ``mention`` (no block at all: a marker in prose; ``calls`` is empty
    and the reader treats it as text).
    """

    protocol: str
    span: Span
    open: Span
    close: Span | None = None
    state: BlockState = "complete"
    calls: list[Call] = []
    diagnostics: list[Diag] = []
    comments: list[Comment] = []
    aside: bool = False
    """Only shown: it stands in a context in which nothing is meant to run (rulings 5, 7, 44 to 49), or is written as an example (ruling 28).
    It counts as text."""
    context: str = ""
    """That context: a key of ``CONTEXTS``; empty where the block is not set aside."""


class ToolHint(msgspec.Struct, frozen=True):
    """What a reader may know of a tool: the names and schema that guide reading (never coercion)."""

    tool_id: str
    parameters: dict[str, Json] = {}
    aliases: tuple[str, ...] = ()

    @property
    def properties(self) -> dict[str, Json]:
        """The declared parameters' schemas by name."""
        properties = self.parameters.get("properties")
        return properties if isinstance(properties, dict) else {}


REASONING_TAGS = (
    "think",
    "thinking",
    "reasoning",
    "thought",
    "scratchpad",
    "reflection",
    "antThinking",
    "seed:think",
    "[THINK]",
    "◁think▷",
)
"""The marks of reasoning (ruling 45): the names of tags, and openers as they are written, whose closers have a ``/`` behind the first sign."""


class Example(msgspec.Struct, frozen=True):
    """A worked call of a manifest; ``expected_output`` is UNSET where none is given (null is a value)."""

    input: dict[str, Json]
    description: str = ""
    expected_output: Json | msgspec.UnsetType = msgspec.UNSET


MAX_BLOCKS = 100_000
"""Blocks of one text that are read: what is held of a text grows with them, not with its characters."""


class ReadOptions(msgspec.Struct, frozen=True):
    """How a text is read; the defaults are the rulings'."""

    complete: bool = True
    """False: the text is known to be cut off, and nothing that only its end closes is taken as closed (ruling 1)."""
    reasoning_calls: Literal["ignore", "run"] = "ignore"
    reasoning_tags: tuple[str, ...] = REASONING_TAGS
    """The marks of reasoning, besides the analysis channel of harmony (ruling 45)."""
    assume_open_reasoning: bool = False
    """True: the text begins inside reasoning, whose opener the prompt held."""
    fenced_calls: Literal["auto", "run", "ignore"] = "auto"
    allow_multiple_blocks: bool = False
    tools: dict[str, ToolHint] = {}
    """Known tools by id (and by alias), to guide the reading."""
    strict: bool = False
    """True: what was repaired is an error, and an ACTION block must be well-formed XML."""
    also: tuple[str, ...] = ()
    """Ids of registered protocols that ``auto`` reads besides the built-in ones."""
    max_blocks: int = MAX_BLOCKS
    """Those behind so many are not read, and told by TC028."""


class Document(msgspec.Struct):
    """A text as it was read: blocks in order, the text around them, and all findings sorted by place."""

    text: str
    blocks: list[Block]
    calls: list[Call]
    diagnostics: list[Diag]
    comments: list[Comment]
    response_span: Span
    trailing_span: Span
    reasoning: list[Span] = []
    """Where the text is reasoning, in order (ruling 45)."""


MAX_BLOCK_CHARS = 16 * 1024 * 1024
MAX_NAME_CHARS = 256
MCP_META = "dev.tamis/"
"""Prefix of our keys in MCP's ``_meta``: a domain backwards, as MCP wants it."""
MAX_PARAMS = 10_000
MAX_STEPS = 1_000
MAX_DEPTH = 64
MAX_PROBLEMS = 200


def escape_pointer(name: str) -> str:
    """A name as a JSON Pointer token (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def unescape_pointer(token: str) -> str:
    """One token of a JSON Pointer as the name that it stands for."""
    return token.replace("~1", "/").replace("~0", "~")
