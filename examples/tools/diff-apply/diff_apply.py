"""diff:apply: applies a unified diff, or SEARCH/REPLACE blocks, to a text and returns the new text.

A hunk is applied where its lines stand word for word, nearest to the line that it names; otherwise nothing is applied.
Reads one JSON object from standard input, prints one JSON object; a problem is one line on standard error and exit code 1.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple, cast

MAX_CHARACTERS = 400_000
MAX_HUNKS = 1000
# What the search for hunks may cost at most, in line comparisons; ordinary diffs need a few thousand.
MAX_COMPARISONS = 5_000_000

HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
SEARCH = re.compile(r"<{5,9} ?SEARCH")
DIVIDER = re.compile(r"={5,9}")
REPLACE = re.compile(r">{5,9} ?REPLACE")
START_LINE = re.compile(r":start_line: ?(\d{1,9})")


class InputError(Exception):
    """The request cannot be answered; the message says what to change."""


class Hunk(NamedTuple):
    """Replace the lines `old`, expected at the zero-based line `at` (None: anywhere), by `new`."""

    at: int | None
    old: list[str]
    new: list[str]


class Change(NamedTuple):
    """What one hunk did: the one-based line in the new text, and how many lines went and came."""

    line: int
    removed: int
    added: int


def read_request() -> dict[str, object]:
    try:
        request = json.loads(sys.stdin.buffer.read().decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"standard input is not JSON: {error}") from error
    if not isinstance(request, dict):
        raise InputError("the input must be one JSON object")
    return cast("dict[str, object]", request)


def text_parameter(request: dict[str, object], name: str) -> str:
    value = request.get(name)
    if not isinstance(value, str):
        raise InputError(f"'{name}' is required and must be a string")
    if len(value) > MAX_CHARACTERS:
        raise InputError(f"'{name}' has {len(value)} characters; the limit is {MAX_CHARACTERS}")
    return value


def unified_hunks(lines: list[str]) -> list[Hunk]:
    hunks: list[Hunk] = []
    at = 0
    while at < len(lines):
        head = HUNK.match(lines[at])
        at += 1
        if head is None:
            continue
        old_left = int(head[2] or 1)
        new_left = int(head[4] or 1)
        # An empty old side names the line after which to insert (`-3,0`), so it is not one too high.
        start = int(head[1]) if old_left == 0 else max(int(head[1]) - 1, 0)
        old: list[str] = []
        new: list[str] = []
        while (old_left > 0 or new_left > 0) and at < len(lines):
            mark, rest = lines[at][:1], lines[at][1:]
            if mark == "\\":
                at += 1
                continue
            # Editors and models drop the single blank of an empty context line.
            if mark in (" ", ""):
                old.append(rest)
                new.append(rest)
                old_left -= 1
                new_left -= 1
            elif mark == "-":
                old.append(rest)
                old_left -= 1
            elif mark == "+":
                new.append(rest)
                new_left -= 1
            else:
                break
            at += 1
        if old_left != 0 or new_left != 0:
            raise InputError(f"hunk {len(hunks) + 1} ({head[0]}) does not have the number of lines that its head says")
        hunks.append(Hunk(start, old, new))
    return hunks


def search_replace_hunks(lines: list[str]) -> list[Hunk]:
    hunks: list[Hunk] = []
    side: list[str] | None = None
    old: list[str] = []
    new: list[str] = []
    start: int | None = None
    for line in lines:
        plain = line.strip()
        if SEARCH.fullmatch(plain):
            old, new, start = [], [], None
            side = old
        elif side is old and not old and (named := START_LINE.fullmatch(plain)):
            start = max(int(named[1]) - 1, 0)
        elif side is old and not old and plain == "-------":
            continue
        elif side is old and DIVIDER.fullmatch(plain):
            side = new
        elif side is new and REPLACE.fullmatch(plain):
            hunks.append(Hunk(start, old, new))
            side = None
        elif side is not None:
            side.append(line)
    if side is not None:
        raise InputError(f"SEARCH/REPLACE block {len(hunks) + 1} is not closed by >>>>>>> REPLACE")
    return hunks


def read_hunks(diff: str) -> list[Hunk]:
    lines = diff.replace("\r\n", "\n").rstrip("\n").split("\n")
    if any(SEARCH.fullmatch(line.strip()) for line in lines):
        hunks = search_replace_hunks(lines)
    else:
        hunks = unified_hunks(lines)
    if not hunks:
        raise InputError("'diff' holds neither a unified hunk (@@ -1,2 +1,2 @@) nor a <<<<<<< SEARCH block")
    if len(hunks) > MAX_HUNKS:
        raise InputError(f"'diff' has {len(hunks)} hunks; the limit is {MAX_HUNKS}")
    return hunks


def nearest_first(expected: int | None, first: int, last: int) -> Iterator[int]:
    """The lines `first` to `last`, those near the expected one before the others; in order when none is expected."""
    centre = first if expected is None else min(max(expected, first), last)
    for distance in range(last - first + 1):
        if centre + distance <= last:
            yield centre + distance
        if distance and centre - distance >= first:
            yield centre - distance


def place_of(hunk: Hunk, number: int, lines: list[str], first: int, shift: int, budget: list[int]) -> int:
    """Where the old lines of a hunk stand at or after line `first`, nearest to where they are expected."""
    expected = None if hunk.at is None else hunk.at + shift
    if not hunk.old:
        if expected is None:
            raise InputError(f"hunk {number} has nothing to search for and names no line")
        return min(max(expected, first), len(lines))
    size = len(hunk.old)
    found: list[int] = []
    for place in nearest_first(expected, first, len(lines) - size):
        budget[0] -= 1
        if lines[place] == hunk.old[0]:
            budget[0] -= size
            if lines[place : place + size] == hunk.old:
                found.append(place)
                if expected is not None or len(found) > 1:
                    break
        if budget[0] < 0:
            raise InputError("the hunks take too long to find; split the diff")
    if len(found) > 1:
        raise InputError(f"hunk {number} fits at lines {found[0] + 1} and {found[1] + 1}; add lines around it")
    if found:
        return found[0]
    raise InputError(mismatch(hunk, number, lines, expected))


def mismatch(hunk: Hunk, number: int, lines: list[str], expected: int | None) -> str:
    if expected is not None and 0 <= expected < len(lines):
        for offset, wanted in enumerate(hunk.old):
            actual = lines[expected + offset] if expected + offset < len(lines) else "(end of the text)"
            if actual != wanted:
                return (
                    f"hunk {number} does not fit: line {expected + offset + 1} is {actual[:80]!r}, not {wanted[:80]!r}"
                )
    return f"hunk {number} does not fit: its lines, beginning with {hunk.old[0][:80]!r}, do not stand in the text"


def apply(request: dict[str, object]) -> dict[str, object]:
    text = text_parameter(request, "text")
    hunks = read_hunks(text_parameter(request, "diff"))

    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.replace("\r\n", "\n").split("\n") if text else []
    # The last, empty piece is the final newline: it is kept as it was and is not a line that a hunk may match.
    ends_with_newline = bool(lines) and lines[-1] == ""
    if ends_with_newline:
        lines.pop()

    changes: list[Change] = []
    first = 0
    shift = 0
    budget = [MAX_COMPARISONS]
    for number, hunk in enumerate(hunks, start=1):
        place = place_of(hunk, number, lines, first, shift, budget)
        lines[place : place + len(hunk.old)] = hunk.new
        changes.append(Change(place + 1, len(hunk.old), len(hunk.new)))
        if hunk.at is not None:
            first = place + len(hunk.new)
            shift = place - hunk.at + len(hunk.new) - len(hunk.old)
    result = newline.join(lines) + (newline if lines and (ends_with_newline or not text) else "")
    return {"text": result, "hunks": len(hunks), "changes": [change._asdict() for change in changes]}


def main() -> int:
    try:
        result = apply(read_request())
    except InputError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
