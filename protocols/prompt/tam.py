"""Tool definitions for TAM: the list of seed 000 §4.2 with the names that ``command`` and the keys of a block take (seed 002 §4)."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.protocols.base import PromptTool, Style
from tamis.protocols.prompt.calls import unwritable
from tamis.protocols.prompt.guard import code
from tamis.protocols.prompt.listing import listing

INSTRUCTIONS = (
    "- Put the call between a line `<|[REQUEST_TOOL]|>` and a line `<|[END_TOOL]|>`. Between them stands one field after the other, each on a new line: `key:»»»value«««`. The key `command` names the tool; every other key is a parameter.",
    "- A value may have several lines and any characters and is never escaped; only `«««` ends it. Blanks at its ends are dropped. Write a list or an object as JSON.",
    "- A text that must keep blanks at its ends, or holds `«««`, is written as a JSON string, with `type_hint_parameter:»»»json«««` before it.",
    "- For several steps in one block, number the keys: `command_1`, `path_1`, `command_2` and so on. Steps run in this order; `on_error_1:»»»continue«««` goes on after a failed step, `retry_1:»»»2«««` repeats one, `common_path` gives a parameter to all.",
)
"""How a model is told to write a call."""


def tam_definitions(tools: Sequence[PromptTool], style: Style = "full") -> str:
    """The definitions for TAM."""
    return listing(tools, style, tool=code, parameter=code, unwritable=lambda tool: unwritable("tam", tool))
