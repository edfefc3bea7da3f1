"""The list of tools in the manner of seed 000 §4.2: two headings, and for each tool its name, what it does and its parameters.

Protocols differ in how a name and a parameter are written, which they give as functions. Must not know any protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape

from tamis.protocols.base import PromptTool, Shape, Style
from tamis.protocols.patterns import lazy
from tamis.protocols.prompt.calls import unwritable
from tamis.protocols.prompt.guard import code, guard, one_line
from tamis.protocols.prompt.parameters import Parameter, parameters_of, signature

HEAD = "You have access to the following tools and skills:"
TOOLS = "**Tools (direct function calls):**"
SKILLS = "**Skills (workflow executions):**"
NO_DESCRIPTION = "(no description)"
MAX_BRIEF = 160
_INDENT = "    "
_SENTENCE = lazy(r"(?<!\be\.g)(?<!\bi\.e)[.!?](?= )|[。！？]")
_STOPS = ".。!！?？:：;；…"

Named = Callable[[str], str]
"""How the name of a tool, or of a parameter, is written in a list."""
Unwritable = Mapping[str, str]
"""Parameters that cannot be written in a protocol, with the reason."""


def listing(
    tools: Sequence[PromptTool],
    style: Style,
    *,
    tool: Named,
    parameter: Named,
    item: str = "",
    unwritable: Callable[[PromptTool], Unwritable] = lambda _tool: {},
) -> str:
    """The list of tools as Markdown; empty without tools. Tools stand under their heading by name, so the text is stable.

    ``item`` is how one entry of a list is written where that is not plain JSON. The compact style has one line per tool: a signature and the first sentence.
    """
    parts: list[str] = []
    for heading, group in ((TOOLS, _of_kind(tools, skills=False)), (SKILLS, _of_kind(tools, skills=True))):
        if group and style == "compact":
            parts.append("\n".join([heading, "", *(_brief(prompt_tool, tool) for prompt_tool in group)]))
        elif group:
            shown = (_full(prompt_tool, tool, parameter, item, unwritable(prompt_tool)) for prompt_tool in group)
            parts.append("\n".join([heading, "", *shown]))
    return "\n\n".join([HEAD, *parts]) if parts else ""


def _of_kind(tools: Iterable[PromptTool], *, skills: bool) -> list[PromptTool]:
    return sorted(
        (tool for tool in tools if (tool.kind == "workflow") is skills), key=lambda prompt_tool: prompt_tool.name
    )


def description_of(tool: PromptTool) -> str:
    """What a tool says of itself: its description, else its display name."""
    return tool.description.strip() or tool.display_name.strip() or NO_DESCRIPTION


def brief_of(tool: PromptTool) -> str:
    """The first sentence of the description, at most 160 characters."""
    text = " ".join(description_of(tool).split())
    stop = _SENTENCE.search(text)
    if stop is not None:
        text = text[: stop.end()]
    return one_line(text, MAX_BRIEF)


def _brief(tool: PromptTool, named: Named) -> str:
    words = signature(parameters_of(tool.parameters))
    return f"*   {named(tool.name)}({one_line(words)}): {brief_of(tool)}"


def _headed(name: str, tool: PromptTool) -> str:
    """The name to write, and for a skill the name that people know it by (A57, seed 000 §7.2)."""
    title = one_line(tool.display_name, MAX_BRIEF)
    return f"{name} ({title})" if tool.kind == "workflow" and title and title not in name else name


def _full(tool: PromptTool, named: Named, parameter: Named, item: str, unwritable: Unwritable) -> str:
    lines = [f"*   {_headed(named(tool.name), tool)}: {one_line(description_of(tool))}"]
    declared = parameters_of(tool.parameters)
    if declared:
        lines.append(f"{_INDENT}*   Parameters:")
        lines += _lines(declared, parameter, item, _INDENT * 2, unwritable)
    else:
        lines.append(f"{_INDENT}*   Parameters: none")
    return "\n".join(lines)


def _lines(
    parameters: Sequence[Parameter], named: Named, item: str, indent: str, unwritable: Unwritable
) -> Iterable[str]:
    for parameter in parameters:
        words = sentence(parameter, item, unwritable.get(parameter.name, ""))
        text = one_line(words)
        yield f"{indent}*   {named(parameter.name)} ({need(parameter)}){': ' if text else ''}{text}"
        yield from _lines(parameter.parts, named, item, indent + _INDENT, {})


def need(parameter: Parameter) -> str:
    """``string, required``."""
    return f"{parameter.type}, {'required' if parameter.required else 'optional'}"


def sentence(parameter: Parameter, item: str, unwritable: str) -> str:
    """The description of a parameter with what is known of its values."""
    facts = list(parameter.facts)
    if parameter.listed and item:
        facts.append(f"Write each item as {item}.")
    if unwritable:
        facts.append(f"It cannot be given in this protocol: {guard(unwritable)}.")
    text = parameter.description.strip()
    if text and facts and text[-1] not in _STOPS:
        # A Chinese sentence ends with a Chinese stop.
        text += "。" if "\u4e00" <= text[-1] <= "\u9fff" else "."
    return " ".join(part for part in (text, *facts) if part)


# Tool definitions for ACTION: the list of seed 000 §4.2, in which every name is written as the tag that a call needs. The second shape (seed 003
# §3.1) names the tool in ``<tool_id>`` and every parameter in ``<input name="…">``.


TAG_INSTRUCTIONS = (
    "- Put your calls between `<ACTION>` and `</ACTION>`: one block in an answer, which may hold several tools one below the other. Inside is XML: a tag with the name of the tool or skill, and in it a tag for each parameter: `<ACTION><tool><parameter>value</parameter></tool></ACTION>`.",
    "- Put a value that holds `<`, `>` or `&`, or several lines of code, JSON or a diff, between `<![CDATA[` and `]]>`; nothing is escaped there.",
    "- Write a list as one `<item>` for each entry, and an object as tags for its properties; either may be JSON instead.",
)
INPUTS_INSTRUCTIONS = (
    '- Put your calls between `<ACTION>` and `</ACTION>`: one block in an answer, which may hold several tools one below the other. Inside stand the tool\'s id and its inputs: `<ACTION><tool_id>id</tool_id><inputs><input name="parameter">value</input></inputs></ACTION>`.',
    "- Put a value that holds `<`, `>` or `&`, or several lines, between `<![CDATA[` and `]]>`; nothing is escaped there.",
    "- Write a list or an object as JSON.",
)
"""How a model is told to write a call."""


def action_definitions(tools: Sequence[PromptTool], style: Style = "full", shape: Shape = "tag") -> str:
    """The definitions for one of the two ACTION shapes."""
    if shape == "inputs":
        return listing(
            tools,
            style,
            tool=lambda name: code(f"<tool_id>{name}</tool_id>"),
            parameter=lambda name: code(f'<input name="{escape(name)}">'),
            unwritable=lambda tool: unwritable("action", tool, shape),
        )
    return listing(
        tools,
        style,
        tool=lambda name: code(f"<{name}>"),
        parameter=lambda name: code(f"<{name}>"),
        item="`<item>`",
        unwritable=lambda tool: unwritable("action", tool, shape),
    )
