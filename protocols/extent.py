"""How far a block reaches that begins in a context: what ends the context ends it too, unless that is part of a value.

A block that is complete before the end of its context ends there. One that is not may go on behind it, when it is then complete to
its own closing marker: the end of the context was text in a value (ruling 5). Anything else is cut off where the context ends, so that
it never takes what stands behind (ruling 44). Must not know contexts.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from functools import cache
from typing import Literal

from tamis.protocols.base import CallProtocol, Source
from tamis.protocols.model import Block, ReadOptions
from tamis.protocols.plugins import extras_of, find_protocol
from tamis.protocols.positions import Span

_MAX_MARKER = 1_000
_TRIES = 2
"""Closing markers at which a block that goes on behind its context may end."""


@cache
def _closers(name: str) -> re.Pattern[str]:
    protocol = find_protocol(name)
    return re.compile(protocol.markers.stray if protocol is not None else r"(?!)")


class Extents:
    """Reads blocks that begin in a context of one text."""

    def __init__(self, source: Source, openers: re.Pattern[str], options: ReadOptions) -> None:
        self._source = source
        self._openers = openers
        self._options = options
        self._failed: dict[str, int] = {}
        self._read: dict[int, Block] = {}
        self._ahead_of: dict[int, Block] = {}
        self._asked = -1
        self._ahead: re.Match[str] | None = None

    def within(self, protocol: CallProtocol, opener: Span, limit: int) -> Block:
        """The block at an opening marker in a context that ends at ``limit``, were that no part of a value."""
        block = protocol.read_block(self._source, opener, limit, self._options)
        if block.state in ("complete", "mention"):
            return block
        return self.behind(protocol, opener, limit) or block

    def behind(self, protocol: CallProtocol, opener: Span, limit: int) -> Block | None:
        """The block that is complete only behind ``limit``, or None."""
        read = self._read.get(opener[0])
        if read is not None:
            return read if read.span[1] > limit else None
        source = self._source
        begins = extras_of(protocol.id).begins
        if begins is not None and begins.match(source.text, opener[1]) is None:
            return None
        starts, ends = source.tokens(_closers(protocol.id))
        i = bisect_left(starts, limit)
        for end in ends[i : i + _TRIES]:
            if end <= self._failed.get(protocol.id, -1):
                continue
            block = protocol.read_block(source, opener, end, self._options)
            if block.state == "complete" and block.close is not None and block.span[1] > limit:
                self._read[opener[0]] = block
                return block
            self._failed[protocol.id] = end
        return None

    def open_behind(self, protocol: CallProtocol, opener: Span, limit: int) -> bool:
        """Whether more text could still make a block complete behind ``limit`` for which ``behind`` found nothing."""
        begins = extras_of(protocol.id).begins
        text = self._source.text
        if begins is not None and begins.match(text, opener[1]) is None:
            return not text[opener[1] :].strip()
        starts, _ = self._source.tokens(_closers(protocol.id))
        return len(starts) - bisect_left(starts, limit) < _TRIES

    def whole(self, at: int, before: int) -> Block | None:
        """The first block that opens in ``[at, before)`` and is complete only behind ``before``."""
        text = self._source.text
        while (match := self._next(at)) is not None and match.start() < before:
            protocol = find_protocol(match.lastgroup or "")
            at = match.end()
            if protocol is None or text[match.start() - 1 : match.start()] == "\\":
                continue
            block = self.behind(protocol, match.span(), before)
            if block is not None:
                return block
            inner = self._read_up_to(protocol, match.span(), before)
            at = max(at, inner)
        return None

    def _read_up_to(self, protocol: CallProtocol, opener: Span, before: int) -> int:
        """Where a block ends that is complete before a place; its opener's end for any other."""
        begins = extras_of(protocol.id).begins
        if begins is not None and begins.match(self._source.text, opener[1]) is None:
            return opener[1]
        read = self._read.get(opener[0])
        block = read or protocol.read_block(self._source, opener, before, self._options)
        if block.state != "complete" or block.close is None:
            return opener[1]
        self._read[opener[0]] = block
        return block.span[1]

    def first(
        self, at: int, before: int, settled: Callable[[CallProtocol, Span, Block], bool] | None = None
    ) -> Span | Literal["wait"] | None:
        """The first block that opens in ``[at, before)`` and is complete, were there no context; ``wait`` when one is not settled."""
        source = self._source
        text = source.text
        # Looked at within bounds, so that the last block of a long text does not cost what lies behind it.
        while (match := self._openers.search(text, at, before + _MAX_MARKER)) is not None and match.start() < before:
            at = match.end()
            protocol = find_protocol(match.lastgroup or "")
            if protocol is None or text[match.start() - 1 : match.start()] == "\\":
                continue
            block = self._ahead_of.get(match.start())
            if block is None:
                block = self._ahead_of[match.start()] = self._read_ahead(protocol, match.span())
            if settled is not None and not settled(protocol, match.span(), block):
                return "wait"
            if block.state == "complete" and block.close is not None:
                return block.span
        return None

    def _read_ahead(self, protocol: CallProtocol, opener: Span) -> Block:
        """A block that is not read in order: places that protocols remember stay, what they know of the whole text is kept."""
        memo = self._source.memo
        places = {key: known for key, known in memo.items() if isinstance(known, int)}
        block = protocol.read_block(self._source, opener, len(self._source.text), self._options)
        for key in [key for key, known in memo.items() if isinstance(known, int)]:
            del memo[key]
        memo.update(places)
        return block

    def _next(self, at: int) -> re.Match[str] | None:
        ahead = self._ahead
        if 0 <= self._asked <= at and (ahead is None or at <= ahead.start()):
            return ahead
        self._asked = at
        self._ahead = self._openers.search(self._source.text, at)
        return self._ahead
