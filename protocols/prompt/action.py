"""Tool definitions for ACTION: the list of seed 000 §4.2, in which every name is written as the tag that a call needs.

The second shape (seed 003 §3.1) names the tool in ``<tool_id>`` and every parameter in ``<input name="…">``.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from tamis.protocols.base import PromptTool, Shape, Style
from tamis.protocols.prompt.calls import unwritable
from tamis.protocols.prompt.guard import code
from tamis.protocols.prompt.listing import listing

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
