"""The pass over a text that is still coming: it stops where the text so far does not decide, and goes on from there.

It keeps a window: the text from shortly before the place where it stopped. What lies before is decided and let go. While a
block is open, new text is only kept and looked at for something that could end the block; then the block is read again,
as often as a fixed multiple of its length allows. So each token costs the same, however much came before it. The order of
things is the reader's (``protocols/reader.py``). Must not know calls on the wire, nor what a display wants.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from tamis.protocols.base import CallProtocol, Source
from tamis.protocols.context import WAIT, Context, Fence
from tamis.protocols.extent import Extents
from tamis.protocols.marks import OBSERVATION, TICKS, TILDES, marks_of, run_at_end
from tamis.protocols.model import Block, ReadOptions
from tamis.protocols.patterns import lazy
from tamis.protocols.plugins import BUILT_IN, extras_of, find_protocol
from tamis.protocols.positions import Span
from tamis.protocols.reader import openers
from tamis.protocols.streaming.settled import (
    BARE_PAIR,
    Verdict,
    begun_marker,
    begun_opener,
    knows_signs,
    loud,
    opener,
    settled,
)
from tamis.protocols.vcp.dialect import OTHER_BLOCK, OTHER_CLOSE

BEHIND = 4_352
"""Characters before the place of the pass that are kept: more than anything looks back."""
_PATIENCE = 8
"""How often, at most, the length of an open block is read in vain."""
_SMALL = 2_048
_HELD = 256
_PASSED = 2_048
"""Characters of plain text that are put together at once."""
_TAIL = 80
_OTHER = lazy(f"{OTHER_BLOCK.pattern}|(?P<close>{OTHER_CLOSE.pattern})")
_NOTHING = re.compile(r"(?!)")
_SURE = frozenset({*BUILT_IN, "run"})
_ANY_END = re.compile(r"[>＞》▷\]`\n]")


class TakenBack:
    """A closer of reasoning that no opener stands before: no call before it was meant (ruling 45)."""


class Found:
    """A block that is certain, with the text around it that its places count in."""

    __slots__ = ("args", "aside", "base", "block", "context", "dropped", "fence", "last_end", "open", "raw")

    def __init__(self, block: Block, base: int, text: str, fence: Fence | None, context: str) -> None:
        self.take(block, base, text)
        self.fence = fence
        self.context = context
        """The context in which it is set aside, fences apart; empty for none."""
        self.last_end = 0
        """Where, in the whole text, the last ACTION block before it ends."""
        self.open = False
        """True while text behind it may still keep it from running."""
        self.dropped = False
        """Whether it is not run for what stands before or around it (ruling 14)."""
        self.aside: bool | None = None
        """Whether it is set aside and its text is shown; None while that is not known."""

    def take(self, block: Block, base: int, text: str) -> None:
        """Takes the block as it was read in ``text``, which begins at ``base`` in the whole text."""
        self.block = block
        self.base = base
        self.raw = text[block.span[0] : block.span[1]]
        self.args = [call.args(text) for call in block.calls]

    @property
    def span(self) -> Span:
        """Its place in the whole text."""
        return self.block.span[0] + self.base, self.block.span[1] + self.base


Piece = str | Found | TakenBack


class Walk:
    """One pass; ``feed`` gives the pieces of text and the blocks that became certain, in order."""

    def __init__(self, ids: tuple[str, ...], options: ReadOptions) -> None:
        self.ids = ids
        self._sets_aside = any(extras_of(name).requests is not None for name in ids)
        self.options = options
        self._marks = marks_of(options.reasoning_tags)
        self.context = Context(Source(""), self._marks, assume_open=options.assume_open_reasoning, final=False)
        self.base = 0
        """Where the window begins in the whole text."""
        self.waiting: Literal["", "block", "text"] = ""
        """``block``: for the end of an open block; ``text``: for the end of what looks like a quoted block, which is shown."""
        self.open_at = 0
        """While a block is open: where it opens."""
        self.open_in = ""
        """While a block is open: its protocol."""
        self._text = ""
        self._passed: list[str] = []
        """Text behind ``_text`` in which nothing can begin; it is shown."""
        self._passed_size = 0
        self.calm = False
        """True while all of the text is settled and shown, and plain text behind it changes nothing."""
        self._at: int = 0
        self._shown = 0
        """Up to where text was shown, in the whole text."""
        self._unshown = ""
        """While text is shown beside the pass: what of it is still held back."""
        self._more: list[str] = []
        self._size = 0
        self._tail = ""
        self._limbo = False
        self._due = 0
        self._spent = 0
        self._action_end = 0
        self._blocks = 0
        self._ends = _NOTHING
        self._usual_ends = False
        """Whether what ends the block that is open ends with a character of ``_ANY_END``."""
        self._other_open = False
        self._other_seen = 0
        self._markers = _markers(ids, options.reasoning_tags)
        self._begun = begun_marker(ids)
        self._begun_opener = begun_opener(ids)
        self._opener = opener(ids)
        self._signs = knows_signs(ids)
        self._loud = loud(options.reasoning_tags).search
        self._openers = openers(ids, options.reasoning_tags)
        self._extents: Extents | None = None
        self.context.whole = lambda at, before: self._reach().whole(at, before)
        self.context.around.next_block = self._next_block

    def feed(self, chunk: str) -> list[Piece]:
        """Takes the next piece of the text."""
        if self.waiting:
            return self._keep(chunk)
        if self.calm:
            if self.passes(chunk):
                return [chunk]
            self._take_passed()
        held = len(self._text) - self._at
        if held == 0 and self._signs and self.context.enclosing is None and self._loud(chunk) is None:
            return self._pass(chunk)
        self._more.append(chunk)
        self._size += len(chunk)
        if self._size * 4 < held - _HELD:
            # A very long beginning of a marker is looked at again only as it grows.
            return []
        return self._go_on()

    def passes(self, chunk: str) -> bool:
        """While the walk is calm: whether the next piece is nothing but text to show; it is taken then."""
        if self._loud(chunk) is not None:
            return False
        self._passed.append(chunk)
        self._passed_size += len(chunk)
        if self._passed_size > _PASSED:
            self._take_passed()
        return True

    def _take_passed(self) -> None:
        """Goes on behind the text that was passed over."""
        self._text += "".join(self._passed)
        self._passed.clear()
        self._passed_size = 0
        self._at = len(self._text)
        self._shown = self.base + self._at
        self.calm = False
        self._trim()
        self.calm = self._is_calm()

    def _is_calm(self) -> bool:
        context = self.context
        end = len(self._text)
        settled = self._at == end and self._shown == self.base + end and not self.waiting and not self._more
        return settled and self._signs and context.enclosing is None and not context.watches

    def _pass(self, chunk: str) -> list[Piece]:
        """Text in which nothing can begin."""
        text = self._text + chunk
        shown = text[self._shown - self.base :]
        if self.context.watches:
            self.context.move(Source(text), 0)
            self.context.pass_over(len(text))
        self._text = text
        self._at = len(text)
        self._shown = self.base + self._at
        self._trim()
        self.calm = self._is_calm()
        return [shown] if shown else []

    def _keep(self, chunk: str) -> list[Piece]:
        """Text behind the opening marker of a block that is not decided yet."""
        self._more.append(chunk)
        self._size += len(chunk)
        probe = self._tail + chunk
        if not self._usual_ends or _ANY_END.search(chunk) is not None:
            new = len(self._tail)
            for match in self._ends.finditer(probe):
                if match.end() > new:
                    # A marker at the very end may get one more bracket: one more look then.
                    self._due = 2 if match.end() == len(probe) else 1
        self._tail = probe[-_TAIL:]
        window = len(self._text) + self._size
        if self._due and self._spent <= _PATIENCE * window + _SMALL:
            self._due -= 1
            return self._go_on()
        return self._show_more(chunk) if self.waiting == "text" else []

    def _show_more(self, chunk: str) -> list[Piece]:
        """Shows text that is no block, whatever the undecided place before it turns out to be."""
        if self._limbo:
            return []
        text = self._unshown + chunk
        clear = self._clear(text)
        self._shown += clear
        self._unshown = text[clear:]
        # Longer than any marker that a model writes: it is shown when the place is decided.
        self._limbo = self._limbo or len(self._unshown) > _SMALL
        return [text[:clear]] if clear else []

    def _clear(self, text: str) -> int:
        """Up to where ``text``, which the pass has not gone over, may be shown."""
        opener_match = self._opener.search(text)
        begun = self._begun_opener.search(text, self._last(text, 0))
        self._limbo = opener_match is not None
        return min([match.start() for match in (opener_match, begun) if match is not None], default=len(text))

    def _last(self, text: str, at: int) -> int:
        """Where, at the earliest, something may have begun that the end of the text cuts in two."""
        if not self._signs:
            return at
        bracket = max(text.rfind("<", at), text.rfind("＜", at), text.rfind("《", at))
        # Before the last bracket of a marker there may be a few others, and blanks.
        return max(at, bracket - 64) if bracket >= 0 else len(text)

    def _go_on(self) -> list[Piece]:
        self._text += "".join(self._more)
        self._more.clear()
        self._size = 0
        self.waiting = ""
        out = self._walk()
        self.calm = self._is_calm()
        return out

    def _walk(self) -> list[Piece]:
        """Goes as far as the text decides; ends with a window that begins shortly before that place."""
        text, context = self._text, self.context
        source = source_of(text, self.base, self._action_end)
        if self._signs:
            source.low = self._at
        context.move(source, 0)
        self._source = source
        self._extents = None
        out: list[Piece] = []
        at, hold = self._at, -1
        while True:
            match = self._next(at)
            if hold < at:
                hold = self._hold(at)
            if context.enclosing is not None:
                left = context.leave(at, hold if match is None else min(hold, match.start()))
                if left != WAIT:
                    at = left
                    continue
            if match is None:
                at = max(at, hold)
                break
            start, end = match.span()
            kind = match.lastgroup or ""
            # What may follow a plug-in's marker nobody knows: one that is there, with a character behind it, is whole.
            if hold < start or (hold == start and (kind in _SURE or end == len(text))):
                at = max(at, hold)
                break
            then = self._take(source, match, out)
            if then < 0:
                at = start
                break
            at = then
            if context.enclosing is not None:
                hold = -1
        self._at = at
        context.pass_over(at)
        self._rest(out)
        self._trim()
        return out

    def _take(self, source: Source, match: re.Match[str], out: list[Piece]) -> int:
        """Takes what stands at a match; where the pass goes on, or -1 when it has to wait."""
        text, context = self._text, self.context
        start, end = match.span()
        kind = match.lastgroup or ""
        if kind == "run":
            return context.run(start, end)
        if kind == "observation":
            return context.observation(start, end)
        if kind == "mark":
            mark = self._marks.read(text, start)
            then = end if mark is None else context.mark(mark)
            if context.alone_closer:
                context.alone_closer = False
                self._show_up_to(start, out)
                out.append(TakenBack())
            return then
        if start > 0 and text[start - 1] == "\\":
            return end
        return self._block(source, kind, start, end, out)

    def _reach(self) -> Extents:
        """How far blocks reach in the text so far; few texts ask."""
        if self._extents is None:
            self._extents = Extents(self._source, self._openers, self.options)
        return self._extents

    def _next_block(self, at: int, before: int) -> Span | Literal["wait"] | None:
        """The first complete block in a part of the text, as the reader finds it; ``wait`` when text to come tells."""
        seen = self._other_open, self._other_seen
        span = self._reach().first(at, before, self._is_settled)
        self._other_open, self._other_seen = seen
        if span is None:
            begun = self._begun_opener.search(self._text, self._last(self._text, at))
            return "wait" if begun is not None and begun.start() < before else None
        return span

    def _is_settled(self, protocol: CallProtocol, opener: Span, block: Block) -> bool:
        size = len(self._text)
        if settled(protocol, self._source, opener, block, size) == "no":
            return False
        return extras_of(protocol.id).requests is None or not self._quoted(*opener)

    def _show_up_to(self, place: int, out: list[Piece]) -> None:
        shown = self._shown - self.base
        if place > shown:
            out.append(self._text[shown:place])
            self._shown = self.base + place

    def _hold(self, at: int) -> int:
        """Where something begins that the end of the text may cut in two; the end where nothing does."""
        text = self._text
        run = run_at_end(text, at)
        if self.context.enclosing is not None:
            # A blank line may end it, or the end of a comment.
            run = min(run, max(at, len(text.rstrip(" \t\r\n"))), max(at, len(text.rstrip("-"))))
        last = self._last(text, at)
        if last < len(text):
            begun = self._begun.search(text, last)
            if begun is not None:
                run = min(run, begun.start())
        return min(run, self._marks.begun(text, at))

    def _rest(self, out: list[Piece]) -> None:
        """Shows what may be shown behind the place where the pass stopped."""
        start = self._shown - self.base
        clear = max(start, self._at)
        if self.waiting != "block" and clear < len(self._text):
            clear += self._clear(self._text[clear:])
        self._unshown = self._text[clear:]
        if clear > start:
            out.append(self._text[start:clear])
            self._shown = self.base + clear

    def _next(self, at: int) -> re.Match[str] | None:
        text = self._text
        if not self._signs:
            return self._markers.search(text, at)
        # One set of characters is looked for many times as fast as all that can begin with them.
        match, loud = self._markers.match, self._loud
        while (sign := loud(text, at)) is not None:
            at = sign.start()
            if (hit := match(text, at)) is not None:
                return hit
            at += 1
        return None

    def _block(self, source: Source, kind: str, start: int, end: int, out: list[Piece]) -> int:
        """Reads the block at an opening marker; where the pass goes on, or -1 when it has to wait."""
        text, context, options = self._text, self.context, self.options
        if self._blocks >= options.max_blocks:
            return end
        protocol = _protocol(kind)
        block, verdict = self._read(source, protocol, start, end)
        if verdict == "no":
            self._wait(protocol, text, start, end, limited=context.limit(end) is not None or context.depth > 0)
            return -1
        if block.state == "mention":
            self._spent = 0
            return max(end, block.span[1])
        setting = context.setting(block.span, reasoning_runs=options.reasoning_calls == "run")
        if setting == "wait":
            return -1
        self._spent = 0
        self._blocks += 1
        context.block(block)
        entry = Found(block, self.base, text, context.fence, setting)
        entry.open = verdict == "place"
        entry.last_end = self._action_end
        if extras_of(kind).elements:
            self._action_end = self.base + block.span[1]
        shown = self._shown - self.base
        if block.span[0] > shown:
            out.append(text[shown : block.span[0]])
        out.append(entry)
        self._shown = self.base + max(block.span[1], end)
        return max(block.span[1], end)

    def _read(self, source: Source, protocol: CallProtocol, start: int, end: int) -> tuple[Block, Verdict]:
        """The block at an opening marker as the reader reads it, and whether it stays so."""
        context, options, size = self.context, self.options, len(self._text)
        opener = (start, end)
        limit = context.limit(end)
        if limit is None:
            block = protocol.read_block(source, opener, size, options)
            verdict = settled(protocol, source, opener, block, size)
            if verdict == "yes" and extras_of(protocol.id).requests is not None and self._quoted(start, end):
                verdict = "no"
            if verdict == "no" or block.state in ("complete", "mention"):
                return block, verdict
            limit = context.thought_end(end)
            if limit is None or limit >= block.span[1]:
                return block, verdict
        block = protocol.read_block(source, opener, limit, options)
        if block.state not in ("complete", "mention"):
            extents = self._reach()
            longer = extents.behind(protocol, opener, limit)
            if longer is None and extents.open_behind(protocol, opener, limit):
                return block, "no"
            return longer or block, "yes"
        return block, settled(protocol, source, opener, block, limit)

    def _quoted(self, start: int, end: int) -> bool:
        """Whether a definition or result block is open before a request: then its end may still come (VC326)."""
        self._look_for_other(start)
        return self._other_open and OTHER_BLOCK.fullmatch(self._text, start, end) is None

    def _look_for_other(self, until: int) -> None:
        text = self._text
        at = max(self._other_seen - self.base, 0)
        if text.find("[", at, until) >= 0:
            for match in _OTHER.finditer(text, at, until + _TAIL):
                start = match.start()
                if start >= until:
                    break
                before = text[max(0, start - _TAIL) : start].rstrip(" \t")
                self._other_open = match.group("close") is None and before[-1:] in ("", "\n", "\r")
                at = match.end()
        self._other_seen = self.base + max(at, until)

    def _wait(self, protocol: CallProtocol, text: str, start: int, end: int, *, limited: bool) -> None:
        brought = extras_of(protocol.id)
        other = brought.requests is not None and OTHER_BLOCK.fullmatch(text, start, end) is not None
        self.waiting = "text" if other else "block"
        self._spent += len(text) - start
        usual = brought.ends
        ends = usual or re.compile(re.escape(protocol.markers.close[-1:] or ">"))
        self._usual_ends = limited or usual is not None
        if limited:
            ends = _ANY_END
        if brought.elements and BARE_PAIR.match(text, end) is not None:
            ends = re.compile(rf"{ends.pattern}|\n")
        self._ends = ends
        self._tail = text[-_TAIL:]
        if self.open_at != self.base + start:
            self._due = 1 if ends.search(self._tail) is not None else 0
        self.open_at, self.open_in = self.base + start, protocol.id

    def _trim(self) -> None:
        """Lets go of the text that nothing looks back at."""
        cut = min(self._at, self._shown - self.base) - BEHIND
        if cut <= BEHIND // 4 or (cut < _SMALL and self.waiting):
            return
        if self._sets_aside:
            self._look_for_other(cut)
        gone, self._text = self._text[:cut], self._text[cut:]
        self.base += cut
        self._at -= cut
        self.context.move(Source(self._text), cut, gone)
        if self.context.asks_for_json:
            self.context.json_document()


def source_of(text: str, base: int, action_end: int) -> Source:
    """A part of the text for the readers, with what they remember of the text before it."""
    source = Source(text)
    if action_end > base:
        # Where the ACTION reader looks back to at most (``action/protocol.py``).
        source.memo["action-end"] = action_end - base
    return source


def _protocol(name: str) -> CallProtocol:
    protocol = find_protocol(name)
    if protocol is None:
        raise ValueError(f"unknown protocol {name!r}")
    return protocol


@cache
def _markers(ids: tuple[str, ...], tags: tuple[str, ...]) -> re.Pattern[str]:
    """Everything that the pass takes note of. Closing markers outside blocks are text, and so is what is escaped."""
    parts = [
        openers(ids, tags).pattern,
        f"(?P<mark>{marks_of(tags).every})",
        OBSERVATION.pattern,
        f"(?P<run>{TICKS.pattern}|{TILDES.pattern})",
    ]
    return re.compile("|".join(parts))
