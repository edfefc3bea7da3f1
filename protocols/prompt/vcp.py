"""Tool definitions for VCP: one ``<<<[TOOL_DEFINITION]>>>`` block per tool (seed 001 §6.4, V23, V33, V34).

Every block has ``tool_name``, ``description``, ``parameters`` and ``example``; blocks stand by name with a blank line between. The
example is the arguments alone, as JSON: whole calls are what worked examples show (``fewShot``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tamis.protocols.base import PromptTool, Style
from tamis.protocols.model import Json
from tamis.protocols.observation import plain
from tamis.protocols.prompt.calls import sample_arguments, unwritable
from tamis.protocols.prompt.guard import guard, guard_json, marked, one_line
from tamis.protocols.prompt.listing import Unwritable, brief_of, description_of, sentence
from tamis.protocols.prompt.parameters import Parameter, parameters_of, signature
from tamis.protocols.schema.secrets import mask
from tamis.protocols.schema.words import json_equal
from tamis.protocols.writing.values import json_text

INSTRUCTIONS = (
    "- Put the call between a line `<<<[TOOL_REQUEST]>>>` and a line `<<<[END_TOOL_REQUEST]>>>`. Between them stands one field after the other, each on a new line: `key:「始」value「末」`, with a comma between fields. The key `tool_name` names the tool; every other key is a parameter.",
    "- A value may have several lines and any characters and is never escaped. One that holds `「末」` itself stands between `「始ESCAPE」` and `「末ESCAPE」`. Write a list or an object as JSON.",
    "- Write one block for each call; several blocks run in order. Never put a call in a code fence.",
)
"""How a model is told to write a call."""

OPEN = "<<<[TOOL_DEFINITION]>>>"
CLOSE = "<<<[END_TOOL_DEFINITION]>>>"
MAX_EXAMPLE = 44
"""Characters of an example: it shows what a value looks like, not how a call is written."""


def vcp_definitions(tools: Sequence[PromptTool], style: Style = "full") -> str:
    """The definitions for VCP. The compact style is one block with a line for each tool: a signature and the first sentence."""
    ordered = sorted(tools, key=lambda tool: tool.name)
    if style == "compact" and ordered:
        return "\n".join([OPEN, *(_brief(tool) for tool in ordered), CLOSE])
    return "\n\n".join(_full(tool) for tool in ordered)


def _block(fields: dict[str, str]) -> str:
    lines = ",\n".join(f"{name}:{marked(value)}" for name, value in fields.items())
    return f"{OPEN}\n{lines}\n{CLOSE}"


def _full(tool: PromptTool) -> str:
    declared = parameters_of(tool.parameters)
    notes = unwritable("vcp", tool)
    shown = "\n".join(_lines(declared, "", notes))
    return _block(
        {
            "tool_name": guard(tool.name),
            "description": one_line(description_of(tool)),
            "parameters": f"\n{shown}\n" if shown else "none",
            "example": _example(tool),
        }
    )


def _brief(tool: PromptTool) -> str:
    return f"- {one_line(tool.name)}({one_line(signature(parameters_of(tool.parameters)))}): {brief_of(tool)}"


def _lines(parameters: Sequence[Parameter], indent: str, unwritable: Unwritable) -> list[str]:
    lines: list[str] = []
    for parameter in parameters:
        text = one_line(sentence(parameter, "", unwritable.get(parameter.name, "")))
        lines.append(
            f"{indent}- {one_line(parameter.name)} ({parameter.type}{', required' if parameter.required else ''}){': ' if text else ''}{text}"
        )
        lines += _lines(parameter.parts, indent + "  ", {})
    return lines


def _example(tool: PromptTool) -> str:
    """Short required arguments of the first example that may be shown, else made-up ones, as JSON."""
    example_input = next((example.input for example in tool.examples if _may_be_shown(example.input, tool)), None)
    values = sample_arguments(tool.parameters) if example_input is None else example_input
    shown: dict[str, Json] = {}
    for parameter in parameters_of(tool.parameters):
        if not parameter.required or parameter.name not in values:
            continue
        longer = {**shown, parameter.name: values[parameter.name]}
        if len(json_text(longer)) <= MAX_EXAMPLE:
            shown = longer
    return guard_json(plain(json_text(shown)))


def _may_be_shown(args: Mapping[str, Json], tool: PromptTool) -> bool:
    return json_equal(mask(dict(args), tool.parameters), dict(args))
