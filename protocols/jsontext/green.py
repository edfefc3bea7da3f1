"""The position-free half of a JSON tree: what was read, with every place counted from the start of its own container.

Because nothing here knows where it stands in the text, an unchanged container is shared by all later versions of a document: an
edit makes new branches only on the way from the root to the edit, and a wide one knows which of its children were others before
(``was``), so that nobody needs to look for them. Branches are never changed once a tree holds them, but for the two caches
``made`` and ``memo``. Must not know the text or what it means.
"""

from __future__ import annotations

from itertools import compress, repeat
from operator import attrgetter, is_
from typing import Literal, NamedTuple

import msgspec

from tamis.protocols.model import Diag, Json

NodeKind = Literal["object", "array", "string", "number", "boolean", "null", "error"]
Shape = int | tuple[int, int, int]
"""Where a member's parts are, from its start: (length of the key as written, colon, value), -1 where there is none.

A whole number stands for the usual shape: a plain key, the colon right behind it, the value at that offset.
"""
Note = tuple[int, Diag]
"""A finding, and by how much it moved: its place is ``span + shift - origin`` from the start of the branch that owns it."""
Trivia = tuple[int, int, int]
"""Start, end and place of discovery, from the start of the owner. A comment is found where it starts, a trailing comma later."""


FEW = 4
"""A value of more parts is sooner made from the one that it was before."""
WIDE = 32
"""A branch with more children is not to be gone through at each keystroke."""


class Scalar(msgspec.Struct, gc=False, eq=False):
    """A value that holds no others; may be shared between places of one text."""

    kind: NodeKind
    length: int
    value: str | int | float | bool | None


class Own(msgspec.Struct, gc=False, eq=False):
    """What a branch has besides values.

    ``errors`` counts the findings of the whole branch that count towards the cap; ``marks`` says how many of its children have
    an ``Own`` that says anything, plus one if its own lists do; ``doubled`` whether a key stands in it twice.
    """

    errors: int = 0
    marks: int = 0
    doubled: bool = False
    notes: list[Note] = []
    trivia: list[Trivia] = []

    @property
    def speaks(self) -> bool:
        """Whether there is a finding, comment or trailing comma outside the children."""
        return bool(self.notes or self.trivia or self.doubled)


class Was(msgspec.Struct, frozen=True, gc=False, eq=False):
    """What a branch was before an edit: its children ``low:high`` were others, and now ``low:top`` stand in their place.

    ``values``, ``keys`` and ``made`` are those of that time; all other children are the same, in the same shape.
    """

    values: list[Green | None]
    keys: list[str]
    low: int
    high: int
    top: int
    made: list[Json] | dict[str, Json] | None


def was_of(old: Branch, low: int, high: int, top: int) -> Was | None:
    """What is to be known of the branch before an edit; nothing of one with few parts, which is looked through as fast."""
    return Was(old.values, old.keys, low, high, top, old.made) if len(old.values) > FEW else None


class Branch(msgspec.Struct, gc=False, eq=False):
    """An object or list. The four lists run in parallel; ``keys`` and ``shapes`` are empty for a list.

    ``starts`` are the starts of the members or items from the start of the branch, ``origin`` is where it stood when it was
    read. ``memo`` must hold no nodes: it outlives them, and a circle through it would never be freed.
    """

    kind: NodeKind
    origin: int
    length: int
    closed: bool
    starts: list[int]
    values: list[Green | None]
    keys: list[str]
    shapes: list[Shape]
    own: Own | None = None
    made: list[Json] | dict[str, Json] | None = None
    memo: dict[object, object] | None = None
    was: Was | None = None

    @property
    def is_marked(self) -> bool:
        """Whether anything in the branch is a finding or trivia."""
        return self.own is not None and self.own.marks > 0

    @property
    def errors(self) -> int:
        """Findings of the branch that count towards the cap."""
        return 0 if self.own is None else self.own.errors

    def value_start(self, index: int) -> int:
        """Where a child's value starts, from the start of the branch."""
        if not self.shapes:
            return self.starts[index]
        shape = self.shapes[index]
        return self.starts[index] + (shape if isinstance(shape, int) else shape[2])


Green = Scalar | Branch


def empty(kind: NodeKind, origin: int) -> Branch:
    """A container to be filled."""
    if kind == "object":
        return Branch(kind, origin, 1, True, [], [], [], [])
    return Branch(kind, origin, 1, True, [], [], NO_KEYS, NO_SHAPES)


NO_KEYS: list[str] = []
NO_SHAPES: list[Shape] = []
"""The lists of every list; nobody appends to them."""


def parts_of(shape: Shape, key: str) -> tuple[int, int, int]:
    """A shape written out."""
    if isinstance(shape, int):
        width = len(key) + 2
        return width, width, shape
    return shape


def python_of(green: Green) -> Json:
    """The value as Python data; made once for each branch, so whoever gets it must not change it."""
    if isinstance(green, Scalar):
        return green.value
    if green.made is not None:
        return green.made
    root = _fresh(green.kind)
    # Kept only when all of it is there: another thread may ask for the same branch meanwhile.
    fresh: list[tuple[Branch, list[Json] | dict[str, Json]]] = [(green, root)]
    for branch, into in fresh:
        was = branch.was
        if (was is not None and _derived(branch, was, into, fresh)) or (
            len(branch.values) > WIDE and _filled(branch, into, fresh)
        ):
            continue
        if isinstance(into, dict):
            for key, value in zip(branch.keys, branch.values, strict=True):
                if isinstance(value, Scalar):
                    into[key] = value.value
                elif value is not None:
                    part = value.made
                    if part is None:
                        part = _fresh(value.kind)
                        fresh.append((value, part))
                    into[key] = part
        else:
            for value in branch.values:
                if isinstance(value, Scalar):
                    into.append(value.value)
                elif value is not None:
                    part = value.made
                    if part is None:
                        part = _fresh(value.kind)
                        fresh.append((value, part))
                    into.append(part)
    _keep(fresh)
    return root if green.made is None else green.made


def _keep(fresh: list[tuple[Branch, list[Json] | dict[str, Json]]]) -> None:
    """Keeps the values with their branches; what another thread kept meanwhile stays."""
    for branch, value in fresh:
        if branch.made is None:
            branch.made = value


_MADE = attrgetter("made")


def _filled(
    branch: Branch, into: list[Json] | dict[str, Json], fresh: list[tuple[Branch, list[Json] | dict[str, Json]]]
) -> bool:
    """Fills the value of a wide branch of which most parts are made already, without a step in Python for each; false where a
    part is no container."""
    try:
        parts: list[Json] = list(map(_MADE, branch.values))
    except AttributeError:
        return False
    for at in compress(range(len(parts)), map(is_, parts, repeat(None))):
        value = branch.values[at]
        assert isinstance(value, Branch)
        part: list[Json] | dict[str, Json] = {} if value.kind == "object" else []
        fresh.append((value, part))
        parts[at] = part
    if isinstance(into, dict):
        into.update(zip(branch.keys, parts, strict=True))
        was = branch.was
        if (
            was is not None
            and isinstance(was.made, dict)
            and len(was.made) == len(was.values)
            and len(into) == len(parts)
        ):
            note(into, was.made, was.keys[was.low : was.high], branch.keys[was.low : was.top])
    else:
        into.extend(parts)
    return True


def _derived(
    branch: Branch,
    was: Was,
    into: list[Json] | dict[str, Json],
    fresh: list[tuple[Branch, list[Json] | dict[str, Json]]],
) -> bool:
    """Fills the value of a branch in which one child was replaced from the value that it had before; false where it had none."""
    old, low = was.made, was.low
    if old is None or was.high != low + 1 or was.top != low + 1 or len(old) != len(was.values):
        return False
    if branch.keys is not was.keys and branch.keys[low] != was.keys[low]:
        return False
    value = branch.values[low]
    if value is None:
        return False
    part = value.value if isinstance(value, Scalar) else value.made
    if part is None and isinstance(value, Branch):
        part = _fresh(value.kind)
        fresh.append((value, part))
    if isinstance(into, dict):
        assert isinstance(old, dict)
        into.update(old)
        key = branch.keys[low]
        into[key] = part
        if len(into) > WIDE:
            note(into, old, [key], [key])
    else:
        assert isinstance(old, list)
        into.extend(old)
        into[low] = part
    return True


class Difference(NamedTuple):
    """Of two mappings: the names that were taken out, and those that were put in. All other names have the same values."""

    gone: list[str]
    come: list[str]


_MAX_NOTED = 8
_noted: dict[int, tuple[object, object, Difference]] = {}
"""The last wide values that were made from others, with these."""


def note(new: object, old: object, gone: list[str], come: list[str]) -> None:
    """Notes how a mapping differs from the one that it was made from."""
    _noted[id(new)] = (new, old, Difference(gone, come))
    while len(_noted) > _MAX_NOTED:
        # Another thread may take out the same one.
        _noted.pop(next(iter(list(_noted))), None)


def difference(old: object, new: object) -> Difference | None:
    """How a mapping differs from the one that it was made from, where that was noted."""
    entry = _noted.get(id(new))
    return entry[2] if entry is not None and entry[0] is new and entry[1] is old else None


def _fresh(kind: NodeKind) -> list[Json] | dict[str, Json]:
    return {} if kind == "object" else []


class Reading(msgspec.Struct, frozen=True, gc=False, eq=False):
    """What a reader found, without the text: ``document`` holds the root value and what stands around it.

    ``lenient``: comments and trailing commas were allowed. ``errors`` count towards the cap; ``stopped``: a cap ended the reading.
    ``open_end``: the text ended inside a container, and that is reported. ``deepest``: no container is nested deeper.
    """

    document: Branch
    lenient: bool
    errors: int
    stopped: bool
    open_end: bool
    deepest: int


class Change(msgspec.Struct, frozen=True, gc=False, eq=False):
    """``[start, end)`` of the old text was replaced: ``text`` is the result, longer by ``delta``."""

    text: str
    start: int
    end: int
    delta: int


class Before(msgspec.Struct, frozen=True, gc=False, eq=False):
    """An earlier version of ``length`` characters, of which the first ``head`` and the last ``tail`` are still as they were."""

    reading: Reading
    head: int
    tail: int
    length: int
