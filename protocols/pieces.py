"""A text of any length read by pieces, in bounded memory: its calls as they become certain, and at the end what stayed open.

What a piece makes certain is what ``StreamReader`` gives. The difference is the end: the text is let go of on the way and cannot be read
again, so that what is not certain by then is told as undecided, and nothing of it is a call. Must not know where the pieces come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tamis.protocols import contract
from tamis.protocols.model import Document, ReadOptions
from tamis.protocols.positions import Span
from tamis.protocols.streaming.lines import LineCounter
from tamis.protocols.streaming.partial import Partial
from tamis.protocols.streaming.reader import Fed, ReadCall, StreamReader
from tamis.protocols.streaming.walk import BEHIND, Found
from tamis.protocols.wire import wire_call

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
        super().__init__(protocol, options)
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
        return max(0, min([self._walk.base, *(found.span[0] - BEHIND for found in waiting)]))

    def _undecided(self) -> int:
        """Where the first block stands of which it is not certain what it is."""
        if self._gate.open:
            return 0 if self.length else self.length
        places = [found.span[0] for found in (*self._calls, *(p for p in self._queue if isinstance(p, Found)))]
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
