"""What a protocol is: the interface that each one plugs in, and the source text that they share.

A protocol reads one block at a time. The reader (``reader.py``) walks the text once, knows reasoning, fences and inline
code, and hands each opening marker to its protocol; the protocol says where the block ends and what it holds. Must not
know the registry, files or LSP.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Protocol as TypingProtocol

from tamis.protocols.model import Block, ReadOptions
from tamis.protocols.positions import Span


class Source:
    """A text with token positions that are found once and shared.

    Looking for a closing marker from every opening one is quadratic in the text; a bisection in a sorted array is not.
    """

    __slots__ = ("_found", "_tokens", "memo", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens: dict[str, tuple[list[int], list[int]]] = {}
        self._found: dict[str, tuple[int, int]] = {}
        self.memo: dict[str, object] = {}
        """Whatever else a protocol finds out about the whole text once, by a key of its own."""

    def tokens(self, pattern: re.Pattern[str]) -> tuple[list[int], list[int]]:
        """Starts and ends of every match of ``pattern``, in order; built on first demand, linear in the text."""
        key = f"{pattern.flags}:{pattern.pattern}"
        found = self._tokens.get(key)
        if found is None:
            starts: list[int] = []
            ends: list[int] = []
            for match in pattern.finditer(self.text):
                starts.append(match.start())
                ends.append(match.end())
            found = self._tokens[key] = (starts, ends)
        return found

    def find(self, needle: str, at: int) -> int:
        """``text.find(needle, at)`` that remembers its last answer: asked again from within the gap, it scans nothing."""
        asked, found = self._found.get(needle, (1, 0))
        if asked <= at and (at <= found or found < 0):
            return found
        found = self.text.find(needle, at)
        self._found[needle] = (at, found)
        return found

    def next_token(self, pattern: re.Pattern[str], at: int, limit: int) -> Span | None:
        """The first match that starts at or after ``at`` and ends at or before ``limit``; O(log matches)."""
        starts, ends = self.tokens(pattern)
        i = bisect_left(starts, at)
        if i < len(starts) and ends[i] <= limit:
            return starts[i], ends[i]
        return None


class CallProtocol(TypingProtocol):
    """One way of writing calls in text."""

    @property
    def id(self) -> str:
        """The protocol's name in results: ``action``, ``tam``, ``vcp`` …"""
        ...

    @property
    def opener(self) -> re.Pattern[str]:
        """Matches candidate opening markers, in every spelling that is read; linear, no captures needed.

        The reader joins the openers of all protocols into one scan, so flags must be written inline (``(?i:…)``).
        """
        ...

    def read_block(self, source: Source, opener: Span, limit: int, options: ReadOptions) -> Block:
        """Reads the block whose opening marker stands at ``opener``; never raises.

        The block must not reach past ``limit``. ``limit == len(source.text)`` with ``options.complete`` false means that
        the text is cut off there. A marker with no block behind it gives a block of state ``mention`` that spans the
        marker only.
        """
        ...
