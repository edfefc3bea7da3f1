"""Writing Hermes: calls as ``<tool_call>`` blocks, results as ``<tool_response>`` blocks, definitions as JSON schemas in ``<tools>``.

The forms are those that Hermes and Qwen models were trained on. Must not know how blocks are read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import UNSET

from tamis.protocols.base import PlainCall, PromptTool, Style, WriteOptions, Written
from tamis.protocols.contract import ExecutionResult
from tamis.protocols.hermes.extent import CLOSE, OPEN
from tamis.protocols.inert import inert
from tamis.protocols.model import Json
from tamis.protocols.observation import observation, plain
from tamis.protocols.prompt.guard import guard, guard_json
from tamis.protocols.prompt.listing import brief_of, description_of
from tamis.protocols.schema.vocabulary import MAPS
from tamis.protocols.writing.expect import Expectations
from tamis.protocols.writing.proof import typed_faults, write_proved
from tamis.protocols.writing.values import is_list, is_object, json_text

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
        said = observation(result, "action").removeprefix("Observation: ")
        content = {"status": result.status, "error": said}
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
