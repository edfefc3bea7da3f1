"""``prompt/grammar``: a grammar for constrained decoding of calls to the tools that a prompt would show.

Which tools there are is ``prompts.py``'s rule; what a grammar says is ``protocols/grammar``'s matter. Must not know framing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

from tamis.protocols.grammar.gbnf import call_schema, gbnf
from tamis.server.runtime.texts.prompts import PromptRequest, shown_tools

if TYPE_CHECKING:
    from tamis.server.runtime.runtime import Runtime

Format = Literal["gbnf", "jsonSchema"]


def grammar(runtime: Runtime, request: PromptRequest, form: Format) -> str:
    """The grammar as text. Of the request, protocol, shape, tools and filter count.

    Raises ``PromptError`` for a protocol or tool that there is not, ``GrammarError`` when no tool is left or the protocol has no grammar.
    """
    protocol, tools, notes = shown_tools(runtime, request)
    if form == "gbnf":
        return gbnf(protocol, tools, request.shape, notes)
    return json.dumps(call_schema(protocol.id, tools, notes), ensure_ascii=False, indent=2) + "\n"
