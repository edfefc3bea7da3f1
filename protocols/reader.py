"""The reader: one pass over a text that finds the blocks of every protocol and says which of their calls may run.

It owns what no single protocol can know: reasoning, fences, inline code, stray markers and the order of blocks
(rulings 4 to 8). What a block holds is its protocol's matter. Must not know tools beyond ``ReadOptions``, files or LSP.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Literal

import msgspec

from tamis.protocols.base import CallProtocol, Source
from tamis.protocols.catalogue import severity
from tamis.protocols.context import THINK, THINK_CLOSE, Context
from tamis.protocols.envelope import unescaped, unwrapped
from tamis.protocols.model import Block, Call, Diag, Document, Edit, Fix, ReadOptions
from tamis.protocols.plugins import BUILT_IN, find_protocol, known_protocols

_MAX_MENTIONS = 1_000


# Where a marker can begin, cheap to look for: a literal ``<`` first, which the search jumps to, then what may follow it.
_CANDIDATE = re.compile(r"<(?=[\s<|｜\[［【/\u00ad\u200b-\u200f\u2060\ufeff]{0,12}+(?i:ac|t|r|e))")
_WIDE_CANDIDATE = re.compile(r"＜|《(?=《)")
_QUOTABLE = {"<": _CANDIDATE, "wide": _WIDE_CANDIDATE, "escaped": re.compile("&lt;")}
# One look at the first character tells nearly every text from a document of call JSON (W14).
_MAY_BE_JSON = frozenset("{[`~\ufeff \t\r\n")
_JSON_START = re.compile(r"[\ufeff \t\r\n]*+[{\[`~]")
_DEFAULTS = ReadOptions()
_OPEN_ENDS = frozenset({"TC001", "TC002", "TC003", "TC006", "TC009", "TC010", "VC301"})
"""Findings about a marker whose partner is missing."""
_TICKS = re.compile(r"`++")
# A literal beginning, which the search jumps to.
_FENCE_TICKS = re.compile(r"````*+")
_LINE_BREAK = re.compile(r"[\r\n]")
_TILDES = re.compile(r"~{3,}+")


def _protocol(name: str) -> CallProtocol:
    found = find_protocol(name)
    if found is None:
        raise ValueError(f"unknown protocol {name!r}; known: {', '.join(known_protocols())}")
    return found


def _own(name: str) -> str:
    protocol = _protocol(name)
    return f"(?P<{name}>{protocol.opener.pattern})|(?P<{name}_close>{protocol.markers.stray})"


@cache
def _markers(ids: tuple[str, ...]) -> re.Pattern[str]:
    """Everything that begins with a bracket: openers and closing markers of the built-in protocols, reasoning tags."""
    protocols = [_protocol(i) for i in ids if i in BUILT_IN]
    parts = [f"(?P<{protocol.id}>{protocol.opener.pattern})" for protocol in protocols]
    parts += [f"(?P<{protocol.id}_close>{protocol.markers.stray})" for protocol in protocols]
    return re.compile("|".join([*parts, f"(?P<think>{THINK})"]))


@cache
def _plugged(name: str) -> re.Pattern[str]:
    """The markers of a protocol that a plug-in brought; they may begin with anything."""
    return re.compile(_own(name))


@cache
def _escaped(ids: tuple[str, ...]) -> re.Pattern[str]:
    escaped = [found for i in ids if (found := _protocol(i).markers.escaped)]
    return re.compile("&lt;(?:" + "|".join(one.removeprefix("&lt;") for one in escaped) + ")" if escaped else r"(?!)")


class _Scan:
    """The places that matter, from left to right, each kind found by a search of its own that jumps over the rest."""

    def __init__(self, text: str, ids: tuple[str, ...]) -> None:
        self._text = text
        self._markers = _markers(ids)
        self._heads: dict[str, re.Match[str] | None] = {}
        self._ahead: dict[str, re.Match[str] | None] = {}
        self._find: dict[str, Callable[[int], re.Match[str] | None]] = {"marker": self._marker}
        for i in ids:
            if i not in BUILT_IN:
                search = _plugged(i).search
                self._find[i] = lambda at, search=search: search(text, at)
        # One character is looked for ten times as fast as several, and most texts have none of these.
        if "＜" in text or ("《" in text and "《《" in text):
            self._find["wide"] = self._wide
        if "&" in text and "&lt;" in text:
            self._find["escaped"] = lambda at: _escaped(ids).search(text, at)

    def anything(self) -> bool:
        """True when any marker stands in the text, so that a pass is due."""
        for kind in self._find:
            if self._next(kind, 0) is not None:
                break
        else:
            return False
        text = self._text
        if "`" in text:
            # A marker that a plug-in brought may begin with anything.
            plain = self._find.keys() <= {"marker", "wide", "escaped"}
            self._find["run"] = self._run if plain else lambda at: _TICKS.search(text, at)
        if "~" in text and "~~~" in text:
            self._find["tildes"] = lambda at: _TILDES.search(text, at)
        return True

    def next(self, at: int) -> re.Match[str] | None:
        """The first match that begins at or after ``at``."""
        if len(self._find) == 1:
            return self._next("marker", at)
        best: re.Match[str] | None = None
        for kind in self._find:
            match = self._next(kind, at)
            if match is not None and (best is None or match.start() < best.start()):
                best = match
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
        """The next run of backticks that can matter: one of a fence, or one on a line with something that it could quote.

        Inline code ends on its line, so that most of a text's is passed over.
        """
        text = self._text
        fence = self._of("fence", _FENCE_TICKS, at)
        kinds = [kind for kind in _QUOTABLE if kind == "<" or kind in self._find]
        while True:
            quotable = [found for kind in kinds if (found := self._of(kind, _QUOTABLE[kind], at)) is not None]
            if not quotable:
                return fence
            first = min(found.start() for found in quotable)
            line = max(text.rfind("\n", at, first), text.rfind("\r", at, first)) + 1
            if fence is not None and fence.start() < line:
                return fence
            line_break = _LINE_BREAK.search(text, first)
            end = line_break.end() if line_break is not None else len(text)
            run = _TICKS.search(text, max(line, at), end)
            if run is not None:
                return run
            at = end

    def _of(self, kind: str, pattern: re.Pattern[str], at: int) -> re.Match[str] | None:
        """The first match of a pattern at or after ``at``, looked for once."""
        if kind in self._ahead:
            found = self._ahead[kind]
            if found is None or found.start() >= at:
                return found
        found = self._ahead[kind] = pattern.search(self._text, at)
        return found

    def _marker(self, at: int) -> re.Match[str] | None:
        text, match = self._text, self._markers.match
        for candidate in _CANDIDATE.finditer(text, at):
            found = match(text, candidate.start())
            if found is not None:
                return found
        return None

    def _wide(self, at: int) -> re.Match[str] | None:
        text, match = self._text, self._markers.match
        for candidate in _WIDE_CANDIDATE.finditer(text, at):
            found = match(text, candidate.start())
            if found is not None:
                return found
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
    unfinished = False
    if text[:1] in _MAY_BE_JSON and protocol in ("auto", "json") and _JSON_START.match(text) is not None:
        from tamis.protocols.calljson.document import read_call_document

        found = read_call_document(source, protocol, options)
        if not isinstance(found, str):
            if options.strict:
                from tamis.protocols.strict import lift

                lift(found)
            return found
        unfinished = found == "unfinished"
    reading = _Reading(source, ids, options)
    if reading.scan.anything():
        reading.walk()
    document = reading.document()
    if unfinished:
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
        self.scan = _Scan(source.text, ids)
        self.context = Context(source)
        self.in_reasoning: set[int] = set()
        self.mentions = 0

    def walk(self) -> None:
        """Goes over the text once; blocks are read whole, so nothing inside their values counts (F13 to F16)."""
        text, context = self.text, self.context
        at = 0
        while (match := self.scan.next(at)) is not None:
            kind = match.lastgroup or ""
            start, end = match.span()
            at = end
            if not kind and text[start] != "&":
                at = context.run(start, end)
                if at > end:
                    self._quoted(end, at)
            elif kind == "think":
                if not context.think(start, end):
                    self._stray(start, end, hint=True)
            elif not kind:
                self.diagnostics.append(Diag("TC010", (start, end), fix=unescaped(self.source, start, end)))
            elif kind.endswith("_close"):
                self._stray(start, end, hint=context.fence is not None or context.depth > 0)
            elif start > 0 and text[start - 1] == "\\":
                self._mention(start, end)
            else:
                at = self._block(_protocol(kind), start, end)
        context.finish()

    def _block(self, protocol: CallProtocol, start: int, end: int) -> int:
        limit = len(self.text)
        reasoning = self.context.depth > 0 and self.options.reasoning_calls != "run"
        if reasoning:
            closing = self.source.next_token(THINK_CLOSE, end, limit)
            if closing is not None:
                limit = closing[0]
        block = protocol.read_block(self.source, (start, end), limit, self.options)
        if block.state == "mention":
            if block.diagnostics:
                if self.context.fence is not None:
                    # Without what else stands in it a fence is a wrapper, and what it holds may run.
                    block.diagnostics = [_for_a_person(diag) for diag in block.diagnostics]
                self.diagnostics.extend(_softened(block.diagnostics) if reasoning else block.diagnostics)
            else:
                self._mention(start, end)
            return max(end, block.span[1])
        self.context.block(block)
        if reasoning:
            self.in_reasoning.add(block.span[0])
        self.blocks.append(block)
        return max(block.span[1], end)

    def _quoted(self, start: int, end: int) -> None:
        """Markers in inline code are text (ruling 6)."""
        patterns = [_markers(self.ids), *(_plugged(i) for i in self.ids if i not in BUILT_IN)]
        for pattern in patterns:
            for match in pattern.finditer(self.text, start, end):
                if match.lastgroup != "think":
                    self._mention(match.start(), match.end())

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
        for block in self.blocks:
            if self._set_aside(block):
                continue
            spoken.append(block)
            if _protocol(block.protocol).markers.one_block:
                if block.protocol in seen and not self.options.allow_multiple_blocks:
                    _withhold(block)
                    block.state = "rejected" if block.state == "complete" else block.state
                    fix = Fix("Remove this block", (Edit(*block.span, ""),), "unsafe")
                    block.diagnostics.insert(0, Diag("TC007", block.open, fix=fix))
                seen.add(block.protocol)
        if not self.blocks:
            self._bare()
        calls: list[Call] = []
        for block in self.blocks:
            calls.extend(block.calls)
            diagnostics.extend(block.diagnostics)
        if diagnostics:
            diagnostics.sort(key=_place)
            _keep_apart(diagnostics)
        size = len(text)
        return Document(
            text=text,
            blocks=self.blocks,
            calls=calls,
            diagnostics=diagnostics,
            comments=[comment for block in self.blocks for comment in block.comments],
            response_span=(0, spoken[0].span[0]) if spoken else (0, size),
            trailing_span=(spoken[-1].span[1], size) if spoken else (size, size),
        )

    def _set_aside(self, block: Block) -> bool:
        """Withholds a block in reasoning or in an example, with a hint (rulings 5 and 7); False for any other."""
        start = block.span[0]
        if start in self.in_reasoning:
            show_only(block)
            block.diagnostics = [Diag("TC017", block.open), *_softened(block.diagnostics)]
            return True
        fence = self.context.fence_of.get(start)
        if fence is None:
            return False
        mode = self.options.fenced_calls
        wrapper = fence.wrapper and _protocol(block.protocol).markers.fence == "wrapper"
        if mode == "run" or (mode == "auto" and wrapper):
            block.diagnostics.insert(0, Diag("TC008", block.open, fix=unwrapped(self.text, fence, block)))
            if not fence.closed and not self.options.complete:
                # What follows could still make the fence an example (ruling 1).
                _withhold(block)
            return False
        show_only(block)
        marker = self.text[block.open[0] : block.open[1]]
        block.diagnostics = [Diag("TC009", block.open, {"marker": marker}), *_softened(block.diagnostics)]
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
