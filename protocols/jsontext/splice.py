"""A new version of a tree from an old one and what was read anew of one branch: new branches from there up to the root.

Everything else is shared. Must not know how the part was read or what the JSON means.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tamis.protocols.jsontext.findings import MAX_ERRORS
from tamis.protocols.jsontext.green import Branch, Change, Green, Note, Own, Reading, Trivia, was_of

_UNCOUNTED = frozenset(("MF527", "MF529", "TC015"))


class Step(msgspec.Struct, frozen=True, gc=False):
    """A branch around a change: where it starts in the text, and its index in the branch above."""

    branch: Branch
    start: int
    index: int


class Part(msgspec.Struct, frozen=True, gc=False):
    """The children ``low:high`` of a branch read anew, as a branch of that kind; ``begin`` is where the reading began."""

    branch: Branch
    low: int
    high: int
    begin: int


def spliced(reading: Reading, spine: Sequence[Step], part: Part, change: Change, deepest: int) -> Reading | None:
    """The reading with the part in its place in the last branch of the spine; None if a cap decides what it would be."""
    step = spine[-1]
    old = step.branch
    new = _joined(step, part, change)
    errors = new.errors - old.errors
    if reading.stopped:
        # Where it stopped was decided by the number of errors before.
        if errors:
            return None
    elif reading.errors + max(errors, 0) >= MAX_ERRORS - 1:
        return None
    for above, below in zip(reversed(spine[:-1]), reversed(spine), strict=False):
        new = _with_child(above.branch, below.index, new, change.delta)
    return Reading(new, reading.lenient, reading.errors + errors, reading.stopped, reading.open_end, deepest)


def _joined(step: Step, part: Part, change: Change) -> Branch:
    """A branch with some children read anew and those behind them moved."""
    old, new = step.branch, part.branch
    low, high = part.low, part.high
    _reuse(step, part, change)
    delta = change.delta
    keys, shapes = old.keys, old.shapes
    doubled = old.own is not None and old.own.doubled
    if old.kind == "object":
        if keys[low:high] != new.keys:
            keys = keys[:low] + new.keys + keys[high:]
            doubled = len(set(keys)) != len(keys) if doubled else any(keys.count(key) > 1 for key in new.keys)
        shapes = shapes[:low] + new.shapes + shapes[high:]
    return Branch(
        old.kind,
        old.origin,
        old.length + delta,
        old.closed,
        old.starts[:low] + new.starts + [start + delta for start in old.starts[high:]],
        old.values[:low] + new.values + old.values[high:],
        keys,
        shapes,
        _owned(step, part, delta, doubled),
        was=was_of(old, low, high, low + len(new.values)),
    )


def _owned(step: Step, part: Part, delta: int, doubled: bool) -> Own | None:
    """What the joined branch says itself, and counts."""
    old, new = step.branch, part.branch
    if old.own is None and new.own is None and not doubled:
        return None
    before = old.own or Own()
    read = new.own or Own()
    # Where the part begins and where what follows it began, from the start of the branch.
    first = old.starts[part.low] if part.low else 0
    last = old.starts[part.high] if part.high < len(old.starts) else old.length
    kept: list[Note] = []
    moved: list[Note] = []
    removed, were_marked = _weight(old.values[part.low : part.high])
    for shift, diag in before.notes:
        place = diag.span[0] + shift - old.origin
        if place < first:
            kept.append((shift, diag))
        elif place >= last:
            moved.append((shift + delta, diag))
        elif diag.code not in _UNCOUNTED:
            removed += 1
    shift = part.begin - step.start + old.origin
    kept += [(shift, diag) for _, diag in read.notes]
    trivia = [one for one in before.trivia if one[0] < first]
    trivia += read.trivia
    trivia += [_shifted(one, delta) for one in before.trivia if one[0] >= last]
    _, marked = _weight(new.values)
    own = Own(before.errors - removed + read.errors, 0, doubled, kept + moved, trivia)
    own.marks = before.marks - before.speaks - were_marked + marked + own.speaks
    return own


def _weight(values: Iterable[Green | None]) -> tuple[int, int]:
    """The errors in some children, and how many of them are marked."""
    errors = marked = 0
    for value in values:
        if isinstance(value, Branch) and value.own is not None:
            errors += value.own.errors
            marked += value.own.marks > 0
    return errors, marked


def _reuse(step: Step, part: Part, change: Change) -> None:
    """Puts the old containers back where the same text was read again, for what is remembered of them."""
    old, new = step.branch, part.branch
    again = {new.value_start(i): i for i, value in enumerate(new.values) if isinstance(value, Branch)}
    for index in range(part.low, part.high):
        value = old.values[index]
        if isinstance(value, Branch) and value.closed:
            place = old.value_start(index)
            if step.start + place >= change.end:
                place += change.delta
            elif step.start + place + value.length > change.start:
                continue
            there = again.get(place)
            if there is not None:
                found = new.values[there]
                if isinstance(found, Branch) and found.closed and found.length == value.length:
                    new.values[there] = value


def _with_child(old: Branch, index: int, child: Branch, delta: int) -> Branch:
    """A branch with another child, longer by ``delta``, in the place of one; what stands behind it moves."""
    values = old.values.copy()
    was = values[index]
    values[index] = child
    starts = old.starts
    if delta and index + 1 < len(starts):
        starts = starts[: index + 1] + [start + delta for start in starts[index + 1 :]]
    own = old.own
    errors, marked = _weight((was,))
    now_errors, now_marked = _weight((child,))
    if own is not None or now_errors or now_marked:
        end = old.value_start(index) + child.length - delta
        own = own or Own()
        own = Own(
            own.errors + now_errors - errors,
            own.marks + now_marked - marked,
            own.doubled,
            [
                (shift, diag) if diag.span[0] + shift - old.origin < end else (shift + delta, diag)
                for shift, diag in own.notes
            ],
            [one if one[0] < end else _shifted(one, delta) for one in own.trivia],
        )
    return Branch(
        old.kind,
        old.origin,
        old.length + delta,
        old.closed,
        starts,
        values,
        old.keys,
        old.shapes,
        own,
        was=was_of(old, index, index + 1, index + 1),
    )


def _shifted(trivia: Trivia, delta: int) -> Trivia:
    first, last, seen = trivia
    return first + delta, last + delta, seen + delta
