"""Writing call JSON: ``{"toolName", "arguments"}`` (seed 004 §2.4), results and definitions as JSON. Must not know how it is read."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET

from tamis.protocols.base import PlainCall, PromptTool, Style, WriteOptions, Written
from tamis.protocols.contract import ExecutionResult
from tamis.protocols.inert import inert
from tamis.protocols.model import Json
from tamis.protocols.observation import observation, plain
from tamis.protocols.prompt.guard import guard_json
from tamis.protocols.prompt.listing import brief_of, description_of
from tamis.protocols.writing.expect import Expectations
from tamis.protocols.writing.proof import typed_faults, write_proved
from tamis.protocols.writing.values import json_text

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
    found: list[Json] = [
        {
            "toolName": tool.name,
            "description": brief_of(tool) if style == "compact" else description_of(tool),
            "parameters": tool.parameters or {"type": "object", "properties": {}},
        }
        for tool in sorted(tools, key=lambda tool: tool.name)
    ]
    # A definition must not look like a marker of any protocol to whoever reads the prompt again.
    return guard_json(plain(json_text(found))) if found else ""
