"""Semantic tokens: what the parts of call blocks and of manifests are, for colours that know the tools.

In a text every part of a block has a token: marker, tool, names, marks, values by the parameter's schema, JSON inside them. A
block that is set aside (ruling 44) looks like a comment, so that nobody takes it for a call. In a
manifest only what an editor's own JSON colours cannot know. Must not know LSP's encoding of tokens.
"""

from __future__ import annotations

from tamis.protocols.model import Block
from tamis.protocols.positions import Span
from tamis.server.analysis.kinds import answer
from tamis.server.analysis.places import blocks_in
from tamis.server.analysis.shown.token_kinds import COMMENT, Token
from tamis.server.analysis.snapshot import Snapshot

MAX_KEPT = 20_000


class TokenCache:
    """The tokens of blocks by their text, relative to their start, while tools and settings stay the same."""

    def __init__(self) -> None:
        self._state: tuple[object, object] = (None, None)
        self._kept: dict[str, list[Token]] = {}

    def of(self, snapshot: Snapshot, block: Block) -> list[Token]:
        """The tokens of a block, at its place; one that is set aside is a comment as a whole."""
        if block.aside:
            return [(*block.span, COMMENT, 0)] if block.span[0] < block.span[1] else []
        state = (snapshot.registry, snapshot.settings)
        if state[0] is not self._state[0] or state[1] != self._state[1] or len(self._kept) > MAX_KEPT:
            self._state = state
            self._kept.clear()
        start, end = block.span
        text = snapshot.text[start:end]
        kept = self._kept.get(text)
        if kept is None:
            from tamis.server.analysis.shown.block_tokens import tokens_of_block

            kept = [(one[0] - start, one[1] - start, *one[2:]) for one in tokens_of_block(snapshot, block)]
            self._kept[text] = kept
        return [(one + start, other + start, kind, bits) for one, other, kind, bits in kept]


def semantic_tokens(
    snapshot: Snapshot, span: Span | None = None, *, whole: bool = False, cache: TokenCache | None = None
) -> list[Token]:
    """The tokens of a document, or of what touches ``span``: in order, disjoint, not empty.

    ``whole``: the client has no colours of its own, so JSON's strings, numbers and words are told too.
    """
    find = answer(snapshot, "tokens")
    return find(snapshot, span, whole=whole, cache=cache) if find is not None else []


def tokens_of_text(
    snapshot: Snapshot, span: Span | None, *, whole: bool = False, cache: TokenCache | None = None
) -> list[Token]:
    """The tokens of the blocks of a text."""
    del whole  # of a text only blocks are told
    cache = cache or TokenCache()
    found = [token for block in blocks_in(snapshot.document.blocks, span) for token in cache.of(snapshot, block)]
    if span is None:
        return found
    return [token for token in found if token[0] < span[1] and span[0] < token[1]]
