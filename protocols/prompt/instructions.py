"""How a model is told to call: the instruction section of seed 000 §4.1, for each protocol.

When to call, how to write it, special characters, plain text where no tool is needed, the reason before the call. Markers stand in
inline code, which readers take as text (ruling 6). A protocol that a plug-in brought is described by its markers. Must not know tools.
"""

from __future__ import annotations

import re

from tamis.protocols.base import CallProtocol, PlainCall, Shape, WriteOptions
from tamis.protocols.prompt.guard import code

FIRST = "You can call the tools that are listed below. A call is text that you write; what the tool gives comes back to you as an observation."
_WHEN = "- Call a tool only when you need one. When you need none, answer in plain text and write no {open}."
_WHY = "- First say in a sentence or two why you make the call, then write the call, and end your answer behind it."
_AFTER = (
    "- Write names exactly as they are listed. Give every required parameter; leave out an optional one that you do not need.",
    "- Never write an observation yourself. When one says that a call was wrong, correct what it names and call again.",
)
_ACTION_TAG = (
    "- Put your calls between `<ACTION>` and `</ACTION>`: one block in an answer, which may hold several tools one below the other. Inside is XML: a tag with the name of the tool or skill, and in it a tag for each parameter: `<ACTION><tool><parameter>value</parameter></tool></ACTION>`.",
    "- Put a value that holds `<`, `>` or `&`, or several lines of code, JSON or a diff, between `<![CDATA[` and `]]>`; nothing is escaped there.",
    "- Write a list as one `<item>` for each entry, and an object as tags for its properties; either may be JSON instead.",
)
_ACTION_INPUTS = (
    '- Put your calls between `<ACTION>` and `</ACTION>`: one block in an answer, which may hold several tools one below the other. Inside stand the tool\'s id and its inputs: `<ACTION><tool_id>id</tool_id><inputs><input name="parameter">value</input></inputs></ACTION>`.',
    "- Put a value that holds `<`, `>` or `&`, or several lines, between `<![CDATA[` and `]]>`; nothing is escaped there.",
    "- Write a list or an object as JSON.",
)
_TAM = (
    "- Put the call between a line `<|[REQUEST_TOOL]|>` and a line `<|[END_TOOL]|>`. Between them stands one field after the other, each on a new line: `key:»»»value«««`. The key `command` names the tool; every other key is a parameter.",
    "- A value may have several lines and any characters and is never escaped; only `«««` ends it. Blanks at its ends are dropped. Write a list or an object as JSON.",
    "- A text that must keep blanks at its ends, or holds `«««`, is written as a JSON string, with `type_hint_parameter:»»»json«««` before it.",
    "- For several steps in one block, number the keys: `command_1`, `path_1`, `command_2` and so on. Steps run in this order; `on_error_1:»»»continue«««` goes on after a failed step, `retry_1:»»»2«««` repeats one, `common_path` gives a parameter to all.",
)
_VCP = (
    "- Put the call between a line `<<<[TOOL_REQUEST]>>>` and a line `<<<[END_TOOL_REQUEST]>>>`. Between them stands one field after the other, each on a new line: `key:「始」value「末」`, with a comma between fields. The key `tool_name` names the tool; every other key is a parameter.",
    "- A value may have several lines and any characters and is never escaped. One that holds `「末」` itself stands between `「始ESCAPE」` and `「末ESCAPE」`. Write a list or an object as JSON.",
    "- Write one block for each call; several blocks run in order. Never put a call in a code fence.",
)


_HERMES = (
    '- Put the call between `<tool_call>` and `</tool_call>`, as JSON with the tool\'s name and its arguments: `<tool_call>{"name": "tool", "arguments": {"parameter": "value"}}</tool_call>`. Write one block for each call.',
)
_JSON = (
    '- A call is an answer that is nothing but JSON, without a word before or behind it: `{"toolName": "tool", "arguments": {"parameter": "value"}}`. Several calls are a JSON list of such objects.',
)
_OWN = {"tam": _TAM, "vcp": _VCP, "hermes": _HERMES, "json": _JSON}
WHOLE_TEXT = frozenset(("json",))
"""Protocols whose call is the whole answer: nothing can stand before it, so no reason is asked for."""


def instructions(protocol: CallProtocol, shape: Shape = "tag") -> str:
    """The instruction section, a paragraph and a list; holds no call."""
    name = protocol.id
    own = (_ACTION_INPUTS if shape == "inputs" else _ACTION_TAG) if name == "action" else _OWN.get(name)
    if own is None:
        markers = protocol.markers
        own = (
            f"- Put the call between {code(markers.open)} and {code(markers.close)}, written as {_example(protocol)}.",
        )
    if name in WHOLE_TEXT:
        lines = (_WHEN.replace("{open}", "call"),)
    else:
        lines = (_WHEN.replace("{open}", code(protocol.markers.open)), _WHY)
    return "\n".join([FIRST, "", *lines, *own, *_AFTER])


def _example(protocol: CallProtocol) -> str:
    """A made-up call in the words of a protocol that is not known here, in code, where readers take it as text; else where examples stand."""
    written = protocol.write_calls((PlainCall("tool", {"parameter": "value"}),), WriteOptions())
    text = "" if written.refusals else written.text.strip("\n")
    if not text:
        return "in the examples"
    if "\n" not in text:
        return f"here: {code(text)}"
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"here:\n\n{fence}\n{text}\n{fence}\n\n"
