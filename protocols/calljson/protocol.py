"""Call JSON as a protocol: it can be asked for as ``json``, and ``auto`` takes it where a text is nothing else.

It has no markers: ``calljson/document.py`` reads whole texts. Written, it is ``{"toolName", "arguments"}`` (seed 004 §2.4), for several
calls a list of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tamis.protocols.base import Extras, Markers, PlainCall, PromptTool, Shape, Source, Style, WriteOptions, Written
from tamis.protocols.model import Block, Call, ReadOptions
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span

if TYPE_CHECKING:
    from tamis.protocols.contract import ExecutionResult
    from tamis.protocols.grammar.json_schema_rules import SchemaRules


class CallJsonProtocol(Extras):
    """``{"toolName": …, "arguments": {…}}``, and the forms of OpenAI, Anthropic and MCP."""

    id = "json"
    title = "call JSON"
    meta = frozenset(("id",))
    whole_text = True
    opener = lazy(r"(?!)")
    markers = Markers(open="{", close="}", stray=r"(?!)", values="typed")

    def read_block(self, source: Source, opener: Span, limit: int, options: ReadOptions) -> Block:
        """No block has a marker of its own; see ``calljson/document.py``."""
        del source, limit, options
        return Block("json", opener, opener, None, "mention")

    def instructions(self, shape: Shape) -> tuple[str, ...]:
        """How a model is told to write a call; see ``Extras``."""
        from tamis.protocols.calljson.writing import INSTRUCTIONS

        del shape
        return INSTRUCTIONS

    def grammar_call(self, tool: PromptTool, schemas: SchemaRules, shape: Shape) -> str:
        """The body of a rule for a call; see ``Extras``."""
        from tamis.protocols.grammar.json_calls import json_call
        from tamis.protocols.grammar.json_text import PLAIN

        del shape
        return json_call(self, tool, schemas, PLAIN)

    def grammar_answer(self, shape: Shape) -> str:
        """The calls of an answer; see ``Extras``."""
        del shape
        return '(call | "[" ws call ws ("," ws call ws)* "]")'

    def parse_tool_requests(self, text: str, options: ReadOptions | None = None) -> list[Call]:
        """The calls of a text; see ``CallProtocol``."""
        from tamis.protocols.engine import parse_tool_requests

        return parse_tool_requests(self.id, text, options)

    def format_tool_results(self, results: Sequence[ExecutionResult]) -> str:
        """One JSON document of the results; see ``CallProtocol``."""
        from tamis.protocols.calljson.writing import format_tool_results

        return format_tool_results(results)

    def generate_tool_definitions(self, tools: Sequence[PromptTool], style: Style = "full") -> str:
        """A JSON list of definitions; see ``CallProtocol``."""
        from tamis.protocols.calljson.writing import generate_tool_definitions

        return generate_tool_definitions(tools, style)

    def write_calls(self, calls: Sequence[PlainCall], options: WriteOptions) -> Written:
        """``{"toolName", "arguments"}``; see ``CallProtocol``."""
        from tamis.protocols.calljson.writing import write_calls

        return write_calls(calls, options)


JSON: Final = CallJsonProtocol()
