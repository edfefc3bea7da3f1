"""Hermes: ``<tool_call>{"name": …, "arguments": {…}}</tool_call>``, as Hermes and Qwen models write their calls.

A block that is one JSON object is read in one go; anything else goes the tolerant way (``hermes/blocks.py``), which owns the
findings. Values are typed JSON. Registered by entry point, as any protocol of a third party is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from tamis.protocols.base import Extras, Markers, PlainCall, PromptTool, Shape, Source, Style, WriteOptions, Written
from tamis.protocols.contract import ExecutionResult
from tamis.protocols.editing import Editing
from tamis.protocols.hermes.blocks import CLOSE, OPEN, OPENS, read_block
from tamis.protocols.inert import inert
from tamis.protocols.model import Block, Call, Json, ReadOptions
from tamis.protocols.observation import observation, plain
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span
from tamis.protocols.prompt.guard import guard, guard_json
from tamis.protocols.prompt.listing import brief_of, description_of
from tamis.protocols.schema.words import MAPS
from tamis.protocols.writing.proof import typed_faults, write_proved
from tamis.protocols.writing.values import Expectations, is_list, is_object, json_text

if TYPE_CHECKING:
    from tamis.protocols.contract import ExecutionResult
    from tamis.protocols.grammar.json_rules import SchemaRules


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

        return EDITING

    def instructions(self, shape: Shape) -> tuple[str, ...]:
        """How a model is told to write a call; see ``Extras``."""

        del shape
        return INSTRUCTIONS

    def grammar_call(self, tool: PromptTool, schemas: SchemaRules, shape: Shape) -> str:
        """The body of a rule for a call; see ``Extras``."""
        from tamis.protocols.grammar.gbnf import json_call
        from tamis.protocols.grammar.json_rules import HERMES

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

        return format_tool_results(results)

    def generate_tool_definitions(self, tools: Sequence[PromptTool], style: Style = "full") -> str:
        """The prompt that Hermes models were trained on; see ``CallProtocol``."""

        return generate_tool_definitions(tools, style)

    def write_calls(self, calls: Sequence[PlainCall], options: WriteOptions) -> Written:
        """One block for each call; see ``CallProtocol``."""
        from tamis.protocols.plugins import find_protocol, register

        # What is written is read again to prove it, also before anybody asked for the protocol.
        if find_protocol(self.id) is None:
            register(self)
        return write_calls(calls, options)


HERMES: Final = HermesProtocol()


# Writing Hermes: calls as ``<tool_call>`` blocks, results as ``<tool_response>`` blocks, definitions as JSON schemas in ``<tools>``. The forms are
# those that Hermes and Qwen models were trained on.


INSTRUCTIONS = (
    '- Put the call between `<tool_call>` and `</tool_call>`, as JSON with the tool\'s name and its arguments: `<tool_call>{"name": "tool", "arguments": {"parameter": "value"}}</tool_call>`. Write one block for each call.',
)
"""How a model is told to write a call."""

# Readers that look for the marker without reading the JSON would take one inside a string for the end of the block.
_MARKER = re.compile(r"<(?=/?tool_(?:call|response))")
_ANNOTATIONS = frozenset(("description", "title", "examples", "$comment", "$schema", "deprecated"))


def write_calls(calls: Sequence[PlainCall], options: WriteOptions) -> Written:
    """One block for each call; see ``CallProtocol``. Order stands for ``step``; ``meta`` can hold an ``id``."""
    return write_proved(_Hermes(options), calls, options)


class _Hermes:
    protocol = "hermes"
    title = "Hermes"

    def __init__(self, options: WriteOptions) -> None:
        self.expectations = Expectations(options.tools, "typed")

    def faults(self, call: PlainCall) -> list[tuple[str, str, str]]:
        """What a Hermes call has no place for."""
        return typed_faults(call)

    def text(self, calls: Sequence[PlainCall]) -> str:
        """The blocks, one under the other."""
        return "\n".join(f"{OPEN}\n{_json(_content(call))}\n{CLOSE}" for call in calls)


def _content(call: PlainCall) -> dict[str, Json]:
    content: dict[str, Json] = {"name": call.tool_id, "arguments": dict(call.args)}
    if "id" in call.meta:
        content["id"] = call.meta["id"]
    return content


def _json(value: Json) -> str:
    return _MARKER.sub(r"\\u003c", json_text(value))


def format_tool_results(results: Sequence[ExecutionResult]) -> str:
    """``<tool_response>`` blocks of ``{"name", "content"}``; of a call that did not succeed, ``content`` is ``{"error": …}``.
    ``tool_call_id`` is there when the call had an id, ``name`` when the call could be read.

    Its words are those of every other protocol.
    """
    return "\n".join(_response(result) for result in results)


def _response(result: ExecutionResult) -> str:
    content: Json
    if result.status == "success":
        content = None if result.output is UNSET else result.output
    else:
        phrase = observation(result, "action").removeprefix("Observation: ")
        content = {"status": result.status, "error": phrase}
    answer: dict[str, Json] = {"name": result.tool_id} if result.tool_id else {}
    if result.tool_call_id is not UNSET:
        answer["tool_call_id"] = result.tool_call_id
    text = inert(json_text({**answer, "content": content}))
    return f"<tool_response>\n{plain(text)}\n</tool_response>"


def generate_tool_definitions(tools: Sequence[PromptTool], style: Style = "full") -> str:
    """One line of JSON for each tool, by name, inside ``<tools>``; the compact style leaves descriptions of parameters out."""
    if not tools:
        return ""
    lines = [_definition(tool, style) for tool in sorted(tools, key=lambda tool: tool.name)]
    return "\n".join(["<tools>", *lines, "</tools>"])


def _definition(tool: PromptTool, style: Style) -> str:
    schema: Json = tool.parameters or {"type": "object", "properties": {}}
    function: dict[str, Json] = {
        "name": tool.name,
        "description": brief_of(tool) if style == "compact" else description_of(tool),
        "parameters": _without_words(schema) if style == "compact" else schema,
    }
    text = plain(json_text({"type": "function", "function": function}))
    # Words of a manifest must not become a call, nor end the list.
    return guard_json(text) if guard(text) != text or "tools>" in text else text


def _without_words(schema: Json) -> Json:
    """A schema without what only people read."""
    if is_list(schema):
        return [_without_words(part) for part in schema]
    if not is_object(schema):
        return schema
    kept: dict[str, Json] = {}
    for key, part in schema.items():
        if key in ("enum", "const", "default", "required"):
            kept[key] = part
        elif key in MAPS and is_object(part):
            kept[key] = {name: _without_words(inner) for name, inner in part.items()}
        elif key not in _ANNOTATIONS:
            kept[key] = _without_words(part)
    return kept


# Hermes' blocks in an editor: their markers, around a call that is JSON.


class HermesEditing(Editing):
    """See ``Editing``."""

    begin = "<tool_call>"
    empty_call = '<tool_call>\n{{"name": "{0}", "arguments": {{}}}}\n</tool_call>'
    call_title = "Hermes call"
    json_block = (lazy("(?i:<tool_call>)"), lazy(r"(?i:</tool_call\s{0,8}>)"))


EDITING: Final = HermesEditing()
