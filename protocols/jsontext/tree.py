"""The tree that JSON text is read into: nodes with places, look-up by pointer and by offset.

A ``JsonNode`` is a view with absolute code-point offsets, made when it is asked for, of a branch that knows none
(``green.py``). What an edit leaves alone is the same branch in the next version, wherever it moved to. So, for work that should
be done once for each text and not once for each keystroke:

- ``to_python()`` gives the very same list or dict for an unchanged container (nobody may change it);
- ``memo_of(node)`` is a dict that belongs to the container's text: the same dict in every later version in which that container
  was not touched. It holds whatever the caller puts into it, but no nodes and no absolute offsets;
- ``node.greens`` are a container's children without a view of each (None for a member without a value), ``node.keys`` the
  keys beside them, ``node.child(i)`` the view of one. ``memo_of`` takes either::

      for i, green in enumerate(node.greens):
          memo = memo_of(green)
          found = memo.get(question)
          if found is None:
              found = memo[question] = look_at(node.child(i))

Must not know how the text was read or what it means.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Literal, cast, overload

import msgspec

from tamis.protocols.jsontext.findings import Found, collect
from tamis.protocols.jsontext.green import Before, Branch, Change, Green, NodeKind, Reading, Scalar, python_of
from tamis.protocols.model import Diag, Json, escape_pointer, unescape_pointer
from tamis.protocols.positions import Span

Path = tuple[str | int, ...]


class Member(msgspec.Struct, gc=False):
    """One member of an object; ``colon`` is -1 where none was written, ``value`` None where none follows."""

    key: str
    key_start: int
    key_end: int
    colon: int
    value: JsonNode | None

    @property
    def key_span(self) -> Span:
        """The key with its quotes."""
        return self.key_start, self.key_end

    @property
    def span(self) -> Span:
        """The whole member."""
        end = self.value.end if self.value is not None else max(self.key_end, self.colon + 1)
        return self.key_start, end


class JsonNode(msgspec.Struct, gc=False, eq=False):
    """One value. ``value`` holds a scalar, ``members`` an object's members in order, ``items`` a list's items.

    Kind ``error`` marks something that is no JSON value; ``closed`` is false for a container that the text left open. The views
    below a node are made once: asked again, the same objects come.
    """

    kind: NodeKind
    start: int
    end: int
    value: str | int | float | bool | None
    closed: bool
    green: Green
    views: list[Member | JsonNode | None] | None = None
    whole: bool = False

    @property
    def span(self) -> Span:
        """Where the value stands, with quotes or brackets."""
        return self.start, self.end

    @property
    def members(self) -> list[Member]:
        """An object's members in order; empty for everything else."""
        return self._all() if self.kind == "object" else []  # type: ignore[return-value] # an object's views are members

    @property
    def items(self) -> list[JsonNode]:
        """A list's items; empty for everything else."""
        return self._all() if self.kind == "array" else []  # type: ignore[return-value] # a list's views are nodes

    @property
    def greens(self) -> Sequence[Green | None]:
        """The children without views, in order: None for a member without a value. Not to be changed."""
        return self.green.values if isinstance(self.green, Branch) else ()

    @property
    def keys(self) -> Sequence[str]:
        """The keys of an object, in the order of ``greens``. Not to be changed."""
        return self.green.keys if isinstance(self.green, Branch) else ()

    def child(self, index: int) -> JsonNode | None:
        """The value of the member or item at an index of ``greens``."""
        view = self.view(index)
        return view.value if isinstance(view, Member) else view

    def view(self, index: int) -> Member | JsonNode:
        """The member or item at an index of ``greens``; raises IndexError outside."""
        views = self.views
        if views is None:
            green = self.green
            nothing: list[Member | JsonNode | None] = [None]
            nothing *= len(green.values) if isinstance(green, Branch) else 0
            # Of two threads that ask at once both get the views of the first.
            if self.views is None:
                self.views = nothing
            views = self.views
        view = views[index]
        if view is None:
            new_view = self._made(index)
            view = views[index]
            if view is None:
                view = views[index] = new_view
        return view

    def _all(self) -> list[Member | JsonNode | None]:
        if not self.whole or self.views is None:
            for index in range(len(self.greens)):
                self.view(index)
            self.whole = True
            self.views = self.views or []
        return self.views

    def _made(self, index: int) -> Member | JsonNode:
        branch = self.green
        assert isinstance(branch, Branch)
        start = self.start + branch.starts[index]
        green = branch.values[index]
        if self.kind == "array":
            assert green is not None
            return node_of(green, start)
        key = branch.keys[index]
        shape = branch.shapes[index]
        if isinstance(shape, int):
            end = start + len(key) + 2
            return Member(key, start, end, end, None if green is None else node_of(green, start + shape))
        width, colon, offset = shape
        value = None if green is None else node_of(green, start + offset)
        return Member(key, start, start + width, -1 if colon < 0 else start + colon, value)

    def member(self, name: str) -> Member | None:
        """The member of that name; of several the last, which is the one that counts."""
        branch = self.green
        if not isinstance(branch, Branch):
            return None
        keys = branch.keys
        if len(keys) > _MANY_KEYS:
            index = _index_of(branch).get(name, -1)
            if index < 0:
                return None
        elif name not in keys:
            return None
        else:
            index = keys.index(name)
            if branch.own is not None and branch.own.doubled:
                index = max(i for i, key in enumerate(keys) if key == name)
        view = self.view(index)
        return view if isinstance(view, Member) else None

    def get(self, name: str) -> JsonNode | None:
        """The value of the member of that name, or None."""
        branch = self.green
        if not isinstance(branch, Branch):
            return None
        keys = branch.keys
        if len(keys) <= _MANY_KEYS and (branch.own is None or not branch.own.doubled):
            # Most names that are asked for are not there.
            if name not in keys:
                return None
            view = self.view(keys.index(name))
            return view.value if isinstance(view, Member) else None
        member = self.member(name)
        return None if member is None else member.value

    def at(self, path: Sequence[str | int]) -> JsonNode | None:
        """The value that a path of keys and indices leads to, or None."""
        node: JsonNode | None = self
        for token in path:
            if node is None:
                return None
            if node.kind == "object":
                node = node.get(str(token))
            elif node.kind == "array":
                index = token if isinstance(token, int) else int(token) if _is_index(token) else -1
                node = node.child(index) if 0 <= index < len(node.greens) else None
            else:
                return None
        return node

    def to_python(self) -> Json:
        """The value as Python data; members without a value are left out, kind ``error`` becomes None.

        Shared: the same container gives the same object, in later versions of the text too. Copy it before you change it.
        """
        return python_of(self.green)


def node_of(green: Green, start: int) -> JsonNode:
    """A view of a value that starts at ``start``."""
    if isinstance(green, Scalar):
        return JsonNode(green.kind, start, start + green.length, green.value, True, green)
    return JsonNode(green.kind, start, start + green.length, None, green.closed, green)


@overload
def memo_of(of: Branch | JsonNode) -> dict[object, object]: ...
@overload
def memo_of(of: Green | JsonNode | None) -> dict[object, object]: ...
def memo_of(of: Green | JsonNode | None) -> dict[object, object]:
    """What is remembered about a container as long as its text stays as it is.

    The same dict in every later version of the document, wherever the container moved to. It must hold no nodes and no offsets
    that count from anywhere but the container's start. Values that are no containers have nothing to remember: a new dict.
    """
    green = of.green if isinstance(of, JsonNode) else of
    if not isinstance(green, Branch):
        return {}
    memo = green.memo
    if memo is not None:
        return memo
    fresh: dict[object, object] = {}
    # Of two threads that ask at once both get the memo of the first.
    if green.memo is None:
        green.memo = fresh
    return green.memo


_MANY_KEYS = 64
"""A key among more is not looked for, but kept with its place: many are asked for, one after the other."""
_BY_KEY = "tree.by-key"


def _index_of(branch: Branch) -> dict[str, int]:
    """The places of the keys of an object; of a doubled one the last."""
    memo = memo_of(branch)
    known = memo.get(_BY_KEY)
    if not isinstance(known, dict):
        known = memo[_BY_KEY] = dict(zip(branch.keys, range(len(branch.keys)), strict=True))
    return cast("dict[str, int]", known)


def _index_in(branch: Branch, token: str) -> int:
    """The index of the child that a token of a pointer names, or -1; of several members of one name the last counts."""
    if branch.kind != "object":
        index = int(token) if _is_index(token) else -1
        return index if index < len(branch.values) else -1
    keys = branch.keys
    if len(keys) > _MANY_KEYS or (branch.own is not None and branch.own.doubled):
        return _index_of(branch).get(token, -1)
    return keys.index(token) if token in keys else -1


class Place(msgspec.Struct, frozen=True):
    """What stands at an offset.

    ``path`` leads to the innermost value or member around it; ``container`` is the innermost object or list; ``slot`` says
    whether a key or a value belongs there (``gap``: neither, as between a value and its comma); ``member`` is the member the
    offset lies in; ``node`` the value it lies in, if any.
    """

    path: Path
    slot: Literal["key", "value", "gap"]
    node: JsonNode | None
    container: JsonNode | None
    member: Member | None = None

    @property
    def pointer(self) -> str:
        """``path`` as a JSON Pointer."""
        return to_pointer(self.path)


class JsonTree:
    """A JSON text as it was read. Never changed: an edit makes the next one."""

    __slots__ = ("_found", "_root", "_silent", "before", "reading", "text")

    def __init__(self, text: str, reading: Reading, before: Before | None = None, silent: tuple[str, ...] = ()) -> None:
        """``before``: what was read of an earlier version that was read to its end, where this one was not. ``silent``: words that
        the text is known not to hold."""
        self.text = text
        self.reading = reading
        self.before = before
        self._root: JsonNode | None = None
        self._found: Found | None = None
        self._silent = silent

    def says(self, word: str) -> bool:
        """Whether the text holds a word; after an edit of a text without it only what the edit touched is searched."""
        if word in self._silent:
            return False
        if word in self.text:
            return True
        self._silent = (*self._silent, word)
        return False

    @property
    def root(self) -> JsonNode | None:
        """The document's value; None where nothing could be read."""
        document = self.reading.document
        if self._root is None and document.values:
            green = document.values[0]
            assert green is not None
            root = node_of(green, document.starts[0])
            if self._root is None:
                self._root = root
        return self._root

    def _findings(self) -> Found:
        if self._found is None:
            self._found = collect(self.text, self.reading)
        return self._found

    @property
    def diagnostics(self) -> list[Diag]:
        """What is wrong with the text, in the order of the text."""
        return self._findings().diagnostics

    @property
    def comments(self) -> list[Span]:
        """Every comment, also those that no hint tells of."""
        return self._findings().comments

    @property
    def trailing_commas(self) -> list[int]:
        """The places of the commas before a closing bracket."""
        return self._findings().trailing_commas

    def quiet_after(self, change: Change) -> tuple[str, ...]:
        """Of the words that the text is known not to hold (``says``), those that the change did not bring."""
        if not self._silent:
            return ()
        text, last = change.text, change.end + change.delta
        return tuple(
            [word for word in self._silent if word not in text[max(0, change.start - len(word)) : last + len(word)]]
        )

    @property
    def ok(self) -> bool:
        """Whether the text was read without errors."""
        return not any((diag.severity or _DEFAULT.get(diag.code, "error")) == "error" for diag in self.diagnostics)

    def node_at(self, pointer: str) -> JsonNode | None:
        """The value that a JSON Pointer leads to, or None."""
        if self.root is None:
            return None
        return self.root.at(from_pointer(pointer))

    def nearest(self, pointer: str) -> tuple[JsonNode | None, bool]:
        """The value at a pointer, or the nearest one above it, and whether it is the value itself."""
        node = self.root
        for token in from_pointer(pointer):
            below = None if node is None else node.at((token,))
            if below is None:
                return node, False
            node = below
        return node, True

    def nearest_place(self, pointer: str) -> tuple[Green | None, int, bool]:
        """As ``nearest``, without views: the value, where it starts, and whether it is the value itself."""
        document = self.reading.document
        green = document.values[0] if document.values else None
        start = document.starts[0] if document.values else 0
        for token in from_pointer(pointer) if green is not None else ():
            index = _index_in(green, token) if isinstance(green, Branch) else -1
            below = green.values[index] if isinstance(green, Branch) and index >= 0 else None
            if below is None or not isinstance(green, Branch):
                return green, start, False
            green, start = below, start + green.value_start(index)
        return green, start, green is not None

    def key_span(self, pointer: str) -> Span | None:
        """The key of the member that a pointer leads to, or None where it leads to no member."""
        path = from_pointer(pointer)
        if self.root is None or not path:
            return None
        parent = self.root.at(path[:-1])
        member = parent.member(path[-1]) if parent is not None and parent.kind == "object" else None
        return None if member is None else member.key_span

    def pointer_at(self, offset: int) -> Place:
        """What stands at an offset, for completion and hover; works inside broken text too."""
        node = self.root
        path: list[str | int] = []
        if node is None or not _inside(node, offset):
            return Place((), "value", None, None)
        while True:
            if node.kind == "object":
                place = _in_object(node, path, offset)
            elif node.kind == "array":
                place = _in_array(node, path, offset)
            else:
                return Place(tuple(path), "value", node, None)
            if isinstance(place, Place):
                return place
            node, token, member = place
            path.append(token)
            if node.kind not in ("object", "array") or offset <= node.start or (node.closed and offset >= node.end):
                parent = self.root if self.root is None else self.root.at(path[:-1])
                return Place(tuple(path), "value", node, parent, member)


_DEFAULT = {"MF524": "warning", "MF525": "hint", "MF526": "hint", "MF527": "warning", "TC015": "information"}


def _is_index(token: str) -> bool:
    return token.isascii() and token.isdigit() and len(token) < 10


def _inside(node: JsonNode, offset: int) -> bool:
    return node.start <= offset and (offset <= node.end or not node.closed)


def _in_object(node: JsonNode, path: list[str | int], offset: int) -> Place | tuple[JsonNode, str, Member | None]:
    index = _last(node, offset)
    last = node.view(index) if index >= 0 else None
    if not isinstance(last, Member):
        return Place(tuple(path), "key", node, node)
    here = (*path, last.key)
    if offset <= last.key_end:
        return Place(here, "key", None, node, last)
    value = last.value
    if last.colon < 0 or offset <= last.colon:
        return Place(here, "gap", None, node, last)
    if value is None or offset < value.start:
        return Place(here, "value", None, node, last)
    if _inside(value, offset):
        return value, last.key, last
    return Place(tuple(path), "gap", node, node, last)


def _in_array(node: JsonNode, path: list[str | int], offset: int) -> Place | tuple[JsonNode, int, None]:
    index = _last(node, offset)
    item = node.child(index) if index >= 0 else None
    if item is not None and _inside(item, offset):
        return item, index, None
    return Place((*path, index + 1), "value", None, node)


def _last(node: JsonNode, offset: int) -> int:
    """The index of the last child that starts at ``offset`` or before, or -1."""
    return bisect_right(node.green.starts, offset - node.start) - 1 if isinstance(node.green, Branch) else -1


def to_pointer(path: Sequence[str | int]) -> str:
    """A path as a JSON Pointer (RFC 6901)."""
    return "".join(f"/{escape_pointer(token) if isinstance(token, str) else token}" for token in path)


def from_pointer(pointer: str) -> list[str]:
    """The tokens of a JSON Pointer."""
    return [unescape_pointer(token) for token in pointer.split("/")[1:]]


# Numbers that JSON does not have (RFC 8259: no ``NaN``, no ``Infinity``), and that Python's own writer and reader let through. Pure.


_Path = list[str | int]


def not_finite(value: object) -> tuple[str, float] | None:
    """The first such number in plain data, with its JSON Pointer (empty: the value itself)."""
    stack: list[tuple[_Path, object]] = [([], value)]
    while stack:
        place, item = stack.pop()
        if isinstance(item, float):
            if not math.isfinite(item):
                return to_pointer(place), item
        elif isinstance(item, dict):
            members = reversed(cast("dict[Any, object]", item).items())
            stack += [([*place, str(name)], inner) for name, inner in members]
        elif isinstance(item, list | tuple):
            items = cast("list[object]", item)
            stack += [([*place, at], items[at]) for at in reversed(range(len(items)))]
    return None


def number_name(number: float) -> str:
    """What others call it."""
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def read_leniently(data: bytes) -> Any:
    """A JSON text in which only such numbers are wrong; None for any other fault.

    Programs that write with Python's ``json`` send them. Who waits for their answer shall learn what is wrong with it, and not wait on.
    """
    try:
        value: Any = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if not_finite(value) is not None else None
