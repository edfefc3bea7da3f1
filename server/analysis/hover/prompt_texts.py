"""What a model is told of one tool, in each protocol, with its tokens: the text that ``prompt/generate`` writes.

Counting loads a tokenizer at the first count, so it is only done where its answer is shown.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import cast

import msgspec

from tamis.protocols.tokens import Encoding
from tamis.server.analysis.snapshot import Snapshot, ToolView

PROTOCOLS = ("vcp", "tam", "action", "json")
"""In the order of the interface; the default one is shown first."""


def heading(protocol: str) -> str:
    """A protocol's name over its text: that of one of these in capitals, a plug-in's as it is."""
    return protocol.upper() if protocol in PROTOCOLS else protocol


MAX_TOOL_CHARS = 256 * 1024
"""Of a manifest whose prompt is worth writing while a person waits."""


class PromptView(msgspec.Struct, frozen=True):
    """How prompts are shown: the protocol that comes first, and the vocabulary that tokens are counted in."""

    protocol: str = "action"
    encoding: Encoding = "o200k_base"


class PromptText(msgspec.Struct, frozen=True):
    """What a model reads about a tool in one protocol; ``exact`` is False for an estimate."""

    protocol: str
    text: str
    tokens: int
    exact: bool

    @property
    def count(self) -> str:
        """The number of tokens in words: an estimate says that it is one."""
        return f"{self.tokens} tokens" if self.exact else f"≈{self.tokens} tokens"


def own_tool(snapshot: Snapshot) -> ToolView | None:
    """The tool of an open manifest as its text has it; None while that is no sound manifest."""
    from tamis.server.runtime.tools.registry import Tool

    manifest = snapshot.manifest.manifest if snapshot.kind == "manifest" else None
    return Tool(manifest, snapshot.path) if manifest is not None else None


def prompt_texts(
    snapshot: Snapshot, tool: ToolView, view: PromptView, *, first_only: bool = False
) -> Iterator[PromptText]:
    """The texts of all protocols, the default one first; texts that are the same are given once."""
    from tamis.protocols.plugins import find_protocol
    from tamis.protocols.prompt.assemble import tool_text
    from tamis.server.runtime.texts.prompts import prompt_tool
    from tamis.server.runtime.tools.registry import Registry, Tool

    if not isinstance(tool, Tool):
        return
    registry = cast("Registry", snapshot.registry) if snapshot.registry is not None else Registry([tool])
    order = dict.fromkeys((view.protocol, *PROTOCOLS))
    for name in order:
        protocol = find_protocol(name)
        if protocol is None:
            continue
        text = tool_text(protocol, prompt_tool(tool, protocol.id, "tag", registry))
        tokens, exact = counted(text, view.encoding)
        yield PromptText(name, text, tokens, exact)
        if first_only:
            return


@functools.lru_cache(maxsize=512)
def counted(text: str, encoding: Encoding) -> tuple[int, bool]:
    """The tokens of a text, and whether the number is exact; kept, as the same tools are shown again and again."""
    from tamis.server.runtime.texts.token_counts import count_tokens

    return count_tokens(text, encoding)
