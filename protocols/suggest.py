"""Did-you-mean: the declared names that a wrong name may have meant.

First names that are equal once case, separators and namespace are dropped, then names a few edits away. Bounded in length, so
that a hostile name costs nothing (F18). Must not know what is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice

MAX_NAME = 64
MAX_SUGGESTIONS = 3
MAX_CANDIDATES = 5_000
_SEPARATORS = re.compile(r"[\s_\-:./]+")


def normalised(name: str) -> str:
    """A name without case and separators: ``playerId``, ``player-id`` and ``player_id`` are one."""
    return _SEPARATORS.sub("", name).casefold()


def same_name(one: str, two: str) -> bool:
    """Whether two names differ in case and separators only."""
    return normalised(one) == normalised(two)


def suggest(name: str, known: Iterable[str], limit: int = MAX_SUGGESTIONS) -> list[str]:
    """Up to ``limit`` of the known names that ``name`` may have meant, best first.

    Names longer than 64 characters get none. A distance counts up to a quarter of the longer name, at least one edit; a swap
    of neighbours is one edit.
    """
    if not name or len(name) > MAX_NAME:
        return []
    wanted, bare, size, letters = _forms(name)
    ranked: list[tuple[int, int, str]] = []
    best_rank = MAX_NAME
    forms = _forms
    for order, candidate in enumerate(islice(known, MAX_CANDIDATES)):
        if candidate == name or not candidate or len(candidate) > MAX_NAME:
            continue
        normal_name, local, length, others = forms(candidate)
        if normal_name == wanted:
            if wanted:
                ranked.append((0, order, candidate))
                best_rank = 0
            continue
        if bare and (local == wanted or normal_name == bare):
            ranked.append((1, order, candidate))
            best_rank = min(best_rank, 1)
            continue
        # A one-letter name is one edit from every other: that says nothing.
        if length <= 1 or size <= 1:
            continue
        longer = length if length > size else size
        bound = longer // 4 or 1
        if limit == 1 and best_rank - 2 < bound:
            # Only a nearer one can still be the first.
            bound = best_rank - 2
            if bound < 1:
                continue
        # An edit explains one letter more or less, and at most one that the other has not.
        if 2 * longer - length - size > bound or (letters & ~others).bit_count() > bound:
            continue
        if (others & ~letters).bit_count() > bound:
            continue
        distance = osa_distance(wanted, normal_name, bound)
        if distance <= bound:
            ranked.append((1 + distance, order, candidate))
            best_rank = min(best_rank, 1 + distance)
            if limit == 1:
                ranked = [min(ranked)]
    ranked.sort()
    return [candidate for _, _, candidate in ranked[:limit]]


@lru_cache(maxsize=8_192)
def _forms(name: str) -> tuple[str, str, int, int]:
    """What a name is compared by: itself and its local part without case and separators, its length, and its letters as bits
    (two letters may share one: it counts fewer differences then, never more)."""
    normal_name = normalised(name)
    local = _local(name)
    letters = 0
    for letter in normal_name:
        letters |= 1 << (ord(letter) & 63)
    return normal_name, normal_name if local == name else normalised(local), len(normal_name), letters


def short_for(name: str, known: Iterable[str]) -> str | None:
    """The only known name that ``name`` may be short for: it begins alike and has the same letters in the same order (``cnt``, ``count``)."""
    wanted = normalised(name)
    if len(wanted) < 3 or len(wanted) > MAX_NAME:
        return None
    matches: list[str] = []
    for order, candidate in enumerate(known):
        if order >= MAX_CANDIDATES:
            break
        letters = iter(normalised(candidate[:MAX_NAME]))
        if candidate != name and candidate[:1].casefold() == wanted[0] and all(item in letters for item in wanted):
            matches.append(candidate)
    return matches[0] if len(matches) == 1 else None


def best(name: str, known: Iterable[str]) -> str | None:
    """The first suggestion, or None."""
    suggestions = suggest(name, known, 1)
    return suggestions[0] if suggestions else None


MAX_LOOKS = 50_000
"""How many names are looked at for all the wrong names that are held against one ``Names``."""


class Names:
    """Known names against which many wrong ones are held: the work for all of them is bounded. Behind the bound only names that
    differ in case and separators are still found."""

    def __init__(self, known: Iterable[str]) -> None:
        self.all = list(known)
        self._alike: dict[str, str] = {}
        for name in islice(self.all, MAX_CANDIDATES):
            if name and len(name) <= MAX_NAME:
                self._alike.setdefault(normalised(name), name)
        self._left = MAX_LOOKS

    def best(self, name: str) -> str | None:
        """As ``best``; ``name`` is none of the known ones."""
        if not name or len(name) > MAX_NAME:
            return None
        alike = self._alike.get(normalised(name) or name)
        if alike is not None or self._left < 0:
            return alike
        self._left -= len(self.all)
        return best(name, self.all)


def hint(suggestion: str | None) -> str:
    """The question that a message ends with: ``, did you mean 'x'?``, or nothing."""
    return f", did you mean '{suggestion}'?" if suggestion else ""


def _local(name: str) -> str:
    """A name without its namespace: what follows the last colon."""
    return name.rpartition(":")[2] or name


def osa_distance(one: str, two: str, bound: int) -> int:
    """Edits (insert, delete, replace, swap of neighbours) between two texts; ``bound + 1`` when there are more."""
    if abs(len(one) - len(two)) > bound:
        return bound + 1
    # What both have at their ends takes no edit.
    start, shorter = 0, min(len(one), len(two))
    while start < shorter and one[start] == two[start]:
        start += 1
    end, shorter = 0, shorter - start
    while end < shorter and one[-1 - end] == two[-1 - end]:
        end += 1
    one, two = one[start : len(one) - end], two[start : len(two) - end]
    if not one or not two:
        return min(max(len(one), len(two)), bound + 1)
    before: list[int] = []
    last = list(range(len(two) + 1))
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(two, 1):
            cost = last[j - 1] if a == b else 1 + min(last[j - 1], last[j], row[j - 1])
            if i > 1 and j > 1 and a == two[j - 2] and one[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if min(row) > bound:
            return bound + 1
        before, last = last, row
    return min(last[-1], bound + 1)
