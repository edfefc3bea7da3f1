"""The ACTION protocol (seeds 000 and 003): ``<ACTION>`` around a tool's element, or around ``<tool_id>`` and ``<inputs>``.

A block is read by the canonical path, which takes only what is written as the seeds say, or else by the tolerant one, which
reads what models write and reports every assumption. Must not know what surrounds a block.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from tamis.protocols.action.canonical import read_canonical
from tamis.protocols.action.decode import (
    INPUT_ALIASES,
    INPUTS_ALIASES,
    TOOL_ID_ALIASES,
    WRAPPERS,
    control_characters,
    has_text,
)
from tamis.protocols.action.findings import (
    Element,
    Findings,
    leave_to_a_person,
    report_dashes,
    report_emptied,
    settle_doubts,
)
from tamis.protocols.action.match import Match, match_block
from tamis.protocols.action.shapes import Shapes
from tamis.protocols.action.tokens import MARKER_KEY, TagIndex, Token, Tokens
from tamis.protocols.base import (
    ELEMENT_STYLE,
    Begun,
    Extras,
    Markers,
    PlainCall,
    PromptTool,
    Shape,
    Source,
    Style,
    WriteOptions,
    Written,
)
from tamis.protocols.catalogue import severity
from tamis.protocols.invisible import ZERO_WIDTH
from tamis.protocols.model import MAX_BLOCK_CHARS, MAX_NAME_CHARS, Block, Call, Diag, Edit, Fix, ReadOptions, ToolHint
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span

if TYPE_CHECKING:
    from tamis.protocols import lossless
    from tamis.protocols.contract import ExecutionResult
    from tamis.protocols.editing import Editing
    from tamis.protocols.grammar.json_rules import SchemaRules
    from tamis.protocols.streaming.partial import Progress
    from tamis.protocols.streaming.settled import Verdict


# Whether what stands behind ``<ACTION>`` in the middle of a line is the start of a call that was cut off, or a mention. Prose names the markup (``the
# <ACTION><tool> form``), a model writes it and goes on with content. Nothing runs either way; the difference is whether anybody learns of the lost
# call (ruling 6).


_NAME = r"[^\W\d][\w.:\-/]{0,255}+"
_TAG = lazy(rf"(?P<gap>\s{{0,400}}+)<(?P<name>{_NAME})(?P<attrs>\s[^<>]{{0,400}}+)?>")
_TAG_HALF = lazy(rf"\s{{0,400}}+<{_NAME}(?:\s++[\w\-]++\s*+=\s*+(?:[\"'][^<>]*+)?)?\Z")
_COMMENT_OR_SECTION = lazy(r"\s{0,400}+<!(?:--|\[CDATA\[)")
_REST_BLANK = lazy(r"\s{0,400}+\Z")
_PROSE = lazy(r"[ \t]|[`\"'’”)\]}.,;:!?…，。；：！？、）】」/|\\]")
_ID = lazy(r"(?:[ \t]*+\r?\n\s{0,400}+)?\w[\w.:\-/@]{0,255}+\s{0,400}+(?:\Z|<)")
_JSON = lazy(r"\s{0,400}+\{\s{0,400}+(?:[\"}]|\Z)")
_PLACEHOLDERS = frozenset({"name", "tag", "function_name"}) | WRAPPERS | TOOL_ID_ALIASES


def starts_call(text: str, start: int, end: int, tools: Container[str]) -> bool:
    """True when ``text[start:end]``, which follows an opening marker and closes no element, begins a call.

    That is an element, with only blanks before it, that either the text ends in or that holds the start of a parameter. What
    prose puts behind a tag (a blank on the line, a quote, a full stop) makes it a mention, except where a registered tool or
    a line break between the tags says otherwise. Looks at a bounded stretch.
    """
    part = text[start : min(end, start + 2_000)]
    whole = end - start == len(part)
    tag = _TAG.match(part)
    if tag is None:
        return whole and _TAG_HALF.match(part) is not None
    at, name = tag.end(), tag.group("name")
    if name.lower() in TOOL_ID_ALIASES and _ID.match(part, at) is not None:
        return True
    if whole and _REST_BLANK.match(part, at) is not None:
        return name.lower() not in _PLACEHOLDERS or tag.group("attrs") is not None or "\n" in tag.group("gap")
    if _COMMENT_OR_SECTION.match(part, at) is not None or _JSON.match(part, at) is not None:
        return True
    inner = _TAG.match(part, at)
    if inner is None:
        return whole and _TAG_HALF.match(part, at) is not None
    if name in tools or "\n" in inner.group("gap"):
        return True
    return inner.end() == len(part) or _PROSE.match(part, inner.end()) is None


_OPENER = lazy(
    rf"<\s{{0,8}}+[{ZERO_WIDTH}]?(?i:action)[{ZERO_WIDTH}]?(?:\s[^<>]*+)?>"
    r"|<(?i:action)(?=\s{0,40}+<[A-Za-z_`])|＜(?i:action)[＞>]|<(?i:action)＞"
)
_WHOLE_TAG = lazy(r"[^>]*>|<(?!\s*(?:[/!\w]|\Z))")
_AT_ONCE = ("<ACTION>", " <ACTION>", "\n<ACTION>")
_AGAIN = lazy(r"\s*+<(?i:action)>")
_CLOSER = "</ACTION>"
_FOREIGN_CLOSE = lazy(r"\s{0,400}+(?P<mark><\|\[(?i:END_TOOL)\]\|>|<<<\[(?i:END_TOOL_REQUEST)\]>>>)")
_MARKERS = Markers(
    open="<ACTION>",
    close=_CLOSER,
    stray=r"</\s{0,8}+(?i:action)\s*+>|＜/(?i:action)＞",
    escaped=r"&lt;(?i:action)&gt;",
    bare_sign="</tool_id>",
    bare=lazy(r"<tool_id>[^<]{1,256}</tool_id>\s*+<inputs>"),
    one_block=True,
)


class ActionProtocol(Extras):
    """Reads ACTION blocks; see ``CallProtocol``."""

    title = "ACTION"
    begins = lazy(r"\s*+<[^/\s]")
    ends = lazy(r"(?i:action)[^<]{0,64}?[>＞]")
    loses_types = True
    elements = True
    shapes: Mapping[Shape, str] = {"tag": "the tool id as tag", "inputs": "`<tool_id>` and `<inputs>`"}
    stops = True
    styles: Mapping[str, str] = {"inputs": ELEMENT_STYLE}
    observed = "line"
    malformed = "Malformed XML in ACTION block"

    @property
    def id(self) -> str:
        """``action``."""
        return "action"

    @property
    def markers(self) -> Markers:
        """``<ACTION>`` and ``</ACTION>``."""
        return _MARKERS

    @property
    def opener(self) -> re.Pattern[str]:
        """``<ACTION>`` in any letter case, with attributes, blanks or without its bracket."""
        return _OPENER

    def read_block(self, source: Source, opener: Span, limit: int, options: ReadOptions) -> Block:
        """Reads the block at ``opener``; never raises."""
        text = source.text
        start, end = opener
        if text[end - 2 : end] == "/>":
            return Block("action", opener, opener, state="mention")
        if _in_section(source, start):
            return Block("action", opener, opener, state="mention")
        block = self._read(source, opener, limit, options)
        if block.state != "mention":
            source.memo[_LAST_END] = block.span[1]
        return block

    def _read(self, source: Source, opener: Span, limit: int, options: ReadOptions) -> Block:
        text = source.text
        start, end = opener
        if text.startswith("<ACTION>", start) and not text.startswith(_AT_ONCE, end):
            block = read_canonical(source, opener, limit, options)
            if block is not None:
                return block
        again = _AGAIN.match(text, end, limit)
        if again is not None:
            return _given_up(text, opener, end)
        return _Reader(source, opener, limit, options).read()

    def editing(self) -> Editing:
        """How an editor serves a block; see ``Extras``."""
        from tamis.protocols.action.editing import EDITING

        return EDITING

    def block_tokens(self, text: str, block: Block) -> list[lossless.Token]:
        """A block as tokens without gaps; see ``Extras``."""
        from tamis.protocols.action.editing import action_tokens

        return action_tokens(text, block)

    def begun(self) -> Begun:
        """The beginnings of its markers; see ``Extras``."""
        from tamis.protocols.streaming.settled import INSIDE, begun, word_begun

        marker = begun("<", r"\s{0,8}+", INSIDE, *word_begun("action"), r"(?:\s[^<>]*+)?")
        wide = begun("＜", *word_begun("action"))
        return Begun(marker + "|" + wide + r"|<(?i:action)\s{0,40}+<\Z")

    def settled(self, source: Source, opener: Span, block: Block, limit: int) -> Verdict:
        """What is certain of a block; see ``Extras``."""
        from tamis.protocols.streaming.settled import action_settled

        return action_settled(source, opener, block, limit)

    def progress(self, tools: dict[str, ToolHint]) -> Progress:
        """A new follower of a block; see ``Extras``."""
        from tamis.protocols.streaming.partial import ActionProgress

        del tools
        return ActionProgress("action")

    def instructions(self, shape: Shape) -> tuple[str, ...]:
        """How a model is told to write a call; see ``Extras``."""
        from tamis.protocols.prompt.listing import INPUTS_INSTRUCTIONS, TAG_INSTRUCTIONS

        return INPUTS_INSTRUCTIONS if shape == "inputs" else TAG_INSTRUCTIONS

    def definitions(self, tools: Sequence[PromptTool], style: Style, shape: Shape) -> str:
        """The definitions of tools for calls in a shape; see ``Extras``."""
        from tamis.protocols.prompt.listing import action_definitions

        return action_definitions(tools, style, shape)

    def grammar_call(self, tool: PromptTool, schemas: SchemaRules, shape: Shape) -> str:
        """The body of a rule for a call; see ``Extras``."""
        from tamis.protocols.grammar.text_calls import InputsCall, TagCall, call_of

        return call_of(InputsCall if shape == "inputs" else TagCall, self, tool, schemas, shape)

    def grammar_answer(self, shape: Shape) -> str:
        """The calls of an answer; see ``Extras``."""
        # Several pairs of id and inputs in one block are read with a warning (AX162).
        return f'"<ACTION>" {"call" if shape == "inputs" else "call+"} "\\n</ACTION>"'

    def parse_tool_requests(self, text: str, options: ReadOptions | None = None) -> list[Call]:
        """The calls of a text; see ``CallProtocol``."""
        from tamis.protocols.engine import parse_tool_requests

        return parse_tool_requests(self.id, text, options)

    def format_tool_results(self, results: Sequence[ExecutionResult]) -> str:
        """The observations of results; see ``CallProtocol``."""
        from tamis.protocols.engine import format_tool_results

        return format_tool_results("action", results)

    def write_calls(self, calls: Sequence[PlainCall], options: WriteOptions) -> Written:
        """The calls in canonical spelling; see ``CallProtocol``."""
        from tamis.protocols.action.write import write_calls

        return write_calls(calls, options)

    def generate_tool_definitions(self, tools: Sequence[PromptTool], style: Style = "full") -> str:
        """The definitions of tools for a prompt; see ``CallProtocol``."""
        return self.definitions(tools, style, "tag")


ACTION = ActionProtocol()
_LAST_END = "action-end"
_SECTION = lazy(r">\s{0,40}<!\[CDATA\[")


def _in_section(source: Source, start: int) -> bool:
    """True when the marker stands in the CDATA section of an element outside any block: a value whose block was not found."""
    end = source.memo.get(_LAST_END, 0)
    low = max(end if isinstance(end, int) else 0, start - _MAX_SECTION)
    opened = source.text.rfind("<![CDATA[", low, start)
    if opened < 0 or source.text.find("]]>", opened, start) >= 0:
        return False
    return _SECTION.match(source.text, max(low, source.text.rfind(">", low, opened)), start) is not None


_MAX_SECTION = 4_000


class _Reader:
    """The tolerant path for one block."""

    def __init__(self, source: Source, opener: Span, limit: int, options: ReadOptions) -> None:
        self.source = source
        self.text = source.text
        self.opener = opener
        self.limit = limit
        self.options = options
        self.findings = Findings()
        self.block = Block("action", opener, opener)
        self.inline = _inline(self.text, opener)
        self.goes_on = False
        """Another closing marker stands behind the block's: tags written anew could make the two of them look alike (F4)."""

    def read(self) -> Block:
        tokens = Tokens(self.source, self.opener[1], self.limit)
        match = match_block(tokens, self._index())
        if match.nested is not None:
            return self._nested(match)
        if match.close is None:
            return self._mentioned(match) or self._unclosed(match, self.limit, None)
        return self._closed(match, match.close)

    def _index(self) -> TagIndex:
        index = self.source.memo.get("action-tags")
        if not isinstance(index, TagIndex):
            index = self.source.memo["action-tags"] = TagIndex(self.source)
        return index

    def _closed(self, match: Match, close: int) -> Block:
        token = match.tokens.list[close]
        block = self.block
        block.close = (token.start, token.end)
        block.span = (self.opener[0], token.end)
        if block.span[1] - block.span[0] > MAX_BLOCK_CHARS:
            self.findings.add("TC021", self.opener, {"limit": MAX_BLOCK_CHARS}, error=True)
            return self._settle([])
        index = self._index()
        self.goes_on = index.next_close(MARKER_KEY, token.end) < index.next_open(MARKER_KEY, token.end)
        shapes = self._shapes(match)
        elements = shapes.elements(0, close, self.opener[1], token.start, "block")
        if not elements and self._is_mention(self.opener[1], token.start, token.end):
            return self._mention()
        self._opener_spelling()
        if self.text[token.start : token.end] != _CLOSER:
            self._closer_spelling(token)
        calls = shapes.calls(elements, self._opener_token())
        if not calls and not any(severity(diag) == "error" for diag in self.findings.list):
            blank = not has_text(self.text, self.opener[1], token.start)
            self.findings.add("TC012" if blank else "AX101", self.opener, error=True)
        return self._settle(calls)

    def _unclosed(self, match: Match, end: int, nested: Token | None) -> Block:
        """A block without ``</ACTION>``: repaired behind complete calls, cut off otherwise (rulings 1 and 18)."""
        tokens = match.tokens.list
        stop = next((i for i, token in enumerate(tokens) if token.start >= end), len(tokens))
        shapes = self._shapes(match)
        shapes.end = self.opener[1]
        elements = shapes.elements(0, stop, self.opener[1], end, "block", closed=False)
        if nested is not None and (shapes.cut or not elements):
            return _given_up(self.text, self.opener, end, call=self._starts_call(end))
        if not elements and not shapes.cut:
            cut_here = not has_text(self.text, self.opener[1], end) and not self.inline and not self.options.complete
            if not cut_here and not self._starts_call(end):
                return self._mention()
            # Half a tag at the end is no noise.
            self.findings.list = [diag for diag in self.findings.list if diag.code != "TC011"]
        elif (
            self.inline
            and self.options.complete
            and shapes.cut
            and not self._closes_any(match, stop)
            and not self._starts_call(end)
        ):
            return self._mention()
        self._opener_spelling()
        calls = shapes.calls(elements, self._opener_token())
        if (
            shapes.cut
            or not calls
            or _half(calls, elements)
            or any(diag.code == "AX120" for diag in self.findings.list)
            or (nested is None and _cut_tag(self.text, shapes.end, end))
        ):
            self.block.state = "truncated"
            self.block.span = (self.opener[0], end)
            self.findings.add(
                "TC001", self.opener, {"protocol": "ACTION", "construct": _construct(tokens, stop)}, error=True
            )
            return self._settle(calls)
        foreign = _FOREIGN_CLOSE.match(self.text, shapes.end, self.limit) if nested is None else None
        if foreign is not None:
            return self._closed_by_other(foreign, calls)
        self.block.span = (self.opener[0], shapes.end)
        where = "the end of the text" if not has_text(self.text, shapes.end, self.limit) else "the last complete call"
        if nested is None and not self.options.complete:
            self.block.state = "truncated"
            self.findings.add("TC002", self.opener, {"close": _CLOSER, "where": where}, error=True)
            return self._settle(calls)
        edit = Edit(shapes.end, shapes.end, _CLOSER)
        self.findings.add(
            "TC002", self.opener, {"close": _CLOSER, "where": where}, edits=(edit,), title=f"Insert {_CLOSER}"
        )
        return self._settle(calls)

    def _closed_by_other(self, close: re.Match[str], calls: list[Call]) -> Block:
        """A block that another protocol's marker closes (TC005)."""
        span = close.span("mark")
        block = self.block
        block.close, block.span = span, (self.opener[0], span[1])
        args: dict[str, str | int] = {"a": "<ACTION>", "b": close.group("mark")}
        cut = not self.options.complete
        if cut:
            block.state = "truncated"
        self.findings.add("TC005", span, args, edits=(Edit(*span, _CLOSER),), title=f"Write {_CLOSER}", error=cut)
        return self._settle(calls)

    def _nested(self, match: Match) -> Block:
        """An opener behind the block's elements, in none of them: the block ends before it, or is given up for it (TC006)."""
        token = match.tokens.list[match.nested or 0]
        return self._unclosed(match, token.start, token)

    def _mentioned(self, match: Match) -> Block | None:
        """The marker as a word of a sentence, with a block somewhere behind it; None where the marker opens a block itself."""
        if match.quoted is None or not self.inline:
            return None
        token = match.tokens.list[match.quoted]
        if self._closes_any(match, match.quoted) or self._starts_call(token.start):
            return None
        return _given_up(self.text, self.opener, token.start)

    def _starts_call(self, end: int) -> bool:
        return starts_call(self.text, self.opener[1], end, self.options.tools)

    def _mention(self) -> Block:
        return Block("action", self.opener, self.opener, state="mention")

    def _is_mention(self, start: int, end: int, close_end: int) -> bool:
        """``<ACTION>…</ACTION>`` in a sentence, with nothing that could be a call inside (ruling 6)."""
        body = self.text[start:end]
        if len(body) > 80 or "\n" in body or "<" in body:
            return False
        line_end = self.text.find("\n", close_end, close_end + 200)
        after = self.text[close_end : line_end if line_end >= 0 else close_end + 200]
        return self.inline or bool(after.strip())

    def _closes_any(self, match: Match, stop: int) -> bool:
        return any(token.partner >= 0 or token.kind in ("self", "cdata") for token in match.tokens.list[:stop])

    def _shapes(self, match: Match) -> Shapes:
        for diag in match.diagnostics:
            self.findings.list.append(diag)
        shapes = Shapes(self.text, match.tokens.list, match.inner_end, self.findings, self.options)
        shapes.opener_start = self.opener[0]
        return shapes

    def _opener_token(self) -> Token:
        token = Token("open", *self.opener)
        raw = self.text[self.opener[0] : self.opener[1]]
        match = re.search(r"(?i:action)", raw)
        start = self.opener[0] + (match.end() if match is not None else 0)
        end = self.opener[1] - 1 if raw.endswith((">", "＞")) else self.opener[1]
        while start < end and self.text[start] in ZERO_WIDTH:
            start += 1
        token.attributes = (start, end) if self.text[start:end].strip() else None
        return token

    def _opener_spelling(self) -> None:
        start, end = self.opener
        raw = self.text[start:end]
        if raw == "<ACTION>" or (raw.startswith("<ACTION") and raw[7:8].isspace() and raw.endswith(">")):
            return
        attributes = self._opener_token().attributes
        rest = self.text[attributes[0] : attributes[1]] if attributes is not None else ""
        edit = Edit(start, end, f"<ACTION{rest}>")
        self.findings.add(
            "TC004", self.opener, {"raw": raw, "canonical": "<ACTION>"}, edits=(edit,), title="Write <ACTION>"
        )

    def _closer_spelling(self, token: Token) -> None:
        raw = self.text[token.start : token.end]
        if raw.startswith("</ACTION") and raw.endswith(">") and not raw[8:-1].strip():
            return
        edit = Edit(token.start, token.end, _CLOSER)
        self.findings.add(
            "TC004",
            (token.start, token.end),
            {"raw": raw, "canonical": _CLOSER},
            edits=(edit,),
            title=f"Write {_CLOSER}",
        )

    def _settle(self, calls: list[Call]) -> Block:
        """Puts findings and calls together and says what may run (ruling 1)."""
        block, findings = self.block, self.findings
        self._controls(calls)
        settle_doubts(self.text, findings, calls)
        report_emptied(self.text, findings, calls)
        report_dashes(self.text, findings)
        failed = any(severity(diag) == "error" for diag in findings.list)
        if findings.list:
            leave_to_a_person(findings, block.span[1], every=failed or self.goes_on)
        if failed and block.state == "complete":
            block.state = "rejected"
        for call in calls:
            call.complete = block.state != "truncated"
            call.executable = not failed
            start, end = call.span
            others = [other.span for other in calls if other is not call]
            for diag in findings.list:
                if not diag.repair or severity(diag) != "warning":
                    continue
                inside = start <= diag.span[0] < end
                if inside or not any(s <= diag.span[0] < e for s, e in others[:_MAX_SHARED]):
                    call.repairs.append(diag)
        block.calls = calls
        block.diagnostics = sorted(findings.list, key=_place)
        block.comments = findings.comments
        return block

    def _controls(self, calls: list[Call]) -> None:
        for at in control_characters(self.text, *self.block.span):
            name = next((p.name for call in calls for p in call.params if p.span[0] <= at < p.span[1]), "the block")
            char = self.text[at]
            level: Literal["error", "warning"] = "error" if char == "\x00" else "warning"
            fix = Fix("Remove the character", (Edit(at, at + 1, ""),), "unsafe")
            args: dict[str, str | int] = {"hex": f"{ord(char):04X}", "param": name}
            self.findings.list.append(Diag("TC014", (at, at + 1), args, level, fix))


_MAX_SHARED = 64


def _given_up(text: str, opener: Span, end: int, *, call: bool = False) -> Block:
    """An outer marker without a block of its own: the inner one is taken (TC006); ``call``: it began a call."""
    block = Block("action", opener, opener, state="mention")
    if call or not _inline(text, opener):
        # Without the marker a run of backticks behind it may begin a line, and with it a fence.
        quoted = any(mark in text[opener[1] : end] for mark in ("`", "~~~"))
        fix = Fix("Remove the outer marker", (Edit(*opener, ""),), "unsafe" if quoted else "safe")
        block.diagnostics = [Diag("TC006", opener, fix=fix, repair=True)]
    return block


def _half(calls: list[Call], elements: list[Element]) -> bool:
    """True when an inputs-shaped call lacks its inputs, or ends behind an input that no ``<inputs>`` closes: more was to come."""
    if not elements or all(call.shape != "inputs" for call in calls):
        return False
    return elements[-1].key in INPUT_ALIASES or all(element.key not in INPUTS_ALIASES for element in elements)


def _cut_tag(text: str, start: int, end: int) -> bool:
    """True when the text ends inside a tag behind the last complete element (rulings 18 and 51)."""
    at = start
    while at < end and text[at].isspace():
        at += 1
    rest = text[at : min(end, at + MAX_NAME_CHARS)]
    return rest.startswith("<") and end - at == len(rest) and _WHOLE_TAG.match(rest) is None


def _construct(tokens: list[Token], stop: int) -> str:
    open_names = [token.name for token in tokens[:stop] if token.kind == "open" and token.partner < 0 and not token.raw]
    return f"<{open_names[-1]}>" if open_names else "<ACTION>"


def _inline(text: str, opener: Span) -> bool:
    """True when something else stands before the marker on its line, as in a sentence."""
    start = max(0, opener[0] - 200)
    line = max(text.rfind("\n", start, opener[0]), text.rfind("\r", start, opener[0])) + 1
    before = text[max(line, start) : opener[0]]
    return bool(before.strip().strip(">*-_#•`"))


def _place(diag: Diag) -> Span:
    return diag.span
