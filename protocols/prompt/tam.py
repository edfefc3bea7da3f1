"""Tool definitions for TAM: the list of seed 000 §4.2 with the names that ``command`` and the keys of a block take (seed 002 §4)."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.protocols.base import PromptTool, Style
from tamis.protocols.prompt.calls import unwritable
from tamis.protocols.prompt.guard import code
from tamis.protocols.prompt.listing import listing


def tam_definitions(tools: Sequence[PromptTool], style: Style = "full") -> str:
    """The definitions for TAM."""
    return listing(tools, style, tool=code, parameter=code, unwritable=lambda tool: unwritable("tam", tool))
