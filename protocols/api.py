"""The stable functions of this room for other programs: a text in, plain data out.

Nothing of the server is loaded, nothing is kept between two calls, and what comes back is dictionaries, lists, pairs, strings, numbers and booleans,
which pickle and are JSON. So it runs in a worker of anything: a pool, Ray, Spark. Must not know where a text came from.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, cast

import msgspec

from tamis.protocols import contract
from tamis.protocols.model import REASONING_TAGS, Call, Diag, Document, ReadOptions, ToolHint
from tamis.protocols.plugins import find_protocol, know_shipped, known_protocols
from tamis.protocols.positions import LineCounter, Span
from tamis.protocols.reader import read_text
from tamis.protocols.streaming.partial import Partial
from tamis.protocols.streaming.reader import Fed, ReadCall, StreamReader
from tamis.protocols.streaming.walk import BEHIND, Found
from tamis.protocols.wire import parse_result, wire_call


class _Options(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The options of ``tool/parse``, by their names there."""

    reasoning_calls: Literal["ignore", "run"] = "ignore"
    reasoning_tags: tuple[str, ...] = REASONING_TAGS
    assume_open_reasoning: bool = False
    fenced_calls: Literal["auto", "run", "ignore"] = "auto"
    allow_multiple_blocks: bool = False
    strict: bool = False
    also: tuple[str, ...] = ()


class Reader(msgspec.Struct, frozen=True):
    """A way of reading, set up once for many texts; called with a text it gives what ``read`` gives. It pickles.

    >>> Reader(protocol="tam")("no call")["calls"]
    []
    """

    protocol: str = "auto"
    options: ReadOptions = ReadOptions()

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a protocol that is not known here."""
        for name in (self.protocol, *self.options.also):
            if name != "auto":
                _know(name)

    def __call__(self, text: str) -> dict[str, Any]:
        """The ``ParseResult`` of a text as plain data."""
        return cast("dict[str, Any]", msgspec.to_builtins(parse_result(self.document(text), None)))

    def json(self, text: str) -> bytes:
        """The same as one JSON document, without a line end; a lone surrogate becomes U+FFFD."""
        result = parse_result(self.document(text), None)
        try:
            return msgspec.json.encode(result)
        except UnicodeEncodeError:
            clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            return msgspec.json.encode(parse_result(self.document(clean), None))

    def document(self, text: str) -> Document:
        """The text as it was read, in the library's own form, which is not stable."""
        return read_text(text, self.protocol, self.options)


_AS_IT_IS = Reader()


def make_reader(
    protocol: str = "auto",
    *,
    complete: bool = True,
    tools: Iterable[Mapping[str, Any]] = (),
    options: Mapping[str, Any] | None = None,
) -> Reader:
    """The ``Reader`` of these; the arguments are those of ``read``, and it raises what ``read`` raises."""
    hints = {hint.tool_id: hint for hint in map(hint_of, tools)}
    try:
        chosen = msgspec.convert(dict(options or {}), _Options)
    except msgspec.ValidationError as error:
        raise ValueError(f"wrong options: {error}") from None
    return Reader(protocol, ReadOptions(complete=complete, tools=hints, **msgspec.structs.asdict(chosen)))


def read(
    text: str,
    protocol: str = "auto",
    *,
    complete: bool = True,
    tools: Iterable[Mapping[str, Any]] = (),
    options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The calls of a text, and all that was found in it: the ``ParseResult`` of ``tool/parse`` as plain data.

    ``protocol``: ``auto`` (ACTION, TAM, VCP, and call JSON where it is the whole text), ``action``, ``tam``, ``vcp``, ``json``, ``hermes``, or one
    that was registered. ``complete`` false says that the text was cut off: nothing that only its end closes is executable. ``tools``, each
    ``{"toolId": …, "parameters": JSON Schema}``, guide the reading as they do in ``tool/parse``. ``options`` are those of ``tool/parse``:
    ``reasoningCalls``, ``reasoningTags``, ``assumeOpenReasoning``, ``fencedCalls``, ``allowMultipleBlocks``, ``strict``; and ``also``, ids of
    further protocols that ``auto`` reads.

    The result has ``responseText``, ``trailingText``, ``blocks``, ``calls``, ``diagnostics``, ``comments`` and ``reasoning``. Ranges count code
    points, and each has ``offset``, a pair of start and end in code points of the whole text. ``calls`` holds the calls that may not run too:
    ``executable`` says so. ``args`` are what was written, not coerced.

    Any text can be read: no text raises, and the time is linear in its length. The result depends on the arguments alone. Raises
    ``TypeError`` for a text that is no ``str``, ``ValueError`` for a protocol or an option that is not known. For many texts with ``tools`` or
    ``options`` use ``make_reader`` once.

    >>> result = read("<ACTION><time:now><zone>UTC</zone></time:now></ACTION>")
    >>> [(call["toolId"], call["args"], call["executable"]) for call in result["calls"]]
    [('time:now', {'zone': 'UTC'}, True)]
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"a text is a str, not {type(text).__name__}")
    if protocol == "auto" and complete and not tools and not options:
        return _AS_IT_IS(text)
    return make_reader(protocol, complete=complete, tools=tools, options=options)(text)


def check(
    text: str,
    name: str = "",
    *,
    protocol: str = "auto",
    complete: bool = True,
    tools: Iterable[Mapping[str, Any]] = (),
    options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What is wrong with a text, as plain data: of calls in the text of a model, or of a manifest where ``name`` ends in ``.tool.json``.

    The other arguments are those of ``read``; they are about calls. With ``tools`` the calls are held against them: a tool that is none of
    them, and arguments that its schema refuses, are findings at their place. What needs files, settings or other manifests (lints, scripts that are
    not there, two manifests of one id) is told by the command ``tamis check`` alone.

    The result has ``diagnostics`` in the order of the text, ``errors`` and ``warnings``, which count them, and ``calls``: of every call that was
    meant to run ``toolId``, ``valid`` and ``args``, coerced by the tool's schema where the call is valid, else as they were written.
    A call is ``valid`` when it may run: whole, with one reading, and nothing wrong with its arguments. Ranges are those of ``read``. Raises what ``read`` raises.

    >>> tool = {"toolId": "t:add", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    >>> check("<ACTION><t:add><n>7</n></t:add></ACTION>", tools=[tool])["calls"]
    [{'toolId': 't:add', 'valid': True, 'args': {'n': 7}}]
    >>> [one["message"] for one in check("<ACTION><t:ad><n>7</n></t:ad></ACTION>", tools=[tool])["diagnostics"]]
    ["Unknown tool ID 't:ad', did you mean 't:add'?"]
    """
    from tamis.protocols.catalogue import severity
    from tamis.protocols.positions import LineIndex
    from tamis.protocols.wire import diagnostic

    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"a text is a str, not {type(text).__name__}")
    calls: list[dict[str, Any]] = []
    if name.endswith(".tool.json"):
        from tamis.protocols.manifest.reading import read_manifest

        diagnostics = [*read_manifest(text).diagnostics]
    else:
        document = make_reader(protocol, complete=complete, tools=(known := [*tools]), options=options).document(text)
        diagnostics = [*document.diagnostics]
        schemas = {hint.tool_id: hint.parameters for hint in map(hint_of, known)}
        for call in (call for block in document.blocks if not block.aside for call in block.calls):
            args, diags = _held(call, text, schemas) if schemas else (call.args(text), ())
            wrong = any(severity(diag) == "error" for diag in diags)
            calls.append({"toolId": call.tool_id, "valid": call.executable and not wrong, "args": args})
            diagnostics += diags
    diagnostics.sort(key=lambda diag: (diag.span, diag.code))
    lines = LineIndex(text)
    levels = [severity(diag) for diag in diagnostics]
    return {
        "diagnostics": [msgspec.to_builtins(diagnostic(diag, lines, None)) for diag in diagnostics],
        "errors": levels.count("error"),
        "warnings": levels.count("warning"),
        "calls": calls,
    }


def _held(call: Call, text: str, schemas: Mapping[str, Any]) -> tuple[dict[str, Any], list[Diag]]:
    """The arguments of a call as its tool's schema has them, and what is wrong with it."""
    from tamis.protocols.check import check_call
    from tamis.protocols.schema.plan import compile_plan
    from tamis.protocols.suggest import best, hint

    schema = schemas.get(call.tool_id)
    if schema is None:
        near = hint(best(call.tool_id, schemas))
        return call.args(text), [Diag("VA401", call.tool_span, {"id": call.tool_id, "hint": near})]
    checked = check_call(call, text, compile_plan(schema))
    return (checked.coerced if checked.valid else call.args(text)), [problem.diag for problem in checked.problems]


def _know(name: str) -> None:
    """Makes a shipped protocol known; what other packages bring their user registers."""
    know_shipped(name)
    if find_protocol(name) is None:
        raise ValueError(f"unknown protocol {name!r}; known: auto, {', '.join(known_protocols())}")


def hint_of(tool: Mapping[str, Any]) -> ToolHint:
    """What guides the reading, of ``{"toolId": …, "parameters": …}``. Raises ``ValueError`` for another shape."""
    tool_id, parameters = tool.get("toolId"), tool.get("parameters", {})
    if not isinstance(tool_id, str) or not isinstance(parameters, dict):
        raise ValueError("a tool is {'toolId': text, 'parameters': JSON Schema}")
    return ToolHint(tool_id, cast("dict[str, Any]", parameters))


# A text of any length read by pieces, in bounded memory: its calls as they become certain, and at the end what stayed open. What a piece makes
# certain is what ``StreamReader`` gives. The difference is the end: the text is let go of on the way and cannot be read again, so that what is not
# certain by then is told as undecided, and nothing of it is a call.


MAX_HELD = 64 * 1024 * 1024
"""Characters that may wait for a decision; with more, all that follows is undecided."""
_PIECE = 64 * 1024


class Summary(msgspec.Struct, frozen=True):
    """What is known at the end of a text besides its calls."""

    characters: int
    calls: int
    """Calls that were given, less those that were taken back."""
    undecided: Span | None = None
    """Where, in code points, calls may stand that were not given, and a closer of reasoning that would take back those before it; None where
    all is decided."""


class PieceReader(StreamReader):
    """Reads a text of any length; what it holds is what is still undecided, at most ``limit`` characters, and a few bytes for each call."""

    length: int

    def __init__(self, protocol: str = "auto", options: ReadOptions | None = None, *, limit: int = MAX_HELD) -> None:
        """Raises ``ValueError`` for a protocol that nobody registered."""
        # What is held of a block that was given is so little that any number of them may come.
        super().__init__(protocol, msgspec.structs.replace(options or ReadOptions(), max_blocks=sys.maxsize))
        self._limit = limit
        self._lost: int | None = None
        self._count = 0
        self._counter = LineCounter(self.slice, None)
        self._counted = 0

    def feed(self, chunk: str) -> Fed:
        """Takes the next piece, of any length; what is certain with it. Text outside blocks is not given."""
        if self._lost is not None:
            self.length += len(chunk)
            return Fed("")
        fed = super().feed(chunk)
        self._count += len(fed.calls) - len(fed.retracted)
        return Fed("", fed.calls, fed.retracted)

    def wire(self, read: ReadCall) -> contract.WireCall:
        """A call as ``tool/parse`` tells it; to be asked for in order, before the next piece."""
        lines = self._counter.block(read.block, read.start)
        self._counted = read.start
        return wire_call(read.call, read.index, f"call-{read.index + 1}", read.args, lines, None)

    def let_go(self) -> None:
        """Lets go of the text that nothing asks for any more; to be called when the calls of a piece are taken."""
        if self._lost is not None:
            return
        keep = self._needed()
        if self.length - keep > self._limit:
            self._lost = self._undecided()
            keep = self.length
            self._chunks.clear()
            self._starts.clear()
            return
        drop = 0
        while drop + 1 < len(self._starts) and self._starts[drop + 1] <= keep:
            drop += 1
        while drop > 0 and self._chunks[drop].startswith("\n"):
            # A line end is never cut in two: the line feed may belong to a carriage return.
            drop -= 1
        if drop:
            if self._starts[drop] > self._counted:
                self._counter.block("", self._starts[drop])
                self._counted = self._starts[drop]
            del self._chunks[:drop], self._starts[:drop]

    def end(self) -> Summary:
        """The end of the text."""
        undecided = self._undecided() if self._lost is None else self._lost
        return Summary(self.length, self._count, None if undecided >= self.length else (undecided, self.length))

    def close(self, complete: bool = True) -> Document:
        """Not there: the text is not held. ``end`` tells what is known."""
        raise TypeError("a text that is read in bounded memory has no document; `end` tells what is known")

    def _needed(self) -> int:
        """From where on text may still be asked for."""
        if self._gate.open or self._walk.context.asks_for_json:
            return 0
        waiting = [*self._open, *self._calls, *(piece for piece in self._queue if isinstance(piece, Found))]
        return max(0, min([self._walk.base, *(entry.span[0] - BEHIND for entry in waiting)]))

    def _undecided(self) -> int:
        """Where the first block stands of which it is not certain what it is."""
        if self._gate.open:
            return 0 if self.length else self.length
        places = [entry.span[0] for entry in (*self._calls, *(p for p in self._queue if isinstance(p, Found)))]
        if self._walk.waiting == "block":
            places.append(self._walk.open_at)
        return min([self.length, *places])

    def _partial(self, chunk: str) -> Partial | None:
        return None


def read_pieces(
    pieces: Iterable[str], protocol: str = "auto", options: ReadOptions | None = None, *, limit: int = MAX_HELD
) -> Iterator[contract.WireCall | str | Summary]:
    """The calls of a text that comes in pieces, each when it is certain, and a ``Summary`` at last; in bounded memory, any length.

    A call is what ``tool/parse`` gives of the whole text, ranges in code points. A ``str`` is the ``callId`` of a call that was given and is taken
    back: a closer of reasoning behind it shows that it was not meant. What is not certain at the end is in ``undecided`` and no
    call: a block that is not closed or was repaired at the very end, one in a fence that is still open, everything behind a block of more than
    ``limit`` characters, and a text that may be one document of call JSON.

    Raises ``ValueError`` for a protocol that nobody registered.

    >>> *calls, summary = read_pieces(["<ACTION><t:a><x>1</x></t:a></AC", "TION> and so on"])
    >>> [call.tool_id for call in calls], summary.calls, summary.undecided
    (['t:a'], 1, None)
    """
    reader = PieceReader(protocol, options, limit=limit)
    for piece in pieces:
        for at in range(0, len(piece), _PIECE):
            fed = reader.feed(piece[at : at + _PIECE])
            yield from map(reader.wire, fed.calls)
            yield from (f"call-{index + 1}" for index in fed.retracted)
            reader.let_go()
    yield reader.end()
