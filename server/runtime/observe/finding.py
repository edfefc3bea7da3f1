"""Finding the spellings of secrets in texts: all places at once, in time linear in the text, however many there are.

Pure. Must not know what a secret is, nor what is done with the places.
"""

from __future__ import annotations

from collections.abc import Sequence

Span = tuple[int, int]
ALL = ""
"""A needle that stands for "everything": nothing of any text is to be shown."""
_FEW = 160
"""More needles than these are found by their beginnings, at a price that does not depend on how many they are."""
_ANCHOR = 8
_TRIES = 256


class Finder:
    """What is looked for; ``needles`` are not empty."""

    def __init__(self, needles: Sequence[str]) -> None:
        self.longest = max(map(len, needles), default=0)
        many = len(needles) > _FEW
        self._each = [needle for needle in needles if not many or len(needle) < _ANCHOR]
        self._anchors: dict[str, dict[int, set[str]]] = {}
        self._begun: set[str] = set()
        for needle in needles if many else ():
            if len(needle) >= _ANCHOR:
                self._anchors.setdefault(needle[:_ANCHOR], {}).setdefault(len(needle), set()).add(needle)
        for anchor in self._anchors:
            self._begun.update(anchor[:end] for end in range(1, _ANCHOR))

    def spans(self, text: str) -> list[Span]:
        """Where needles stand, in order; those that lie over each other are one."""
        found: list[Span] = []
        for needle in self._each:
            if needle in text:
                found.extend(_places(text, needle))
        if self._anchors:
            found.extend(self._by_anchor(text))
        return merged(found)

    def _by_anchor(self, text: str) -> list[Span]:
        spans: list[Span] = []
        anchors = self._anchors
        for at in range(len(text) - _ANCHOR + 1):
            bucket = anchors.get(text[at : at + _ANCHOR])
            if bucket is not None:
                spans.extend((at, at + size) for size, needles in bucket.items() if text[at : at + size] in needles)
        return spans

    def begins(self, text: str) -> int:
        """Where the end of a text may be the beginning of a needle that is not whole yet, at the earliest; else its end."""
        first = min((_begins(text, needle) for needle in self._each), default=len(text))
        if not self._anchors:
            return first
        for at in range(max(0, len(text) - self.longest + 1), first):
            begun = text[at : at + _ANCHOR]
            if len(begun) < _ANCHOR:
                if begun in self._begun:
                    return at
            elif (bucket := self._anchors.get(begun)) is not None and max(bucket) > len(text) - at:
                return at
        return first


def merged(spans: list[Span]) -> list[Span]:
    """Spans in order, those that lie over each other as one."""
    if len(spans) < 2:
        return spans
    out: list[Span] = []
    for start, end in sorted(spans):
        if out and start < out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out


def _places(text: str, needle: str) -> list[Span]:
    """Every place of one needle; a run of places that lie over each other regularly is one span."""
    spans: list[Span] = []
    size = len(needle)
    # a needle can begin again inside of itself only after a whole period
    period = (needle + needle).find(needle, 1)
    ending = needle[size - period :]
    at = text.find(needle)
    while at >= 0:
        start = at
        while period < size and text.startswith(ending, at + size):
            at += period
        spans.append((start, at + size))
        at = text.find(needle, at + 1)
    return spans


def _begins(text: str, needle: str) -> int:
    place = max(0, len(text) - len(needle) + 1)
    for _ in range(_TRIES):
        place = text.find(needle[0], place)
        if place < 0:
            return len(text)
        if needle.startswith(text[place:]):
            return place
        place += 1
    # so many false beginnings are no log; it waits for what follows
    return place
