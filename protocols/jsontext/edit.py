"""The next version of a JSON tree after an edit of its text.

Read anew are, of the innermost container around the edit, the children that the edit touches, if the reader then stands where it
stood before in front of the child behind them: from there on everything is as it was. If not, more children, then the container
around it; at last the whole text, in which containers that the edit did not touch are passed over. The result is what reading
the whole text gives, findings and all. Must not know what the JSON means.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

import msgspec

from tamis.protocols.jsontext.findings import MAX_ERRORS
from tamis.protocols.jsontext.green import (
    FEW,
    Before,
    Branch,
    Change,
    Green,
    NodeKind,
    Note,
    Own,
    Reading,
    Trivia,
    Was,
    empty,
    was_of,
)
from tamis.protocols.jsontext.parse import Known, Reader
from tamis.protocols.jsontext.tree import JsonTree

# A new version of a tree from an old one and what was read anew of one branch: new branches from there up to the root. Everything else is shared.


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
    errors = 0 if new.own is old.own is None else new.errors - old.errors
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
        [*old.starts[:low], *new.starts, *map(delta.__add__, old.starts[high:])],
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
    trivia = [item for item in before.trivia if item[0] < first]
    trivia += read.trivia
    trivia += [_shifted(item, delta) for item in before.trivia if item[0] >= last]
    _, marked = _weight(new.values)
    own = Own(before.errors - removed + read.errors, 0, doubled, kept + moved, trivia)
    own.marks = before.marks - before.speaks - were_marked + marked + own.speaks
    return own if own.marks or own.errors else None


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
    if not new.values or (len(new.values) == 1 and not isinstance(new.values[0], Branch)):
        return
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
                child = new.values[there]
                if isinstance(child, Branch) and child.closed and child.length == value.length:
                    new.values[there] = value


def _with_child(old: Branch, index: int, child: Branch, delta: int) -> Branch:
    """A branch with another child, longer by ``delta``, in the place of one; what stands behind it moves."""
    values = old.values.copy()
    values[index] = child
    starts = old.starts
    if delta and index + 1 < len(starts):
        starts = [*starts[: index + 1], *map(delta.__add__, starts[index + 1 :])]
    own = None
    if old.own is not None or child.own is not None:
        own = _own_with_child(old, index, child, delta)
    was = Was(old.values, old.keys, index, index + 1, index + 1, old.made) if len(values) > FEW else None
    return Branch(
        old.kind, old.origin, old.length + delta, old.closed, starts, values, old.keys, old.shapes, own, was=was
    )


def _own_with_child(old: Branch, index: int, child: Branch, delta: int) -> Own | None:
    """What a branch with another child in the place of one says itself, and counts."""
    own = old.own or Own()
    errors, marked = _weight((old.values[index],))
    now_errors, now_marked = _weight((child,))
    end = old.value_start(index) + child.length - delta
    notes = own.notes
    if notes:
        notes = [
            (shift, diag) if diag.span[0] + shift - old.origin < end else (shift + delta, diag) for shift, diag in notes
        ]
    trivia = own.trivia
    if trivia:
        trivia = [item if item[0] < end else _shifted(item, delta) for item in trivia]
    own = Own(own.errors + now_errors - errors, own.marks + now_marked - marked, own.doubled, notes, trivia)
    return own if own.marks or own.errors else None


def _shifted(trivia: Trivia, delta: int) -> Trivia:
    first, last, seen = trivia
    return first + delta, last + delta, seen + delta


def edited(tree: JsonTree, start: int, end: int, new: str, text: str | None = None) -> JsonTree:
    """The tree of the text with ``new`` in place of ``text[start:end]``: equal to reading that text, but only what the edit
    touched is read, and everything else is shared. Several edits: one after the other. ``text`` is the new text, if it is there."""
    if text is None:
        text = "".join((tree.text[:start], new, tree.text[end:]))
    edit, reading = Change(text, start, end, len(new) - (end - start)), tree.reading
    length = len(tree.text)
    # A stray quote in a long line, or a stray closer, can end the reading early. When it is gone, what stood behind is known from before.
    before = tree.before
    if before is None:
        before = Before(reading, start, length - end, length)
    else:
        before = Before(before.reading, min(before.head, start), min(before.tail, length - end), before.length)
    spine = _spine(reading.document, start, end)
    depth = len(spine) - 1
    tries = 0
    new_reading = None
    while depth > 0 and new_reading is None:
        new_reading = _at_level(reading, spine, depth, edit)
        # Further out in growing steps: in a deep nest every level would be read for each one above it.
        depth -= 1 << max(tries - 1, 0)
        tries += 1
    if new_reading is None:
        length = len(edit.text)
        head = min(before.head, length)
        tail = min(before.tail, length - head, before.length - head)
        whole = Change(edit.text, head, before.length - tail, length - before.length)
        new_reading = Reader(edit.text, reading.lenient, _known(before.reading, whole)).read()
    return JsonTree(text, new_reading, None if _is_whole(new_reading) else before, tree.quiet_after(edit))


def _is_whole(reading: Reading) -> bool:
    """Whether the text was read to its end: no cap stopped it, and the value has no text behind it."""
    document = reading.document
    if document.own is None:
        return not reading.stopped
    inside = sum(value.errors for value in document.values if isinstance(value, Branch))
    return not reading.stopped and document.errors == inside


def _spine(document: Branch, start: int, end: int) -> list[Step]:
    """The branches that the edit lies in, from the document on: it touches neither their openers nor their ends."""
    branch, at = document, 0
    steps = [Step(document, 0, 0)]
    while True:
        index = bisect_right(branch.starts, start - at) - 1
        value = branch.values[index] if index >= 0 else None
        if not isinstance(value, Branch):
            return steps
        at += branch.starts[index]
        if branch.shapes:
            shape = branch.shapes[index]
            at += shape if isinstance(shape, int) else shape[2]
        if at >= start or end >= at + value.length:
            return steps
        steps.append(Step(value, at, index))
        branch = value


def _at_level(reading: Reading, spine: list[Step], depth: int, edit: Change) -> Reading | None:
    """The reading with some children of one branch read anew, or None if that is not enough."""
    step = spine[depth]
    branch, at = step.branch, step.start
    starts = branch.starts
    own = branch.own
    noted = {diag.span[0] + shift - branch.origin for shift, diag in own.notes} if own is not None else _NOWHERE
    low = bisect_left(starts, edit.start - at) - 1
    # A finding at the very start of a child may be of the time before it.
    while low > 0 and (starts[low] in noted or (branch.shapes and _looked_on(branch, low))):
        low -= 1
    low = max(low, 0)
    begin = at + (starts[low] if low else 1)
    high = bisect_left(starts, edit.end - at)
    known: dict[int, Known] = {}
    around: frozenset[NodeKind] = frozenset([step.branch.kind for step in spine[1 : depth + 1]])
    for i, inner in enumerate(spine[depth + 1 :], depth + 1):
        _keep(known, inner, (0, len(inner.branch.starts)), edit, begin, reading.deepest - i)
    _keep(known, step, (low, min(high, len(starts))), edit, begin, reading.deepest - depth)
    for _ in range(2):
        while high < len(starts) and starts[high] in noted:
            high += 1
        closes = high >= len(starts)
        if closes and not branch.closed:
            return None
        stop = edit.delta + at + (branch.length if closes else starts[high])
        reader = Reader(edit.text[begin:stop], reading.lenient, known)
        part = empty(branch.kind, at - begin)
        if reader.read_part(part, around, depth - 1, closes=closes):
            deepest = max(reading.deepest, reader.deepest + depth - 1)
            return spliced(reading, spine[: depth + 1], Part(part, low, high, begin), edit, deepest)
        if closes:
            return None
        # A fault may reach into the next child.
        _keep(known, step, (high, high + 1), edit, begin, reading.deepest - depth)
        high += 1
    return None


_NOWHERE: frozenset[int] = frozenset()


def _looked_on(branch: Branch, index: int) -> bool:
    """Whether a name without a colon stands right before a child: what it is was decided by looking at what follows."""
    shapes = branch.shapes[max(index - 2, 0) : index]
    return bool([shape for shape in shapes if not isinstance(shape, int) and shape[1] < 0])


def _keep(known: dict[int, Known], step: Step, window: tuple[int, int], edit: Change, begin: int, height: int) -> None:
    """Notes which children of a branch are as they were, by their places in the new text from ``begin`` on."""
    branch = step.branch
    for index in range(*window):
        value = branch.values[index]
        # A container with errors may owe them to what is around it; one too deep to be read is only its opener.
        if isinstance(value, Branch) and value.closed and not value.errors and value.length > 1:
            first = step.start + branch.value_start(index)
            if first >= edit.end:
                known[first + edit.delta - begin] = (value, height)
            elif first + value.length <= edit.start:
                known[first - begin] = (value, height)


def _known(reading: Reading, edit: Change) -> dict[int, Known]:
    """The largest containers without errors that the edit does not touch."""
    known: dict[int, Known] = {}
    stack = [(Step(reading.document, 0, 0), 0)]
    while stack:
        step, depth = stack.pop()
        branch = step.branch
        _keep(known, step, (0, len(branch.values)), edit, 0, reading.deepest - depth)
        for index, value in enumerate(branch.values):
            if isinstance(value, Branch) and value.starts:
                first = step.start + branch.value_start(index)
                inside = first < edit.end and edit.start < first + value.length
                if inside or value.errors or not value.closed:
                    stack.append((Step(value, first, index), depth + 1))
    return known
