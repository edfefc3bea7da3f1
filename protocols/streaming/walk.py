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
from tamis.protocols.context import THINK, THINK_CLOSE, Context, Fence
from tamis.protocols.model import Block, ReadOptions
from tamis.protocols.patterns import lazy
from tamis.protocols.plugins import BUILT_IN, find_protocol
from tamis.protocols.positions import Span
from tamis.protocols.streaming.hold import begun_marker, begun_opener, opener, quiet
from tamis.protocols.streaming.settled import BARE_PAIR, ENDS, OTHER_BLOCK, OTHER_CLOSE, THOUGHT_END, settled

BEHIND = 4_352
"""Characters before the place of the pass that are kept: more than anything looks back."""
_PATIENCE = 8
"""How often, at most, the length of an open block is read in vain."""
_SMALL = 2_048
_HELD = 256
_TAIL = 80
_OTHER = lazy(f"{OTHER_BLOCK.pattern}|(?P<close>{OTHER_CLOSE.pattern})")
_NOTHING = re.compile(r"(?!)")
_SURE = frozenset({*BUILT_IN, "think", "run"})
CANDIDATE = r"(?=<[\s<|｜\[［【/\u00ad\u200b-\u200f\u2060\ufeff]{0,12}+(?i:ac|t|r|e)|＜|《《)"
"""Where the reader looks for a marker."""


class Found:
    """A block that is certain, with the text around it that its places count in."""

    __slots__ = ("args", "aside", "base", "block", "dropped", "fence", "last_end", "open", "raw", "thought")

    def __init__(self, block: Block, base: int, text: str, fence: Fence | None, *, thought: bool) -> None:
        self.take(block, base, text)
        self.fence = fence
        self.thought = thought
        self.last_end = 0
        """Where, in the whole text, the last ACTION block before it ends."""
        """True when it stands in reasoning."""
        self.open = False
        """True while text behind it may still keep it from running."""
        self.dropped = False
        """Whether it is not run for what stands before or around it (ruling 14)."""
        self.aside: bool | None = None
        """Whether it is set aside (reasoning, an example) and its text is shown; None while that is not known."""

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


class Walk:
    """One pass; ``feed`` gives the pieces of text and the blocks that became certain, in order."""

    def __init__(self, ids: tuple[str, ...], options: ReadOptions) -> None:
        self.ids = ids
        self.options = options
        self.context = Context(Source(""))
        self.base = 0
        """Where the window begins in the whole text."""
        self.waiting: Literal["", "block", "text"] = ""
        """``block``: for the end of an open block; ``text``: for the end of what looks like a quoted block, which is shown."""
        self.open_at = 0
        """While a block is open: where it opens."""
        self.open_in = ""
        """While a block is open: its protocol."""
        self._text = ""
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
        self._ends = _NOTHING
        self._other_open = False
        self._other_seen = 0
        self._markers = _markers(ids)
        self._begun = begun_marker(ids)
        self._begun_opener = begun_opener(ids)
        self._opener = opener(ids)
        self._quiet = quiet(ids)

    def feed(self, chunk: str) -> list[str | Found]:
        """Takes the next piece of the text."""
        if self.waiting:
            return self._keep(chunk)
        held = len(self._text) - self._at
        if held == 0 and self._quiet is not None and self._quiet.search(chunk) is None:
            return self._pass(chunk)
        self._more.append(chunk)
        self._size += len(chunk)
        if self._size * 4 < held - _HELD:
            # A very long beginning of a marker is looked at again only as it grows.
            return []
        return self._go_on()

    def _pass(self, chunk: str) -> list[str | Found]:
        """Text in which nothing can begin."""
        text = self._text + chunk
        shown = text[self._shown - self.base :]
        if self.context.fence is not None:
            self.context.move(Source(text), 0)
            self.context.pass_over(len(text))
        self._text = text
        self._at = len(text)
        self._shown = self.base + self._at
        self._trim()
        return [shown] if shown else []

    def _keep(self, chunk: str) -> list[str | Found]:
        """Text behind the opening marker of a block that is not decided yet."""
        self._more.append(chunk)
        self._size += len(chunk)
        probe = self._tail + chunk
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

    def _show_more(self, chunk: str) -> list[str | Found]:
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
        found = self._opener.search(text)
        begun = self._begun_opener.search(text, self._last(text, 0))
        self._limbo = found is not None
        return min([match.start() for match in (found, begun) if match is not None], default=len(text))

    def _last(self, text: str, at: int) -> int:
        """Where, at the earliest, something may have begun that the end of the text cuts in two."""
        if self._quiet is None:
            return at
        bracket = max(text.rfind("<", at), text.rfind("＜", at), text.rfind("《", at))
        # Before the last bracket of a marker there may be a few others, and blanks.
        return max(at, bracket - 64) if bracket >= 0 else len(text)

    def _go_on(self) -> list[str | Found]:
        self._text += "".join(self._more)
        self._more.clear()
        self._size = 0
        self.waiting = ""
        return self._walk()

    def _walk(self) -> list[str | Found]:
        """Goes as far as the text decides; ends with a window that begins shortly before that place."""
        text, context = self._text, self.context
        source = source_of(text, self.base, self._action_end)
        context.move(source, 0)
        out: list[str | Found] = []
        at, hold = self._at, -1
        while True:
            match = self._next(at)
            if hold < at:
                hold = self._hold(at)
            if match is None:
                at = max(at, hold)
                break
            start, end = match.span()
            kind = match.lastgroup or ""
            # What may follow a plug-in's marker nobody knows: one that is there, with a character behind it, is whole.
            if hold < start or (hold == start and (kind in _SURE or end == len(text))):
                at = max(at, hold)
                break
            if kind == "run":
                if context.waits(start, end):
                    at = start
                    break
                at = context.run(start, end)
            elif kind == "think":
                context.think(start, end)
                at = end
            elif start > 0 and text[start - 1] == "\\":
                at = end
            else:
                then = self._block(source, kind, start, end, out)
                if then < 0:
                    at = start
                    break
                at = then
        self._at = at
        context.pass_over(at)
        self._rest(out)
        self._trim()
        return out

    def _hold(self, at: int) -> int:
        """Where something begins that the end of the text may cut in two; the end where nothing does."""
        text = self._text
        begun = self._begun.search(text, self._last(text, at))
        run = min(max(at, len(text.rstrip("`"))), max(at, len(text.rstrip("~"))))
        return run if begun is None else min(run, begun.start())

    def _rest(self, out: list[str | Found]) -> None:
        """Shows what may be shown behind the place where the pass stopped."""
        start = self._shown - self.base
        clear = max(start, self._at)
        if self.waiting != "block":
            clear += self._clear(self._text[clear:])
        self._unshown = self._text[clear:]
        if clear > start:
            out.append(self._text[start:clear])
            self._shown = self.base + clear

    def _next(self, at: int) -> re.Match[str] | None:
        return self._markers.search(self._text, at)

    def _block(self, source: Source, kind: str, start: int, end: int, out: list[str | Found]) -> int:
        """Reads the block at an opening marker; where the pass goes on, or -1 when it has to wait."""
        text, context, options = self._text, self.context, self.options
        protocol = _protocol(kind)
        limit = len(text)
        thought = context.depth > 0 and options.reasoning_calls != "run"
        if thought:
            closing = source.next_token(THINK_CLOSE, end, limit)
            if closing is not None:
                limit = closing[0]
        block = protocol.read_block(source, (start, end), limit, options)
        verdict = settled(protocol, source, (start, end), block, limit, options)
        if kind == "vcp" and verdict == "yes" and limit == len(text) and self._quoted(start, end):
            verdict = "no"
        if verdict == "no":
            self._wait(protocol, text, start, end, thought=thought)
            return -1
        self._spent = 0
        if block.state == "mention":
            return max(end, block.span[1])
        context.block(block)
        found = Found(block, self.base, text, context.fence, thought=thought)
        found.open = verdict == "place"
        found.last_end = self._action_end
        if kind == "action":
            self._action_end = self.base + block.span[1]
        shown = self._shown - self.base
        if block.span[0] > shown:
            out.append(text[shown : block.span[0]])
        out.append(found)
        self._shown = self.base + max(block.span[1], end)
        return max(block.span[1], end)

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

    def _wait(self, protocol: CallProtocol, text: str, start: int, end: int, *, thought: bool) -> None:
        other = protocol.id == "vcp" and OTHER_BLOCK.fullmatch(text, start, end) is not None
        self.waiting = "text" if other else "block"
        self._spent += len(text) - start
        ends = ENDS.get(protocol.id) or re.compile(re.escape(protocol.markers.close[-1:] or ">"))
        if thought:
            ends = re.compile(f"{ends.pattern}|{THOUGHT_END.pattern}")
        if protocol.id == "action" and BARE_PAIR.match(text, end) is not None:
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
        if "vcp" in self.ids:
            self._look_for_other(cut)
        self._text = self._text[cut:]
        self.base += cut
        self._at -= cut
        if self.context.fence is not None:
            self.context.move(Source(self._text), cut)


def source_of(text: str, base: int, action_end: int) -> Source:
    """A part of the text for the readers, with what they remember of the text before it."""
    source = Source(text)
    if action_end > base:
        # Where the ACTION reader looks back to at most (``action/protocol.py``).
        source.memo["action-end"] = action_end - base
    return source


def _protocol(name: str) -> CallProtocol:
    found = find_protocol(name)
    if found is None:
        raise ValueError(f"unknown protocol {name!r}")
    return found


@cache
def _markers(ids: tuple[str, ...]) -> re.Pattern[str]:
    """Everything that the pass takes note of. Closing markers outside blocks are text, and so is what is escaped."""
    own = [f"(?P<{name}>{_protocol(name).opener.pattern})" for name in ids if name in BUILT_IN]
    others = [f"(?P<{name}>{_protocol(name).opener.pattern})" for name in ids if name not in BUILT_IN]
    built_in = "|".join([*own, f"(?P<think>{THINK})"])
    return re.compile("|".join([f"(?:{CANDIDATE})(?:{built_in})", *others, "(?P<run>`++|~{3,}+)"]))
