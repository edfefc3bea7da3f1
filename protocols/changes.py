"""The few edits that make one text of another, so that an editor keeps its cursors, marks and folds. Must not know what the texts mean."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from tamis.protocols.model import Edit

MAX_COMPARED_LINES = 20_000
"""Longer stretches are replaced between the first and the last difference, or line by line where they have as many lines."""
MAX_PAIRS = 100_000
"""So are stretches in which more pairs of lines are equal: a comparison of lines that repeat takes minutes."""

_BLANK = re.compile(r"[ \t\r\n]*")
_BLACK = re.compile(r"[^ \t\r\n]+")


def layout_edits(before: str, after: str) -> list[Edit] | None:
    """The edits between two texts that differ only in blanks and in commas; None when they differ in more."""
    edits: list[Edit] = []
    i = j = 0
    while i < len(before) or j < len(after):
        left, right = _BLANK.match(before, i), _BLANK.match(after, j)
        left_end, right_end = left.end() if left else i, right.end() if right else j
        if before[i:left_end] != after[j:right_end]:
            edits.append(Edit(i, left_end, after[j:right_end]))
        i, j = left_end, right_end
        match, other = _BLACK.match(before, i), _BLACK.match(after, j)
        length = min(len(match[0]) if match else 0, len(other[0]) if other else 0)
        if length and before.startswith(after[j : j + length], i):
            i, j = i + length, j + length
            continue
        while i < len(before) and j < len(after) and before[i] == after[j] and before[i] not in " \t\r\n":
            i, j = i + 1, j + 1
        if i == len(before) and j == len(after):
            break
        if before[i : i + 1] in (" ", "\t", "\r", "\n") or after[j : j + 1] in (" ", "\t", "\r", "\n"):
            continue
        if before[i : i + 1] == "," and after[j : j + 1] != ",":
            edits.append(Edit(i, i + 1, ""))
            i += 1
        elif after[j : j + 1] == ",":
            edits.append(Edit(i, i, ","))
            j += 1
        else:
            return None
    return joined(before, edits)


def line_edits(before: str, after: str) -> list[Edit]:
    """The edits between two texts, found line by line and cut to what differs in them."""
    if before == after:
        return []
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    start = sum(map(len, old[:head]))
    middle, wanted = old[head : len(old) - tail], new[head : len(new) - tail]
    places = [start]
    for line in middle:
        places.append(places[-1] + len(line))
    if max(len(middle), len(wanted)) > MAX_COMPARED_LINES or _pairs(middle, wanted) > MAX_PAIRS:
        if len(middle) == len(wanted):
            return joined(before, [Edit(places[k], places[k + 1], line) for k, line in enumerate(wanted)])
        return joined(before, [Edit(start, places[-1], "".join(wanted))])
    from difflib import SequenceMatcher

    edits: list[Edit] = []
    for kind, i, i_end, j, j_end in SequenceMatcher(None, middle, wanted, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        if i_end - i == j_end - j:
            edits += [Edit(places[i + k], places[i + k + 1], wanted[j + k]) for k in range(i_end - i)]
        else:
            edits.append(Edit(places[i], places[i_end], "".join(wanted[j:j_end])))
    return joined(before, edits)


def _pairs(old: Sequence[str], new: Sequence[str]) -> int:
    """How many pairs of equal lines there are: what a comparison goes through, again and again."""
    counts = Counter(new)
    return sum(counts[line] for line in old)


def composed(text: str, first: Sequence[Edit], second: Sequence[Edit]) -> list[Edit]:
    """The edits of a text that do at once what two lists do one after the other; ``second`` is about the text that ``first`` leaves.
    Both are sorted and disjoint."""
    between = applied(text, first)
    # Stretches of the text between, with how much longer the first edits made it: those of both lists that touch are one.
    stretches: list[tuple[int, int, int]] = []
    grown = 0
    for edit in first:
        start, longer = edit.start + grown, len(edit.new_text) - (edit.end - edit.start)
        stretches.append((start, start + len(edit.new_text), longer))
        grown += longer
    stretches += [(edit.start, edit.end, 0) for edit in second]
    stretches.sort()
    merged: list[tuple[int, int, int]] = []
    for start, end, longer in stretches:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]), merged[-1][2] + longer)
        else:
            merged.append((start, end, longer))
    edits: list[Edit] = []
    grown = at = 0
    for start, end, longer in merged:
        inner: list[Edit] = []
        while at < len(second) and second[at].end <= end:
            inner.append(Edit(second[at].start - start, second[at].end - start, second[at].new_text))
            at += 1
        edits.append(Edit(start - grown, end - grown - longer, applied(between[start:end], inner)))
        grown += longer
    return joined(text, edits)


def _common(first: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for a, b in zip(first, other, strict=False):
        if a != b:
            break
        count += 1
    return count


def joined(text: str, edits: Sequence[Edit]) -> list[Edit]:
    """Edits in order without what they leave as it is; those that touch are one."""
    merged_edits: list[Edit] = []
    for original in edits:
        edit = shrunk(text, original)
        if edit is None:
            continue
        last = merged_edits[-1] if merged_edits else None
        if last is not None and last.end == edit.start:
            merged_edits[-1] = Edit(last.start, edit.end, last.new_text + edit.new_text)
        else:
            merged_edits.append(edit)
    return merged_edits


def shrunk(text: str, edit: Edit) -> Edit | None:
    """An edit without the beginning and end that it does not change; None when it changes nothing."""
    old, new = text[edit.start : edit.end], edit.new_text
    if old == new:
        return None
    room = min(len(old), len(new))
    head = 0
    while head < room and old[head] == new[head]:
        head += 1
    # A line end of two characters is never cut in two.
    if head and old[head - 1] == "\r" and (old[head : head + 1] == "\n" or new[head : head + 1] == "\n"):
        head -= 1
    room -= head
    tail = 0
    while tail < room and old[len(old) - tail - 1] == new[len(new) - tail - 1]:
        tail += 1
    if (
        tail
        and old[len(old) - tail] == "\n"
        and ("\r" in (old[len(old) - tail - 1 : len(old) - tail], new[len(new) - tail - 1 : len(new) - tail]))
    ):
        tail -= 1
    return Edit(edit.start + head, edit.end - tail, new[head : len(new) - tail])


def applied(text: str, edits: Sequence[Edit]) -> str:
    """The text after edits that are sorted and disjoint."""
    out: list[str] = []
    at = 0
    for edit in edits:
        out += (text[at : edit.start], edit.new_text)
        at = edit.end
    return "".join([*out, text[at:]])


def are_in_order(edits: Sequence[Edit]) -> bool:
    """Whether edits are sorted and disjoint."""
    return all(edit.end <= other.start for edit, other in pairwise(edits))


def with_crlf(text: str, edits: Sequence[Edit]) -> Iterator[Edit]:
    """Edits of a text with plain line feeds, as edits of the same text with CRLF at every line."""
    feeds = [match.start() for match in re.finditer("\n", text)]
    for edit in edits:
        start = edit.start + bisect_right(feeds, edit.start - 1)
        end = edit.end + bisect_right(feeds, edit.end - 1)
        yield Edit(start, end, edit.new_text.replace("\n", "\r\n"))
