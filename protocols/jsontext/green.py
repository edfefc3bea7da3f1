"""The position-free half of a JSON tree: what was read, with every place counted from the start of its own container.

Because nothing here knows where it stands in the text, an unchanged container is shared by all later versions of a document: an
edit makes new branches only on the way from the root to the edit. Branches are never changed once a tree holds them, but for
the two caches ``made`` and ``memo``. Must not know the text or what it means.
"""

from __future__ import annotations

from itertools import compress, repeat
from operator import attrgetter, is_
from typing import Literal

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
        if len(branch.values) > _WIDE and _filled(branch, into, fresh):
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
    for branch, made in fresh:
        if branch.made is None:
            branch.made = made
    return root if green.made is None else green.made


_WIDE = 32
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
    else:
        into.extend(parts)
    return True


def _fresh(kind: NodeKind) -> list[Json] | dict[str, Json]:
    return {} if kind == "object" else []
