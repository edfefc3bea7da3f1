"""Reading a text while it arrives (ruling 11): each piece of it gives what has become certain with that piece.

What a feed gives never changes later, whatever follows, and at the end it is what ``read_text`` gives of the whole text.
Must not know the wire, nor where the pieces come from.
"""

from __future__ import annotations

from bisect import bisect_right

import msgspec

from tamis.protocols.base import Source
from tamis.protocols.invisible import BEHIND_JSON
from tamis.protocols.model import Call, Diag, Document, Edit, Json, Param, Piece, ReadOptions, Value
from tamis.protocols.patterns import lazy
from tamis.protocols.plugins import BUILT_IN, DOCUMENTS, extras_of, find_protocol, known_protocols
from tamis.protocols.positions import Span
from tamis.protocols.reader import read_text, show_only
from tamis.protocols.streaming.partial import Partial, Progress
from tamis.protocols.streaming.settled import ACTION_MARK
from tamis.protocols.streaming.walk import BEHIND, Found, TakenBack, Walk, source_of

# The beginning of a text that may be nothing but call JSON (W14): such a text is one block, and its end decides.py`` says whether a text can still
# become a document.


_BEGUN = lazy(r"\ufeff?+[ \t\r\n]*+(?:(?:`++|~++)[\w\-]*+[ \t]*+(?:\r?+(?:\n[ \t\r\n]*+)?+)?+)?+\Z")
_START = lazy(r"\ufeff?+[ \t\r\n]*+(?:(?P<fence>`{3,}+|~{3,}+)[\w\-]*+[ \t]*+\r?\n[ \t\r\n]*+)?(?=[{\[])")
_ENDS = lazy(r"[\]}`~]")
_COMMENT = lazy(rf"[\]}}][\s{BEHIND_JSON}]*+[/#]")
"""What may be a comment behind the last bracket, of which no end is certain."""
_FENCE_END = "`~ \t\r\n"
_PATIENCE = 8
_SMALL = 2_048


class Gate:
    """Holds the text from its first character on while it may be a document of call JSON."""

    def __init__(self, protocol: str, options: ReadOptions) -> None:
        self._document = protocol in DOCUMENTS
        """Whether the text is a document or nothing."""
        self.open = self._document or protocol == "auto"
        """True while everything is held."""
        self._protocol = protocol
        self._options = options
        self._chunks: list[str] = []
        self._size = 0
        self._spent = 0
        self._started = False
        self._whole = False

    def feed(self, chunk: str) -> str:
        """Takes the next piece; what is let go, which is everything so far when the text is no such document."""
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._spent > _PATIENCE * self._size + _SMALL:
            return ""
        if not self._started:
            text = self._joined()
            self._spent += len(text)
            if _BEGUN.match(text) is not None:
                return ""
            if _START.match(text) is None:
                return self._let_go(text)
            self._started = True
        elif self._document or not (_ENDS.search(chunk) is not None or (self._whole and chunk.strip())):
            return ""
        if self._document:
            return ""
        text = self._joined()
        self._spent += len(text)
        return self._let_go(text) if self._is_none(text) else ""

    def _is_none(self, text: str) -> bool:
        """True when the text is no document, whatever follows."""
        from tamis.protocols.calljson.document import read_call_document

        reading = read_call_document(Source(text), self._protocol, self._options)
        self._whole = not isinstance(reading, str)
        start = _START.match(text)
        if reading != "no" or start is None or _COMMENT.search(text) is not None:
            return False
        fence = start["fence"]
        if fence is None:
            return True
        # The fence may still be closed right here.
        closed = Source(f"{text.rstrip(_FENCE_END)}\n{fence}")
        options = msgspec.structs.replace(self._options, complete=True)
        return read_call_document(closed, self._protocol, options) == "no"

    def _joined(self) -> str:
        text = "".join(self._chunks)
        self._chunks = [text]
        return text

    def _let_go(self, text: str) -> str:
        self.open = False
        self._chunks.clear()
        return text


_MARK_TAIL = 32


class ReadCall(msgspec.Struct, frozen=True):
    """A call that is certain.

    ``index`` is its place among the calls of the whole text, and all offsets in ``call`` are the whole text's. ``args`` are
    its uncoerced arguments. ``block`` is the text of its block, which begins at ``start``.
    """

    index: int
    call: Call
    args: dict[str, Json]
    block: str
    start: int


class Fed(msgspec.Struct, frozen=True):
    """What one piece of the text has made certain."""

    text: str
    calls: tuple[ReadCall, ...] = ()
    retracted: tuple[int, ...] = ()
    """Indexes of calls that earlier pieces gave and that a closer of reasoning has shown to be no calls (ruling 45)."""
    partial: Partial | None = None
    """The call that is being written, for display only: it may still turn out to be none."""


_NOTHING = Fed("")


class StreamReader:
    """Reads a text piece by piece.

    ``text``: what the feeds give, one after the other, and then ``rest.text``, is the text outside blocks, byte for byte: the
    whole text without the blocks that are taken for calls, be they run, refused or dropped. So it begins with the result's
    ``response_span``, ends with its ``trailing_span``, and holds what stands between. A marker in a sentence, reasoning, a
    fence's own lines, and a block that is only shown (in reasoning, or an example in a fence) are text. Nothing of it is given
    before it is known to be text: not the beginning of a marker (F17), and not what follows the opening marker of a
    block that is not certain.

    ``calls``: every call of the text once, in order, as ``read_text`` gives it of the whole text with ``complete`` true. A block
    is certain with the character that ends its closing marker, when it is written as the seed says. Where the closing tags of an
    ACTION block could be quoted by the last value (``doubtful_end``), a second ``</param></tool></ACTION>`` behind it would
    keep the calls from running (F4): they come with the next ``<ACTION>`` or ``</ACTION>``, and at the latest with ``close``.
    In a Markdown fence a call comes when the fence is closed (ruling 7), a block that had to be repaired when nothing behind
    it can be read otherwise, and with ``strict``, where findings anywhere in the text count, all calls come with ``close``.
    A text that begins as a JSON document may be nothing but call JSON: nothing of it is given before that is ruled out (W14).
    Nothing comes before what stands before it in the text.

    Each piece costs the same however long the text before it is (a block's length may be read a fixed number of times over).
    Not safe for use by several threads at once.
    """

    def __init__(self, protocol: str = "auto", options: ReadOptions | None = None) -> None:
        """Raises ``ValueError`` for a protocol that nobody registered."""
        options = options or ReadOptions()
        if protocol != "auto" and find_protocol(protocol) is None:
            raise ValueError(f"unknown protocol {protocol!r}; known: {', '.join(known_protocols())}")
        self._protocol = protocol
        self._options = options
        self.length = 0
        """Characters so far."""
        self.blocks = 0
        """Blocks so far, those that are only shown among them: what ``close`` gives grows with them."""
        self.rest = Fed("")
        """After ``close``: the text and the calls that no feed has given."""
        self._chunks: list[str] = []
        self._starts: list[int] = []
        ids = (*BUILT_IN, *options.also) if protocol == "auto" else (protocol,)
        self._gate = Gate(protocol, msgspec.structs.replace(options, complete=False))
        self._walk = Walk(ids, msgspec.structs.replace(options, complete=True))
        self._queue: list[str | Found] = []
        self._calls: list[Found] = []
        self._spoken: set[str] = set()
        self._open: list[Found] = []
        self._behind = ""
        self._given = 0
        self._given_to = 0
        """Up to where the text, blocks and all, is settled."""
        self._live: list[int] = []
        self._progress: Progress | None = None
        self._progress_at = -1

    def feed(self, chunk: str) -> Fed:
        """Takes the next piece of the text, of any length; it must not end within a character."""
        if not chunk:
            return Fed("")
        self._chunks.append(chunk)
        self._starts.append(self.length)
        self.length += len(chunk)
        if self._gate.open:
            chunk = self._gate.feed(chunk)
            if not chunk:
                return Fed("")
        if self._open:
            self._look_behind(chunk)
        walk = self._walk
        if walk.calm and not self._queue and not self._calls and walk.passes(chunk):
            self._given_to += len(chunk)
            return Fed(chunk)
        pieces = walk.feed(chunk)
        partial = self._partial(chunk) if walk.waiting == "block" else None
        if not self._queue and not self._calls:
            if not pieces:
                return _NOTHING if partial is None else Fed("", (), (), partial)
            if len(pieces) == 1 and isinstance(pieces[0], str):
                self._given_to += len(pieces[0])
                return Fed(pieces[0], (), (), partial)
        retracted: tuple[int, ...] = ()
        for piece in pieces:
            if isinstance(piece, TakenBack):
                retracted += self._take_back()
            else:
                self._queue.append(piece)
                self.blocks += not isinstance(piece, str)
        return Fed(self._settle(), self._certain(), retracted, partial)

    def close(self, complete: bool = True) -> Document:
        """The result of the whole text, exactly ``read_text``'s; ``complete`` false says that the text was cut off.

        ``rest`` then holds what was not given yet.
        """
        whole = "".join(self._chunks)
        document = read_text(whole, self._protocol, msgspec.structs.replace(self._options, complete=complete))
        outside = outside_blocks(document, self._given_to)
        calls: list[ReadCall] = []
        index = 0
        for block in document.blocks:
            for call in block.calls:
                if index >= self._given:
                    start, end = block.span
                    calls.append(ReadCall(index, call, call.args(whole), whole[start:end], start))
                index += 1
        self.rest = Fed(outside, tuple(calls))
        return document

    # --- what is text ----------------------------------------------------------------------------------------------

    def _settle(self) -> str:
        """Takes from the front of the queue what is decided, and gives the text of it."""
        out: list[str] = []
        done = 0
        for piece in self._queue:
            if isinstance(piece, str):
                out.append(piece)
                self._given_to += len(piece)
            else:
                aside = self._aside(piece)
                if aside is None:
                    break
                if aside:
                    out.append(piece.raw)
                self._given_to = max(self._given_to, piece.span[1])
                self._decide(piece, aside=aside)
            done += 1
        if done:
            del self._queue[:done]
        return "".join(out)

    def _aside(self, entry: Found) -> bool | None:
        """Whether a block is set aside, as the reader does; None while its fence is open and could be either."""
        if entry.context or entry.block.aside:
            return True
        fence = entry.fence
        if fence is None:
            return False
        mode = self._options.fenced_calls
        if mode == "run":
            return False
        protocol = find_protocol(entry.block.protocol)
        wraps = protocol is not None and protocol.markers.fence == "wrapper"
        # Only the end of the text makes a wrapper of a fence.
        return True if mode == "ignore" or not wraps or not fence.wrapper else None

    def _take_back(self) -> tuple[int, ...]:
        """Takes every block so far for reasoning; the indexes of the calls that were given."""
        if self._options.reasoning_calls == "run":
            return ()
        for piece in self._queue:
            if isinstance(piece, Found):
                piece.context = "reasoning"
        for call in self._calls:
            call.aside, call.open = True, False
            show_only(call.block)
        self._open.clear()
        self._spoken.clear()
        numbers, self._live = tuple(self._live), []
        return numbers

    def _decide(self, entry: Found, *, aside: bool) -> None:
        block = entry.block
        entry.aside = aside
        if aside:
            show_only(block)
        runs = not aside
        if runs:
            protocol = find_protocol(block.protocol)
            if protocol is not None and protocol.markers.one_block:
                runs = block.protocol not in self._spoken or self._options.allow_multiple_blocks
                self._spoken.add(block.protocol)
        entry.dropped = not runs
        if not runs:
            for call in block.calls:
                call.executable = False
        if not any(call.executable for call in block.calls) and not any(diag.fix for diag in block.diagnostics):
            entry.open = False
        if not block.calls:
            return
        self._calls.append(entry)
        if entry.open:
            self._open.append(entry)
            self._look_from(entry.span[1])

    # --- which calls are certain -----------------------------------------------------------------------------------

    def _look_from(self, at: int) -> None:
        """Looks for the next marker in what has come behind a block."""
        step = 1_024
        self._behind = ""
        while self._open and at < self.length:
            end = min(at + step, self.length)
            self._look_behind(self.slice(at, end), end)
            at, step = end, step * 2

    def _look_behind(self, new: str, end: int = -1) -> None:
        """Settles the blocks that wait for the next marker when it stands in the new text, which ends at ``end``."""
        end = self.length if end < 0 else end
        probe = self._behind + new
        mark = ACTION_MARK.search(probe)
        if mark is None:
            self._behind = probe[-_MARK_TAIL:]
            return
        behind = end - len(probe) + mark.end() + 1
        for entry in self._open:
            self._read_again(entry, behind)
        self._open.clear()

    def _read_again(self, entry: Found, end: int) -> None:
        """Reads a block once more with all that stands behind it and matters."""
        start = entry.span[0]
        base = max(0, start - BEHIND)
        text = self.slice(base, end)
        opener = entry.block.open
        shift = entry.base - base
        protocol = find_protocol(entry.block.protocol)
        if protocol is not None:
            place = opener[0] + shift, opener[1] + shift
            entry.take(
                protocol.read_block(source_of(text, base, entry.last_end), place, len(text), self._walk.options),
                base,
                text,
            )
            if entry.aside:
                show_only(entry.block)
            if entry.dropped:
                for call in entry.block.calls:
                    call.executable = False
        entry.open = False

    def _certain(self) -> tuple[ReadCall, ...]:
        out: list[ReadCall] = []
        done = 0
        if self._options.strict:
            return ()
        for entry in self._calls:
            fence = entry.fence
            if entry.open or (fence is not None and not entry.aside and not fence.closed):
                break
            for call, args in zip(entry.block.calls, entry.args, strict=True):
                moved = moved_call(call, entry.base) if entry.base else call
                out.append(ReadCall(self._given, moved, args, entry.raw, entry.span[0]))
                if call.executable:
                    self._live.append(self._given)
                self._given += 1
            done += 1
        if done:
            del self._calls[:done]
        return tuple(out)

    # --- the rest --------------------------------------------------------------------------------------------------

    def _partial(self, chunk: str) -> Partial | None:
        """What can be seen of the open block; its first piece begins with its opening marker."""
        progress = self._progress
        if progress is None or self._progress_at != self._walk.open_at:
            progress = self._progress = progress_of(self._walk.open_in, self._options)
            self._progress_at = self._walk.open_at
            chunk = self.slice(self._progress_at, self.length)
        return progress.feed(chunk)

    def slice(self, start: int, end: int) -> str:
        """A part of the text so far."""
        if start >= end:
            return ""
        first = max(bisect_right(self._starts, start) - 1, 0)
        last = bisect_right(self._starts, end - 1) - 1
        if first == last:
            at = self._starts[first]
            return self._chunks[first][start - at : end - at]
        return "".join(self._chunks[first : last + 1])[start - self._starts[first] : end - self._starts[first]]


def progress_of(protocol: str, options: ReadOptions) -> Progress:
    """A new follower for a block of that protocol."""
    return extras_of(protocol).progress(options.tools) or Progress(protocol)


def outside_blocks(document: Document, start: int = 0) -> str:
    """The text of a result from ``start`` on without the blocks that are taken for calls; see ``StreamReader``."""
    text = document.text
    out: list[str] = []
    at = start
    for block in document.blocks:
        shown = block.span[1] <= document.response_span[1] or block.span[0] >= document.trailing_span[0]
        if not block.aside and not shown and block.span[1] > at:
            out.append(text[at : block.span[0]])
            at = block.span[1]
    out.append(text[at:])
    return "".join(out)


def moved_call(call: Call, by: int) -> Call:
    """The call ``by`` characters further on; values included."""
    return msgspec.structs.replace(
        call,
        tool_span=_span(call.tool_span, by),
        span=_span(call.span, by),
        params=[_param(param, by) for param in call.params],
        repairs=[_diag(diag, by) for diag in call.repairs],
    )


def _span(span: Span, by: int) -> Span:
    return span[0] + by, span[1] + by


def _param(param: Param, by: int) -> Param:
    return msgspec.structs.replace(
        param,
        value=_value(param.value, by),
        span=_span(param.span, by),
        name_span=_span(param.name_span, by),
    )


def _value(value: Value, by: int) -> Value:
    return msgspec.structs.replace(
        value,
        span=_span(value.span, by),
        pieces=tuple([Piece(piece.start + by, piece.end + by, piece.text) for piece in value.pieces]),
        items=[_value(item, by) for item in value.items],
        entries={name: _value(part, by) for name, part in value.entries.items()},
    )


def _diag(diag: Diag, by: int) -> Diag:
    fix = diag.fix
    if fix is not None:
        edits = tuple([Edit(edit.start + by, edit.end + by, edit.new_text) for edit in fix.edits])
        fix = msgspec.structs.replace(fix, edits=edits)
    return msgspec.structs.replace(diag, span=_span(diag.span, by), fix=fix)
