"""Call JSON as a protocol: it can be asked for as ``json``, and ``auto`` takes it where a text is nothing else.

It has no markers: ``calljson/document.py`` reads whole texts. Written, it is ``{"toolName", "arguments"}`` (seed 004 §2.4), for several
calls a list of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from tamis.protocols.base import Extras, Markers, PlainCall, PromptTool, Shape, Source, Style, WriteOptions, Written
from tamis.protocols.contract import ExecutionResult
from tamis.protocols.inert import inert
from tamis.protocols.model import Block, Call, Json, ReadOptions
from tamis.protocols.observation import observation, plain
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span
from tamis.protocols.prompt.guard import guard_json
from tamis.protocols.prompt.listing import brief_of, description_of
from tamis.protocols.writing.proof import typed_faults, write_proved
from tamis.protocols.writing.values import Expectations, json_text

if TYPE_CHECKING:
    from tamis.protocols.contract import ExecutionResult
    from tamis.protocols.grammar.json_rules import SchemaRules


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

        del shape
        return INSTRUCTIONS

    def grammar_call(self, tool: PromptTool, schemas: SchemaRules, shape: Shape) -> str:
        """The body of a rule for a call; see ``Extras``."""
        from tamis.protocols.grammar.gbnf import json_call
        from tamis.protocols.grammar.json_rules import PLAIN

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

        return format_tool_results(results)

    def generate_tool_definitions(self, tools: Sequence[PromptTool], style: Style = "full") -> str:
        """A JSON list of definitions; see ``CallProtocol``."""

        return generate_tool_definitions(tools, style)

    def write_calls(self, calls: Sequence[PlainCall], options: WriteOptions) -> Written:
        """``{"toolName", "arguments"}``; see ``CallProtocol``."""

        return write_calls(calls, options)


JSON: Final = CallJsonProtocol()


# Writing call JSON: ``{"toolName", "arguments"}`` (seed 004 §2.4), results and definitions as JSON.


INSTRUCTIONS = (
    '- A call is an answer that is nothing but JSON, without a word before or behind it: `{"toolName": "tool", "arguments": {"parameter": "value"}}`. Several calls are a JSON list of such objects.',
)
"""How a model is told to write a call."""


def write_calls(calls: Sequence[PlainCall], options: WriteOptions) -> Written:
    """One document: the call, or a list of several; see ``CallProtocol``. ``meta`` can hold an ``id``."""
    return write_proved(_CallJson(options), calls, options)


class _CallJson:
    protocol = "json"
    title = "call JSON"

    def __init__(self, options: WriteOptions) -> None:
        self.expectations = Expectations(options.tools, "typed")

    def faults(self, call: PlainCall) -> list[tuple[str, str, str]]:
        """What call JSON has no place for."""
        return typed_faults(call)

    def text(self, calls: Sequence[PlainCall]) -> str:
        """The document."""
        contents = [_content(call) for call in calls]
        return json_text(contents[0] if len(contents) == 1 else list[Json](contents))


def _content(call: PlainCall) -> dict[str, Json]:
    content: dict[str, Json] = {"id": call.meta["id"]} if "id" in call.meta else {}
    return {**content, "toolName": call.tool_id, "arguments": dict(call.args)}


def format_tool_results(results: Sequence[ExecutionResult]) -> str:
    """One line of JSON for each result: ``{"toolName", "status", "result"}``, or ``error`` with the sentence of its observation.

    ``id`` is there when the call had one, ``toolName`` when the call could be read.
    """
    return "\n".join(inert(plain(json_text(_result(result)))) for result in results)


def _result(result: ExecutionResult) -> dict[str, Json]:
    content: dict[str, Json] = {} if result.tool_call_id is UNSET else {"id": result.tool_call_id}
    content |= {"toolName": result.tool_id} if result.tool_id else {}
    content["status"] = result.status
    if result.status == "success":
        content["result"] = None if result.output is UNSET else result.output
    else:
        content["error"] = observation(result, "action").removeprefix("Observation: ")
    return content


def generate_tool_definitions(tools: Sequence[PromptTool], style: Style = "full") -> str:
    """A JSON list of ``{toolName, description, parameters}``, by name; the compact style shortens the descriptions of tools."""
    definitions: list[Json] = [
        {
            "toolName": tool.name,
            "description": brief_of(tool) if style == "compact" else description_of(tool),
            "parameters": tool.parameters or {"type": "object", "properties": {}},
        }
        for tool in sorted(tools, key=lambda tool: tool.name)
    ]
    # A definition must not look like a marker of any protocol to whoever reads the prompt again.
    return guard_json(plain(json_text(definitions))) if definitions else ""
