"""Tool definitions for VCP: one ``<<<[TOOL_DEFINITION]>>>`` block per tool (seed 001 §6.4, V23, V33, V34).

Every block has ``tool_name``, ``description``, ``parameters`` and ``example``; blocks stand by name with a blank line between.
"""

from __future__ import annotations

from collections.abc import Sequence

from tamis.protocols.base import PromptTool, Style
from tamis.protocols.patterns import lazy
from tamis.protocols.prompt.calls import example_call, unwritable
from tamis.protocols.prompt.guard import guard, marked, one_line
from tamis.protocols.prompt.listing import Unwritable, brief_of, description_of, need, sentence
from tamis.protocols.prompt.parameters import Parameter, parameters_of, signature

OPEN = "<<<[TOOL_DEFINITION]>>>"
CLOSE = "<<<[END_TOOL_DEFINITION]>>>"
_OTHER_MARKERS = lazy(r"(?i:<<{1,3}\[(?:END_)?TOOL_(?:DEFINITION|RESULT)\]>{2,4})")


def vcp_definitions(tools: Sequence[PromptTool], style: Style = "full") -> str:
    """The definitions for VCP. The compact style has the signature as ``parameters``, the first sentence and no example."""
    ordered = sorted(tools, key=lambda tool: tool.name)
    return "\n\n".join(_brief(tool) if style == "compact" else _full(tool) for tool in ordered)


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
            "description": guard(description_of(tool)),
            "parameters": f"\n{shown}\n" if shown else "none",
            "example": _example(tool),
        }
    )


def _brief(tool: PromptTool) -> str:
    words = one_line(signature(parameters_of(tool.parameters))) or "none"
    return _block({"tool_name": guard(tool.name), "description": brief_of(tool), "parameters": words})


def _lines(parameters: Sequence[Parameter], indent: str, unwritable: Unwritable) -> list[str]:
    lines: list[str] = []
    for one in parameters:
        words = guard(sentence(one, "", unwritable.get(one.name, ""))).strip()
        text = "\n".join(line if at == 0 else f"{indent}  {line.strip()}" for at, line in enumerate(words.splitlines()))
        lines.append(f"{indent}- {one_line(one.name)} ({need(one)}){': ' if text else ''}{text}")
        lines += _lines(one.parts, indent + "  ", {})
    return lines


def _example(tool: PromptTool) -> str:
    written = example_call("vcp", tool)
    if not written:
        return "(no example can be written in this protocol)"
    # A value that holds the marker of a definition would end the block that the example stands in.
    if _OTHER_MARKERS.search(written) is not None:
        return "(not shown: it holds the markers of a definition itself)"
    return f"\n{written}\n"
