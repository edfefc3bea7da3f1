"""How a model is told to call: the instruction section of seed 000 §4.1, for each protocol.

When to call, how to write it, special characters, plain text where no tool is needed, the reason before the call. Markers stand in
inline code, which readers take as text (ruling 6). How a call is written each protocol says of itself (`Extras.instructions`); one that a plug-in brought is described by its markers. Must not know tools.
"""

from __future__ import annotations

import re

from tamis.protocols.base import CallProtocol, PlainCall, Shape, WriteOptions
from tamis.protocols.plugins import extras_of
from tamis.protocols.prompt.guard import code

FIRST = "You can call the tools that are listed below. A call is text that you write; what the tool gives comes back to you as an observation."
_WHEN = "- Call a tool only when you need one. When you need none, answer in plain text and write no {open}."
_WHY = "- First say in a sentence or two why you make the call, then write the call, and end your answer behind it."
_AFTER = (
    "- Write names exactly as they are listed. Give every required parameter; leave out an optional one that you do not need.",
    "- Never write an observation yourself. When one says that a call was wrong, correct what it names and call again.",
)


def instructions(protocol: CallProtocol, shape: Shape = "tag") -> str:
    """The instruction section, a paragraph and a list; holds no call."""
    extras = extras_of(protocol.id)
    own = extras.instructions(shape)
    if own is None:
        markers = protocol.markers
        own = (
            f"- Put the call between {code(markers.open)} and {code(markers.close)}, written as {_example(protocol)}.",
        )
    if extras.whole_text:
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
