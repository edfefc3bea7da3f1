"""Hermes: ``<tool_call>{"name": …, "arguments": {…}}</tool_call>``, as Hermes and Qwen models write their calls.

A block that is one JSON object is read in one go; anything else goes the tolerant way (``hermes/blocks.py``), which owns the
findings. Values are typed JSON. Registered by entry point, as any protocol of a third party is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tamis.protocols.base import Extras, Markers, PlainCall, PromptTool, Shape, Source, Style, WriteOptions, Written
from tamis.protocols.hermes.blocks import read_block
from tamis.protocols.hermes.extent import CLOSE, OPEN, OPENS
from tamis.protocols.model import Block, Call, ReadOptions
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span

if TYPE_CHECKING:
    from tamis.protocols.contract import ExecutionResult
    from tamis.protocols.editing import Editing
    from tamis.protocols.grammar.json_schema_rules import SchemaRules


class HermesProtocol(Extras):
    """``<tool_call>`` … ``</tool_call>`` around JSON with ``name`` and ``arguments``."""

    id = "hermes"
    title = "Hermes"
    tool_key = "name"
    meta = frozenset(("id",))
    api = 1
    opener = OPENS
    markers = Markers(
        open=OPEN,
        close=CLOSE,
        stray=r"</(?i:tool_call)>",
        escaped=r"&lt;tool_call&gt;",
        bare_sign='"arguments"',
        bare=lazy(
            r'(?m:^)[ \t]*+\{[ \t]*+"name"[ \t]*+:[ \t]*+"[^"\n]{1,128}"[ \t]*+,[ \t]*+"arguments"[ \t]*+:[ \t]*+\{'
        ),
        values="typed",
        final_close=True,
    )

    def read_block(self, source: Source, opener: Span, limit: int, options: ReadOptions) -> Block:
        """Reads the block opened at ``opener``; see ``CallProtocol``."""
        return read_block(source, opener, limit, options)

    def editing(self) -> Editing:
        """How an editor serves a block; see ``Extras``."""
        from tamis.protocols.hermes.editing import EDITING

        return EDITING

    def instructions(self, shape: Shape) -> tuple[str, ...]:
        """How a model is told to write a call; see ``Extras``."""
        from tamis.protocols.hermes.writing import INSTRUCTIONS

        del shape
        return INSTRUCTIONS

    def grammar_call(self, tool: PromptTool, schemas: SchemaRules, shape: Shape) -> str:
        """The body of a rule for a call; see ``Extras``."""
        from tamis.protocols.grammar.json_calls import json_call
        from tamis.protocols.grammar.json_text import HERMES

        del shape
        content = json_call(self, tool, schemas, HERMES)
        return f'"<tool_call>\\n" {content} "\\n</tool_call>"' if content else ""

    def grammar_answer(self, shape: Shape) -> str:
        """The calls of an answer; see ``Extras``."""
        del shape
        return 'call ("\\n" call)*'

    def parse_tool_requests(self, text: str, options: ReadOptions | None = None) -> list[Call]:
        """The calls of a text; see ``CallProtocol``."""
        from tamis.protocols.engine import parse_tool_requests

        return parse_tool_requests(self.id, text, options)

    def format_tool_results(self, results: Sequence[ExecutionResult]) -> str:
        """``<tool_response>`` blocks; see ``CallProtocol``."""
        from tamis.protocols.hermes.writing import format_tool_results

        return format_tool_results(results)

    def generate_tool_definitions(self, tools: Sequence[PromptTool], style: Style = "full") -> str:
        """The prompt that Hermes models were trained on; see ``CallProtocol``."""
        from tamis.protocols.hermes.writing import generate_tool_definitions

        return generate_tool_definitions(tools, style)

    def write_calls(self, calls: Sequence[PlainCall], options: WriteOptions) -> Written:
        """One block for each call; see ``CallProtocol``."""
        from tamis.protocols.hermes.writing import write_calls
        from tamis.protocols.plugins import find_protocol, register

        # What is written is read again to prove it, also before anybody asked for the protocol.
        if find_protocol(self.id) is None:
            register(self)
        return write_calls(calls, options)


HERMES: Final = HermesProtocol()
