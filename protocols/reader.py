"""The reader: one pass over a text that finds the blocks of every protocol and says which of their calls may run.

It owns what no single protocol can know: reasoning, fences, inline code, stray markers and the order of blocks
(rulings 4 to 8). What a block holds is its protocol's matter. Must not know tools beyond ``ReadOptions``, files or LSP.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Literal

import msgspec

from tamis.protocols.base import CallProtocol, Source
from tamis.protocols.catalogue import severity
from tamis.protocols.context import CONTEXTS, MAY_BE_JSON, WAIT, Context
from tamis.protocols.dialects import unread_dialect
from tamis.protocols.extent import Extents
from tamis.protocols.invisible import IGNORABLE
from tamis.protocols.live import unescaped, unwrapped
from tamis.protocols.marks import OBSERVATION, PLAIN_OBSERVATION, TICKS, TILDES, Marks, marks_of
from tamis.protocols.model import REASONING_TAGS, Block, Call, Comment, Diag, Document, Edit, Fix, ReadOptions
from tamis.protocols.plugins import BUILT_IN, DOCUMENTS, find_protocol, known_protocols
from tamis.protocols.positions import Span
from tamis.protocols.quoting import REACH, has_marks

_MAX_MENTIONS = 1_000


_WIDE_CANDIDATE = re.compile(r"＜|《(?=《)")
_ESCAPED_CANDIDATE = re.compile("&lt;")
# One look at the first character tells nearly every text from a document of call JSON (W14).
_MAY_BE_JSON = frozenset("{[`~\ufeff \t\r\n")
_JSON_START = re.compile(r"[\ufeff \t\r\n]*+[{\[`~]")
_CALL_JSON = re.compile(r"(?:```|~~~)[^`\r\n]{0,200}+\s*+[{\[]")
"""The beginning of a code fence that may hold call JSON."""
_DEFAULTS = ReadOptions()
_OPEN_ENDS = frozenset({"TC001", "TC002", "TC003", "TC006", "TC009", "TC010", "VC301"})
"""Findings about a marker whose partner is missing."""
# A literal beginning, which the search jumps to.
_FENCE_TICKS = re.compile(r"````*+")
_WIDE_FENCE_TICKS = re.compile(rf"`(?:[{IGNORABLE}]*+`){{2,}}+")
_LINE_BREAK = re.compile(r"[\r\n]")


def _protocol(name: str) -> CallProtocol:
    protocol = find_protocol(name)
    if protocol is None:
        raise ValueError(f"unknown protocol {name!r}; known: {', '.join(known_protocols())}")
    return protocol


def _own(name: str) -> str:
    protocol = _protocol(name)
    return f"(?P<{name}>{protocol.opener.pattern})|(?P<{name}_close>{protocol.markers.stray})"


@cache
def _markers(ids: tuple[str, ...]) -> re.Pattern[str]:
    """Everything of the built-in protocols that begins with a bracket: openers and closing markers."""
    protocols = [_protocol(i) for i in ids if i in BUILT_IN]
    parts = [f"(?P<{protocol.id}>{protocol.opener.pattern})" for protocol in protocols]
    parts += [f"(?P<{protocol.id}_close>{protocol.markers.stray})" for protocol in protocols]
    return re.compile("|".join(parts) or r"(?!)")


@cache
def openers(ids: tuple[str, ...], tags: tuple[str, ...]) -> re.Pattern[str]:
    """The opening markers of the protocols, each a group of the protocol's name."""
    own = "|".join(f"(?P<{name}>{_protocol(name).opener.pattern})" for name in ids if name in BUILT_IN)
    parts = [f"(?={marks_of(tags).candidate.pattern}|＜|《《)(?:{own})"] if own else []
    parts += [f"(?P<{name}>{_protocol(name).opener.pattern})" for name in ids if name not in BUILT_IN]
    return re.compile("|".join(parts) or r"(?!)")


@cache
def _plugged(name: str) -> re.Pattern[str]:
    """The markers of a protocol that a plug-in brought; they may begin with anything."""
    return re.compile(_own(name))


@cache
def _escaped(ids: tuple[str, ...]) -> re.Pattern[str]:
    markers = [marker for name in ids if (marker := _protocol(name).markers.escaped)]
    rest = "|".join(marker.removeprefix("&lt;") for marker in markers)
    return re.compile(f"&lt;(?:{rest})" if markers else r"(?!)")


class _Scan:
    """The places that matter, from left to right, each kind found by a search of its own that jumps over the rest."""

    __slots__ = (
        *("_ahead", "_between", "_find", "_head", "_heads", "_ids", "_marks", "_match", "_paragraph", "_plain"),
        *("_places", "_quotable", "_text"),
    )

    def __init__(self, text: str, ids: tuple[str, ...], marks: Marks) -> None:
        self._text = text
        self._ids = ids
        self._match = _markers(ids).match
        self._marks = marks
        self._head: re.Match[str] | None = None
        """The next marker of a built-in protocol, or mark, that begins with ``<``."""
        self._find: dict[str, Callable[[int], re.Match[str] | None]] = {}
        """How the other kinds are looked for that the text has."""
        self._heads: dict[str, re.Match[str] | None] = {}
        self._ahead: dict[str, re.Match[str] | None] = {}
        self._between: Sequence[tuple[str, tuple[re.Pattern[str], ...]]] = ()
        self._places: dict[str, int] = {}
        """Where the character of such a mark stands next, at or behind the last place that was asked for; -1 where nowhere."""
        self._plain = True
        self._quotable: dict[str, re.Pattern[str]] = {}
        self._paragraph = (-1, 0)
        """The last place whose paragraph was looked for, and where that begins."""

    def anything(self) -> bool:
        """True when any marker stands in the text, so that a pass is due."""
        text, marks = self._text, self._marks
        head = self._head = self._marker(0)
        plain = self._plain = text.isascii()
        # One character is looked for ten times as fast as several, and most texts have none of these.
        if not plain and ("＜" in text or ("《" in text and "《《" in text)):
            self._find["wide"] = self._wide
        if "&" in text and "&lt;" in text:
            self._find["escaped"] = lambda at: _escaped(self._ids).search(text, at)
        if self._ids is not BUILT_IN:
            self._plug()
        if head is None and all(self._next(kind, 0) is None for kind in self._find):
            # Nothing but reasoning is told of a text without blocks.
            self._between = marks.literal
            if not marks.literal or self.next(0) is None:
                return False
        elif plain:
            self._between = marks.plain
        else:
            self._between = [other for other in marks.signs if other[0] in text]
        if "`" in text:
            # A marker that a plug-in brought may begin with anything.
            known = self._find.keys() <= {"wide", "escaped"}
            self._find["run"] = self._run if known else lambda at: TICKS.search(text, at)
        if "~" in text and ("~~~" in text or not plain):
            self._find["tildes"] = lambda at: TILDES.search(text, at)
        return True

    def _plug(self) -> None:
        """Adds the markers of protocols that plug-ins brought; of two at one place theirs come first."""
        text = self._text
        find: dict[str, Callable[[int], re.Match[str] | None]] = {}
        for i in self._ids:
            if i not in BUILT_IN:
                search = _plugged(i).search
                find[i] = lambda at, search=search: search(text, at)
        self._find = find | self._find

    def next(self, at: int) -> re.Match[str] | None:
        """The first match that begins at or after ``at``."""
        best = self._head
        if best is not None and best.start() < at:
            best = self._head = self._marker(at)
        for kind in self._find:
            match = self._next(kind, at)
            if match is not None and (best is None or match.start() < best.start()):
                best = match
        # What else marks a context counts only up to there, so that no block is searched for it.
        text = self._text
        end = best.start() if best is not None else len(text)
        places = self._places
        for sign, patterns in self._between:
            place = places.get(sign, 0)
            if place < 0:
                continue
            if place <= at:
                # One character is looked for many times as fast as a pattern.
                place = places[sign] = text.find(sign, at)
            while 0 <= place < end:
                match = _first(patterns, text, place)
                if match is not None:
                    best, end = match, place
                    break
                place = places[sign] = text.find(sign, place + 1)
        return best

    def _next(self, kind: str, at: int) -> re.Match[str] | None:
        heads = self._heads
        if kind in heads:
            head = heads[kind]
            if head is None or head.start() >= at:
                return head
        head = heads[kind] = self._find[kind](at)
        return head

    def _run(self, at: int) -> re.Match[str] | None:
        """The next run of backticks that can matter: one of a fence, or one in a paragraph before something that it could quote.

        Inline code ends in its paragraph, so that most of a text's is passed over.
        """
        text = self._text
        # Between backticks there may be what nobody sees.
        fence = self._of("fence", _FENCE_TICKS if self._plain else _WIDE_FENCE_TICKS, at)
        if not self._quotable:
            self._quotable = self._can_be_quoted()
        while True:
            ahead = [
                match for kind, pattern in self._quotable.items() if (match := self._of(kind, pattern, at)) is not None
            ]
            first = min((match.start() for match in ahead), default=len(text))
            if not ahead and fence is None:
                return None
            paragraph = self._paragraph_of(first, at)
            if fence is not None and fence.start() < max(paragraph, at):
                return fence
            run = TICKS.search(text, max(paragraph, at), first) if ahead else None
            if run is not None or not ahead:
                return run or fence
            at = first + 1

    def _can_be_quoted(self) -> dict[str, re.Pattern[str]]:
        """How the places are looked for that inline code or a fence could quote. The same for the whole text."""
        quotable = {"<": self._marks.candidate}
        if "wide" in self._find:
            quotable["wide"] = _WIDE_CANDIDATE
        if "escaped" in self._find:
            quotable["escaped"] = _ESCAPED_CANDIDATE
        quotable |= {
            pattern.pattern: pattern
            for sign, patterns in self._between
            if sign in self._text
            for pattern in patterns
            if pattern not in (OBSERVATION, PLAIN_OBSERVATION)
        }
        return quotable

    def _paragraph_of(self, place: int, at: int) -> int:
        """Where the paragraph of a place begins, looked for once behind ``at``; 0 when it begins before that."""
        if self._paragraph[0] != place:
            text = self._text
            blank = max(text.rfind("\n\n", at, place), text.rfind("\n\r\n", at, place))
            self._paragraph = (place, blank + 1)
        return self._paragraph[1]

    def _of(self, kind: str, pattern: re.Pattern[str], at: int) -> re.Match[str] | None:
        """The first match of a pattern at or after ``at``, looked for once."""
        if kind in self._ahead:
            ahead = self._ahead[kind]
            if ahead is None or ahead.start() >= at:
                return ahead
        ahead = self._ahead[kind] = pattern.search(self._text, at)
        return ahead

    def _marker(self, at: int) -> re.Match[str] | None:
        text = self._text
        at = text.find("<", at)
        if at < 0:
            return None
        match, marks = self._match, self._marks
        for candidate in marks.candidate.finditer(text, at):
            start = candidate.start()
            marker = match(text, start) or marks.match(text, start)
            if marker is not None:
                return marker
        return None

    def _wide(self, at: int) -> re.Match[str] | None:
        text, match, marks = self._text, self._match, self._marks
        for candidate in _WIDE_CANDIDATE.finditer(text, at):
            start = candidate.start()
            marker = match(text, start) or marks.match(text, start)
            if marker is not None:
                return marker
        return None


def _first(patterns: tuple[re.Pattern[str], ...], text: str, at: int) -> re.Match[str] | None:
    """The match at a place of the first pattern that matches there."""
    for pattern in patterns:
        match = pattern.match(text, at)
        if match is not None:
            return match
    return None


def read_text(text: str, protocol: str = "auto", options: ReadOptions | None = None) -> Document:
    """Reads every block of ``text`` in one protocol, or in all that ``auto`` stands for.

    Never raises, whatever the text (an unknown ``protocol`` is a ``ValueError``); linear in its length. Offsets are code points. ``calls`` holds the calls of all blocks
    in order, also those that may not run (``executable`` says so); ``diagnostics`` is sorted by place.
    """
    if options is None:
        options = _DEFAULTS
    ids = (protocol,) if protocol != "auto" else (*BUILT_IN, *options.also) if options.also else BUILT_IN
    source = Source(text)
    verdict = None
    if (
        text[:1] in _MAY_BE_JSON
        and (protocol == "auto" or protocol in DOCUMENTS)
        and _JSON_START.match(text) is not None
    ):
        from tamis.protocols.calljson.document import read_call_document

        verdict = read_call_document(source, protocol, options)
        if not isinstance(verdict, str):
            if options.strict:
                from tamis.protocols.strict import lift

                lift(verdict)
            return verdict
    reading = _Reading(source, ids, options)
    if verdict == "no" and options.complete:
        from tamis.protocols.calljson.document import broken_calls

        broken = broken_calls(text)
        reading.diagnostics += [broken] if broken is not None else []
    if reading.scan.anything():
        reading.walk()
    elif options.assume_open_reasoning and text:
        reading.context.finish()
    document = reading.document()
    if verdict == "unfinished":
        # What looks like a block may turn out to stand in an argument of call JSON (ruling 1).
        for block in document.blocks:
            _withhold(block)
    if options.strict:
        from tamis.protocols.strict import lift

        lift(document)
    return document


class _Reading:
    """One pass over one text."""

    def __init__(self, source: Source, ids: tuple[str, ...], options: ReadOptions) -> None:
        self.source = source
        self.text = source.text
        self.ids = ids
        self.options = options
        self.blocks: list[Block] = []
        self.diagnostics: list[Diag] = []
        self.marks = marks_of() if options.reasoning_tags is REASONING_TAGS else marks_of(options.reasoning_tags)
        self.scan = _Scan(source.text, ids, self.marks)
        self.calm: bool | None = None
        """True while no context was begun and no quotation mark stands in the text: most texts need no more. None: not known."""
        self.end = 0
        """Where the last block ends."""
        self.doubt = len(source.text) + 1
        """From where on the text that was cut off may still be set aside."""
        self.mentions = 0
        self.past: Span | None = None
        """The opening marker of the first block that is not read, since there are as many as may be. Marks of contexts count behind it too:
        a closer of reasoning sets aside what was read (ruling 45)."""

    @cached_property
    def context(self) -> Context:
        """What surrounds the place of the pass; many texts have nothing of it."""
        options = self.options
        context = Context(self.source, self.marks, assume_open=options.assume_open_reasoning, final=options.complete)
        context.whole = lambda at, before: self.extents.whole(at, before)
        context.around.next_block = lambda at, before: self.extents.first(at, before)
        context.begin(self.end)
        self.calm = False
        return context

    @cached_property
    def extents(self) -> Extents:
        """How far blocks reach; few texts ask."""
        return Extents(self.source, openers(self.ids, self.options.reasoning_tags), self.options)

    def walk(self) -> None:
        """Goes over the text once; blocks are read whole, so nothing inside their values counts (F13 to F16)."""
        text = self.text
        at = 0
        while True:
            match = self.scan.next(at)
            if self.calm is False and self.context.enclosing is not None:
                left = self.context.leave(at, len(text) if match is None else match.start())
                if left != WAIT:
                    at = left
                    continue
            if match is None:
                break
            kind = match.lastgroup or ""
            start, end = match.span()
            if kind in BUILT_IN and (start == 0 or text[start - 1] != "\\"):
                at = self._block(_protocol(kind), start, end)
            else:
                at = self._sign(match, kind, start, end)
        if self.calm is False:
            self.context.finish()

    def _sign(self, match: re.Match[str], kind: str, start: int, end: int) -> int:
        """Takes anything but the opening marker of a built-in protocol; where the pass goes on."""
        text = self.text
        if kind == "mark":
            at = self._certainly(lambda: self.context.mark(match), start)
            if self.context.alone_closer:
                self.context.alone_closer = False
                self._stray(start, end, hint=True)
            return at
        if kind == "observation":
            return self._certainly(lambda: self.context.observation(start, end), start)
        if not kind and text[start] != "&":
            return self._certainly(lambda: self.context.run(start, end), start)
        if self.past is not None:
            return end
        if not kind:
            self.diagnostics.append(Diag("TC010", (start, end), fix=unescaped(self.source, start, end)))
        elif kind.endswith("_close"):
            self._stray(start, end, hint=self._inside())
        elif start > 0 and text[start - 1] == "\\":
            self._mention(start, end)
        else:
            return self._block(_protocol(kind), start, end)
        return end

    def _certainly(self, ask: Callable[[], int], start: int) -> int:
        """What the context says of a mark; in a text that was cut off, what hangs on the rest makes all behind it doubtful."""
        at = ask()
        if at != WAIT:
            return at
        self.doubt = min(self.doubt, start)
        self.context.final = True
        at = ask()
        self.context.final = self.options.complete
        return at

    def _inside(self) -> bool:
        if self.calm is not False:
            return False
        context = self.context
        return context.fence is not None or context.depth > 0 or context.enclosing is not None

    def _block(self, protocol: CallProtocol, start: int, end: int) -> int:
        text = self.text
        if len(self.blocks) >= self.options.max_blocks:
            self.past = self.past or (start, end)
            return end
        if self.calm is None:
            self.calm = not self.options.assume_open_reasoning and text[:1] not in MAY_BE_JSON
        block = None
        calm = self.calm and (start == 0 or text[start - 1] in "\r\n")
        if calm and not has_marks(text[max(self.end, start - REACH) : start]):
            block = protocol.read_block(self.source, (start, end), len(self.text), self.options)
            if block.state == "complete":
                self.blocks.append(block)
                self.end = block.span[1]
                return max(self.end, end)
        context = self.context
        block = self._read(protocol, start, end, block)
        if block.state == "mention":
            reasoning = context.depth > 0 and self.options.reasoning_calls != "run"
            if block.diagnostics:
                if context.fence is not None:
                    # Without what else stands in it a fence is a wrapper, and what it holds may run.
                    block.diagnostics = [_for_a_person(diag) for diag in block.diagnostics]
                self.diagnostics.extend(_softened(block.diagnostics) if reasoning else block.diagnostics)
            else:
                self._mention(start, end)
            return max(end, block.span[1])
        block.context = self._setting(block) or block.context
        context.block(block)
        self.blocks.append(block)
        return max(block.span[1], end)

    def _read(self, protocol: CallProtocol, start: int, end: int, block: Block | None) -> Block:
        """The block at an opening marker: what ends its context ends it too, unless that is part of a value.

        ``block`` is how it was read where there is no context.
        """
        limit = self.context.limit(end)
        if limit is None:
            block = block or protocol.read_block(self.source, (start, end), len(self.text), self.options)
            if block.state in ("complete", "mention"):
                return block
            # Reasoning that was begun before the text may end in it.
            limit = self.context.thought_end(end)
            if limit is None or limit >= block.span[1]:
                return block
        return self.extents.within(protocol, (start, end), limit)

    def _setting(self, block: Block) -> str:
        context, runs = self.context, self.options.reasoning_calls == "run"
        kind = context.setting(block.span, reasoning_runs=runs)
        if kind != "wait":
            return kind
        self.doubt = min(self.doubt, block.span[0])
        context.final = True
        kind = context.setting(block.span, reasoning_runs=runs)
        context.final = self.options.complete
        return kind

    def _mention(self, start: int, end: int) -> None:
        self.mentions += 1
        if self.mentions <= _MAX_MENTIONS:
            self.diagnostics.append(Diag("TC009", (start, end), {"marker": self.text[start:end]}))

    def _stray(self, start: int, end: int, *, hint: bool) -> None:
        text = self.text
        self.mentions += 1
        if self.mentions > _MAX_MENTIONS:
            return
        level: Literal["warning", "hint"] = "hint"
        if not hint and _alone_on_line(text, start, end):
            level = "warning"
        fix = Fix("Remove the closing marker", (Edit(start, end, ""),), "unsafe")
        self.diagnostics.append(Diag("TC003", (start, end), {"close": text[start:end]}, level, fix))

    def document(self) -> Document:
        """Settles what only the whole text can tell, and puts the result together."""
        text = self.text
        diagnostics = self.diagnostics
        if text.startswith("\ufeff"):
            diagnostics.append(Diag("TC015", (0, 1), fix=Fix("Remove the byte order mark", (Edit(0, 1, ""),))))
        spoken: list[Block] = []
        seen: set[str] = set()
        several = len(self.blocks) > 1
        for block in self.blocks:
            if (self.calm is False and self._set_aside(block)) or block.aside:
                continue
            spoken.append(block)
            if several and _protocol(block.protocol).markers.one_block:
                if block.protocol in seen and not self.options.allow_multiple_blocks:
                    _withhold(block)
                    block.state = "rejected" if block.state == "complete" else block.state
                    fix = Fix("Remove this block", (Edit(*block.span, ""),), "unsafe")
                    block.diagnostics.insert(0, Diag("TC007", block.open, fix=fix))
                seen.add(block.protocol)
        if not self.blocks:
            self._bare()
        if self.past is not None:
            left = len(text) - self.past[0]
            diagnostics.append(Diag("TC028", self.past, {"limit": self.options.max_blocks, "n": left}))
        # One character is looked for many times as fast as several.
        if ("`" in text or "~" in text) and _CALL_JSON.search(text) is not None:
            from tamis.protocols.calljson.document import fenced_calls

            diagnostics += fenced_calls(text, self.blocks)
        calls: list[Call] = []
        comments: list[Comment] = []
        for block in self.blocks:
            calls += block.calls
            diagnostics += block.diagnostics
            comments += block.comments
        if diagnostics:
            diagnostics.sort(key=_place)
            _keep_apart(diagnostics)
        size = len(text)
        return Document(
            text=text,
            blocks=self.blocks,
            calls=calls,
            diagnostics=diagnostics,
            comments=comments,
            response_span=(0, spoken[0].span[0]) if spoken else (0, size),
            trailing_span=(spoken[-1].span[1], size) if spoken else (size, size),
            reasoning=self.context.reasoning if self.calm is False else [],
        )

    def _set_aside(self, block: Block) -> bool:
        """Withholds a block that stands where nothing is meant to run, with a hint (rulings 5, 7, 44); False for any other."""
        start = block.span[0]
        kind = "" if block.context == "spelling" else block.context
        thought = self.context.reasoning
        if thought and thought[0][0] <= start < thought[0][1] and self.options.reasoning_calls != "run":
            # A closer without an opener makes everything before it reasoning (ruling 45).
            kind = "reasoning"
        fence = None if kind else self.context.fence_of.get(start)
        if fence is not None:
            mode = self.options.fenced_calls
            wrapper = fence.wrapper and _protocol(block.protocol).markers.fence == "wrapper"
            if mode == "run" or (mode == "auto" and wrapper):
                wraps = Diag("TC008", block.open, fix=unwrapped(self.text, fence, block))
                if not fence.wrapper:
                    # What stands behind the fence could become a part of the block.
                    wraps = _for_a_person(wraps)
                elif mode == "auto" and not self.options.complete:
                    # What follows could still make the fence an example (ruling 1).
                    _withhold(block)
                    wraps = _for_a_person(wraps)
                block.diagnostics.insert(0, wraps)
                return False
            kind = "fence"
        if not kind:
            if start >= self.doubt:
                _withhold(block)
            return False
        block.context = kind
        show_only(block)
        hint = Diag("TC017", block.open) if kind == "reasoning" else set_aside(self.text, block, kind)
        # A fix could take away what sets the block aside.
        block.diagnostics = [hint, *map(_for_a_person, _softened(block.diagnostics))]
        return True

    def _bare(self) -> None:
        """A call without its envelope is no call (F30): a hint says what is missing."""
        for i in self.ids:
            markers = _protocol(i).markers
            sign = markers.bare_sign
            if markers.bare is None or not sign or sign[-1] not in self.text or sign not in self.text:
                continue
            if (match := markers.bare.search(self.text)) is not None:
                marker = f"a call without {markers.open}"
                self.diagnostics.append(Diag("TC009", match.span(), {"marker": marker}))
        hint = unread_dialect(self.text, self.ids)
        if hint is not None:
            self.diagnostics.append(hint)


def set_aside(text: str, block: Block, kind: str) -> Diag:
    """The finding about a block that is not run for the context in which it stands."""
    del text
    return Diag("TC018", block.open, {"context": CONTEXTS[kind]}, data={"context": kind})


def _withhold(block: Block) -> None:
    for call in block.calls:
        call.executable = False


def show_only(block: Block) -> None:
    """Sets a block aside: nothing of it runs, and its findings are hints, which are never repairs (interface, ``repairs``)."""
    block.aside = True
    _withhold(block)
    for call in block.calls:
        call.repairs = []


def _softened(diagnostics: list[Diag]) -> list[Diag]:
    """Findings of a block that is not run anyway: hints at most (ruling 1), and nobody's repairs."""
    return [
        d if severity(d) in ("hint", "information") else msgspec.structs.replace(d, severity="hint", repair=False)
        for d in diagnostics
    ]


def _alone_on_line(text: str, start: int, end: int) -> bool:
    # Looked at within bounds: a line of 100,000 stray markers must stay linear.
    before = text[max(0, start - 80) : start]
    after = text[end : end + 80]
    head = before.rsplit("\n", 1)[-1].rsplit("\r", 1)[-1]
    tail = after.split("\n", 1)[0].split("\r", 1)[0]
    return not head.strip() and not tail.strip()


def _for_a_person(diag: Diag) -> Diag:
    """The finding with a fix that is not applied unasked."""
    if diag.fix is None:
        return diag
    return msgspec.structs.replace(diag, fix=msgspec.structs.replace(diag.fix, applicability="unsafe"))


def _keep_apart(diagnostics: list[Diag]) -> None:
    """Leaves to a person what is behind something open (P4): what is written anew there could become a part of it.

    A fence, too, behind any marker: without the fence, that marker may find a block.
    """
    marked = behind = False
    for i, diag in enumerate(diagnostics):
        code, fix = diag.code, diag.fix
        if fix is not None and fix.applicability == "safe" and (behind or (marked and code == "TC008")):
            fix = msgspec.structs.replace(fix, applicability="unsafe")
            diagnostics[i] = msgspec.structs.replace(diag, fix=fix)
        if code in _OPEN_ENDS:
            marked = True
            safe = code in ("TC002", "TC006") and fix is not None and fix.applicability == "safe"
            behind = behind or not (safe or code in ("TC009", "TC010"))


def _place(diag: Diag) -> tuple[int, int]:
    return diag.span
