"""What a protocol is: the interface that each one plugs in, and the source text that they share.

A protocol reads one block at a time. The reader (``reader.py``) walks the text once, knows reasoning, fences and inline
code, and hands each opening marker to its protocol; the protocol says where the block ends and what it holds. Must not
know the registry, files or LSP.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal
from typing import Protocol as TypingProtocol

import msgspec

from tamis.protocols.model import Block, Call, Json, ReadOptions, ToolHint
from tamis.protocols.positions import Span

if TYPE_CHECKING:
    from tamis.protocols.contract import ExecutionResult
    from tamis.protocols.convert.blocks import BlockField
    from tamis.protocols.editing import Editing
    from tamis.protocols.grammar.json_rules import SchemaRules
    from tamis.protocols.lossless import Token
    from tamis.protocols.streaming.partial import Progress
    from tamis.protocols.streaming.settled import Verdict

PROTOCOL_API = 1
"""The version of this interface. A plug-in says which one it is written for in an attribute ``api``; another one is refused."""


class Source:
    """A text with token positions that are found once and shared.

    Looking for a closing marker from every opening one is quadratic in the text; a bisection in a sorted array is not.
    """

    __slots__ = ("_found", "_tokens", "low", "memo", "text")

    def __init__(self, text: str, low: int = 0) -> None:
        self.text = text
        self.low = low
        """Where the part begins that is read: nobody asks for tokens before it. A stream moves it on, so that what it has passed
        is not looked through with each piece again."""
        self._tokens: dict[int, tuple[re.Pattern[str], tuple[list[int], list[int]]]] = {}
        self._found: dict[str, tuple[int, int]] = {}
        self.memo: dict[str, object] = {}
        """Whatever else a protocol finds out about the whole text once, by a key of its own."""

    def tokens(self, pattern: re.Pattern[str]) -> tuple[list[int], list[int]]:
        """Starts and ends of every match of ``pattern`` from ``low`` on, in order; built on first demand, linear in the text.

        They are kept for that very object, not for an equal one.
        """
        # By identity, with the object held: hashing a pattern each time would cost more than the lookup.
        known = self._tokens.get(id(pattern))
        if known is not None:
            return known[1]
        starts: list[int] = []
        ends: list[int] = []
        # Most texts are read from their beginning, and not every pattern here is one of ``re``'s own.
        for match in pattern.finditer(self.text, self.low) if self.low else pattern.finditer(self.text):
            starts.append(match.start())
            ends.append(match.end())
        self._tokens[id(pattern)] = (pattern, (starts, ends))
        return starts, ends

    def everywhere(self) -> Source:
        """The text from its beginning on, for what looks back."""
        if not self.low:
            return self
        whole = self.memo.get("everywhere")
        if not isinstance(whole, Source):
            whole = self.memo["everywhere"] = Source(self.text)
        return whole

    def find(self, needle: str, at: int) -> int:
        """``text.find(needle, at)`` that remembers its last answer: asked again from within the gap, it scans nothing."""
        asked, place = self._found.get(needle, (1, 0))
        if asked <= at and (at <= place or place < 0):
            return place
        text = self.text
        # One character is looked for many times as fast as several.
        place = text.find(needle[0], at)
        if place >= 0 and len(needle) > 1:
            place = text.find(needle, place)
        self._found[needle] = (at, place)
        return place

    def next_token(self, pattern: re.Pattern[str], at: int, limit: int) -> Span | None:
        """The first match that starts at or after ``at`` and ends at or before ``limit``; O(log matches)."""
        starts, ends = self.tokens(pattern)
        i = bisect_left(starts, at)
        if i < len(starts) and ends[i] <= limit:
            return starts[i], ends[i]
        return None


class Markers(msgspec.Struct, frozen=True):
    """How a protocol's markers look, and what their surroundings mean for it."""

    open: str
    """The canonical opening marker."""
    close: str
    """The canonical closing marker."""
    stray: str
    """Pattern of closing markers that are worth a word where nothing is open (TC003)."""
    escaped: str = ""
    """Pattern of the HTML-escaped opening marker, beginning with ``&lt;``; empty where there is none."""
    bare_sign: str = ""
    """A text without which ``bare`` cannot match; cheap to look for."""
    bare: re.Pattern[str] | None = None
    """A call without its envelope (F30), which is a hint only."""
    fence: Literal["wrapper", "example"] = "wrapper"
    """What a Markdown fence around nothing but the block means (ruling 7)."""
    one_block: bool = False
    """Only the first block of a text is taken, unless the options allow more (ruling 14)."""
    final_close: bool = False
    """What a block without findings says is certain as soon as its closing marker ``close`` has come, whatever follows: a
    reader of text that is still coming gives its calls there, and otherwise only at the end of the text."""
    values: Literal["markup", "text", "typed"] = "markup"
    """How its values are written. ``markup``: one element may stand for a list; ``text``: plain texts; ``typed``: JSON, in which
    a text is a text and ``5`` a number, so that nothing is coerced."""


class PlainCall(msgspec.Struct, frozen=True):
    """A call to be written: what it says, without any place in a text.

    ``args`` are JSON values, typed or as strings. ``step`` is TAM's number; ``uris`` and ``type_hints`` are by parameter.
    """

    tool_id: str
    args: dict[str, Json] = {}
    step: int | None = None
    on_error: Literal["stop", "continue"] | None = None
    retry: int | None = None
    request_id: str | None = None
    uris: dict[str, str] = {}
    type_hints: dict[str, str] = {}
    meta: dict[str, str] = {}
    number_id: int | None = None
    """The call's id where it was a whole number, as JSON-RPC's are; ``meta["id"]`` is its text."""


class Refusal(msgspec.Struct, frozen=True):
    """Something of a call that a protocol cannot carry: ``TC050`` or ``TC051`` with the message's arguments.

    ``path`` is a JSON Pointer into the list of calls (``/0/args/name``).
    """

    code: Literal["TC050", "TC051"]
    path: str
    args: dict[str, str | int]


class Written(msgspec.Struct, frozen=True):
    """Calls as text. A call with a refusal that keeps it from being written exactly is left out of ``text``."""

    text: str
    refusals: tuple[Refusal, ...] = ()


Shape = Literal["tag", "inputs"]


class WriteOptions(msgspec.Struct, frozen=True):
    """How calls are written. ``tools`` (by id) let a schema carry what the text alone cannot."""

    shape: Shape = "tag"
    """Which of the two ACTION shapes; other protocols have one."""
    tools: dict[str, ToolHint] = {}
    elements: bool = False
    """ACTION by tag: lists and objects as ``<item>`` and tags, as a model is told to write them, where the schema gives their types back."""


class Example(msgspec.Struct, frozen=True):
    """A manifest's example of a call."""

    description: str
    input: dict[str, Json]


class PromptTool(msgspec.Struct, frozen=True):
    """A tool as a prompt shows it; ``name`` is what a call has to write."""

    name: str
    description: str
    parameters: dict[str, Json] = {}
    examples: tuple[Example, ...] = ()
    kind: Literal["tool", "workflow", "service"] = "tool"
    display_name: str = ""
    tool_id: str = ""
    """The tool's id, as observations name it; empty when that is ``name``."""


Style = Literal["full", "compact"]
ELEMENT_STYLE = "action-inputs"
"""The style of observations that stand in an element of their own."""


class CallProtocol(TypingProtocol):
    """One way of writing calls in text (V01).

    What reads is loaded with the protocol; what writes is imported when it is first asked for.
    """

    @property
    def id(self) -> str:
        """The protocol's name in results: ``action``, ``tam``, ``vcp`` …; lower-case letters and digits."""
        ...

    @property
    def markers(self) -> Markers:
        """How its markers look."""
        ...

    @property
    def opener(self) -> re.Pattern[str]:
        """Matches candidate opening markers, in every spelling that is read; linear, no captures needed.

        The reader joins patterns into one scan, so flags must be written inline (``(?i:…)``).
        """
        ...

    def read_block(self, source: Source, opener: Span, limit: int, options: ReadOptions) -> Block:
        """Reads the block whose opening marker stands at ``opener``; never raises.

        The block must not reach past ``limit``. ``limit == len(source.text)`` with ``options.complete`` false means that
        the text is cut off there. A marker with no block behind it gives a block of state ``mention`` that spans the
        marker only.
        """
        ...

    def parse_tool_requests(self, text: str, options: ReadOptions | None = None) -> list[Call]:
        """The calls of a text in this protocol alone, in order, also those that may not run (``executable`` says so)."""
        ...

    def format_tool_results(self, results: Sequence[ExecutionResult]) -> str:
        """What the model reads after its calls ran: the observations of the results, in order."""
        ...

    def generate_tool_definitions(self, tools: Sequence[PromptTool], style: Style = "full") -> str:
        """The definitions of tools as a prompt shows them."""
        ...

    def write_calls(self, calls: Sequence[PlainCall], options: WriteOptions) -> Written:
        """The calls in the protocol's canonical spelling; what it cannot carry exactly is refused, never changed."""
        ...


class Begun(msgspec.Struct, frozen=True):
    """Patterns of every beginning of a marker that ends where the text ends; empty where the protocol says nothing of it."""

    opener: str = ""
    other: str = ""
    """Of markers that open no request, and that a reader of a stream has to take note of."""


class Extras:
    """What a protocol may bring besides ``CallProtocol``, so that nobody who serves them all asks which one it is.

    The protocols of this package derive from it; what one does not bring, and all of a plug-in's, is as here. A plug-in's
    interface stays ``CallProtocol`` alone.
    """

    title: str = ""
    """Its name in sentences."""
    begins: re.Pattern[str] | None = None
    """How a block goes on behind its opening marker that can be complete."""
    requests: re.Pattern[str] | None = None
    """The opening markers of requests, where ``opener`` finds those of other blocks too, which are text; None where it finds none."""
    ends: re.Pattern[str] | None = None
    """What stands in a text that still comes where a block may have ended; elsewhere nothing is worth a second look."""
    meta: frozenset[str] = frozenset()
    """The fields beside the arguments that a call has a place for."""
    modifiers: bool = False
    """Whether a call can say its step, what follows a failure, a request id, types and addresses of arguments."""
    loses_types: bool = False
    """Whether a value that is no text comes back as one where no schema of the tool is known (ruling 2)."""
    elements: bool = False
    """Whether a call is elements: a tag can be the name of a tool, and what a tag holds an argument."""
    shapes: Mapping[Shape, str] = {"tag": ""}
    """The shapes in which a call is written, with what tells each from the others."""
    by_command: bool = False
    """Whether a call may say its tool as a service and a method, or by the tool's ``vcpCommand`` (ruling 30, V18)."""
    stops: bool = False
    """Whether a failure ends the block where neither the call nor the host says otherwise."""
    styles: Mapping[str, str] = {}
    """By shape: whose sentences its calls get, where those are not the protocol's own."""
    observed: Literal["line", "block", "own"] = "own"
    """How a model is told what became of a call: in a sentence of Tamis, in the block that VCP's hosts write, or as the protocol says."""
    whole_text: bool = False
    """Whether a call is the whole answer: nothing can stand before it."""
    tool_key: str = "toolName"
    """The name under which a call as JSON holds its tool."""
    malformed: str = ""
    """How an observation begins to tell of a block that could not be read."""

    def editing(self) -> Editing:
        """How an editor serves a block that is written by hand (``editing.py``)."""
        from tamis.protocols.editing import Editing

        return Editing()

    def begun(self) -> Begun:
        """What at the end of a text that still comes may be the beginning of a marker (``streaming/settled.py``)."""
        return Begun()

    def settled(self, source: Source, opener: Span, block: Block, limit: int) -> Verdict | None:
        """What is certain of a block of a text that still comes (``streaming/settled.py``); None: what its markers say."""
        del source, opener, block, limit
        return None

    def progress(self, tools: dict[str, ToolHint]) -> Progress | None:
        """A new follower of a block that is being written (``streaming/partial.py``); None: nothing of it is shown."""
        del tools
        return None

    def block_tokens(self, text: str, block: Block) -> list[Token] | None:
        """A block of ``text`` as tokens without gaps (``lossless.py``); None where there is no such view."""
        del text, block
        return None

    def block_fields(self, text: str, block: Block) -> list[BlockField]:
        """What a block of ``text`` holds besides its calls (``convert/blocks.py``)."""
        del text, block
        return []

    def instructions(self, shape: Shape) -> tuple[str, ...] | None:
        """How a model is told to write a call, as list items (``prompt/assemble.py``); None: what its markers say."""
        del shape
        return None

    def definitions(self, tools: Sequence[PromptTool], style: Style, shape: Shape) -> str | None:
        """The definitions of tools for calls in a shape; None: those of ``generate_tool_definitions``."""
        del tools, style, shape
        return None

    def grammar_call(self, tool: PromptTool, schemas: SchemaRules, shape: Shape) -> str:
        """The body of a GBNF rule for a call (``grammar/gbnf.py``); empty when it cannot carry the tool."""
        del tool, schemas, shape
        return ""

    def grammar_answer(self, shape: Shape) -> str:
        """The calls of an answer, of the rule ``call``, as GBNF; empty where there is no grammar."""
        del shape
        return ""
