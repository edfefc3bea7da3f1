"""VCP (seed 001 §4 and §7, rulings 27 to 30): a block read, by the strict walk (``vcp/dialect.py``) or else by the tolerant one
(``pairs/lexer.py``).

Both give the same pairs, from which ``vcp/calls.py`` makes the calls. Must not know tools beyond ``ReadOptions``.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from tamis.protocols.base import (
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
from tamis.protocols.invisible import IN_LAYOUT
from tamis.protocols.model import MAX_NAME_CHARS, Block, Call, Diag, Json, ReadOptions, ToolHint, escape_pointer
from tamis.protocols.pairs.lexer import lex
from tamis.protocols.pairs.walk import (
    block_of,
    doubled,
    empty_block,
    in_prose,
    mention,
    note_controls,
    note_marker,
    note_unterminated,
)
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span
from tamis.protocols.vcp.calls import META, make_calls
from tamis.protocols.vcp.dialect import (
    CLOSE,
    DIALECTS,
    HEAD,
    OPEN,
    OPENS,
    OTHER_BLOCK,
    OTHER_CLOSE,
    TAIL,
    dialect_of,
    lex_canonical,
    suffix_of,
)
from tamis.protocols.writing.proof import carries, write_proved
from tamis.protocols.writing.values import Expectations, excerpt, json_text

if TYPE_CHECKING:
    from tamis.protocols.contract import ExecutionResult
    from tamis.protocols.editing import Editing
    from tamis.protocols.grammar.json_rules import SchemaRules
    from tamis.protocols.lossless import Token
    from tamis.protocols.streaming.partial import Progress
    from tamis.protocols.streaming.settled import Verdict


class VcpProtocol(Extras):
    """``<<<[TOOL_REQUEST]>>>`` … ``<<<[END_TOOL_REQUEST]>>>`` with ``key:「始」value「末」``."""

    id = "vcp"
    title = "VCP"
    begins = lazy(r"\s*+[\w*\"'\-]")
    ends = lazy(r"(?i:request|exp|escape|definition|result)[^\w<]{0,8}[>》＞]")
    meta = frozenset(META)
    loses_types = True
    by_command = True
    observed = "block"
    opener = lazy(f"{OPENS.pattern}|{OTHER_BLOCK.pattern}")
    requests = OPENS
    markers = Markers(
        open=OPEN,
        close=CLOSE,
        values="text",
        stray=r"<{2,4}+\[(?i:END_TOOL_REQUEST(?:_?EXP)?)\]>{2,4}+",
        escaped=r"(?:&lt;){3}\[TOOL_REQUEST\](?:&gt;){3}",
        bare_sign=HEAD,
        bare=lazy(r"(?:tool_name)[ \t]*+[:：][ \t]*+「始」"),
        fence="example",
    )

    def read_block(self, source: Source, opener: Span, limit: int, options: ReadOptions) -> Block:
        """Reads the block opened at ``opener``; see ``CallProtocol``.

        A definition or result block is no request: it comes back as a mention that spans the whole of it (VC326).
        """
        text = source.text
        marker = text[opener[0] : opener[1]]
        if OTHER_BLOCK.fullmatch(marker):
            return _no_request(source, opener, limit, marker)
        if _quoted(source, opener, limit, options):
            return mention("vcp", opener, Diag("VC326", opener, {"marker": marker}))
        suffix = suffix_of(marker)
        dialect = DIALECTS[suffix]
        lexed = lex_canonical(source, opener[1], limit) if marker == OPEN else None
        if lexed is None:
            twice = doubled(text, opener, limit, dialect)
            if twice is not None:
                return twice
            lexed = lex(source, opener[1], limit, dialect, complete=options.complete)
            note_controls(lexed.findings, text, opener[1], lexed.end, lexed.pairs)
            if lexed.close is not None and _cut_marker(text, opener, lexed.close, options):
                lexed.close, lexed.stop, lexed.end, lexed.cut = None, "end", limit, "its closing marker"
        if suffix == "ESCAPE":
            lexed.findings.add("VC316", opener, minor=True)
        if not lexed.pairs:
            return empty_block(source, opener, limit, lexed, dialect, options)
        if in_prose(text, opener, lexed, dialect):
            return mention("vcp", opener)
        note_marker(lexed.findings, text, opener, dialect.open_text, dialect)
        if lexed.close is not None:
            note_marker(lexed.findings, text, lexed.close, dialect.close_text, dialect)
        truncated = note_unterminated(lexed, opener, dialect, options)
        dropped = lexed.close is None and not truncated
        calls = make_calls(text, lexed, opener, options)
        block = block_of(text, dialect, opener, lexed, calls, truncated=truncated, dropped=dropped)
        if suffix == "EXP":
            _make_inert(block, marker)
        return block

    def editing(self) -> Editing:
        """How an editor serves a block; see ``Extras``."""
        from tamis.protocols.vcp.editing import EDITING

        return EDITING

    def block_tokens(self, text: str, block: Block) -> list[Token]:
        """A block as tokens without gaps; see ``Extras``."""
        from tamis.protocols.pairs.lexer import pair_tokens

        return pair_tokens(text, block, dialect_of(text[slice(*block.open)]))

    def begun(self) -> Begun:
        """The beginnings of its markers; see ``Extras``."""
        from tamis.protocols.streaming.settled import BLANKS, GAP, begun, word_begun

        opener = begun(
            "[<《＜]{1,4}+",
            BLANKS,
            r"[\[［【]?+",
            BLANKS,
            *word_begun("tool"),
            GAP,
            *word_begun("request"),
            rf"[ \t_\-{IN_LAYOUT}EXPSCAexpsca]*+",
            r"[\]］】]?+",
            BLANKS,
            "[>》＞]{1,4}+",
        )
        letters = (f"(?i:{letter})" for letter in "tool_")
        return Begun(opener, begun("<{1,4}+", r"\[", *letters, "[A-Za-z]{0,12}+", r"\]", ">{1,4}+"))

    def settled(self, source: Source, opener: Span, block: Block, limit: int) -> Verdict:
        """What is certain of a block; see ``Extras``."""
        from tamis.protocols.streaming.settled import vcp_settled

        return vcp_settled(source, opener, block, limit)

    def progress(self, tools: dict[str, ToolHint]) -> Progress:
        """A new follower of a block; see ``Extras``."""
        from tamis.protocols.vcp.progress import VcpProgress

        return VcpProgress(tools)

    def instructions(self, shape: Shape) -> tuple[str, ...]:
        """How a model is told to write a call; see ``Extras``."""
        from tamis.protocols.prompt.vcp import INSTRUCTIONS

        del shape
        return INSTRUCTIONS

    def grammar_call(self, tool: PromptTool, schemas: SchemaRules, shape: Shape) -> str:
        """The body of a rule for a call; see ``Extras``."""
        from tamis.protocols.grammar.text_calls import VcpCall, call_of

        return call_of(VcpCall, self, tool, schemas, shape)

    def grammar_answer(self, shape: Shape) -> str:
        """The calls of an answer; see ``Extras``."""
        del shape
        return 'call ("\\n" call)*'

    def parse_tool_requests(self, text: str, options: ReadOptions | None = None) -> list[Call]:
        """The calls of a text; see ``CallProtocol``."""
        from tamis.protocols.engine import parse_tool_requests

        return parse_tool_requests(self.id, text, options)

    def format_tool_results(self, results: Sequence[ExecutionResult]) -> str:
        """The observations of results; see ``CallProtocol``."""
        from tamis.protocols.engine import format_tool_results

        return format_tool_results("vcp", results)

    def write_calls(self, calls: Sequence[PlainCall], options: WriteOptions) -> Written:
        """The calls in canonical spelling; see ``CallProtocol``."""

        return write_calls(calls, options)

    def generate_tool_definitions(self, tools: Sequence[PromptTool], style: Style = "full") -> str:
        """The definitions of tools for a prompt; see ``CallProtocol``."""
        from tamis.protocols.prompt.vcp import vcp_definitions

        return vcp_definitions(tools, style)


def _make_inert(block: Block, marker: str) -> None:
    """A block in upstream's spelling for examples is set aside (rulings 28, 44): shown with a hint, never run, its faults nobody's concern."""
    block.aside, block.context = True, "spelling"
    block.diagnostics = [
        Diag("VC328", block.open, {"marker": marker}),
        *(replace(diag, severity="hint", fix=None, repair=False) for diag in block.diagnostics),
    ]
    for call in block.calls:
        call.executable, call.repairs = False, []


def _cut_marker(text: str, opener: Span, close: Span, options: ReadOptions) -> bool:
    """Whether a closing marker at the end of the text still lacks brackets (rulings 1 and 51): it has fewer behind than before it,
    or, in a text that is known to be cut off, fewer than the opening marker."""
    raw = text[close[0] : close[1]]
    if close[1] != len(text):
        return False
    behind = len(raw) - len(raw.rstrip(">》＞"))
    before = len(raw) - len(raw.lstrip("<《＜"))
    if options.complete:
        return behind < before
    opened = text[opener[0] : opener[1]]
    return behind < max(before, len(opened) - len(opened.rstrip(">》＞")))


def _quoted(source: Source, opener: Span, limit: int, options: ReadOptions) -> bool:
    """Whether a request stands inside a definition or result block, as an example or as what a tool said."""
    text = source.text
    source = source.everywhere()
    starts, ends = source.tokens(OTHER_BLOCK)
    i = bisect_left(starts, opener[0]) - 1
    if i < 0 or source.next_token(OTHER_CLOSE, ends[i], opener[0]) is not None:
        return False
    if text[max(0, starts[i] - 80) : starts[i]].rstrip(" \t")[-1:] not in ("", "\n", "\r"):
        return False
    # In a text that was cut off the closing marker may still have come.
    return not options.complete or source.next_token(OTHER_CLOSE, opener[1], limit) is not None


def _no_request(source: Source, opener: Span, limit: int, marker: str) -> Block:
    close = source.next_token(OTHER_CLOSE, opener[1], limit)
    block = mention("vcp", opener, Diag("VC326", opener, {"marker": marker}))
    block.span = (opener[0], close[1] if close else opener[1])
    return block


VCP: Final = VcpProtocol()


# Writing VCP blocks, one per call (seed 001 §4.2, ruling 28). A value stands between 「始」 and 「末」 as it is; one that holds such marks itself stands
# between the ESCAPE marks. Everything that is no text is JSON text.


_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BATCH = re.compile(r"command[0-9]{1,9}")
_MARK = re.compile("「[始末]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def write_calls(calls: Sequence[PlainCall], options: WriteOptions) -> Written:
    """One block per call; see ``CallProtocol``.

    Without a schema everything but a text comes back as the JSON text that was written. Order stands for ``step``.
    """
    return write_proved(_Vcp(options), calls, options)


class _Vcp:
    protocol = "vcp"
    title = "VCP"

    def __init__(self, options: WriteOptions) -> None:
        self.expectations = Expectations(options.tools, "text")
        self._declared = {name: hint.properties for name, hint in options.tools.items()}

    def faults(self, call: PlainCall) -> list[tuple[str, str, str]]:
        """Keys that VCP reads otherwise, and what it has no place for."""
        problems = carries(call, "on_error", "retry", "request_id", "uris", "type_hints")
        declared = self._declared.get(call.tool_id, {})
        for name in call.meta:
            if name not in META or name in declared:
                problems.append(("/meta", f"the field '{name}'", "it is no field that the host reads for itself"))
        for name, value in call.args.items():
            path = f"/args/{escape_pointer(name)}"
            if (why := self._no_key(name, name in declared)) is not None:
                problems.append((path, f"parameter {excerpt(name)}", why))
            if isinstance(value, str):
                if (bad := _CONTROL.search(value)) is not None:
                    problems.append(
                        (path, f"the value of '{name}'", f"U+{ord(bad.group()):04X} is a control character")
                    )
                elif _MARK.search(value) and "ESCAPE」" in value:
                    problems.append(
                        (path, f"the value of '{name}'", "it holds both the marks of a value and ESCAPE marks")
                    )
        return problems

    def _no_key(self, name: str, declared: bool) -> str | None:
        if _KEY.fullmatch(name) is None:
            return "a key has only letters, digits, _ and -"
        if len(name) > MAX_NAME_CHARS:
            return f"a name has at most {MAX_NAME_CHARS} characters"
        if name.replace("_", "").replace("-", "").lower() == "toolname":
            return "that key names the tool"
        if _BATCH.fullmatch(name) is not None:
            return "a numbered command makes a batch of calls"
        if name in META and not declared:
            return "the host reads that field for itself, and the tool does not declare it"
        return None

    def text(self, calls: Sequence[PlainCall]) -> str:
        """The blocks, one under the other."""
        return "\n".join(self._block(call) for call in calls)

    def _block(self, call: PlainCall) -> str:
        pairs = [f"tool_name:{HEAD}{call.tool_id}{TAIL}"]
        pairs += [f"{name}:{self._value(call.tool_id, name, value)}" for name, value in call.args.items()]
        pairs += [f"{name}:{HEAD}{value}{TAIL}" for name, value in call.meta.items()]
        return f"{OPEN}\n" + ",\n".join(pairs) + f"\n{CLOSE}"

    def _value(self, tool_id: str, name: str, value: Json) -> str:
        if isinstance(value, str):
            escaped = _MARK.search(value) or value.startswith("」") or value.endswith("「")
            return f"「始ESCAPE」{value}「末ESCAPE」" if escaped else f"{HEAD}{value}{TAIL}"
        text = json_text(value, "「")
        text = text.replace("<", "\\u003c") if "<<" in text else text
        if isinstance(value, float) and value.is_integer():
            expectation = self.expectations.of(tool_id)
            whole = str(int(value))
            if not expectation.clean(name, text, value) and expectation.clean(name, whole, value):
                text = whole
        return f"{HEAD}{text}{TAIL}"
