"""Reading a text while it arrives (``parse/open``, ``parse/feed``, ``parse/close``). A thin face; holds no rules of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import UNSET

from tamis.protocols import contract
from tamis.protocols.model import MAX_BLOCKS
from tamis.server.rpc.aside import aside
from tamis.server.rpc.params import Group, Host, Params, ReadingOptions, check_protocol, given
from tamis.server.rpc.session import Request, named_error
from tamis.server.runtime.runtime import MAX_TEXT_CHARS
from tamis.server.runtime.tools.inline import InlineTool
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from tamis.protocols.positions import LineCounter
    from tamis.protocols.streaming.partial import Partial
    from tamis.protocols.streaming.reader import ReadCall, StreamReader

MAX_STREAMS = 64
MAX_ALL_CHARS = 4 * MAX_TEXT_CHARS
LARGE_PIECE = 1 << 16
LARGE_STREAM = 1 << 18
"""From so many characters on a piece is read, and a stream is closed, in a thread, so that other requests are answered meanwhile."""

T = TypeVar("T")


class _Open(Params, kw_only=True):
    protocol: str = "auto"
    tools: list[InlineTool] = msgspec.field(default_factory=list[InlineTool])
    options: ReadingOptions | None = None


class _Feed(Params, kw_only=True):
    stream_id: str
    chunk: str


class _Close(Params, kw_only=True):
    stream_id: str
    complete: bool = True
    summary: bool = False
    """Leave out what the host has from ``parse/feed``: the texts, and of each call its arguments and their places."""


class _Stream:
    """One text that is being read."""

    def __init__(self, reader: StreamReader, lines: LineCounter) -> None:
        self.reader = reader
        self.lines = lines
        self.size = 0
        """Characters that were taken, those that wait to be read among them."""
        self._work: asyncio.Future[None] | None = None

    def do(self, work: Callable[[], T], *, is_long: bool) -> T | Awaitable[T]:
        """The result of ``work``, which comes behind all work before it; a long one is done in a thread."""
        before = self._work if self._work is not None and not self._work.done() else None
        if before is None and not is_long:
            return work()

        async def later() -> T:
            if before is not None:
                await asyncio.wait({before})
            return await aside(work)

        task = asyncio.ensure_future(later())
        self._work = done = asyncio.get_running_loop().create_future()
        task.add_done_callback(lambda _: done.set_result(None))
        # who does not wait any more leaves no piece half read
        return asyncio.shield(task)


class _Streams:
    """The open streams of one session."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._open: dict[str, _Stream] = {}
        self._closing: set[_Stream] = set()
        self._count = 0

    def open(self, _request: Request, params: _Open) -> contract.OpenedStream:
        """Begins a text that comes in pieces."""
        from tamis.protocols.positions import LineCounter
        from tamis.protocols.streaming.reader import StreamReader

        check_protocol(params.protocol)
        if len(self._open) + len(self._closing) >= MAX_STREAMS:
            raise named_error(
                "overloaded", f"{MAX_STREAMS} streams are open", "end one with parse/close", retryable=True
            )
        options = self._host.runtime.read_options(tools=params.tools, options=given(params.options))
        reader = StreamReader(params.protocol, options)
        self._count += 1
        name = f"stream-{self._count}"
        self._open[name] = _Stream(reader, LineCounter(reader.slice, self._host.encoding))
        return contract.OpenedStream(stream_id=name)

    def feed(self, _request: Request, params: _Feed) -> contract.FedText | Awaitable[contract.FedText]:
        """Takes the next piece of a text; gives what is certain with it: text to show, and calls."""
        stream = self._find(params.stream_id)
        size = len(params.chunk)
        if stream.size + size > MAX_TEXT_CHARS:
            hint = "this piece was not taken; parse/close gives the result of what came before it"
            raise named_error("textTooLarge", f"the text is larger than {MAX_TEXT_CHARS} characters", hint)
        if stream.reader.blocks >= MAX_BLOCKS:
            hint = "this piece was not taken; parse/close gives the result of what came before it"
            raise named_error("textTooLarge", f"the text has {MAX_BLOCKS} blocks or more", hint)
        if sum(other.size for other in (*self._open.values(), *self._closing)) + size > MAX_ALL_CHARS:
            hint = "this piece was not taken; end streams that are not needed with parse/close"
            raise named_error("textTooLarge", f"the open streams hold more than {MAX_ALL_CHARS} characters", hint)
        stream.size += size

        def read() -> contract.FedText:
            fed = stream.reader.feed(params.chunk)
            return contract.FedText(
                text=fed.text,
                calls=[self._call(stream, call) for call in fed.calls],
                retracted=[f"call-{index + 1}" for index in fed.retracted],
                partial=UNSET if fed.partial is None else _partial(fed.partial),
            )

        return stream.do(read, is_long=size >= LARGE_PIECE)

    def close(self, _request: Request, params: _Close) -> contract.ParseResult | Awaitable[contract.ParseResult]:
        """Ends a text that came in pieces; gives what ``tool/parse`` gives of the whole text."""
        from tamis.protocols.wire import parse_result

        stream = self._find(params.stream_id)
        del self._open[params.stream_id]
        self._closing.add(stream)

        def read() -> contract.ParseResult:
            try:
                result = parse_result(stream.reader.close(params.complete), self._host.encoding)
            finally:
                self._closing.discard(stream)
            return _summary(result) if params.summary else result

        return stream.do(read, is_long=stream.size >= LARGE_STREAM)

    def _call(self, stream: _Stream, read: ReadCall) -> contract.WireCall:
        from tamis.protocols.wire import wire_call

        lines = stream.lines.block(read.block, read.start)
        return wire_call(read.call, read.index, f"call-{read.index + 1}", read.args, lines, self._host.encoding)

    def _find(self, name: str) -> _Stream:
        stream = self._open.get(name)
        if stream is None:
            hint = "parse/open gives one; parse/close and the end of the session end it"
            raise RpcError(INVALID_PARAMS, f"wrong params: no open stream '{name}' - at `/streamId`; {hint}")
        return stream


def _summary(result: contract.ParseResult) -> contract.ParseResult:
    replace = msgspec.structs.replace
    calls = [replace(call, args={}, arg_ranges={}, uris=UNSET, type_hints=UNSET, meta=UNSET) for call in result.calls]
    return replace(result, response_text="", trailing_text="", comments=[], calls=calls)


def _partial(partial: Partial) -> contract.PartialCall:
    return contract.PartialCall(
        protocol=partial.protocol,
        tool_id=UNSET if partial.tool_id is None else partial.tool_id,
        done=list(partial.done),
        argument=UNSET if partial.argument is None else partial.argument,
        new=[contract.NewText(argument=new.argument, text=new.text, length=new.length) for new in partial.new],
    )


def methods(host: Host) -> Group:
    """The methods of this group."""
    streams = _Streams(host)
    return {
        "parse/open": (_Open, streams.open),
        "parse/feed": (_Feed, streams.feed),
        "parse/close": (_Close, streams.close),
    }
