"""TAM (seed 002): a block read, by the strict walk (``tam/dialect.py``) or else by the tolerant one (``pairs/lexer.py``).

Both give the same pairs, from which ``tam/steps.py`` makes the calls. Must not know tools beyond ``ReadOptions``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

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
from tamis.protocols.model import Block, Call, ReadOptions, ToolHint
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
from tamis.protocols.tam.dialect import CLOSE, DIALECT, HEAD, OPEN, lex_canonical
from tamis.protocols.tam.keys import parse_key
from tamis.protocols.tam.steps import make_calls

if TYPE_CHECKING:
    from tamis.protocols.contract import ExecutionResult
    from tamis.protocols.convert.fields import BlockField
    from tamis.protocols.editing import Editing
    from tamis.protocols.grammar.json_schema_rules import SchemaRules
    from tamis.protocols.lossless import Token
    from tamis.protocols.streaming.partial import Progress
    from tamis.protocols.streaming.settled import Verdict


class TamProtocol(Extras):
    """``<|[REQUEST_TOOL]|>`` … ``<|[END_TOOL]|>`` with ``key:»»»value«««``."""

    id = "tam"
    title = "TAM"
    begins = lazy(r"\s*+[#\w*\"'\-]")
    ends = lazy(r"(?i:tools?|end)[^\w<]{0,8}[>＞]")
    modifiers = True
    stops = True
    observed = "line"
    opener = DIALECT.opens
    markers = Markers(
        open=OPEN,
        close=CLOSE,
        values="text",
        stray=r"<{1,2}+\|?\[(?i:END_TOOL)\]\|?>{1,2}+",
        escaped=r"&lt;\|\[REQUEST_TOOL\]\|&gt;",
        bare_sign=HEAD,
        bare=lazy(r"(?m:^)[ \t]*+command(?:_\d{1,4})?[ \t]*+[:：][ \t]*+»»»"),
    )

    def read_block(self, source: Source, opener: Span, limit: int, options: ReadOptions) -> Block:
        """Reads the block opened at ``opener``; see ``CallProtocol``."""
        text = source.text
        lexed = lex_canonical(source, opener[1], limit)
        if lexed is None:
            twice = doubled(text, opener, limit, DIALECT)
            if twice is not None:
                return twice
            lexed = lex(source, opener[1], limit, DIALECT, complete=options.complete)
            note_controls(lexed.findings, text, opener[1], lexed.end, lexed.pairs)
        if not lexed.pairs:
            return empty_block(source, opener, limit, lexed, DIALECT, options)
        if in_prose(text, opener, lexed, DIALECT):
            return mention("tam", opener)
        note_marker(lexed.findings, text, opener, OPEN, DIALECT)
        if lexed.close is not None and DIALECT.closes.fullmatch(text, *lexed.close):
            note_marker(lexed.findings, text, lexed.close, CLOSE, DIALECT)
        truncated = note_unterminated(lexed, opener, DIALECT, options)
        line = max(
            text.rfind("\n", max(0, opener[0] - 200), opener[0]), text.rfind("\r", max(0, opener[0] - 200), opener[0])
        )
        calls = make_calls(text, lexed, max(line + 1, 0 if opener[0] <= 200 else opener[0]), options)
        return block_of(text, DIALECT, opener, lexed, calls, truncated=truncated, dropped=False)

    def editing(self) -> Editing:
        """How an editor serves a block; see ``Extras``."""
        from tamis.protocols.tam.editing import EDITING

        return EDITING

    def block_tokens(self, text: str, block: Block) -> list[Token]:
        """A block as tokens without gaps; see ``Extras``."""
        from tamis.protocols.pairs.tiles import pair_tokens

        return pair_tokens(text, block, DIALECT)

    def begun(self) -> Begun:
        """The beginnings of its markers; see ``Extras``."""
        from tamis.protocols.streaming.hold import GAP, begun, word_begun

        opener = begun(
            "[<＜]",
            "[<＜]?+",
            rf"[|｜\[［【 \t{IN_LAYOUT}]*+",
            *word_begun("request"),
            GAP,
            *word_begun("tool"),
            rf"[\]］】|｜ \t{IN_LAYOUT}]*+",
            "[>＞]",
        )
        return Begun(opener)

    def settled(self, source: Source, opener: Span, block: Block, limit: int) -> Verdict:
        """What is certain of a block; see ``Extras``."""
        from tamis.protocols.streaming.settled import tam_settled

        return tam_settled(source, opener, block, limit)

    def progress(self, tools: dict[str, ToolHint]) -> Progress:
        """A new follower of a block; see ``Extras``."""
        from tamis.protocols.streaming.partial_pairs import TamProgress

        return TamProgress(tools)

    def instructions(self, shape: Shape) -> tuple[str, ...]:
        """How a model is told to write a call; see ``Extras``."""
        from tamis.protocols.prompt.tam import INSTRUCTIONS

        del shape
        return INSTRUCTIONS

    def grammar_call(self, tool: PromptTool, schemas: SchemaRules, shape: Shape) -> str:
        """The body of a rule for a call; see ``Extras``."""
        from tamis.protocols.grammar.text_calls import call_of

        return call_of("tam", self, tool, schemas, shape)

    def grammar_answer(self, shape: Shape) -> str:
        """The calls of an answer; see ``Extras``."""
        del shape
        return 'call ("\\n" call)*'

    def block_fields(self, text: str, block: Block) -> list[BlockField]:
        """The comments and shared parameters of a block, in order; see ``Extras``."""
        from tamis.protocols.convert.fields import BlockField

        own = text[block.span[0] : block.span[1]]
        named = {param.name for call in block.calls for param in call.params if param.origin == "pair"}
        fields: list[BlockField] = []
        for pair in lex(Source(own), block.open[1] - block.span[0], len(own), DIALECT, complete=True).pairs:
            key = parse_key(pair.raw).normal
            value = own[pair.value[0] : pair.value[1]].strip()
            if key == "comment" and key not in named:
                fields.append(BlockField("comment", value))
            elif key.startswith("common_") and key not in named:
                fields.append(BlockField("common", value))
        return fields

    def parse_tool_requests(self, text: str, options: ReadOptions | None = None) -> list[Call]:
        """The calls of a text; see ``CallProtocol``."""
        from tamis.protocols.engine import parse_tool_requests

        return parse_tool_requests(self.id, text, options)

    def format_tool_results(self, results: Sequence[ExecutionResult]) -> str:
        """The observations of results; see ``CallProtocol``."""
        from tamis.protocols.engine import format_tool_results

        return format_tool_results("tam", results)

    def write_calls(self, calls: Sequence[PlainCall], options: WriteOptions) -> Written:
        """The calls in canonical spelling; see ``CallProtocol``."""
        from tamis.protocols.tam.write import write_calls

        return write_calls(calls, options)

    def generate_tool_definitions(self, tools: Sequence[PromptTool], style: Style = "full") -> str:
        """The definitions of tools for a prompt; see ``CallProtocol``."""
        from tamis.protocols.prompt.tam import tam_definitions

        return tam_definitions(tools, style)


TAM: Final = TamProtocol()
