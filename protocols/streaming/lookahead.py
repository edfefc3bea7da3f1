"""Whether the pairing of an ACTION block's tags hung on text that has not come yet.

The pairing looks ahead for tags (``action/match.py``). Here its index answers "not in this text" with a number that notes when a
decision is made between two such answers, which only the text to come can tell apart. Must not know how tags are paired.
"""

from __future__ import annotations

from tamis.protocols.action.tokens import MARKER_KEY, NOWHERE, TagIndex


class _Unknown(int):
    """A place behind all the text so far: greater than any place in it, and of unknown order among its like."""

    watch: Lookahead

    def __lt__(self, other: int) -> bool:
        if not _is_unknown(other):
            if self.watch.pending is self:
                # ``a < b and a < c``: false for ``c``, whatever ``b`` is.
                self.watch.pending = None
            return False
        self.watch.ask(self)
        return True

    def __ge__(self, other: int) -> bool:
        if _is_unknown(other):
            self.watch.open = True
        return True

    def __gt__(self, other: int) -> bool:
        if _is_unknown(other):
            self.watch.open = True
        return True

    def __le__(self, other: int) -> bool:
        if _is_unknown(other):
            self.watch.open = True
        return False

    __hash__ = int.__hash__


def _is_unknown(place: int) -> bool:
    # Not by the operators above, which take notes.
    return int.__ge__(place, NOWHERE)


class Lookahead(TagIndex):
    """The index of a text for one block, whose closing marker ends at ``end``; it notes what is not known yet."""

    def __init__(self, index: TagIndex, text: str, end: int) -> None:
        self.opens = index.opens
        self.closes = index.closes
        self.pending: _Unknown | None = None
        """An undecided comparison that the next one may make idle."""
        self.open = False
        self._end = end
        # A tag that the end of the text cuts in two may become another one.
        self._whole = text.rfind(">") + 1

    @property
    def undecided(self) -> bool:
        """Whether any decision hung on text that has not come."""
        return self.open or self.pending is not None

    def ask(self, one: _Unknown) -> None:
        """Notes a comparison of two unknown places."""
        if self.pending is not None:
            self.open = True
        self.pending = one

    def next_open(self, key: str, at: int) -> int:
        """As ``TagIndex.next_open``, or an unknown place."""
        return self._known(super().next_open(key, at)) if at < NOWHERE else self._lost()

    def next_close(self, key: str, at: int) -> int:
        """As ``TagIndex.next_close``, or an unknown place."""
        if at >= NOWHERE:
            return self._lost()
        if key == MARKER_KEY and at == self._end:
            # What a second closing marker does to the block is looked for when it comes ("place" in ``settled.py``).
            return NOWHERE
        found = super().next_close(key, at)
        if self._end <= found < NOWHERE and at >= self._end:
            # Then the tags behind the block were paired too, of which nothing is known here.
            self.open = True
        return self._known(found)

    def _known(self, place: int) -> int:
        if place < self._whole:
            return place
        unknown = _Unknown(NOWHERE)
        unknown.watch = self
        return unknown

    def _lost(self) -> int:
        self.open = True
        return NOWHERE
